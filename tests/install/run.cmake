# Installs the build into a fresh prefix, moves that (an install must not depend on where it was
# made), looks for its plugins, then builds and runs the consumer twice: by find_package and by
# pkg-config.
# In: BUILD, CONSUMER, WORK, LIBDIR, CXX.
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK})
set(made ${WORK}/made)
set(prefix "${WORK}/moved here")
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${made})
file(RENAME ${made} ${prefix})

run(${prefix}/bin/sinew --version)

# The plugins that were built are found, and load, where they are now. Other checks may fail.
execute_process(COMMAND ${prefix}/bin/sinew doctor --json OUTPUT_VARIABLE found)
file(GLOB plugins RELATIVE ${BUILD}/lib/sinew ${BUILD}/lib/sinew/libsinew-mpi-*.so)
foreach(plugin IN LISTS plugins)
  if(NOT found MATCHES "\"value\": \"${prefix}/${LIBDIR}/sinew/${plugin}\"")
    message(FATAL_ERROR "the installed ${plugin} is not found, or does not load: ${found}")
  endif()
endforeach()

run(${CMAKE_COMMAND} -S ${CONSUMER} -B ${WORK}/cmake -G Ninja -DCMAKE_CXX_COMPILER=${CXX}
    -DCMAKE_BUILD_TYPE=Release "-DCMAKE_PREFIX_PATH=${prefix}")
run(${CMAKE_COMMAND} --build ${WORK}/cmake)
run(${WORK}/cmake/consumer)

set(ENV{PKG_CONFIG_PATH} ${prefix}/${LIBDIR}/pkgconfig)
execute_process(COMMAND pkg-config --cflags --libs sinew OUTPUT_VARIABLE flags
                COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND "${flags}")
run(${CXX} -std=c++20 ${CONSUMER}/consumer.cpp ${flags} -o ${WORK}/consumer_pc)
run(${WORK}/consumer_pc)
