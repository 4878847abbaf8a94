#include "reinplace.h"

#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

#define FOREVER UINT32_MAX

/* Classes of values that may share memory: a forest with, at each root, what is known of its members. */
typedef struct classes {
  uint32_t *parent;
  uint32_t *slots;     /* root: operand slots of the node at hand that read a member; else 0 */
  uint32_t *last_read; /* root: the last node row that reads a member; FOREVER: an output, or the caller's memory */
} classes_t;

static uint32_t root_of(classes_t *c, uint32_t v) {
  while (c->parent[v] != v) {
    c->parent[v] = c->parent[c->parent[v]];
    v = c->parent[v];
  }
  return v;
}

static void join(classes_t *c, uint32_t a, uint32_t b) {
  a = root_of(c, a);
  b = root_of(c, b);
  if (a == b) return;
  if (c->last_read[b] > c->last_read[a]) c->last_read[a] = c->last_read[b];
  c->parent[b] = a;
}

static void read_at(classes_t *c, uint32_t v, uint32_t node) {
  v = root_of(c, v);
  if (c->last_read[v] < node) c->last_read[v] = node;
}

/* The values that a node reads, by its arguments: a block's check has seen those. */
typedef struct reads {
  const aot_snapshot_t *s;
  const aot_snap_node_t *node;
  uint32_t arg, element, value;
} reads_t;

static int next_read(reads_t *r) {
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(r->s, aot_snap_arg_t, args) + r->node->arg_begin;
  const uint32_t *operands = AOT_SNAP_ROWS(r->s, uint32_t, operands);
  for (; r->arg < r->node->n_args; r->arg++, r->element = 0) {
    const aot_snap_arg_t *a = &args[r->arg];
    const uint32_t n = a->kind == AOT_ARG_VALUE ? 1 : a->kind == AOT_ARG_VALUES ? a->n : 0;
    while (r->element < n) {
      r->value = a->kind == AOT_ARG_VALUE ? (uint32_t)a->i : operands[(uint64_t)a->i + r->element];
      r->element++;
      if (r->value != AOT_NO_ID) return 1;
    }
  }
  return 0;
}

/* Reads of single values; classes come later, and take the latest of their members. */
static void note_reads(const aot_snapshot_t *s, const aot_snap_graph_t *g, classes_t *c) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes);
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(s, aot_snap_port_t, ports);
  for (uint32_t i = g->node_begin; i < g->node_begin + g->n_nodes; i++)
    for (reads_t r = {.s = s, .node = &nodes[i]}; next_read(&r);) read_at(c, r.value, i);
  for (uint32_t i = 0; i < g->n_inputs; i++)
    if (ports[g->input_begin + i].value != AOT_NO_ID) read_at(c, ports[g->input_begin + i].value, FOREVER);
  for (uint32_t i = 0; i < g->n_outputs; i++)
    if (ports[g->output_begin + i].value != AOT_NO_ID) read_at(c, ports[g->output_begin + i].value, FOREVER);
}

/* Views share with what they are made from; so may regions, and whatever a kernel makes a view of. By operator row. */
static uint8_t *find_sharing_ops(const aot_snapshot_t *s) {
  const aot_snap_op_t *ops = AOT_SNAP_ROWS(s, aot_snap_op_t, ops);
  uint8_t *shares = calloc((size_t)s->ops.count + 1, 1);
  for (uint32_t o = 1; shares && o < s->ops.count; o++) {
    const rk_kernel_t *kernel = rk_find(aot_snap_text(s, ops[o].name));
    shares[o] = (ops[o].flags & (AOT_OP_VIEW | AOT_OP_MULTI_VIEW | AOT_OP_REGION | AOT_OP_INPLACE_VIEW)) ||
                (kernel && rk_is_view(kernel));
  }
  return shares;
}

static void join_views(const aot_snapshot_t *s, const aot_snap_graph_t *g, const uint8_t *shares, classes_t *c) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes);
  for (uint32_t i = g->node_begin; i < g->node_begin + g->n_nodes; i++) {
    const aot_snap_node_t *n = &nodes[i];
    if (!shares[n->op] || n->n_results == 0) continue;
    for (uint32_t k = 1; k < n->n_results; k++) join(c, n->result_begin, n->result_begin + k);
    for (reads_t r = {.s = s, .node = n}; next_read(&r);) join(c, n->result_begin, r.value);
  }
}

/* Counts, or takes back, the operand slots of the node. */
static void count_slots(const aot_snapshot_t *s, const aot_snap_node_t *n, classes_t *c, int take_back) {
  for (reads_t r = {.s = s, .node = n}; next_read(&r);) {
    const uint32_t root = root_of(c, r.value);
    c->slots[root] = take_back ? 0 : c->slots[root] + 1;
  }
}

/* The written value's result joins the class: who reads the result later reads this memory. */
static void decide(const aot_snapshot_t *s, custom_program_t *p, custom_node_t *n, classes_t *c) {
  const aot_snap_node_t *row = &AOT_SNAP_ROWS(s, aot_snap_node_t, nodes)[n->node];
  count_slots(s, row, c, 0);
  for (uint32_t k = 0; k < n->n_written; k++) {
    custom_written_t *w = &n->written[k];
    if (w->same_as != CUSTOM_NONE) continue;
    const uint32_t root = root_of(c, w->value);
    p->copies_asked++;
    if (c->last_read[root] > n->node || c->slots[root] != 1) continue;
    w->in_place = 1;
    p->copies_removed++;
  }
  count_slots(s, row, c, 1);
  for (uint32_t k = 0; k < n->n_written; k++)
    if (n->written[k].in_place) join(c, n->written[k].value, row->result_begin + n->n_own + k);
}

aot_status_t custom_reinplace(const aot_snapshot_t *s, custom_program_t *p) {
  const aot_snap_graph_t *graphs = AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs);
  const size_t n = (size_t)s->values.count + 1;
  classes_t c = {malloc(n * sizeof *c.parent), calloc(n, sizeof *c.slots), calloc(n, sizeof *c.last_read)};
  uint8_t *shares = find_sharing_ops(s);
  const aot_status_t status = c.parent && c.slots && c.last_read && shares ? AOT_OK : AOT_E_EXHAUSTED;
  for (uint32_t v = 1; status == AOT_OK && v < s->values.count; v++) c.parent[v] = v;
  for (uint32_t g = 1; status == AOT_OK && g < s->graphs.count; g++) {
    note_reads(s, &graphs[g], &c);
    join_views(s, &graphs[g], shares, &c);
  }
  for (uint32_t i = 0; status == AOT_OK && i < p->n_nodes; i++) decide(s, p, &p->nodes[i], &c);
  free(shares);
  free(c.parent);
  free(c.slots);
  free(c.last_read);
  return status;
}
