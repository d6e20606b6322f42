# SPDX-License-Identifier: Apache-2.0
# SHA-256 fingerprints of the sources, fixed at build time: export/fingerprint.h declares them, a C file in the build
# tree defines them. A fingerprint is the SHA-256 of the lines "<sha256>  <path>\n" of its files, sorted by path; paths
# are relative to the source tree, so that every checkout of the same sources has the same.
#
#   include(LayaFingerprint.cmake)                      laya_add_fingerprint(OUTPUT_VARIABLE) makes the rule
#   cmake -DSOURCE=TREE -DOUTPUT=FILE -P LayaFingerprint.cmake     is what the rule runs

# What makes a package, and all of the library.
set(fingerprint_exporter include src/base src/coreml src/export src/mil src/model)
set(fingerprint_runtime include src)

# The source files in some folders of a tree, relative to it.
function(laya_fingerprint_files tree variable)
  set(patterns "")
  foreach(folder ${ARGN})
    list(APPEND patterns "${tree}/${folder}/*.c" "${tree}/${folder}/*.h" "${tree}/${folder}/*.m"
         "${tree}/${folder}/*.proto")
  endforeach()
  if(CMAKE_SCRIPT_MODE_FILE)
    file(GLOB_RECURSE files RELATIVE "${tree}" ${patterns})
  else()
    file(GLOB_RECURSE files RELATIVE "${tree}" CONFIGURE_DEPENDS ${patterns})
  endif()
  list(SORT files COMPARE STRING)
  set(${variable} ${files} PARENT_SCOPE)
endfunction()

# The rule. The variable receives the path of the C file, for a target of the same folder.
function(laya_add_fingerprint variable)
  set(output "${PROJECT_BINARY_DIR}/generated/laya_fingerprint.c")
  laya_fingerprint_files("${PROJECT_SOURCE_DIR}" files ${fingerprint_runtime})
  list(TRANSFORM files PREPEND "${PROJECT_SOURCE_DIR}/")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND ${CMAKE_COMMAND} "-DSOURCE=${PROJECT_SOURCE_DIR}" "-DOUTPUT=${output}"
            -P "${PROJECT_SOURCE_DIR}/cmake/LayaFingerprint.cmake"
    DEPENDS ${files} "${PROJECT_SOURCE_DIR}/cmake/LayaFingerprint.cmake"
    COMMENT "Fingerprints of the sources"
    VERBATIM)
  set(${variable} "${output}" PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
  set(text "/* Made by cmake/LayaFingerprint.cmake. */\n#include \"export/fingerprint.h\"\n\n")
  foreach(part exporter runtime)
    laya_fingerprint_files("${SOURCE}" files ${fingerprint_${part}})
    set(lines "")
    foreach(path ${files})
      file(SHA256 "${SOURCE}/${path}" hash)
      string(APPEND lines "${hash}  ${path}\n")
    endforeach()
    string(SHA256 hash "${lines}")
    string(APPEND text "const char laya_${part}_fingerprint[65] = \"${hash}\";\n")
  endforeach()
  file(WRITE "${OUTPUT}" "${text}")
endif()
