# aot_add_plugin(ID SOURCES a.c b.c [LIBS targets]): one plugin, ID.so, as a MODULE with hidden visibility, one exported
# symbol and no undefined ones. Inside the tree it also links plugins/common (in_tree.cmake); out of tree it needs the headers alone.
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
    aot_register_in_tree_plugin(${id})
  endif()
  target_link_libraries(${id} PRIVATE ${ARG_LIBS} m)
endfunction()
