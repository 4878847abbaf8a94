#include <compiler/compile.h>

#include <aot/inline.h>
#include <ir/aliasing.h>
#include <jansson.h>
#include <cache/cache_folder.h>
#include <compiler/cache_store.h>
#include <sandbox/cancel.h>
#include <compiler/devices.h>
#include <process/environment.h>
#include <compiler/programs.h>
#include <compiler/rank_consistency.h>
#include <compiler/run_ranks.h>
#include <sandbox/session.h>
#include <compiler/session_lifetime.h>
#include <string.h>

static const char *kept(aoth_session_t *s, const char *text) {
  return text ? kit_arena_text(s->arena, text, strlen(text)) : NULL;
}

static int has_backend(const aoth_pipeline_t *p) {
  return p->n_stages > 0 && strcmp(p->stages[p->n_stages - 1].unit->kind, "backend/2") == 0;
}

static void bypass(aoth_session_t *s, int reason, const char *detail) {
  s->cache->outcome = AOTH_CACHE_BYPASS;
  s->cache->reason = reason;
  s->cache->detail = kept(s, detail);
}

/* Reasons that are known before anything is read. */
static int bypass_at_once(const aoth_session_t *s, const aoth_pipeline_t *p) {
  const char *off = aoth_env("AOT_CACHE");
  if (s->config.no_cache || (off && strcmp(off, "off") == 0)) return AOTH_BYPASS_OFF;
  if (s->config.n_dump_after || s->config.dump_dir || s->config.bundle_dir) return AOTH_BYPASS_DUMP;
  return has_backend(p) ? AOTH_BYPASS_NONE : AOTH_BYPASS_NO_BACKEND;
}

/* What is compiled: flags and aliasing belong to the key. */
typedef struct request {
  const aoth_pipeline_t *p;
  uint32_t flags;
  const aoth_aliasing_t *aliasing; /* NULL: no input shares memory with another */
} request_t;

static aot_status_t compile_fresh(aoth_session_t *s, const request_t *r, aoth_model_t *model) {
  AOT_TRY(aoth_session_read_model(s, model));
  if (r->aliasing) AOT_TRY(aoth_aliasing_apply(s->now.prog, r->aliasing));
  AOT_TRY(aoth_pipeline_run_stages(s, r->p, r->flags));
  aoth_session_note_program(s);
  return AOT_OK;
}

/* ---- looking up ---- */

static int same_text(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

const char *aoth_cache_changed_variable(const json_t *about) {
  const char *name;
  json_t *value;
  json_object_foreach(json_object_get(about, "environment"), name,
                      value) if (!same_text(json_string_value(value), aoth_env(name))) return name;
  return NULL;
}

/* HIT: the session has the program and its executable; or MISS. A backend that cannot run on the device has said so,
 * and is not queried again: what it compiles does not depend on the device. */
static aot_status_t look_up(aoth_session_t *s, const aoth_pipeline_t *p, const aoth_model_t *model) {
  aoth_cache_outcome_t *c = s->cache;
  aoth_entry_t entry;
  int missing;
  const char *wrong = aoth_entry_open(c->path, &entry, &missing);
  c->outcome = AOTH_CACHE_MISS;
  if (missing) return AOT_OK;
  json_t *about = wrong ? NULL : aoth_entry_about(&entry);
  if (!wrong && !about) wrong = "damaged";
  const char *variable = about ? aoth_cache_changed_variable(about) : NULL;
  if (variable) {
    kit_text_t t = {0};
    kit_text_f(&t, "the environment variable %s has changed", variable);
    c->detail = kept(s, t.data);
    kit_text_deinit(&t);
  } else if (!wrong && !(wrong = aoth_cache_restore(s, p, model, &entry, about))) {
    json_decref(about);
    aoth_cache_touch(c->path);
    c->outcome = AOTH_CACHE_HIT;
    return AOT_OK;
  }
  const aot_status_t refused = wrong && s->status == AOT_E_UNIMPLEMENTED ? s->status : AOT_OK;
  if (wrong && !refused) {
    c->detail = kept(s, wrong);
    aoth_sink_report(s->config.sink, AOT_SEVERITY_NOTE, NULL, "cache.damaged",
                     "the cache entry %s is %s; it is made again", c->path, wrong);
  }
  json_decref(about);
  aoth_entry_close(&entry);
  return refused;
}

static aot_status_t compile_cached(aoth_session_t *s, const request_t *r, aoth_model_t *model, uint64_t begin_ns) {
  aoth_cache_outcome_t *c = s->cache;
  const char *folder = aoth_cache_dir(s->arena, AOTH_ENTRIES_FOLDER);
  AOT_TRY(aoth_cache_key_make(s, r->p, model, r->flags, r->aliasing, &c->key));
  if (!folder) bypass(s, AOTH_BYPASS_FOLDER, NULL);
  else if (c->key.bypass) bypass(s, c->key.bypass, c->key.detail);
  if (c->outcome == AOTH_CACHE_BYPASS) return compile_fresh(s, r, model);
  c->path = aoth_cache_path(s->arena, folder, c->key.hex);
  if (!c->path) return AOT_E_EXHAUSTED;
  AOT_TRY(look_up(s, r->p, model));
  c->ms = (double)(aoth_now_ns() - begin_ns) / 1e6;
  if (c->outcome == AOTH_CACHE_HIT) return AOT_OK;
  AOT_TRY(compile_fresh(s, r, model));
  const int reason = aoth_cache_store(s, r->p, model);
  if (reason) bypass(s, reason, s->cache_why_not);
  return AOT_OK;
}

static aot_status_t compile_request(aoth_session_t *s, const request_t *r) {
  const uint64_t begin = aoth_now_ns();
  aoth_model_t model;
  *s->cache = (aoth_cache_outcome_t){0};
  AOT_TRY(aoth_session_join(s, r->p));         /* stages and kernels ask who there is */
  AOT_TRY(aoth_session_take_devices(s, r->p)); /* one may continue opening while the model is read */
  AOT_TRY(aoth_pipeline_open_model(s, r->p, &model));
  AOT_TRY(aoth_session_note_model(s, r->p, &model));
  const int reason = bypass_at_once(s, r->p);
  if (reason) bypass(s, reason, NULL);
  AOT_TRY(reason ? compile_fresh(s, r, &model) : compile_cached(s, r, &model, begin));
  AOT_TRY(aoth_session_agree(s, r->p));
  if (s->cache->outcome != AOTH_CACHE_HIT && reason != AOTH_BYPASS_OFF) /* new files: the entry's, and those of units */
    aoth_cache_evict(aoth_cache_limit(), s->cache->outcome == AOTH_CACHE_MISS ? s->cache->path : NULL);
  return AOT_OK;
}

static aot_status_t compile(aoth_session_t *s, const request_t *r) {
  const uint32_t errors = aoth_sink_count(s->config.sink, AOT_SEVERITY_ERROR);
  aoth_compiling_begin(s);
  const aot_status_t status = aoth_compiling_end(s, compile_request(s, r));
  return aoth_sink_exhausted(s->config.sink, errors, status, "compile the program");
}

aot_status_t aoth_pipeline_compile(aoth_session_t *s, const aoth_pipeline_t *p, uint32_t flags) {
  const request_t r = {p, flags, NULL};
  return compile(s, &r);
}

aot_status_t aoth_pipeline_specialise(aoth_session_t *s, const aoth_pipeline_t *p, uint32_t flags,
                                      const aoth_aliasing_t *aliasing, uint32_t *out, int *out_cached) {
  const request_t r = {p, flags, aliasing};
  const aoth_cache_outcome_t first = *s->cache;
  const uint32_t n_records = s->n_records, was = s->selected;
  AOT_TRY(aoth_session_add_program(s, out));
  const aot_status_t status = compile(s, &r);
  *out_cached = s->cache->outcome == AOTH_CACHE_HIT;
  *s->cache = first;
  s->n_records = n_records;
  if (status != AOT_OK) {
    aoth_session_drop_program(s);
    aoth_session_select(s, was);
  }
  return status;
}

aot_status_t aoth_pipeline_key(aoth_session_t *s, const aoth_pipeline_t *p, uint32_t flags, aoth_cache_key_t *key) {
  aoth_model_t model;
  memset(key, 0, sizeof *key);
  AOT_TRY(aoth_pipeline_open_model(s, p, &model));
  AOT_TRY(aoth_cache_key_make(s, p, &model, flags, NULL, key));
  if (!has_backend(p)) key->bypass = AOTH_BYPASS_NO_BACKEND;
  return AOT_OK;
}

const aoth_cache_outcome_t *aoth_session_cache(const aoth_session_t *s) { return s->cache; }
