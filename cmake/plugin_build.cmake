# What a plugin and the library share is compiled into both, so that those of two builds must not
# meet: the version, and a hash of the headers that say what is shared.
set(shared_headers include/sinew/algorithms.hpp include/sinew/error.hpp include/sinew/transport.hpp
    include/sinew/types.hpp src/kernel/reduce.hpp src/runtime/plugin.hpp)
set(texts "")
foreach(header IN LISTS shared_headers)
  file(READ ${PROJECT_SOURCE_DIR}/${header} text)
  string(APPEND texts "${text}")
endforeach()
string(SHA256 hash "${texts}")
string(SUBSTRING ${hash} 0 12 hash)
set(sinew_plugin_build "${PROJECT_VERSION}-${hash}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${shared_headers})
set_property(SOURCE src/runtime/plugin.cpp APPEND PROPERTY COMPILE_DEFINITIONS
             SINEW_PLUGIN_BUILD="${sinew_plugin_build}")
