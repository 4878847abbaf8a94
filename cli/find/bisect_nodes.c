/* The node that a backend runs wrong: the program is divided between it and the reference (several_backends.h), the
 * first k nodes to the one and the rest to the other, and k is halved. What the backend makes of a node may depend on
 * those around it; the node found is the first with which, all before it included, results are wrong. */
#include <cli/find/bisect.h>

#include <aot/inline.h>
#include <ir/program.h>
#include <sandbox/call.h>
#include <config/options.h>
#include <sandbox/session.h>
#include <stdlib.h>
#include <string.h>

typedef struct partitioner {
  aoth_watch_t watch;
  const aoth_stage_t *backend;
  uint32_t *position; /* by node id: its place in the program; 0: not there before the backend */
  uint32_t n_ids, n;  /* n: nodes that it may take */
} partitioner_t;

static int takes(void *self, const aoth_stage_t *stage, aot_node_t node) {
  const partitioner_t *d = self;
  return strcmp(stage->name, d->backend->name) != 0 ||
         (node.id < d->n_ids && d->position[node.id] && d->position[node.id] <= d->n);
}

static aot_status_t as_divided(void *self, aoth_session_t *s) {
  partitioner_t *d = self;
  d->watch = (aoth_watch_t){.self = d, .takes = takes};
  s->config.watch = &d->watch;
  return AOT_OK;
}

static uint32_t number_nodes(aot_prog_t *p, partitioner_t *d, aot_node_t *order) {
  uint32_t n = 0;
  for (uint32_t g = 1; g < aoth_graph_n_graphs(p); g++)
    for (aot_node_t k = aoth_graph_first(p, (aot_graph_t){g}); k.id != AOT_NO_ID; k = aoth_graph_next(p, k)) {
      order[n++] = k;
      d->position[k.id] = n;
    }
  return n;
}

static void halve(aoth_bisect_t *b, aoth_session_t *s, partitioner_t *d, const aot_node_t *order, uint32_t n) {
  uint32_t good = 0, bad = n;
  char why[512];
  int unfit;
  d->n = n;
  if (!aoth_bisect_ask(b, as_divided, d, &unfit, why, sizeof why)) return; /* not when it shares the program */
  while (bad - good > 1) {
    d->n = good + (bad - good) / 2;
    if (!aoth_bisect_ask(b, as_divided, d, &unfit, why, sizeof why)) {
      good = d->n;
      continue;
    }
    bad = d->n;
    json_object_set_new(b->found, "why", json_string(why));
  }
  aoth_bisect_tell_node(b->found, aoth_session_prog(s), order[bad - 1]);
  json_object_set_new(b->found, "nth", json_integer(bad));
  json_object_set_new(b->found, "n_nodes", json_integer(n));
}

void aoth_bisect_nodes(aoth_bisect_t *b, aoth_session_t *s, const aoth_stage_t *backend) {
  aot_prog_t *p = aoth_session_prog(s);
  const uint32_t n_ids = aoth_graph_n_nodes(p);
  aoth_stage_t pair[2] = {*backend}, assign;
  const char *all = "min-nodes=0";
  partitioner_t d = {.backend = &pair[0], .position = calloc(n_ids + (size_t)1, sizeof *d.position), .n_ids = n_ids};
  aot_node_t *order = calloc(n_ids + (size_t)1, sizeof *order);
  const uint32_t n = d.position && order ? number_nodes(p, &d, order) : 0;
  if (n && aoth_stage_of_unit(s, b->oracle.backend, "backend/2", NULL, &pair[1]) == AOT_OK &&
      aoth_stage_from_flags("assign", &all, 1, s->arena, s->config.sink, &assign) == AOT_OK &&
      aoth_stage_resolve(s, &assign, "pass/1", s->arena) == AOT_OK) {
    b->oracle.stages = pair;
    b->oracle.n_stages = 2;
    b->oracle.assign = &assign;
    halve(b, s, &d, order, n);
    b->oracle.stages = backend;
    b->oracle.n_stages = 1;
    b->oracle.assign = NULL;
  }
  free(d.position);
  free(order);
}
