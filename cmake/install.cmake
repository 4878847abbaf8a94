# Headers, pkg-config file and CMake package. What is built installs itself. All of it may be moved to another prefix.
include(CMakePackageConfigHelpers)
set(AOT_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/aothost)
file(RELATIVE_PATH AOT_PC_UP ${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/aothost.pc.in ${CMAKE_BINARY_DIR}/aothost.pc @ONLY)
configure_package_config_file(cmake/aothost-config.cmake.in ${CMAKE_BINARY_DIR}/aothost-config.cmake
                              INSTALL_DESTINATION ${AOT_PACKAGE_DIR} PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/aothost-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES host/include/aothost.h host/include/aothost_dlpack.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY plugin-api/aot DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${CMAKE_BINARY_DIR}/aothost.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${CMAKE_BINARY_DIR}/aothost-config.cmake ${CMAKE_BINARY_DIR}/aothost-config-version.cmake cmake/aot_plugin.cmake
        DESTINATION ${AOT_PACKAGE_DIR})
