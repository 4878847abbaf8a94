/* Reads and writes of places: replays view steps on the base's value, propagates writes to the base. */
#include "places.h"

#include "kit/base/vector.h"
#include "history.h"
#include "same_layout.h"
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static aot_status_t type_of(const fz_rewrite_t *w, uint32_t value, aot_type_t *out) {
  return w->host->graph->value_type(w->prog, (aot_value_t){value}, out);
}

int fz_is_exact(const fz_rewrite_t *w, uint32_t place) {
  const fz_place_t *p = &w->alias.places[place];
  aot_type_t is, said;
  if (p->value == p->declared) return 1;
  if (type_of(w, p->value, &is) != AOT_OK || type_of(w, p->declared, &said) != AOT_OK) return 0;
  return fz_same_layout(&is, &said) && is.offset == said.offset;
}

/* Like fz_is_exact, wherever in its storage the value begins. */
static int has_layout(const fz_rewrite_t *w, uint32_t value, uint32_t declared) {
  aot_type_t is, said;
  return value == declared ||
         (type_of(w, value, &is) == AOT_OK && type_of(w, declared, &said) == AOT_OK && fz_same_layout(&is, &said));
}

int32_t fz_storage_offset_arg(const aot_op_desc_t *d) {
  for (uint32_t i = 0; (d->flags & AOT_OP_VIEW) && i < d->n_args; i++)
    if (aot_str_eq(d->args[i].name, aot_str("storage_offset"))) return (int32_t)i;
  return -1;
}

/* ---- reading ---- */

typedef struct types_sink {
  fz_rewrite_t *w;
  uint32_t next, end;
} types_sink_t;

static aot_status_t AOT_CALL set_type(const aot_type_sink_t *sink, const aot_type_t *type) {
  types_sink_t *s = sink->head.self;
  if (s->next == s->end) return AOT_E_INTERNAL;
  return s->w->host->edit->type_set(s->w->prog, (aot_value_t){s->next++}, type);
}

/* New result types of a view whose operand lies otherwise than when the model was traced. */
static aot_status_t infer_again(fz_rewrite_t *w, aot_node_t node) {
  aot_node_info_t info = {.struct_size = sizeof info};
  AOT_TRY(w->host->graph->node_info(w->prog, node, &info));
  types_sink_t to = {w, info.first_result.id, info.first_result.id + info.n_results};
  aot_type_sink_t sink = {.head = {.struct_size = sizeof sink, .self = &to}, .put = set_type};
  if (fz_storage_offset_arg(w->host->graph->op_desc(w->prog, info.op)) >= 0)
    return fz_fail(
        w->host, w->ctx, AOT_E_UNIMPLEMENTED, "functionalize.storage",
        "a view that addresses the storage itself, of a written tensor whose strides leave gaps, is not supported",
        node);
  return w->host->edit->infer(w->prog, info.op, info.args, info.n_args, &sink);
}

aot_status_t fz_replay(fz_rewrite_t *w, uint32_t at, aot_node_t before) {
  fz_place_t p = w->alias.places[at];
  aot_node_info_t view = {.struct_size = sizeof view};
  em_t e = fz_emitter(w->host, w->ctx, w->prog, w->graph, before, "a view");
  aot_value_t value;
  int exact = fz_is_exact(w, p.parent);
  AOT_TRY(w->host->graph->node_info(w->prog, (aot_node_t){p.view_node}, &view));
  em_carry(&e, &view);
  const aot_node_t made = em_repeat(&e, &view, NULL);
  AOT_TRY(e.status);
  AOT_TRY(w->host->edit->operand_set(w->prog, made, p.operand, (aot_value_t){w->alias.places[p.parent].value}));
  if (!exact) AOT_TRY(infer_again(w, made));
  aot_node_info_t info = {.struct_size = sizeof info};
  AOT_TRY(w->host->graph->node_info(w->prog, made, &info));
  value.id = info.first_result.id + p.view_index;
  w->n_replays++;
  if (p.own_history) AOT_TRY(fz_with_history(w, (aot_value_t){p.value}, value, before, &value));
  fz_refresh(&w->alias, at, value.id, 1);
  return AOT_OK;
}

static aot_status_t room_for_chain(fz_rewrite_t *w, uint32_t depth) {
  uint32_t *chain = kit_grow(w->chain, &w->chain_capacity, (uint64_t)depth + 1, sizeof *chain);
  if (!chain) return fz_no_alias_memory(w);
  w->chain = chain;
  return AOT_OK;
}

aot_status_t fz_read(fz_rewrite_t *w, uint32_t place, int materialized, aot_node_t before, aot_value_t *out) {
  const fz_place_t *p = &w->alias.places[place];
  if (fz_is_stale(&w->alias, place) || (materialized && !p->materialized)) {
    AOT_TRY(room_for_chain(w, fz_depth(&w->alias, place)));
    uint32_t n = fz_stale_chain(&w->alias, place, materialized, w->chain);
    while (n-- > 0) AOT_TRY(fz_replay(w, w->chain[n], before));
  }
  out->id = w->alias.places[place].value;
  return AOT_OK;
}

/* ---- writing ---- */

/* Every place from here to the base holds its contents of before the write. */
static aot_status_t read_ancestors(fz_rewrite_t *w, uint32_t place, aot_node_t before) {
  aot_value_t ignored;
  for (uint32_t q = w->alias.places[place].parent; q != FZ_NONE; q = w->alias.places[q].parent)
    AOT_TRY(fz_read(w, q, 0, before, &ignored));
  return AOT_OK;
}

/* A new value for a place. Above a step that stops gradients only the base is given one, with the history that it had:
 * what is between is made of it again when it is read. */
static aot_status_t give(fz_rewrite_t *w, uint32_t place, aot_value_t value, int unseen, aot_node_t before) {
  fz_place_t p = w->alias.places[place];
  aot_type_t said;
  if (unseen && p.parent != FZ_NONE) return AOT_OK;
  if (unseen) AOT_TRY(fz_with_history(w, (aot_value_t){p.value}, value, before, &value));
  fz_refresh(&w->alias, place, value.id, has_layout(w, value.id, p.declared));
  if (p.parent != FZ_NONE || fz_is_exact(w, place) || !has_layout(w, value.id, p.declared)) return AOT_OK;
  const aot_arg_t source = aot_arg_value(value); /* a base that is a part of something (x.copy_(y[1])) */
  AOT_TRY(type_of(w, p.declared, &said));
  if (said.offset != 0) return AOT_OK;
  AOT_TRY(fz_call(w, "aten.clone.default", &source, 1, before, &value));
  fz_refresh(&w->alias, place, value.id, 1);
  return AOT_OK;
}

/* Of symbolic places only those of stride 0 are known. */
static int repeats_elements(const aot_type_t *t) {
  int symbolic = 0;
  for (int32_t d = 0; d < t->rank; d++) {
    if (t->strides[d] == 0 && t->sizes[d] != 1) return 1;
    symbolic |= AOT_DIM_IS_SYM(t->sizes[d]) || AOT_DIM_IS_SYM(t->strides[d]);
  }
  return !symbolic && fz_may_repeat(t);
}

/* expand(x)[:, 0]: a view of the storage without repeats, though a step on the way there has some. What is written into
 * it cannot be carried back step by step, as the other elements of that step would have to follow. */
static aot_status_t passes_repeats(const fz_rewrite_t *w, uint32_t place, int *out) {
  const fz_alias_t *a = &w->alias;
  aot_type_t type;
  AOT_TRY(type_of(w, a->places[place].declared, &type));
  *out = 0;
  if (repeats_elements(&type)) return AOT_OK; /* the inverse of the step refuses the write */
  for (uint32_t q = a->places[place].parent; q != FZ_NONE && a->places[q].parent != FZ_NONE && !*out;
       q = a->places[q].parent) {
    AOT_TRY(type_of(w, a->places[q].declared, &type));
    *out = repeats_elements(&type);
  }
  return AOT_OK;
}

/* The base after `updated` has been written where the place is in its storage. */
static aot_status_t scatter_into_base(fz_rewrite_t *w, uint32_t place, aot_value_t updated, aot_node_t before,
                                      aot_value_t *out) {
  const fz_place_t *base = &w->alias.places[w->alias.storages[w->alias.places[place].storage].base];
  aot_type_t type;
  if (!fz_is_exact(w, w->alias.storages[w->alias.places[place].storage].base))
    return fz_fail(w->host, w->ctx, AOT_E_UNIMPLEMENTED, "functionalize.storage",
                   "a write through an expanded part of a written tensor whose strides leave gaps is not supported",
                   before);
  AOT_TRY(type_of(w, w->alias.places[place].declared, &type));
  const aot_arg_t args[5] = {aot_arg_value((aot_value_t){base->value}), aot_arg_value(updated),
                             aot_arg_ints(type.sizes, (uint32_t)type.rank),
                             aot_arg_ints(type.strides, (uint32_t)type.rank), aot_arg_int(type.offset)};
  return fz_call(w, "aten.as_strided_scatter.default", args, 5, before, out);
}

aot_status_t fz_write(fz_rewrite_t *w, uint32_t place, aot_value_t updated, int unseen, aot_node_t before) {
  fz_alias_t *a = &w->alias;
  aot_type_t type;
  int direct;
  AOT_TRY(type_of(w, a->places[a->storages[a->places[place].storage].base].declared, &type));
  int has_history = a->storages[a->places[place].storage].carries && fz_is_differentiable(&type);
  AOT_TRY(passes_repeats(w, place, &direct));
  AOT_TRY(read_ancestors(w, place, before));
  if (unseen && !has_history) AOT_TRY(fz_without_history(w, &updated, before));
  unseen = unseen && has_history;
  fz_new_version(a, place);
  AOT_TRY(give(w, place, updated, unseen, before));
  w->n_writes++;
  for (uint32_t q = place; a->places[q].parent != FZ_NONE; q = a->places[q].parent) {
    fz_place_t p = a->places[q];
    aot_value_t base = {a->places[p.parent].value}, whole;
    if (!unseen && has_history && fz_history_is_apart(w, q)) a->places[q].own_history = 1, unseen = 1;
    if (direct && a->places[p.parent].parent != FZ_NONE) continue;
    if (direct) AOT_TRY(scatter_into_base(w, place, updated, before, &whole));
    else
      AOT_TRY(
          w->host->edit->view_inverse(w->prog, (aot_node_t){p.view_node}, p.view_index, base, updated, before, &whole));
    AOT_TRY(give(w, p.parent, whole, unseen, before));
    updated = whole;
  }
  return AOT_OK;
}
