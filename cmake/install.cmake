# The SDK: headers, pkg-config files, CMake package, templates, examples, cases, documents. What is built installs itself. All of it may be
# moved to another prefix. Components are the packages (packages.cmake).
include(CMakePackageConfigHelpers)
set(AOT_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/aothost)
file(RELATIVE_PATH AOT_PC_UP ${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
set(AOT_MADE_DIR ${CMAKE_BINARY_DIR}/made) # not the build folder itself, where find_package would look
set(AOT_SHARE_DIR ${CMAKE_INSTALL_DATADIR}/aothost)
configure_file(cmake/aothost.pc.in ${AOT_MADE_DIR}/aothost.pc @ONLY)
configure_file(cmake/aothost-plugin.pc.in ${AOT_MADE_DIR}/aothost-plugin.pc @ONLY)
configure_file(cmake/aothost-kit.pc.in ${AOT_MADE_DIR}/aothost-kit.pc @ONLY)
configure_package_config_file(cmake/aothost-config.cmake.in ${AOT_MADE_DIR}/aothost-config.cmake
                              INSTALL_DESTINATION ${AOT_PACKAGE_DIR} PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR
                              CMAKE_INSTALL_DATADIR CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${AOT_MADE_DIR}/aothost-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES host/include/aothost.h host/include/aothost_dlpack.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT libaothost-dev)
install(DIRECTORY plugin-api/aot DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT libaothost-dev)
install(FILES ${AOT_MADE_DIR}/aothost.pc ${AOT_MADE_DIR}/aothost-plugin.pc ${AOT_MADE_DIR}/aothost-kit.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT libaothost-dev)
# The kit's headers, in a folder of their own so that "kit/loops/loop.h" names nothing of another package. Left out: headers that
# include headers of OpenBLAS or oneDNN, the CPU stand-in for CUDA of this tree's tests, and texts that are embedded.
install(DIRECTORY kit DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/aothost COMPONENT libaothost-dev
        FILES_MATCHING PATTERN "*.h" PATTERN tests EXCLUDE PATTERN prelude EXCLUDE PATTERN openblas.h EXCLUDE PATTERN onednn.h EXCLUDE
        PATTERN cuda_shim.h EXCLUDE)
install(FILES ${AOT_MADE_DIR}/aothost-config.cmake ${AOT_MADE_DIR}/aothost-config-version.cmake cmake/aot_plugin.cmake
        DESTINATION ${AOT_PACKAGE_DIR} COMPONENT libaothost-dev)

# The build folder is a prefix, too: what is written there for plugins finds headers, command and templates without an installation.
function(aot_link_into_build from to)
  get_filename_component(folder ${CMAKE_BINARY_DIR}/${to} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  file(CREATE_LINK ${from} ${CMAKE_BINARY_DIR}/${to} SYMBOLIC)
endfunction()
aot_link_into_build(${CMAKE_SOURCE_DIR}/plugin-api/aot include/aot)
aot_link_into_build(${CMAKE_SOURCE_DIR}/host/include/aothost.h include/aothost.h)
aot_link_into_build(${CMAKE_SOURCE_DIR}/host/include/aothost_dlpack.h include/aothost_dlpack.h)
aot_link_into_build(${CMAKE_SOURCE_DIR}/kit include/aothost/kit)
aot_link_into_build(${CMAKE_SOURCE_DIR}/cmake/aot_plugin.cmake lib/cmake/aothost/aot_plugin.cmake)
function(aot_build_folder_package)
  set(CMAKE_INSTALL_INCLUDEDIR include)
  set(CMAKE_INSTALL_LIBDIR lib)
  set(CMAKE_INSTALL_DATADIR share)
  set(CMAKE_INSTALL_BINDIR bin)
  configure_package_config_file(cmake/aothost-config.cmake.in ${CMAKE_BINARY_DIR}/lib/cmake/aothost/aothost-config.cmake
                                INSTALL_DESTINATION lib/cmake/aothost INSTALL_PREFIX ${CMAKE_BINARY_DIR}
                                PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_DATADIR CMAKE_INSTALL_BINDIR)
endfunction()
aot_build_folder_package()

# The template of a kind is an example: a folder that builds as it is.
foreach(pair pass:pass partition:partitioner backend:backend opset:vendor_op importer:importer communicator:communicator
              device:device backend-kit:kit_backend)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 kind)
  list(GET pair 1 folder)
  install(DIRECTORY examples/${folder}/ DESTINATION ${AOT_SHARE_DIR}/templates/${kind} COMPONENT libaothost-dev
          PATTERN build EXCLUDE)
  aot_link_into_build(${CMAKE_SOURCE_DIR}/examples/${folder} share/aothost/templates/${kind})
endforeach()
install(DIRECTORY examples/custom_op examples/vendor_backend examples/gpt_bytes examples/data DESTINATION ${AOT_SHARE_DIR}/examples
        COMPONENT libaothost-dev)
install(DIRECTORY pipelines/ DESTINATION ${AOT_SHARE_DIR}/pipelines COMPONENT aothost)
install(FILES tests/fixtures/ops/cases.json tests/fixtures/ops/data.safetensors DESTINATION ${AOT_SHARE_DIR}/cases
        COMPONENT libaothost-dev)
# The programs that `aothost conform` tries plugins with.
install(DIRECTORY tests/conform/programs/ DESTINATION ${AOT_SHARE_DIR}/conform COMPONENT libaothost-dev)
aot_link_into_build(${CMAKE_SOURCE_DIR}/tests/conform/programs share/aothost/conform)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT libaothost-dev FILES_MATCHING PATTERN "*.md" PATTERN "*.svg")
