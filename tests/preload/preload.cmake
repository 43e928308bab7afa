# Tests of the profiler: an MPI program whose calls are known, built for each MPI, and what the
# profiler adds to a call, counted.
if(NOT TARGET sinew-profiler)
  return()
endif()
target_compile_definitions(profile_test PRIVATE
  SINEW_PROFILE_LIBRARY="$<TARGET_FILE:sinew-profile>")
add_dependencies(profile_test sinew-profiler)
foreach(kind IN LISTS sinew_mpi_kinds)
  if(SINEW_MPI_${kind})
    add_executable(sinew-test-mpi-${kind} ${CMAKE_CURRENT_LIST_DIR}/../programs/mpi_calls.cpp)
    sinew_link_mpi(sinew-test-mpi-${kind} ${kind})
    target_link_libraries(sinew-test-mpi-${kind} PRIVATE sinew_warnings Threads::Threads)
    string(TOUPPER ${kind} upper)
    target_compile_definitions(profile_test PRIVATE
      SINEW_MPI_CALLS_${upper}="$<TARGET_FILE:sinew-test-mpi-${kind}>")
    add_dependencies(profile_test sinew-test-mpi-${kind})
    add_test(NAME profiler_cost_${kind} COMMAND Python3::Interpreter
             ${PROJECT_SOURCE_DIR}/bench/profiler/cost.py ${PROJECT_BINARY_DIR} ${kind} --most 80)
    set_tests_properties(profiler_cost_${kind} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600)
  endif()
endforeach()
