/* The calls of a handle: inputs in, forward, backward, update, results out. */
#include <step/api_handle.h>

#include <aot/inline.h>
#include <compiler/run_ranks.h>
#include <step/tensor.h>
#include <stdlib.h>
#include <string.h>

aot_status_t aoth_api_call_init(aothost_call_t *c, aothost_t *h) {
  c->results = kit_arena_create();
  if (!c->results) return AOT_E_EXHAUSTED;
  c->h = h;
  return AOT_OK;
}

void aoth_api_calls_free(aothost_t *h) {
  while (h->calls) aothost_call_close(h->calls);
  kit_arena_destroy(h->first.results);
}

/* What is done with a call begins and ends here. What was got of it before is no longer valid at the end, and not
 * sooner: it may be what the call was given. */
static aot_status_t begin(aothost_call_t *c) { return aoth_step_enter(c->h->step, c->number); }
static aot_status_t end(aothost_call_t *c, aot_status_t status) {
  kit_arena_reset(c->results);
  return aoth_api_tell(c->h, status);
}

/* The call of the functions that take none; NULL, reported: there is nothing to run yet. */
static aothost_call_t *first_of(aothost_t *h) {
  if (h->step) return &h->first;
  aoth_api_refuse(h, AOT_E_PRECONDITION, "the pipeline is not compiled yet");
  return NULL;
}

aot_status_t aothost_call_open(aothost_t *h, aothost_call_t **out) {
  *out = NULL;
  if (!first_of(h)) return AOT_E_PRECONDITION;
  aothost_call_t *c = calloc(1, sizeof *c);
  if (!c || aoth_api_call_init(c, h) != AOT_OK) {
    free(c);
    return aoth_api_refuse(h, AOT_E_EXHAUSTED, "no memory for a call");
  }
  const aot_status_t status = aoth_step_open_call(h->step, &c->number);
  if (status == AOT_OK) {
    c->next = h->calls;
    h->calls = *out = c;
  } else {
    kit_arena_destroy(c->results);
    free(c);
  }
  return aoth_api_tell(h, status);
}

void aothost_call_close(aothost_call_t *c) {
  if (!c) return;
  aothost_call_t **at = &c->h->calls;
  while (*at != c) at = &(*at)->next;
  *at = c->next;
  aoth_step_close_call(c->h->step, c->number);
  kit_arena_destroy(c->results);
  free(c);
}

/* ---- what is given ---- */

static aot_status_t bad_memory(aothost_t *h, const char *name) {
  aoth_sink_report(h->sink, AOT_SEVERITY_ERROR, NULL, "api.tensor",
                   "%s is no tensor that can be read: it must be on the CPU, and its sizes and strides must stay "
                   "inside its storage",
                   name);
  return aoth_api_tell(h, AOT_E_INVALID);
}

static aot_status_t bad_tensor(aothost_t *h, const char *what, uint32_t k) {
  char name[40];
  snprintf(name, sizeof name, "%s %u", what, k);
  return bad_memory(h, name);
}

/* A tensor of the caller, checked against its own storage. */
static int import_tensor(const aot_tensor_t *from, aoth_tensor_t *out) {
  uint64_t reach;
  return (!from->device || from->device == AOT_DEVICE_CPU) && aot_dtype_size(from->dtype) &&
         aoth_tensor_from(from, out) && aoth_tensor_extent(out, &reach) && reach <= out->nbytes &&
         (reach == 0 || out->data);
}

static int by_place(const void *a, const void *b) {
  const aoth_tensor_t *x = *(aoth_tensor_t *const *)a, *y = *(aoth_tensor_t *const *)b;
  return (uintptr_t)x->data < (uintptr_t)y->data ? -1 : (uintptr_t)x->data > (uintptr_t)y->data;
}

/* Storages that overlap are copied in one piece, so that they continue sharing what they share. 0: no memory. */
static int keep_run(aoth_tensor_t **run, uint32_t n, uint64_t nbytes, kit_arena_t *arena) {
  const char *begin = run[0]->data;
  char *copy = kit_arena_copy(arena, AOTH_ALIGN, begin, (size_t)nbytes);
  for (uint32_t i = 0; copy && i < n; i++) run[i]->data = copy + ((const char *)run[i]->data - begin);
  return copy != NULL;
}

/* Inputs that are results of the step itself: its memory is about to be reused. 0: no memory. */
static int keep_inputs(const aothost_t *h, aoth_tensor_t *list, uint32_t n, kit_arena_t *arena) {
  aoth_tensor_t **ours = kit_arena_alloc(arena, 16, ((size_t)n + 1) * sizeof *ours);
  uint32_t n_ours = 0;
  if (!ours) return 0;
  for (uint32_t k = 0; k < n; k++)
    if (aoth_step_owns(h->step, list[k].data)) ours[n_ours++] = &list[k];
  qsort(ours, n_ours, sizeof *ours, by_place);
  for (uint32_t first = 0, last; first < n_ours; first = last) {
    uint64_t end = ours[first]->nbytes, at;
    for (last = first + 1; last < n_ours; last++) {
      at = (uint64_t)((const char *)ours[last]->data - (const char *)ours[first]->data);
      if (at >= end) break;
      if (at + ours[last]->nbytes > end) end = at + ours[last]->nbytes;
    }
    if (!keep_run(ours + first, last - first, end, arena)) return 0;
  }
  return 1;
}

/* What the call was bound to, where the caller gives no inputs. */
static aot_status_t take_bound(aothost_t *h, aoth_tensor_t *list, uint32_t n) {
  for (uint32_t k = 0; k < n; k++) {
    const aoth_tensor_t *bound = aoth_step_lent_input(h->step, k);
    if (bound) list[k] = *bound;
    if (bound) continue;
    aoth_sink_report(h->sink, AOT_SEVERITY_ERROR, NULL, "input.bound",
                     "no inputs are given, and input %u is not bound to memory", k);
    return AOT_E_PRECONDITION;
  }
  return AOT_OK;
}

static aot_status_t take_given(aothost_t *h, const aot_tensor_t *inputs, uint32_t n, aoth_tensor_t *list) {
  if (aoth_step_has_lent(h->step, AOTH_LENT_INPUT))
    return aoth_api_refuse(h, AOT_E_INVALID,
                           "inputs are given to a call that has inputs bound; give none, or unbind them");
  for (uint32_t k = 0; k < n; k++)
    if (!import_tensor(&inputs[k], &list[k])) return bad_tensor(h, "input", k);
  return AOT_OK;
}

/* A step that is given no inputs, and has none bound, has those of the last one. */
static int is_again(const aothost_t *h, const aot_tensor_t *inputs, const double *lr) {
  return !inputs && lr && aoth_step_n_inputs(h->step) && !aoth_step_has_lent(h->step, AOTH_LENT_INPUT);
}

/* to_caller: inputs that the program writes get their new numbers where the caller has them. lr: of a whole step;
 * NULL: a forward. */
static aot_status_t run_inputs(aothost_t *h, const aot_tensor_t *inputs, uint32_t n_inputs, int to_caller,
                               const double *lr, kit_arena_t *arena) {
  if (is_again(h, inputs, lr)) return aoth_step_whole(h->step, NULL, 0, *lr);
  if (!inputs) n_inputs = aoth_step_n_inputs(h->step);
  aoth_tensor_t *list = kit_arena_alloc(arena, 16, ((size_t)n_inputs + 1) * sizeof *list);
  if (!list) return aoth_api_refuse(h, AOT_E_EXHAUSTED, "no memory for the inputs");
  AOT_TRY(inputs ? take_given(h, inputs, n_inputs, list) : take_bound(h, list, n_inputs));
  for (uint32_t k = 0; to_caller && k < n_inputs; k++)
    if (aoth_step_owns(h->step, list[k].data))
      return aoth_api_refuse(
          h, AOT_E_INVALID,
          "a result of an earlier call cannot be written in place: its memory is used anew; pass a copy");
  if (!keep_inputs(h, list, n_inputs, arena)) return aoth_api_refuse(h, AOT_E_EXHAUSTED, "no memory for the inputs");
  AOT_TRY(lr ? aoth_step_whole(h->step, list, n_inputs, *lr) : aoth_step_forward(h->step, list, n_inputs));
  return to_caller ? aoth_step_store_inputs(h->step, list) : AOT_OK;
}

static aot_status_t run_with(aothost_call_t *c, const aot_tensor_t *inputs, uint32_t n_inputs, int to_caller,
                             const double *lr) {
  AOT_TRY(begin(c));
  kit_arena_t *arena = kit_arena_create();
  aot_status_t status = arena ? run_inputs(c->h, inputs, n_inputs, to_caller, lr, arena)
                              : aoth_api_refuse(c->h, AOT_E_EXHAUSTED, "no memory for the inputs");
  kit_arena_destroy(arena);
  return end(c, status);
}

aot_status_t aothost_call_forward(aothost_call_t *c, const aot_tensor_t *inputs, uint32_t n_inputs, uint32_t flags) {
  return run_with(c, inputs, n_inputs, (flags & AOTHOST_IN_PLACE) != 0, NULL);
}

/* No tangents at all: one for the loss. */
static aot_status_t backward_of_loss(aothost_call_t *c) {
  aothost_t *h = c->h;
  aoth_tensor_t loss, one;
  double storage;
  if (!aoth_step_get(h->step, "output.0", &loss) || aoth_tensor_numel(&loss) != 1 || !aot_dtype_is_float(loss.dtype))
    return aoth_api_refuse(
        h, AOT_E_PRECONDITION,
        "output 0 is not a single floating-point element (or there was no forward); pass tangents to the backward");
  one = aoth_tensor_make(&storage, loss.dtype, loss.rank, loss.sizes);
  aoth_tensor_fill(&one, 1);
  const aoth_tensor_t *list[1] = {&one};
  return end(c, aoth_step_backward(h->step, list, 1));
}

aot_status_t aothost_call_backward(aothost_call_t *c, const aot_tensor_t *tangents, uint32_t n_tangents) {
  aothost_t *h = c->h;
  AOT_TRY(begin(c));
  const int is_bound = aoth_step_has_lent(h->step, AOTH_LENT_TANGENT);
  if (tangents && is_bound)
    return aoth_api_refuse(h, AOT_E_INVALID,
                           "tangents are given to a call that has tangents bound; give none, or unbind them");
  if (!tangents && is_bound) return end(c, aoth_step_backward(h->step, NULL, 0));
  if (!tangents) return backward_of_loss(c);
  aoth_tensor_t *list = calloc((size_t)n_tangents + 1, sizeof *list);
  const aoth_tensor_t **pointers = calloc((size_t)n_tangents + 1, sizeof *pointers);
  aot_status_t status = list && pointers ? AOT_OK : aoth_api_refuse(h, AOT_E_EXHAUSTED, "no memory for the tangents");
  for (uint32_t k = 0; k < n_tangents && status == AOT_OK; k++) {
    if (!tangents[k].data && !tangents[k].nbytes) continue;
    pointers[k] = &list[k];
    if (!import_tensor(&tangents[k], &list[k])) status = bad_tensor(h, "tangent", k);
  }
  if (status == AOT_OK) status = aoth_step_backward(h->step, pointers, n_tangents);
  free(pointers);
  free(list);
  return end(c, status);
}

aot_status_t aothost_call_update(aothost_call_t *c, double lr) {
  AOT_TRY(begin(c));
  return end(c, aoth_step_update(c->h->step, lr));
}

aot_status_t aothost_call_step(aothost_call_t *c, const aot_tensor_t *inputs, uint32_t n_inputs, double lr) {
  return run_with(c, inputs, n_inputs, 0, &lr);
}

/* ---- memory of the caller's ---- */

static aot_status_t no_key(aothost_t *h, const char *key, const char *keys) {
  aoth_sink_report(h->sink, AOT_SEVERITY_ERROR, NULL, "api.key", "there is no %s; keys are %s", key, keys);
  return AOT_E_NOT_FOUND;
}

aot_status_t aothost_call_bind(aothost_call_t *c, const char *key, const aot_tensor_t *memory) {
  aoth_tensor_t t;
  AOT_TRY(begin(c));
  if (memory && !import_tensor(memory, &t)) return bad_memory(c->h, key);
  const aot_status_t status = aoth_step_lend(c->h->step, key, memory ? &t : NULL);
  if (status == AOT_E_NOT_FOUND) no_key(c->h, key, "input.K, output.K, tangent.K, saved.K, grad.NAME, grad.input.K");
  return end(c, status);
}

aot_status_t aothost_bind(aothost_t *h, const char *key, const aot_tensor_t *memory) {
  aothost_call_t *c = first_of(h);
  aoth_tensor_t t;
  if (!c) return AOT_E_PRECONDITION;
  if (memory && !import_tensor(memory, &t)) return bad_memory(h, key);
  const aot_status_t status = aoth_step_lend_leaf(h->step, key, memory ? &t : NULL);
  if (status == AOT_E_NOT_FOUND) no_key(h, key, "param.NAME, buffer.NAME, state.NAME");
  return aoth_api_tell(h, status);
}

/* Sizes count, and whether inputs share memory if they have any. */
static aot_status_t measure(aothost_call_t *c, const aot_tensor_t *inputs, uint32_t n, aoth_tensor_t *list) {
  aothost_t *h = c->h;
  if (!inputs) AOT_TRY(take_bound(h, list, n));
  for (uint32_t k = 0; inputs && k < n; k++) {
    aot_tensor_t t = inputs[k];
    if (!t.data) t.nbytes = UINT64_MAX;
    if (!aoth_tensor_from(&t, &list[k]) || !aoth_tensor_extent(&list[k], &t.nbytes)) return bad_tensor(h, "input", k);
    if (!t.data) list[k].nbytes = 0;
  }
  return aoth_step_measure(h->step, list, n);
}

aot_status_t aothost_call_plan(aothost_call_t *c, const aot_tensor_t *inputs, uint32_t n_inputs) {
  AOT_TRY(begin(c));
  if (!inputs) n_inputs = aoth_step_n_inputs(c->h->step);
  aoth_tensor_t *list = calloc((size_t)n_inputs + 1, sizeof *list);
  const aot_status_t status =
      list ? measure(c, inputs, n_inputs, list) : aoth_api_refuse(c->h, AOT_E_EXHAUSTED, "no memory for the inputs");
  free(list);
  return end(c, status);
}

static aot_status_t give(aothost_call_t *c, const aoth_tensor_t *t, aot_tensor_t *out) {
  aoth_tensor_t *kept = kit_arena_copy(c->results, 16, t, sizeof *t);
  if (!kept) return AOT_E_EXHAUSTED;
  *out = aoth_tensor_view(kept);
  return AOT_OK;
}

aot_status_t aothost_call_shape(aothost_call_t *c, const char *key, aot_tensor_t *out) {
  aoth_tensor_t t;
  AOT_TRY(begin(c));
  const aot_status_t status = aoth_step_shape(c->h->step, key, &t);
  if (status != AOT_OK) return aoth_api_tell(c->h, status);
  t.data = NULL;
  return aoth_tensor_extent(&t, &t.nbytes) ? give(c, &t, out) : AOT_E_INVALID;
}

/* ---- results ---- */

/* What ranks leave that have failed is no result: what waited for the others was given up. */
aot_status_t aothost_call_get(aothost_call_t *c, const char *key, aot_tensor_t *out) {
  aoth_tensor_t t;
  AOT_TRY(begin(c));
  if (!aoth_step_get(c->h->step, key, &t)) return AOT_E_NOT_FOUND;
  AOT_TRY(aoth_api_tell(c->h, aoth_session_ranks_well(c->h->session)));
  return give(c, &t, out);
}

/* ---- the same of the first call, and what is of all ---- */

aot_status_t aothost_forward(aothost_t *h, const aot_tensor_t *inputs, uint32_t n_inputs) {
  aothost_call_t *c = first_of(h);
  return c ? aothost_call_forward(c, inputs, n_inputs, 0) : AOT_E_PRECONDITION;
}
aot_status_t aothost_forward_in_place(aothost_t *h, const aot_tensor_t *inputs, uint32_t n_inputs) {
  aothost_call_t *c = first_of(h);
  return c ? aothost_call_forward(c, inputs, n_inputs, AOTHOST_IN_PLACE) : AOT_E_PRECONDITION;
}
aot_status_t aothost_backward(aothost_t *h, const aot_tensor_t *tangents, uint32_t n_tangents) {
  aothost_call_t *c = first_of(h);
  return c ? aothost_call_backward(c, tangents, n_tangents) : AOT_E_PRECONDITION;
}
aot_status_t aothost_update(aothost_t *h, double lr) {
  aothost_call_t *c = first_of(h);
  return c ? aothost_call_update(c, lr) : AOT_E_PRECONDITION;
}
aot_status_t aothost_step(aothost_t *h, const aot_tensor_t *inputs, uint32_t n_inputs, double lr) {
  aothost_call_t *c = first_of(h);
  return c ? aothost_call_step(c, inputs, n_inputs, lr) : AOT_E_PRECONDITION;
}
aot_status_t aothost_get(aothost_t *h, const char *key, aot_tensor_t *out) {
  return h->step ? aothost_call_get(&h->first, key, out) : AOT_E_NOT_FOUND;
}

aot_status_t aothost_apply(aothost_t *h, double lr) {
  aothost_call_t *c = first_of(h);
  if (!c) return AOT_E_PRECONDITION;
  AOT_TRY(begin(c));
  return end(c, aoth_step_apply(h->step, lr));
}

aot_status_t aothost_reset(aothost_t *h) {
  aothost_call_t *c = first_of(h);
  if (!c) return AOT_E_PRECONDITION;
  AOT_TRY(begin(c));
  return end(c, aoth_step_reset(h->step));
}

aot_status_t aothost_seed(aothost_t *h, int64_t seed, int64_t offset) {
  if (!first_of(h)) return AOT_E_PRECONDITION;
  aoth_step_seed(h->step, seed, offset);
  return AOT_OK;
}

int64_t aothost_offset(const aothost_t *h) { return h->step ? aoth_step_offset(h->step) : 0; }

aot_status_t aothost_set(aothost_t *h, const char *key, const aot_tensor_t *value) {
  aoth_tensor_t t;
  if (!first_of(h)) return AOT_E_PRECONDITION;
  if (!import_tensor(value, &t)) return bad_tensor(h, "value", 0);
  aot_status_t status = aoth_step_set(h->step, key, &t);
  if (status == AOT_E_NOT_FOUND) no_key(h, key, "param.NAME, buffer.NAME, state.NAME");
  return aoth_api_tell(h, status);
}
