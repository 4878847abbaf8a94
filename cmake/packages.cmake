# Debian packages, one a component, by CPack: `cmake --build BUILD --target package`, or tools/package for those that are shipped.
set(AOT_COMPONENTS aothost libaothost0 libaothost-dev aothost-plugins-core aothost-plugins-cpu aothost-plugins-cuda
    aothost-plugins-mpi aothost-plugins-torchvision)
# Plugins that need what not everybody has are packages of their own; all others are the core.
set(AOT_PACKAGE_OF_backend-cpu aothost-plugins-cpu)
set(AOT_PACKAGE_OF_backend-cuda aothost-plugins-cuda)
set(AOT_PACKAGE_OF_comm-nccl aothost-plugins-cuda)
set(AOT_PACKAGE_OF_comm-mpi aothost-plugins-mpi)
set(AOT_PACKAGE_OF_torchvision-ops aothost-plugins-torchvision)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "the authors of aothost <aothost@example.org>")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON) # the note of a plugin stays
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL ${AOT_COMPONENTS})
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
function(aot_package component)
  cmake_parse_arguments(ARG "" "ABOUT;SECTION;DEPENDS;RECOMMENDS;SUGGESTS" "" ${ARGN})
  string(TOUPPER ${component} key)
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${component} PARENT_SCOPE)
  set(CPACK_COMPONENT_${key}_DESCRIPTION "${ARG_ABOUT}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_SECTION ${ARG_SECTION} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_DEPENDS "${ARG_DEPENDS}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_RECOMMENDS "${ARG_RECOMMENDS}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_SUGGESTS "${ARG_SUGGESTS}" PARENT_SCOPE)
endfunction()
set(same "(= ${PROJECT_VERSION})")
aot_package(aothost SECTION science ABOUT "compiles and trains exported PyTorch models with plugins: the command"
            DEPENDS "aothost-plugins-core ${same}" RECOMMENDS "aothost-plugins-cpu ${same}"
            SUGGESTS "libaothost-dev, aothost-plugins-cuda")
aot_package(libaothost0 SECTION libs ABOUT "compiles and trains exported PyTorch models with plugins: the library"
            RECOMMENDS "aothost-plugins-core ${same}")
aot_package(libaothost-dev SECTION libdevel ABOUT "headers, templates, examples and documents for programs with libaothost and for plugins"
            DEPENDS "libaothost0 ${same}" RECOMMENDS "aothost ${same}, pkg-config"
            SUGGESTS "cmake, libyaml-dev, libjansson-dev, libsodium-dev")
aot_package(aothost-plugins-core SECTION science ABOUT "stages that aothost compiles models with, and the reference backend")
aot_package(aothost-plugins-cpu SECTION science ABOUT "aothost's backend for CPUs, which compiles C"
            DEPENDS "libopenblas0" RECOMMENDS "gcc | c-compiler, libdnnl2")
aot_package(aothost-plugins-cuda SECTION science ABOUT "aothost's backend for GPUs by NVIDIA; driver, NVRTC and libraries are NVIDIA's")
aot_package(aothost-plugins-mpi SECTION science ABOUT "ranks of aothost that are processes of an MPI job")
aot_package(aothost-plugins-torchvision SECTION science ABOUT "operators of torchvision for aothost")
