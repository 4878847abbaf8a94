#include <compiler/cache_key.h>

#include <aot/ext/cache.h>
#include <ir/aliasing.h>
#include <sandbox/call.h>
#include <process/environment.h>
#include <sandbox/extension.h>
#include <compiler/run_ranks.h>
#include <sandbox/session.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

static const char *const words[] = {
#define BYPASS_WORD(constant, word, sentence) word,
    AOTH_BYPASS_MAP(BYPASS_WORD)
#undef BYPASS_WORD
};
static const char *const sentences[] = {
#define BYPASS_SENTENCE(constant, word, sentence) sentence,
    AOTH_BYPASS_MAP(BYPASS_SENTENCE)
#undef BYPASS_SENTENCE
};
const char *aoth_bypass_word(int reason) { return words[reason]; }
const char *aoth_bypass_sentence(int reason) { return sentences[reason]; }

typedef struct builder {
  aoth_session_t *s;
  aoth_cache_key_t *key;
  int failed; /* no memory */
} builder_t;

static void put(builder_t *m, const char *value, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void put(builder_t *m, const char *value, const char *format, ...) {
  aoth_cache_key_t *k = m->key;
  kit_text_t label = {0};
  aoth_key_row_t *rows = aoth_session_room(m->s, k->rows, k->n_rows, &k->capacity, sizeof *rows);
  va_list args;
  va_start(args, format);
  kit_text_v(&label, format, args);
  va_end(args);
  if (rows) {
    k->rows = rows;
    rows[k->n_rows].label = kit_arena_text(m->s->arena, label.data ? label.data : "", label.size);
    rows[k->n_rows].value = kit_arena_text(m->s->arena, value, strlen(value));
    m->failed |= !rows[k->n_rows].label || !rows[k->n_rows].value;
    k->n_rows++;
  }
  m->failed |= !rows || label.failed;
  kit_text_deinit(&label);
}

static void bypass(builder_t *m, int reason, const char *detail) {
  if (m->key->bypass) return;
  m->key->bypass = reason;
  m->key->detail = detail ? kit_arena_text(m->s->arena, detail, strlen(detail)) : NULL;
}

/* ---- hashes ---- */

static void digest_text(XXH128_hash_t h, char out[AOTH_KEY_CHARS + 1]) {
  snprintf(out, AOTH_KEY_CHARS + 1, "%016llx%016llx", (unsigned long long)h.high64, (unsigned long long)h.low64);
}

/* One that cannot be read is a bypass, not an error. */
static int hash_file(builder_t *m, const char *path, char out[AOTH_KEY_CHARS + 1]) {
  aoth_map_t map;
  const int ok = aoth_file_map(path, NULL, &map) == AOT_OK;
  if (ok) {
    digest_text(XXH3_128bits(map.data, (size_t)map.nbytes), out);
    aoth_file_unmap(&map);
  } else {
    bypass(m, AOTH_BYPASS_FILE, path);
  }
  return ok;
}

/* A program or library by its build id, or else by its bytes. */
static void put_host_file(builder_t *m, const char *path) {
  char hex[AOTH_KEY_CHARS + 1];
  aoth_map_t map;
  const char *id = NULL;
  if (aoth_file_map(path, NULL, &map) == AOT_OK) {
    id = aoth_build_id(map.data, map.nbytes, m->s->arena);
    aoth_file_unmap(&map);
  }
  if (id) put(m, id, "host file");
  else if (hash_file(m, path, hex)) put(m, hex, "host file");
}

static void put_plugin(builder_t *m, const aoth_plugin_t *p) {
  for (uint32_t i = 0; i < m->key->n_rows; i++) { /* once a file; rows are few */
    const char *label = m->key->rows[i].label;
    if (strncmp(label, "plugin ", 7) == 0 && strcmp(label + 7, p->note.id) == 0) return;
  }
  char hex[AOTH_KEY_CHARS + 1];
  if (p->note.build_id) put(m, p->note.build_id, "plugin %s", p->note.id);
  else if (hash_file(m, p->path, hex)) put(m, hex, "plugin %s", p->note.id);
}

/* ---- a unit and its options ---- */

static void put_option(builder_t *m, const char *stage, const aot_option_t *o, const aot_opt_value_t *v) {
  kit_text_t value = {0};
  switch (o->kind) {
    case AOT_OPT_BOOL:
    case AOT_OPT_I64:
    case AOT_OPT_BYTES: kit_text_i64(&value, v->i); break;
    case AOT_OPT_F64: kit_text_double(&value, v->f); break;
    default: kit_text_str(&value, v->s);
  }
  put(m, value.data ? value.data : "", "%s: %.*s", stage, (int)o->name.size, o->name.data);
  struct stat st;
  if (o->kind == AOT_OPT_PATH && value.size && stat(value.data, &st) == 0) { /* what it says counts, too */
    char hex[AOTH_KEY_CHARS + 1];
    if (hash_file(m, value.data, hex)) put(m, hex, "%s: contents of %.*s", stage, (int)o->name.size, o->name.data);
  }
  kit_text_deinit(&value);
}

static void put_stage(builder_t *m, const aoth_stage_t *stage, const char *what) {
  kit_text_t label = {0};
  kit_text_f(&label, "%s %s", what, stage->use);
  put(m, stage->unit->version, "%s", label.data ? label.data : "");
  for (uint32_t i = 0; i < stage->opts.n_values && i < stage->unit->desc.n_options; i++)
    if (stage->unit->options[i].flags & AOT_OPT_AFFECTS_OUTPUT)
      put_option(m, label.data ? label.data : "", &stage->unit->options[i], &stage->opts.values[i]);
  put_plugin(m, stage->unit->plugin);
  kit_text_deinit(&label);
}

/* ---- the host ---- */

static void put_host(builder_t *m) {
  struct utsname machine;
  put(m, AOT_VERSION, "host version");
  const char *own = aoth_own_file(m->s->arena);
  put_host_file(m, own ? own : "/proc/self/exe");
  if (uname(&machine) == 0) put(m, machine.machine, "machine");
}

/* ---- the model ---- */

typedef struct hasher {
  aoth_session_t *s;
  const aoth_instance_t *unit;
  const aot_ext_cache_t *ext;
  const aot_file_t *file;
  XXH3_state_t *state;
  int ok;
} hasher_t;

static aot_status_t add_bytes(const aot_bytes_sink_t *sink, const void *data, uint64_t nbytes) {
  XXH3_128bits_update(((hasher_t *)sink->head.self)->state, data, (size_t)nbytes);
  return AOT_OK;
}

/* Declining is no failure: the host then reads the file. */
static aot_status_t ask_importer(void *arg) {
  hasher_t *k = arg;
  const aot_bytes_sink_t sink = {.head = {.struct_size = sizeof sink, .self = k}, .write = add_bytes};
  k->ok = k->ext->model_key(k->ext, &k->s->ctx, k->file, &sink) == AOT_OK;
  return AOT_OK;
}

/* 1: the importer gave the key. */
static int importer_key(aoth_session_t *s, const aoth_model_t *model, char hex[AOTH_KEY_CHARS + 1]) {
  aoth_instance_t unit;
  aot_ext_cache_t ext;
  int ok = 0;
  if (!model->stage.unit || aoth_instance_create(s, &model->stage, &unit) != AOT_OK) return 0;
  if (aoth_instance_extension(&unit, AOT_EXT_CACHE, &ext, sizeof ext) == AOT_OK && ext.model_key) {
    hasher_t k = {s, &unit, &ext, &model->file, XXH3_createState(), 0};
    if (k.state && XXH3_128bits_reset(k.state) == XXH_OK)
      ok = aoth_call(s, &model->stage, "model_key", ask_importer, &k) == AOT_OK && k.ok;
    if (ok) digest_text(XXH3_128bits_digest(k.state), hex);
    XXH3_freeState(k.state);
  }
  aoth_instance_destroy(s, &model->stage, &unit);
  return ok;
}

void aoth_cache_model_key(aoth_session_t *s, const aoth_model_t *model, char hex[AOTH_KEY_CHARS + 1]) {
  if (!importer_key(s, model, hex)) digest_text(XXH3_128bits(model->file.data, (size_t)model->file.nbytes), hex);
}

static void put_model(builder_t *m, const aoth_model_t *model) {
  char hex[AOTH_KEY_CHARS + 1];
  put(m, model->stage.use, "importer");
  digest_text(XXH3_128bits(model->file.data, (size_t)model->file.nbytes), hex); /* checksums in it vouch for nothing */
  put(m, hex, "model");
  if (model->stage.unit) put_stage(m, &model->stage, "importer");
}

/* ---- stages ---- */

static void put_stages(builder_t *m, const aoth_pipeline_t *p, uint32_t flags) {
  const aoth_stage_t *optimizer = &p->run.train.optimizer;
  char what[32];
  for (uint32_t i = 0; i < p->n_stages; i++) {
    snprintf(what, sizeof what, "stage %u", i + 1u);
    put_stage(m, &p->stages[i], what);
  }
  if (p->assign.unit) put_stage(m, &p->assign, "several-backends");
  for (uint32_t i = 0; p->assign.unit && i < p->n_stages; i++) /* parts go by the names of their backends */
    put(m, p->stages[i].name, "stage %u name", i + 1u);
  if ((flags & AOTH_STAGES_OPTIMIZER) && optimizer->unit) put_stage(m, optimizer, "optimizer");
  if ((flags & AOTH_STAGES_OPTIMIZER) && p->run.train.autocast.unit) put_stage(m, &p->run.train.autocast, "precision");
  if ((flags & AOTH_STAGES_STITCH) && p->run.train.stitch.unit) put_stage(m, &p->run.train.stitch, "step");
  for (uint32_t i = 0; i < p->n_operators; i++) put(m, p->operators[i]->text.data, "operator %u", i + 1u);
  for (uint32_t i = 0; i < m->s->n_opsets; i++) {
    put(m, m->s->opsets[i].unit->version, "operators %s", m->s->opsets[i].unit->id);
    put_plugin(m, m->s->opsets[i].unit->plugin);
  }
}

/* Each has its part of the parameters, and draws of its own; what a backend leaves to the communicator hangs on
 * that. */
static void put_ranks(builder_t *m) {
  char text[160];
  if (aoth_session_n_ranks(m->s) == 1) return;
  snprintf(text, sizeof text, "%u of %u by %.100s", aoth_session_rank(m->s), aoth_session_n_ranks(m->s),
           m->s->ranks.unit.unit->id);
  put(m, text, "rank");
}

static void put_aliasing(builder_t *m, const aoth_aliasing_t *a) {
  kit_text_t text = {0};
  aoth_aliasing_print(a, &text);
  put(m, text.data ? text.data : "", "inputs");
  m->failed |= text.failed;
  kit_text_deinit(&text);
}

static void hash_rows(aoth_cache_key_t *key) {
  kit_text_t all = {0};
  for (uint32_t i = 0; i < key->n_rows; i++) {
    kit_text_add(&all, key->rows[i].label, strlen(key->rows[i].label) + 1);
    kit_text_add(&all, key->rows[i].value, strlen(key->rows[i].value) + 1);
  }
  digest_text(XXH3_128bits(all.data ? all.data : "", all.size), key->hex);
  kit_text_deinit(&all);
}

aot_status_t aoth_cache_key_make(aoth_session_t *s, const aoth_pipeline_t *p, const aoth_model_t *model, uint32_t flags,
                                 const aoth_aliasing_t *aliasing, aoth_cache_key_t *key) {
  builder_t m = {.s = s, .key = key};
  put_host(&m);
  put_model(&m, model);
  put_stages(&m, p, flags);
  put_ranks(&m);
  if (aliasing) put_aliasing(&m, aliasing);
  if (m.failed) return AOT_E_EXHAUSTED;
  hash_rows(key);
  return AOT_OK;
}
