#define _GNU_SOURCE /* memfd_create */
#include <sdk/conform/conform_trial.h>

#include <aot/inline.h>
#include <sandbox/call.h>
#include <compiler/devices.h>
#include <compiler/stage_check.h>
#include <string.h>
#include <sys/mman.h>
#include <trainer/trial/child.h>
#include <unistd.h>

void aoth_trial_about(aoth_trial_t *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(t->about, sizeof t->about, format, args);
  va_end(args);
}

void aoth_trial_end(aoth_trial_t *t, int end, const char *format, ...) {
  va_list args;
  va_start(args, format);
  t->end = end;
  vsnprintf(t->why, sizeof t->why, format, args);
  va_end(args);
}

void aoth_trial_none(aoth_trial_t *t) { t->end = AOTH_CONFORM_NO_TRIAL; }

int aoth_trial_is_first(aoth_trial_t *t) {
  if (t->number > 0) aoth_trial_none(t);
  return t->number == 0;
}

void aoth_trial_complaint(const aoth_trial_t *t, char *out, size_t size) {
  aoth_first_error(aoth_sink_text(t->s->config.sink), out, size);
}

void aoth_trial_hear(const aoth_trial_t *t, kit_arena_t **arena, aot_ctx_t *out) {
  if (!*arena) *arena = kit_arena_create();
  *out = t->s->ctx;
  out->prog = NULL;
  out->session = out->graph = out->scratch = *arena;
  out->n_diags = 0;
  out->sink = aoth_sink_create(NULL);
}

/* ---- programs ---- */

static int is_broken(const aoth_conform_t *c, const char *class) {
  for (uint32_t i = 0; i < c->n_broken; i++)
    if (strcmp(c->broken[i], class) == 0) return 1;
  return 0;
}

const aoth_conform_program_t *aoth_trial_nth(const aoth_trial_t *t, const char *class, uint32_t number) {
  for (uint32_t i = 0; i < t->c->programs.n; i++) {
    const aoth_conform_program_t *p = &t->c->programs.rows[i];
    const int is_special = strcmp(p->class, "large") == 0 || strcmp(p->class, "joint") == 0;
    if (class ? strcmp(p->class, class) != 0 : is_special) continue;
    if (is_broken(t->c, p->class)) continue;
    if (number-- == 0) return p;
  }
  return NULL;
}

const aoth_conform_program_t *aoth_trial_named(const aoth_trial_t *t, const char *name) {
  for (uint32_t i = 0; i < t->c->programs.n; i++)
    if (strcmp(t->c->programs.rows[i].name, name) == 0) return &t->c->programs.rows[i];
  return NULL;
}

/* By a file without a name: importers take files. */
aot_status_t aoth_trial_text(aoth_trial_t *t, const char *text, size_t size) {
  char path[64];
  const int fd = memfd_create("program.ir", MFD_CLOEXEC);
  for (size_t at = 0; fd >= 0 && at < size;) {
    const ssize_t n = write(fd, text + at, size - at);
    if (n <= 0) break;
    at += (size_t)n;
  }
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const aot_status_t status = fd < 0 ? AOT_E_EXHAUSTED : aoth_session_import(t->s, "ir", NULL, path, NULL);
  if (fd >= 0) close(fd);
  return status;
}

/* What gives a property, in the order in which pipelines have them; rng precedes the derivatives. */
static const struct {
  const char *unit, *kinds;
  uint32_t gives, lacks; /* it runs where something of the former is wanted, on programs that have none of the latter */
} completing[] = {
    {"functionalize", "pass/1",
     AOTH_PROP_FUNCTIONAL | AOTH_PROP_JOINT | AOTH_PROP_RNG_EXPLICIT | AOTH_PROP_PARTITIONED | AOTH_PROP_HOOKED |
         AOTH_PROP_STITCHED,
     AOTH_PROP_FUNCTIONAL},
    {"rng", "pass/1", AOTH_PROP_RNG_EXPLICIT, AOTH_PROP_RNG_EXPLICIT | AOTH_PROP_JOINT | AOTH_PROP_PARTITIONED},
    {"autograd", "pass/1", AOTH_PROP_JOINT | AOTH_PROP_PARTITIONED | AOTH_PROP_HOOKED | AOTH_PROP_STITCHED,
     AOTH_PROP_JOINT | AOTH_PROP_PARTITIONED},
    {"partition-default", "partition/1", AOTH_PROP_PARTITIONED | AOTH_PROP_HOOKED | AOTH_PROP_STITCHED,
     AOTH_PROP_PARTITIONED},
    {"hooks", "pass/1", AOTH_PROP_HOOKED, AOTH_PROP_HOOKED},
    {"sgd", "pass/1", AOTH_PROP_STITCHED, AOTH_PROP_STITCHED},
    {"stitch", "pass/1", AOTH_PROP_STITCHED, AOTH_PROP_STITCHED},
};

/* A backend sees what pipelines hand to it: functional programs with explicit random numbers. */
static uint32_t wanted_properties(const aoth_trial_t *t) {
  const aoth_unit_t *u = t->stage->unit;
  const uint32_t needs = t->wants | (u->has_contract ? u->contract.needs.known : 0);
  return strcmp(u->kind, "backend/2") == 0 ? needs | AOTH_PROP_FUNCTIONAL | AOTH_PROP_RNG_EXPLICIT : needs;
}

static aot_status_t complete(aoth_trial_t *t) {
  const uint32_t wanted = wanted_properties(t);
  aoth_stage_t stage;
  for (size_t i = 0; i < sizeof completing / sizeof *completing; i++) {
    const uint32_t has = aoth_prog_properties(t->s->now.prog).known;
    if (!(completing[i].gives & wanted & ~has) || has & completing[i].lacks) continue;
    AOT_TRY(aoth_stage_of_unit(t->s, completing[i].unit, completing[i].kinds, NULL, &stage));
    AOT_TRY(aoth_session_run_list(t->s, &stage, 1));
  }
  return aoth_contract_check(t->s, t->stage, aoth_prog_properties(t->s->now.prog));
}

/* Of the user's own files, models too. */
static aot_status_t put_program(aoth_trial_t *t, const aoth_conform_program_t *p) {
  size_t size = 0;
  if (p->is_own) return aoth_session_import(t->s, NULL, NULL, p->path, NULL);
  const char *text = aoth_conform_program_text(p, t->c->arena, t->s->config.sink, &size);
  return text ? aoth_trial_text(t, text, size) : AOT_E_NOT_FOUND;
}

int aoth_trial_program(aoth_trial_t *t, const aoth_conform_program_t *p) {
  char why[300];
  if (put_program(t, p) == AOT_OK && complete(t) == AOT_OK) return 1;
  aoth_trial_complaint(t, why, sizeof why);
  aoth_trial_end(t, AOTH_CONFORM_NOT, "the program %s cannot be made for it: %s", p->name, why);
  return 0;
}

uint64_t aoth_trial_spaced(uint32_t number) {
  const uint64_t dense = 24, k = number > dense ? number - dense : 0;
  return number + k * (k + 1);
}

/* ---- devices ---- */

int aoth_trial_own_device(aoth_trial_t *t, aoth_stage_t *out) {
  const aoth_plugin_t *p = t->c->plugin;
  for (uint32_t i = 0; i < p->n_units; i++)
    if (strcmp(p->units[i].kind, "device/1") == 0)
      return aoth_stage_of_unit(t->s, p->units[i].id, "device/1", NULL, out) == AOT_OK;
  return 0;
}

int aoth_trial_device(aoth_trial_t *t, aoth_stage_t *out) {
  if (aoth_trial_own_device(t, out) || aoth_stage_of_unit(t->s, "strict", "device/1", NULL, out) == AOT_OK) return 1;
  aoth_trial_end(t, AOTH_CONFORM_NOT, "the plugin has no device, and there is no device strict");
  return 0;
}

/* ---- judging ---- */

int aoth_trial_judge(aoth_trial_t *t, aot_status_t status) {
  char why[500];
  if (status == AOT_OK) return 1;
  aoth_trial_complaint(t, why, sizeof why);
  const int told = t->s->outcome == AOTH_CALL_TOLD || t->s->outcome == AOTH_CALL_OK;
  const aot_status_t own = t->s->outcome == AOTH_CALL_TOLD ? t->s->status : status;
  aoth_trial_end(t, told && aoth_is_refusal(own) ? AOTH_CONFORM_REFUSED : AOTH_CONFORM_FAILED, "%s", why);
  return 0;
}

/* A backend of a plugin with a device is loaded there: it may run nowhere else. */
static aot_status_t take_own_device(aoth_trial_t *t) {
  aoth_stage_t device;
  const int is_backend = strcmp(t->stage->unit->kind, "backend/2") == 0;
  return is_backend && aoth_trial_own_device(t, &device) ? aoth_session_take_device(t->s, &device) : AOT_OK;
}

int aoth_trial_run(aoth_trial_t *t) {
  t->s->outcome = AOTH_CALL_OK;
  t->s->status = AOT_OK;
  if (!aoth_trial_judge(t, take_own_device(t))) return 0;
  return aoth_trial_judge(t, aoth_session_run_list(t->s, t->stage, 1));
}
