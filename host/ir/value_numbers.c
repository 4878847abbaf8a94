#include <ir/value_numbers.h>

#include <aot/inline.h>
#include <inttypes.h>
#include <ir/program_store.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define MAX_REPORTS 20u

typedef struct number {
  uint64_t lo, hi;
} number_t;

typedef struct port_record {
  int32_t role;
  uint32_t index;
  aot_type_t type; /* arrays are interned */
  number_t number; /* of outputs; 0: the port has no value */
} port_record_t;

struct aoth_joint_record {
  uint32_t n_inputs, n_outputs;
  port_record_t *inputs, *outputs;
};

typedef struct call_count { /* of an operator that is not pure, with these operands */
  number_t key;
  uint32_t n;
} call_count_t;

typedef struct numbering {
  aot_prog_t *p;
  number_t *of_value;  /* by value */
  number_t *of_region; /* by graph, once it is known */
  number_t *of_slot;   /* by saved slot: what the forward saves */
  uint32_t n_slots;
  call_count_t *calls; /* hash table */
  uint32_t n_cells, n_calls;
  uint32_t *stack, *at; /* regions being numbered, and the node that each has come to */
  int failed;          /* no memory */
} numbering_t;

static int same_number(number_t a, number_t b) { return a.lo == b.lo && a.hi == b.hi; }

static int is_zero(number_t a) { return a.lo == 0 && a.hi == 0; }

static void add(XXH3_state_t *h, const void *at, size_t size) {
  const uint64_t n = size; /* between lists, so that none runs into the next */
  XXH3_128bits_update(h, &n, sizeof n);
  if (size) XXH3_128bits_update(h, at, size);
}

static void add_word(XXH3_state_t *h, uint64_t word) { XXH3_128bits_update(h, &word, sizeof word); }

static number_t finish(XXH3_state_t *h) {
  const XXH128_hash_t hash = XXH3_128bits_digest(h);
  const number_t number = {hash.low64 | 1, hash.high64}; /* never 0 */
  return number;
}

static number_t number_of_words(uint64_t a, uint64_t b, uint64_t c) {
  const uint64_t words[3] = {a, b, c};
  const XXH128_hash_t hash = XXH3_128bits(words, sizeof words);
  const number_t number = {hash.low64 | 1, hash.high64};
  return number;
}

/* ---- nodes ---- */

static void add_value(const numbering_t *n, XXH3_state_t *h, uint32_t value) {
  const number_t none = {0, 0};
  add(h, value == NONE ? &none : &n->of_value[value], sizeof none);
}

static void add_arg(const numbering_t *n, XXH3_state_t *h, const aot_arg_t *a) {
  add_word(h, (uint64_t)(uint32_t)a->kind << 32 | a->n);
  switch (a->kind) {
    case AOT_ARG_VALUE: add_value(n, h, (uint32_t)a->u.i); break;
    case AOT_ARG_VALUES:
      for (uint32_t i = 0; i < a->n; i++) add_value(n, h, a->u.ids[i]);
      break;
    case AOT_ARG_INTS:
    case AOT_ARG_BOOLS: add(h, a->u.ints, a->n * sizeof *a->u.ints); break;
    case AOT_ARG_FLOATS: add(h, a->u.floats, a->n * sizeof *a->u.floats); break;
    case AOT_ARG_STR: add(h, a->u.chars, a->n); break;
    case AOT_ARG_GRAPH: add(h, &n->of_region[a->u.i], sizeof *n->of_region); break;
    case AOT_ARG_NONE: break;
    default: add_word(h, (uint64_t)a->u.i); break;
  }
}

/* Strides are left out: of a dense copy others follow. */
static void add_type(const aot_prog_t *p, XXH3_state_t *h, uint32_t value) {
  const aot_type_t *t = value_type_of(p, value);
  add_word(h, (uint64_t)(uint32_t)t->kind << 32 | (uint32_t)t->dtype);
  if (t->kind == AOT_TYPE_TENSOR) add(h, t->sizes, (size_t)t->rank * sizeof *t->sizes);
}

/* Strides apart. */
static int same_type(const aot_type_t *a, const aot_type_t *b) {
  if (a->kind != b->kind || a->dtype != b->dtype || a->rank != b->rank || a->device != b->device) return 0;
  return a->rank <= 0 || memcmp(a->sizes, b->sizes, (size_t)a->rank * sizeof *a->sizes) == 0;
}

/* The operand whose elements the result has, each in its place: a pointwise operator that moves elements, dtype and sizes kept. */
static uint32_t copied_value(const aot_prog_t *p, const node_row_t *r) {
  const uint32_t copies = AOT_OP_POINTWISE | AOT_OP_MOVEMENT;
  const uint32_t not_pure = AOT_OP_RANDOM | AOT_OP_EFFECT | AOT_OP_COLLECTIVE | AOT_OP_WRITES;
  const aot_op_t op = {r->op};
  const uint32_t flags = aoth_ops_desc(p->ops, op)->flags;
  if ((flags & copies) != copies || (flags & not_pure)) return NONE;
  if (r->n_operands != 1 || r->n_results != 1 || r->operands[0] == NONE) return NONE;
  const aot_type_t *from = value_type_of(p, r->operands[0]), *to = value_type_of(p, r->first_result);
  return from->kind == AOT_TYPE_TENSOR && same_type(from, to) ? r->operands[0] : NONE;
}

static void grow_calls(numbering_t *n) {
  const uint32_t n_cells = n->n_cells ? 2 * n->n_cells : 64;
  call_count_t *cells = calloc(n_cells, sizeof *cells);
  if (!cells) {
    n->failed = 1;
    return;
  }
  for (uint32_t i = 0; i < n->n_cells; i++) {
    uint32_t at = (uint32_t)n->calls[i].key.hi & (n_cells - 1);
    if (is_zero(n->calls[i].key)) continue;
    while (!is_zero(cells[at].key)) at = (at + 1) & (n_cells - 1);
    cells[at] = n->calls[i];
  }
  free(n->calls);
  n->calls = cells;
  n->n_cells = n_cells;
}

/* How many calls of this key there were before. */
static uint32_t count_call(numbering_t *n, number_t key) {
  if (2 * n->n_calls >= n->n_cells) grow_calls(n);
  if (n->failed) return 0;
  uint32_t at = (uint32_t)key.hi & (n->n_cells - 1);
  while (!is_zero(n->calls[at].key) && !same_number(n->calls[at].key, key)) at = (at + 1) & (n->n_cells - 1);
  if (is_zero(n->calls[at].key)) n->n_calls++;
  n->calls[at].key = key;
  return n->calls[at].n++;
}

static void number_node(numbering_t *n, uint32_t node) {
  const node_row_t *r = &n->p->nodes.at[node];
  const uint32_t copied = copied_value(n->p, r);
  const aot_op_t op = {r->op};
  XXH3_state_t h;
  if (copied != NONE) {
    n->of_value[r->first_result] = n->of_value[copied];
    return;
  }
  XXH3_128bits_reset(&h);
  add_word(&h, r->op);
  for (uint32_t i = 0; i < r->n_args; i++) add_arg(n, &h, &r->args[i]);
  for (uint32_t i = 0; i < r->n_results; i++) add_type(n->p, &h, r->first_result + i);
  number_t key = finish(&h);
  if (aoth_ops_desc(n->p->ops, op)->flags & (AOT_OP_RANDOM | AOT_OP_EFFECT))
    key = number_of_words(key.lo, key.hi, 1 + count_call(n, key));
  for (uint32_t i = 0; i < r->n_results; i++) n->of_value[r->first_result + i] = number_of_words(key.lo, key.hi, (uint64_t)i << 32);
}

/* ---- regions, inner ones first ---- */

static void number_graph(numbering_t *n, uint32_t graph) {
  const graph_row_t *g = &n->p->graphs.at[graph];
  for (uint32_t i = 0; i < g->inputs.n; i++) {
    const aot_port_t *port = &g->inputs.at[i];
    const int is_slot = port->role == AOT_ROLE_SAVED && port->index < n->n_slots;
    n->of_value[port->value.id] = is_slot ? n->of_slot[port->index] : number_of_words((uint64_t)port->role, port->index, 2);
  }
  for (uint32_t node = g->first; node != NONE; node = n->p->nodes.at[node].next) number_node(n, node);
}

static void close_region(numbering_t *n, uint32_t graph) {
  const graph_row_t *g = &n->p->graphs.at[graph];
  XXH3_state_t h;
  number_graph(n, graph);
  XXH3_128bits_reset(&h);
  for (uint32_t i = 0; i < g->outputs.n; i++) {
    add_word(&h, (uint64_t)g->outputs.at[i].role << 32 | g->outputs.at[i].index);
    add_value(n, &h, g->outputs.at[i].value.id);
  }
  n->of_region[graph] = finish(&h);
}

/* A region that node names and that has no number yet. */
static uint32_t open_region(const numbering_t *n, uint32_t node) {
  const node_row_t *r = &n->p->nodes.at[node];
  for (uint32_t i = 0; i < r->n_args; i++)
    if (r->args[i].kind == AOT_ARG_GRAPH && is_zero(n->of_region[r->args[i].u.i])) return (uint32_t)r->args[i].u.i;
  return NONE;
}

/* graph, after the regions under it; the stack is no deeper than regions nest, which they do without cycles. */
static void number_with_regions(numbering_t *n, uint32_t graph) {
  uint32_t depth = 0;
  n->stack[0] = graph;
  n->at[0] = n->p->graphs.at[graph].first;
  for (;;) {
    uint32_t *node = &n->at[depth], inner = NONE;
    while (*node != NONE && (inner = open_region(n, *node)) == NONE) *node = n->p->nodes.at[*node].next;
    if (inner != NONE) {
      n->stack[++depth] = inner;
      n->at[depth] = n->p->graphs.at[inner].first;
      continue;
    }
    if (depth == 0) break;
    close_region(n, n->stack[depth--]);
  }
  number_graph(n, graph);
}

static int begin(numbering_t *n, aot_prog_t *p) {
  *n = (numbering_t){.p = p};
  n->of_value = calloc((size_t)p->values.n + 1, sizeof *n->of_value);
  n->of_region = calloc((size_t)p->graphs.n + 1, sizeof *n->of_region);
  n->stack = calloc((size_t)p->graphs.n + 1, sizeof *n->stack);
  n->at = calloc((size_t)p->graphs.n + 1, sizeof *n->at);
  return n->of_value && n->of_region && n->stack && n->at;
}

static void end(numbering_t *n) {
  free(n->of_value);
  free(n->of_region);
  free(n->of_slot);
  free(n->calls);
  free(n->stack);
  free(n->at);
}

/* ---- the joint graph ---- */

static void record_ports(const numbering_t *n, const aot_port_t *ports, uint32_t count, port_record_t *out) {
  for (uint32_t i = 0; i < count; i++) {
    out[i] = (port_record_t){.role = ports[i].role, .index = ports[i].index};
    if (ports[i].value.id == NONE) continue;
    out[i].type = *value_type_of(n->p, ports[i].value.id);
    out[i].number = n->of_value[ports[i].value.id];
  }
}

aoth_joint_record_t *aoth_joint_record_create(aot_prog_t *p, aot_graph_t joint) {
  const graph_row_t *g = &p->graphs.at[joint.id];
  aoth_joint_record_t *r = calloc(1, sizeof *r);
  numbering_t n;
  const int ready = begin(&n, p);
  if (r) r->inputs = calloc((size_t)g->inputs.n + 1, sizeof *r->inputs);
  if (r) r->outputs = calloc((size_t)g->outputs.n + 1, sizeof *r->outputs);
  if (ready && r && r->inputs && r->outputs) {
    number_with_regions(&n, joint.id);
    record_ports(&n, g->inputs.at, r->n_inputs = g->inputs.n, r->inputs);
    record_ports(&n, g->outputs.at, r->n_outputs = g->outputs.n, r->outputs);
  }
  const int made = ready && r && r->inputs && r->outputs && !n.failed;
  end(&n);
  if (made) return r;
  aoth_joint_record_destroy(r);
  aoth_no_memory(p, "the numbers of the joint graph", (uint64_t)p->values.n * sizeof(number_t));
  return NULL;
}

void aoth_joint_record_destroy(aoth_joint_record_t *r) {
  if (!r) return;
  free(r->inputs);
  free(r->outputs);
  free(r);
}

/* ---- the halves ---- */

typedef struct halves {
  numbering_t n;
  const aoth_joint_record_t *joint;
  uint32_t n_bad;
} halves_t;

static void tell(halves_t *c, uint32_t graph, const port_record_t *port, uint32_t value, const char *what) {
  aot_prog_t *p = c->n.p;
  const aot_node_t node = {value == NONE ? NONE : p->values.at[value].def};
  if (c->n_bad++ >= MAX_REPORTS) return;
  const char *kind = aoth_graph_kind_name(graph == NONE ? AOT_GRAPH_JOINT : p->graphs.at[graph].kind);
  aoth_report_node(p, node, AOT_SEVERITY_ERROR, "verify.halves", NULL, "%s graph, %s %u: %s", kind, aoth_role_name(port->role),
                   port->index, what);
}

/* A forward or backward input, but a slot, is one of the joint's. `expected`: by role and index, sorted. */
static int compare_ports(const void *a, const void *b) {
  const port_record_t *x = a, *y = b;
  if (x->role != y->role) return x->role < y->role ? -1 : 1;
  return (x->index > y->index) - (x->index < y->index);
}

static void check_inputs(halves_t *c, uint32_t graph, const port_record_t *expected) {
  const graph_row_t *g = &c->n.p->graphs.at[graph];
  for (uint32_t i = 0; i < g->inputs.n; i++) {
    const aot_port_t *port = &g->inputs.at[i];
    const port_record_t key = {.role = port->role, .index = port->index};
    if (port->role == AOT_ROLE_SAVED) continue;
    const port_record_t *found = bsearch(&key, expected, c->joint->n_inputs, sizeof key, compare_ports);
    if (!found) tell(c, graph, &key, NONE, "the joint graph has no such input");
    else if (!same_type(&found->type, value_type_of(c->n.p, port->value.id)))
      tell(c, graph, &key, NONE, "the joint graph's input is of another type");
  }
}

static void check_output(halves_t *c, uint32_t graph, const aot_port_t *port, const port_record_t *wanted) {
  const uint32_t value = port->value.id;
  const number_t none = {0, 0}, number = value == NONE ? none : c->n.of_value[value];
  if (!same_number(number, wanted->number))
    tell(c, graph, wanted, value, value == NONE ? "it is none, the joint graph has it" : "this is not what the joint graph computes");
  else if (value != NONE && !same_type(value_type_of(c->n.p, value), &wanted->type))
    tell(c, graph, wanted, value, "it has another type than the joint graph's");
}

static int is_next(const graph_row_t *g, uint32_t i, const port_record_t *wanted) {
  return i < g->outputs.n && g->outputs.at[i].role == wanted->role && g->outputs.at[i].index == wanted->index;
}

/* Forward outputs in the joint's order, then slots; the rest, in order, is the backward's. */
static void check_outputs(halves_t *c, uint32_t forward, uint32_t backward) {
  const graph_row_t *f = &c->n.p->graphs.at[forward], *b = &c->n.p->graphs.at[backward];
  uint32_t in_f = 0, in_b = 0;
  for (uint32_t i = 0; i < c->joint->n_outputs; i++) {
    const port_record_t *wanted = &c->joint->outputs[i];
    if (is_next(f, in_f, wanted)) check_output(c, forward, &f->outputs.at[in_f++], wanted);
    else if (is_next(b, in_b, wanted)) check_output(c, backward, &b->outputs.at[in_b++], wanted);
    else tell(c, NONE, wanted, NONE, "neither half gives this output in its turn");
  }
  for (; in_f < f->outputs.n; in_f++) {
    const port_record_t port = {.role = f->outputs.at[in_f].role, .index = f->outputs.at[in_f].index};
    if (port.role != AOT_ROLE_SAVED) tell(c, forward, &port, f->outputs.at[in_f].value.id, "the joint graph has no such output");
  }
  for (; in_b < b->outputs.n; in_b++) {
    const port_record_t port = {.role = b->outputs.at[in_b].role, .index = b->outputs.at[in_b].index};
    tell(c, backward, &port, b->outputs.at[in_b].value.id, "the joint graph has no such output");
  }
}

static int number_halves(numbering_t *n, uint32_t forward, uint32_t backward) {
  const graph_row_t *f = &n->p->graphs.at[forward];
  number_with_regions(n, forward);
  n->of_slot = calloc((size_t)f->outputs.n + 1, sizeof *n->of_slot);
  if (!n->of_slot) return 0;
  for (uint32_t i = 0; i < f->outputs.n; i++) {
    const aot_port_t *port = &f->outputs.at[i];
    if (port->role == AOT_ROLE_SAVED && port->index < f->outputs.n && port->value.id != NONE)
      n->of_slot[port->index] = n->of_value[port->value.id];
  }
  n->n_slots = f->outputs.n;
  number_with_regions(n, backward);
  return !n->failed;
}

aot_status_t aoth_halves_check(aot_prog_t *p, const aoth_joint_record_t *r) {
  const uint32_t forward = aoth_graph_graph_find(p, AOT_GRAPH_FORWARD).id;
  const uint32_t backward = aoth_graph_graph_find(p, AOT_GRAPH_BACKWARD).id;
  halves_t c = {.joint = r};
  if (forward == NONE || backward == NONE) return AOT_OK; /* the verifier says so */
  port_record_t *inputs = malloc(((size_t)r->n_inputs + 1) * sizeof *inputs);
  const int ready = begin(&c.n, p) && inputs && number_halves(&c.n, forward, backward);
  if (ready) {
    memcpy(inputs, r->inputs, r->n_inputs * sizeof *inputs);
    qsort(inputs, r->n_inputs, sizeof *inputs, compare_ports);
    check_inputs(&c, forward, inputs);
    check_inputs(&c, backward, inputs);
    check_outputs(&c, forward, backward);
  }
  end(&c.n);
  free(inputs);
  if (!ready) return aoth_no_memory(p, "the numbers of forward and backward", (uint64_t)p->values.n * sizeof(number_t));
  return c.n_bad ? AOT_E_INVALID : AOT_OK;
}
