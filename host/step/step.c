/* Running the graphs of a step: bind leaves and inputs, call, interpret the boundary. */
#include <step/step.h>

#include <aot/inline.h>
#include <ir/text/words.h>
#include <step/step_ports.h>
#include <step/variants.h>
#include <stdlib.h>
#include <string.h>

aot_status_t aoth_step_create(aot_prog_t *prog, const aoth_exec_t *exec, aoth_sink_t *sink, aoth_step_t **out) {
  aoth_step_t *s = calloc(1, sizeof *s);
  *out = NULL;
  if (!s) {
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "run.memory", "no memory to bind the program");
    return AOT_E_EXHAUSTED;
  }
  aot_status_t status = aoth_step_bind(s, prog, exec, sink);
  if (status == AOT_OK) status = aoth_leaves_reset(&s->leaves);
  if (status == AOT_OK) status = aoth_variants_init(s);
  if (status == AOT_OK) *out = s;
  else aoth_step_destroy(s);
  return status;
}

void aoth_step_destroy(aoth_step_t *s) {
  if (!s) return;
  aoth_variants_deinit(s);
  aoth_step_unbind(s);
  free(s);
}

aot_status_t aoth_step_reset(aoth_step_t *s) {
  s->phase = 0;
  aoth_step_seed(s, s->seed, 0);
  return aoth_leaves_reset(&s->leaves);
}

/* ---- one call ---- */

/* Puts it on the queue. What it computes is on the device from now on, also where it fails on the way. */
static aot_status_t put_call(aoth_step_t *s, int which) {
  aoth_step_call_t *c = &s->call[which];
  const int is_again = aoth_step_is_settled(s, c);
  s->running = which;
  c->is_settled = 0;
  AOT_TRY(aoth_step_bind_ports(s, c, is_again));
  AOT_TRY(aoth_queue_mark(s->exec.queue)); /* from here on the host's copies of inputs may be written again */
  int any_unknown = 0;
  for (uint32_t i = 0; i < s->sizes.n; i++) {
    s->symbols[i] = s->sizes.bound[i] ? s->sizes.value[i] : AOT_SYMBOL_UNKNOWN;
    any_unknown |= !s->sizes.bound[i];
  }
  const aot_status_t status = any_unknown ? aoth_step_run_open(s, c) : aoth_step_run(s, c, NULL);
  aoth_step_written(s, c, is_again);
  c->is_settled = status == AOT_OK && c->can_settle && !any_unknown && !s->exec.queue->guards;
  c->settled_at = s->exec.queue->n_stirs;
  return status;
}

/* What fails in it leaves the boundary as it was. */
static aot_status_t run_call(aoth_step_t *s, int which) {
  AOT_TRY(put_call(s, which));
  return aoth_queue_idle(s->exec.queue);
}

/* The boundary's view of leaves and outputs after a call. */
static void prepare_exit(aoth_step_t *s, const aoth_step_call_t *c, aoth_boundary_t *b) {
  memset(s->updates, 0, s->leaves.n * sizeof *s->updates);
  for (uint32_t i = 0; i < c->n_out; i++) {
    const aoth_slot_t *p = &c->out[i];
    if (p->role != AOT_ROLE_UPDATE || !p->tensor.dtype || aoth_step_is_at_home(c, i)) continue;
    s->updates[p->index] = &p->tensor;
    s->nbytes_copied += p->tensor.nbytes;
  }
  for (uint32_t i = 1; i < s->leaves.n; i++) {
    const aoth_leaf_t *leaf = &s->leaves.leaf[i];
    if (leaf->info.role != AOT_ROLE_USER_INPUT) s->after[i] = leaf->tensor;
  }
  *b = (aoth_boundary_t){
      .rules = s->now,
      .n_rules = s->n_rules,
      .n_leaves = s->leaves.n,
      .n_outputs = s->n_outputs,
      .n_bases = s->n_bases,
      .leaves = s->after,
      .updates = s->updates,
      .outputs = s->outputs,
      .bases = s->bases,
      .copy = aoth_step_copy,
      .self = s,
      .sink = s->sink,
  };
}

/* Inputs as they are at the entry: copies of their own, or views of the copy of their base. */
static aot_status_t enter(aoth_step_t *s, aoth_boundary_t *b) {
  for (uint32_t k = 0; k < s->leaves.n_inputs; k++) s->after[s->leaves.input[k]] = s->given[k].tensor;
  if (!s->has_entry_rules) return AOT_OK;
  *b = (aoth_boundary_t){
      .rules = s->now, .n_rules = s->n_rules, .n_leaves = s->leaves.n, .leaves = s->after, .sink = s->sink};
  AOT_TRY(aoth_boundary_entry_views(b));
  return aoth_boundary_entry_same(b);
}

/* A step leaves its loss alone, and no other output. */
static aot_status_t leave_first(aoth_step_t *s) {
  const aoth_step_call_t *c = aoth_step_first(s);
  aoth_boundary_t b;
  AOT_TRY(enter(s, &b));
  prepare_exit(s, c, &b);
  memset(s->outputs, 0, s->n_outputs * sizeof *s->outputs);
  for (uint32_t i = 0; i < c->n_out; i++) {
    const aoth_slot_t *p = &c->out[i];
    if ((p->role == AOT_ROLE_USER_OUTPUT || p->role == AOT_ROLE_LOSS) && p->index < s->n_outputs)
      s->outputs[p->index] = p->tensor;
    if (p->role == AOT_ROLE_BASE) s->bases[p->index] = p->tensor;
  }
  AOT_TRY(aoth_boundary_copy_back(&b));
  AOT_TRY(aoth_boundary_restride(&b));
  AOT_TRY(aoth_boundary_entry_same(&b));
  return c->home ? AOT_OK : aoth_boundary_outputs(&b);
}

/* ---- forward ---- */

static aot_status_t bind_sizes(aoth_step_t *s, const aoth_tensor_t *inputs, uint32_t n) {
  uint32_t wanted = s->n_given;
  if (n != wanted) {
    aoth_sink_report(s->sink, AOT_SEVERITY_ERROR, NULL, "input.count", "the model takes %u input%s, %u %s given",
                     wanted, wanted == 1 ? "" : "s", n, n == 1 ? "is" : "are");
    return AOT_E_INVALID;
  }
  for (uint32_t k = 0; k < n; k++) {
    const aoth_leaf_t *leaf = &s->leaves.leaf[s->leaves.input[k]];
    s->told[k] = (aoth_given_t){
        .ordinal = k,
        .name = leaf->info.n_names ? leaf->info.names[0] : (aot_str_t){0},
        .type = &leaf->info.type,
        .tensor = &inputs[k],
    };
  }
  return aoth_sizes_bind(&s->sizes, s->prog, s->told, n, s->sink);
}

/* Of an input whose elements share addresses, as those of an expanded tensor do, equal elements alone can be stored. */
static aot_status_t check_shared(const aoth_step_t *s, uint32_t k, const aoth_tensor_t *to, const aoth_tensor_t *from) {
  if (!aoth_strides_overlap(to->rank, to->sizes, to->strides)) return AOT_OK;
  aoth_walk_t w;
  int same = 1;
  for (aoth_walk_begin(&w, to, from); w.left > 0; aoth_walk_next(&w))
    same &= memcmp(w.at[0], w.at[1], (size_t)aot_dtype_size(to->dtype)) == 0;
  if (same) return AOT_OK;
  aoth_sink_report(
      s->sink, AOT_SEVERITY_ERROR, NULL, "input.mismatch",
      "input %u: the model was exported for a tensor whose elements share addresses, as an expanded one; the "
      "elements that are given there differ",
      k);
  return AOT_E_INVALID;
}

static aot_status_t copy_inputs(aoth_step_t *s, const aoth_tensor_t *inputs) {
  aoth_boundary_t b;
  AOT_TRY(enter(s, &b));
  for (uint32_t k = 0; k < s->n_given; k++) {
    const uint32_t leaf = s->leaves.input[k];
    aoth_tensor_t to;
    if (!s->after[leaf].dtype) continue;
    if (s->given[k].lent) {
      AOT_TRY(aoth_step_refresh_lent(s, &s->given[k]));
      continue;
    }
    /* with others in the memory of their base */
    AOT_TRY(aoth_step_edit(s, &s->after[leaf], s->entry[leaf] != AOT_NO_INDEX, &to));
    aoth_tensor_copy(&to, &inputs[k]);
    AOT_TRY(check_shared(s, k, &to, &inputs[k]));
  }
  return AOT_OK;
}

static aot_status_t too_early(const aoth_step_t *s, const char *what, const char *first) {
  aoth_sink_report(s->sink, AOT_SEVERITY_ERROR, NULL, "run.order", "%s requires a preceding %s", what, first);
  return AOT_E_PRECONDITION;
}

static aot_status_t lacks(const aoth_step_t *s, const char *what, const char *stage) {
  aoth_sink_report(s->sink, AOT_SEVERITY_ERROR, NULL, "run.lacks", "the compiled program has no %s graph; it takes %s",
                   what, stage);
  return AOT_E_PRECONDITION;
}

aot_status_t aoth_step_measure(aoth_step_t *s, const aoth_tensor_t *inputs, uint32_t n_inputs) {
  int changed;
  s->phase = 0;
  s->nbytes_copied = 0;
  AOT_TRY(bind_sizes(s, inputs, n_inputs));
  AOT_TRY(aoth_step_specialise(s, inputs, n_inputs, &changed));
  s->phase = 0;
  if (changed) AOT_TRY(bind_sizes(s, inputs, n_inputs));
  return aoth_step_plan(s);
}

/* Inputs in their places, for the call that takes them. */
static aot_status_t give_inputs(aoth_step_t *s, const aoth_tensor_t *inputs, uint32_t n_inputs) {
  AOT_TRY(aoth_step_measure(s, inputs, n_inputs));
  AOT_TRY(aoth_step_check_lent(s));
  return copy_inputs(s, inputs);
}

/* The leaf in an input port whose contents live outside calls; NULL: it is no such port. */
static const aoth_leaf_t *stored_leaf(const aoth_step_t *s, const aoth_slot_t *p) {
  const aoth_leaf_t *leaf = aot_role_is_leaf(p->role) ? &s->leaves.leaf[p->index] : NULL;
  return leaf && leaf->info.role != AOT_ROLE_USER_INPUT ? leaf : NULL;
}

/* The backward reads leaves as they are then: they must be what the forward has read, and left. */
static void note_versions(aoth_step_t *s) {
  const aoth_step_call_t *c = &s->call[AOTH_CALL_BACKWARD];
  for (uint32_t i = 0; i < c->n_in; i++) {
    const aoth_leaf_t *leaf = stored_leaf(s, &c->in[i]);
    if (leaf) c->in[i].version = leaf->tensor.resident->version;
  }
}

static aot_status_t check_versions(const aoth_step_t *s) {
  const aoth_step_call_t *c = &s->call[AOTH_CALL_BACKWARD];
  for (uint32_t i = 0; i < c->n_in; i++) {
    const aoth_leaf_t *leaf = stored_leaf(s, &c->in[i]);
    if (!leaf || c->in[i].version == leaf->tensor.resident->version) continue;
    const aot_str_t name = aoth_leaf_name(leaf);
    aoth_sink_report(s->sink, AOT_SEVERITY_ERROR, NULL, "run.changed",
                     "%.*s was modified after the forward that this backward belongs to", (int)name.size, name.data);
    aoth_sink_line(s->sink, "hint: run the backward before the update, or the forward again");
    return AOT_E_PRECONDITION;
  }
  return AOT_OK;
}

aot_status_t aoth_step_forward(aoth_step_t *s, const aoth_tensor_t *inputs, uint32_t n_inputs) {
  if (!s->call[AOTH_CALL_FORWARD].present) return lacks(s, "forward", "a program whose step was not stitched together");
  AOT_TRY(give_inputs(s, inputs, n_inputs));
  AOT_TRY(run_call(s, AOTH_CALL_FORWARD));
  AOT_TRY(aoth_step_place_open(s));
  AOT_TRY(leave_first(s));
  AOT_TRY(aoth_step_deliver(s, AOTH_LENT_OUTPUT));
  AOT_TRY(aoth_queue_idle(s->exec.queue));
  note_versions(s);
  s->phase = AOTH_PHASE_FORWARD;
  return AOT_OK;
}

aot_status_t aoth_step_put(aoth_step_t *s, const aoth_tensor_t *inputs, uint32_t n_inputs, double lr) {
  aoth_step_call_t *c = &s->call[AOTH_CALL_STEP];
  if (!c->present) return lacks(s, "step", "the stage stitch");
  if (!inputs && s->phase != AOTH_PHASE_UPDATE) return too_early(s, "a step on the inputs of the last", "step");
  if (inputs) AOT_TRY(give_inputs(s, inputs, n_inputs));
  AOT_TRY(aoth_step_give_lr(s, c, lr));
  const int is_left = aoth_step_is_settled(s, c); /* as the step before has left it */
  AOT_TRY(put_call(s, AOTH_CALL_STEP));
  const aot_status_t status = is_left ? AOT_OK : leave_first(s);
  if (status == AOT_OK) s->phase = AOTH_PHASE_UPDATE;
  else c->is_settled = 0;
  return status;
}

aot_status_t aoth_step_whole(aoth_step_t *s, const aoth_tensor_t *inputs, uint32_t n_inputs, double lr) {
  AOT_TRY(aoth_step_put(s, inputs, n_inputs, lr));
  const aot_status_t status = aoth_queue_idle(s->exec.queue);
  if (status != AOT_OK) s->phase = 0;
  return status == AOT_OK ? aoth_step_deliver(s, AOTH_LENT_OUTPUT) : status;
}

aot_status_t aoth_step_put_apply(aoth_step_t *s, double lr) {
  const aoth_step_call_t *c = &s->call[AOTH_CALL_APPLY];
  if (!c->present) return AOT_OK;
  if (s->phase != AOTH_PHASE_UPDATE) return too_early(s, "the update of what was added up", "step");
  AOT_TRY(aoth_step_give_lr(s, c, lr));
  return put_call(s, AOTH_CALL_APPLY);
}

aot_status_t aoth_step_apply(aoth_step_t *s, double lr) {
  AOT_TRY(aoth_step_put_apply(s, lr));
  return aoth_queue_idle(s->exec.queue);
}

aot_status_t aoth_step_store_inputs(const aoth_step_t *s, const aoth_tensor_t *inputs) {
  for (uint32_t k = 0; k < s->n_given; k++) {
    uint32_t leaf = s->leaves.input[k];
    if (!(s->changed[leaf] & AOTH_CHANGED_NUMBERS)) continue;
    const aot_rule_t *r = s->entry[leaf] == AOT_NO_INDEX ? NULL : &s->now[s->entry[leaf]];
    if (r && r->kind == AOT_RULE_ENTRY_SAME) continue; /* that memory is written once */
    aoth_tensor_t now = s->given[k].tensor;
    if (r) now = aoth_rule_view(r, &s->given[s->leaves.leaf[r->b].info.ordinal].tensor);
    AOT_TRY(aoth_step_on_host(s, &now, &now));
    aoth_tensor_copy(&inputs[k], &now);
  }
  return AOT_OK;
}

/* ---- backward ---- */

static aot_status_t give_tangent(aoth_step_t *s, const aoth_slot_t *p, const aoth_tensor_t *tangent) {
  if (!tangent) {
    aoth_resident_clear(p->tensor.resident, s->exec.queue);
    return AOT_OK;
  }
  if (tangent->dtype == p->tensor.dtype && aoth_tensor_same_sizes(tangent, &p->tensor)) {
    aoth_tensor_t to;
    AOT_TRY(aoth_step_edit(s, &p->tensor, 0, &to));
    aoth_tensor_copy(&to, tangent);
    return AOT_OK;
  }
  kit_text_t wanted = {0}, given = {0};
  aoth_tensor_print_shape(&p->tensor, &wanted);
  aoth_tensor_print_shape(tangent, &given);
  aoth_sink_report(s->sink, AOT_SEVERITY_ERROR, NULL, "input.tangent", "tangent %u: expected %s, got %s", p->index,
                   wanted.data ? wanted.data : "?", given.data ? given.data : "?");
  kit_text_deinit(&wanted);
  kit_text_deinit(&given);
  return AOT_E_INVALID;
}

/* Gradients of a loss whose tangent is built in: there is nothing to give but that 1. */
static aot_status_t check_own_loss(const aoth_step_t *s, const aoth_tensor_t *const *tangents, uint32_t n_tangents) {
  const int64_t loss = aoth_step_own_loss(s);
  if (loss < 0 || loss >= (int64_t)n_tangents || !tangents[loss]) return AOT_OK;
  const aoth_tensor_t *t = tangents[loss];
  double storage[2]; /* the largest dtype is complex */
  const aoth_tensor_t one = aoth_tensor_make(storage, t->dtype, t->rank, t->sizes);
  const size_t size = (size_t)aot_dtype_size(t->dtype);
  if (aoth_tensor_numel(t) == 1) {
    aoth_tensor_fill(&one, 1);
    if (memcmp((const char *)t->data + (size_t)t->offset * size, storage, size) == 0) return AOT_OK;
  }
  aoth_sink_report(
      s->sink, AOT_SEVERITY_ERROR, NULL, "input.tangent",
      "tangent %lld: the model was exported with the gradients of output %lld itself, so this tangent can only be 1",
      (long long)loss, (long long)loss);
  return AOT_E_INVALID;
}

aot_status_t aoth_step_backward(aoth_step_t *s, const aoth_tensor_t *const *tangents, uint32_t n_tangents) {
  aoth_step_call_t *c = &s->call[AOTH_CALL_BACKWARD];
  if (!c->present) return lacks(s, "backward", "an autograd and a partition stage in the pipeline");
  if (s->phase != AOTH_PHASE_FORWARD && s->phase != AOTH_PHASE_BACKWARD) return too_early(s, "a backward", "forward");
  AOT_TRY(check_versions(s));
  AOT_TRY(check_own_loss(s, tangents, n_tangents));
  for (uint32_t i = 0; i < c->n_in; i++) {
    aoth_slot_t *p = &c->in[i];
    if (p->role == AOT_ROLE_TANGENT && p->lent) AOT_TRY(aoth_step_refresh_lent(s, p));
    else if (p->role == AOT_ROLE_TANGENT)
      AOT_TRY(give_tangent(s, p, p->index < n_tangents ? tangents[p->index] : NULL));
  }
  s->phase = AOTH_PHASE_FORWARD;
  AOT_TRY(run_call(s, AOTH_CALL_BACKWARD));
  s->phase = AOTH_PHASE_BACKWARD;
  return aoth_step_deliver(s, AOTH_LENT_GRADIENT);
}

aot_status_t aoth_step_backward_of_loss(aoth_step_t *s) {
  aoth_tensor_t loss;
  double storage;
  if (!aoth_step_get(s, "output.0", &loss) || aoth_tensor_numel(&loss) != 1 || !aot_dtype_is_float(loss.dtype))
    return AOT_E_NOT_FOUND;
  aoth_tensor_t one = aoth_tensor_make(&storage, loss.dtype, loss.rank, loss.sizes);
  aoth_tensor_fill(&one, 1);
  const aoth_tensor_t *tangent = &one;
  return aoth_step_backward(s, &tangent, 1);
}

/* ---- update ---- */

aot_status_t aoth_step_update(aoth_step_t *s, double lr) {
  aoth_step_call_t *c = &s->call[AOTH_CALL_UPDATE];
  aoth_boundary_t b;
  if (!c->present) return lacks(s, "update", "an optimizer (run.train.optimizer)");
  if (s->phase != AOTH_PHASE_BACKWARD) return too_early(s, "an update", "backward");
  AOT_TRY(aoth_step_give_lr(s, c, lr));
  AOT_TRY(aoth_step_take_gradients(s));
  AOT_TRY(run_call(s, AOTH_CALL_UPDATE));
  s->phase = AOTH_PHASE_UPDATE;
  prepare_exit(s, c, &b);
  AOT_TRY(aoth_boundary_copy_back(&b));
  return aoth_queue_idle(s->exec.queue);
}

/* ---- questions ---- */

aoth_queue_t *aoth_step_queue(const aoth_step_t *s) { return s->exec.queue; }

int aoth_step_output(const aoth_step_t *s, uint32_t k, aoth_tensor_t *out) {
  if (!s->phase || k >= s->n_outputs || !s->outputs[k].dtype) return 0;
  *out = s->outputs[k];
  return 1;
}

int aoth_step_has(const aoth_step_t *s, int32_t graph_kind) {
  switch (graph_kind) {
    case AOT_GRAPH_FORWARD: return s->call[AOTH_CALL_FORWARD].present;
    case AOT_GRAPH_BACKWARD: return s->call[AOTH_CALL_BACKWARD].present;
    case AOT_GRAPH_UPDATE: return s->call[AOTH_CALL_UPDATE].present;
    case AOT_GRAPH_STEP: return s->call[AOTH_CALL_STEP].present;
    default: return 0;
  }
}

uint32_t aoth_step_n_inputs(const aoth_step_t *s) { return s->n_given; }
uint32_t aoth_step_n_saved(const aoth_step_t *s) { return s->n_saved; }
uint32_t aoth_step_n_outputs(const aoth_step_t *s) { return s->n_outputs; }
const aot_leaf_info_t *aoth_step_input(const aoth_step_t *s, uint32_t k) {
  return k < s->n_given ? &s->leaves.leaf[s->leaves.input[k]].info : NULL;
}

int64_t aoth_step_loss(const aoth_step_t *s) {
  const aoth_step_call_t *c = aoth_step_first(s);
  for (uint32_t i = 0; i < c->n_out; i++)
    if (c->out[i].role == AOT_ROLE_LOSS) return c->out[i].index;
  return -1;
}

int aoth_step_takes_tangent(const aoth_step_t *s, uint32_t output) {
  const aoth_step_call_t *c = &s->call[AOTH_CALL_BACKWARD];
  for (uint32_t i = 0; i < c->n_in; i++)
    if (c->in[i].role == AOT_ROLE_TANGENT && c->in[i].index == output) return 1;
  return 0;
}

int aoth_step_backward_reads(const aoth_step_t *s, const char *key) {
  const aoth_step_call_t *c = &s->call[AOTH_CALL_BACKWARD];
  const uint32_t leaf = aoth_step_leaf_of(s, key);
  for (uint32_t i = 0; leaf != AOT_NO_ID && i < c->n_in; i++)
    if (aot_role_is_leaf(c->in[i].role) && c->in[i].index == leaf) return 1;
  return 0;
}

int64_t aoth_step_own_loss(const aoth_step_t *s) {
  const aoth_step_call_t *c = &s->call[AOTH_CALL_BACKWARD];
  if (!c->present) return -1;
  for (uint32_t i = 0; i < c->n_in; i++)
    if (c->in[i].role == AOT_ROLE_TANGENT) return -1;
  return aoth_step_loss(s);
}

aoth_step_sizes_t aoth_step_sizes(const aoth_step_t *s) {
  return (aoth_step_sizes_t){
      .nbytes_block = s->nbytes_block,
      .nbytes_saved = s->nbytes_saved,
      .nbytes_leaves = aoth_leaves_nbytes(&s->leaves),
      .nbytes_copied = s->nbytes_copied,
  };
}

uint64_t aoth_step_looked_at(const aoth_step_t *s) { return s->n_looked_at; }
uint64_t aoth_step_moved(const aoth_step_t *s) { return s->exec.queue->n_copied; }
uint64_t aoth_step_crossed(const aoth_step_t *s) { return s->exec.queue->n_moved; }
