#include "shard.h"

#include "kit/emit/emit.h"
#include "kit/ranks/reduce.h"
#include "kit/base/geometry.h"
#include <aot/communicator.h>
#include <aot/ext/ranks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct sharding {
  em_t e;
  const aot_graph_api_t *graph;
  fs_options_t options;
  const aot_ext_leaf_part_t *part;
  uint32_t *reader;                   /* by value: its first reader */
  char row_name[32], column_name[32]; /* groups of a mesh */
  uint8_t *is_shared;                 /* by leaf: it looks at memory that another leaf looks at, or an output does */
  fs_counts_t counts;
} sharding_t;

static em_x_t world(void) { return aot_arg_str(aot_str(AOT_RANKS_ALL)); }

/* Ranks that have the parts of a parameter. */
static em_x_t row(const sharding_t *s) {
  return s->options.mode == FS_HYBRID ? aot_arg_str(aot_str(s->row_name)) : world();
}

/* ---- what is in the way ---- */

static aot_status_t refuse(sharding_t *s, const char *hint, const char *what) {
  em_fail(&s->e, AOT_E_UNIMPLEMENTED, hint, "%s", what);
  return s->e.status;
}

static aot_status_t find_readers(sharding_t *s) {
  for (aot_node_t n = s->graph->first(s->e.prog, s->e.graph); n.id != AOT_NO_ID; n = s->graph->next(s->e.prog, n)) {
    AOT_TRY(em_look(&s->e, n));
    for (uint32_t k = 0; k < s->e.info.n_operands; k++) {
      const uint32_t v = s->e.info.operands[k];
      if (v != AOT_NO_ID && s->reader[v] == AOT_NO_ID) s->reader[v] = n.id;
    }
  }
  s->e.node = aot_no_node();
  return s->e.status;
}

static aot_status_t check_outputs(sharding_t *s) {
  const aot_port_t *out = s->graph->outputs(s->e.prog, s->e.graph);
  for (uint32_t i = 0, n = s->graph->n_outputs(s->e.prog, s->e.graph); i < n; i++) {
    aot_leaf_info_t leaf = {.struct_size = sizeof leaf};
    if (out[i].role != AOT_ROLE_UPDATE) continue;
    AOT_TRY(s->graph->leaf_info(s->e.prog, (aot_leaf_t){out[i].index}, &leaf));
    if (leaf.role == AOT_ROLE_PARAMETER)
      return refuse(s, "", "the forward writes a parameter, of which each rank would have only a part");
    if (leaf.role == AOT_ROLE_BUFFER && !s->options.local_buffers)
      return refuse(s, "buffers: local lets every rank keep statistics of its own rows",
                    "the forward writes buffers (batch norm's statistics), which would differ between ranks");
  }
  for (uint32_t i = 0; i < s->graph->n_rules(s->e.prog); i++) {
    aot_rule_t r;
    if (s->graph->rule(s->e.prog, i, &r) == AOT_OK && (r.kind == AOT_RULE_SAME_INPUT || r.kind == AOT_RULE_VIEW_INPUT))
      s->is_shared[r.b] = 1;
  }
  return AOT_OK;
}

typedef struct range {
  const char *begin, *end;
  uint32_t leaf;
} range_t;

static int compare_ranges(const void *a, const void *b) {
  const range_t *x = a, *y = b;
  return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Leaves over the same bytes of the model file are one memory to the run time. */
static aot_status_t find_shared(sharding_t *s) {
  const uint32_t n_leaves = s->graph->n_leaves(s->e.prog);
  range_t *at = em_scratch(&s->e, n_leaves, sizeof *at);
  uint32_t n = 0, widest = 0;
  if (!at) return s->e.status;
  for (uint32_t i = 1; i < n_leaves; i++) {
    aot_leaf_info_t leaf = {.struct_size = sizeof leaf};
    AOT_TRY(s->graph->leaf_info(s->e.prog, (aot_leaf_t){i}, &leaf));
    if (leaf.data && leaf.role != AOT_ROLE_USER_INPUT)
      at[n++] = (range_t){leaf.data, (const char *)leaf.data + leaf.nbytes, i};
  }
  qsort(at, n, sizeof *at, compare_ranges);
  for (uint32_t i = 1; i < n; i++) { /* the one of those before that reaches farthest */
    if (at[i].begin < at[widest].end) s->is_shared[at[i].leaf] = s->is_shared[at[widest].leaf] = 1;
    if (at[i].end > at[widest].end) widest = i;
  }
  return AOT_OK;
}

/* ---- parameters ---- */

static uint64_t nbytes_of(const aot_type_t *t) {
  return (uint64_t)tn_numel(t->rank, t->sizes) * aot_dtype_size(t->dtype);
}

static int is_tensor_of_numbers(const aot_type_t *t) {
  for (int32_t d = 0; d < t->rank; d++)
    if (AOT_DIM_IS_SYM(t->sizes[d]) || AOT_DIM_IS_SYM(t->strides[d])) return 0;
  return t->kind == AOT_TYPE_TENSOR && !AOT_DIM_IS_SYM(t->offset);
}

/* Kernels of plugins, which gathers are, have no complex numbers. */
static int is_worth_sharding(const sharding_t *s, uint32_t leaf, const aot_type_t *t) {
  return s->options.mode != FS_REPLICATE && t->rank > 0 && t->sizes[0] > 0 && t->offset == 0 && !s->is_shared[leaf] &&
         !aot_dtype_is_complex(t->dtype) && nbytes_of(t) >= s->options.replicate_under &&
         tn_is_row_major(t->rank, t->sizes, t->strides);
}

/* This rank's rows where they are; copied where there are less of them than a shard has. NULL: zeros. */
static const void *rows_of(sharding_t *s, const aot_leaf_info_t *leaf, int64_t per_rank, uint64_t row_nbytes) {
  const int64_t begin = per_rank * (s->options.rank % s->options.n_columns), left = leaf->type.sizes[0] - begin;
  const uint64_t nbytes = (uint64_t)per_rank * row_nbytes;
  const char *from = (const char *)leaf->data + (left > 0 ? (uint64_t)begin * row_nbytes : 0);
  if (!leaf->data || left >= per_rank) return leaf->data ? from : NULL;
  char *rows = s->e.host->alloc(s->e.host, s->e.ctx, AOT_ARENA_GRAPH, 64, nbytes);
  if (!rows) em_ok(&s->e, AOT_E_EXHAUSTED);
  else if (left > 0) memcpy(rows, from, (size_t)((uint64_t)left * row_nbytes));
  return rows;
}

/* The leaf and its port become the rank's rows. */
static void take_rows(sharding_t *s, aot_leaf_t id, const aot_leaf_info_t *leaf, aot_value_t v) {
  em_t *e = &s->e;
  int64_t sizes[AOT_MAX_RANK];
  aot_type_t t = leaf->type;
  const int64_t per_rank = (t.sizes[0] + s->options.n_columns - 1) / s->options.n_columns;
  memcpy(sizes, t.sizes, (size_t)t.rank * sizeof *sizes);
  sizes[0] = per_rank;
  t.sizes = sizes;
  t.strides = NULL;
  const uint64_t nbytes = nbytes_of(&t);
  const void *rows = rows_of(s, leaf, per_rank, nbytes / (uint64_t)per_rank);
  if (em_ok(e, AOT_OK)) em_ok(e, s->part->take(s->part, e->ctx, e->prog, id, &t, rows, rows ? nbytes : 0));
  if (em_ok(e, AOT_OK)) em_ok(e, e->host->edit->type_set(e->prog, v, &t));
  s->counts.n_sharded++;
  s->counts.sharded_nbytes += nbytes;
}

/* Code that reads v reads `to`, which is made of it by `first` and nodes after. */
static void replace(sharding_t *s, aot_value_t v, em_x_t first, em_x_t to) {
  em_t *e = &s->e;
  const aot_value_t end = em_value(e, to), begin = em_value(e, first);
  if (em_ok(e, AOT_OK)) em_ok(e, e->host->edit->uses_replace(e->prog, v, end));
  if (em_ok(e, AOT_OK)) em_ok(e, e->host->edit->operand_set(e->prog, s->graph->value_def(e->prog, begin), 0, v));
}

/* Nodes that do nothing but cast v, where nothing else reads it, and all to one smaller dtype. 0: there are others. */
static uint32_t find_casts(sharding_t *s, aot_value_t v, aot_node_t **out, int32_t *out_dtype) {
  em_t *e = &s->e;
  const uint32_t n = s->graph->n_uses(e->prog, v);
  const int32_t from = em_type(e, em_v(v)).dtype;
  *out = em_scratch(e, n, sizeof **out);
  if (!*out || s->graph->users(e->prog, v, *out, n) != n) return 0;
  for (uint32_t i = 0; i < n; i++) {
    if (em_look(e, (*out)[i]) != AOT_OK || !aot_str_eq(e->desc->name, aot_str("aten._to_copy.default"))) return 0;
    const int32_t dtype = em_type(e, em_v(e->info.first_result)).dtype;
    for (uint32_t a = 1; a < e->info.n_args; a++) /* to another device, say */
      if (e->info.args[a].kind != AOT_ARG_DTYPE && e->info.args[a].kind != AOT_ARG_NONE &&
          !(e->info.args[a].kind == AOT_ARG_BOOL && !e->info.args[a].u.i))
        return 0;
    if ((i && dtype != *out_dtype) || (e->info.flags & AOT_NODE_NO_GRAD) || !aot_dtype_is_float(dtype) ||
        aot_dtype_size(dtype) >= aot_dtype_size(from))
      return 0;
    *out_dtype = dtype;
  }
  return n;
}

static em_x_t cut(sharding_t *s, em_x_t whole, int64_t n_rows) {
  em_t *e = &s->e;
  const aot_type_t t = em_type(e, whole);
  if (e->status != AOT_OK || t.sizes[0] == n_rows) return whole;
  return EM(e, "slice.Tensor", whole, em_i(0), em_i(0), em_i(n_rows), em_i(1));
}

/* The rank's part. In a mesh the ranks of a column have it alike, and add up its gradient. */
static em_x_t own_part(sharding_t *s, aot_value_t v) {
  if (s->options.mode != FS_HYBRID) return em_v(v);
  return EM(&s->e, "aot.copy_to_ranks.default", em_v(v), aot_arg_str(aot_str(s->column_name)));
}

/* Casts to a smaller dtype are in front of the gather: the same numbers, fewer bytes. */
static void gather_cast(sharding_t *s, aot_value_t v, int64_t n_rows, const aot_node_t *casts, uint32_t n,
                        int32_t dtype) {
  em_t *e = &s->e;
  const em_x_t ranks = em_i(s->options.n_columns), part = own_part(s, v);
  em_x_t whole;
  if (s->options.reduces_narrow) {
    if (!rn_can_reduce(dtype, AOT_REDUCE_SUM))
      em_fail(e, AOT_E_UNIMPLEMENTED, "reduce: f32 adds them up as wide as parameters are",
              "gradients of %s are not added up over ranks", aot_dtype_name(dtype));
    whole = EM(e, "_c10d_functional.all_gather_into_tensor.default", em_cast(e, part, dtype), ranks, row(s));
    whole = EM(e, "_c10d_functional.wait_tensor.default", whole);
  } else {
    whole = EM(e, "aot.all_gather_as.default", part, em_dtype(dtype), ranks, row(s));
  }
  const aot_value_t end = em_value(e, cut(s, whole, n_rows));
  for (uint32_t i = 0; i < n && em_look(e, casts[i]) == AOT_OK; i++)
    if (em_ok(e, e->host->edit->uses_replace(e->prog, e->info.first_result, end)))
      em_ok(e, e->host->edit->node_erase(e->prog, casts[i]));
  s->counts.n_cast++;
}

static void gather(sharding_t *s, aot_value_t v, int64_t n_rows) {
  em_t *e = &s->e;
  aot_node_t *casts;
  int32_t dtype = 0;
  const aot_node_t at = e->node;
  const uint32_t n = find_casts(s, v, &casts, &dtype);
  e->node = at;
  if (n) {
    gather_cast(s, v, n_rows, casts, n, dtype);
    return;
  }
  const em_x_t part = own_part(s, v);
  const em_x_t all = EM(e, "_c10d_functional.all_gather_into_tensor.default", part, em_i(s->options.n_columns), row(s));
  replace(s, v, s->options.mode == FS_HYBRID ? part : all,
          cut(s, EM(e, "_c10d_functional.wait_tensor.default", all), n_rows));
}

static void copy_to_ranks(sharding_t *s, aot_value_t v) {
  const em_x_t copy = EM(&s->e, "aot.copy_to_ranks.default", em_v(v), world());
  replace(s, v, copy, copy);
}

static aot_status_t check_gradient(sharding_t *s, const aot_leaf_info_t *leaf) {
  if (!(leaf->flags & AOT_LEAF_REQUIRES_GRAD) || rn_can_reduce(leaf->type.dtype, AOT_REDUCE_SUM)) return AOT_OK;
  em_fail(&s->e, AOT_E_UNIMPLEMENTED, "hold it as real numbers (torch.view_as_real)",
          "gradients of %s, as of parameter \"%.*s\", are not added up over ranks", aot_dtype_name(leaf->type.dtype),
          (int)(leaf->n_names ? leaf->names[0].size : 0), leaf->n_names ? leaf->names[0].data : "");
  return s->e.status;
}

static aot_status_t visit_parameter(sharding_t *s, const aot_port_t *port) {
  em_t *e = &s->e;
  const aot_value_t v = port->value;
  const aot_leaf_t id = {port->index};
  aot_leaf_info_t leaf = {.struct_size = sizeof leaf};
  AOT_TRY(s->graph->leaf_info(e->prog, id, &leaf));
  if (!is_tensor_of_numbers(&leaf.type)) return refuse(s, "", "a parameter has symbolic sizes");
  AOT_TRY(check_gradient(s, &leaf));
  const int64_t n_rows = leaf.type.rank ? leaf.type.sizes[0] : 1;
  s->counts.all_nbytes += nbytes_of(&leaf.type);
  e->before.id = s->reader[v.id];
  e->flags = s->options.mode == FS_SHARD_GRAD ? AOT_NODE_MUST_SAVE : AOT_NODE_MUST_RECOMPUTE;
  if (is_worth_sharding(s, id.id, &leaf.type)) {
    take_rows(s, id, &leaf, v);
    if (e->status == AOT_OK && s->graph->n_uses(e->prog, v)) gather(s, v, n_rows);
    return e->status;
  }
  s->counts.n_whole++;
  s->counts.whole_nbytes += nbytes_of(&leaf.type);
  e->flags = AOT_NODE_MUST_RECOMPUTE;
  if ((leaf.flags & AOT_LEAF_REQUIRES_GRAD) && s->graph->n_uses(e->prog, v)) copy_to_ranks(s, v);
  return e->status;
}

/* ---- the loss ---- */

static aot_status_t mean_loss(sharding_t *s) {
  em_t *e = &s->e;
  e->before = aot_no_node();
  e->flags = 0;
  for (uint32_t i = 0; i < s->graph->n_outputs(e->prog, e->graph) && e->status == AOT_OK; i++) {
    const aot_port_t port = s->graph->outputs(e->prog, e->graph)[i];
    if ((port.role != AOT_ROLE_LOSS && port.role != AOT_ROLE_USER_OUTPUT) || port.index != s->options.loss) continue;
    const aot_type_t t = em_type(e, em_v(port.value));
    if (t.kind != AOT_TYPE_TENSOR || t.rank != 0 || !aot_dtype_is_float(t.dtype)) continue;
    const em_x_t share = em_mul(e, em_v(port.value), em_f(1.0 / s->options.n_ranks));
    const aot_value_t mean = em_value(e, EM(e, "aot.sum_over_ranks.default", share, world()));
    if (em_ok(e, AOT_OK)) em_ok(e, e->host->edit->output_set(e->prog, e->graph, i, mean));
  }
  return e->status;
}

aot_status_t fs_run(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const fs_options_t *options,
                    const aot_ext_leaf_part_t *part, fs_counts_t *out) {
  sharding_t s = {.e = em_make(host, ctx, prog, host->graph->graph_find(prog, AOT_GRAPH_FORWARD)),
                  .graph = host->graph,
                  .options = *options,
                  .part = part};
  if (s.options.mode != FS_HYBRID) s.options.n_columns = s.options.n_ranks;
  snprintf(s.row_name, sizeof s.row_name, AOT_RANKS_ROWS "%u", s.options.n_columns);
  snprintf(s.column_name, sizeof s.column_name, AOT_RANKS_COLUMNS "%u", s.options.n_columns);
  s.e.code = "fsdp";
  s.e.what = "the program";
  s.reader = em_scratch(&s.e, host->graph->n_values(prog), sizeof *s.reader);
  s.is_shared = em_scratch(&s.e, host->graph->n_leaves(prog), 1);
  if (s.e.status != AOT_OK) return s.e.status;
  AOT_TRY(find_readers(&s));
  AOT_TRY(check_outputs(&s));
  AOT_TRY(find_shared(&s));
  for (uint32_t i = 0; i < host->graph->n_inputs(prog, s.e.graph); i++) {
    const aot_port_t port = host->graph->inputs(prog, s.e.graph)[i];
    if (port.role == AOT_ROLE_PARAMETER) AOT_TRY(visit_parameter(&s, &port));
  }
  AOT_TRY(mean_loss(&s));
  *out = s.counts;
  return AOT_OK;
}
