# Tests of the mpi transport: programs that are the ranks of an MPI job, started with each MPI by
# mpi_job_test.
add_executable(mpi_rank_program ${CMAKE_CURRENT_LIST_DIR}/rank_program.cpp
               ${CMAKE_CURRENT_LIST_DIR}/rank_checks.cpp)
target_link_libraries(mpi_rank_program PRIVATE sinew_test_support)
