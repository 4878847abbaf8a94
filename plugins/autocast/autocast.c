/* The walk: each node once, in order, so that its operands have got their dtypes before it.
 *
 *     its list        LOWER, F32, WIDEST: casts; BANNED: an error; PARTS: its decomposition in its place, which is
 *     visited next its results     inferred again where an operand's dtype is another one than it was; sizes and
 *     strides stay no rule         (an operator without shape rule, a region's call) its operands are cast to what they
 *     came as
 *
 * A graph's ports keep their types: its outputs are cast back, so what is outside of it sees nothing of this. */
#include "autocast.h"

#include "kit/base/errors.h"
#include "kit/emit/emit.h"
#include <string.h>

typedef struct autocast_state {
  em_t e; /* at the node at hand */
  const aot_graph_api_t *graph;
  ac_options_t options;
  uint32_t n_values; /* that the program came with */
  int32_t *was;      /* by value, n_was of them: dtype that it came with; 0: no floating-point tensor, or made here */
  uint32_t n_was;
  uint8_t *is_leaf; /* by value: an input that requires a gradient. All its readers share one cast, as in PyTorch */
  uint32_t *cast;   /* by value: that cast; AOT_NO_ID: none yet */
  ac_counts_t counts;
} autocast_state_t;

/* ---- dtypes ---- */

/* What autocast casts: not doubles, no complex numbers. */
static int is_eligible(int32_t dtype) { return dtype == AOT_F32 || dtype == AOT_F16 || dtype == AOT_BF16; }

static int32_t dtype_of(const autocast_state_t *w, uint32_t id) {
  aot_type_t t;
  if (id == AOT_NO_ID || w->graph->value_type(w->e.prog, (aot_value_t){id}, &t) != AOT_OK) return 0;
  return t.kind == AOT_TYPE_TENSOR && aot_dtype_is_float(t.dtype) ? t.dtype : 0;
}

static int32_t was(const autocast_state_t *w, uint32_t id) { return id < w->n_was ? w->was[id] : 0; }

/* `id` represents a value that came with this dtype. */
static void stand_for(autocast_state_t *w, uint32_t id, int32_t dtype) {
  if (id >= w->n_was) {
    int32_t *more = em_scratch(&w->e, 2 * (uint64_t)id, sizeof *more);
    if (!more) return;
    memcpy(more, w->was, w->n_was * sizeof *more);
    w->was = more;
    w->n_was = 2 * id;
  }
  w->was[id] = dtype;
}

/* A value that was not there at first is the new operand of a node, or the operand of a new node. */
static int is_changed(const autocast_state_t *w, uint32_t id) {
  return id != AOT_NO_ID && (id >= w->n_values || dtype_of(w, id) != w->was[id]);
}

/* ---- casts ---- */

static aot_value_t cast(autocast_state_t *w, uint32_t id, int32_t dtype) {
  w->counts.casts++;
  return em_value(&w->e, em_cast(&w->e, em_v((aot_value_t){id}), dtype));
}

/* Once a step, and not within anything that its first reader is in: no_grad, a checkpoint. Its gradients are added up
 * in its dtype. */
static aot_value_t cast_leaf(autocast_state_t *w, uint32_t id) {
  if (w->cast[id] == AOT_NO_ID) {
    const aot_node_info_t reader = w->e.info;
    w->e.flags = AOT_NODE_PREFER_SAVE;
    w->e.region_tag = 0;
    w->cast[id] = cast(w, id, w->options.dtype).id;
    em_carry(&w->e, &reader);
  }
  return (aot_value_t){w->cast[id]};
}

static void cast_operand(autocast_state_t *w, uint32_t k, int32_t dtype) {
  const uint32_t id = w->e.info.operands[k];
  const int32_t from = dtype_of(w, id);
  if (!is_eligible(from) || from == dtype) return;
  const int is_shared = id < w->n_values && w->is_leaf[id] && dtype == w->options.dtype;
  const aot_value_t to = is_shared ? cast_leaf(w, id) : cast(w, id, dtype);
  if (em_ok(&w->e, AOT_OK)) em_ok(&w->e, w->e.host->edit->operand_set(w->e.prog, w->e.node, k, to));
  em_look(&w->e, w->e.node); /* the operands were borrowed until this edit */
}

static void cast_operands(autocast_state_t *w, int32_t dtype) {
  for (uint32_t k = 0; k < w->e.info.n_operands && w->e.status == AOT_OK; k++) cast_operand(w, k, dtype);
}

/* As they came, for a node that knows nothing else. */
static void cast_back(autocast_state_t *w) {
  for (uint32_t k = 0; k < w->e.info.n_operands && w->e.status == AOT_OK; k++) {
    const uint32_t id = w->e.info.operands[k];
    if (is_eligible(was(w, id))) cast_operand(w, k, was(w, id));
  }
}

static int32_t widest(const autocast_state_t *w) {
  for (uint32_t k = 0; k < w->e.info.n_operands; k++)
    if (dtype_of(w, w->e.info.operands[k]) == AOT_F32) return AOT_F32;
  return w->options.dtype;
}

/* Are some of low precision and others not? */
static int is_mixed(const autocast_state_t *w) {
  int32_t seen = 0;
  for (uint32_t k = 0; k < w->e.info.n_operands; k++) {
    const int32_t dtype = dtype_of(w, w->e.info.operands[k]);
    if (!is_eligible(dtype)) continue;
    if (seen && dtype != seen) return 1;
    seen = dtype;
  }
  return 0;
}

/* ---- results ---- */

typedef struct results {
  autocast_state_t *w;
  uint32_t n; /* so far */
  int32_t dtype[AOT_MAX_RANK], *at;
} results_t;

static aot_status_t AOT_CALL put_type(const aot_type_sink_t *sink, const aot_type_t *type) {
  results_t *r = sink->head.self;
  if (r->n == r->w->e.info.n_results) return AOT_E_INTERNAL;
  r->at[r->n++] = type->kind == AOT_TYPE_TENSOR && is_eligible(type->dtype) ? type->dtype : 0;
  return AOT_OK;
}

static void set_dtype(autocast_state_t *w, aot_value_t v, int32_t dtype) {
  aot_type_t t = em_type(&w->e, em_v(v));
  if (t.kind != AOT_TYPE_TENSOR || !is_eligible(t.dtype) || !is_eligible(dtype) || t.dtype == dtype) return;
  t.dtype = dtype;
  em_ok(&w->e, w->e.host->edit->type_set(w->e.prog, v, &t));
}

static int owns_regions(const autocast_state_t *w) {
  for (uint32_t a = 0; a < w->e.info.n_args; a++)
    if (w->e.info.args[a].kind == AOT_ARG_GRAPH) return 1;
  return 0;
}

static void infer_results(autocast_state_t *w) {
  em_t *e = &w->e;
  results_t r = {.w = w};
  const aot_type_sink_t sink = {.head = {.struct_size = sizeof sink, .self = &r}, .put = put_type};
  int any = 0;
  for (uint32_t k = 0; k < e->info.n_operands; k++) any |= is_changed(w, e->info.operands[k]);
  if (!any || e->status != AOT_OK) return;
  if (owns_regions(w)) {
    cast_back(w);
    return;
  }
  r.at = e->info.n_results <= AOT_MAX_RANK ? r.dtype : em_scratch(e, e->info.n_results, sizeof *r.at);
  if (!r.at) return;
  const aot_status_t status = e->host->edit->infer(e->prog, e->info.op, e->info.args, e->info.n_args, &sink);
  if (status == AOT_E_UNIMPLEMENTED) cast_back(w);
  else em_ok(e, status);
  for (uint32_t i = 0; i < r.n && e->status == AOT_OK; i++)
    set_dtype(w, (aot_value_t){e->info.first_result.id + i}, r.at[i]);
}

/* ---- nodes ---- */

static int says_dtype(const autocast_state_t *w) {
  for (uint32_t a = 0; a < w->e.info.n_args; a++)
    if (w->e.info.args[a].kind == AOT_ARG_DTYPE) return 1;
  return 0;
}

static void ban(autocast_state_t *w) {
  em_fail(&w->e, AOT_E_UNIMPLEMENTED, "compute the loss from the logits, with binary_cross_entropy_with_logits",
          "%.*s is not safe in mixed precision, as PyTorch has it", (int)w->e.desc->name.size, w->e.desc->name.data);
}

/* 1: its decomposition is in its place. */
static int take_apart(autocast_state_t *w) {
  em_t *e = &w->e;
  aot_value_t *out = em_scratch(e, e->info.n_results, sizeof *out);
  if (!out) return 0;
  const aot_status_t status = e->host->edit->decompose(e->prog, e->node, out);
  if (status == AOT_E_UNIMPLEMENTED || !em_ok(e, status)) return 0;
  for (uint32_t i = 0; i < e->info.n_results; i++) {
    const aot_value_t old = {e->info.first_result.id + i};
    if (out[i].id == AOT_NO_ID) continue;
    stand_for(w, out[i].id, was(w, old.id));
    em_take_over(e, old, out[i], 1);
  }
  return em_ok(e, e->status == AOT_OK ? e->host->edit->node_erase(e->prog, e->node) : e->status);
}

/* The dtype of the first floating operand; 0: none is eligible. */
static int32_t first_dtype(const autocast_state_t *w) {
  for (uint32_t k = 0; k < w->e.info.n_operands; k++) {
    const int32_t dtype = dtype_of(w, w->e.info.operands[k]);
    if (is_eligible(dtype)) return dtype;
  }
  return 0;
}

/* Everyone who reads a result reads it in this dtype. */
static void cast_results(autocast_state_t *w, int32_t dtype) {
  em_t *e = &w->e;
  const aot_graph_api_t *g = w->graph;
  e->before = g->next(e->prog, e->node);
  for (uint32_t i = 0; i < e->info.n_results && e->status == AOT_OK; i++) {
    const aot_value_t result = {e->info.first_result.id + i};
    if (!is_eligible(dtype_of(w, result.id)) || dtype_of(w, result.id) == dtype) continue;
    const aot_value_t to = cast(w, result.id, dtype);
    stand_for(w, to.id, was(w, result.id));
    if (em_ok(e, AOT_OK)) em_ok(e, e->host->edit->uses_replace(e->prog, result, to));
    if (em_ok(e, AOT_OK)) em_ok(e, e->host->edit->operand_set(e->prog, g->value_def(e->prog, to), 0, result));
  }
}

/* 1: other nodes are in its place, which are to be visited. */
static int visit(autocast_state_t *w) {
  int32_t back = 0; /* dtype of results; 0: as they are */
  switch (w->e.desc->autocast[w->options.device]) {
    case AOT_AUTOCAST_LOWER:
      cast_operands(w, w->options.dtype);
      w->counts.lower++;
      break;
    case AOT_AUTOCAST_F32_AND_BACK:
      back = first_dtype(w);
      cast_operands(w, AOT_F32);
      w->counts.f32++;
      break;
    case AOT_AUTOCAST_F32:
      if (says_dtype(w)) break;
      cast_operands(w, AOT_F32);
      w->counts.f32++;
      break;
    case AOT_AUTOCAST_WIDEST: cast_operands(w, widest(w)); break;
    case AOT_AUTOCAST_BANNED: ban(w); break;
    case AOT_AUTOCAST_PARTS:
      /* a decomposition may want one dtype of its operands; what it lowers of them comes back as it was */
      if (is_mixed(w)) cast_operands(w, AOT_F32);
      if (take_apart(w)) return 1;
      break;
  }
  infer_results(w);
  if (back && back != AOT_F32) cast_results(w, back);
  return 0;
}

/* ---- graphs ---- */

static void restore_outputs(autocast_state_t *w, aot_graph_t graph) {
  em_t *e = &w->e;
  e->before = aot_no_node();
  e->flags = e->region_tag = 0;
  for (uint32_t i = 0; i < w->graph->n_outputs(e->prog, graph) && e->status == AOT_OK; i++) {
    const uint32_t id = w->graph->outputs(e->prog, graph)[i].value.id;
    if (!was(w, id) || dtype_of(w, id) == was(w, id)) continue;
    const aot_value_t back = cast(w, id, was(w, id));
    if (em_ok(e, AOT_OK)) em_ok(e, e->host->edit->output_set(e->prog, graph, i, back));
  }
}

static aot_status_t walk_graph(autocast_state_t *w, aot_graph_t graph) {
  em_t *e = &w->e;
  aot_node_t next;
  for (aot_node_t n = w->graph->first(e->prog, graph); n.id != AOT_NO_ID && e->status == AOT_OK; n = next) {
    const aot_node_t before = w->graph->prev(e->prog, n);
    if (e->host->cancelled(e->host, e->ctx)) return AOT_E_CANCELLED;
    AOT_TRY(em_rewrite(e, n));
    next = w->graph->next(e->prog, n);
    if (visit(w)) next = before.id == AOT_NO_ID ? w->graph->first(e->prog, graph) : w->graph->next(e->prog, before);
  }
  e->graph = graph;
  restore_outputs(w, graph);
  return e->status;
}

/* ---- the program ---- */

static int init(autocast_state_t *w) {
  em_t *e = &w->e;
  w->n_values = w->n_was = w->graph->n_values(e->prog);
  w->was = em_scratch(e, w->n_values, sizeof *w->was);
  w->is_leaf = em_scratch(e, w->n_values, sizeof *w->is_leaf);
  w->cast = em_scratch(e, w->n_values, sizeof *w->cast);
  if (e->status != AOT_OK) return 0;
  for (uint32_t i = 1; i < w->n_values; i++) w->was[i] = dtype_of(w, i);
  return 1;
}

/* Is the program in low precision already: are there parameters of it, and none of float32? */
static int mark_leaves(autocast_state_t *w, aot_graph_t forward) {
  const aot_port_t *in = w->graph->inputs(w->e.prog, forward);
  int any_low = 0, any_f32 = 0;
  for (uint32_t i = 0, n = w->graph->n_inputs(w->e.prog, forward); i < n; i++) {
    aot_leaf_info_t leaf = {.struct_size = sizeof leaf};
    if (!aot_role_is_leaf(in[i].role) || w->graph->leaf_info(w->e.prog, (aot_leaf_t){in[i].index}, &leaf) != AOT_OK)
      continue;
    w->is_leaf[in[i].value.id] = (leaf.flags & AOT_LEAF_REQUIRES_GRAD) != 0;
    if (leaf.role != AOT_ROLE_PARAMETER) continue;
    any_low |= leaf.type.dtype == AOT_BF16 || leaf.type.dtype == AOT_F16;
    any_f32 |= leaf.type.dtype == AOT_F32;
  }
  return any_low && !any_f32;
}

static void tell_unchanged(const autocast_state_t *w) {
  const aot_diag_t d = kit_diag(AOT_SEVERITY_NOTE, "autocast.unchanged",
                                "the parameters are of low precision already, so the program stays as it is");
  w->e.host->diag(w->e.host, w->e.ctx, &d);
}

aot_status_t ac_run(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const ac_options_t *options,
                    ac_counts_t *out) {
  autocast_state_t w = {.e = em_make(host, ctx, prog, host->graph->graph_find(prog, AOT_GRAPH_FORWARD)),
                        .graph = host->graph,
                        .options = *options};
  w.e.code = "autocast";
  if (!init(&w)) return w.e.status;
  if (mark_leaves(&w, w.e.graph)) {
    tell_unchanged(&w);
    return AOT_OK;
  }
  for (uint32_t i = 1, n = host->graph->n_graphs(prog); i < n; i++) {
    int32_t kind;
    aot_str_t name;
    if (host->graph->graph_info(prog, (aot_graph_t){i}, &kind, &name) == AOT_OK)
      AOT_TRY(walk_graph(&w, (aot_graph_t){i}));
  }
  *out = w.counts;
  return w.e.status;
}
