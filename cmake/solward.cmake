# Small helpers, so that a folder's CMakeLists.txt is a list of what is in it.

add_library(solward_options INTERFACE)
target_compile_options(solward_options INTERFACE -Wall -Wextra -Wnon-virtual-dtor)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(solward_options INTERFACE -Wshadow=local)
endif()
if(SOLWARD_WERROR)
  target_compile_options(solward_options INTERFACE -Werror)
endif()
# gRPC 1.51's own headers trip these in g++ 12.
target_compile_options(solward_options INTERFACE -Wno-missing-field-initializers)
target_include_directories(solward_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_definitions(solward_options INTERFACE
  SPDLOG_FMT_EXTERNAL=1 FMT_HEADER_ONLY=1 SOLWARD_VERSION="${PROJECT_VERSION}")
if(SOLWARD_SANITIZE)
  add_compile_options(-fsanitize=${SOLWARD_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${SOLWARD_SANITIZE})
endif()

# solward_library(NAME SRCS a.cc... DEPS lib...): a static library of this folder.
function(solward_library name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  if(ARG_SRCS)
    add_library(${name} STATIC ${ARG_SRCS})
    target_link_libraries(${name} PUBLIC solward_options ${ARG_DEPS})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE solward_options ${ARG_DEPS})
  endif()
endfunction()

# solward_binary(NAME SRCS main.cc DEPS lib...): an installed program.
function(solward_binary name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE solward_options ${ARG_DEPS})
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# solward_test(NAME SRCS foo_test.cc DEPS lib... [LABELS tier]): a test binary
# whose cases CTest sees one by one. Tests find their data under
# SOLWARD_SOURCE_DIR and programs in SOLWARD_BIN_DIR (environment).
function(solward_test name)
  if(NOT SOLWARD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "TIMEOUT" "SRCS;DEPS;LABELS" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SRCS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${name} PRIVATE solward_options ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES
    LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT "SOLWARD_SOURCE_DIR=${CMAKE_SOURCE_DIR};SOLWARD_BIN_DIR=${CMAKE_BINARY_DIR}/bin")
endfunction()
