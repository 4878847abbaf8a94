/* Sizes that only the run reports: ports whose types hold symbols that the user inputs do not determine.
 *
 * Such an output of a graph is handed over without memory; during the run the executable learns its symbols, and asks
 * for the tensor. What it has learned holds until the next forward: afterwards the ports of the backward and the
 * boundary rules that need it are given their geometry. Each open slot keeps its memory from step to step. Linear in
 * ports. */
#include <step/step_ports.h>

#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

static aot_status_t measure(aoth_step_t *s, const aoth_slot_t *p, aoth_tensor_t *out) {
  return aoth_sizes_tensor(&s->sizes, s->prog, &p->type, aoth_role_what(p->role), s->sink, out);
}

/* Geometry and memory of its own; after a failure it has neither, since a tensor without memory cannot be looked at. */
static aot_status_t place(aoth_step_t *s, aoth_slot_t *p) {
  aoth_tensor_t t;
  p->tensor = (aoth_tensor_t){0};
  AOT_TRY(measure(s, p, &t));
  AOT_TRY(aoth_resident_resize(&p->own, s->exec.queue, t.nbytes));
  t.resident = &p->own;
  p->tensor = t;
  return AOT_OK;
}

static int is_open_now(const aoth_step_t *s, const aoth_slot_t *p) {
  return p->open && aoth_sizes_type_is_open(&s->sizes, &p->type);
}

/* ---- the run ---- */

typedef struct query {
  aoth_step_t *s;
  aoth_step_call_t *call;
} query_t;

static aot_status_t allocate(const aot_output_sink_t *sink, uint64_t output, const int64_t *symbols, uint64_t n_symbols,
                             aot_tensor_t *out) {
  const query_t *a = sink->head.self;
  if (output >= a->call->n_out || !a->call->out[output].open) {
    aoth_sink_report(a->s->sink, AOT_SEVERITY_ERROR, NULL, "run.open",
                     "the executable asks for output %llu, which is not open", (unsigned long long)output);
    return AOT_E_CONTRACT;
  }
  aoth_slot_t *p = &a->call->out[output];
  AOT_TRY(aoth_sizes_learn(&a->s->sizes, a->s->prog, symbols, n_symbols, a->s->sink));
  AOT_TRY(place(a->s, p));
  *out = aoth_tensor_view(&p->tensor);
  out->data = (void *)(uintptr_t)p->own.buffer.address;
  return AOT_OK;
}

aot_status_t aoth_step_run_open(aoth_step_t *s, aoth_step_call_t *c) {
  query_t asked = {s, c};
  const aot_output_sink_t sink = {.head = {.struct_size = (uint32_t)sizeof sink, .self = &asked}, .allocate = allocate};
  for (uint32_t i = 0; i < c->n_out; i++) {
    if (!is_open_now(s, &c->out[i])) continue;
    c->out[i].tensor = (aoth_tensor_t){0};
    c->out_views[i] = (aot_tensor_t){.dtype = c->out[i].type.dtype, .rank = AOT_RANK_OPEN};
  }
  AOT_TRY(aoth_step_run(s, c, &sink));
  AOT_TRY(aoth_sizes_learn(&s->sizes, s->prog, s->learned, s->sizes.n, s->sink));
  for (uint32_t i = 0; i < c->n_out; i++) {
    if (!c->out[i].open || c->out[i].tensor.dtype) continue;
    aoth_sink_report(s->sink, AOT_SEVERITY_ERROR, NULL, "run.open",
                     "the executable has left output %u without its tensor", i);
    return AOT_E_CONTRACT;
  }
  return AOT_OK;
}

/* ---- after the forward ---- */

/* Geometry and memory of the open ports of the backward that are known by now. */
aot_status_t aoth_step_place_open(aoth_step_t *s) {
  aoth_step_call_t *f = &s->call[AOTH_CALL_FORWARD], *b = &s->call[AOTH_CALL_BACKWARD];
  for (uint32_t i = 0; i < b->n_in; i++) {
    aoth_slot_t *p = &b->in[i];
    if (!p->open) continue;
    if (p->role != AOT_ROLE_SAVED && !aot_role_is_leaf(p->role)) {
      AOT_TRY(place(s, p));
      continue;
    }
    aoth_tensor_t t;
    AOT_TRY(measure(s, p, &t));
    if (p->role == AOT_ROLE_SAVED) t.resident = f->out[s->saved[p->index]].tensor.resident;
    p->tensor = t;
  }
  for (uint32_t i = 0; i < b->n_out; i++) {
    if (!b->out[i].open || is_open_now(s, &b->out[i])) continue;
    AOT_TRY(place(s, &b->out[i]));
  }
  return s->rules_open ? aoth_step_rules(s, 0) : AOT_OK;
}
