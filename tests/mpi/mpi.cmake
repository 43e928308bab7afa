# Tests of the mpi transport: the programs that are the ranks of a job, and mpi_job_test once for
# each MPI. Where one is missing its test is there and says that it was skipped.
set(here ${CMAKE_CURRENT_LIST_DIR})

add_library(old_plugin MODULE ${here}/../runtime/old_plugin.cpp)
target_include_directories(old_plugin PRIVATE ${PROJECT_SOURCE_DIR}/src
                                              ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(mpi_plugin_test PRIVATE SINEW_OLD_PLUGIN="$<TARGET_FILE:old_plugin>")
add_dependencies(mpi_plugin_test old_plugin)

target_sources(mpi_hosts_test PRIVATE ${PROJECT_SOURCE_DIR}/src/mpi/hosts.cpp)  # the part without MPI
target_link_libraries(mpi_hosts_test PRIVATE PkgConfig::xxhash)

add_executable(mpi_rank_program ${here}/rank_program.cpp ${here}/rank_checks.cpp
                                ${here}/failure_checks.cpp)
target_link_libraries(mpi_rank_program PRIVATE sinew_test_support)
target_compile_definitions(mpi_job_test PRIVATE
  SINEW_MPI_RANKS="$<TARGET_FILE:mpi_rank_program>"
  SINEW_OWN_MPI="${CMAKE_CURRENT_BINARY_DIR}/own_mpi_program")
add_dependencies(mpi_job_test mpi_rank_program)

foreach(kind IN LISTS sinew_mpi_kinds)
  set(test mpi_${kind})
  if(NOT TARGET sinew-mpi-${kind} OR SINEW_SANITIZE MATCHES thread)
    # The thread sanitizer knows nothing of what an MPI does.
    add_test(NAME ${test} COMMAND ${CMAKE_COMMAND} -E echo
             "skipped: no plugin for ${kind} in this build")
    set_tests_properties(${test} PROPERTIES SKIP_REGULAR_EXPRESSION "skipped:")
    continue()
  endif()
  add_executable(own_mpi_program-${kind} ${here}/own_mpi_program.cpp)
  sinew_link_mpi(own_mpi_program-${kind} ${kind})
  target_link_libraries(own_mpi_program-${kind} PRIVATE sinew sinew_warnings fmt::fmt)
  add_dependencies(mpi_job_test own_mpi_program-${kind} sinew-mpi-${kind})
  add_test(NAME ${test} COMMAND mpi_job_test)
  set_tests_properties(${test} PROPERTIES TIMEOUT 600 ENVIRONMENT
    "SINEW_TEST_MPI=${kind};SINEW_PLUGINS=${PROJECT_BINARY_DIR}/lib/sinew;ASAN_OPTIONS=detect_leaks=0")
endforeach()
