#include "at_world.h"

#include <aot/plugin.h>
#include <bridge.h>
#include <ir/tables.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

void world_open(at_world_t *w) {
  aot_str_t why = {NULL, 0};
  const aot_plugin_t *plugin = aot_plugin_entry(AOT_ABI_EPOCH, AOT_ABI_MINOR, &why);
  const aot_opts_t opts = {.struct_size = sizeof opts};
  const aot_table_t *table = NULL;
  memset(w, 0, sizeof *w);
  w->session = kit_arena_create();
  w->scratch = kit_arena_create();
  w->values = kit_arena_create();
  w->sink = aoth_sink_create(NULL);
  w->ops = aoth_ops_create();
  w->ctx.sink = w->sink;
  w->ctx.session = w->session;
  w->ctx.scratch = w->scratch;
  w->host = aoth_bridge_host(w->session, AOT_ABI_MINOR);
  assert_non_null(plugin);
  assert_non_null(w->host);
  assert_int_equal(plugin->units[0]->create(plugin->units[0], &w->ctx, w->host, &opts, &table), AOT_OK);
  assert_int_equal(aoth_ops_add(w->ops, (const aot_opset_t *)(const void *)table, "aten", w->sink), AOT_OK);
}

void world_close(at_world_t *w) {
  if (w->p) aoth_prog_destroy(w->p);
  aoth_ops_destroy(w->ops);
  aoth_sink_destroy(w->sink);
  kit_arena_destroy(w->session);
  kit_arena_destroy(w->scratch);
  kit_arena_destroy(w->values);
}

void world_begin(at_world_t *w) {
  if (w->p) aoth_prog_destroy(w->p);
  aoth_sink_destroy(w->sink);
  w->ctx.sink = w->sink = aoth_sink_create(NULL);
  kit_arena_reset(w->values);
  kit_arena_reset(w->scratch);
  w->ctx.n_diags = 0;
  w->ctx.prog = w->p = aoth_prog_create(w->ops, &w->ctx);
  w->n_tensors = 4096;
  w->tensors = kit_arena_alloc(w->values, 8, w->n_tensors * sizeof *w->tensors);
  w->why[0] = '\0';
  assert_int_equal(aoth_edit_graph_create(w->p, AOT_GRAPH_REGION, aot_str("test"), &w->graph), AOT_OK);
}

static int failed(at_world_t *w, const char *what) {
  snprintf(w->why, sizeof w->why, "%s: %s", what, aoth_sink_text(w->sink));
  return 0;
}

static void keep(at_world_t *w, aot_value_t v, const rk_tensor_t *t) {
  assert_true(v.id < w->n_tensors);
  w->tensors[v.id] = *t;
}

aot_value_t world_input(at_world_t *w, const rk_tensor_t *t) {
  aot_type_t type;
  aot_value_t v;
  memset(&type, 0, sizeof type);
  type.kind = AOT_TYPE_TENSOR;
  type.dtype = t->dtype;
  type.rank = t->rank;
  type.sizes = t->sizes;
  type.strides = t->strides;
  type.offset = t->offset;
  assert_int_equal(
      aoth_edit_input_add(w->p, w->graph, AOT_ROLE_REGION, aoth_graph_n_inputs(w->p, w->graph), &type, aot_str(""), &v),
      AOT_OK);
  keep(w, v, t);
  return v;
}

aot_value_t world_result(at_world_t *w, aot_node_t n, uint32_t i) {
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_value_t v;
  assert_int_equal(aoth_graph_node_info(w->p, n, &info), AOT_OK);
  assert_true(i < info.n_results);
  v.id = info.first_result.id + i;
  return v;
}

void world_output(at_world_t *w, aot_value_t v) {
  assert_int_equal(
      aoth_edit_output_add(w->p, w->graph, AOT_ROLE_REGION, aoth_graph_n_outputs(w->p, w->graph), v, aot_str("")),
      AOT_OK);
}

aot_node_t world_node(at_world_t *w, const char *op, const aot_arg_t *args, uint32_t n_args) {
  aot_node_spec_t s;
  aot_node_t n = aot_no_node();
  aot_node_info_t info = {.struct_size = sizeof info};
  uint32_t i;
  memset(&s, 0, sizeof s);
  s.struct_size = sizeof s;
  s.op = aoth_ops_find(w->ops, aot_str(op));
  s.n_args = n_args;
  s.args = args;
  s.origin = aot_no_origin();
  if (aoth_edit_node_create(w->p, w->graph, &s, aot_no_node(), &n) != AOT_OK) {
    failed(w, op);
    return aot_no_node();
  }
  assert_int_equal(aoth_graph_node_info(w->p, n, &info), AOT_OK);
  for (i = 0; i < info.n_results; i++) world_output(w, world_result(w, n, i));
  return n;
}

/* ---- decomposition to a fixed point ---- */

static int replace(at_world_t *w, aot_node_t n, const aot_value_t *by) {
  aot_node_info_t info = {.struct_size = sizeof info};
  uint32_t i, k;
  assert_int_equal(aoth_graph_node_info(w->p, n, &info), AOT_OK);
  for (i = 0; i < info.n_results; i++) {
    aot_value_t old = {info.first_result.id + i};
    aot_type_t was, is;
    aoth_graph_value_type(w->p, old, &was);
    if (by[i].id == AOT_NO_ID) { /* an absent result: only outputs of this test read it */
      for (k = 0; k < aoth_graph_n_outputs(w->p, w->graph); k++)
        if (aoth_graph_outputs(w->p, w->graph)[k].value.id == old.id) aoth_edit_output_set(w->p, w->graph, k, by[i]);
      if (was.kind != AOT_TYPE_NONE) return failed(w, "a result that exists was given up");
      continue;
    }
    aoth_graph_value_type(w->p, by[i], &is);
    if (is.kind != was.kind || is.dtype != was.dtype || is.rank != was.rank ||
        (was.rank && memcmp(is.sizes, was.sizes, (size_t)was.rank * sizeof *was.sizes) != 0)) {
      snprintf(w->why, sizeof w->why, "result %u becomes a value of another type: %s rank %d, not %s rank %d", i,
               aot_dtype_name(is.dtype), (int)is.rank, aot_dtype_name(was.dtype), (int)was.rank);
      return 0;
    }
    if (aoth_edit_uses_replace(w->p, old, by[i]) != AOT_OK) return failed(w, "uses_replace");
  }
  return aoth_edit_node_erase(w->p, n) == AOT_OK || failed(w, "node_erase");
}

int world_decompose(at_world_t *w) {
  aot_value_t by[WORLD_MAX_RESULTS];
  int again = 1, rounds = 0;
  while (again) {
    aot_node_t n = aoth_graph_first(w->p, w->graph), next;
    again = 0;
    if (++rounds > 20) return failed(w, "decompositions do not come to an end");
    for (; n.id != AOT_NO_ID; n = next) {
      aot_status_t status = aoth_edit_decompose(w->p, n, by);
      next = aoth_graph_next(w->p, n);
      if (status == AOT_E_UNIMPLEMENTED && w->ctx.n_diags == 0) continue;
      if (status != AOT_OK) return failed(w, "decompose");
      if (!replace(w, n, by)) return 0;
      again = 1;
    }
  }
  return 1;
}

/* ---- evaluation ---- */

static rk_tensor_t make_tensor(at_world_t *w, const aot_type_t *t) {
  rk_tensor_t r;
  int64_t span = 1;
  int32_t d;
  memset(&r, 0, sizeof r);
  if (t->kind != AOT_TYPE_TENSOR) return r;
  r.dtype = t->dtype;
  r.rank = t->rank;
  r.offset = t->offset;
  for (d = 0; d < t->rank; d++) {
    r.sizes[d] = t->sizes[d];
    r.strides[d] = t->strides[d];
    span += t->sizes[d] ? (t->sizes[d] - 1) * t->strides[d] : 0;
  }
  r.nbytes = (uint64_t)(r.offset + span) * aot_dtype_size(r.dtype);
  r.data = kit_arena_alloc(w->values, 16, (size_t)r.nbytes);
  return r;
}

/* Results are made contiguous: what a view means does not depend on its layout. */
static void plain_layout(at_world_t *w, aot_type_t *t, int64_t *strides) {
  int64_t step = 1;
  int32_t d;
  (void)w;
  for (d = t->rank - 1; d >= 0; d--) {
    strides[d] = step;
    step *= t->sizes[d] > 1 ? t->sizes[d] : 1;
  }
  t->strides = strides;
  t->offset = 0;
}

static rk_arg_t give_arg(at_world_t *w, const aot_arg_t *a) {
  rk_arg_t r;
  uint32_t i;
  memset(&r, 0, sizeof r);
  r.kind = a->kind;
  r.n = a->n;
  switch (a->kind) {
    case AOT_ARG_VALUE: r.u.tensor = &w->tensors[a->u.i]; break;
    case AOT_ARG_VALUES: {
      const rk_tensor_t **list = kit_arena_alloc(w->values, 8, (a->n + 1) * sizeof *list);
      for (i = 0; i < a->n; i++) list[i] = a->u.ids[i] == AOT_NO_ID ? NULL : &w->tensors[a->u.ids[i]];
      r.u.tensors = list;
      break;
    }
    case AOT_ARG_INTS:
    case AOT_ARG_BOOLS: r.u.ints = a->u.ints; break;
    case AOT_ARG_FLOATS: r.u.floats = a->u.floats; break;
    case AOT_ARG_FLOAT: r.u.f = a->u.f; break;
    case AOT_ARG_STR: r.u.chars = a->u.chars; break;
    default: r.u.i = a->u.i; break;
  }
  return r;
}

static int run_node(at_world_t *w, aot_node_t n) {
  aot_node_info_t info = {.struct_size = sizeof info};
  const aot_op_desc_t *op;
  const rk_kernel_t *kernel;
  rk_arg_t args[64];
  rk_tensor_t results[WORLD_MAX_RESULTS];
  int64_t strides[AOT_MAX_RANK];
  rk_call_t call = {args, 0, results, 0};
  rk_error_t error;
  uint32_t i;
  aoth_graph_node_info(w->p, n, &info);
  op = aoth_ops_desc(w->ops, info.op);
  kernel = rk_find(op->name);
  if (kernel == NULL && strcmp(op->name.data, "aten.copy_.default") == 0) { /* nothing reads the written tensor later */
    keep(w, info.first_result, &w->tensors[info.args[1].u.i]);
    return 1;
  }
  if (kernel == NULL) {
    snprintf(w->why, sizeof w->why, "no kernel for %.*s", (int)op->name.size, op->name.data);
    return 0;
  }
  for (i = 0; i < info.n_args; i++) args[i] = give_arg(w, &info.args[i]);
  call.n_args = info.n_args;
  for (i = 0; i < info.n_results; i++) {
    aot_value_t v = {info.first_result.id + i};
    aot_type_t t;
    aoth_graph_value_type(w->p, v, &t);
    if (t.kind == AOT_TYPE_TENSOR) plain_layout(w, &t, strides);
    results[i] = make_tensor(w, &t);
  }
  call.n_results = info.n_results;
  if (rk_run(kernel, &call, &error) != AOT_OK) {
    snprintf(w->why, sizeof w->why, "%.300s", error.text);
    return 0;
  }
  for (i = 0; i < info.n_results; i++) {
    aot_value_t v = {info.first_result.id + i};
    keep(w, v, &results[i]);
  }
  return 1;
}

int world_run(at_world_t *w) {
  aot_node_t n;
  for (n = aoth_graph_first(w->p, w->graph); n.id != AOT_NO_ID; n = aoth_graph_next(w->p, n))
    if (!run_node(w, n)) return 0;
  return 1;
}

const rk_tensor_t *world_tensor(const at_world_t *w, aot_value_t v) {
  return v.id == AOT_NO_ID || w->tensors[v.id].dtype == 0 ? NULL : &w->tensors[v.id];
}

const rk_tensor_t *world_output_tensor(const at_world_t *w, uint32_t i) {
  return world_tensor(w, aoth_graph_outputs(w->p, w->graph)[i].value);
}

void world_show(at_world_t *w) {
  kit_text_t text = {0};
  aoth_print(w->p, &text);
  if (text.data) print_message("%s", text.data);
  kit_text_deinit(&text);
}

/* ---- numbers ---- */

double world_element(const rk_tensor_t *t, const int64_t *index) {
  rk_tensor_t one = *t, to;
  double v = 0;
  int32_t d;
  memset(&to, 0, sizeof to);
  for (d = 0; d < t->rank; d++) one.offset += index[d] * t->strides[d];
  one.rank = 0;
  to.data = &v;
  to.nbytes = sizeof v;
  to.dtype = AOT_F64;
  rk_copy(&to, &one);
  return v;
}

/* [..] complex as [.., 2] real. */
static rk_tensor_t as_real(const rk_tensor_t *t) {
  rk_tensor_t r = *t;
  r.dtype = aot_dtype_part(t->dtype);
  r.offset *= 2;
  for (int32_t d = 0; d < r.rank; d++) r.strides[d] *= 2;
  r.sizes[r.rank] = 2;
  r.strides[r.rank++] = 1;
  return r;
}

double world_distance(const rk_tensor_t *got, const rk_tensor_t *want) {
  if (aot_dtype_is_complex(got->dtype) && got->dtype == want->dtype) {
    const rk_tensor_t a = as_real(got), b = as_real(want);
    return world_distance(&a, &b);
  }
  double tolerance = want->dtype == AOT_BF16 || want->dtype == AOT_F16 ? 2e-2 : want->dtype == AOT_F32 ? 2e-5 : 1e-9;
  double worst = 0, largest = 0;
  int64_t index[AOT_MAX_RANK] = {0}, n = rk_numel(want), e;
  int32_t d, pass;
  if (got->dtype != want->dtype || got->rank != want->rank) return 1e30;
  for (d = 0; d < got->rank; d++)
    if (got->sizes[d] != want->sizes[d]) return 1e30;
  for (pass = 0; pass < 2; pass++) {
    memset(index, 0, sizeof index);
    for (e = 0; e < n; e++) {
      double a = world_element(got, index), b = world_element(want, index);
      if (pass == 0 && isfinite(b)) largest = fmax(largest, fabs(b));
      if (pass == 1 && a != b && !(a != a && b != b))
        worst =
            fmax(worst, isfinite(a - b) ? fabs(a - b) / (tolerance * (0.5 * fabs(b) + 0.5 * largest) + 1e-7) : 1e30);
      for (d = want->rank - 1; d >= 0 && ++index[d] == want->sizes[d]; d--) index[d] = 0;
    }
  }
  return worst;
}

/* Floats in (-1.5, 1.5), integers in [0, 3), booleans. */
rk_tensor_t world_random(at_world_t *w, int32_t dtype, const int64_t *sizes, int32_t rank, uint32_t seed) {
  int64_t strides[AOT_MAX_RANK];
  aot_type_t t;
  rk_tensor_t r;
  int64_t i, n;
  memset(&t, 0, sizeof t);
  t.kind = AOT_TYPE_TENSOR;
  t.dtype = dtype;
  t.rank = rank;
  t.sizes = sizes;
  plain_layout(w, &t, strides);
  r = make_tensor(w, &t);
  n = rk_numel(&r);
  for (i = 0; i < n; i++) {
    double v;
    rk_tensor_t from, to = r;
    seed = seed * 1664525u + 1013904223u;
    v = (double)(seed >> 8) / (double)(1u << 24) * 3.0 - 1.5;
    if (!aot_dtype_is_float(dtype)) v = dtype == AOT_BOOL ? v > 0 : floor(v + 1.5);
    memset(&from, 0, sizeof from);
    from.data = &v;
    from.nbytes = sizeof v;
    from.dtype = AOT_F64;
    to.rank = 0;
    to.offset = i;
    rk_copy(&to, &from);
  }
  return r;
}
