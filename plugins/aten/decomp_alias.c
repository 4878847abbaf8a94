/* Operators that are others by another name, or others put together: stacking, padding by mode, grids, small losses. */
#include "at_formula.h"

#include <math.h>
#include <string.h>

/* x_copy: clones of what x shows */
aot_status_t at_dc_view_copy(em_t *e, aot_value_t *out) {
  char name[96];
  const char *mark = strstr(at_name(e), "_copy");
  uint32_t i;
  em_x_t first;
  if (mark == NULL || strlen(at_name(e)) >= sizeof name) return AOT_E_UNIMPLEMENTED;
  memcpy(name, at_name(e), (size_t)(mark - at_name(e)));
  strcpy(name + (mark - at_name(e)), mark + 5);
  first = em_call(e, name, e->info.n_args, e->info.args);
  for (i = 0; i < e->info.n_results; i++)
    out[i] = VAL(EM(e, "clone", em_nth(first, i), aot_arg_int_kind(AOT_ARG_MEMORY_FORMAT, AOT_MEMORY_CONTIGUOUS)));
  return e->status;
}

/* hstack, vstack: low ranks get dimensions, then cat */
aot_status_t at_dc_stack_rows(em_t *e, aot_value_t *out) {
  em_x_t list = IN("tensors");
  int vertical = strcmp(at_name(e), "aten.vstack.default") == 0;
  int32_t least = vertical ? 2 : 1, rank = at_result_type(e, 0).rank;
  uint32_t *ids = e->host->alloc(e->host, e->ctx, AOT_ARENA_SCRATCH, sizeof *ids, list.n * sizeof *ids), i;
  if (ids == NULL) return AOT_E_EXHAUSTED;
  for (i = 0; i < list.n; i++) {
    aot_value_t v;
    em_x_t x;
    v.id = list.u.ids[i];
    x = em_v(v);
    while (e->status == AOT_OK && TYPE(x).rank < least) x = at_unsqueeze(e, x, 0);
    ids[i] = VAL(x).id;
  }
  return at_give(e, EM(e, "cat", aot_arg_values(ids, list.n), em_i(vertical || rank == 1 ? 0 : 1)), out);
}

/* indexing="xy" exchanges the first two dimensions */
aot_status_t at_dc_meshgrid(em_t *e, aot_value_t *out) {
  em_x_t list = IN("tensors");
  int columns_first = at_in_str_is(e, "indexing", "xy") && list.n > 1;
  uint32_t i;
  for (i = 0; i < e->info.n_results && i < list.n; i++) {
    aot_type_t t = at_result_type(e, i);
    int32_t dim = (int32_t)(columns_first && i < 2 ? 1 - i : i);
    aot_value_t v;
    v.id = list.u.ids[i];
    out[i] = VAL(at_expanded(e, at_along(e, em_v(v), dim, t.rank), t.sizes, t.rank));
  }
  return e->status;
}

aot_status_t at_dc_diag(em_t *e, aot_value_t *out) {
  if (TYPE(IN("self")).rank == 1) return at_give(e, EM(e, "diag_embed", IN("self"), IN("diagonal")), out);
  return at_give(e,
                 EM(e, "clone", EM(e, "diagonal", IN("self"), IN("diagonal")),
                    aot_arg_int_kind(AOT_ARG_MEMORY_FORMAT, AOT_MEMORY_CONTIGUOUS)),
                 out);
}

/* pad: constant, circular, reflect or replicate; the last two by the number of padded dimensions */
aot_status_t at_dc_pad(em_t *e, aot_value_t *out) {
  const int64_t *pad;
  uint32_t n = at_in_ints(e, "pad", &pad);
  int reflect = at_in_str_is(e, "mode", "reflect");
  char name[48];
  if (at_in_str_is(e, "mode", "constant"))
    return at_give(e, EM(e, "constant_pad_nd", IN("self"), IN("pad"), at_in_has(e, "value") ? IN("value") : em_i(0)),
                   out);
  if (at_in_str_is(e, "mode", "circular")) return at_give(e, EM(e, "_pad_circular", IN("self"), IN("pad")), out);
  if ((!reflect && !at_in_str_is(e, "mode", "replicate")) || n < 2 || n > 6 || n % 2) {
    em_fail(e, AOT_E_UNIMPLEMENTED, "use constant, reflect, replicate or circular",
            "pad of %u numbers in this mode is not supported", n);
    return e->status;
  }
  strcpy(name, reflect ? "reflection_padNd" : "replication_padNd");
  name[strlen(name) - 2] = (char)('0' + n / 2);
  return at_give(e, EM(e, name, IN("self"), IN("pad")), out);
}

aot_status_t at_dc_grid_sampler(em_t *e, aot_value_t *out) {
  return at_give(
      e, em_call(e, TYPE(IN("input")).rank == 4 ? "grid_sampler_2d" : "grid_sampler_3d", e->info.n_args, e->info.args),
      out);
}

aot_status_t at_dc_max_pool1d(em_t *e, aot_value_t *out) {
  static const struct {
    const char *name;
    int64_t flat;
  } lists[4] = {{"kernel_size", 1}, {"stride", 1}, {"padding", 0}, {"dilation", 1}};
  em_x_t args[6], y;
  int64_t kernel = 1;
  uint32_t i;
  args[0] = EM(e, "unsqueeze", IN("self"), em_i(-2));
  for (i = 0; i < 4; i++) {
    const int64_t *list;
    int64_t pair[2];
    uint32_t n = at_in_ints(e, lists[i].name, &list);
    pair[0] = lists[i].flat;
    pair[1] = n ? list[0] : kernel;
    if (i == 0) kernel = pair[1];
    args[1 + i] = em_list(e, pair, 2);
  }
  args[5] = IN("ceil_mode");
  y = em_call(e, "max_pool2d_with_indices", 6, args);
  return at_give(e, EM(e, "squeeze.dim", y, em_i(-2)), out);
}

/* inner products over the last dimensions: rows of a times rows of b */
aot_status_t at_dc_inner(em_t *e, aot_value_t *out) {
  em_x_t a = IN("self"), b = IN("other");
  aot_type_t ta = TYPE(a), tb = TYPE(b), t = at_result_type(e, 0);
  int64_t sizes[2];
  if (ta.rank == 0 || tb.rank == 0) return at_give(e, MUL(a, b), out);
  sizes[1] = ta.sizes[ta.rank - 1];
  sizes[0] = at_numel(at_infer(e), ta.sizes, ta.rank - 1);
  a = at_reshaped(e, a, sizes, 2);
  sizes[0] = at_numel(at_infer(e), tb.sizes, tb.rank - 1);
  b = EM(e, "transpose.int", at_reshaped(e, b, sizes, 2), em_i(0), em_i(1));
  return at_give(e, at_reshaped(e, EM(e, "mm", a, b), t.sizes, t.rank), out);
}

/* equal, or finite and near; nan is near nan when asked */
aot_status_t at_dc_isclose(em_t *e, aot_value_t *out) {
  em_x_t a = IN("self"), b = IN("other"), close = EQ(a, b);
  if (!at_is_integral(TYPE(a).dtype)) {
    em_x_t d = ABS(SUB(a, b)), border = ADD(MUL(ABS(b), IN("rtol")), IN("atol"));
    close = EM(e, "logical_or", close, EM(e, "logical_and", LT(d, em_f(INFINITY)), LE(d, border)));
    if (at_in_int(e, "equal_nan", 0)) close = EM(e, "logical_or", close, EM(e, "logical_and", NE(a, a), NE(b, b)));
  }
  return at_give(e, close, out);
}

/* gather takes no negative indices, take_along_dim counts them from the end of n elements. */
static em_x_t from_the_end(em_t *e, em_x_t index, int64_t n) {
  return WHERE(LT(index, em_i(0)), ADD(index, em_i(n)), index);
}

aot_status_t at_dc_take_along_dim(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self"), index = IN("indices");
  aot_type_t t = TYPE(x), to = at_result_type(e, 0);
  int64_t sizes[AOT_MAX_RANK], flat;
  int32_t dim;
  if (!at_in_has(e, "dim")) {
    flat = at_numel(at_infer(e), t.sizes, t.rank);
    index = from_the_end(e, at_reshaped(e, index, to.sizes, 1), flat);
    return at_give(e, EM(e, "gather", at_reshaped(e, x, &flat, 1), em_i(0), index), out);
  }
  dim = at_wrap(at_infer(e), at_in_int(e, "dim", 0), t.rank);
  index = from_the_end(e, index, t.sizes[dim]);
  memcpy(sizes, to.sizes, (size_t)to.rank * sizeof *sizes);
  sizes[dim] = t.sizes[dim];
  return at_give(
      e, EM(e, "gather", at_expanded(e, x, sizes, to.rank), em_i(dim), at_expanded(e, index, to.sizes, to.rank)), out);
}

/* embedding_bag: a padding_idx that counts from the end is brought to the front, none becomes -1 */
aot_status_t at_dc_embedding_bag(em_t *e, aot_value_t *out) {
  em_x_t args[9];
  uint32_t i, padded = at_in_has(e, "padding_idx");
  static const char *const names[8] = {"weight",
                                       "indices",
                                       "offsets",
                                       "scale_grad_by_freq",
                                       "mode",
                                       "sparse",
                                       "per_sample_weights",
                                       "include_last_offset"};
  for (i = 0; i < 8; i++) args[i] = IN(names[i]);
  args[8] = em_i(padded ? at_in_int(e, "padding_idx", 0) : -1);
  if (padded && args[8].u.i < 0) args[8] = em_i(at_add(at_infer(e), args[8].u.i, TYPE(args[0]).sizes[0]));
  args[0] = em_call(e, "_embedding_bag", 9, args);
  for (i = 0; i < e->info.n_results; i++) out[i] = VAL(em_nth(args[0], i));
  return e->status;
}

/* ---- small losses ---- */

static aot_status_t give_reduced(em_t *e, em_x_t loss, aot_value_t *out) {
  return at_give_cast(e, at_reduced(e, loss, at_in_int(e, "reduction", 1)), out);
}

aot_status_t at_dc_margin_ranking_loss(em_t *e, aot_value_t *out) {
  em_x_t d = MUL(NEG(IN("target")), SUB(IN("input1"), IN("input2")));
  return give_reduced(e, EM(e, "clamp", ADD(d, IN("margin")), em_f(0.0)), out);
}

/* x where target is 1, max(0, margin - x) where it is -1 */
aot_status_t at_dc_hinge_embedding_loss(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self"), t = IN("target");
  em_x_t apart = WHERE(NE(t, em_i(1)), EM(e, "clamp", SUB(IN("margin"), x), em_f(0.0)), em_f(0.0));
  em_x_t near = WHERE(NE(t, em_i(-1)), x, em_f(0.0));
  return give_reduced(e, ADD(apart, near), out);
}

/* exp(x) - t x, or x - t log(x + eps); with `full` Stirling's term where t > 1 */
aot_status_t at_dc_poisson_nll_loss(em_t *e, aot_value_t *out) {
  em_x_t x = IN("input"), t = IN("target"), loss;
  if (at_in_int(e, "log_input", 1)) loss = SUB(EXP(x), MUL(t, x));
  else loss = SUB(x, MUL(t, LOG(ADD(x, IN("eps")))));
  if (at_in_int(e, "full", 0)) {
    em_x_t stirling = ADD(SUB(MUL(t, LOG(t)), t), MUL(LOG(MUL(t, em_f(2.0 * 3.14159265358979323846))), em_f(0.5)));
    loss = ADD(loss, WHERE(LE(t, em_f(1.0)), em_f(0.0), stirling));
  }
  return give_reduced(e, loss, out);
}

/* max(|x|, eps), with the derivative of |x| everywhere: 0 where x is 0 (PyTorch clamps in place, under no_grad). */
static em_x_t norm_at_least(em_t *e, em_x_t x, int64_t dim, em_x_t eps) {
  em_x_t norm = EM(e, "linalg_vector_norm", x, em_f(2.0), aot_arg_ints(&dim, 1), em_b(1));
  return ADD(norm, EM(e, "detach", SUB(EM(e, "clamp", norm, eps), norm)));
}

/* x1 x2 / (max(|x1|, eps) max(|x2|, eps)) */
aot_status_t at_dc_cosine_similarity(em_t *e, aot_value_t *out) {
  em_x_t a = IN("x1"), b = IN("x2"), na, nb;
  aot_type_t pair[2];
  int64_t sizes[AOT_MAX_RANK], dim;
  int32_t rank;
  pair[0] = TYPE(a);
  pair[1] = TYPE(b);
  rank = at_broadcast(at_infer(e), pair, 2, sizes);
  dim = at_wrap(at_infer(e), at_in_int(e, "dim", 1), rank);
  a = at_expanded(e, at_math(e, a), sizes, rank);
  b = at_expanded(e, at_math(e, b), sizes, rank);
  na = norm_at_least(e, a, dim, IN("eps"));
  nb = norm_at_least(e, b, dim, IN("eps"));
  return at_give_cast(e, at_summed(e, MUL(DIV(a, na), DIV(b, nb)), &dim, 1, 0), out);
}

/* instance_norm: by the statistics of the input each channel is a group of its own, by running ones it is batch norm in
 * evaluation */
static em_x_t instance_norm(em_t *e) {
  em_x_t x = IN("input");
  aot_type_t t = TYPE(x);
  int64_t space = at_numel(at_infer(e), t.sizes + 2, t.rank - 2);
  if (!at_in_int(e, "use_input_stats", 1))
    return EM(e, "_native_batch_norm_legit_no_training", x, IN("weight"), IN("bias"), IN("running_mean"),
              IN("running_var"), IN("momentum"), IN("eps"));
  return EM(e, "native_group_norm", x, IN("weight"), IN("bias"), em_i(t.sizes[0]), em_i(t.sizes[1]), em_i(space),
            em_i(t.sizes[1]), IN("eps"));
}

aot_status_t at_dc_instance_norm(em_t *e, aot_value_t *out) {
  if (at_in_int(e, "use_input_stats", 1) && at_in_has(e, "running_mean"))
    em_fail(e, AOT_E_UNIMPLEMENTED, "put functionalize before", "instance_norm that writes its running statistics");
  return at_give(e, instance_norm(e), out);
}

/* A running statistic moved towards the samples' mean of a statistic of each channel
 * (aten/src/ATen/native/Normalization.cpp). */
static em_x_t moved(em_t *e, const char *name, em_x_t statistic) {
  const double momentum = em_in_float(e, "momentum", 0.1);
  const int64_t samples = 0;
  em_x_t running = IN(name), now = EM(e, "mean.dim", statistic, em_list(e, &samples, 1));
  now = ADD(MUL(at_math(e, running), em_f(1.0 - momentum)), MUL(now, em_f(momentum)));
  return em_cast(e, now, TYPE(running).dtype);
}

aot_status_t at_fn_instance_norm(em_t *e, aot_value_t *out_results, aot_value_t *out_written) {
  em_x_t x = EM(e, "detach", IN("input"));
  int64_t space[AOT_MAX_RANK];
  uint32_t n = 0, n_written = 0;
  while ((int32_t)n + 2 < TYPE(x).rank) space[n] = n + 2, n++;
  x = at_math(e, x);
  if (at_in_int(e, "use_input_stats", 1) && at_in_has(e, "running_mean"))
    out_written[n_written++] = em_value(e, moved(e, "running_mean", EM(e, "mean.dim", x, em_list(e, space, n))));
  if (at_in_int(e, "use_input_stats", 1) && at_in_has(e, "running_var"))
    out_written[n_written] =
        em_value(e, moved(e, "running_var", EM(e, "var.correction", x, em_list(e, space, n), em_i(1))));
  return at_give(e, instance_norm(e), out_results);
}
