/* What a partitioner chose, in words that another partitioner's choice can be laid in addition: values and nodes of the
 * same joint graph by their ids, with what a reader wants to know of them. Operators count by their flags. */
#include <cli/ab/ab.h>

#include <aot/ext/saved.h>
#include <aot/inline.h>
#include "kit/base/text.h"
#include <ir/saved_slots.h>
#include <math.h>
#include <step/sizes.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

/* ---- sizes, every symbol at its hint ---- */

typedef struct extent {
  int32_t rank;
  uint64_t numel, nbytes;
  int64_t sizes[AOT_MAX_RANK];
} extent_t;

/* Zeros: no tensor. */
static extent_t size_of(aot_prog_t *p, aot_value_t v) {
  extent_t s = {0};
  aot_type_t t;
  if (v.id == AOT_NO_ID || aoth_graph_value_type(p, v, &t) != AOT_OK || t.kind != AOT_TYPE_TENSOR) return s;
  s.rank = t.rank;
  s.numel = 1;
  for (int32_t d = 0; d < t.rank; d++) {
    const int64_t size = aoth_graph_dim_hint(p, t.sizes[d]);
    s.sizes[d] = size > 0 ? size : 0;
    s.numel *= (uint64_t)s.sizes[d];
  }
  s.nbytes = s.numel * aot_dtype_size(t.dtype);
  return s;
}

static uint64_t value_bytes(aot_prog_t *p, aot_value_t v) { return size_of(p, v).nbytes; }

/* Of a product of `batch` times m x k and k x n: the three sizes multiply to batch * (batch * m * k * n)^2. */
static double product_flops(const extent_t *a, const extent_t *b, const extent_t *out) {
  double batch = 1;
  for (int32_t d = 0; d + 2 < out->rank && out->rank == a->rank && out->rank == b->rank; d++)
    if (out->sizes[d] == a->sizes[d] && out->sizes[d] == b->sizes[d]) batch *= (double)out->sizes[d];
  return batch > 0 ? 2 * sqrt((double)a->numel * (double)b->numel * (double)out->numel / batch) : 0;
}

/* An estimate that takes flags and sizes alone: heavy operators count as matrix products, views and what only moves as
 * nothing, all others as one operation an element of the largest tensor at hand. */
static double flops_of(aot_prog_t *p, const aot_node_info_t *n, uint32_t flags) {
  extent_t first = {0}, second = {0}, out = {0};
  if (flags & (AOT_OP_VIEW | AOT_OP_MOVEMENT | AOT_OP_CREATION)) return 0;
  for (uint32_t k = 0; k < n->n_operands; k++) {
    const extent_t s = size_of(p, (aot_value_t){n->operands[k]});
    if (s.numel > first.numel) second = first, first = s;
    else if (s.numel > second.numel) second = s;
  }
  for (uint32_t r = 0; r < n->n_results; r++) {
    const extent_t s = size_of(p, (aot_value_t){n->first_result.id + r});
    if (s.numel > out.numel) out = s;
  }
  if (flags & AOT_OP_HEAVY) return product_flops(&first, &second, &out);
  return (double)(first.numel > out.numel ? first.numel : out.numel);
}

/* ---- rows ---- */

static json_t *text_json(aot_str_t s) {
  json_t *t = s.size ? json_stringn(s.data, s.size) : NULL;
  return t ? t : json_null(); /* empty, or no UTF-8 */
}

/* Module and place in the user's source: of the node, or of what it was made from. */
static void add_origin(aot_prog_t *p, aot_origin_t origin, json_t *row) {
  aot_origin_info_t o = {.struct_size = sizeof o};
  json_t *module = json_null(), *source = json_null();
  for (int depth = 0; depth < 8 && origin.id != AOT_NO_ID && aoth_graph_origin_info(p, origin, &o) == AOT_OK; depth++) {
    kit_text_t at = {0};
    if (json_is_null(module)) module = text_json(o.module_path);
    if (json_is_null(source) && o.source_file.size) {
      kit_text_f(&at, "%.*s:%u", (int)o.source_file.size, o.source_file.data, o.line);
      source = json_string(at.data ? at.data : "");
      if (!source) source = json_null();
    }
    kit_text_deinit(&at);
    if (!json_is_null(module) && !json_is_null(source)) break;
    origin = o.parent;
  }
  json_object_set_new(row, "module", module);
  json_object_set_new(row, "source", source);
}

static json_t *value_row(aot_prog_t *p, aot_value_t v) {
  const aot_node_t def = aoth_graph_value_def(p, v);
  aot_node_info_t info = {.struct_size = sizeof info};
  kit_text_t text = {0}, name = {0};
  aot_type_t type;
  json_t *row = json_object();
  const aot_str_t given = aoth_graph_value_name(p, v);
  if (given.size) kit_text_f(&name, "%%%.*s", (int)given.size, given.data);
  else kit_text_f(&name, "%%%u", v.id);
  if (aoth_graph_value_type(p, v, &type) == AOT_OK) aoth_type_print(p, &type, &text);
  json_object_set_new(row, "id", json_integer(v.id));
  json_object_set_new(row, "value", text_json((aot_str_t){name.data, name.size}));
  json_object_set_new(row, "type", json_string(text.data ? text.data : ""));
  json_object_set_new(row, "bytes", json_integer((json_int_t)value_bytes(p, v)));
  kit_text_deinit(&text);
  kit_text_deinit(&name);
  if (def.id == AOT_NO_ID || aoth_graph_node_info(p, def, &info) != AOT_OK) {
    json_object_set_new(row, "op", json_null()); /* an input of the graph */
    info.origin.id = AOT_NO_ID;
  } else {
    json_object_set_new(row, "op", text_json(aoth_graph_op_desc(p, info.op)->name));
  }
  add_origin(p, info.origin, row);
  return row;
}

/* ---- the cut ---- */

typedef struct recomputed {
  json_t *rows; /* one a result */
  uint32_t n_nodes, n_heavy;
  uint64_t nbytes; /* of what they write, again */
  double flops;    /* an estimate */
} recomputed_t;

static void add_recomputed(aot_prog_t *p, aot_node_t node, recomputed_t *out) {
  aot_node_info_t info = {.struct_size = sizeof info};
  if (aoth_graph_node_info(p, node, &info) != AOT_OK) return;
  const aot_op_desc_t *op = aoth_graph_op_desc(p, info.op);
  out->n_nodes++;
  out->n_heavy += (op->flags & AOT_OP_HEAVY) != 0;
  out->flops += flops_of(p, &info, op->flags);
  for (uint32_t r = 0; r < info.n_results; r++) {
    const aot_value_t v = {info.first_result.id + r};
    if (!(op->flags & AOT_OP_VIEW)) out->nbytes += value_bytes(p, v);
    json_array_append_new(out->rows, value_row(p, v));
  }
}

/* Equal for equal programs: only then do ids mean the same. */
static json_t *fingerprint(aot_prog_t *p) {
  kit_text_t text = {0};
  char hex[17];
  aoth_print(p, &text);
  snprintf(hex, sizeof hex, "%016llx", (unsigned long long)XXH3_64bits(text.data ? text.data : "", text.size));
  kit_text_deinit(&text);
  return json_string(hex);
}

json_t *aoth_ab_choice_json(aot_prog_t *p, const aot_cut_t *cut) {
  json_t *o = json_object(), *saved = json_array();
  recomputed_t r = {.rows = json_array()};
  for (uint32_t i = 0; i < cut->n_saved; i++) json_array_append_new(saved, value_row(p, cut->saved[i]));
  for (uint32_t i = 0; i < cut->n_recomputed; i++) add_recomputed(p, cut->recomputed[i], &r);
  json_object_set_new(o, "joint", fingerprint(p));
  json_object_set_new(o, "saved", saved);
  json_object_set_new(o, "recomputed", r.rows);
  json_object_set_new(o, "recomputed_nodes", json_integer(r.n_nodes));
  json_object_set_new(o, "recomputed_heavy", json_integer(r.n_heavy));
  json_object_set_new(o, "recomputed_bytes", json_integer((json_int_t)r.nbytes));
  json_object_set_new(o, "recomputed_flops", json_real(r.flops));
  json_object_set_new(o, "recompute_cost", cut->recompute_cost > 0 ? json_real(cut->recompute_cost) : json_null());
  return o;
}

json_t *aoth_ab_saved_json(aot_prog_t *p) {
  const aot_graph_t forward = aoth_graph_graph_find(p, AOT_GRAPH_FORWARD);
  if (forward.id == AOT_NO_ID || aoth_graph_graph_find(p, AOT_GRAPH_BACKWARD).id == AOT_NO_ID) return NULL;
  const aot_port_t *ports = aoth_graph_outputs(p, forward);
  const uint32_t n = aoth_graph_n_outputs(p, forward);
  uint32_t *held = calloc(n + (size_t)1, sizeof *held), n_slots = 0, slot = 0;
  uint64_t nbytes = 0, nbytes_held = 0;
  if (!held || aoth_saved_held(p, held, n, &n_slots) != AOT_OK) n_slots = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (ports[i].role != AOT_ROLE_SAVED) continue;
    const uint64_t size = value_bytes(p, ports[i].value);
    nbytes += size;
    if (ports[i].index < n_slots && held[ports[i].index]) nbytes_held += size;
    slot++;
  }
  free(held);
  return json_pack("{s:I, s:I, s:I}", "values", (json_int_t)slot, "bytes", (json_int_t)nbytes, "held_bytes",
                   (json_int_t)nbytes_held);
}
