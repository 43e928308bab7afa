# What makes a build from nothing short: g++ spends most of its time reading the same headers, making
# the same functions of them, and optimizing code that runs once. The thread sanitizer's build does
# without the first two, so that a source which forgets an include is found there.
set(sinew_common_headers <algorithm> <functional> <map> <memory> <optional> <span> <string> <vector>
    <fmt/format.h>)

if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache")
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)  # it keeps no object that was made with them
endif()

# Sources of the target become one, `batch` at a time (0: all). Names must differ between them, also
# those that no other file sees.
function(sinew_compile_together target batch)
  if(NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${batch})
  endif()
endfunction()

# Code that runs once a program, such as the reading of a command line, gains nothing from -O3, and in
# a sanitizer build nothing from -O1.
set(sinew_little_optimization $<$<CONFIG:Release>:-O1> $<$<CONFIG:Debug>:-O0>)
function(sinew_optimize_little)
  set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS ${sinew_little_optimization})
endfunction()
