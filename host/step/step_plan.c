/* Geometry of every port under the present sizes, and its place in the block (picture in step.h). Linear in ports. */
#include <step/step_ports.h>

#include <aot/inline.h>

#include <stdlib.h>
#include <string.h>

#define TOO_MUCH (UINT64_C(1) << 62)

typedef struct cursor {
  uint64_t at;
  uint64_t zone; /* bytes after each place that stay poison (device/guards.h) */
} cursor_t;

/* Sums stop at TOO_MUCH, where no memory can be had. */
static void place(aoth_slot_t *p, cursor_t *cursor) {
  if (!p->tensor.dtype || p->lent || p->at != AOTH_NOWHERE) return;
  p->at = cursor->at;
  cursor->at += (p->tensor.nbytes + AOTH_ALIGN - 1) / AOTH_ALIGN * AOTH_ALIGN + cursor->zone;
  if (cursor->at > TOO_MUCH) cursor->at = TOO_MUCH;
}

const char *aoth_role_what(int32_t role) {
  switch (role) {
    case AOT_ROLE_SAVED: return "a saved value";
    case AOT_ROLE_TANGENT: return "a tangent";
    case AOT_ROLE_GRADIENT: return "a gradient";
    case AOT_ROLE_UPDATE: return "an updated value";
    /* clang-format off */
    case AOT_ROLE_USER_OUTPUT: case AOT_ROLE_LOSS: return "a user output";
    /* clang-format on */
    default: return "a tensor at the boundary";
  }
}

static aot_status_t measure(aoth_step_t *s, aoth_slot_t *slots, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    slots[i].at = AOTH_NOWHERE;
    slots[i].open = slots[i].role != AOT_ROLE_USER_INPUT && aoth_sizes_type_is_open(&s->sizes, &slots[i].type);
    slots[i].tensor = (aoth_tensor_t){0};
    slots[i].has_number = 0;
    if (slots[i].open) continue; /* step_dynamic.c */
    AOT_TRY(aoth_sizes_tensor(&s->sizes, s->prog, &slots[i].type, aoth_role_what(slots[i].role), s->sink,
                              &slots[i].tensor));
  }
  return AOT_OK;
}

static aot_status_t measure_all(aoth_step_t *s) {
  for (uint32_t k = 0; k < s->leaves.n_inputs; k++) {
    s->given[k].role = AOT_ROLE_USER_INPUT;
    s->given[k].type = s->leaves.leaf[s->leaves.input[k]].info.type;
  }
  AOT_TRY(measure(s, s->given, s->leaves.n_inputs));
  for (int k = 0; k < AOTH_N_CALLS; k++) {
    AOT_TRY(measure(s, s->call[k].in, s->call[k].n_in));
    AOT_TRY(measure(s, s->call[k].out, s->call[k].n_out));
  }
  return AOT_OK;
}

static void place_all(aoth_step_t *s) {
  aoth_step_call_t *f = &s->call[AOTH_CALL_FORWARD], *b = &s->call[AOTH_CALL_BACKWARD], *u = &s->call[AOTH_CALL_UPDATE];
  cursor_t end = {.zone = s->exec.queue->guards ? AOTH_RED_ZONE : 0}, late;
  const aoth_step_call_t *step = &s->call[AOTH_CALL_STEP];
  for (uint32_t k = 0; k < s->leaves.n_inputs; k++) place(&s->given[k], &end);
  for (uint32_t i = 0; i < step->n_in; i++)
    if (step->in[i].role == AOT_ROLE_HYPER || step->in[i].role == AOT_ROLE_SEED) place(&step->in[i], &end);
  s->nbytes_fed = end.at;
  for (uint32_t i = 0; i < f->n_in; i++)
    if (!aot_role_is_leaf(f->in[i].role)) place(&f->in[i], &end);
  for (uint32_t i = 0; i < f->n_out; i++)
    if (f->out[i].role != AOT_ROLE_SAVED && f->out[i].role != AOT_ROLE_UPDATE) place(&f->out[i], &end);
  for (uint32_t i = 0; i < b->n_out; i++) place(&b->out[i], &end);
  for (uint32_t i = 0; i < u->n_in; i++)
    if (u->in[i].role == AOT_ROLE_HYPER) place(&u->in[i], &end);
  late = end; /* from here on the optimizer's results take the place of what only the backward reads */
  s->nbytes_saved = 0;
  for (uint32_t i = 0; i < f->n_out; i++) {
    if (f->out[i].role == AOT_ROLE_SAVED) s->nbytes_saved += f->out[i].tensor.nbytes;
    if (f->out[i].role == AOT_ROLE_SAVED || f->out[i].role == AOT_ROLE_UPDATE) place(&f->out[i], &end);
  }
  for (uint32_t i = 0; i < b->n_in; i++)
    if (!aot_role_is_leaf(b->in[i].role) && b->in[i].role != AOT_ROLE_SAVED) place(&b->in[i], &end);
  if (end.zone) late = end; /* poison between the ones would be in the middle of the others */
  for (uint32_t i = 0; i < u->n_out; i++) place(&u->out[i], &late);
  if (end.zone) end = late;
  for (int k = AOTH_CALL_STEP; k <= AOTH_CALL_APPLY; k++) {
    aoth_step_call_t *c = &s->call[k];
    for (uint32_t i = 0; i < c->n_in; i++)
      if (!aot_role_is_leaf(c->in[i].role)) place(&c->in[i], &end);
    for (uint32_t i = 0; i < c->n_out; i++)
      if (c->home[i] == AOT_NO_INDEX) place(&c->out[i], &end);
  }
  s->nbytes_block = late.at > end.at ? late.at : end.at;
}

static aot_status_t place_slots(const aoth_step_t *s, aoth_slot_t *slots, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    aoth_slot_t *p = &slots[i];
    if (p->open) continue;
    AOT_TRY(aoth_resident_free(&p->own, s->exec.queue)); /* the host's copy, of another size */
    if (p->at != AOTH_NOWHERE) p->own = aoth_resident_part(s->exec.queue, s->block, p->at, p->tensor.nbytes);
    p->own.is_of_call = 1;
    if (p->at < s->nbytes_fed && s->fed->host) aoth_fed_add(s->fed, &p->own);
    p->tensor.resident = p->lent ? &p->lent->resident : &p->own;
  }
  return AOT_OK;
}

/* Values that one graph hands to the next. A backward draws the numbers that its forward has drawn. */
static void connect(aoth_step_t *s) {
  aoth_step_call_t *f = &s->call[AOTH_CALL_FORWARD], *b = &s->call[AOTH_CALL_BACKWARD], *u = &s->call[AOTH_CALL_UPDATE];
  aoth_mirrored_buffer_t *seed = NULL, *offset = NULL;
  for (uint32_t i = 0; i < f->n_in; i++) {
    if (f->in[i].role == AOT_ROLE_SEED) seed = &f->in[i].own;
    if (f->in[i].role == AOT_ROLE_OFFSET) offset = &f->in[i].own;
  }
  for (uint32_t i = 0; i < b->n_in; i++) {
    aoth_slot_t *p = &b->in[i];
    if (p->role == AOT_ROLE_SAVED) p->tensor.resident = f->out[s->saved[p->index]].tensor.resident;
    if (p->role == AOT_ROLE_SEED && seed) p->tensor.resident = seed;
    if (p->role == AOT_ROLE_OFFSET && offset) p->tensor.resident = offset;
  }
  for (uint32_t i = 0; i < u->n_in; i++)
    if (u->in[i].role == AOT_ROLE_GRADIENT)
      u->in[i].tensor.resident = b->out[s->gradient[u->in[i].index]].tensor.resident;
}

static aot_status_t grow_block(aoth_step_t *s) {
  if (s->block.address && s->nbytes_block <= s->block.nbytes) return AOT_OK;
  if (s->block.address) AOT_TRY(aoth_queue_free(s->exec.queue, s->block));
  s->block = (aot_buffer_t){0};
  const aot_status_t status =
      s->nbytes_block < TOO_MUCH ? aoth_queue_alloc(s->exec.queue, s->nbytes_block, &s->block) : AOT_E_EXHAUSTED;
  if (status != AOT_OK)
    aoth_sink_report(s->sink, s->nbytes_block < TOO_MUCH ? AOT_SEVERITY_NOTE : AOT_SEVERITY_ERROR, NULL, "run.memory",
                     "the tensors at the program's boundary take %llu bytes, %llu of them saved values",
                     (unsigned long long)s->nbytes_block, (unsigned long long)s->nbytes_saved);
  return status;
}

/* On a device with memory of its own. */
static aot_status_t place_fed(const aoth_step_t *s) {
  AOT_TRY(aoth_fed_free(s->fed, s->exec.queue));
  if (s->exec.queue->is_shared || !s->nbytes_fed) return AOT_OK;
  return aoth_fed_init(s->fed, s->exec.queue, (aot_buffer_t){s->block.address, s->nbytes_fed});
}

static int rule_is_open(const aoth_step_t *s, const aot_rule_t *r) {
  int open = aoth_sizes_dim_is_open(&s->sizes, r->offset);
  for (int32_t d = 0; d < r->rank && !open; d++)
    open = aoth_sizes_dim_is_open(&s->sizes, r->sizes[d]) || aoth_sizes_dim_is_open(&s->sizes, r->strides[d]);
  return open;
}

aot_status_t aoth_step_rules(aoth_step_t *s, int may_be_open) {
  int64_t *to = s->rule_dims;
  if (may_be_open) s->rules_open = 0;
  for (uint32_t i = 0; i < s->n_rules; i++) {
    const aot_rule_t *r = &s->rules[i];
    if (may_be_open && rule_is_open(s, r)) {
      s->rules_open = 1;
      to += 2 * r->rank;
      continue;
    }
    AOT_TRY(aoth_sizes_dim(&s->sizes, s->prog, r->offset, "a boundary rule", s->sink, &s->now[i].offset));
    for (int32_t d = 0; d < r->rank; d++)
      AOT_TRY(aoth_sizes_dim(&s->sizes, s->prog, r->sizes[d], "a boundary rule", s->sink, to++));
    for (int32_t d = 0; d < r->rank; d++)
      AOT_TRY(aoth_sizes_dim(&s->sizes, s->prog, r->strides[d], "a boundary rule", s->sink, to++));
  }
  return AOT_OK;
}

aot_status_t aoth_step_plan(aoth_step_t *s) {
  size_t n = s->sizes.n * sizeof *s->planned_for;
  if (s->planned && memcmp(s->planned_for, s->sizes.value, n) == 0) return AOT_OK;
  s->planned = 0;
  for (int k = 0; k < AOTH_N_CALLS; k++) s->call[k].is_settled = 0;
  AOT_TRY(aoth_queue_idle(s->exec.queue)); /* what is under way has other sizes */
  AOT_TRY(aoth_step_take_offset(s));
  AOT_TRY(measure_all(s));
  AOT_TRY(aoth_step_rules(s, 1));
  AOT_TRY(aoth_step_place_lent(s));
  s->lent_fits = 0;
  place_all(s);
  AOT_TRY(grow_block(s));
  if (s->exec.queue->guards) aoth_guards_poison(s->exec.queue->guards, s->block);
  AOT_TRY(place_fed(s));
  AOT_TRY(place_slots(s, s->given, s->leaves.n_inputs));
  for (int k = 0; k < AOTH_N_CALLS; k++) {
    AOT_TRY(place_slots(s, s->call[k].in, s->call[k].n_in));
    AOT_TRY(place_slots(s, s->call[k].out, s->call[k].n_out));
  }
  connect(s);
  memcpy(s->planned_for, s->sizes.value, n);
  s->planned = 1;
  return AOT_OK;
}
