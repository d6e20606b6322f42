# SPDX-License-Identifier: Apache-2.0
# cmake --install: libraries, headers, pkg-config file, CMake package, command, demo model, fixture, documents.
include(CMakePackageConfigHelpers)

install(TARGETS laya EXPORT layaSharedTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(TARGETS laya_static EXPORT layaStaticTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/laya" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.h")

# find_package(laya)
set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/laya")
configure_package_config_file(cmake/layaConfig.cmake.in "${PROJECT_BINARY_DIR}/layaConfig.cmake"
  INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/layaConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/layaConfig.cmake" "${PROJECT_BINARY_DIR}/layaConfigVersion.cmake"
  DESTINATION "${package_folder}")
foreach(kind Shared Static)
  install(EXPORT laya${kind}Targets NAMESPACE laya:: DESTINATION "${package_folder}")
endforeach()

# pkg-config --cflags --libs laya; the prefix is relative to the file, so that the tree can be moved.
file(RELATIVE_PATH prefix_from_pc "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
if(APPLE)
  set(frameworks_of_pc " -framework CoreML -framework Foundation")
endif()
configure_file(cmake/laya.pc.in "${PROJECT_BINARY_DIR}/laya.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/laya.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

if(LAYA_BUILD_TOOLS)
  install(TARGETS layac RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  install(FILES docs/man/layac.1 DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
  install(FILES completions/layac.bash DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME layac)
  install(FILES completions/_layac DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
  install(FILES completions/layac.fish DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
  # layac finds its default model and fixture in ../share/laya from its own place.
  install(DIRECTORY models/laya-demo DESTINATION "share/laya/models")
  install(DIRECTORY fixtures DESTINATION "share/laya")
endif()

install(FILES LICENSE NOTICE README.md CHANGELOG.md DESTINATION "${CMAKE_INSTALL_DOCDIR}" OPTIONAL)
install(DIRECTORY docs/ DESTINATION "${CMAKE_INSTALL_DOCDIR}" FILES_MATCHING PATTERN "*.md" PATTERN "man" EXCLUDE)
