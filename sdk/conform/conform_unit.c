/* Rules of every unit: what it says of itself, and its life. */
#include <sdk/conform/conform_trial.h>

#include <aot/inline.h>
#include <dirent.h>
#include <dlfcn.h>
#include <malloc.h>
#include <math.h>
#include <sandbox/call.h>
#include <config/pipeline.h>
#include <plugin/load.h>
#include <process/process_state.h>
#include <base/clock.h>
#include <string.h>
#include <time.h>
#include <sdk/conform/conform_host.h>

#define N_LIVES 1000
#define N_WARM 100     /* lives after which whatever is made once is made */
#define LONGEST 10.0   /* seconds: fewer lives of what is dear to make */
#define FEW_WARM 10    /* of those */
#define LEAST_LEAK 16u /* bytes a life: the least that malloc hands out */

/* ---- what it says of itself ---- */

/* The entry alone, for an epoch that will not come. */
static void ask_other_epoch(aoth_trial_t *t, const aoth_plugin_t *p) {
  void *handle = dlopen(p->path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  void *symbol = handle ? dlsym(handle, "aot_plugin_entry") : NULL;
  const aot_plugin_t *(AOT_CALL * entry)(uint32_t, uint32_t, aot_str_t *);
  aot_str_t why = {NULL, 0};
  if (!symbol) return;
  memcpy(&entry, &symbol, sizeof entry);
  if (entry(AOT_ABI_EPOCH, AOT_ABI_MINOR, &why) != p->self) {
    aoth_trial_end(t, AOTH_CONFORM_FAILED, "asked again, aot_plugin_entry answers another descriptor");
    return;
  }
  if (!entry(AOT_ABI_EPOCH + 1, 0, &why) && !why.size)
    aoth_trial_end(t, AOTH_CONFORM_FAILED, "aot_plugin_entry refuses another epoch without a sentence in *why_not");
}

void aoth_rule_loads(aoth_trial_t *t) {
  aoth_plugin_t *p = t->c->plugin;
  if (!aoth_trial_is_first(t)) return;
  aoth_trial_about(t, "opening the file");
  if (aoth_plugin_open(t->s->registry, p, t->s->arena, NULL, t->s->config.sink) != AOT_OK) {
    aoth_trial_end(t, AOTH_CONFORM_FAILED, "%s", p->why ? p->why : "it is refused");
    return;
  }
  ask_other_epoch(t, p);
}

static int is_number(const aot_option_t *o) {
  return o->kind == AOT_OPT_I64 || o->kind == AOT_OPT_F64 || o->kind == AOT_OPT_BYTES;
}

/* What is wrong with an option's own default; NULL: nothing. */
static const char *wrong_default(const aot_option_t *o) {
  const double value = o->kind == AOT_OPT_F64 ? o->preset.f : (double)o->preset.i;
  int is_choice = 0;
  if (is_number(o) && o->flags & AOT_OPT_HAS_RANGE && !(o->min <= o->max)) return "has a range that is empty";
  if (o->flags & AOT_OPT_REQUIRED) return NULL;
  if (is_number(o) && o->flags & AOT_OPT_HAS_RANGE && !(value >= o->min && value <= o->max))
    return "has a default outside of its own range";
  if (o->kind == AOT_OPT_BOOL && o->preset.i != 0 && o->preset.i != 1) return "is a bool whose default is neither";
  for (uint32_t i = 0; o->kind == AOT_OPT_ENUM && i < o->n_choices; i++)
    is_choice |= aot_str_eq(o->choices[i], o->preset.s);
  if (o->kind == AOT_OPT_ENUM && !is_choice) return "has a default that is none of its choices";
  return NULL;
}

static const char *wrong_option(const aoth_unit_t *u, uint32_t i) {
  const aot_option_t *o = &u->options[i];
  if (!o->help.size) return "has no help";
  for (uint64_t k = 0; k < o->name.size; k++) {
    const char c = o->name.data[k];
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'))
      return "has a name that is not small-and-hyphened";
  }
  for (uint32_t k = 0; k < i; k++)
    if (aot_str_eq(u->options[k].name, o->name)) return "has the name of another one";
  return wrong_default(o);
}

void aoth_rule_described(aoth_trial_t *t) {
  const aoth_unit_t *u = t->stage->unit;
  if (!aoth_trial_is_first(t)) return;
  aoth_trial_about(t, "the descriptor of the unit");
  if (!u->help || !*u->help || !u->desc.help.size) aoth_trial_end(t, AOTH_CONFORM_FAILED, "it has no help");
  if (strlen(u->help) != u->desc.help.size || memcmp(u->help, u->desc.help.data, u->desc.help.size) != 0) {
    aoth_trial_end(t, AOTH_CONFORM_FAILED, "its note has another help than its descriptor");
    return;
  }
  for (uint32_t i = 0; i < u->desc.n_options; i++) {
    const char *wrong = wrong_option(u, i);
    if (wrong) {
      aoth_trial_end(t, AOTH_CONFORM_FAILED, "option %.*s %s", (int)u->options[i].name.size, u->options[i].name.data,
                     wrong);
      return;
    }
  }
}

/* ---- its life ---- */

/* A life: created and destroyed. 1: it was. */
static int live_once(aoth_trial_t *t, const aoth_stage_t *stage) {
  aoth_instance_t unit;
  const aot_status_t status = aoth_instance_try(t->s, stage, &unit);
  if (!aoth_trial_judge(t, status)) return 0;
  aoth_instance_destroy(t->s, stage, &unit);
  return 1;
}

void aoth_rule_created(aoth_trial_t *t) {
  if (!aoth_trial_is_first(t)) return;
  aoth_trial_about(t, "create and destroy");
  live_once(t, t->stage);
}

static uint32_t count_folder(const char *path) {
  DIR *d = opendir(path);
  uint32_t n = 0;
  while (d && readdir(d)) n++;
  if (d) closedir(d);
  return n;
}

typedef struct held {
  uint64_t nbytes;
  uint32_t n_descriptors, n_threads;
} held_t;

static held_t what_is_held(void) {
  const struct mallinfo2 m = mallinfo2();
  return (held_t){(uint64_t)m.uordblks + (uint64_t)m.hblkhd, count_folder("/proc/self/fd"),
                  count_folder("/proc/self/task")};
}

void aoth_trial_leaves_nothing(aoth_trial_t *t, int (*act)(aoth_trial_t *t, void *self), void *self) {
  held_t before = {0, 0, 0}, after;
  const struct timespec moment = {0, 20000000}; /* threads that have ended are gone by then */
  const uint64_t begin = aoth_now_ns();
  int n_warm = N_WARM, n_lives = 0;
  for (; n_lives < N_LIVES; n_lives++) {
    const double seconds = (double)(aoth_now_ns() - begin) / 1e9;
    if (n_lives == FEW_WARM && seconds * N_LIVES > LONGEST * FEW_WARM) n_warm = FEW_WARM;
    if (n_lives == n_warm) before = what_is_held();
    if (n_lives > 2 * n_warm && seconds > LONGEST) break;
    if (!act(t, self)) return;
  }
  after = what_is_held();
  aoth_trial_about(t, "%d lives", n_lives);
  if (after.n_threads > before.n_threads) {
    nanosleep(&moment, NULL);
    after = what_is_held();
  }
  const uint64_t n = (uint64_t)(n_lives - n_warm);
  if (after.nbytes > before.nbytes + n * LEAST_LEAK) {
    aoth_trial_end(t, AOTH_CONFORM_FAILED, "%llu bytes stay behind, %llu a life",
                   (unsigned long long)(after.nbytes - before.nbytes),
                   (unsigned long long)((after.nbytes - before.nbytes) / n));
    return;
  }
  if (after.n_descriptors > before.n_descriptors) {
    aoth_trial_end(t, AOTH_CONFORM_FAILED, "%u descriptors stay open", after.n_descriptors - before.n_descriptors);
    return;
  }
  if (after.n_threads > before.n_threads)
    aoth_trial_end(t, AOTH_CONFORM_FAILED, "%u threads go on", after.n_threads - before.n_threads);
}

/* A life whose session memory is freed, too: what stays is what the unit forgot. */
static int live_in_own_session(aoth_trial_t *t, void *unused) {
  aoth_session_t *s = t->s;
  kit_arena_t *arena = s->arena, *own = kit_arena_create();
  (void)unused;
  if (!own) return 0;
  s->arena = s->ctx.session = s->report.arena = own;
  s->about_unit = NULL;
  const int lived = live_once(t, t->stage);
  s->arena = s->ctx.session = s->report.arena = arena;
  s->about_unit = NULL;
  kit_arena_destroy(own);
  return lived;
}

void aoth_rule_created_often(aoth_trial_t *t) {
  if (!aoth_trial_is_first(t)) return;
  if (!live_once(t, t->stage)) return; /* init is called with the session's own memory */
  aoth_trial_leaves_nothing(t, live_in_own_session, NULL);
}

void aoth_trial_keeps_surroundings(aoth_trial_t *t, void (*act)(aoth_trial_t *t)) {
  kit_text_t what = {0};
  aoth_process_state_t *state = aoth_process_state_record();
  if (!state) return;
  act(t);
  if (t->end <= AOTH_CONFORM_REFUSED && aoth_process_state_differs(state, &what))
    aoth_trial_end(t, AOTH_CONFORM_FAILED, "it left %s", what.data ? what.data : "something");
  kit_text_deinit(&what);
  aoth_process_state_destroy(state);
}

static void live(aoth_trial_t *t) { live_once(t, t->stage); }

void aoth_rule_surroundings(aoth_trial_t *t) {
  if (!aoth_trial_is_first(t)) return;
  aoth_trial_about(t, "create and destroy");
  aoth_trial_keeps_surroundings(t, live);
}

/* ---- options ---- */

static const aot_str_t odd_texts[] = {AOT_STR_INIT(""), AOT_STR_INIT("/nowhere/at/all"), AOT_STR_INIT("\xff\xfe%n%s"),
                                      AOT_STR_INIT("/")};
#define N_ODD_TEXTS 4u

static double number_or(const aot_option_t *o, double bound, double otherwise) {
  return o->flags & AOT_OPT_HAS_RANGE ? bound : otherwise;
}

/* The k-th odd value of an option; 0: there is none. What the host would not let through (outside of a range or a
 * choice) is left out: units may count on it. */
static int odd_value(const aot_option_t *o, uint32_t k, aot_opt_value_t *out) {
  *out = (aot_opt_value_t){0};
  switch (o->kind) {
    case AOT_OPT_BOOL: out->i = k; return k < 2;
    case AOT_OPT_I64:
    case AOT_OPT_BYTES: {
      const int64_t least = o->kind == AOT_OPT_BYTES ? 0 : INT64_MIN;
      const int64_t low = o->flags & AOT_OPT_HAS_RANGE && o->min > -9.2e18 ? (int64_t)o->min : least;
      const int64_t high = o->flags & AOT_OPT_HAS_RANGE && o->max < 9.2e18 ? (int64_t)o->max : INT64_MAX;
      const int64_t values[] = {low, high, 0};
      out->i = k < 3 ? values[k] : 0;
      return k < (low <= 0 && high >= 0 ? 3 : 2);
    }
    case AOT_OPT_F64: {
      const double values[] = {number_or(o, o->min, -1e300), number_or(o, o->max, 1e300), NAN, INFINITY};
      out->f = k < 4 ? values[k] : 0;
      return k < (o->flags & AOT_OPT_HAS_RANGE ? 2 : 4);
    }
    case AOT_OPT_ENUM:
      if (k < o->n_choices) out->s = o->choices[k];
      return k < o->n_choices;
    default:
      if (k < N_ODD_TEXTS) out->s = odd_texts[k];
      return k < N_ODD_TEXTS;
  }
}

static void tell_value(aoth_trial_t *t, const aot_option_t *o, const aot_opt_value_t *v) {
  const int n = (int)o->name.size;
  if (o->kind == AOT_OPT_F64) aoth_trial_about(t, "option %.*s is %g", n, o->name.data, v->f);
  else if (o->kind == AOT_OPT_BOOL || o->kind == AOT_OPT_I64 || o->kind == AOT_OPT_BYTES)
    aoth_trial_about(t, "option %.*s is %lld", n, o->name.data, (long long)v->i);
  else aoth_trial_about(t, "option %.*s is \"%.*s\"", n, o->name.data, (int)v->s.size, v->s.data);
}

/* Trials go through the values of the first option, then of the second, .. */
void aoth_trial_with_options(aoth_trial_t *t, void (*act)(aoth_trial_t *t)) {
  const aoth_unit_t *u = t->stage->unit;
  aot_opt_value_t value, values[256];
  aoth_stage_t stage = *t->stage;
  uint32_t left = t->number, i = 0;
  for (; i < u->desc.n_options; i++) {
    uint32_t n = 0;
    while (odd_value(&u->options[i], n, &value)) n++;
    if (left < n) break;
    left -= n;
  }
  if (i == u->desc.n_options) {
    aoth_trial_none(t);
    return;
  }
  odd_value(&u->options[i], left, &value);
  tell_value(t, &u->options[i], &value);
  memcpy(values, stage.opts.values, stage.opts.n_values * sizeof *values);
  values[i] = value;
  stage.opts.values = values;
  t->stage = &stage;
  act(t);
}

void aoth_rule_options(aoth_trial_t *t) { aoth_trial_with_options(t, live); }

/* ---- a host that does not do what it is queried ---- */

void aoth_rule_create_memory(aoth_trial_t *t) {
  aoth_hostile_install(t->c->plugin, t->s->arena);
  const uint64_t n = aoth_trial_spaced(t->number);
  aoth_hostile_arm(AOTH_HOSTILE_ALLOC, n);
  live_once(t, t->stage);
  const int has_failed = aoth_hostile_has_failed();
  aoth_hostile_arm(0, 0);
  if (!has_failed) {
    aoth_trial_none(t);
    return;
  }
  aoth_trial_about(t, "allocation %llu of create fails, the %s", (unsigned long long)n, aoth_hostile_name());
  if (t->end == AOTH_CONFORM_REFUSED && t->s->status != AOT_E_EXHAUSTED) {
    aoth_trial_end(t, AOTH_CONFORM_FAILED, "it answers status %d in place of AOT_E_EXHAUSTED", (int)t->s->status);
    return;
  }
  if (t->end == AOTH_CONFORM_REFUSED) t->end = AOTH_CONFORM_PASSED;
  if (t->end == AOTH_CONFORM_PASSED && !live_once(t, t->stage))
    t->end = AOTH_CONFORM_FAILED; /* with memory it is created again */
}

void aoth_trial_without_extension(aoth_trial_t *t, void (*act)(aoth_trial_t *t)) {
  aoth_hostile_install(t->c->plugin, t->s->arena);
  aoth_hostile_arm(AOTH_HOSTILE_EXTENSION, t->number);
  act(t);
  if (!aoth_hostile_has_failed()) aoth_trial_none(t);
  else aoth_trial_about(t, "extension %s is not there", aoth_hostile_name());
}

void aoth_rule_extensions(aoth_trial_t *t) { aoth_trial_without_extension(t, live); }
