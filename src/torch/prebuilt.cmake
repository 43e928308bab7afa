# For src/torch standing alone: the library and what it needs out of SINEW_PREBUILT, and torch out
# of the Python package, CUDA and all, without asking for a CUDA compiler.
set(SINEW_PREBUILT "" CACHE PATH "What tools/bundle.sh made")
get_filename_component(prebuilt "${SINEW_PREBUILT}" ABSOLUTE BASE_DIR "${CMAKE_SOURCE_DIR}/../..")
if(NOT EXISTS ${prebuilt}/lib/libsinew.so)
  message(FATAL_ERROR "Say -DSINEW_PREBUILT=DIR, a folder that tools/bundle.sh made")
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

add_library(sinew_warnings INTERFACE)
add_library(sinew SHARED IMPORTED)
set_target_properties(sinew PROPERTIES IMPORTED_LOCATION ${prebuilt}/lib/libsinew.so)
target_include_directories(sinew INTERFACE ${CMAKE_SOURCE_DIR}/../../include ${prebuilt}/include)
target_link_options(sinew INTERFACE -Wl,-rpath-link,${prebuilt}/lib)
set(sinew_programs ${prebuilt}/bin)
foreach(header_only CLI11::CLI11 nlohmann_json::nlohmann_json fmt::fmt-header-only)
  add_library(${header_only} INTERFACE IMPORTED)
endforeach()
target_compile_definitions(fmt::fmt-header-only INTERFACE FMT_HEADER_ONLY=1)
add_library(PkgConfig::xxhash SHARED IMPORTED)
file(GLOB xxhash_library ${prebuilt}/lib/libxxhash.so*)
set_target_properties(PkgConfig::xxhash PROPERTIES IMPORTED_LOCATION ${xxhash_library})

find_program(python NAMES python3 REQUIRED)
execute_process(COMMAND ${python} -c
  "import torch, os; print(os.path.dirname(torch.__file__), torch.__version__, int(getattr(torch._C, '_GLIBCXX_USE_CXX11_ABI', 1)), sep=';')"
  OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
list(GET found 0 torch_root)
list(GET found 1 Torch_VERSION)
list(GET found 2 torch_abi)
add_library(torch INTERFACE IMPORTED)
target_include_directories(torch SYSTEM INTERFACE ${torch_root}/include
                           ${torch_root}/include/torch/csrc/api/include)
target_compile_definitions(torch INTERFACE _GLIBCXX_USE_CXX11_ABI=${torch_abi})
set(torch_libraries torch_cpu c10)
if(EXISTS ${torch_root}/lib/libtorch_cuda.so)
  list(APPEND torch_libraries torch_cuda c10_cuda)
endif()
# Nothing here names CUDA, so the linker must be told to keep it; what it needs in turn is found by
# torch's own search path when the program starts.
target_link_options(torch INTERFACE -L${torch_root}/lib -Wl,-rpath,${torch_root}/lib
                    -Wl,--allow-shlib-undefined)
list(TRANSFORM torch_libraries PREPEND -l)
list(JOIN torch_libraries "," torch_libraries)
target_link_libraries(torch INTERFACE -Wl,--no-as-needed,${torch_libraries},--as-needed)
