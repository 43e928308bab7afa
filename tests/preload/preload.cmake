# Tests of the profiler: MPI programs whose calls are known, built for each MPI, and what the profiler
# adds to a call, counted.
if(NOT TARGET sinew-profiler)
  return()
endif()
set(profiler_tests profile_test mpitrace_files_test)
foreach(name IN LISTS profiler_tests)
  target_compile_definitions(${name} PRIVATE
    SINEW_PROFILE_LIBRARY="$<TARGET_FILE:sinew-profile>")
  add_dependencies(${name} sinew-profiler)
endforeach()
function(sinew_profiled_program kind program source)
  add_executable(${program}-${kind} ${source})
  sinew_link_mpi(${program}-${kind} ${kind})
  target_link_libraries(${program}-${kind} PRIVATE sinew_warnings Threads::Threads)
endfunction()
foreach(kind IN LISTS sinew_mpi_kinds)
  if(SINEW_MPI_${kind})
    sinew_profiled_program(${kind} sinew-test-mpi
                           ${PROJECT_SOURCE_DIR}/tests/programs/mpi_calls.cpp)
    sinew_profiled_program(${kind} sinew-test-horovod-like
                           ${PROJECT_SOURCE_DIR}/examples/06_horovod_like/horovod_like.cpp)
    string(TOUPPER ${kind} upper)
    foreach(name IN LISTS profiler_tests)
      target_compile_definitions(${name} PRIVATE
        SINEW_MPI_CALLS_${upper}="$<TARGET_FILE:sinew-test-mpi-${kind}>"
        SINEW_HOROVOD_LIKE_${upper}="$<TARGET_FILE:sinew-test-horovod-like-${kind}>")
      add_dependencies(${name} sinew-test-mpi-${kind} sinew-test-horovod-like-${kind})
    endforeach()
    add_test(NAME profiler_cost_${kind} COMMAND Python3::Interpreter
             ${PROJECT_SOURCE_DIR}/bench/profiler/cost.py ${PROJECT_BINARY_DIR} ${kind} --most 80)
    set_tests_properties(profiler_cost_${kind} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600)
  endif()
endforeach()
