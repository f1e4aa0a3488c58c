# SOLWARD_BUNDLE: mostly-static programs for GPU nodes. Every imported library
# that has a .a is taken from it; what has none (simdjson) is installed beside
# the programs and found by $ORIGIN.
set(SOLWARD_SHARED_IN_BUNDLE "")

function(solward_static_file path out)
  string(REGEX REPLACE "\\.so[.0-9]*$" ".a" static "${path}")
  # libsqlite3.so.0.8.6 and libfoo.so -> the name the linker would look for.
  if(EXISTS "${static}")
    set(${out} "${static}" PARENT_SCOPE)
  else()
    set(${out} "${path}" PARENT_SCOPE)
  endif()
endfunction()

# gRPC's package names this one without a path.
find_library(SOLWARD_RE2_ARCHIVE libre2.a)

function(solward_link_statically target)
  foreach(property IMPORTED_LOCATION IMPORTED_LOCATION_NONE IMPORTED_LOCATION_RELEASE
                   IMPORTED_LOCATION_RELWITHDEBINFO IMPORTED_LOCATION_NOCONFIG)
    get_target_property(location ${target} ${property})
    if(location MATCHES "\\.so")
      solward_static_file("${location}" static)
      set_property(TARGET ${target} PROPERTY ${property} "${static}")
    endif()
  endforeach()
  get_target_property(libraries ${target} INTERFACE_LINK_LIBRARIES)
  if(libraries)
    set(replaced "")
    foreach(library ${libraries})
      if(library MATCHES "^/.*\\.so")
        solward_static_file("${library}" library)
      elseif(library MATCHES "^(-l)?re2$" AND SOLWARD_RE2_ARCHIVE)
        set(library "${SOLWARD_RE2_ARCHIVE}")
      endif()
      list(APPEND replaced "${library}")
    endforeach()
    set_property(TARGET ${target} PROPERTY INTERFACE_LINK_LIBRARIES "${replaced}")
  endif()
endfunction()

get_property(imported DIRECTORY ${CMAKE_SOURCE_DIR} PROPERTY IMPORTED_TARGETS)
foreach(target ${imported})
  get_target_property(type ${target} TYPE)
  if(NOT type STREQUAL "EXECUTABLE")
    solward_link_statically(${target})
  endif()
endforeach()

add_link_options(-static-libstdc++ -static-libgcc -Wl,--gc-sections -s)
add_compile_options(-ffunction-sections -fdata-sections)
# Archives refer to each other in circles.
set(CMAKE_CXX_LINK_EXECUTABLE
  "<CMAKE_CXX_COMPILER> <FLAGS> <CMAKE_CXX_LINK_FLAGS> <LINK_FLAGS> <OBJECTS> -o <TARGET> -Wl,--start-group <LINK_LIBRARIES> -Wl,--end-group")
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")
set(CMAKE_BUILD_WITH_INSTALL_RPATH OFF)

# What has no archive travels with the programs.
foreach(target simdjson::simdjson)
  if(TARGET ${target})
    install(IMPORTED_RUNTIME_ARTIFACTS ${target} LIBRARY DESTINATION lib)
  endif()
endforeach()
