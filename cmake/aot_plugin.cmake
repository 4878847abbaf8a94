# aot_add_plugin(ID SOURCES a.c b.c [LIBS targets]): one plugin, ID.so, as a MODULE with hidden visibility, one exported
# symbol and no undefined ones; installed, it lies in PREFIX/lib/aothost. Inside the tree it also links the kit (in_tree.cmake); out of tree it needs the headers alone.
# aot_add_plugin_test(ID NAME arguments..): a ctest, ID_NAME, that runs `aothost arguments..` with the plugin ID.
include_guard()
set(AOT_PLUGIN_VERSION_SCRIPT ${CMAKE_BINARY_DIR}/plugin.map)
file(WRITE ${AOT_PLUGIN_VERSION_SCRIPT} "{ global: aot_plugin_entry; local: *; };\n")

function(aot_add_plugin id)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_library(${id} MODULE ${ARG_SOURCES})
  set_target_properties(${id} PROPERTIES PREFIX "" C_VISIBILITY_PRESET hidden)
  target_include_directories(${id} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_options(${id} PRIVATE -Wl,-Bsymbolic -Wl,--exclude-libs,ALL
                      -Wl,--version-script=${AOT_PLUGIN_VERSION_SCRIPT})
  if(NOT AOT_SANITIZE)
    target_link_options(${id} PRIVATE -Wl,-z,defs)
  endif()
  target_link_libraries(${id} PRIVATE aothost::plugin_api)
  if(COMMAND aot_register_in_tree_plugin)
    aot_register_in_tree_plugin(${id} ${ARG_LIBS})
  else()
    install(TARGETS ${id} LIBRARY DESTINATION lib/aothost)
  endif()
  target_link_libraries(${id} PRIVATE ${ARG_LIBS} m)
endfunction()

function(aot_add_plugin_test id name)
  add_test(NAME ${id}_${name} COMMAND ${aothost_COMMAND} ${ARGN} --plugin-dir $<TARGET_FILE:${id}>)
  set_tests_properties(${id}_${name} PROPERTIES ENVIRONMENT AOT_CACHE=off)
endfunction()

# The plugin against the rules of its kinds (docs/CONFORM.md); further arguments are those of `aothost conform`.
function(aot_add_plugin_conform id)
  add_test(NAME ${id}_conform COMMAND ${aothost_COMMAND} conform $<TARGET_FILE:${id}> ${ARGN})
  set_tests_properties(${id}_conform PROPERTIES ENVIRONMENT AOT_CACHE=off)
endfunction()
