/* Tensors put side by side: stacking by column and depth, least ranks, products of lists, sequences padded to one
 * length. */
#include "at_formula.h"

#include <string.h>

static em_x_t nth_of(em_x_t list, uint32_t i) { return aot_arg_value((aot_value_t){list.u.ids[i]}); }

static uint32_t *room(em_t *e, uint32_t n) {
  uint32_t *ids = e->host->alloc(e->host, e->ctx, AOT_ARENA_SCRATCH, sizeof *ids, (n + 1) * sizeof *ids);
  if (ids == NULL && e->status == AOT_OK) e->status = AOT_E_EXHAUSTED;
  return ids;
}

/* Ranks 1 and 2 get leading dimensions, rank 3 one before and one after: [n] is [1, n, 1], [m, n] is [m, n, 1]. */
static em_x_t at_least(em_t *e, em_x_t x, int32_t rank) {
  static const int64_t ones[3] = {1, 1, 1};
  aot_type_t t = TYPE(x);
  if (t.rank >= rank || e->status != AOT_OK) return x;
  if (t.rank == 0) return at_reshaped(e, x, ones, rank);
  if (t.rank == 1) x = at_unsqueeze(e, x, 0);
  return rank == 3 ? at_unsqueeze(e, x, 2) : x;
}

static int32_t least_rank(em_t *e) { return strstr(at_name(e), "_1d") ? 1 : strstr(at_name(e), "_2d") ? 2 : 3; }

aot_status_t at_dc_atleast(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self");
  if (TYPE(x).rank >= least_rank(e)) return at_give(e, x, out);
  return at_give(e, at_least(e, x, least_rank(e)), out);
}

aot_status_t at_dc_atleast_each(em_t *e, aot_value_t *out) {
  em_x_t list = IN("tensors");
  uint32_t i;
  for (i = 0; i < e->info.n_results && i < list.n; i++) out[i] = VAL(at_least(e, nth_of(list, i), least_rank(e)));
  return e->status;
}

/* dstack along dim 2 of rank 3; column_stack along dim 1, vectors being columns */
aot_status_t at_dc_stack_deep(em_t *e, aot_value_t *out) {
  em_x_t list = IN("tensors");
  int columns = strcmp(at_name(e), "aten.column_stack.default") == 0;
  uint32_t *ids = room(e, list.n), i;
  for (i = 0; i < list.n && e->status == AOT_OK; i++) {
    em_x_t x = nth_of(list, i);
    int64_t column[2] = {1, 1};
    if (!columns) x = at_least(e, x, 3);
    else if (TYPE(x).rank <= 1) {
      if (TYPE(x).rank == 1) column[0] = TYPE(x).sizes[0];
      x = at_reshaped(e, x, column, 2);
    }
    ids[i] = VAL(x).id;
  }
  if (e->status != AOT_OK) return e->status;
  return at_give(e, EM(e, "cat", aot_arg_values(ids, list.n), em_i(columns ? 1 : 2)), out);
}

/* combinations: places of a grid of r dimensions whose coordinates rise, in the order of the rows. */
aot_status_t at_dc_combinations(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self"), on = em_none(), places;
  const aot_type_t to = at_result_type(e, 0);
  const int64_t n = TYPE(x).sizes[0], all = to.sizes[0] * to.sizes[1];
  const int32_t r = (int32_t)at_in_int(e, "r", 2);
  const char *rises = at_in_int(e, "with_replacement", 0) ? "le.Tensor" : "lt.Tensor";
  em_x_t range = at_range(e, n, x);
  int32_t d;
  if (r == 1) return at_give(e, at_reshaped(e, EM(e, "clone", x), to.sizes, 2), out);
  for (d = 0; d + 1 < r; d++) {
    em_x_t next = EM(e, rises, at_along(e, range, d, r), at_along(e, range, d + 1, r));
    on = em_is_none(on) ? next : EM(e, "logical_and", on, next);
  }
  places = at_reshaped(e, EM(e, "nonzero_static", on, em_i(to.sizes[0])), &all, 1);
  return at_give(e, at_reshaped(e, EM(e, "index_select", x, em_i(0), places), to.sizes, to.rank), out);
}

/* cartesian_prod: column i of all combinations is vector i, spread over a grid */
aot_status_t at_dc_cartesian_prod(em_t *e, aot_value_t *out) {
  em_x_t list = IN("tensors");
  aot_type_t t = at_result_type(e, 0);
  uint32_t *ids = room(e, list.n), i;
  int64_t grid[AOT_MAX_RANK], column[2] = {0, 1};
  if (list.n == 1) return at_give(e, nth_of(list, 0), out);
  column[0] = t.sizes[0];
  for (i = 0; i < list.n && e->status == AOT_OK; i++) grid[i] = TYPE(nth_of(list, i)).sizes[0];
  for (i = 0; i < list.n && e->status == AOT_OK; i++) {
    em_x_t x = at_expanded(e, at_along(e, nth_of(list, i), (int32_t)i, (int32_t)list.n), grid, (int32_t)list.n);
    ids[i] = VAL(at_reshaped(e, x, column, 2)).id;
  }
  if (e->status != AOT_OK) return e->status;
  return at_give(e, EM(e, "cat", aot_arg_values(ids, list.n), em_i(1)), out);
}

/* pad_sequence: [l, ..] each, padded to the longest at the end or the start, stacked before or after the length */
aot_status_t at_dc_pad_sequence(em_t *e, aot_value_t *out) {
  em_x_t list = IN("sequences");
  aot_type_t t = at_result_type(e, 0);
  int batch_first = at_in_int(e, "batch_first", 0) != 0, left = at_in_str_is(e, "padding_side", "left");
  int64_t longest = t.sizes[batch_first ? 1 : 0], pad[2 * AOT_MAX_RANK];
  uint32_t *ids = room(e, list.n), i;
  for (i = 0; i < list.n && e->status == AOT_OK; i++) {
    em_x_t x = nth_of(list, i);
    aot_type_t own = TYPE(x);
    uint32_t mark = at_infer(e)->n_pool;
    int64_t missing = at_sub(at_infer(e), longest, own.sizes[0]);
    memset(pad, 0, sizeof pad);
    pad[2 * (own.rank - 1) + !left] = missing;
    if (missing != 0) x = EM(e, "constant_pad_nd", x, em_list(e, pad, 2 * (uint32_t)own.rank), IN("padding_value"));
    ids[i] = VAL(at_unsqueeze(e, x, batch_first ? 0 : 1)).id;
    at_infer(e)->n_pool = mark;
  }
  if (e->status != AOT_OK) return e->status;
  return at_give(e, EM(e, "cat", aot_arg_values(ids, list.n), em_i(batch_first ? 0 : 1)), out);
}
