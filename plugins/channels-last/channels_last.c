/* The walk: each node once, in order, so that its operands lie as they are going to before it.
 *
 *     convolution     its images and its weights are copied, unless they lie channels last by then
 *     its results     inferred again where an operand's layout has changed: the operator set knows which operators
 *                     propagate the layout, as PyTorch does
 *     no rule, or one that depends on the operands' layout (view): it gets them in their original layout
 *
 * A graph's ports keep their types: its outputs are copied back. What is connected by values that lie otherwise now is
 * an island. The first walk is a trial with all convolutions; it is undone, and the second one goes with those of
 * the islands that pay. */
#include "channels_last.h"

#include "kit/emit/emit_layout.h"
#include "islands.h"
#include <aot/ext/trial.h>
#include <string.h>

/* A copy of a value that its later readers share, if they are in the same checkpoint and the like. */
typedef struct copy {
  uint32_t value; /* AOT_NO_ID: none yet */
  uint32_t flags, region_tag;
} copy_t;

typedef struct value {
  const aot_type_t *was; /* NULL: it lies as it came */
  uint32_t island;       /* of what does not */
  copy_t last, back;     /* channels last; as it was */
} value_t;

typedef struct layout_state {
  em_t e; /* at the node at hand */
  const aot_graph_api_t *graph;
  const uint8_t *is_wanted; /* by convolution; NULL: all of them */
  uint32_t *island;         /* by convolution */
  uint32_t n_convolutions;  /* so far */
  nhwc_islands_t islands;
  value_t *values;
  uint32_t n_values;
} layout_state_t;

/* ---- values ---- */

static value_t *value_at(layout_state_t *w, uint32_t id) {
  if (id >= w->n_values) {
    value_t *more = em_scratch(&w->e, 2 * (uint64_t)id, sizeof *more);
    if (!more) return &w->values[0];
    memcpy(more, w->values, w->n_values * sizeof *more);
    w->values = more;
    w->n_values = 2 * id;
  }
  return &w->values[id];
}

static const aot_type_t *was(const layout_state_t *w, uint32_t id) {
  return id < w->n_values ? w->values[id].was : NULL;
}

static aot_type_t type_of(layout_state_t *w, uint32_t id) {
  return id == AOT_NO_ID ? (aot_type_t){.kind = AOT_TYPE_NONE} : em_type(&w->e, em_v((aot_value_t){id}));
}

static uint64_t nbytes(const layout_state_t *w, const aot_type_t *t) {
  return (uint64_t)em_numel(&w->e, t) * aot_dtype_size(t->dtype);
}

static int is_volume(const aot_type_t *t) { return t->kind == AOT_TYPE_TENSOR && (t->rank == 4 || t->rank == 5); }

/* A type and its strides, beyond the next edit. */
static aot_type_t *keep(layout_state_t *w, const aot_type_t *t) {
  const uint64_t rank = (uint64_t)t->rank;
  aot_type_t *out = em_scratch(&w->e, 1, sizeof *out);
  int64_t *dims = em_scratch(&w->e, 2 * rank, sizeof *dims);
  if (!out || !dims) return NULL;
  memcpy(dims, t->sizes, rank * sizeof *dims);
  memcpy(dims + rank, t->strides, rank * sizeof *dims);
  *out = *t;
  out->sizes = dims;
  out->strides = dims + rank;
  return out;
}

/* ---- copies ---- */

static void count_copy(layout_state_t *w, uint32_t island, const aot_type_t *t) {
  nhwc_island_t *of = nhwc_island_of(&w->islands, island);
  of->n_copies++;
  of->copied_nbytes += 2 * nbytes(w, t);
}

static void set_operand(layout_state_t *w, uint32_t k, uint32_t id) {
  em_t *e = &w->e;
  if (em_ok(e, AOT_OK)) em_ok(e, e->host->edit->operand_set(e->prog, e->node, k, (aot_value_t){id}));
  em_look(e, e->node); /* the operands were borrowed until this edit */
}

static int serves(const copy_t *c, const em_t *e) {
  return c->value != AOT_NO_ID && c->flags == e->flags && c->region_tag == e->region_tag;
}

/* The argument that says how a node's result is to lie, where nothing has been said and the result is read once; -1:
 * none. */
static int32_t open_format(layout_state_t *w, uint32_t id, aot_node_info_t *out) {
  const aot_graph_api_t *g = w->graph;
  const aot_node_t maker = g->value_def(w->e.prog, (aot_value_t){id});
  *out = (aot_node_info_t){.struct_size = sizeof *out};
  if (maker.id == AOT_NO_ID || g->n_uses(w->e.prog, (aot_value_t){id}) != 1) return -1;
  if (!em_ok(&w->e, g->node_info(w->e.prog, maker, out))) return -1;
  const aot_op_desc_t *d = g->op_desc(w->e.prog, out->op);
  if (!(d->flags & AOT_OP_MOVEMENT) || (d->flags & AOT_OP_VIEW) || out->n_results != 1) return -1;
  for (uint32_t a = 0; a < d->n_args; a++) {
    if (d->args[a].type != AOT_STYPE_MEMORY_FORMAT) continue;
    const aot_arg_t *said = &out->args[a];
    return said->kind == AOT_ARG_NONE || said->u.i == AOT_MEMORY_PRESERVE ? (int32_t)a : -1;
  }
  return -1;
}

static void change_type(layout_state_t *w, uint32_t id, const aot_type_t *to, uint32_t island);
static void infer_results(layout_state_t *w, uint32_t island);

/* A copy that is made anyway (a cast) is made in this order. 1: it is. */
static int use_copy(layout_state_t *w, uint32_t id, const aot_type_t *t, uint32_t island) {
  em_t *e = &w->e;
  const aot_node_t reader = e->node;
  aot_node_info_t maker;
  const int32_t at = open_format(w, id, &maker);
  if (at < 0) return 0;
  const aot_arg_t format = aot_arg_int_kind(AOT_ARG_MEMORY_FORMAT, em_channels_last(t->rank));
  const aot_node_t node = w->graph->value_def(e->prog, (aot_value_t){id});
  if (em_ok(e, AOT_OK)) em_ok(e, e->host->edit->arg_set(e->prog, node, (uint32_t)at, &format));
  em_look(e, node);
  infer_results(w, island);
  em_look(e, reader);
  return 1;
}

/* Weights that are a leaf, or one's cast, are copied once a step, and not within what their first reader is in. */
static int is_of_leaf(layout_state_t *w, uint32_t id) {
  const aot_node_t maker = w->graph->value_def(w->e.prog, (aot_value_t){id});
  aot_node_info_t info = {.struct_size = sizeof info};
  if (maker.id == AOT_NO_ID) return 1;
  return em_ok(&w->e, w->graph->node_info(w->e.prog, maker, &info)) && (info.flags & AOT_NODE_PREFER_SAVE);
}

static void copy_operand(layout_state_t *w, uint32_t k, uint32_t island) {
  em_t *e = &w->e;
  const uint32_t id = e->info.operands[k];
  const aot_type_t t = type_of(w, id);
  const aot_node_info_t reader = e->info;
  if (k > 0 && is_of_leaf(w, id)) {
    e->flags = AOT_NODE_PREFER_SAVE;
    e->region_tag = 0;
  }
  if (!serves(&value_at(w, id)->last, e)) {
    const uint32_t to = em_value(e, em_in_format(e, em_v((aot_value_t){id}), em_channels_last(t.rank))).id;
    if (e->status != AOT_OK) return;
    value_at(w, id)->last = (copy_t){to, e->flags, e->region_tag};
    value_at(w, to)->was = keep(w, &t);
    value_at(w, to)->island = island;
    count_copy(w, island, &t);
  }
  const uint32_t to = value_at(w, id)->last.value;
  nhwc_island_join(&w->islands, island, value_at(w, to)->island);
  em_carry(e, &reader);
  set_operand(w, k, to);
}

/* The value as it was, for the node at hand. */
static uint32_t as_it_was(layout_state_t *w, uint32_t id) {
  em_t *e = &w->e;
  const value_t v = *value_at(w, id);
  if (serves(&v.back, e)) return v.back.value;
  const aot_value_t to = em_value(e, em_laid_out(e, em_v((aot_value_t){id}), v.was));
  if (e->status != AOT_OK) return id;
  if (to.id == id || v.was->offset) { /* a window into something larger: such memory no copy has */
    nhwc_island_of(&w->islands, v.island)->is_barred = 1;
    return id;
  }
  value_at(w, id)->back = (copy_t){to.id, e->flags, e->region_tag};
  count_copy(w, v.island, v.was);
  return to.id;
}

static void restore_operands(layout_state_t *w) {
  for (uint32_t k = 0; k < w->e.info.n_operands && w->e.status == AOT_OK; k++)
    if (was(w, w->e.info.operands[k])) set_operand(w, k, as_it_was(w, w->e.info.operands[k]));
}

/* ---- results ---- */

static void change_type(layout_state_t *w, uint32_t id, const aot_type_t *to, uint32_t island) {
  em_t *e = &w->e;
  aot_type_t t = type_of(w, id);
  if (e->status != AOT_OK || t.kind != AOT_TYPE_TENSOR || to->kind != t.kind || to->rank != t.rank) return;
  if (em_lies_alike(e, &t, to) && t.offset == to->offset) return;
  value_t *v = value_at(w, id);
  if (!v->was) v->was = keep(w, &t);
  v->island = nhwc_island_join(&w->islands, v->island, island);
  t.strides = to->strides;
  t.offset = to->offset;
  if (em_ok(e, AOT_OK)) em_ok(e, e->host->edit->type_set(e->prog, (aot_value_t){id}, &t));
}

typedef struct results {
  layout_state_t *w;
  uint32_t n; /* so far */
  const aot_type_t **at;
} results_t;

static aot_status_t AOT_CALL put_type(const aot_type_sink_t *sink, const aot_type_t *type) {
  results_t *r = sink->head.self;
  if (r->n == r->w->e.info.n_results) return AOT_E_INTERNAL;
  r->at[r->n++] = type->kind == AOT_TYPE_TENSOR ? keep(r->w, type) : type;
  return r->w->e.status;
}

/* What was a view is a copy now, of what it reads: reshape. */
static void count_sharing(layout_state_t *w, const aot_type_t *const *results, uint32_t island) {
  em_t *e = &w->e;
  if (!(e->desc->flags & AOT_OP_VIEW) || e->info.n_operands != 1 || e->info.n_results != 1) return;
  const aot_type_t operand = type_of(w, e->info.operands[0]);
  const aot_call_t call = {.struct_size = sizeof call,
                           .n_args = e->info.n_args,
                           .args = e->info.args,
                           .operands = &operand,
                           .results = results[0],
                           .n_operands = 1,
                           .n_results = 1};
  uint32_t shares = 1;
  if (em_ok(e, e->host->edit->aliases(e->prog, e->info.op, &call, &shares)) && !shares) count_copy(w, island, &operand);
}

static void infer_results(layout_state_t *w, uint32_t island) {
  em_t *e = &w->e;
  results_t r = {.w = w, .at = em_scratch(e, e->info.n_results, sizeof *r.at)};
  const aot_type_sink_t sink = {.head = {.struct_size = sizeof sink, .self = &r}, .put = put_type};
  if (!r.at) return;
  const aot_status_t status = e->host->edit->infer(e->prog, e->info.op, e->info.args, e->info.n_args, &sink);
  if (status == AOT_E_UNIMPLEMENTED) restore_operands(w);
  else if (em_ok(e, status)) count_sharing(w, r.at, island);
  for (uint32_t i = 0; status == AOT_OK && i < r.n && e->status == AOT_OK; i++)
    change_type(w, e->info.first_result.id + i, r.at[i], island);
}

/* ---- nodes ---- */

static int owns_regions(const layout_state_t *w) {
  for (uint32_t a = 0; a < w->e.info.n_args; a++)
    if (w->e.info.args[a].kind == AOT_ARG_GRAPH) return 1;
  return 0;
}

/* Windows side by side, larger than a pixel: the convolution is a product of pixels in another order, whatever lies
 * last. */
static int is_patch(const layout_state_t *w, const aot_type_t *x, const aot_type_t *weight, const aot_type_t *y) {
  int64_t window = 1;
  for (int32_t d = 2; d < x->rank; d++) {
    const int64_t in = em_hint(&w->e, x->sizes[d]), out = em_hint(&w->e, y->sizes[d]),
                  k = em_hint(&w->e, weight->sizes[d]);
    if (in != out * k && out != in * k) return 0;
    window *= k;
  }
  return window > 1;
}

static uint64_t saved_nbytes(const layout_state_t *w, const aot_type_t *t) {
  return em_lies_channels_last(&w->e, t) ? 0 : 2 * nbytes(w, t);
}

/* The copies that a convolution makes of what does not lie channels last are saved. */
static void count_convolution(layout_state_t *w, uint32_t island) {
  const aot_node_info_t *info = &w->e.info;
  aot_type_t t[3];
  const uint32_t ids[] = {info->operands[0], info->operands[1], info->first_result.id};
  for (int i = 0; i < 3; i++) t[i] = was(w, ids[i]) ? *was(w, ids[i]) : type_of(w, ids[i]);
  nhwc_island_t *of = nhwc_island_of(&w->islands, island);
  of->n_convolutions++;
  if (is_patch(w, &t[0], &t[1], &t[2])) of->n_patches++;
  else
    for (int i = 0; i < 3; i++) of->saved_nbytes += saved_nbytes(w, &t[i]);
}

/* 1: it is one of images or volumes. */
static int is_convolution(layout_state_t *w) {
  if (!(w->e.desc->flags & AOT_OP_CONVOLUTION) || w->e.info.n_operands < 2 || w->e.info.n_results != 1) return 0;
  const aot_type_t x = type_of(w, w->e.info.operands[0]), weight = type_of(w, w->e.info.operands[1]);
  return is_volume(&x) && is_volume(&weight) && x.rank == weight.rank;
}

static void visit_convolution(layout_state_t *w) {
  const uint32_t number = w->n_convolutions++;
  if (w->is_wanted && !w->is_wanted[number]) return;
  const uint32_t island = w->island[number] = nhwc_island_new(&w->islands);
  int is_said = 0; /* does something show that it is to be so? */
  count_convolution(w, island);
  for (uint32_t k = 0; k < 2 && w->e.status == AOT_OK; k++) {
    const uint32_t id = w->e.info.operands[k];
    const aot_type_t t = type_of(w, id);
    is_said |= was(w, id) != NULL;
    if (em_lies_channels_last(&w->e, &t)) continue;
    if (!use_copy(w, id, &t, island)) copy_operand(w, k, island);
    is_said = 1;
  }
  /* with one channel both layouts are equal; the convolution's layout follows its operands' */
  const aot_type_t y = type_of(w, w->e.info.first_result.id);
  if (!is_said && !em_lies_channels_last(&w->e, &y)) copy_operand(w, 1, island);
}

static void visit(layout_state_t *w) {
  uint32_t island = NHWC_NO_ISLAND;
  if (is_convolution(w)) visit_convolution(w);
  for (uint32_t k = 0; k < w->e.info.n_operands; k++)
    if (was(w, w->e.info.operands[k]))
      island = nhwc_island_join(&w->islands, island, w->values[w->e.info.operands[k]].island);
  if (island == NHWC_NO_ISLAND || w->e.status != AOT_OK) return;
  if ((w->e.desc->flags & AOT_OP_AS_IT_LIES) || owns_regions(w)) restore_operands(w);
  else infer_results(w, island);
}

/* ---- graphs ---- */

static void restore_outputs(layout_state_t *w, aot_graph_t graph) {
  em_t *e = &w->e;
  e->graph = graph;
  e->before = aot_no_node();
  e->flags = e->region_tag = 0;
  for (uint32_t i = 0; i < w->graph->n_outputs(e->prog, graph) && e->status == AOT_OK; i++) {
    const uint32_t id = w->graph->outputs(e->prog, graph)[i].value.id;
    if (id == AOT_NO_ID || !was(w, id)) continue;
    const aot_value_t back = {as_it_was(w, id)};
    if (em_ok(e, AOT_OK)) em_ok(e, e->host->edit->output_set(e->prog, graph, i, back));
  }
}

static aot_status_t walk_graph(layout_state_t *w, aot_graph_t graph) {
  em_t *e = &w->e;
  for (aot_node_t n = w->graph->first(e->prog, graph), next; n.id != AOT_NO_ID && e->status == AOT_OK; n = next) {
    if (e->host->cancelled(e->host, e->ctx)) return AOT_E_CANCELLED;
    AOT_TRY(em_rewrite(e, n));
    next = w->graph->next(e->prog, n);
    visit(w);
  }
  restore_outputs(w, graph);
  return e->status;
}

static aot_status_t walk_program(layout_state_t *w) {
  em_t *e = &w->e;
  w->n_values = w->graph->n_values(e->prog);
  w->values = em_scratch(e, w->n_values, sizeof *w->values);
  for (uint32_t i = 1, n = w->graph->n_graphs(e->prog); i < n && e->status == AOT_OK; i++) {
    int32_t kind;
    aot_str_t name;
    if (w->graph->graph_info(e->prog, (aot_graph_t){i}, &kind, &name) == AOT_OK)
      AOT_TRY(walk_graph(w, (aot_graph_t){i}));
  }
  return e->status;
}

/* ---- the program ---- */

static uint32_t count_convolutions(layout_state_t *w) {
  uint32_t n = 0;
  for (uint32_t i = 1, n_graphs = w->graph->n_graphs(w->e.prog); i < n_graphs; i++) {
    int32_t kind;
    aot_str_t name;
    if (w->graph->graph_info(w->e.prog, (aot_graph_t){i}, &kind, &name) != AOT_OK) continue;
    for (aot_node_t node = w->graph->first(w->e.prog, (aot_graph_t){i}); node.id != AOT_NO_ID && w->e.status == AOT_OK;
         node = w->graph->next(w->e.prog, node))
      n += em_look(&w->e, node) == AOT_OK && is_convolution(w);
  }
  return n;
}

/* Everything is tried, and undone. */
static aot_status_t try_all(layout_state_t w, const aot_ext_trial_t *trial, layout_state_t *out) {
  AOT_TRY(trial->begin(trial, w.e.ctx, w.e.prog));
  const aot_status_t status = walk_program(&w);
  *out = w;
  const aot_status_t undone = trial->undo(trial, w.e.ctx, w.e.prog);
  return status != AOT_OK ? status : undone;
}

static void add_up(nhwc_counts_t *out, const nhwc_island_t *i) {
  out->n_copies += i->n_copies;
  out->copied_nbytes += i->copied_nbytes;
  out->saved_nbytes += i->saved_nbytes;
}

/* Which convolutions are in islands that pay; how many are there. */
static uint32_t choose(layout_state_t *tried, uint8_t *is_wanted, nhwc_counts_t *out) {
  uint32_t n = 0;
  for (uint32_t c = 0; c < tried->n_convolutions; c++)
    n += is_wanted[c] = (uint8_t)nhwc_island_pays(nhwc_island_of(&tried->islands, tried->island[c]));
  out->n_convolutions = n;
  out->n_others = tried->n_convolutions - n;
  for (uint32_t i = 1; i <= tried->islands.n; i++) {
    const nhwc_island_t *island = &tried->islands.at[i];
    if (island->parent != i) continue;
    out->n_patches += island->n_patches;
    if (!n || nhwc_island_pays(island)) add_up(out, island);
  }
  return n;
}

aot_status_t nhwc_run(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, nhwc_counts_t *out) {
  const aot_ext_trial_t *trial = aot_ext(&host->head, AOT_EXT_TRIAL);
  layout_state_t w = {.e = em_make(host, ctx, prog, host->graph->graph_find(prog, AOT_GRAPH_FORWARD)),
                      .graph = host->graph};
  w.e.code = "channels-last";
  const uint32_t n = count_convolutions(&w);
  if (w.e.status != AOT_OK || !n || !trial) return w.e.status;
  w.e.desc = NULL;
  w.island = em_scratch(&w.e, n, sizeof *w.island);
  w.islands.at = em_scratch(&w.e, n + 1, sizeof *w.islands.at);
  uint8_t *is_wanted = em_scratch(&w.e, n, sizeof *is_wanted);
  if (w.e.status != AOT_OK) return w.e.status;
  layout_state_t tried;
  AOT_TRY(try_all(w, trial, &tried));
  if (!choose(&tried, is_wanted, out)) return AOT_OK;
  w.is_wanted = is_wanted;
  return walk_program(&w);
}
