# Tests of the profiler: MPI programs whose calls are known, built for each MPI, and what the profiler
# adds to a call, counted.
if(NOT TARGET sinew-profiler)
  return()
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(here ${CMAKE_CURRENT_LIST_DIR})
set(programs ${here}/../programs)
set(profile_tests profile_test profile_edges_test full_disk_test mpitrace_files_test)

# An MPI that nobody knows, and something that is called NCCL.
add_library(odd_mpi SHARED ${here}/odd_mpi.cpp)
target_compile_definitions(odd_mpi PRIVATE SINEW_ODD_LIBRARY)
add_executable(odd_mpi_program ${here}/odd_mpi.cpp)
target_link_libraries(odd_mpi_program PRIVATE odd_mpi)
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/fake_nccl.cpp
     CONTENT "extern \"C\" int ncclGetVersion() { return 0; }\n")
add_library(fake_nccl SHARED ${CMAKE_CURRENT_BINARY_DIR}/fake_nccl.cpp)
set_target_properties(fake_nccl PROPERTIES OUTPUT_NAME nccl VERSION 2 SOVERSION 2)

foreach(test IN LISTS profile_tests)
  target_compile_definitions(${test} PRIVATE
    SINEW_PYTHON="${Python3_EXECUTABLE}"
    SINEW_PROFILE_LIBRARY="$<TARGET_FILE:sinew-profile>"
    SINEW_ODD_MPI_PROGRAM="$<TARGET_FILE:odd_mpi_program>"
    SINEW_FAKE_NCCL="$<TARGET_FILE:fake_nccl>")
  add_dependencies(${test} sinew-profiler odd_mpi_program fake_nccl)
endforeach()

file(GLOB class_sources CONFIGURE_DEPENDS ${programs}/classes_*.cpp)
foreach(kind IN LISTS sinew_mpi_kinds)
  if(NOT SINEW_MPI_${kind})
    continue()
  endif()
  add_executable(sinew-test-mpi-${kind} ${programs}/mpi_calls.cpp)
  add_executable(sinew-test-answers-${kind} ${programs}/mpi_answers.cpp)
  add_executable(sinew-test-classes-${kind} ${programs}/mpi_classes.cpp ${class_sources})
  add_executable(sinew-test-horovod-like-${kind}
                 ${PROJECT_SOURCE_DIR}/examples/06_horovod_like/horovod_like.cpp)
  set(kind_programs sinew-test-mpi-${kind} sinew-test-answers-${kind} sinew-test-classes-${kind}
      sinew-test-horovod-like-${kind})
  # The same program with large counts, where the MPI has them.
  sinew_mpi_include(sinew-test-classes-${kind} ${kind} include)
  file(GLOB headers ${include}/mpi*.h)
  set(made ${PROJECT_BINARY_DIR}/src/preload/${kind}/preload)
  foreach(header IN LISTS headers)
    file(STRINGS ${header} large REGEX "int MPI_Send_c\\(")
    if(large)
      add_executable(sinew-test-large-${kind} ${programs}/mpi_classes.cpp ${class_sources})
      target_include_directories(sinew-test-large-${kind} PRIVATE ${made})
      target_compile_definitions(sinew-test-large-${kind} PRIVATE SINEW_LARGE_COUNTS)
      add_dependencies(sinew-test-large-${kind} sinew-profile-${kind})
      list(APPEND kind_programs sinew-test-large-${kind})
    endif()
  endforeach()
  foreach(program IN LISTS kind_programs)
    sinew_link_mpi(${program} ${kind})
    target_link_libraries(${program} PRIVATE sinew_warnings Threads::Threads)
  endforeach()
  set(large_program "")
  if(TARGET sinew-test-large-${kind})
    set(large_program $<TARGET_FILE:sinew-test-large-${kind}>)
  endif()
  string(TOUPPER ${kind} upper)
  foreach(test IN LISTS profile_tests)
    target_compile_definitions(${test} PRIVATE
      SINEW_MPI_CALLS_${upper}="$<TARGET_FILE:sinew-test-mpi-${kind}>"
      SINEW_MPI_ANSWERS_${upper}="$<TARGET_FILE:sinew-test-answers-${kind}>"
      SINEW_MPI_CLASSES_${upper}="$<TARGET_FILE:sinew-test-classes-${kind}>"
      SINEW_HOROVOD_LIKE_${upper}="$<TARGET_FILE:sinew-test-horovod-like-${kind}>"
      SINEW_MPI_LARGE_${upper}="${large_program}"
      SINEW_WRAPPERS_${upper}="${made}/wrappers.hpp")
    add_dependencies(${test} ${kind_programs})
  endforeach()
  add_test(NAME profiler_cost_${kind} COMMAND Python3::Interpreter
           ${PROJECT_SOURCE_DIR}/bench/profiler/cost.py ${PROJECT_BINARY_DIR} ${kind} --most 80)
  set_tests_properties(profiler_cost_${kind} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600)
endforeach()
