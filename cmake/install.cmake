# `cmake --install`: headers, library, program, and what find_package(sinew) and pkg-config read.
include(CMakePackageConfigHelpers)

install(TARGETS sinew sinew-cli EXPORT sinewTargets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/sinew DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN *.hpp)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

get_target_property(library_type sinew TYPE)
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/sinew)
install(EXPORT sinewTargets NAMESPACE sinew:: DESTINATION ${config_folder})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/sinewConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/sinewConfig.cmake
                              INSTALL_DESTINATION ${config_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sinewConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/sinewConfig.cmake ${PROJECT_BINARY_DIR}/sinewConfigVersion.cmake
        DESTINATION ${config_folder})

# A static library alone cannot be linked without these, so they must be public there: with
# Requires.private a plain `pkg-config --libs` would not link.
set(libraries "fmt libhwy hwloc libxxhash libcrypto libssl liblz4 libzstd zlib tomlplusplus")
if(library_type STREQUAL STATIC_LIBRARY)
  set(pc_requires "Requires: ${libraries}")
else()
  set(pc_requires "Requires.private: ${libraries}")
endif()
set(pc_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pc_to_prefix /${pc_folder} /)  # so that the installed tree can be moved
configure_file(${CMAKE_CURRENT_LIST_DIR}/sinew.pc.in ${PROJECT_BINARY_DIR}/sinew.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/sinew.pc DESTINATION ${pc_folder})
