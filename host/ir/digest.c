#include <ir/digest.h>

#include <ir/program_store.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

static void words(XXH3_state_t *h, const uint64_t *at, size_t n) { XXH3_128bits_update(h, at, n * sizeof *at); }
#define WORDS(...) words(h, (const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static void bytes(XXH3_state_t *h, const void *at, size_t size) {
  WORDS(size); /* so that none runs into the next */
  if (size) XXH3_128bits_update(h, at, size);
}

static void text(XXH3_state_t *h, aot_str_t s) { bytes(h, s.data, (size_t)s.size); }

static void add_type(XXH3_state_t *h, const aot_type_t *t) {
  WORDS((uint64_t)t->kind, (uint64_t)t->dtype, (uint64_t)t->rank, t->flags, (uint64_t)t->device,
        (uint64_t)t->device_index, t->memory, t->encoding.id, (uint64_t)t->offset, (uint64_t)t->expr);
  bytes(h, t->sizes, (size_t)t->rank * sizeof *t->sizes);
  bytes(h, t->strides, (size_t)t->rank * sizeof *t->strides);
}

static void add_arg(XXH3_state_t *h, const aot_arg_t *a) {
  WORDS((uint64_t)a->kind, a->n);
  switch (a->kind) {
    case AOT_ARG_VALUES: bytes(h, a->u.ids, a->n * sizeof *a->u.ids); break;
    case AOT_ARG_INTS:
    case AOT_ARG_BOOLS: bytes(h, a->u.ints, a->n * sizeof *a->u.ints); break;
    case AOT_ARG_FLOATS: bytes(h, a->u.floats, a->n * sizeof *a->u.floats); break;
    case AOT_ARG_STR: bytes(h, a->u.chars, a->n); break;
    case AOT_ARG_NONE: break;
    default: WORDS((uint64_t)a->u.i); break;
  }
}

static void add_ports(XXH3_state_t *h, const aot_port_t *ports, uint32_t n) {
  WORDS(n);
  for (uint32_t i = 0; i < n; i++) {
    WORDS((uint64_t)ports[i].role, ports[i].index, ports[i].value.id);
    text(h, ports[i].name);
  }
}

static void add_graph(XXH3_state_t *h, const aoth_graph_row_t *g) {
  WORDS((uint64_t)g->kind, g->alive, g->first, g->last, g->n_nodes, g->n_refs);
  text(h, g->name);
  add_ports(h, g->inputs.at, g->inputs.n);
  add_ports(h, g->outputs.at, g->outputs.n);
  bytes(h, g->output_slots.at, g->output_slots.n * sizeof(uint32_t));
}

static void add_node(XXH3_state_t *h, const aoth_node_row_t *n) {
  WORDS(n->op, n->graph, n->prev, n->next, n->flags, n->region_tag, n->origin, n->first_result, n->n_results, n->n_args,
        n->n_operands, n->slot_begin, n->alive);
  bytes(h, n->operands, n->n_operands * sizeof *n->operands);
  for (uint32_t i = 0; i < n->n_args; i++) add_arg(h, &n->args[i]);
}

static void add_value(XXH3_state_t *h, const aot_prog_t *p, uint32_t id) {
  const aoth_value_row_t *v = &p->values.at[id];
  WORDS(v->type & VALUE_DEAD, v->def, v->graph, v->index, v->n_uses);
  add_type(h, value_type_of(p, id));
  text(h, p->names.at[v->name]);
  for (uint32_t slot = v->first_use; slot != NONE; slot = p->slots.at[slot].next) WORDS(slot);
}

static void add_environment(XXH3_state_t *h, const aot_prog_t *p) {
  WORDS(p->leaves.n, p->rules.n, p->origins.n, p->encodings.n, p->symbols.n, p->exprs.n, p->guards.n);
  for (uint32_t i = 1; i < p->leaves.n; i++) {
    const aot_leaf_info_t *l = &p->leaves.at[i];
    WORDS((uint64_t)l->role, l->flags, l->ordinal, l->n_names, l->nbytes);
    for (uint32_t k = 0; k < l->n_names; k++) text(h, l->names[k]);
    add_type(h, &l->type);
  }
  for (uint32_t i = 0; i < p->rules.n; i++) {
    const aot_rule_t *r = &p->rules.at[i];
    WORDS((uint64_t)r->kind, r->a, r->b, (uint64_t)r->rank, (uint64_t)r->dtype, (uint64_t)r->offset);
    bytes(h, r->sizes, (size_t)r->rank * sizeof *r->sizes);
    bytes(h, r->strides, (size_t)r->rank * sizeof *r->strides);
  }
  for (uint32_t i = 1; i < p->origins.n; i++) {
    const aot_origin_info_t *o = &p->origins.at[i];
    WORDS(o->line, o->parent.id);
    text(h, o->source_file);
    text(h, o->module_path);
    text(h, o->node_name);
  }
  for (uint32_t i = 1; i < p->encodings.n; i++) {
    text(h, p->encodings.at[i].name);
    text(h, p->encodings.at[i].value);
  }
  for (uint32_t i = 0; i < p->symbols.n; i++) {
    const aot_symbol_info_t *s = &p->symbols.at[i];
    WORDS((uint64_t)s->min, (uint64_t)s->max, (uint64_t)s->hint);
    text(h, s->name);
  }
  for (uint32_t i = 0; i < p->guards.n; i++) {
    WORDS((uint64_t)p->guards.at[i].condition);
    text(h, p->guards.at[i].text);
  }
  for (uint32_t i = 1; i < p->exprs.n; i++) {
    const aoth_expr_row_t *e = &p->exprs.at[i];
    WORDS((uint64_t)e->info.op, (uint64_t)e->info.a, (uint64_t)e->info.b, (uint64_t)e->info.c, (uint64_t)e->lo,
          (uint64_t)e->hi, (uint64_t)e->hint, e->tree_size);
  }
}

aoth_digest_t aoth_prog_digest(const aot_prog_t *p) {
  XXH3_state_t state, *h = &state;
  XXH3_128bits_reset(h);
  WORDS(p->properties.known, p->properties.n_named, p->graphs.n, p->nodes.n, p->values.n, p->slots.n);
  for (uint32_t i = 0; i < p->properties.n_named; i++) text(h, p->properties.named[i]);
  for (uint32_t i = 1; i < p->graphs.n; i++) add_graph(h, &p->graphs.at[i]);
  for (uint32_t i = 1; i < p->nodes.n; i++) add_node(h, &p->nodes.at[i]);
  for (uint32_t i = 1; i < p->values.n; i++) add_value(h, p, i);
  for (uint32_t i = 1; i < p->slots.n; i++) WORDS(p->slots.at[i].owner, p->slots.at[i].operand, p->slots.at[i].arg);
  add_environment(h, p);
  const XXH128_hash_t hash = XXH3_128bits_digest(h);
  return (aoth_digest_t){hash.low64, hash.high64};
}
