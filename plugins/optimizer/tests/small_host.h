/* A host just large enough for an optimizer: it evaluates every node as soon as it is created, on vectors of four
 * numbers, rounded to the dtype after each operation. Running the pass is running a step. */
#ifndef SMALL_HOST_H
#define SMALL_HOST_H

#include <aot/host.h>
#include <stddef.h>

#define SH_N 4 /* elements of a vector; 0-dim tensors use the first */
#define SH_MAX 512

typedef struct sh_value {
  int32_t dtype, rank;
  double x[SH_N];
} sh_value_t;

typedef struct sh_leaf {
  int32_t role;
  char name[64];
  sh_value_t value;
} sh_leaf_t;

typedef struct small_host {
  aot_host_t host;
  aot_graph_api_t graph;
  aot_edit_api_t edit;
  sh_leaf_t leaves[32];
  uint32_t n_leaves, n_made; /* made: leaves that exist since an earlier step */
  sh_value_t grad[32];       /* by leaf; dtype 0: none */
  double lr;
  sh_value_t values[SH_MAX];
  uint32_t n_values;
  aot_port_t outputs[64]; /* of the UPDATE graph */
  uint32_t n_outputs;
  aot_port_t backward[32]; /* outputs of the BACKWARD graph */
  uint32_t n_backward;
  uint32_t n_rules, n_diags;
  int has_update;
  char diag_code[64];
  _Alignas(16) char memory[1 << 16]; /* after alloc */
  size_t used;
} small_host_t;

void sh_init(small_host_t *h);
uint32_t sh_param(small_host_t *h, const char *name, int32_t dtype, int32_t rank, const double *x); /* leaf id */
void sh_grad(small_host_t *h, uint32_t leaf, const double *x);
void sh_begin_step(small_host_t *h); /* forget the graph of the step before, keep the leaves */
void sh_end_step(small_host_t *h);   /* copy the updates back */
#define SH_PROG(h) ((aot_prog_t *)(void *)(h))
#define SH_CTX(h) ((aot_ctx_t *)(void *)(h))

#endif
