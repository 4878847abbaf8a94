# aot_add_unit_test(NAME SOURCES ... [LIBS targets]): a cmocka program run by ctest. ID_parts in LIBS: the objects of the plugin ID,
# compiled once for it and for its tests, which look inside.
include_guard()
# The tests that tools/test runs in clang-asan; AOT_UNIT_TESTS=OFF leaves them out of a build.
set(AOT_UNIT_TEST_NAMES "^(kernels_|aten_unit|kit_unit|unit_|import)")
add_custom_target(aot_unit_tests)
function(aot_is_unit_test name)
  add_dependencies(aot_unit_tests ${name})
  if(NOT AOT_UNIT_TESTS)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endfunction()
set(aothost_COMMAND $<TARGET_FILE:aothost>)

# Plugins of the tree link the kit, land where the built host looks, and are installed beside it.
function(aot_register_in_tree_plugin id) # ID LIBS..
  target_link_libraries(${id} PRIVATE aot_kit)
  set_target_properties(${id} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/aothost)
  add_dependencies(aot_plugins ${id})
  add_library(${id}_parts STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${id}>)
  set_target_properties(${id}_parts PROPERTIES LINKER_LANGUAGE C)
  target_include_directories(${id}_parts INTERFACE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${id}_parts INTERFACE ${ARGN} aot_kit)
  set(package aothost-plugins-core)
  if(AOT_PACKAGE_OF_${id})
    set(package ${AOT_PACKAGE_OF_${id}})
  endif()
  install(TARGETS ${id} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/aothost COMPONENT ${package})
  set_property(GLOBAL APPEND PROPERTY AOT_IN_TREE_PLUGINS ${id}) # tests/conform holds each against the rules
endfunction()

# ID.sources beside ID.so: file:line of what the plugin has of each operator, for `aothost ops -v` (operator_sources.awk).
function(aot_plugin_sources id) # ID GLOBS.., relative to the root of the tree
  list(TRANSFORM ARGN PREPEND ${CMAKE_SOURCE_DIR}/)
  file(GLOB files CONFIGURE_DEPENDS ${ARGN})
  list(SORT files)
  set(out ${CMAKE_BINARY_DIR}/lib/aothost/${id}.sources)
  add_custom_command(OUTPUT ${out} DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/operator_sources.awk VERBATIM
                     COMMAND awk -v root=${CMAKE_SOURCE_DIR} -f ${CMAKE_SOURCE_DIR}/cmake/operator_sources.awk ${files} > ${out})
  add_custom_target(${id}_sources DEPENDS ${out})
  add_dependencies(${id} ${id}_sources)
  set(package aothost-plugins-core)
  if(AOT_PACKAGE_OF_${id})
    set(package ${AOT_PACKAGE_OF_${id}})
  endif()
  install(FILES ${out} DESTINATION ${CMAKE_INSTALL_LIBDIR}/aothost COMPONENT ${package})
endfunction()

# ID.conventions beside ID.so, "operator TAB what TAB why": gradients that are no derivatives, for `aothost gradcheck`.
function(aot_plugin_conventions id)
  configure_file(${CMAKE_CURRENT_SOURCE_DIR}/${id}.conventions ${CMAKE_BINARY_DIR}/lib/aothost/${id}.conventions COPYONLY)
  install(FILES ${id}.conventions DESTINATION ${CMAKE_INSTALL_LIBDIR}/aothost COMPONENT aothost-plugins-core)
endfunction()

# FILE of the target's folder as embedded/NAME.inc, an initializer of an array of char (embed_text.awk), in place of C23's #embed.
function(aot_embed target) # TARGET FILES..
  set(script ${CMAKE_SOURCE_DIR}/cmake/embed_text.awk)
  foreach(file ${ARGN})
    get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR}/${file} DIRECTORY)
    file(GLOB included CONFIGURE_DEPENDS ${folder}/*.h ${folder}/*.cuh)
    get_filename_component(name ${file} NAME)
    set(out ${CMAKE_CURRENT_BINARY_DIR}/embedded/${name}.inc)
    add_custom_command(OUTPUT ${out} DEPENDS ${script} ${file} ${included} VERBATIM
                       COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C awk -f ${script} ${CMAKE_CURRENT_SOURCE_DIR}/${file} > ${out})
    target_sources(${target} PRIVATE ${out})
  endforeach()
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/embedded)
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
endfunction()

function(aot_add_unit_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} aot_kit aot_plugin_api PkgConfig::CMOCKA m)
  add_test(NAME ${name} COMMAND ${name})
  if(name MATCHES "${AOT_UNIT_TEST_NAMES}")
    aot_is_unit_test(${name})
  endif()
endfunction()
