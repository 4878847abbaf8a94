#include "rewrite.h"

#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

aot_status_t fz_fail(const aot_host_t *host, aot_ctx_t *ctx, aot_status_t status, const char *code, const char *message,
                     aot_node_t node) {
  aot_diag_t d = {.struct_size = sizeof d, .severity = AOT_SEVERITY_ERROR};
  d.code = aot_str(code);
  d.message = aot_str(message);
  d.node = node;
  d.value = aot_no_value();
  host->diag(ctx, &d);
  return status;
}

static aot_status_t no_memory(fz_rewrite_t *w) {
  return fz_fail(w->host, w->ctx, AOT_E_EXHAUSTED, "functionalize.no-memory", "no memory for the alias sets", aot_no_node());
}

aot_status_t fz_rewrite_init(fz_rewrite_t *w, const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph) {
  memset(w, 0, sizeof *w);
  w->host = host;
  w->ctx = ctx;
  w->prog = prog;
  w->graph = graph;
  return fz_alias_init(&w->alias, host->graph->n_values(prog)) == 0 ? AOT_OK : no_memory(w);
}

void fz_rewrite_deinit(fz_rewrite_t *w) {
  fz_alias_deinit(&w->alias);
  free(w->chain);
}

/* ---- what the schema says about one node ---- */

static const aot_op_desc_t *describe(const fz_rewrite_t *w, const aot_node_info_t *n) {
  return w->host->graph->op_desc(w->prog, n->op);
}

static const aot_schema_arg_t *schema_of(const aot_op_desc_t *d, uint32_t arg) {
  return &d->args[arg < d->n_args ? arg : d->n_args - 1]; /* variadic operators repeat their last argument */
}

static int writes_arg(const aot_op_desc_t *d, const aot_node_info_t *n, uint32_t arg) {
  const aot_schema_arg_t *s = schema_of(d, arg);
  if (!(s->flags & AOT_SARG_WRITE)) return 0;
  return s->write_if < 0 || ((uint32_t)s->write_if < n->n_args && n->args[s->write_if].u.i != 0);
}

/* The schema's result that stands for node result i: a list result stands for several. */
static const aot_schema_arg_t *result_schema(const aot_op_desc_t *d, const aot_node_info_t *n, uint32_t i) {
  uint32_t extra = n->n_results > d->n_results ? n->n_results - d->n_results : 0;
  for (uint32_t k = 0; k < d->n_results; k++) {
    uint32_t width = d->results[k].flags & AOT_SARG_LIST ? extra + 1 : 1;
    if (i < width) return &d->results[k];
    i -= width;
  }
  return NULL;
}

/* First value of the argument whose alias mark a result carries; AOT_NO_ID: none. */
static uint32_t aliased_value(const aot_op_desc_t *d, const aot_node_info_t *n, const aot_schema_arg_t *result,
                              uint32_t list_position, uint32_t *out_arg) {
  for (uint32_t a = 0; result && result->alias_set != 0 && a < n->n_args; a++) {
    if (schema_of(d, a)->alias_set != result->alias_set) continue;
    *out_arg = a;
    if (n->args[a].kind == AOT_ARG_VALUE) return (uint32_t)n->args[a].u.i;
    if (n->args[a].kind == AOT_ARG_VALUES && n->args[a].n > 0)
      return n->args[a].u.ids[list_position < n->args[a].n ? list_position : 0];
  }
  return AOT_NO_ID;
}

/* ---- views that PyTorch makes only where the strides allow it (reshape, contiguous, flatten) ---- */

/* Can a tensor of old sizes and strides be seen with new_sizes without a copy, and with which strides? Runs of dimensions that
 * lie densely one behind the other may be cut up anew. Source: the rule of Tensor.view. */
static int viewable(const aot_type_t *from, const aot_type_t *to) {
  int32_t t = to->rank - 1;
  int64_t run = 1, seen = 1, base;
  if (from->rank == 0) return 1;
  base = from->strides[from->rank - 1];
  for (int32_t f = from->rank - 1; f >= 0; f--) {
    run *= from->sizes[f];
    if (f > 0 && (from->sizes[f - 1] == 1 || from->strides[f - 1] == run * base)) continue;
    while (t >= 0 && (seen < run || to->sizes[t] == 1)) {
      if (to->sizes[t] != 1 && to->strides[t] != seen * base) return 0;
      seen *= to->sizes[t--];
    }
    if (seen != run) return 0;
    if (f > 0) base = from->strides[f - 1], run = seen = 1;
  }
  return t < 0;
}

static int is_symbolic(const aot_type_t *t) {
  for (int32_t d = 0; d < t->rank; d++)
    if (AOT_DIM_IS_SYM(t->sizes[d]) || AOT_DIM_IS_SYM(t->strides[d])) return 1;
  return 0;
}

static int64_t count_elements(const aot_type_t *t) {
  int64_t n = 1;
  for (int32_t d = 0; d < t->rank; d++) n *= t->sizes[d];
  return n;
}

/* Does the result really share memory with what it may be a view of? Composite views copy where they must. */
static int shares_memory(fz_rewrite_t *w, const aot_op_desc_t *d, uint32_t operand, uint32_t result) {
  aot_type_t from, to;
  if (!(d->flags & AOT_OP_COMPOSITE)) return 1;
  if (w->host->graph->value_type(w->prog, (aot_value_t){operand}, &from) != AOT_OK ||
      w->host->graph->value_type(w->prog, (aot_value_t){result}, &to) != AOT_OK)
    return 1;
  if (from.dtype != to.dtype) return 0;
  if (is_symbolic(&from) || is_symbolic(&to)) return 1; /* dense in every program that exports; a copy would only cost time */
  if (count_elements(&from) != count_elements(&to)) return 1; /* a part of it: chunk, narrow */
  return viewable(&from, &to);
}

/* ---- reading a place ---- */

static aot_status_t replay_view(fz_rewrite_t *w, const fz_place_t *place, uint32_t parent_value, aot_node_t before,
                                aot_value_t *out) {
  const aot_graph_api_t *g = w->host->graph;
  aot_node_info_t view = {.struct_size = sizeof view};
  aot_type_t types[AOT_MAX_RANK];
  aot_type_t *all = types, *heap = NULL;
  aot_node_t made;
  AOT_TRY(g->node_info(w->prog, (aot_node_t){place->view_node}, &view));
  if (view.n_results > AOT_MAX_RANK) {
    all = heap = calloc(view.n_results, sizeof *heap);
    if (!heap) return no_memory(w);
  }
  aot_status_t status = AOT_OK;
  for (uint32_t i = 0; status == AOT_OK && i < view.n_results; i++)
    status = g->value_type(w->prog, (aot_value_t){view.first_result.id + i}, &all[i]);
  aot_node_spec_t spec = {.struct_size = sizeof spec, .flags = view.flags, .op = view.op, .n_args = view.n_args,
                          .args = view.args, .n_types = view.n_results, .types = all, .region_tag = view.region_tag,
                          .origin = view.origin};
  if (status == AOT_OK) status = w->host->edit->node_create(w->prog, w->graph, &spec, before, &made);
  free(heap);
  AOT_TRY(status);
  AOT_TRY(w->host->edit->operand_set(w->prog, made, 0, (aot_value_t){parent_value}));
  aot_node_info_t info = {.struct_size = sizeof info};
  AOT_TRY(g->node_info(w->prog, made, &info));
  out->id = info.first_result.id + place->view_index;
  w->n_replays++;
  return AOT_OK;
}

aot_status_t fz_read(fz_rewrite_t *w, uint32_t place, aot_node_t before, aot_value_t *out) {
  uint32_t depth = fz_is_stale(&w->alias, place) ? fz_depth(&w->alias, place) : 0;
  if (depth > w->chain_capacity) {
    uint32_t *bigger = realloc(w->chain, (size_t)depth * 2 * sizeof *bigger);
    if (!bigger) return no_memory(w);
    w->chain = bigger;
    w->chain_capacity = depth * 2;
  }
  uint32_t n = depth ? fz_stale_chain(&w->alias, place, w->chain) : 0;
  while (n-- > 0) {
    fz_place_t p = w->alias.places[w->chain[n]];
    AOT_TRY(replay_view(w, &p, w->alias.places[p.parent].value, before, out));
    fz_refresh(&w->alias, w->chain[n], out->id);
  }
  out->id = w->alias.places[place].value;
  return AOT_OK;
}

static aot_status_t refresh_operands(fz_rewrite_t *w, aot_node_t node, const aot_node_info_t *info) {
  for (uint32_t i = 0; i < info->n_operands; i++) {
    uint32_t v = info->operands[i], place = v < w->alias.n_values ? w->alias.place_of[v] : FZ_NONE;
    aot_value_t now;
    if (place == FZ_NONE) continue;
    AOT_TRY(fz_read(w, place, node, &now));
    if (now.id != v) AOT_TRY(w->host->edit->operand_set(w->prog, node, i, now));
  }
  return AOT_OK;
}

/* ---- writing through a place ---- */

static aot_status_t write_place(fz_rewrite_t *w, uint32_t place, aot_value_t updated, aot_node_t before) {
  fz_alias_t *a = &w->alias;
  uint32_t q = place;
  fz_new_version(a, place);
  fz_refresh(a, place, updated.id);
  w->n_writes++;
  while (a->places[q].parent != FZ_NONE) {
    fz_place_t p = a->places[q];
    aot_value_t base = {a->places[p.parent].value}, whole;
    AOT_TRY(w->host->edit->view_inverse(w->prog, (aot_node_t){p.view_node}, p.view_index, base, updated, before, &whole));
    fz_refresh(a, p.parent, whole.id);
    updated = whole;
    q = p.parent;
  }
  return AOT_OK;
}

/* t_, unsqueeze_: the name now means another view of the same memory. */
static aot_status_t rename_place(fz_rewrite_t *w, uint32_t operand, uint32_t declared, aot_value_t view) {
  const aot_graph_api_t *g = w->host->graph;
  uint32_t old = w->alias.place_of[operand];
  uint32_t place = fz_alias_view(&w->alias, old, g->value_def(w->prog, view).id, g->value_index(w->prog, view), declared, view.id);
  if (w->alias.failed) return no_memory(w);
  fz_alias_name(&w->alias, operand, place);
  fz_alias_name(&w->alias, declared, place);
  return AOT_OK;
}

/* The original operands of a node, before refreshing changed them. */
typedef struct operands {
  uint32_t *ids, n;
} operands_t;

static aot_status_t apply_writes(fz_rewrite_t *w, aot_node_t node, const aot_op_desc_t *d, const operands_t *before_refresh,
                                 const aot_value_t *written) {
  aot_node_info_t info = {.struct_size = sizeof info};
  AOT_TRY(w->host->graph->node_info(w->prog, node, &info));
  uint32_t operand = 0, k = 0;
  for (uint32_t a = 0; a < info.n_args; a++) {
    uint32_t n = info.args[a].kind == AOT_ARG_VALUE ? 1 : info.args[a].kind == AOT_ARG_VALUES ? info.args[a].n : 0;
    for (uint32_t i = 0; i < n; i++, operand++) {
      uint32_t v = before_refresh->ids[operand];
      if (v == AOT_NO_ID || !writes_arg(d, &info, a)) continue;
      uint32_t place = w->alias.place_of[v];
      if (d->flags & AOT_OP_INPLACE_VIEW) AOT_TRY(rename_place(w, v, info.first_result.id, written[k++]));
      else AOT_TRY(write_place(w, place, written[k++], node));
    }
  }
  return AOT_OK;
}

/* Results of a writing node: those that carry a written argument's mark are that argument; the others have memory of their own. */
static void place_written_results(fz_rewrite_t *w, const aot_op_desc_t *d, const aot_node_info_t *info,
                                  const operands_t *before_refresh, const aot_value_t *results) {
  for (uint32_t i = 0; i < info->n_results; i++) {
    uint32_t arg = 0, declared = info->first_result.id + i;
    if (w->alias.place_of[declared] != FZ_NONE) continue; /* renamed already */
    uint32_t v = aliased_value(d, info, result_schema(d, info, i), i, &arg), operand = 0;
    for (uint32_t k = 0; v != AOT_NO_ID && k < info->n_operands; k++)
      if (info->operands[k] == v) operand = before_refresh->ids[k];
    if (v != AOT_NO_ID) fz_alias_name(&w->alias, declared, w->alias.place_of[operand]);
    else fz_alias_base(&w->alias, declared, results[i].id);
  }
}

static aot_status_t rewrite_writer(fz_rewrite_t *w, aot_node_t node, const aot_op_desc_t *d, const operands_t *before_refresh) {
  aot_node_info_t info = {.struct_size = sizeof info};
  AOT_TRY(w->host->graph->node_info(w->prog, node, &info));
  aot_value_t *values = calloc((size_t)info.n_results + info.n_operands + 1, sizeof *values);
  if (!values) return no_memory(w);
  aot_value_t *results = values, *written = values + info.n_results;
  aot_status_t status = w->host->edit->functional_form(w->prog, node, results, written);
  if (status == AOT_OK) status = apply_writes(w, node, d, before_refresh, written);
  if (status == AOT_OK) status = w->host->graph->node_info(w->prog, node, &info);
  if (status == AOT_OK) place_written_results(w, d, &info, before_refresh, results);
  free(values);
  return w->alias.failed ? no_memory(w) : status;
}

/* ---- the walk ---- */

static void place_results(fz_rewrite_t *w, const aot_op_desc_t *d, const aot_node_info_t *info, const operands_t *before_refresh) {
  for (uint32_t i = 0; i < info->n_results; i++) {
    uint32_t declared = info->first_result.id + i, arg = 0, operand = AOT_NO_ID;
    uint32_t v = d->flags & AOT_OP_VIEW ? aliased_value(d, info, result_schema(d, info, i), i, &arg) : AOT_NO_ID;
    for (uint32_t k = 0; v != AOT_NO_ID && k < info->n_operands; k++)
      if (info->operands[k] == v) operand = before_refresh->ids[k];
    uint32_t parent = operand == AOT_NO_ID ? FZ_NONE : w->alias.place_of[operand];
    if (parent != FZ_NONE && shares_memory(w, d, v, declared))
      fz_alias_view(&w->alias, parent, w->host->graph->value_def(w->prog, (aot_value_t){declared}).id, i, declared, declared);
    else
      fz_alias_base(&w->alias, declared, declared);
  }
}

static int writes_anything(const aot_op_desc_t *d, const aot_node_info_t *n) {
  for (uint32_t a = 0; (d->flags & AOT_OP_WRITES) && a < n->n_args; a++)
    if (n->args[a].kind != AOT_ARG_NONE && writes_arg(d, n, a)) return 1;
  return 0;
}

static aot_status_t rewrite_node(fz_rewrite_t *w, aot_node_t node) {
  const aot_graph_api_t *g = w->host->graph;
  aot_node_info_t info = {.struct_size = sizeof info};
  AOT_TRY(g->node_info(w->prog, node, &info));
  const aot_op_desc_t *d = describe(w, &info);
  operands_t original = {malloc(((size_t)info.n_operands + 1) * 4), info.n_operands};
  if (!original.ids) return no_memory(w);
  if (info.n_operands) memcpy(original.ids, info.operands, (size_t)info.n_operands * 4);
  aot_status_t status = refresh_operands(w, node, &info);
  if (status == AOT_OK) status = g->node_info(w->prog, node, &info);
  if (status == AOT_OK && writes_anything(d, &info)) status = rewrite_writer(w, node, d, &original);
  else if (status == AOT_OK) place_results(w, d, &info, &original);
  free(original.ids);
  return w->alias.failed ? no_memory(w) : status;
}

static aot_status_t refresh_outputs(fz_rewrite_t *w) {
  uint32_t n = w->host->graph->n_outputs(w->prog, w->graph);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t v = w->host->graph->outputs(w->prog, w->graph)[i].value.id;
    uint32_t place = v < w->alias.n_values ? w->alias.place_of[v] : FZ_NONE;
    aot_value_t now;
    if (place == FZ_NONE) continue;
    AOT_TRY(fz_read(w, place, aot_no_node(), &now));
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
    uint32_t uses = 0;
    for (uint32_t i = 0; i < info.n_results; i++) uses += g->n_uses(w->prog, (aot_value_t){info.first_result.id + i});
    if (uses == 0 && (writes_anything(d, &info) || (d->flags & AOT_OP_VIEW))) AOT_TRY(w->host->edit->node_erase(w->prog, n));
  }
  return AOT_OK;
}

aot_status_t fz_rewrite_graph(fz_rewrite_t *w) {
  const aot_graph_api_t *g = w->host->graph;
  for (uint32_t i = 0; i < g->n_inputs(w->prog, w->graph); i++) {
    uint32_t v = g->inputs(w->prog, w->graph)[i].value.id;
    fz_alias_base(&w->alias, v, v);
  }
  for (aot_node_t n = g->first(w->prog, w->graph), next; n.id != AOT_NO_ID; n = next) {
    if (w->host->cancelled(w->ctx)) return AOT_E_CANCELLED;
    AOT_TRY(rewrite_node(w, n));
    next = g->next(w->prog, n);
  }
  return refresh_outputs(w);
}


