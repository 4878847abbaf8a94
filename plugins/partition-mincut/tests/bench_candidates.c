/* How long the search for plans takes: transformer-like joint graphs of a given number of nodes.
 *
 *     bench_candidates 10000 100000      nodes, plans tried, plans stored, peaks, seconds of one processor; bound and
 *                                        its seconds */
#include "pareto_plans.h"
#include "kit/partition/hand_joint.h"
#include <aot/graph.h>
#include <aot/opset.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N_INPUTS = 3, A_LAYER = 15 };
#define ROW UINT64_C(65536)

/* One layer over x: norm, three products with their views, scores, softmax, product, projection, residual, norm,
 * product, gelu, product, residual. Operands are counted back from the node: 1 is the node before; 0 the weights. */
typedef struct layer_node {
  uint32_t flags, back[2];
  uint32_t rows; /* of ROW bytes */
} layer_node_t;
static const layer_node_t layer[A_LAYER] = {
    {AOT_OP_REDUCTION, {1, 0}, 1},  {AOT_OP_HEAVY, {1, 0}, 3},     {AOT_OP_VIEW, {1, 0}, 3},
    {AOT_OP_HEAVY, {1, 1}, 4},      {AOT_OP_POINTWISE, {1, 0}, 4}, {AOT_OP_REDUCTION, {1, 0}, 4},
    {AOT_OP_HEAVY, {1, 4}, 1},      {AOT_OP_VIEW, {1, 0}, 1},      {AOT_OP_HEAVY, {1, 0}, 1},
    {AOT_OP_POINTWISE, {1, 10}, 1}, {AOT_OP_REDUCTION, {1, 0}, 1}, {AOT_OP_HEAVY, {1, 0}, 4},
    {AOT_OP_POINTWISE, {1, 0}, 4},  {AOT_OP_HEAVY, {1, 0}, 1},     {AOT_OP_POINTWISE, {1, 5}, 1}};

static uint32_t operand(uint32_t n, uint32_t back) { return back == 0 ? 1 : n >= back ? N_INPUTS + n - back : 0; }

/* Forward layers, then for each forward node from the last to the first a node that reads the chain of gradients and
 * what its own node read. */
static void make(pt_hand_node_t *nodes, uint32_t n_layers) {
  uint32_t n_forward = n_layers * A_LAYER, n = n_forward;
  for (uint32_t i = 0; i < n_forward; i++) {
    const layer_node_t *l = &layer[i % A_LAYER];
    nodes[i] = (pt_hand_node_t){l->flags, 0, l->rows * ROW, 2, {operand(i, l->back[0]), operand(i, l->back[1])}};
  }
  for (uint32_t i = n_forward; i-- > 0; n++) {
    const layer_node_t *l = &layer[i % A_LAYER];
    nodes[n] = (pt_hand_node_t){l->flags,
                                0,
                                l->rows * ROW,
                                3,
                                {n == n_forward ? 2 : N_INPUTS + n - 1, nodes[i].operands[0], nodes[i].operands[1]}};
  }
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int measure(uint32_t n_wanted) {
  static const uint8_t kinds[N_INPUTS] = {JG_INPUT_DYNAMIC, JG_INPUT_STATIC, JG_INPUT_TANGENT},
                       slots[N_INPUTS] = {1, 0, 0};
  static const uint64_t sizes[N_INPUTS] = {ROW, ROW, ROW};
  const uint32_t n_layers = (n_wanted + 2 * A_LAYER - 1) / (2 * A_LAYER), n_nodes = 2 * A_LAYER * n_layers;
  const uint32_t outputs[] = {N_INPUTS + n_nodes / 2 - 1}, gradients[] = {N_INPUTS + n_nodes - 1};
  pt_hand_node_t *nodes = calloc(n_nodes, sizeof *nodes);
  jg_joint_t j;
  ms_graph_t graph;
  mc_model_t m;
  mc_candidates_t c;
  uint32_t bad;
  if (!nodes) return -2;
  make(nodes, n_layers);
  const pt_hand_graph_t g = {N_INPUTS, n_nodes, 1, 1, kinds, sizes, nodes, outputs, gradients};
  int status = pt_joint_init_by_hand(&j, &g);
  if (status == 0) status = mc_plain_graph_init(&graph, &j);
  if (status == 0) status = mc_model_init(&m, &j, &graph, NULL, slots, NULL, NULL);
  double begin = seconds();
  if (status == 0) status = mc_candidates_init(&c, &m, &bad);
  double bound = 0, end = seconds();
  if (status == 0) status = mc_candidates_bound(&c, c.all_saved.peak / 2, &bound);
  double last = seconds();
  if (status == 0)
    printf(
        "%7u nodes  %4u tried  %4u kept  all saved %8.1f MB  least %8.1f MB  %7.3f s  bound at 0.5 %.3f ms %7.3f s\n",
        n_nodes, c.n_tried, c.n, (double)c.all_saved.peak / 1e6, (double)c.list[c.n - 1].numbers.peak / 1e6,
        end - begin, bound * 1e-9, last - end);
  mc_candidates_deinit(&c);
  mc_model_deinit(&m);
  mc_plain_graph_deinit(&graph);
  jg_joint_deinit(&j);
  free(nodes);
  return status;
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (measure((uint32_t)strtoul(argv[i], NULL, 10)) != 0) return 1;
  return 0;
}
