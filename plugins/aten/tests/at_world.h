/* A host with this operator set alone, programs of one node, and their evaluation with the reference kernels: what the
 * tests of rewriting rules share. */
#ifndef AT_WORLD_H
#define AT_WORLD_H

#include <aot/inline.h>
#include <aot/opset.h>
#include <kit/reference/rk.h>
#include <ir/program.h>

#define WORLD_MAX_RESULTS 64

typedef struct at_world {
  kit_arena_t *session, *scratch, *values; /* values: tensors of one program */
  aoth_sink_t *sink;
  aoth_ops_t *ops;
  aot_host_t *host;
  aot_ctx_t ctx;
  aot_prog_t *p;
  aot_graph_t graph;
  rk_tensor_t *tensors; /* by value id */
  uint32_t n_tensors;
  char why[400]; /* the last failure */
} at_world_t;

void world_open(at_world_t *w);
void world_close(at_world_t *w);
void world_begin(at_world_t *w); /* an empty program with one region graph */

/* An input that holds the tensor; a number in the order of calls. */
aot_value_t world_input(at_world_t *w, const rk_tensor_t *t);
/* A node at the end; its results become the next outputs. AOT_NO_ID: refused, the reason in w->why. */
aot_node_t world_node(at_world_t *w, const char *op, const aot_arg_t *args, uint32_t n_args);
aot_value_t world_result(at_world_t *w, aot_node_t n, uint32_t i);
void world_output(at_world_t *w, aot_value_t v);
/* Decomposes whatever can be, until nothing can. 0: failed. */
int world_decompose(at_world_t *w);
/* Runs every node with the reference kernels. 0: failed. */
int world_run(at_world_t *w);
const rk_tensor_t *world_tensor(const at_world_t *w, aot_value_t v);
const rk_tensor_t *world_output_tensor(const at_world_t *w, uint32_t i); /* NULL: none */
/* The program's nodes as text, for messages. */
void world_show(at_world_t *w);

/* Largest difference in units of the tolerance of the dtype; huge for another shape or dtype. */
double world_distance(const rk_tensor_t *got, const rk_tensor_t *want);
double world_element(const rk_tensor_t *t, const int64_t *index);
rk_tensor_t world_random(at_world_t *w, int32_t dtype, const int64_t *sizes, int32_t rank, uint32_t seed);

#endif
