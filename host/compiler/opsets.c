/* Which opsets a session opens: those that are needed, reported from their notes and from names in the model, so that
 * the code of the others is never run.
 *
 * Namespaces are needed that the model has, that the texts of `operators:` have, and that an opened opset claims:
 * others may bring kernels for them. An opset that says what it claims is held to it: where it is needed and fails, so
 * does the pipeline. One that says nothing is tried where its operators may be meant, after those that claim theirs,
 * and left out with a warning. Passes over the few opsets there are. */
#include <compiler/opsets.h>

#include <aot/inline.h>
#include <errno.h>
#include <sandbox/call.h>
#include <process/crash.h>
#include <config/pipeline.h>
#include <plugin/load.h>
#include <compiler/operators_of_model.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ALWAYS "*"  /* among an opset's claims */
#define SURVIVED 77 /* status of a child that an opset did not end */

/* ---- one opset ---- */

static int is_open(const aoth_session_t *s, const aoth_unit_t *unit) {
  for (uint32_t i = 0; i < s->n_opsets; i++)
    if (s->opsets[i].unit == unit) return 1;
  return 0;
}

typedef struct addition {
  aoth_session_t *s;
  const aoth_instance_t *opset;
} addition_t;

static aot_str_t namespace_of(aot_str_t op) {
  uint64_t n = 0;
  while (n < op.size && op.data[n] != '.' && op.data[n] != ':') n++;
  return (aot_str_t){op.data, n};
}

static int claims(const aoth_unit_t *unit, aot_str_t name) {
  const char *s = unit->claims;
  for (size_t n; s && *s; s += n + (s[n] == ' ')) {
    n = strcspn(s, " ");
    if (aot_str_eq((aot_str_t){s, n}, name)) return 1;
  }
  return 0;
}

/* What it brings beyond its claims would be there or not by accident. */
static aot_status_t check_claims(const addition_t *a) {
  const aot_opset_t *table = &a->opset->table.opset;
  const aoth_unit_t *unit = a->opset->unit;
  for (uint64_t i = 0; unit->claims && i < table->n_ops; i++) {
    const aot_str_t op = table->ops[i]->name;
    if (claims(unit, namespace_of(op))) continue;
    aoth_sink_report(a->s->config.sink, AOT_SEVERITY_ERROR, NULL, "ops.claims",
                     "opset %s declares operator %.*s, but its note does not claim that namespace", unit->id,
                     (int)op.size, op.data);
    return AOTH_E_PLUGIN;
  }
  return AOT_OK;
}

static aot_status_t do_add(void *arg) {
  const addition_t *a = arg;
  const uint32_t errors = aoth_sink_count(a->s->config.sink, AOT_SEVERITY_ERROR);
  aot_status_t status = check_claims(a);
  if (status == AOT_OK) status = aoth_ops_add(a->s->ops, a->opset->self, a->opset->unit->id, a->s->config.sink);
  a->s->ctx.n_diags += aoth_sink_count(a->s->config.sink, AOT_SEVERITY_ERROR) - errors;
  return status;
}

aot_status_t aoth_session_open_opset(aoth_session_t *s, const char *id, const aoth_where_t *where) {
  aoth_stage_t stage;
  AOT_TRY(aoth_stage_of_unit(s, id, "opset/1", where, &stage));
  if (is_open(s, stage.unit)) return AOT_OK;
  aoth_instance_t *rows = aoth_session_room(s, s->opsets, s->n_opsets, &s->opset_capacity, sizeof *rows);
  if (!rows) return AOT_E_EXHAUSTED;
  s->opsets = rows;
  AOT_TRY(aoth_instance_create(s, &stage, &rows[s->n_opsets]));
  addition_t a = {s, &rows[s->n_opsets]};
  if (aoth_call(s, &stage, "operators", do_add, &a) != AOT_OK) {
    const aot_status_t status = aoth_session_fail(s, &stage);
    aoth_instance_destroy(s, &stage, &rows[s->n_opsets]);
    return status;
  }
  s->n_opsets++;
  return AOT_OK;
}

/* Once: what was left out stays out, unless it is requested by its id. */
static aot_status_t try_opset(aoth_session_t *s, aoth_unit_t *u) {
  if (u->is_left_out) return AOT_OK;
  if (aoth_plugin_open(s->registry, u->plugin, s->arena, NULL, NULL) != AOT_OK) {
    aoth_sink_report(s->config.sink, AOT_SEVERITY_WARNING, NULL, "load.refused",
                     "skipping opset %s: cannot load %s: %s", u->id, u->plugin->path,
                     u->plugin->why ? u->plugin->why : "");
    u->is_left_out = 1;
    return AOT_OK;
  }
  const aot_status_t status = aoth_session_open_opset(s, u->id, NULL);
  if (status == AOT_OK || status == AOT_E_EXHAUSTED) return status;
  u->is_left_out = 1;
  aoth_sink_report(s->config.sink, AOT_SEVERITY_WARNING, NULL, "load.refused",
                   "skipping opset %s of %s: it could not be opened", u->id, u->plugin->path);
  return AOT_OK;
}

/* ---- all of them ---- */

/* The next unit of kind opset/1 that counts: those that claim in the order of the search path, then the others.
 * NULL: no more. */
typedef struct opset_walk {
  uint32_t plugin, unit;
  int is_silent;
} opset_walk_t;

static aoth_unit_t *next_opset(aoth_session_t *s, opset_walk_t *w) {
  for (; w->is_silent < 2; w->is_silent++, w->plugin = 0)
    for (; w->plugin < aoth_registry_n_plugins(s->registry); w->plugin++, w->unit = 0) {
      aoth_plugin_t *p = aoth_registry_plugin(s->registry, w->plugin);
      while (w->unit < p->n_units) {
        aoth_unit_t *u = &p->units[w->unit++];
        if (!u->shadowed_by && (u->claims == NULL) == w->is_silent && strcmp(u->kind, "opset/1") == 0) return u;
      }
    }
  return NULL;
}

/* In a child: opens u as the parent will. It says nothing, since the parent will; but a crash, which is contained,
 * reports itself. */
static _Noreturn void be_trial(aoth_session_t *s, aoth_unit_t *u) {
  s->config.sink = s->ctx.sink = aoth_sink_create(NULL);
  s->config.bundle_dir = NULL;
  if (s->config.sink && aoth_contain_after_fork()) try_opset(s, u);
  _exit(SURVIVED);
}

/* An opset that ends the process ends a child's first, so that a list of what there is continues without it. */
static void leave_out_deadly(aoth_session_t *s, aoth_unit_t *u) {
  int status = 0;
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) be_trial(s, u);
  if (child < 0) return; /* no process to be had: without a trial */
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (WIFEXITED(status) && WEXITSTATUS(status) == SURVIVED) return;
  u->is_left_out = 1;
  aoth_sink_report(s->config.sink, AOT_SEVERITY_WARNING, NULL, "load.refused",
                   "skipping opset %s of %s: its probe process ended unexpectedly%s%s", u->id, u->plugin->path,
                   WIFSIGNALED(status) ? " by " : "", WIFSIGNALED(status) ? aoth_signal_name(WTERMSIG(status)) : "");
}

aot_status_t aoth_session_open_every_opset(aoth_session_t *s) {
  opset_walk_t walk = {0};
  for (aoth_unit_t *u; (u = next_opset(s, &walk));) {
    if (!u->is_left_out && !is_open(s, u)) leave_out_deadly(s, u);
    AOT_TRY(try_opset(s, u));
  }
  return AOT_OK;
}

/* ---- those that are needed ---- */

typedef struct needs {
  aoth_session_t *s;
  aot_str_t *names; /* n, each once; session memory */
  uint32_t n, capacity;
  int is_unknown; /* the importer cannot determine */
} needs_t;

static aot_status_t put_name(void *self, aot_str_t name) {
  needs_t *needs = self;
  aoth_session_t *s = needs->s;
  for (uint32_t i = 0; i < needs->n; i++)
    if (aot_str_eq(needs->names[i], name)) return AOT_OK;
  aot_str_t *names = aoth_session_room(s, needs->names, needs->n, &needs->capacity, sizeof *names);
  const char *text = names ? kit_arena_text(s->arena, name.data, (size_t)name.size) : NULL;
  if (!text) return AOT_E_EXHAUSTED;
  needs->names = names;
  names[needs->n++] = (aot_str_t){text, name.size};
  return AOT_OK;
}

static aot_status_t AOT_CALL put_told(const aot_schema_sink_t *sink, aot_str_t name) {
  return put_name(sink->head.self, name);
}

static aot_status_t names_of_model(needs_t *needs, const aoth_model_t *model) {
  const aot_schema_sink_t sink = {.head = {.struct_size = sizeof sink, .self = needs}, .put = put_told};
  int is_told;
  if (!model->stage.unit) return aoth_text_namespaces(model->file.data, (size_t)model->file.nbytes, put_name, needs);
  AOT_TRY(aoth_model_namespaces(needs->s, model, &sink, &is_told));
  needs->is_unknown = !is_told;
  return AOT_OK;
}

static int is_claimed(aoth_session_t *s, aot_str_t name) {
  opset_walk_t walk = {0};
  for (const aoth_unit_t *u; (u = next_opset(s, &walk));)
    if (claims(u, name)) return 1;
  return 0;
}

/* A plugin with a stage in use is open: its stages make the operators of its opsets. */
static int is_needed(const needs_t *needs, const aoth_unit_t *u) {
  if (u->claims && !*u->claims) return 0;
  if (needs->is_unknown || u->plugin->state == AOTH_PLUGIN_OPEN || claims(u, aot_str(ALWAYS))) return 1;
  for (uint32_t i = 0; i < needs->n; i++)
    if (u->claims ? claims(u, needs->names[i]) : !is_claimed(needs->s, needs->names[i])) return 1;
  return 0;
}

static aot_status_t put_claims(needs_t *needs, const aoth_unit_t *u) {
  size_t n;
  for (const char *s = u->claims ? u->claims : ""; *s; s += n + (s[n] == ' ')) {
    n = strcspn(s, " ");
    AOT_TRY(put_name(needs, (aot_str_t){s, n}));
  }
  return AOT_OK;
}

aot_status_t aoth_session_open_needed(aoth_session_t *s, const aoth_model_t *model, const aoth_yaml_t *const *texts,
                                      uint32_t n_texts) {
  needs_t needs = {.s = s};
  uint32_t n_before;
  AOT_TRY(names_of_model(&needs, model));
  for (uint32_t i = 0; i < n_texts; i++) AOT_TRY(put_name(&needs, namespace_of(texts[i]->text)));
  do {
    opset_walk_t walk = {0};
    n_before = needs.n;
    /* the silent ones at last */
    for (aoth_unit_t *u; (u = next_opset(s, &walk)) && (u->claims || needs.n == n_before);) {
      if (is_open(s, u) || !is_needed(&needs, u)) continue;
      AOT_TRY(put_claims(&needs, u));
      AOT_TRY(u->claims && !needs.is_unknown ? aoth_session_open_opset(s, u->id, model->where) : try_opset(s, u));
    }
  } while (needs.n > n_before);
  return AOT_OK;
}
