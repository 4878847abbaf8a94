#include <ir/value_numbers.h>

#include "kit/base/vector.h"
#include <aot/inline.h>
#include <ir/program_store.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

int aoth_same_number(aoth_value_number_t a, aoth_value_number_t b) { return a.lo == b.lo && a.hi == b.hi; }

static int is_zero(aoth_value_number_t a) { return a.lo == 0 && a.hi == 0; }

static void add(XXH3_state_t *h, const void *at, size_t size) {
  const uint64_t n = size; /* between lists, so that none runs into the next */
  XXH3_128bits_update(h, &n, sizeof n);
  if (size) XXH3_128bits_update(h, at, size);
}

static void add_word(XXH3_state_t *h, uint64_t word) { XXH3_128bits_update(h, &word, sizeof word); }

static aoth_value_number_t finish(XXH3_state_t *h) {
  const XXH128_hash_t hash = XXH3_128bits_digest(h);
  const aoth_value_number_t number = {hash.low64 | 1, hash.high64}; /* never 0 */
  return number;
}

static aoth_value_number_t number_of_words(uint64_t a, uint64_t b, uint64_t c) {
  const uint64_t words[3] = {a, b, c};
  const XXH128_hash_t hash = XXH3_128bits(words, sizeof words);
  const aoth_value_number_t number = {hash.low64 | 1, hash.high64};
  return number;
}

/* ---- nodes ---- */

static void add_value(const aoth_numbering_t *n, XXH3_state_t *h, uint32_t value) {
  const aoth_value_number_t none = {0, 0};
  add(h, value == NONE ? &none : &n->of_value[value], sizeof none);
}

static void add_arg(const aoth_numbering_t *n, XXH3_state_t *h, const aot_arg_t *a) {
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
  if (t->encoding.id != NONE || t->memory) add_word(h, (uint64_t)t->memory << 32 | t->encoding.id);
}

int aoth_same_shape(const aot_type_t *a, const aot_type_t *b) {
  if (a->kind != b->kind || a->dtype != b->dtype || a->rank != b->rank || a->device != b->device ||
      !aoth_same_encoding(a, b))
    return 0;
  return a->rank <= 0 || memcmp(a->sizes, b->sizes, (size_t)a->rank * sizeof *a->sizes) == 0;
}

/* The operand whose elements the result has, each in its place: a pointwise operator that moves elements, dtype and
 * sizes stored. */
static uint32_t copied_value(const aot_prog_t *p, const aoth_node_row_t *r) {
  const uint32_t copies = AOT_OP_POINTWISE | AOT_OP_MOVEMENT;
  const uint32_t not_pure = AOT_OP_RANDOM | AOT_OP_EFFECT | AOT_OP_COLLECTIVE | AOT_OP_WRITES;
  const aot_op_t op = {r->op};
  const uint32_t flags = aoth_ops_desc(p->ops, op)->flags;
  if ((flags & copies) != copies || (flags & not_pure)) return NONE;
  if (r->n_operands != 1 || r->n_results != 1 || r->operands[0] == NONE) return NONE;
  const aot_type_t *from = value_type_of(p, r->operands[0]), *to = value_type_of(p, r->first_result);
  return from->kind == AOT_TYPE_TENSOR && aoth_same_shape(from, to) ? r->operands[0] : NONE;
}

static int is_call(const void *calls, uint32_t i, const void *key) {
  return aoth_same_number(((const aoth_call_count_t *)calls)[i].key, *(const aoth_value_number_t *)key);
}

/* How many calls of this key there were before. */
static uint32_t count_call(aoth_numbering_t *n, aoth_value_number_t key) {
  aoth_call_count_t *calls = kit_grow(n->calls, &n->call_capacity, (uint64_t)n->n_calls + 1, sizeof *calls);
  if (calls) n->calls = calls;
  const uint32_t at =
      calls ? kit_map_find_or_add(&n->call_map, key.hi, is_call, calls, &key, n->n_calls) : KIT_MAP_NONE;
  n->failed |= at == KIT_MAP_NONE;
  if (n->failed) return 0;
  if (at == n->n_calls) calls[n->n_calls++] = (aoth_call_count_t){.key = key};
  return calls[at].n++;
}

static void number_node(aoth_numbering_t *n, uint32_t node) {
  const aoth_node_row_t *r = &n->p->nodes.at[node];
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
  aoth_value_number_t key = finish(&h);
  if (aoth_ops_desc(n->p->ops, op)->flags & (AOT_OP_RANDOM | AOT_OP_EFFECT))
    key = number_of_words(key.lo, key.hi, 1 + count_call(n, key));
  for (uint32_t i = 0; i < r->n_results; i++)
    n->of_value[r->first_result + i] = number_of_words(key.lo, key.hi, (uint64_t)i << 32);
}

/* ---- regions, inner ones first ---- */

static void number_graph(aoth_numbering_t *n, uint32_t graph) {
  const aoth_graph_row_t *g = &n->p->graphs.at[graph];
  for (uint32_t i = 0; i < g->inputs.n; i++) {
    const aot_port_t *port = &g->inputs.at[i];
    const int is_slot = port->role == AOT_ROLE_SAVED && port->index < n->n_slots;
    n->of_value[port->value.id] =
        is_slot ? n->of_slot[port->index] : number_of_words((uint64_t)port->role, port->index, 2);
  }
  for (uint32_t node = g->first; node != NONE; node = n->p->nodes.at[node].next) number_node(n, node);
}

static void close_region(aoth_numbering_t *n, uint32_t graph) {
  const aoth_graph_row_t *g = &n->p->graphs.at[graph];
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
static uint32_t open_region(const aoth_numbering_t *n, uint32_t node) {
  const aoth_node_row_t *r = &n->p->nodes.at[node];
  for (uint32_t i = 0; i < r->n_args; i++)
    if (r->args[i].kind == AOT_ARG_GRAPH && is_zero(n->of_region[r->args[i].u.i])) return (uint32_t)r->args[i].u.i;
  return NONE;
}

/* graph, after the regions under it; the stack is no deeper than regions nest, which they do without cycles. */
void aoth_number_graph(aoth_numbering_t *n, uint32_t graph) {
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

int aoth_numbering_init(aoth_numbering_t *n, aot_prog_t *p) {
  *n = (aoth_numbering_t){.p = p};
  n->of_value = calloc((size_t)p->values.n + 1, sizeof *n->of_value);
  n->of_region = calloc((size_t)p->graphs.n + 1, sizeof *n->of_region);
  n->stack = calloc((size_t)p->graphs.n + 1, sizeof *n->stack);
  n->at = calloc((size_t)p->graphs.n + 1, sizeof *n->at);
  return n->of_value && n->of_region && n->stack && n->at;
}

void aoth_numbering_deinit(aoth_numbering_t *n) {
  free(n->of_value);
  free(n->of_region);
  free(n->of_slot);
  free(n->calls);
  kit_map_deinit(&n->call_map);
  free(n->stack);
  free(n->at);
}
