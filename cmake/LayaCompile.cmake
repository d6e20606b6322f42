# SPDX-License-Identifier: Apache-2.0
# How every file of the project is compiled: language, warnings, sanitizers.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_OBJC_STANDARD 11)
set(CMAKE_OBJC_STANDARD_REQUIRED ON)
set(CMAKE_OBJC_EXTENSIONS OFF)
set(CMAKE_OBJC_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Options of our own targets, kept away from projects that use this one with add_subdirectory.
add_library(laya_compile INTERFACE)
target_compile_definitions(laya_compile INTERFACE _XOPEN_SOURCE=700 $<$<PLATFORM_ID:Darwin>:_DARWIN_C_SOURCE>)
# A product and a sum must round twice everywhere, so that all machines agree with the reference.
target_compile_options(laya_compile INTERFACE
  -ffp-contract=off
  -Wall -Wextra -Wshadow -Wvla -Wconversion -Wstrict-prototypes -Wmissing-prototypes
  $<$<BOOL:${LAYA_WERROR}>:-Werror>)

if(LAYA_SANITIZE)
  target_compile_options(laya_compile INTERFACE
    -fsanitize=${LAYA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(laya_compile INTERFACE -fsanitize=${LAYA_SANITIZE})
endif()
if(LAYA_BUILD_FUZZERS)
  if(NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "LAYA_BUILD_FUZZERS needs clang (with its libFuzzer); this is ${CMAKE_C_COMPILER_ID}.")
  endif()
  target_compile_options(laya_compile INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(laya_compile INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Whether the x86 kernels belong into this build. The processor is asked at run time which of them it has.
set(LAYA_X86_64 FALSE)
if(CMAKE_SIZEOF_VOID_P EQUAL 8 AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
  set(LAYA_X86_64 TRUE)
endif()
if(CMAKE_OSX_ARCHITECTURES AND NOT CMAKE_OSX_ARCHITECTURES STREQUAL "x86_64")
  set(LAYA_X86_64 FALSE)
endif()
if(LAYA_X86_64)
  target_compile_definitions(laya_compile INTERFACE LAYA_HAVE_X86)
endif()
