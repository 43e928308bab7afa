# The MPIs that are installed, side by side: each has its own ABI, so what uses MPI is built once
# for each. The peers, the plugins and their tests share this.
set(sinew_mpi_kinds openmpi mpich)
foreach(kind IN LISTS sinew_mpi_kinds)
  find_program(SINEW_MPI_${kind} mpicxx.${kind})
  mark_as_advanced(SINEW_MPI_${kind})
endforeach()

# Gives a target what that MPI's compiler wrapper would.
function(sinew_link_mpi target kind)
  execute_process(COMMAND ${SINEW_MPI_${kind}} -show OUTPUT_VARIABLE line
                  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(words UNIX_COMMAND "${line}")
  foreach(word IN LISTS words)
    if(word MATCHES "^-I(.+)")
      target_include_directories(${target} SYSTEM PRIVATE ${CMAKE_MATCH_1})
    elseif(word MATCHES "^-L(.+)")
      target_link_directories(${target} PRIVATE ${CMAKE_MATCH_1})
    elseif(word MATCHES "^-l.*cxx$")
      continue()  # the C++ bindings are not used
    elseif(word MATCHES "^-l(.+)")
      target_link_libraries(${target} PRIVATE ${CMAKE_MATCH_1})
    endif()
  endforeach()
  target_compile_definitions(${target} PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
endfunction()

# The include folder of that MPI, for what needs its mpi.h and nothing else of it. Sets `result`.
function(sinew_mpi_include target kind result)
  execute_process(COMMAND ${SINEW_MPI_${kind}} -show OUTPUT_VARIABLE line
                  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(words UNIX_COMMAND "${line}")
  foreach(word IN LISTS words)
    if(NOT word MATCHES "^-I(.+)")
      continue()
    endif()
    target_include_directories(${target} SYSTEM PRIVATE ${CMAKE_MATCH_1})
    if(EXISTS ${CMAKE_MATCH_1}/mpi.h)
      set(${result} ${CMAKE_MATCH_1} PARENT_SCOPE)
    endif()
  endforeach()
  target_compile_definitions(${target} PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
endfunction()
