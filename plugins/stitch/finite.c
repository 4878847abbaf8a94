/* Finite checks and loss scaling as nodes. The arithmetic of the scale is _amp_update_scale_ of PyTorch 2.11
 * (aten/src/ATen/native/cpu/AmpGradScalerKernels.cpp): products in double, rounded to float once; a growth to infinity
 * is skipped. */
#include "finite.h"

#include "kit/emit/emit_layout.h"
#include "over_ranks.h"
#include <string.h>

/* ---- leaves ---- */

static aot_leaf_t add_leaf(em_t *e, const char *name, int32_t dtype, const void *data, uint64_t nbytes) {
  const aot_str_t text = aot_str(name);
  const aot_leaf_info_t leaf = {.struct_size = sizeof leaf,
                                .role = AOT_ROLE_STATE,
                                .n_names = 1,
                                .names = &text,
                                .type = {.kind = AOT_TYPE_TENSOR, .dtype = dtype, .device = AOT_DEVICE_CPU},
                                .data = data,
                                .nbytes = nbytes};
  aot_leaf_t made = {AOT_NO_ID};
  if (em_ok(e, AOT_OK)) em_ok(e, e->host->edit->leaf_create(e->prog, &leaf, &made));
  const aot_rule_t rule = {.kind = AOT_RULE_COPY_BACK, .a = made.id};
  if (em_ok(e, AOT_OK)) em_ok(e, e->host->edit->rule_add(e->prog, &rule));
  return made;
}

void st_finite_create(st_finite_t *f, em_t *e, const st_scaling_t *scaling) {
  *f = (st_finite_t){.scaling = *scaling, .scale_now = em_none(), .is_finite = em_none()};
  if (scaling->first == 0) {
    f->culprit = add_leaf(e, "check-finite.leaf", AOT_I64, NULL, 0);
    return;
  }
  float *first = e->host->alloc(e->host, e->ctx, AOT_ARENA_GRAPH, sizeof *first, sizeof *first);
  if (!first) {
    em_ok(e, AOT_E_EXHAUSTED);
    return;
  }
  *first = (float)scaling->first;
  f->scale = add_leaf(e, "loss-scale.scale", AOT_F32, first, sizeof *first);
  f->in_a_row = add_leaf(e, "loss-scale.in-a-row", AOT_I64, NULL, 0);
  f->skipped = add_leaf(e, "loss-scale.skipped", AOT_I64, NULL, 0);
}

static em_x_t take(em_t *e, aot_leaf_t id) {
  aot_leaf_info_t leaf = {.struct_size = sizeof leaf};
  aot_value_t v = aot_no_value();
  if (em_ok(e, e->host->graph->leaf_info(e->prog, id, &leaf)))
    em_ok(e, e->host->edit->input_add(e->prog, e->graph, AOT_ROLE_STATE, id.id, &leaf.type, leaf.names[0], &v));
  return em_v(v);
}

static void put(em_t *e, aot_leaf_t id, em_x_t value) {
  const aot_value_t v = em_value(e, value);
  if (em_ok(e, AOT_OK))
    em_ok(e, e->host->edit->output_add(e->prog, e->graph, AOT_ROLE_UPDATE, id.id, v, (aot_str_t){"", 0}));
}

void st_scale_take(st_finite_t *f, em_t *e) { f->scale_now = take(e, f->scale); }

/* ---- are they finite? ---- */

/* The largest absolute value, a 0-dim double: NaN and infinity pass through a maximum. */
static em_x_t largest(em_t *e, em_x_t g) {
  const em_x_t real = em_is_complex(e, g) ? EM(e, "view_as_real", g) : g;
  return em_cast(e, EM(e, "amax", EM(e, "abs", real), em_list(e, NULL, 0)), AOT_F64);
}

static void unscale(st_finite_t *f, em_t *e, uint32_t *gradients, uint32_t n_leaves) {
  const em_x_t inverse = em_cast(e, EM(e, "reciprocal", em_cast(e, f->scale_now, AOT_F64)), AOT_F32);
  for (uint32_t i = 0; i < n_leaves; i++) {
    if (gradients[i] == AOT_NO_ID) continue;
    const em_x_t g = em_v((aot_value_t){gradients[i]});
    gradients[i] = em_value(e, em_mul(e, g, em_cast(e, inverse, aot_dtype_part(em_type(e, g).dtype)))).id;
  }
}

/* Ranks with parts of a gradient agree on the largest of all: one collective over those of all gradients. */
static void agree(em_t *e, em_x_t *most, uint32_t n) {
  uint32_t *ids = em_scratch(e, n, sizeof *ids);
  for (uint32_t k = 0; k < n && ids; k++) ids[k] = em_value(e, most[k]).id;
  if (!ids) return;
  const em_x_t all = st_over_ranks(e, EM(e, "stack", aot_arg_values(ids, n)), "max", aot_str(AOT_RANKS_ALL));
  for (uint32_t k = 0; k < n; k++) most[k] = EM(e, "select.int", all, em_i(0), em_i(k));
}

void st_finite_check(st_finite_t *f, em_t *e, uint32_t *gradients, uint32_t n_leaves, int is_sharded) {
  uint32_t *all = em_scratch(e, n_leaves, sizeof *all), *leaf = em_scratch(e, n_leaves, sizeof *leaf), n = 0;
  em_x_t *most = em_scratch(e, n_leaves, sizeof *most), culprit = em_none();
  if (!all || !leaf || !most) return;
  if (f->culprit.id != AOT_NO_ID) culprit = take(e, f->culprit);
  /* from the last to the first, which has the last word */
  for (uint32_t i = n_leaves; i-- > 0 && e->status == AOT_OK;) {
    const em_x_t g = em_v((aot_value_t){gradients[i]});
    if (gradients[i] == AOT_NO_ID) continue;
    const aot_type_t t = em_type(e, g);
    if (em_numel(e, &t) == 0) continue;
    leaf[n] = i;
    most[n++] = largest(e, g);
  }
  if (n == 0) return;
  if (is_sharded) agree(e, most, n);
  for (uint32_t k = 0; k < n; k++) {
    all[k] = em_value(e, most[k]).id;
    if (!em_is_none(culprit)) culprit = EM(e, "where.self", EM(e, "isfinite", most[k]), culprit, em_i(leaf[k]));
  }
  f->is_finite = EM(e, "isfinite", EM(e, "amax", EM(e, "stack", aot_arg_values(all, n)), em_list(e, NULL, 0)));
  if (f->scaling.first > 0) unscale(f, e, gradients, n_leaves);
  else put(e, f->culprit, culprit);
}

/* ---- the scale of the next step ---- */

static em_x_t times(em_t *e, em_x_t scale, double factor) {
  return em_cast(e, em_mul(e, em_cast(e, scale, AOT_F64), em_f(factor)), AOT_F32);
}

void st_finite_update(st_finite_t *f, em_t *e) {
  if (f->scaling.first == 0 || em_is_none(f->is_finite)) return;
  const em_x_t skipped = take(e, f->skipped), one_more = em_add(e, take(e, f->in_a_row), em_i(1));
  const em_x_t grown = times(e, f->scale_now, f->scaling.growth);
  const em_x_t is_due = EM(e, "eq.Scalar", one_more, em_i(f->scaling.interval));
  const em_x_t grows = EM(e, "logical_and", is_due, EM(e, "isfinite", grown));
  const em_x_t taken = EM(e, "where.self", grows, grown, f->scale_now);
  put(e, f->scale, EM(e, "where.self", f->is_finite, taken, times(e, f->scale_now, f->scaling.backoff)));
  const em_x_t goes_on = EM(e, "logical_and", f->is_finite, EM(e, "logical_not", is_due));
  put(e, f->in_a_row, EM(e, "where.self", goes_on, one_more, em_i(0)));
  put(e, f->skipped, EM(e, "where.self", f->is_finite, skipped, em_add(e, skipped, em_i(1))));
}
