# The Python interpreter that packages are built for, and a function that builds a module of one.
# SINEW_PYTHON: the interpreter; by default the system's, then whichever comes first in PATH.
if(NOT SINEW_PYTHON)
  foreach(candidate /usr/bin/python3 python3)
    find_program(found_python ${candidate} NO_CACHE)
    if(found_python)
      execute_process(COMMAND ${found_python} -c "import numpy" RESULT_VARIABLE failed
                      OUTPUT_QUIET ERROR_QUIET)
      if(failed EQUAL 0)
        set(SINEW_PYTHON ${found_python} CACHE FILEPATH "Python that packages are built for")
        break()
      endif()
    endif()
    unset(found_python)
  endforeach()
endif()

set(probe [=[
import os, sysconfig
print(sysconfig.get_path("include"))
print(sysconfig.get_config_var("EXT_SUFFIX"))
]=])
set(torch_probe [=[
import torch, torch.utils.cpp_extension as e
print(torch.__version__)
print(";".join(e.include_paths()))
print(";".join(e.library_paths()))
print(int(torch._C._GLIBCXX_USE_CXX11_ABI))
]=])
function(run_probe text result)
  execute_process(COMMAND ${SINEW_PYTHON} -c "${text}" RESULT_VARIABLE failed
                  OUTPUT_VARIABLE printed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT failed EQUAL 0)
    set(printed "")
  endif()
  string(REPLACE ";" "|" printed "${printed}")
  string(REPLACE "\n" ";" printed "${printed}")
  set(${result} "${printed}" PARENT_SCOPE)
endfunction()

if(SINEW_PYTHON AND NOT DEFINED SINEW_PYTHON_SUFFIX)
  run_probe("${probe}" lines)
  list(GET lines 0 include)
  list(GET lines 1 suffix)
  set(SINEW_PYTHON_INCLUDE ${include} CACHE INTERNAL "")
  set(SINEW_PYTHON_SUFFIX ${suffix} CACHE INTERNAL "")
  run_probe("${torch_probe}" lines)
  set(SINEW_PYTHON_TORCH "" CACHE INTERNAL "")
  if(lines)
    list(GET lines 0 version)
    list(GET lines 1 includes)
    list(GET lines 2 libraries)
    list(GET lines 3 abi)
    string(REPLACE "|" ";" includes "${includes}")
    string(REPLACE "|" ";" libraries "${libraries}")
    set(SINEW_PYTHON_TORCH ${version} CACHE INTERNAL "")
    set(SINEW_TORCH_INCLUDES ${includes} CACHE INTERNAL "")
    set(SINEW_TORCH_LIBS ${libraries} CACHE INTERNAL "")
    set(SINEW_TORCH_CXX11_ABI ${abi} CACHE INTERNAL "")
  endif()
endif()
set(SINEW_PYTHON_PACKAGES ${PROJECT_BINARY_DIR}/python)

# sinew_python_module(TARGET PACKAGE MODULE SOURCES...): a module of a package whose Python files lie
# in python/PACKAGE. The build tree holds the whole package, for PYTHONPATH.
function(sinew_python_module target package module)
  add_library(${target} MODULE ${ARGN})
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME ${module} SUFFIX ${SINEW_PYTHON_SUFFIX}
    LIBRARY_OUTPUT_DIRECTORY ${SINEW_PYTHON_PACKAGES}/${package})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_include_directories(${target} SYSTEM PRIVATE ${SINEW_PYTHON_INCLUDE})
  target_link_libraries(${target} PRIVATE sinew sinew_warnings fmt::fmt)
  # Nobody needs what comes out of archives, and torch has some of it too: compilers whose libstdc++
  # is an archive would mix its streams with those of the library that torch has loaded.
  target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL)
  file(MAKE_DIRECTORY ${SINEW_PYTHON_PACKAGES}/${package})
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/${package}/*)
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME)
    if(NOT IS_DIRECTORY ${file})
      file(CREATE_LINK ${file} ${SINEW_PYTHON_PACKAGES}/${package}/${name} SYMBOLIC)
    endif()
  endforeach()
endfunction()
