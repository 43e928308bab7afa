# Predictions beside SimGrid's, where libsimgrid-dev is installed.
add_test(NAME simgrid_cross_check
         COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/model/simgrid/cross_check.py $<TARGET_FILE:sinew-cli>
                 ${CMAKE_CURRENT_BINARY_DIR}/simgrid)
set_tests_properties(simgrid_cross_check PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77)
