/* The walk of rewrite.h: one graph in program order. */
#include "rewrite.h"

#include "auto_functional.h"
#include "entry.h"
#include "hidden_alias.h"
#include "history.h"
#include "places.h"
#include "same_layout.h"
#include "schema_marks.h"
#include "storage_view.h"
#include "written_overlap.h"
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

/* ---- what the schema says about one node ---- */

static const aot_op_desc_t *describe(const fz_rewrite_t *w, const aot_node_info_t *n) {
  return w->host->graph->op_desc(w->prog, n->op);
}

static int writes_anything(const aot_op_desc_t *d, const aot_node_info_t *n) {
  for (uint32_t a = 0; (d->flags & AOT_OP_WRITES) && a < n->n_args; a++)
    if (n->args[a].kind != AOT_ARG_NONE && fz_writes_arg(d, n, a)) return 1;
  return 0;
}

/* The original operands of a node, before refreshing changed them, and which of them each result shares memory with. */
typedef struct operands {
  uint32_t *ids, *memory, n;
  int narrowed; /* the node reads one with a part of its gradient (storage_view.h) */
} operands_t;

/* Is operand k viewed by some result, or renamed? Then it has to be in memory as recorded. */
static int is_looked_into(const aot_op_desc_t *d, const aot_node_info_t *n, const operands_t *original, uint32_t k) {
  if (!(d->flags & (AOT_OP_VIEW | AOT_OP_INPLACE_VIEW)) && writes_anything(d, n)) return 0;
  for (uint32_t i = 0; i < n->n_results; i++)
    if (original->memory[i] == k + 1) return 1;
  return 0;
}

/* ---- operands ---- */

static aot_status_t refresh_operand(fz_rewrite_t *w, aot_node_t node, const aot_op_desc_t *d, operands_t *original,
                                    uint32_t k) {
  aot_node_info_t info = {.struct_size = sizeof info};
  AOT_TRY(w->host->graph->node_info(w->prog, node, &info));
  uint32_t v = info.operands[k], place = v == AOT_NO_ID ? FZ_NONE : fz_place_of(&w->alias, v);
  int looked_into = is_looked_into(d, &info, original, k);
  int32_t offset_arg = looked_into ? fz_storage_offset_arg(d) : -1;
  aot_value_t now;
  if (place == FZ_NONE) return AOT_OK;
  if (offset_arg >= 0 && w->alias.storages[w->alias.places[place].storage].resized)
    return fz_fail(w->host, w->ctx, AOT_E_UNIMPLEMENTED, "functionalize.resized",
                   "the operator addresses the storage of a tensor that was resized since, by a view from before; take "
                   "the view of the resized tensor",
                   node);
  if (offset_arg >= 0) AOT_TRY(fz_read_storage(w, node, &info, (uint32_t)offset_arg, place, &original->narrowed, &now));
  else AOT_TRY(fz_read(w, place, looked_into, node, &now));
  return now.id != v ? w->host->edit->operand_set(w->prog, node, k, now) : AOT_OK;
}

/* ---- writers ---- */

/* y.t_() under no_grad, of a tensor that is no view for autograd and as large in both dimensions: nothing reports
 * autograd, and a gradient that arrives continues with each number where it is. Where sizes change, PyTorch's
 * backward refuses the gradient, or sums it to the old sizes (unsqueeze_), which is what a view's does. */
static aot_status_t keeps_history_in_place(const fz_rewrite_t *w, const aot_node_info_t *step, uint32_t place,
                                           aot_value_t view, int *out) {
  const fz_place_t *p = &w->alias.places[place];
  aot_type_t from, to;
  AOT_TRY(w->host->graph->value_type(w->prog, (aot_value_t){p->declared}, &from));
  AOT_TRY(w->host->graph->value_type(w->prog, view, &to));
  const int unseen = (step->flags & AOT_NODE_NO_GRAD) && !(describe(w, step)->flags & AOT_OP_NO_GRAD); /* not detach_ */
  *out = unseen && w->alias.storages[p->storage].carries && fz_is_differentiable(&from) &&
         (p->parent == FZ_NONE || fz_history_is_apart(w, place)) && from.rank == to.rank;
  for (int32_t d = 0; *out && d < to.rank; d++) *out = from.sizes[d] == to.sizes[d];
  return AOT_OK;
}

/* t_, unsqueeze_: the tensor is now another view of the same memory. It keeps its history, under no_grad too. */
static aot_status_t rename_place(fz_rewrite_t *w, uint32_t operand, uint32_t declared, aot_value_t view, aot_value_t of,
                                 aot_node_t before) {
  const aot_graph_api_t *g = w->host->graph;
  uint32_t old = fz_place_of(&w->alias, operand), k = 0, index = g->value_index(w->prog, view);
  aot_node_t step = g->value_def(w->prog, view);
  aot_node_info_t info = {.struct_size = sizeof info};
  int in_place;
  AOT_TRY(g->node_info(w->prog, step, &info));
  while (k < info.n_operands && info.operands[k] != of.id) k++;
  if (k == info.n_operands)
    return fz_fail(w->host, w->ctx, AOT_E_UNIMPLEMENTED, "functionalize.renamed",
                   "a change of shape in place that is more than one view is not supported", step);
  AOT_TRY(keeps_history_in_place(w, &info, old, view, &in_place));
  if (in_place) AOT_TRY(fz_with_history(w, of, view, before, &view));
  else AOT_TRY(w->host->edit->flags_set(w->prog, step, info.flags & ~(uint32_t)AOT_NODE_NO_GRAD));
  uint32_t place = fz_alias_view(&w->alias, old, step.id, index, declared, view.id);
  if (w->alias.failed) return fz_no_alias_memory(w);
  w->alias.places[place].operand = k;
  w->alias.places[place].own_history = in_place != 0;
  fz_alias_join(&w->alias, declared, operand);
  fz_alias_name(&w->alias, operand, place);
  return AOT_OK;
}

/* ---- out= into a tensor of no elements ---- */

/* PyTorch resizes such a tensor: it has the shape of the result from there on. */
static aot_status_t is_resized(const fz_rewrite_t *w, uint32_t place, aot_value_t written, int *out) {
  aot_type_t from, to;
  int empty = 0, same;
  AOT_TRY(w->host->graph->value_type(w->prog, (aot_value_t){w->alias.places[place].declared}, &from));
  AOT_TRY(w->host->graph->value_type(w->prog, written, &to));
  same = from.rank == to.rank;
  for (int32_t d = 0; d < from.rank; d++) {
    empty |= from.sizes[d] == 0;
    same = same && from.sizes[d] == to.sizes[d];
  }
  *out = empty && !same;
  return AOT_OK;
}

/* It had no memory, so that no other tensor looks at what it gets: the tensor, by all its names, is a base of its own
 * from now on. The caller's tensor would have to be resized in the caller's hands, and one that is a part of another
 * has that one's memory already. */
static aot_status_t resize_place(fz_rewrite_t *w, aot_node_t node, const aot_op_desc_t *d, const aot_node_info_t *n,
                                 uint32_t operand, uint32_t name, aot_value_t written, uint32_t carries) {
  const fz_place_t old = w->alias.places[fz_place_of(&w->alias, name)];
  uint32_t i = 0;
  while (i < n->n_results && fz_aliased_operand(d, n, i) != operand + 1) i++;
  if (old.parent != FZ_NONE)
    return fz_fail(w->host, w->ctx, AOT_E_UNIMPLEMENTED, "functionalize.resized",
                   "the operator is given a view of no elements to write, which it would have to resize in the memory "
                   "of another tensor; give it a tensor of its own or of the result's shape",
                   node);
  if (i == n->n_results || w->host->graph->value_def(w->prog, (aot_value_t){old.declared}).id == AOT_NO_ID)
    return fz_fail(
        w->host, w->ctx, AOT_E_UNIMPLEMENTED, "functionalize.resized",
        "the operator is given an input, parameter or buffer of no elements to write, which it would have to "
        "resize; give it a tensor of the result's shape, or one that the model makes",
        node);
  const uint32_t declared = n->first_result.id + i, place = fz_alias_base(&w->alias, declared, written.id);
  if (place == FZ_NONE) return fz_no_alias_memory(w);
  w->alias.storages[w->alias.places[place].storage].carries = carries;
  w->alias.storages[old.storage].resized = 1;
  fz_alias_join(&w->alias, declared, name);
  fz_alias_name(&w->alias, name, place);
  w->n_writes++;
  return AOT_OK;
}

/* One tensor in two places of what a node writes: the writes would have to be distinguished, in the order of some
 * kernel. */
static aot_status_t note_writer(fz_rewrite_t *w, uint32_t place, aot_node_t node) {
  fz_place_t *p = &w->alias.places[place];
  if (p->written_by == node.id + 1)
    return fz_fail(w->host, w->ctx, AOT_E_UNIMPLEMENTED, "functionalize.written-twice",
                   "one tensor stands twice among the arguments that the operator writes", node);
  p->written_by = node.id + 1;
  return AOT_OK;
}

/* A branch is run or not: what it did to its operands nothing outside could know. PyTorch refuses it, too. */
static aot_status_t check_target(const fz_rewrite_t *w, uint32_t place, aot_node_t node) {
  const fz_alias_t *a = &w->alias;
  aot_value_t base = {a->places[a->storages[a->places[place].storage].base].declared};
  if (!w->is_region || w->host->graph->value_def(w->prog, base).id != AOT_NO_ID) return AOT_OK;
  return fz_fail(w->host, w->ctx, AOT_E_UNIMPLEMENTED, "functionalize.write-in-region",
                 "a region that stays a region (a branch of cond) writes one of its operands, which is not supported; "
                 "write a copy",
                 node);
}

/* The places of what the node writes, in the order of operands. Returns how many. */
static uint32_t written_places(const fz_rewrite_t *w, const aot_op_desc_t *d, const aot_node_info_t *n,
                               const operands_t *original, uint32_t *out) {
  uint32_t operand = 0, n_places = 0;
  for (uint32_t a = 0; a < n->n_args; a++)
    for (uint32_t i = 0; i < aot_n_operands(&n->args[a]); i++, operand++)
      if (original->ids[operand] != AOT_NO_ID && fz_writes_arg(d, n, a))
        out[n_places++] = fz_place_of(&w->alias, original->ids[operand]);
  return n_places;
}

static aot_status_t widen_written(fz_rewrite_t *w, const aot_op_desc_t *d, const aot_node_info_t *n,
                                  const operands_t *original) {
  uint32_t *places = w->host->alloc(w->host, w->ctx, AOT_ARENA_SCRATCH, 4, ((uint64_t)original->n + 1) * 4);
  if (!places) return fz_no_alias_memory(w);
  const uint32_t n_places = written_places(w, d, n, original, places);
  for (uint32_t i = 0; i < n_places; i++) fz_widen(w, places[i]);
  return AOT_OK;
}

/* Its functional form makes all new values of the old ones; where tensors that it writes share elements, the writes
 * follow one another in the order of some kernel. */
static aot_status_t check_overlap(fz_rewrite_t *w, aot_node_t node, const aot_op_desc_t *d, const aot_node_info_t *n,
                                  const operands_t *before_refresh) {
  uint32_t *places = w->host->alloc(w->host, w->ctx, AOT_ARENA_SCRATCH, 4, ((uint64_t)before_refresh->n + 1) * 4);
  if (!places) return fz_no_alias_memory(w);
  const uint32_t n_places = written_places(w, d, n, before_refresh, places);
  if (n_places < 2 || !fz_any_overlap(w, places, n_places)) return AOT_OK;
  return fz_fail(w->host, w->ctx, AOT_E_UNIMPLEMENTED, "functionalize.written-twice",
                 "two tensors that the operator writes overlap in memory", node);
}

static aot_status_t apply_writes(fz_rewrite_t *w, aot_node_t node, const aot_op_desc_t *d,
                                 const operands_t *before_refresh, const aot_value_t *written, int unseen) {
  aot_node_info_t info = {.struct_size = sizeof info};
  AOT_TRY(w->host->graph->node_info(w->prog, node, &info));
  AOT_TRY(check_overlap(w, node, d, &info, before_refresh));
  int resized;
  uint32_t operand = 0, k = 0, carries = (uint32_t)fz_node_carries(w, &info, before_refresh->ids, before_refresh->n);
  for (uint32_t a = 0; a < info.n_args; a++) {
    uint32_t n = aot_n_operands(&info.args[a]);
    for (uint32_t i = 0; i < n; i++, operand++) {
      uint32_t v = before_refresh->ids[operand];
      if (v == AOT_NO_ID || !fz_writes_arg(d, &info, a)) continue;
      uint32_t place = fz_place_of(&w->alias, v);
      AOT_TRY(check_target(w, place, node));
      AOT_TRY(note_writer(w, place, node));
      w->alias.storages[w->alias.places[place].storage].carries |= carries;
      AOT_TRY(is_resized(w, place, written[k], &resized));
      if (d->flags & AOT_OP_INPLACE_VIEW)
        AOT_TRY(rename_place(w, v, info.first_result.id, written[k++], (aot_value_t){info.operands[operand]}, node));
      else if (resized) AOT_TRY(resize_place(w, node, d, &info, operand, v, written[k++], carries));
      else AOT_TRY(fz_write(w, place, written[k++], unseen, node));
      AOT_TRY(w->host->graph->node_info(w->prog, node, &info));
    }
  }
  return AOT_OK;
}

/* Results of a writing node: those that carry a written argument's mark are that argument; the others have memory of
 * their own. */
static void place_written_results(fz_rewrite_t *w, const aot_op_desc_t *d, const aot_node_info_t *info,
                                  const operands_t *before_refresh, const aot_value_t *results) {
  uint32_t carries = (uint32_t)fz_node_carries(w, info, before_refresh->ids, before_refresh->n);
  for (uint32_t i = 0; i < info->n_results; i++) {
    uint32_t declared = info->first_result.id + i, operand = fz_aliased_operand(d, info, i);
    if (fz_place_of(&w->alias, declared) != FZ_NONE) continue; /* renamed already */
    if (operand) {
      fz_alias_join(&w->alias, declared, before_refresh->ids[operand - 1]);
    } else {
      uint32_t place = fz_alias_base(&w->alias, declared, results[i].id);
      if (place != FZ_NONE) w->alias.storages[w->alias.places[place].storage].carries = carries;
    }
  }
}

static aot_status_t rewrite_writer(fz_rewrite_t *w, aot_node_t node, const aot_op_desc_t *d,
                                   const operands_t *before_refresh) {
  aot_node_info_t info = {.struct_size = sizeof info};
  AOT_TRY(w->host->graph->node_info(w->prog, node, &info));
  aot_value_t *values = calloc((size_t)info.n_results + info.n_operands + 1, sizeof *values);
  if (!values) return fz_no_alias_memory(w);
  aot_value_t *results = values, *written = values + info.n_results;
  int is_auto;
  aot_status_t status = fz_functional_form(w, node, d, before_refresh->ids, results, written, &is_auto);
  const int unseen = (info.flags & AOT_NODE_NO_GRAD) || (d->flags & AOT_OP_NO_GRAD);
  if (status == AOT_OK) status = apply_writes(w, node, d, before_refresh, written, unseen);
  if (status == AOT_OK) status = w->host->graph->node_info(w->prog, node, &info);
  if (status == AOT_OK) place_written_results(w, d, &info, before_refresh, results);
  free(values);
  return w->alias.failed ? fz_no_alias_memory(w) : status;
}

/* ---- the walk ---- */

/* Whose memory the results share follows from the places as they were at tracing: operands show current values later
 * on. What may run only once is no view step, unless its marks say so. */
static aot_status_t note_memory(const fz_rewrite_t *w, const aot_op_desc_t *d, const aot_node_info_t *n,
                                operands_t *original, uint32_t *declared) {
  const uint32_t runs_once = d->flags & (AOT_OP_EFFECT | AOT_OP_COLLECTIVE | AOT_OP_RANDOM);
  for (uint32_t k = 0; k < n->n_operands; k++) {
    uint32_t place = n->operands[k] == AOT_NO_ID ? FZ_NONE : fz_place_of(&w->alias, n->operands[k]);
    original->ids[k] = n->operands[k];
    declared[k] = place == FZ_NONE ? n->operands[k] : w->alias.places[place].declared;
  }
  AOT_TRY(fz_whose_memory(w->host, w->ctx, w->prog, n, declared, original->memory));
  for (uint32_t i = 0; runs_once && i < n->n_results; i++)
    if (original->memory[i] != fz_aliased_operand(d, n, i)) original->memory[i] = 0;
  return AOT_OK;
}

static aot_status_t place_result(fz_rewrite_t *w, const aot_op_desc_t *d, const aot_node_info_t *info,
                                 const operands_t *original, uint32_t i) {
  const aot_graph_api_t *g = w->host->graph;
  uint32_t declared = info->first_result.id + i, operand = original->memory[i];
  uint32_t parent = operand ? fz_place_of(&w->alias, original->ids[operand - 1]) : FZ_NONE, place;
  aot_type_t from, to;
  if (parent != FZ_NONE && fz_storage_offset_arg(d) >= 0) parent = fz_addressed(w, parent);
  if (parent != FZ_NONE) {
    AOT_TRY(g->value_type(w->prog, (aot_value_t){w->alias.places[parent].declared}, &from));
    AOT_TRY(g->value_type(w->prog, (aot_value_t){declared}, &to));
    if (fz_is_operand_itself(d, &from, &to)) {
      fz_alias_join(&w->alias, declared, original->ids[operand - 1]);
      return AOT_OK;
    }
  }
  if (parent == FZ_NONE) {
    place = fz_alias_base(&w->alias, declared, declared);
    if (place == FZ_NONE) return fz_no_alias_memory(w);
    w->alias.storages[w->alias.places[place].storage].carries =
        (uint32_t)fz_node_carries(w, info, original->ids, original->n);
  } else {
    place = fz_alias_view(&w->alias, parent, g->value_def(w->prog, (aot_value_t){declared}).id, i, declared, declared);
    if (place == FZ_NONE) return fz_no_alias_memory(w);
    w->alias.places[place].operand = operand - 1;
    w->alias.places[place].narrowed = original->narrowed != 0;
    w->alias.places[place].own_history = !(d->flags & AOT_OP_VIEW) && fz_is_differentiable(&to);
    if (!fz_is_exact(w, parent)) /* the node's types are what the rules of the boundary go by */
      return fz_replay(w, place, g->value_def(w->prog, (aot_value_t){declared}));
  }
  return AOT_OK;
}

/* f(x, x) with x.t_(): the other name of x has other sizes now than when the model was traced, and what was made of
 * it as well. */
static aot_status_t check_sizes(const fz_rewrite_t *w, aot_node_t node, const operands_t *original,
                                const aot_node_info_t *now) {
  for (uint32_t k = 0; w->entries && w->entries->n_rules > 0 && k < original->n; k++) {
    aot_type_t was, is;
    if (original->ids[k] == AOT_NO_ID) continue;
    AOT_TRY(w->host->graph->value_type(w->prog, (aot_value_t){original->ids[k]}, &was));
    AOT_TRY(w->host->graph->value_type(w->prog, (aot_value_t){now->operands[k]}, &is));
    if (was.rank == is.rank &&
        (was.rank == 0 || memcmp(was.sizes, is.sizes, (size_t)was.rank * sizeof *was.sizes) == 0))
      continue;
    return fz_fail(w->host, w->ctx, AOT_E_UNIMPLEMENTED, "functionalize.sizes",
                   "an input that is passed twice, and given other sizes in place, is read here by its other name; the "
                   "model was traced "
                   "with the old sizes",
                   node);
  }
  return AOT_OK;
}

static aot_status_t rewrite_node(fz_rewrite_t *w, aot_node_t node) {
  const aot_graph_api_t *g = w->host->graph;
  aot_node_info_t info = {.struct_size = sizeof info};
  AOT_TRY(g->node_info(w->prog, node, &info));
  const aot_op_desc_t *d = describe(w, &info);
  uint32_t *room = malloc((2 * (size_t)info.n_operands + info.n_results + 1) * sizeof *room);
  if (!room) return fz_no_alias_memory(w);
  operands_t original = {room, room + 2 * info.n_operands, info.n_operands, 0};
  aot_status_t status = note_memory(w, d, &info, &original, room + info.n_operands);
  if (status == AOT_OK && writes_anything(d, &info)) status = widen_written(w, d, &info, &original);
  for (uint32_t k = 0; status == AOT_OK && k < original.n; k++) status = refresh_operand(w, node, d, &original, k);
  if (status == AOT_OK) status = g->node_info(w->prog, node, &info);
  if (status == AOT_OK) status = check_sizes(w, node, &original, &info);
  if (status == AOT_OK && writes_anything(d, &info)) status = rewrite_writer(w, node, d, &original);
  else
    for (uint32_t i = 0; status == AOT_OK && i < info.n_results; i++) status = place_result(w, d, &info, &original, i);
  free(room);
  return w->alias.failed ? fz_no_alias_memory(w) : status;
}

static aot_status_t refresh_outputs(fz_rewrite_t *w) {
  uint32_t n = w->host->graph->n_outputs(w->prog, w->graph);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t v = w->host->graph->outputs(w->prog, w->graph)[i].value.id;
    uint32_t place = v == AOT_NO_ID ? FZ_NONE : fz_place_of(&w->alias, v);
    aot_value_t now;
    if (place == FZ_NONE) continue;
    AOT_TRY(fz_read(w, place, 0, aot_no_node(), &now));
    if (now.id != v) AOT_TRY(w->host->edit->output_set(w->prog, w->graph, i, now));
  }
  return AOT_OK;
}

/* Writers are gone from the data flow; so are views that were replayed elsewhere. Last one first. */
aot_status_t fz_erase_dead(fz_rewrite_t *w) {
  const aot_graph_api_t *g = w->host->graph;
  for (aot_node_t n = g->last(w->prog, w->graph), prev; n.id != AOT_NO_ID; n = prev) {
    aot_node_info_t info = {.struct_size = sizeof info};
    prev = g->prev(w->prog, n);
    AOT_TRY(g->node_info(w->prog, n, &info));
    const aot_op_desc_t *d = describe(w, &info);
    uint32_t uses =
        (n.id >= w->first_made ? d->flags : AOT_OP_EFFECT) & (AOT_OP_EFFECT | AOT_OP_RANDOM | AOT_OP_COLLECTIVE);
    if (writes_anything(d, &info) || (d->flags & AOT_OP_VIEW)) uses = 0;
    for (uint32_t i = 0; i < info.n_results; i++) uses += g->n_uses(w->prog, (aot_value_t){info.first_result.id + i});
    if (uses == 0) AOT_TRY(w->host->edit->node_erase(w->prog, n));
  }
  return AOT_OK;
}

aot_status_t fz_rewrite_graph(fz_rewrite_t *w) {
  const aot_graph_api_t *g = w->host->graph;
  for (uint32_t i = 0; i < g->n_inputs(w->prog, w->graph); i++) {
    aot_port_t port = g->inputs(w->prog, w->graph)[i];
    uint32_t place = fz_alias_base(&w->alias, port.value.id, port.value.id);
    if (place == FZ_NONE) return fz_no_alias_memory(w);
    AOT_TRY(fz_mark_leaf(w, &port, place));
  }
  for (aot_node_t n = g->first(w->prog, w->graph), next; n.id != AOT_NO_ID; n = next) {
    if (w->host->cancelled(w->host, w->ctx)) return AOT_E_CANCELLED;
    AOT_TRY(rewrite_node(w, n));
    next = g->next(w->prog, n);
  }
  return refresh_outputs(w);
}
