#include <ir/cut_check.h>

#include <aot/inline.h>
#include <stdlib.h>

const char *aoth_cut_wrong(aot_prog_t *p, const aot_cut_t *cut) {
  const aot_graph_t joint = aoth_graph_graph_find(p, AOT_GRAPH_JOINT);
  if (joint.id == AOT_NO_ID) return "chose a cut of a program that has no joint graph";
  const uint32_t n_nodes = aoth_graph_n_nodes(p);
  unsigned char *alive = calloc(n_nodes + 1u, 1);
  if (!alive) return "left no memory to check its cut";
  for (aot_node_t n = aoth_graph_first(p, joint); n.id != AOT_NO_ID; n = aoth_graph_next(p, n)) alive[n.id] = 1;
  const char *wrong = NULL;
  for (uint32_t i = 0; i < cut->n_saved && !wrong; i++) {
    const aot_value_t v = cut->saved[i];
    const aot_node_t def = v.id < aoth_graph_n_values(p) ? aoth_graph_value_def(p, v) : aot_no_node();
    if (v.id >= aoth_graph_n_values(p) || aoth_graph_value_graph(p, v).id != joint.id ||
        (def.id != AOT_NO_ID && !alive[def.id]))
      wrong = "chose to save a value that is not in the joint graph";
  }
  for (uint32_t i = 0; i < cut->n_recomputed && !wrong; i++)
    if (cut->recomputed[i].id >= n_nodes || !alive[cut->recomputed[i].id])
      wrong = "chose to recompute a node that is not in the joint graph";
  free(alive);
  return wrong;
}
