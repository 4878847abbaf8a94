#include <step/variants.h>

#include <aot/inline.h>
#include <step/overlap.h>
#include <step/step_ports.h>
#include <stdlib.h>
#include <string.h>

/* The row of the selected program is out of date: its contents are the step's own. */
typedef struct variant {
  aoth_step_t *parked;
  aoth_pattern_t about;
} variant_t;

struct aoth_variants {
  variant_t *at; /* 0: for inputs that share nothing */
  uint32_t n, capacity, selected;
  uint32_t *traits; /* AOTH_INPUT_* by user input */
  uint32_t all_traits;
  aoth_arena_t *arena;   /* texts */
  aoth_arena_t *scratch; /* one comparison */
};

static aot_status_t no_memory(const aoth_step_t *s) {
  aoth_sink_report(s->sink, AOT_SEVERITY_ERROR, NULL, "run.memory", "no memory for the programs of a step");
  return AOT_E_EXHAUSTED;
}

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

/* Room for one more row; its step is empty. */
static variant_t *add_row(aoth_variants_t *v) {
  if (v->n == v->capacity) {
    uint32_t capacity = v->capacity ? 2 * v->capacity : 4;
    variant_t *at = realloc(v->at, capacity * sizeof *at);
    if (!at) return NULL;
    v->at = at;
    v->capacity = capacity;
  }
  v->at[v->n] = (variant_t){.parked = calloc(1, sizeof(aoth_step_t))};
  return v->at[v->n].parked ? &v->at[v->n++] : NULL;
}

aot_status_t aoth_variants_init(aoth_step_t *s) {
  aoth_variants_t *v = s->variants = calloc(1, sizeof *v);
  if (!v) return no_memory(s);
  v->arena = aoth_arena_create();
  v->scratch = aoth_arena_create();
  v->traits = calloc((size_t)s->n_given + 1, sizeof *v->traits);
  variant_t *first = v->arena && v->scratch && v->traits ? add_row(v) : NULL;
  if (!first) return no_memory(s);
  first->about.text = "";
  read_traits(s, v);
  return AOT_OK;
}

void aoth_variants_deinit(aoth_step_t *s) {
  aoth_variants_t *v = s->variants;
  if (!v) return;
  for (uint32_t k = 0; k < v->n; k++) {
    if (k != v->selected) aoth_step_unbind(v->at[k].parked);
    free(v->at[k].parked);
  }
  aoth_arena_destroy(v->arena);
  aoth_arena_destroy(v->scratch);
  free(v->at);
  free(v->traits);
  free(v);
  s->variants = NULL;
}

/* ---- changing over ---- */

static aot_status_t change_over(aoth_step_t *s, uint32_t to) {
  aoth_variants_t *v = s->variants;
  aoth_step_t *parked = v->at[v->selected].parked;
  *parked = *s;
  *s = *v->at[to].parked;
  s->variants = v;
  s->seed = parked->seed;
  s->offset = parked->offset;
  s->phase = 0;
  v->selected = to;
  if (s->exec.select) s->exec.select(s->exec.self, v->at[to].about.program);
  return aoth_leaves_take(&s->leaves, &parked->leaves);
}

static aot_status_t refuse(const aoth_step_t *s, const char *pattern) {
  const aoth_variants_t *v = s->variants;
  aoth_sink_report(s->sink, AOT_SEVERITY_ERROR, NULL, "input.patterns",
                   "the inputs share memory in a new way (%s), but programs for %u other ways were compiled already, "
                   "and no more are allowed",
                   pattern, v->n - 1);
  for (uint32_t k = 1; k < v->n; k++)
    aoth_sink_line(s->sink, "  %s: %llu calls", v->at[k].about.text, (unsigned long long)v->at[k].about.n_calls);
  aoth_sink_line(s->sink, "hint: pass copies, or raise run.alias-patterns");
  return AOT_E_PRECONDITION;
}

static aot_status_t make_variant(aoth_step_t *s, const aoth_aliasing_t *a, const char *pattern) {
  aoth_variants_t *v = s->variants;
  if (v->n - 1 >= s->exec.max_patterns) return refuse(s, pattern);
  aot_prog_t *prog;
  aoth_pattern_t about = {.text = aoth_arena_text(v->arena, pattern, strlen(pattern))};
  variant_t *row = about.text ? add_row(v) : NULL;
  if (!row) return no_memory(s);
  aot_status_t status = s->exec.specialise(s->exec.self, a, &prog, &about);
  if (status == AOT_OK) status = aoth_step_bind(row->parked, prog, &s->exec, s->sink);
  if (status == AOT_OK) {
    row->about = about;
    return AOT_OK;
  }
  aoth_step_unbind(row->parked);
  free(row->parked);
  v->n--;
  if (s->exec.select) s->exec.select(s->exec.self, v->at[v->selected].about.program);
  aoth_sink_report(s->sink, AOT_SEVERITY_NOTE, NULL, "input.patterns",
                   "while compiling for inputs that share memory: %s", pattern);
  return status;
}

/* The row of a pattern, or v->n. Patterns are few. */
static uint32_t find_variant(const aoth_variants_t *v, const char *pattern) {
  uint32_t k = 0;
  while (k < v->n && strcmp(v->at[k].about.text, pattern) != 0) k++;
  return k;
}

/* ---- looking at inputs ---- */

static aot_status_t look_at(aoth_step_t *s, const aoth_tensor_t *inputs, uint32_t n, aoth_aliasing_t *out) {
  aoth_variants_t *v = s->variants;
  aoth_call_input_t *list = aoth_arena_alloc(v->scratch, 16, ((size_t)n + 1) * sizeof *list);
  aoth_tensor_t *declared = aoth_arena_alloc(v->scratch, 16, ((size_t)n + 1) * sizeof *declared);
  if (!list || !declared) return no_memory(s);
  for (uint32_t k = 0; k < n; k++) {
    const aot_type_t *type = &s->leaves.leaf[s->leaves.input[k]].info.type;
    AOT_TRY(aoth_sizes_tensor(&s->sizes, s->prog, type, "a user input", s->sink, &declared[k]));
    list[k] = (aoth_call_input_t){&inputs[k], &declared[k], v->traits[k]};
  }
  return aoth_overlap_find(list, n, v->scratch, s->sink, out);
}

static aot_status_t select_for(aoth_step_t *s, const aoth_aliasing_t *a, const char *pattern, int *out_changed) {
  aoth_variants_t *v = s->variants;
  uint32_t k = find_variant(v, pattern);
  if (k == v->n) AOT_TRY(make_variant(s, a, pattern));
  v->at[k].about.n_calls++;
  *out_changed = k != v->selected;
  return *out_changed ? change_over(s, k) : AOT_OK;
}

aot_status_t aoth_step_specialise(aoth_step_t *s, const aoth_tensor_t *inputs, uint32_t n, int *out_changed) {
  aoth_variants_t *v = s->variants;
  aoth_aliasing_t aliasing;
  aoth_text_t pattern = {0};
  *out_changed = 0;
  if (n < 2 || !s->exec.specialise || !(v->all_traits & ~AOTH_INPUT_REQUIRES)) return AOT_OK;
  aoth_arena_reset(v->scratch);
  AOT_TRY(look_at(s, inputs, n, &aliasing));
  aoth_aliasing_print(&aliasing, &pattern);
  aot_status_t status =
      pattern.failed ? no_memory(s) : select_for(s, &aliasing, pattern.data ? pattern.data : "", out_changed);
  aoth_text_deinit(&pattern);
  return status;
}

uint32_t aoth_step_n_patterns(const aoth_step_t *s) { return s->variants->n - 1; }
const aoth_pattern_t *aoth_step_pattern(const aoth_step_t *s, uint32_t k) { return &s->variants->at[k + 1].about; }

int aoth_step_owns(const aoth_step_t *s, const void *data) {
  const aoth_variants_t *v = s->variants;
  int owns = aoth_step_block_has(s, data);
  for (uint32_t k = 0; k < v->n && !owns; k++) owns = k != v->selected && aoth_step_block_has(v->at[k].parked, data);
  return owns;
}
