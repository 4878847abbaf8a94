#include "apply_hooks.h"

#include "hook_report.h"
#include "kit/emit/emit_layout.h"
#include <aot/ext/saved.h>
#include <aot/inline.h>
#include <string.h>

/* One value that the backward reads: a saved slot, or (slot AOT_NO_INDEX) a leaf that it reads in place. */
typedef struct candidate {
  uint32_t slot;
  uint32_t output;               /* the slot's output of the forward */
  aot_value_t forward, backward; /* the value on both sides */
  uint32_t held;                 /* AOT_HELD_* */
} candidate_t;

typedef struct work {
  em_t *e;
  const hk_plan_t *plan;
  const hk_hook_t *hook;
  aot_graph_t forward, backward;
  candidate_t *candidates;
  uint32_t n_candidates, n_slots;
  uint32_t *position; /* by node: its place in the backward */
  hk_report_t report;
} work_t;

static void *scratch(work_t *w, uint64_t n, uint64_t size) {
  void *memory = w->e->host->alloc(w->e->host, w->e->ctx, AOT_ARENA_SCRATCH, 8, (n + 1) * size);
  if (!memory) w->e->status = AOT_E_EXHAUSTED;
  return memory;
}

/* ---- what there is ---- */

static uint32_t *who_holds(work_t *w) {
  em_t *e = w->e;
  const aot_ext_saved_t *x = aot_ext(&e->host->head, AOT_EXT_SAVED);
  const uint32_t n = e->host->graph->n_outputs(e->prog, w->forward);
  uint32_t *held = scratch(w, n, sizeof *held);
  if (!x)
    hk_fail(e, AOT_E_PRECONDITION, "hooks.host", aot_str(NULL), 0, aot_no_value(), "",
            "this host does not tell who holds saved values");
  if (e->status == AOT_OK) e->status = x->held(x, e->ctx, e->prog, held, n, &w->n_slots);
  return held;
}

static void add_slots(work_t *w, const uint32_t *held) {
  const aot_graph_api_t *g = w->e->host->graph;
  const uint32_t n_out = g->n_outputs(w->e->prog, w->forward), n_in = g->n_inputs(w->e->prog, w->backward);
  for (uint32_t i = 0; i < w->n_slots; i++) w->candidates[i] = (candidate_t){.slot = i, .held = held[i]};
  for (uint32_t i = 0; i < n_out; i++) {
    const aot_port_t port = g->outputs(w->e->prog, w->forward)[i];
    if (port.role != AOT_ROLE_SAVED) continue;
    w->candidates[port.index].output = i;
    w->candidates[port.index].forward = port.value;
  }
  for (uint32_t i = 0; i < n_in; i++) {
    const aot_port_t port = g->inputs(w->e->prog, w->backward)[i];
    if (port.role == AOT_ROLE_SAVED) w->candidates[port.index].backward = port.value;
  }
  w->n_candidates = w->n_slots;
}

/* Leaves that the backward reads in place, and that are the forward's inputs. by_leaf: the forward's value of a
 * leaf. */
static void add_leaves(work_t *w) {
  const aot_graph_api_t *g = w->e->host->graph;
  const uint32_t n_leaves = g->n_leaves(w->e->prog), n_forward = g->n_inputs(w->e->prog, w->forward);
  uint32_t *by_leaf = scratch(w, n_leaves, sizeof *by_leaf);
  if (!by_leaf) return;
  for (uint32_t i = 0; i < n_forward; i++) {
    const aot_port_t port = g->inputs(w->e->prog, w->forward)[i];
    if (port.role <= AOT_ROLE_STATE) by_leaf[port.index] = port.value.id;
  }
  for (uint32_t i = 0; i < g->n_inputs(w->e->prog, w->backward); i++) {
    const aot_port_t port = g->inputs(w->e->prog, w->backward)[i];
    if (port.role > AOT_ROLE_STATE || by_leaf[port.index] == AOT_NO_ID) continue;
    w->candidates[w->n_candidates++] = (candidate_t){
        .slot = AOT_NO_INDEX,
        .forward = {by_leaf[port.index]},
        .backward = port.value,
        .held = port.role == AOT_ROLE_USER_INPUT ? AOT_HELD_INPUT : AOT_HELD_STATIC,
    };
  }
}

static void number_nodes(work_t *w) {
  const aot_graph_api_t *g = w->e->host->graph;
  uint32_t n = 0;
  w->position = scratch(w, g->n_nodes(w->e->prog), sizeof *w->position);
  if (!w->position) return;
  for (aot_node_t k = g->first(w->e->prog, w->backward); k.id != AOT_NO_ID; k = g->next(w->e->prog, k))
    w->position[k.id] = n++;
}

/* ---- which are taken ---- */

/* Every element once and no hole between them, from the storage's first: what a copy in memory order gives. From the
 * innermost dimension on, each stride is the number of elements further in. */
static int is_dense(const em_t *e, const aot_type_t *t) {
  const aot_graph_api_t *g = e->host->graph;
  uint32_t n_left = 0, used = 0;
  int64_t inner = 1;
  if (t->offset != 0) return 0;
  if (em_numel(e, t) == 0) return 1;
  for (int32_t d = 0; d < t->rank; d++) n_left += g->dim_hint(e->prog, t->sizes[d]) != 1;
  for (int32_t d = 0; d < t->rank && n_left; d++) {
    const int64_t size = g->dim_hint(e->prog, t->sizes[d]);
    if (size == 1 || (used >> d & 1) || g->dim_hint(e->prog, t->strides[d]) != inner) continue;
    used |= 1u << d;
    inner *= size;
    n_left--;
    d = -1; /* the next one may be before */
  }
  return n_left == 0;
}

static int filter_lets(const hk_plan_t *plan, uint32_t held) {
  if (plan->filter == HK_FILTER_DONATED) return held == 0;
  return plan->filter == HK_FILTER_ALL || !(held & AOT_HELD_STATIC);
}

static int judge(work_t *w, const candidate_t *c, const aot_type_t *t) {
  if (t->kind != AOT_TYPE_TENSOR) return HK_DTYPE;
  if (!filter_lets(w->plan, c->held)) return HK_HELD;
  if (w->plan->dtypes && !(w->plan->dtypes >> t->dtype & 1)) return HK_DTYPE;
  if (em_numel(w->e, t) * (int64_t)aot_dtype_size(t->dtype) < w->plan->min_nbytes) return HK_SMALL;
  const int fit = w->hook->fits(w->hook, w->e, t);
  return fit == HK_TAKEN && !is_dense(w->e, t) ? HK_LAYOUT : fit;
}

/* ---- packing ---- */

/* New nodes follow the value's definition and share its origin. */
static void stand_after(em_t *e, aot_graph_t graph, aot_value_t v) {
  const aot_graph_api_t *g = e->host->graph;
  const aot_node_t def = g->value_def(e->prog, v);
  aot_node_info_t info = {.struct_size = sizeof info, .origin = aot_no_origin()};
  e->graph = graph;
  e->before = def.id == AOT_NO_ID ? g->first(e->prog, graph) : g->next(e->prog, def);
  if (def.id != AOT_NO_ID && g->node_info(e->prog, def, &info) != AOT_OK) info.origin = aot_no_origin();
  e->origin = info.origin;
  e->flags = 0;
}

/* The slots of a packed value: its old one for part 0, where it had one, and new ones. `arrived`: the backward's
 * ends. */
static void pass_parts(work_t *w, const candidate_t *c, const aot_value_t *parts, uint32_t n, aot_value_t *arrived) {
  const aot_edit_api_t *edit = w->e->host->edit;
  for (uint32_t i = 0; i < n && w->e->status == AOT_OK; i++) {
    const aot_type_t t = em_type(w->e, em_v(parts[i]));
    if (i == 0 && c->slot != AOT_NO_INDEX) {
      arrived[0] = c->backward;
      if (w->e->status == AOT_OK) w->e->status = edit->output_set(w->e->prog, w->forward, c->output, parts[0]);
      if (w->e->status == AOT_OK) w->e->status = edit->type_set(w->e->prog, c->backward, &t);
      continue;
    }
    const uint32_t slot = w->n_slots++;
    if (w->e->status == AOT_OK)
      w->e->status = edit->output_add(w->e->prog, w->forward, AOT_ROLE_SAVED, slot, parts[i], aot_str(""));
    if (w->e->status == AOT_OK)
      w->e->status = edit->input_add(w->e->prog, w->backward, AOT_ROLE_SAVED, slot, &t, aot_str(""), &arrived[i]);
  }
}

/* ---- unpacking ---- */

/* The nodes that read v, each once an operand; *out_first: the first of them in the backward, AOT_NO_ID: none. */
static aot_node_t *find_readers(work_t *w, aot_value_t v, uint32_t *out_n, aot_node_t *out_first) {
  const aot_graph_api_t *g = w->e->host->graph;
  const uint32_t n = g->n_uses(w->e->prog, v);
  aot_node_t *readers = scratch(w, n, sizeof *readers);
  *out_n = readers ? g->users(w->e->prog, v, readers, n) : 0;
  *out_first = aot_no_node();
  for (uint32_t i = 0; i < *out_n; i++)
    if (out_first->id == AOT_NO_ID || w->position[readers[i].id] < w->position[out_first->id]) *out_first = readers[i];
  return readers;
}

static void read_instead(work_t *w, aot_value_t old, aot_value_t now, const aot_node_t *readers, uint32_t n) {
  const aot_graph_api_t *g = w->e->host->graph;
  em_t *e = w->e;
  for (uint32_t i = 0; i < n && e->status == AOT_OK; i++) {
    aot_node_info_t info = {.struct_size = sizeof info};
    e->status = g->node_info(e->prog, readers[i], &info);
    for (uint32_t k = 0; k < info.n_operands && e->status == AOT_OK; k++)
      if (info.operands[k] == old.id) e->status = e->host->edit->operand_set(e->prog, readers[i], k, now);
  }
  for (uint32_t i = 0; i < g->n_outputs(e->prog, w->backward) && e->status == AOT_OK; i++)
    if (g->outputs(e->prog, w->backward)[i].value.id == old.id)
      e->status = e->host->edit->output_set(e->prog, w->backward, i, now);
}

/* The same strides, those aside that nothing can distinguish: of dimensions of size 1, and of nothing. Ranks are
 * equal. */
static int same_strides(const aot_type_t *a, const aot_type_t *b) {
  for (int32_t d = 0; d < a->rank; d++)
    if (a->sizes[d] == 0) return 1;
  for (int32_t d = 0; d < a->rank; d++)
    if (a->sizes[d] != 1 && a->strides[d] != b->strides[d]) return 0;
  return 1;
}

/* The value again, in the strides that its readers count on. */
static aot_value_t unpack(work_t *w, const aot_value_t *arrived, uint32_t n, const aot_type_t *like) {
  em_t *e = w->e;
  aot_value_t v = w->hook->unpack(w->hook, e, arrived, n, like);
  aot_type_t t = em_type(e, em_v(v));
  if (e->status != AOT_OK || same_strides(&t, like)) return v;
  v = em_value(e, em_in_order(e, em_v(v), like->strides, like->rank));
  t = em_type(e, em_v(v));
  if (e->status == AOT_OK && !same_strides(&t, like))
    hk_fail(e, AOT_E_INTERNAL, "hooks.strides", aot_str(NULL), 0, v, "",
            "a value cannot be unpacked into the strides that it was saved with");
  return v;
}

static void hook_one(work_t *w, const candidate_t *c) {
  em_t *e = w->e;
  const aot_type_t like = em_type(e, em_v(c->backward));
  const int reason = e->status == AOT_OK ? judge(w, c, &like) : HK_DTYPE;
  aot_value_t parts[HK_MAX_PARTS], arrived[HK_MAX_PARTS];
  uint32_t n = 0, n_readers;
  aot_node_t first;
  if (reason != HK_TAKEN) {
    w->report.left_alone[reason]++;
    return;
  }
  stand_after(e, w->forward, c->forward);
  w->hook->pack(w->hook, e, c->forward, parts, &n);
  if (e->status != AOT_OK) return;
  hk_report_add(&w->report, e, c->held, c->slot != AOT_NO_INDEX ? &like : NULL, parts, n);
  w->report.n_on_host += w->plan->is_offload && like.device == AOT_DEVICE_CPU;
  const aot_node_t *readers = find_readers(w, c->backward, &n_readers, &first);
  pass_parts(w, c, parts, n, arrived);
  e->graph = w->backward;
  e->before = first;
  e->flags = AOT_NODE_BACKWARD;
  const aot_value_t again = e->status == AOT_OK ? unpack(w, arrived, n, &like) : aot_no_value();
  if (e->status == AOT_OK && again.id != c->backward.id) read_instead(w, c->backward, again, readers, n_readers);
  if (e->status == AOT_OK && c->slot == AOT_NO_INDEX)
    e->status = e->host->edit->input_erase(e->prog, w->backward, e->host->graph->value_index(e->prog, c->backward));
}

void hk_apply(em_t *e, const hk_plan_t *plan, const hk_hook_t *hook) {
  work_t w = {.e = e, .plan = plan, .hook = hook};
  const aot_graph_api_t *g = e->host->graph;
  w.forward = g->graph_find(e->prog, AOT_GRAPH_FORWARD);
  w.backward = g->graph_find(e->prog, AOT_GRAPH_BACKWARD);
  if (w.forward.id == AOT_NO_ID || w.backward.id == AOT_NO_ID) {
    hk_fail(e, AOT_E_PRECONDITION, "hooks.not-partitioned", aot_str(NULL), 0, aot_no_value(),
            "put hooks after a partition stage", "a program without a forward and a backward graph saves nothing");
    return;
  }
  const uint32_t *held = who_holds(&w);
  w.candidates = scratch(&w, (uint64_t)w.n_slots + g->n_inputs(e->prog, w.backward), sizeof *w.candidates);
  if (e->status != AOT_OK) return;
  add_slots(&w, held);
  if (plan->filter != HK_FILTER_DONATED) add_leaves(&w);
  number_nodes(&w);
  for (uint32_t i = 0; i < w.n_candidates && e->status == AOT_OK; i++) hook_one(&w, &w.candidates[i]);
  if (e->status == AOT_OK) hk_report_tell(&w.report, e);
}
