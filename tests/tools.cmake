# Tests of the tree itself: layers, headers, format, static analysis, and the installed package.
# They are the same whatever the sanitizer, so only plain builds have them.
if(NOT SINEW_SANITIZE)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(tools ${PROJECT_SOURCE_DIR}/tools)

  add_test(NAME layers COMMAND Python3::Interpreter ${tools}/check_layers.py ${PROJECT_SOURCE_DIR})
  add_test(NAME names COMMAND Python3::Interpreter ${tools}/check_names.py ${PROJECT_SOURCE_DIR})
  add_test(NAME headers_stand_alone COMMAND Python3::Interpreter ${tools}/check_headers.py
           ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  set_tests_properties(headers_stand_alone PROPERTIES PROCESSORS 2)  # one compiler a core
  add_test(NAME format COMMAND Python3::Interpreter ${tools}/check_format.py
           ${PROJECT_SOURCE_DIR} clang-format-14)
  add_test(NAME tidy COMMAND Python3::Interpreter ${tools}/check_tidy.py
           ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR} clang-tidy-14)
  set_tests_properties(tidy PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1800 PROCESSORS 2)

  add_test(NAME pages COMMAND Python3::Interpreter ${tools}/write_algorithm_pages.py
           $<TARGET_FILE:sinew-cli> ${PROJECT_SOURCE_DIR} --check)

  file(GLOB tool_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/tools/*_test.py)
  foreach(file IN LISTS tool_tests)
    get_filename_component(name ${file} NAME_WE)
    add_test(NAME ${name} COMMAND Python3::Interpreter ${file})
    set_tests_properties(${name} PROPERTIES ENVIRONMENT SINEW_BUILD=${PROJECT_BINARY_DIR})
  endforeach()

  add_test(NAME install_consumer COMMAND ${CMAKE_COMMAND}
           -D BUILD=${PROJECT_BINARY_DIR} -D CONSUMER=${CMAKE_CURRENT_LIST_DIR}/install
           -D WORK=${PROJECT_BINARY_DIR}/install_consumer -D LIBDIR=${CMAKE_INSTALL_LIBDIR}
           -D CXX=${CMAKE_CXX_COMPILER} -P ${CMAKE_CURRENT_LIST_DIR}/install/run.cmake)
endif()
