/* Makes storage views: inserts the operand into the detached base, then views the base (storage_view.h). */
#include "storage_view.h"

#include "history.h"
#include "places.h"
#include "same_layout.h"
#include <aot/inline.h>
#include <string.h>

static aot_status_t refuse(const fz_rewrite_t *w, const char *message, aot_node_t node) {
  return fz_fail(w->host, w->ctx, AOT_E_UNIMPLEMENTED, "functionalize.storage", message, node);
}

static aot_status_t type_of(const fz_rewrite_t *w, uint32_t value, aot_type_t *out) {
  return w->host->graph->value_type(w->prog, (aot_value_t){value}, out);
}

uint32_t fz_addressed(const fz_rewrite_t *w, uint32_t place) {
  const fz_alias_t *a = &w->alias;
  while (a->places[place].parent != FZ_NONE && !fz_history_is_apart(w, place)) place = a->places[place].parent;
  return place;
}

/* From a tensor's first element in its storage to its last. 0: symbolic, or no elements. */
static int extent_of(const aot_type_t *t, int64_t *out_first, int64_t *out_last) {
  *out_first = *out_last = t->offset;
  if (AOT_DIM_IS_SYM(t->offset)) return 0;
  for (int32_t d = 0; d < t->rank; d++) {
    if (AOT_DIM_IS_SYM(t->sizes[d]) || AOT_DIM_IS_SYM(t->strides[d]) || t->sizes[d] == 0) return 0;
    *out_last += (t->sizes[d] - 1) * t->strides[d];
  }
  return 1;
}

/* An input comes with its own elements: what else is in the storage that it was traced with is not there. */
static aot_status_t check_extent(const fz_rewrite_t *w, aot_node_t node, uint32_t base, const aot_type_t *whole,
                                 const aot_type_t *result) {
  int64_t first, last, from, to;
  if (w->host->graph->value_def(w->prog, (aot_value_t){w->alias.places[base].declared}).id != AOT_NO_ID) return AOT_OK;
  if (!extent_of(whole, &first, &last) || !extent_of(result, &from, &to) || (from >= first && to <= last))
    return AOT_OK;
  return refuse(w, "the view reaches outside of the elements of an input; the memory around them is not passed", node);
}

/* ---- the gradient ---- */

/* Does a gradient flow through the node? */
static int has_gradient(const fz_rewrite_t *w, aot_node_t node, uint32_t place, const aot_type_t *t) {
  return w->alias.storages[w->alias.places[place].storage].carries && fz_is_differentiable(t) &&
         !fz_step_stops_gradient(w, node);
}

/* Every element of the base in another shape, by steps that a gradient passes as it came? */
static int shows_everything(const fz_rewrite_t *w, uint32_t place, uint32_t base) {
  aot_type_t from, to;
  for (uint32_t p = place; p != base; p = w->alias.places[p].parent) {
    int64_t n_from = 1, n_to = 1;
    aot_node_info_t info = {.struct_size = sizeof info};
    const fz_place_t *step = &w->alias.places[p];
    if (w->host->graph->node_info(w->prog, (aot_node_t){step->view_node}, &info) != AOT_OK) return 0;
    if (fz_storage_offset_arg(w->host->graph->op_desc(w->prog, info.op)) >= 0) return 0;
    if (type_of(w, w->alias.places[step->parent].declared, &from) != AOT_OK ||
        type_of(w, step->declared, &to) != AOT_OK)
      return 0;
    for (int32_t d = 0; d < from.rank; d++) n_from = AOT_DIM_IS_SYM(from.sizes[d]) ? -1 : n_from * from.sizes[d];
    for (int32_t d = 0; d < to.rank; d++) n_to = AOT_DIM_IS_SYM(to.sizes[d]) ? -1 : n_to * to.sizes[d];
    if (n_from != n_to || n_from < 0 || fz_may_repeat(&to)) return 0;
  }
  return 1;
}

/* The numbers of the base; its gradient goes to the part alone: the part, put into a base that has no history. */
static aot_status_t with_gradient_of(fz_rewrite_t *w, aot_value_t base, const aot_type_t *where, aot_value_t part,
                                     aot_node_t node, aot_value_t *out) {
  int64_t sizes[AOT_MAX_RANK];
  aot_type_t is, was;
  const aot_arg_t whole = aot_arg_value(base);
  aot_value_t numbers;
  if (fz_may_repeat(where))
    return refuse(w, "the gradient of a view that addresses the storage of overlapping elements is not supported",
                  node);
  for (int32_t d = 0; d < where->rank; d++) {
    sizes[d] = where->strides[d] == 0 ? 1 : where->sizes[d];
    if (sizes[d] == where->sizes[d]) continue;
    /* the others are the same */
    const aot_arg_t first[4] = {aot_arg_value(part), aot_arg_int(d), aot_arg_int(0), aot_arg_int(1)};
    AOT_TRY(fz_call(w, "aten.slice.Tensor", first, 4, node, &part));
  }
  AOT_TRY(fz_call(w, "aten.detach.default", &whole, 1, node, &numbers));
  const aot_arg_t put[5] = {aot_arg_value(numbers), aot_arg_value(part), aot_arg_ints(sizes, (uint32_t)where->rank),
                            aot_arg_ints(where->strides, (uint32_t)where->rank), aot_arg_int(where->offset)};
  AOT_TRY(type_of(w, base.id, &was));
  AOT_TRY(fz_call(w, "aten.as_strided_scatter.default", put, 5, node, out));
  AOT_TRY(type_of(w, out->id, &is));
  if (fz_same_layout(&is, &was) && is.offset == was.offset) return AOT_OK;
  return refuse(w, "the gradient of a view that addresses a storage with gaps is not supported", node);
}

/* ---- what the node reads ---- */

aot_status_t fz_read_storage(fz_rewrite_t *w, aot_node_t node, const aot_node_info_t *info, uint32_t offset_arg,
                             uint32_t place, int *out_narrowed, aot_value_t *out) {
  const fz_alias_t *a = &w->alias;
  const uint32_t whole = fz_addressed(w, place), base = a->storages[a->places[place].storage].base;
  aot_type_t result, part, seen, all;
  aot_value_t value;
  AOT_TRY(type_of(w, info->first_result.id, &result));
  AOT_TRY(type_of(w, a->places[place].declared, &part));
  AOT_TRY(type_of(w, a->places[whole].declared, &seen));
  AOT_TRY(type_of(w, a->places[base].declared, &all));
  AOT_TRY(check_extent(w, node, base, &all, &result));
  if (part.dtype != seen.dtype || (place != whole && aot_dtype_is_complex(part.dtype)))
    return refuse(
        w,
        "a view that addresses the storage itself, of a view of complex numbers or of another dtype, is not supported",
        node);
  if (!fz_same_layout(&seen, &all) || seen.offset != all.offset)
    return refuse(w, "a view that addresses the storage itself, of a detached part of a tensor, is not supported",
                  node);
  aot_arg_t offset = aot_arg_int(result.offset);
  if (info->args[offset_arg].kind == AOT_ARG_NONE) AOT_TRY(w->host->edit->arg_set(w->prog, node, offset_arg, &offset));
  AOT_TRY(fz_read(w, whole, 1, node, out));
  *out_narrowed = has_gradient(w, node, place, &part) && !shows_everything(w, place, whole);
  if (!*out_narrowed) return AOT_OK;
  AOT_TRY(fz_read(w, place, 0, node, &value));
  AOT_TRY(type_of(w, a->places[place].declared, &part));
  return with_gradient_of(w, *out, &part, value, node, out);
}

void fz_widen(fz_rewrite_t *w, uint32_t place) {
  fz_alias_t *a = &w->alias;
  const uint32_t base = a->storages[a->places[place].storage].base;
  int narrowed = 0;
  for (uint32_t p = place; p != FZ_NONE; p = a->places[p].parent)
    narrowed |= a->places[p].narrowed && !fz_is_stale(a, p);
  if (!narrowed) return;
  fz_new_version(a, place); /* all views are made again */
  fz_refresh(a, base, a->places[base].value, a->places[base].materialized);
}
