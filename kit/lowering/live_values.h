/* A run of a program that was cut (dynamic_segments.h): values that are between its parts, and the nodes that report
 * sizes. */
#ifndef LW_LIVE_VALUES_H
#define LW_LIVE_VALUES_H

#include "kit/graph/snap_learn.h"
#include "dynamic_segments.h"
#include "schedule.h"
#include <aot/backend.h>

/* Where values lie. */
typedef struct lw_memory {
  void *self;
  aot_status_t (*alloc)(void *self, uint64_t nbytes, void **out, lw_error_t *error);
  void (*free)(void *self, void *at, uint64_t nbytes); /* nothing that uses it is under way */
  /* Between it and the host's, when all that was put to run has run; both NULL: it is the host's. */
  aot_status_t (*read)(void *self, void *to, const void *from, uint64_t nbytes, lw_error_t *error);
  aot_status_t (*write)(void *self, void *to, const void *from, uint64_t nbytes, lw_error_t *error);
} lw_memory_t;
extern const lw_memory_t lw_host_memory;

typedef struct lw_held {
  rk_tensor_t t; /* dtype 0: nothing is held */
  void *own;     /* NULL: the caller's memory */
  /* The same for a kernel on the host, while a node that reports sizes runs: t itself, or a copy */
  rk_tensor_t near;
  void *copy;
} lw_held_t;

typedef struct lw_live {
  const lw_cut_t *cut;
  const lw_memory_t *memory;
  lw_held_t *values; /* by value row */
  sn_known_t known;
} lw_live_t;

/* symbols: in and out, as in aot_submission_t. */
aot_status_t lw_live_init(lw_live_t *l, const lw_cut_t *cut, const lw_memory_t *memory, int64_t *symbols,
                          uint64_t n_symbols, lw_error_t *error);
void lw_live_deinit(lw_live_t *l);

aot_status_t lw_live_inputs(lw_live_t *l, uint32_t graph, const aot_tensor_t *inputs, lw_error_t *error);
/* Memory for what a part makes: its ports have the types of its schedule. */
aot_status_t lw_live_make(lw_live_t *l, const aot_snap_graph_t *segment, const lw_port_t *types, lw_error_t *error);
/* Tensors of ports, as a call takes them; they point into the live values. */
void lw_live_tensors(const lw_live_t *l, uint32_t port_begin, uint32_t n, aot_tensor_t *out);
/* Runs the node that ends part `number` of its graph. */
aot_status_t lw_live_birth(lw_live_t *l, uint32_t node, lw_error_t *error);
void lw_live_forget(lw_live_t *l, uint32_t graph, uint32_t number); /* values that no later part reads */

#endif
