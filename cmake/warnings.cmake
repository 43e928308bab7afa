# Warnings for our own targets, and the sanitizers a preset asks for (those for every target).
add_library(sinew_warnings INTERFACE)
target_compile_options(sinew_warnings INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor
                       -Wold-style-cast -Wcast-qual -Woverloaded-virtual)
# g++ 12 sees copies inside std::string that overlap or go too far, and do not (GCC bug 105329). The
# address sanitizer looks for the real ones.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(sinew_warnings INTERFACE -Wno-restrict -Wno-stringop-overflow
                         -Wno-array-bounds)
endif()
option(SINEW_WERROR "Treat warnings as errors" OFF)
if(SINEW_WERROR)
  target_compile_options(sinew_warnings INTERFACE -Werror)
endif()

if(SINEW_SANITIZE)
  # What is undefined ends the program, or else tests would pass beside the message. `vptr` looks at
  # memory through a pipe, and finds fault with every object where descriptors have run out.
  add_compile_options(-fsanitize=${SINEW_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all
                      -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${SINEW_SANITIZE})
endif()
if(SINEW_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)  # what the fuzzer steers by
endif()
