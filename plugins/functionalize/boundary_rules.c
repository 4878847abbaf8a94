/* Derives boundary rules from the final places of leaves and outputs. */
#include "boundary_rules.h"

#include "entry.h"
#include "places.h"
#include "same_layout.h"
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

typedef struct boundary {
  fz_rewrite_t *w;
  uint32_t n_rules, n_bases;
  uint32_t *leaf_of_storage; /* FZ_NONE: not a leaf's */
  uint32_t *first_output;    /* by storage: first user output port on it, FZ_NONE */
  uint32_t *n_outputs;       /* by storage */
  uint32_t *base_number;     /* by storage: hidden base, FZ_NONE */
} boundary_t;

static aot_status_t add_rule(boundary_t *b, int32_t kind, uint32_t a, uint32_t other, const aot_type_t *geometry,
                             int32_t dtype) {
  aot_rule_t r = {.kind = kind, .a = a, .b = other, .dtype = dtype};
  if (geometry) {
    r.rank = geometry->rank;
    r.sizes = geometry->sizes;
    r.strides = geometry->strides;
    r.offset = geometry->offset;
  }
  b->n_rules++;
  return b->w->host->edit->rule_add(b->w->prog, &r);
}

static aot_status_t geometry_of(boundary_t *b, uint32_t place, aot_type_t *out) {
  return b->w->host->graph->value_type(b->w->prog, (aot_value_t){b->w->alias.places[place].declared}, out);
}

/* Output a looks at the storage of b as the place does, whose dtype may be another than the storage's. */
static aot_status_t add_view_rule(boundary_t *b, int32_t kind, uint32_t a, uint32_t other, uint32_t place) {
  const fz_alias_t *alias = &b->w->alias;
  aot_type_t type, base;
  AOT_TRY(geometry_of(b, place, &type));
  AOT_TRY(geometry_of(b, alias->storages[alias->places[place].storage].base, &base));
  return add_rule(b, kind, a, other, &type, type.dtype != base.dtype ? type.dtype : 0);
}

/* A written leaf: its new value is an output, and goes back after the call. A renamed one takes the new shape. */
static aot_status_t add_leaf_rules(boundary_t *b) {
  fz_rewrite_t *w = b->w;
  const aot_graph_api_t *g = w->host->graph;
  uint32_t n = g->n_inputs(w->prog, w->graph);
  for (uint32_t i = 0; i < n; i++) {
    aot_port_t port = g->inputs(w->prog, w->graph)[i];
    const fz_alias_t *a = &w->alias;
    uint32_t place = fz_place_of(a, port.value.id), storage = a->places[place].storage,
             base = a->storages[storage].base;
    aot_type_t type, before;
    b->leaf_of_storage[storage] = port.role <= AOT_ROLE_STATE ? port.index : FZ_NONE;
    if (a->storages[storage].version > 0) {
      AOT_TRY(w->host->edit->output_add(w->prog, w->graph, AOT_ROLE_UPDATE, port.index,
                                        (aot_value_t){a->places[base].value}, port.name));
      AOT_TRY(add_rule(b, AOT_RULE_COPY_BACK, port.index, 0, NULL, 0));
    }
    if (place == base) continue;
    AOT_TRY(geometry_of(b, place, &type));
    AOT_TRY(geometry_of(b, base, &before));
    if (fz_same_layout(&before, &type) && before.offset == type.offset) continue; /* detach_ */
    if (port.role != AOT_ROLE_USER_INPUT)
      return fz_fail(w->host, w->ctx, AOT_E_UNIMPLEMENTED, "functionalize.shape-of-state",
                     "a change of shape in place of a parameter or buffer is not supported: the next call would find "
                     "another program",
                     (aot_node_t){a->places[place].view_node});
    AOT_TRY(add_rule(b, AOT_RULE_RESTRIDE, port.index, 0, &type, 0));
  }
  return AOT_OK;
}

/* Inputs that are views of a base, and were renamed: the geometry over the base. */
static aot_status_t add_entry_rules(boundary_t *b) {
  fz_rewrite_t *w = b->w;
  for (uint32_t i = 0; i < w->entries->n; i++) {
    const fz_entry_t *e = &w->entries->at[i];
    uint32_t place = fz_place_of(&w->alias, e->value);
    aot_type_t type, before;
    AOT_TRY(geometry_of(b, place, &type));
    AOT_TRY(w->host->graph->value_type(w->prog, (aot_value_t){e->value}, &before));
    if (!fz_same_layout(&before, &type) || before.offset != type.offset)
      AOT_TRY(add_rule(b, AOT_RULE_RESTRIDE, e->leaf, 0, &type, 0));
  }
  return AOT_OK;
}

/* Is there a step from the base to the place that computes elements? Then an output of it shares no memory. */
static aot_status_t is_computed(boundary_t *b, uint32_t place, int *out) {
  const fz_rewrite_t *w = b->w;
  *out = 0;
  for (; w->alias.places[place].parent != FZ_NONE; place = w->alias.places[place].parent) {
    aot_node_info_t info = {.struct_size = sizeof info};
    aot_type_t type;
    AOT_TRY(w->host->graph->node_info(w->prog, (aot_node_t){w->alias.places[place].view_node}, &info));
    uint32_t flags = w->host->graph->op_desc(w->prog, info.op)->flags;
    if (!(flags & AOT_OP_COMPUTED)) continue;
    AOT_TRY(geometry_of(b, place, &type));
    *out |= (flags & AOT_OP_POINTWISE) || aot_dtype_is_complex(type.dtype);
  }
  return AOT_OK;
}

static int is_user_output(const aot_port_t *p) { return p->role == AOT_ROLE_USER_OUTPUT || p->role == AOT_ROLE_LOSS; }

static aot_status_t count_outputs(boundary_t *b, const uint32_t *original, uint32_t n) {
  const aot_port_t *ports = b->w->host->graph->outputs(b->w->prog, b->w->graph);
  for (uint32_t i = 0; i < n; i++) {
    if (original[i] == AOT_NO_ID || !is_user_output(&ports[i])) continue;
    uint32_t place = fz_place_of(&b->w->alias, original[i]), storage = b->w->alias.places[place].storage;
    int computed;
    AOT_TRY(is_computed(b, place, &computed));
    if (!computed && b->n_outputs[storage]++ == 0) b->first_output[storage] = i;
  }
  return AOT_OK;
}

static aot_status_t add_hidden_base(boundary_t *b, uint32_t storage) {
  fz_rewrite_t *w = b->w;
  aot_value_t base;
  if (b->base_number[storage] != FZ_NONE) return AOT_OK;
  AOT_TRY(fz_read(w, w->alias.storages[storage].base, 1, aot_no_node(), &base));
  b->base_number[storage] = b->n_bases++;
  return w->host->edit->output_add(w->prog, w->graph, AOT_ROLE_BASE, b->base_number[storage], base, aot_str(""));
}

/* Output i shares an intermediate's storage with other outputs. */
static aot_status_t add_sibling_rule(boundary_t *b, const uint32_t *original, uint32_t i, uint32_t number) {
  fz_rewrite_t *w = b->w;
  const fz_alias_t *a = &w->alias;
  uint32_t place = fz_place_of(a, original[i]), storage = a->places[place].storage;
  uint32_t first = b->first_output[storage], first_place = fz_place_of(a, original[first]);
  uint32_t first_number = w->host->graph->outputs(w->prog, w->graph)[first].index;
  if (i == first && place == a->storages[storage].base) return AOT_OK;
  if (i != first && place == first_place) return add_rule(b, AOT_RULE_SAME_OUTPUT, number, first_number, NULL, 0);
  if (!fz_is_exact(w, a->storages[storage].base))
    return fz_fail(w->host, w->ctx, AOT_E_UNIMPLEMENTED, "functionalize.gaps",
                   "user outputs that share a written tensor whose strides leave gaps are not supported",
                   w->host->graph->value_def(w->prog, (aot_value_t){original[i]}));
  if (first_place == a->storages[storage].base)
    return add_view_rule(b, AOT_RULE_VIEW_OUTPUT, number, first_number, place);
  AOT_TRY(add_hidden_base(b, storage));
  return add_view_rule(b, AOT_RULE_VIEW_BASE, number, b->base_number[storage], place);
}

static aot_status_t add_output_rules(boundary_t *b, const uint32_t *original, uint32_t n) {
  fz_rewrite_t *w = b->w;
  const fz_alias_t *a = &w->alias;
  for (uint32_t i = 0; i < n; i++) {
    aot_port_t port = w->host->graph->outputs(w->prog, w->graph)[i];
    if (original[i] == AOT_NO_ID || !is_user_output(&port)) continue;
    uint32_t place = fz_place_of(a, original[i]), storage = a->places[place].storage,
             leaf = b->leaf_of_storage[storage];
    aot_type_t type;
    int computed;
    AOT_TRY(geometry_of(b, place, &type));
    AOT_TRY(is_computed(b, place, &computed));
    if (type.kind != AOT_TYPE_TENSOR || computed) continue;
    if (leaf == FZ_NONE) {
      if (b->n_outputs[storage] > 1) AOT_TRY(add_sibling_rule(b, original, i, port.index));
      continue;
    }
    uint32_t named = fz_place_of(a, a->places[a->storages[storage].base].declared);
    if (place == named) AOT_TRY(add_rule(b, AOT_RULE_SAME_INPUT, port.index, leaf, NULL, 0));
    else AOT_TRY(add_view_rule(b, AOT_RULE_VIEW_INPUT, port.index, leaf, place));
  }
  return AOT_OK;
}

aot_status_t fz_add_boundary(fz_rewrite_t *w, const uint32_t *original_outputs, uint32_t *out_n_rules) {
  size_t n = (size_t)w->alias.n_storages + 1;
  uint32_t n_outputs = w->host->graph->n_outputs(w->prog, w->graph);
  uint32_t *columns = malloc(4 * n * sizeof *columns);
  if (!columns) return fz_no_memory(w->host, w->ctx, aot_no_node(), "for the boundary");
  memset(columns, 0xff, 4 * n * sizeof *columns);
  boundary_t b = {w, 0, 0, columns, columns + n, columns + 2 * n, columns + 3 * n};
  memset(b.n_outputs, 0, n * sizeof *b.n_outputs);
  aot_status_t status = count_outputs(&b, original_outputs, n_outputs);
  if (status == AOT_OK) status = add_leaf_rules(&b);
  if (status == AOT_OK) status = add_entry_rules(&b);
  if (status == AOT_OK) status = add_output_rules(&b, original_outputs, n_outputs);
  free(columns);
  *out_n_rules = b.n_rules;
  return status;
}
