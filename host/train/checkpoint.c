#include <train/checkpoint.h>

#include <aot/inline.h>
#include <inttypes.h>
#include <step/safetensors.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "aothost-checkpoint/1"

/* ---- saving ---- */

aot_status_t aoth_checkpoint_save(const char *path, const aoth_step_t *s, const aoth_checkpoint_t *at,
                                  aoth_sink_t *sink) {
  char step[24], seed[24], offset[24], random[65];
  snprintf(step, sizeof step, "%" PRId64, at->step);
  snprintf(seed, sizeof seed, "%" PRId64, at->seed);
  snprintf(offset, sizeof offset, "%" PRId64, at->offset);
  aoth_random_print(&at->random, random);
  const aoth_st_meta_t meta[] = {{"format", FORMAT}, {"step", step},
                                 {"seed", seed},     {"offset", offset},
                                 {"random", random}, {"optimizer", at->optimizer ? at->optimizer : ""}};
  return aoth_step_save(s, AOTH_KEYS_LEAVES, path, meta, sizeof meta / sizeof meta[0], sink);
}

/* ---- loading ---- */

typedef struct loading {
  const aoth_st_t *file;
  const char *path;
  aoth_sink_t *sink;
  uint32_t n_matched;
} loading_t;

static aot_status_t fail(const loading_t *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
static aot_status_t fail(const loading_t *l, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  aoth_where_t where = {.file = l->path};
  aoth_sink_report(l->sink, AOT_SEVERITY_ERROR, &where, "checkpoint.mismatch", "%s", text);
  return AOT_E_INVALID;
}

static aot_status_t check_leaf(void *self, const char *key, const aoth_tensor_t *t) {
  loading_t *l = self;
  const aoth_st_entry_t *e = aoth_st_find(l->file, key);
  if (!e)
    return fail(l, "the checkpoint lacks \"%s\", which the program has; was it made with another model or optimizer?",
                key);
  if (e->tensor.dtype == t->dtype && aoth_tensor_same_sizes(&e->tensor, t)) {
    l->n_matched++;
    return AOT_OK;
  }
  aoth_text_t wanted = {0}, given = {0};
  aoth_tensor_print_shape(t, &wanted);
  aoth_tensor_print_shape(&e->tensor, &given);
  fail(l, "\"%s\" is %s in the checkpoint, but %s in the program", key, given.data ? given.data : "?",
       wanted.data ? wanted.data : "?");
  aoth_text_deinit(&wanted);
  aoth_text_deinit(&given);
  return AOT_E_INVALID;
}

static aot_status_t read_number(const loading_t *l, const char *key, int64_t *out) {
  const char *text = aoth_st_meta(l->file, key);
  char *end = NULL;
  if (!text) return fail(l, "the checkpoint does not say \"%s\"", key);
  *out = strtoll(text, &end, 10);
  return *text && !*end ? AOT_OK : fail(l, "\"%s\" is \"%.40s\", not a number", key, text);
}

static aot_status_t read_meta(const loading_t *l, aoth_checkpoint_t *at) {
  const char *format = aoth_st_meta(l->file, "format"), *random = aoth_st_meta(l->file, "random");
  const char *optimizer = aoth_st_meta(l->file, "optimizer");
  if (!format || strcmp(format, FORMAT) != 0)
    return fail(l, "this is no checkpoint of aothost (its metadata lacks format: " FORMAT ")");
  if (at->optimizer && (!optimizer || strcmp(optimizer, at->optimizer) != 0))
    return fail(l, "the checkpoint was made with optimizer %.60s, the run uses %s", optimizer ? optimizer : "(none)",
                at->optimizer);
  AOT_TRY(read_number(l, "step", &at->step));
  AOT_TRY(read_number(l, "seed", &at->seed));
  AOT_TRY(read_number(l, "offset", &at->offset));
  if (at->step < 0) return fail(l, "\"step\" is %lld", (long long)at->step);
  if (!random || !aoth_random_parse(random, &at->random))
    return fail(l, "\"random\" is no state of the random numbers");
  return AOT_OK;
}

/* Everything is checked before anything is changed. */
static aot_status_t load(loading_t *l, aoth_step_t *s, aoth_checkpoint_t *at) {
  aoth_checkpoint_t read = *at;
  AOT_TRY(read_meta(l, &read));
  AOT_TRY(aoth_step_keys(s, AOTH_KEYS_LEAVES, check_leaf, l));
  const aoth_st_entry_t *e = aoth_st_entries(l->file);
  for (uint32_t i = 0; l->n_matched < aoth_st_count(l->file) && i < aoth_st_count(l->file); i++) {
    aoth_tensor_t unused;
    if (!aoth_step_get(s, e[i].name, &unused))
      return fail(l, "the program has no \"%s\"; was the checkpoint made with another model?", e[i].name);
  }
  for (uint32_t i = 0; i < aoth_st_count(l->file); i++) AOT_TRY(aoth_step_set(s, e[i].name, &e[i].tensor));
  *at = read;
  return AOT_OK;
}

aot_status_t aoth_checkpoint_load(const char *path, aoth_step_t *s, aoth_checkpoint_t *at, aoth_sink_t *sink) {
  aoth_st_t *file;
  AOT_TRY(aoth_st_open(path, sink, &file));
  loading_t l = {.file = file, .path = path, .sink = sink};
  aot_status_t status = load(&l, s, at);
  aoth_st_close(file);
  return status;
}
