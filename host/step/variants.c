#include <step/variants.h>

#include "kit/base/vector.h"
#include <aot/inline.h>
#include <step/overlap.h>
#include <step/step_ports.h>
#include <stdlib.h>
#include <string.h>

typedef struct program {
  aot_prog_t *prog;
  aoth_pattern_t about;
} program_t;

/* A call under one program: tables and memory. Those of the selected frame are the step's own; here they are out of
 * date. */
typedef struct frame {
  aoth_step_t *parked; /* NULL: the row is free */
  uint32_t program, call;
} frame_t;

struct aoth_variants {
  program_t *programs; /* 0: for inputs that share nothing */
  uint32_t n_programs, program_capacity;
  frame_t *frames;
  uint32_t n_frames, frame_capacity, selected;
  uint32_t *last; /* by call: the frame in which it ran last; AOT_NO_INDEX: the call is closed */
  uint32_t n_calls, call_capacity;
  uint32_t *traits; /* AOTH_INPUT_* by user input */
  uint32_t all_traits;
  kit_arena_t *arena;   /* texts */
  kit_arena_t *scratch; /* one comparison */
};

/* ---- life ---- */

static void read_traits(const aoth_step_t *s, aoth_variants_t *v) {
  for (uint32_t i = 0; i < s->n_rules; i++) {
    const aot_rule_t *r = &s->rules[i];
    if (r->kind != AOT_RULE_COPY_BACK && r->kind != AOT_RULE_RESTRIDE) continue;
    const aot_leaf_info_t *leaf = &s->leaves.leaf[r->a].info;
    if (leaf->role == AOT_ROLE_USER_INPUT)
      v->traits[leaf->ordinal] |= r->kind == AOT_RULE_COPY_BACK ? AOTH_INPUT_WRITTEN : AOTH_INPUT_RESHAPED;
  }
  for (uint32_t k = 0; k < s->n_given; k++) {
    uint32_t leaf = s->leaves.input[k], port = s->gradient[leaf];
    if (s->leaves.leaf[leaf].info.flags & AOT_LEAF_REQUIRES_GRAD) v->traits[k] |= AOTH_INPUT_REQUIRES;
    if (port != AOT_NO_INDEX && s->call[AOTH_CALL_BACKWARD].out[port].type.kind == AOT_TYPE_TENSOR)
      v->traits[k] |= AOTH_INPUT_GRADIENT;
    v->all_traits |= v->traits[k];
  }
}

/* Room for one more row at *rows. 0: no memory. */
static int room(void *rows, uint32_t n, uint32_t *capacity, size_t size) {
  void *at;
  memcpy(&at, rows, sizeof at);
  at = kit_grow(at, capacity, (uint64_t)n + 1, size);
  if (at) memcpy(rows, &at, sizeof at);
  return at != NULL;
}

/* A row for a call under a program; its step is empty. AOT_NO_INDEX: no memory. */
static uint32_t add_frame(aoth_variants_t *v, uint32_t program, uint32_t call) {
  uint32_t k = 0;
  while (k < v->n_frames && v->frames[k].parked) k++;
  if (k == v->n_frames && !room(&v->frames, k, &v->frame_capacity, sizeof *v->frames)) return AOT_NO_INDEX;
  aoth_step_t *parked = calloc(1, sizeof *parked);
  if (!parked) return AOT_NO_INDEX;
  v->frames[k] = (frame_t){parked, program, call};
  if (k == v->n_frames) v->n_frames++;
  return k;
}

static void drop_frame(frame_t *f) {
  aoth_step_unbind(f->parked);
  free(f->parked);
  f->parked = NULL;
}

aot_status_t aoth_variants_init(aoth_step_t *s) {
  aoth_variants_t *v = s->variants = calloc(1, sizeof *v);
  if (!v) return aoth_sink_no_memory(s->sink, NULL, "run.memory", "for the programs of a step");
  v->arena = kit_arena_create();
  v->scratch = kit_arena_create();
  v->traits = calloc((size_t)s->n_given + 1, sizeof *v->traits);
  if (!v->arena || !v->scratch || !v->traits || !room(&v->last, 0, &v->call_capacity, sizeof *v->last) ||
      !room(&v->programs, 0, &v->program_capacity, sizeof *v->programs) || add_frame(v, 0, 0) == AOT_NO_INDEX)
    return aoth_sink_no_memory(s->sink, NULL, "run.memory", "for the programs of a step");
  v->programs[v->n_programs++] = (program_t){.prog = s->prog, .about.text = ""};
  v->last[v->n_calls++] = 0;
  read_traits(s, v);
  return AOT_OK;
}

void aoth_variants_deinit(aoth_step_t *s) {
  aoth_variants_t *v = s->variants;
  if (!v) return;
  for (uint32_t k = 0; k < v->n_frames; k++) {
    if (k == v->selected) free(v->frames[k].parked);
    else if (v->frames[k].parked) drop_frame(&v->frames[k]);
  }
  kit_arena_destroy(v->arena);
  kit_arena_destroy(v->scratch);
  free(v->programs);
  free(v->frames);
  free(v->last);
  free(v->traits);
  free(v);
  s->variants = NULL;
}

/* ---- changing over ---- */

static aot_status_t change_over(aoth_step_t *s, uint32_t to) {
  aoth_variants_t *v = s->variants;
  aoth_step_t *parked = v->frames[v->selected].parked;
  const uint32_t program = v->frames[to].program;
  if (to == v->selected) return AOT_OK;
  AOT_TRY(aoth_step_take_offset(s));
  *parked = *s;
  *s = *v->frames[to].parked;
  s->variants = v;
  /* another program: what is borrowed is borrowed to the call */
  if (v->frames[to].call == v->frames[v->selected].call) {
    s->lent = parked->lent;
    parked->lent = NULL;
    s->planned = parked->planned = 0;
  }
  s->seed = parked->seed;
  s->offset = parked->offset;
  if (s->exec.select && program != v->frames[v->selected].program)
    s->exec.select(s->exec.self, v->programs[program].about.program);
  v->selected = to;
  return aoth_leaves_take(&s->leaves, &parked->leaves);
}

static aot_status_t refuse(const aoth_step_t *s, const char *pattern) {
  const aoth_variants_t *v = s->variants;
  aoth_sink_report(s->sink, AOT_SEVERITY_ERROR, NULL, "input.patterns",
                   "the inputs share memory in a new way (%s), but programs for %u other ways were compiled already, "
                   "and no more are allowed",
                   pattern, v->n_programs - 1);
  for (uint32_t k = 1; k < v->n_programs; k++)
    aoth_sink_line(s->sink, "  %s: %llu calls", v->programs[k].about.text,
                   (unsigned long long)v->programs[k].about.n_calls);
  aoth_sink_line(s->sink, "hint: pass copies, or raise run.alias-patterns");
  return AOT_E_PRECONDITION;
}

static aot_status_t make_frame(aoth_step_t *s, uint32_t program, uint32_t call, uint32_t *out) {
  aoth_variants_t *v = s->variants;
  *out = add_frame(v, program, call);
  if (*out == AOT_NO_INDEX) return aoth_sink_no_memory(s->sink, NULL, "run.memory", "for the programs of a step");
  const aot_status_t status = aoth_step_bind(v->frames[*out].parked, v->programs[program].prog, &s->exec, s->sink);
  if (status != AOT_OK) drop_frame(&v->frames[*out]);
  return status;
}

/* The newest of v->programs, and the frame of this call under it. */
static aot_status_t make_program(aoth_step_t *s, const aoth_aliasing_t *a, const char *pattern, uint32_t *out_frame) {
  aoth_variants_t *v = s->variants;
  if (v->n_programs - 1 >= s->exec.max_patterns) return refuse(s, pattern);
  program_t made = {.about.text = kit_arena_text(v->arena, pattern, strlen(pattern))};
  if (!made.about.text || !room(&v->programs, v->n_programs, &v->program_capacity, sizeof *v->programs))
    return aoth_sink_no_memory(s->sink, NULL, "run.memory", "for the programs of a step");
  const frame_t *now = &v->frames[v->selected];
  const uint32_t call = now->call, was = now->program;
  aot_status_t status = s->exec.specialise(s->exec.self, a, &made.prog, &made.about);
  if (status == AOT_OK) {
    v->programs[v->n_programs++] = made;
    status = make_frame(s, v->n_programs - 1, call, out_frame);
    if (status != AOT_OK) v->n_programs--;
  }
  if (s->exec.select) s->exec.select(s->exec.self, v->programs[was].about.program);
  if (status != AOT_OK)
    aoth_sink_report(s->sink, AOT_SEVERITY_NOTE, NULL, "input.patterns",
                     "while compiling for inputs that share memory: %s", pattern);
  return status;
}

/* Patterns are few. */
static uint32_t find_program(const aoth_variants_t *v, const char *pattern) {
  uint32_t k = 0;
  while (k < v->n_programs && strcmp(v->programs[k].about.text, pattern) != 0) k++;
  return k;
}

static uint32_t find_frame(const aoth_variants_t *v, uint32_t program, uint32_t call) {
  for (uint32_t k = 0; k < v->n_frames; k++)
    if (v->frames[k].parked && v->frames[k].program == program && v->frames[k].call == call) return k;
  return AOT_NO_INDEX;
}

/* ---- looking at inputs ---- */

static aot_status_t look_at(aoth_step_t *s, const aoth_tensor_t *inputs, uint32_t n, aoth_aliasing_t *out) {
  aoth_variants_t *v = s->variants;
  aoth_call_input_t *list = kit_arena_alloc(v->scratch, 16, ((size_t)n + 1) * sizeof *list);
  aoth_tensor_t *declared = kit_arena_alloc(v->scratch, 16, ((size_t)n + 1) * sizeof *declared);
  if (!list || !declared) return aoth_sink_no_memory(s->sink, NULL, "run.memory", "for the programs of a step");
  for (uint32_t k = 0; k < n; k++) {
    const aot_type_t *type = &s->leaves.leaf[s->leaves.input[k]].info.type;
    AOT_TRY(aoth_sizes_tensor(&s->sizes, s->prog, type, "a user input", s->sink, &declared[k]));
    list[k] = (aoth_call_input_t){&inputs[k], &declared[k], v->traits[k]};
  }
  return aoth_overlap_find(list, n, v->scratch, s->sink, out);
}

static aot_status_t select_for(aoth_step_t *s, const aoth_aliasing_t *a, const char *pattern, int *out_changed) {
  aoth_variants_t *v = s->variants;
  const uint32_t call = v->frames[v->selected].call, program = find_program(v, pattern);
  uint32_t frame = program < v->n_programs ? find_frame(v, program, call) : AOT_NO_INDEX;
  if (program == v->n_programs) AOT_TRY(make_program(s, a, pattern, &frame));
  else if (frame == AOT_NO_INDEX) AOT_TRY(make_frame(s, program, call, &frame));
  v->programs[program].about.n_calls++;
  v->last[call] = frame;
  *out_changed = frame != v->selected;
  return change_over(s, frame);
}

aot_status_t aoth_step_specialise(aoth_step_t *s, const aoth_tensor_t *inputs, uint32_t n, int *out_changed) {
  aoth_variants_t *v = s->variants;
  aoth_aliasing_t aliasing;
  kit_text_t pattern = {0};
  *out_changed = 0;
  if (n < 2 || !s->exec.specialise || !(v->all_traits & ~AOTH_INPUT_REQUIRES)) return AOT_OK;
  kit_arena_reset(v->scratch);
  AOT_TRY(look_at(s, inputs, n, &aliasing));
  aoth_aliasing_print(&aliasing, &pattern);
  aot_status_t status = pattern.failed ? aoth_sink_no_memory(s->sink, NULL, "run.memory", "for the programs of a step")
                                       : select_for(s, &aliasing, pattern.data ? pattern.data : "", out_changed);
  kit_text_deinit(&pattern);
  return status;
}

/* ---- calls ---- */

aot_status_t aoth_step_open_call(aoth_step_t *s, uint32_t *out) {
  aoth_variants_t *v = s->variants;
  uint32_t call = 0;
  while (call < v->n_calls && v->last[call] != AOT_NO_INDEX) call++;
  if (call == v->n_calls && !room(&v->last, call, &v->call_capacity, sizeof *v->last))
    return aoth_sink_no_memory(s->sink, NULL, "run.memory", "for the programs of a step");
  AOT_TRY(make_frame(s, 0, call, &v->last[call]));
  if (call == v->n_calls) v->n_calls++;
  *out = call;
  return AOT_OK;
}

aot_status_t aoth_step_enter(aoth_step_t *s, uint32_t call) { return change_over(s, s->variants->last[call]); }

void aoth_step_close_call(aoth_step_t *s, uint32_t call) {
  aoth_variants_t *v = s->variants;
  if (v->frames[v->selected].call == call) aoth_step_enter(s, 0);
  for (uint32_t k = 0; k < v->n_frames; k++)
    if (v->frames[k].parked && v->frames[k].call == call) drop_frame(&v->frames[k]);
  v->last[call] = AOT_NO_INDEX;
}

void aoth_step_replan(aoth_step_t *s) {
  const aoth_variants_t *v = s->variants;
  for (uint32_t k = 0; k < v->n_frames; k++)
    if (v->frames[k].parked) v->frames[k].parked->planned = 0;
  s->planned = 0;
}

/* ---- questions ---- */

uint32_t aoth_step_n_patterns(const aoth_step_t *s) { return s->variants->n_programs - 1; }
const aoth_pattern_t *aoth_step_pattern(const aoth_step_t *s, uint32_t k) {
  return &s->variants->programs[k + 1].about;
}

int aoth_step_owns(const aoth_step_t *s, const void *data) {
  const aoth_variants_t *v = s->variants;
  int owns = aoth_step_block_has(s, data);
  for (uint32_t k = 0; k < v->n_frames && !owns; k++)
    owns = k != v->selected && v->frames[k].parked && aoth_step_block_has(v->frames[k].parked, data);
  return owns;
}
