#include <trainer/checkpoint.h>

#include <aot/ext/leaf_part.h>
#include <aot/inline.h>
#include <inttypes.h>
#include <compiler/rank_consistency.h>
#include <trainer/file_line.h>
#include <compiler/run_ranks.h>
#include <stdlib.h>
#include <string.h>
#include <trainer/save_of_ranks.h>
#include <trainer/saved_run.h>
#include <trainer/tensors/step_file.h>

/* ---- saving ---- */

aot_status_t aoth_checkpoint_save(const char *path, const aoth_step_t *s, const aoth_checkpoint_ranks_t *ranks,
                                  const aoth_checkpoint_t *at, aoth_sink_t *sink) {
  char step[24], seed[24], offset[24], random[65];
  snprintf(step, sizeof step, "%" PRId64, at->step);
  snprintf(seed, sizeof seed, "%" PRId64, at->seed);
  snprintf(offset, sizeof offset, "%" PRId64, at->offset);
  aoth_random_print(&at->random, random);
  const aoth_st_meta_t meta[] = {{"format", ranks->n > 1 ? AOTH_SAVED_FORMAT_OF_RANKS : AOTH_SAVED_FORMAT},
                                 {"step", step},
                                 {"seed", seed},
                                 {"offset", offset},
                                 {"random", random},
                                 {"optimizer", at->optimizer ? at->optimizer : ""}};
  const uint32_t n_meta = sizeof meta / sizeof meta[0];
  if (ranks->n > 1) return aoth_save_of_ranks(path, s, ranks, at->step, meta, n_meta, sink);
  return aoth_step_save(s, AOTH_KEYS_LEAVES, path, AOTH_ST_DIGESTS, meta, n_meta, sink);
}

/* ---- loading ---- */

typedef struct loader {
  aoth_saved_t saved;
  const aoth_checkpoint_ranks_t *ranks;
  aoth_step_t *step;
  const char *path;
  aoth_sink_t *sink;
} loader_t;

#define fail(l, ...) aoth_saved_fail((l)->path, (l)->sink, __VA_ARGS__)

static uint32_t n_parts(const loader_t *l) { return l->ranks->n > 1 ? aoth_session_n_parts(l->ranks->session) : 1; }

/* The whole of what this rank has a part of. */
static aoth_tensor_t whole_of(const loader_t *l, const char *key, const aoth_tensor_t *t) {
  const uint32_t flags = aoth_step_leaf_flags(l->step, key);
  aoth_tensor_t whole = *t;
  if (!(flags & AOT_LEAF_PART) || !t->rank) return whole;
  whole.sizes[0] = aoth_rows_of_parts(t->sizes[0], n_parts(l), flags);
  return whole;
}

static aot_status_t check_leaf(void *self, const char *key, const aoth_tensor_t *t) {
  loader_t *l = self;
  const aoth_tensor_t own = whole_of(l, key, t);
  aoth_saved_leaf_t saved;
  const aot_status_t status = aoth_saved_find(&l->saved, key, &saved);
  if (status == AOT_E_NOT_FOUND)
    return fail(l, "the checkpoint lacks \"%s\", which the program has; was it made with another model or optimizer?",
                key);
  AOT_TRY(status);
  if (saved.is_own && l->saved.n_parts != l->ranks->n)
    return fail(l, "each of %u ranks has a \"%s\" of its own, which %u ranks cannot go on with", l->saved.n_parts, key,
                l->ranks->n);
  if (saved.tensor.dtype == own.dtype && aoth_tensor_same_sizes(&saved.tensor, &own)) return AOT_OK;
  kit_text_t wanted = {0}, given = {0};
  aoth_tensor_print_shape(&own, &wanted);
  aoth_tensor_print_shape(&saved.tensor, &given);
  fail(l, "\"%s\" is %s in the checkpoint, but %s in the program", key, given.data ? given.data : "?",
       wanted.data ? wanted.data : "?");
  kit_text_deinit(&wanted);
  kit_text_deinit(&given);
  return AOT_E_INVALID;
}

static aot_status_t read_number(const loader_t *l, const char *key, int64_t *out) {
  const char *text = aoth_st_meta(l->saved.index, key);
  char *end = NULL;
  if (!text) return fail(l, "the checkpoint does not say \"%s\"", key);
  *out = strtoll(text, &end, 10);
  return *text && !*end ? AOT_OK : fail(l, "\"%s\" is \"%.40s\", not a number", key, text);
}

static aot_status_t read_meta(const loader_t *l, aoth_checkpoint_t *at) {
  const aoth_st_t *file = l->saved.index;
  const char *format = aoth_st_meta(file, "format"), *random = aoth_st_meta(file, "random");
  const char *optimizer = aoth_st_meta(file, "optimizer");
  if (!l->saved.n_parts && (!format || strcmp(format, AOTH_SAVED_FORMAT) != 0))
    return fail(l, "this is no checkpoint of aothost (its metadata lacks format: " AOTH_SAVED_FORMAT ")");
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

static aot_status_t check_key(void *self, const char *key) {
  const loader_t *l = self;
  aoth_tensor_t unused;
  if (aoth_step_get(l->step, key, &unused)) return AOT_OK;
  return fail(l, "the program has no \"%s\"; was the checkpoint made with another model?", key);
}

/* Which rows of the saved whole are this rank's; 0: it is not saved by rows, and this rank has no rows of it. */
static int find_rows(const loader_t *l, const char *key, const aoth_saved_leaf_t *saved, int64_t *first, int64_t *n) {
  aoth_tensor_t own;
  const int is_part = (aoth_step_leaf_flags(l->step, key) & AOT_LEAF_PART) != 0;
  if (!saved->is_parts && !is_part) return 0;
  if (!aoth_step_get(l->step, key, &own) || !own.rank) return 0;
  *n = own.sizes[0];
  *first = is_part ? *n * (l->ranks->rank % n_parts(l)) : 0;
  return 1;
}

static aot_status_t check_contents(void *self, const char *key) {
  const loader_t *l = self;
  aoth_saved_leaf_t saved;
  int64_t first = 0, n = 1;
  AOT_TRY(aoth_saved_find(&l->saved, key, &saved));
  if (saved.is_own) return aoth_saved_check_own(&l->saved, key, l->ranks->rank);
  find_rows(l, key, &saved, &first, &n);
  return aoth_saved_check_rows(&l->saved, key, first, n);
}

static aot_status_t set_rows(const loader_t *l, const char *key, int64_t first, int64_t n) {
  aoth_tensor_t own;
  if (!aoth_step_get(l->step, key, &own)) return AOT_E_INVALID;
  const uint64_t nbytes = (uint64_t)aoth_tensor_numel(&own) * aot_dtype_size(own.dtype);
  own.data = malloc((size_t)nbytes + 1);
  aoth_tensor_contiguous(&own);
  if (!own.data) return fail(l, "no memory for \"%s\"", key);
  aoth_saved_rows(&l->saved, key, first, n, own.data);
  const aot_status_t status = aoth_step_set(l->step, key, &own);
  free(own.data);
  return status;
}

static aot_status_t set_leaf(void *self, const char *key) {
  const loader_t *l = self;
  aoth_saved_leaf_t saved;
  int64_t first, n;
  AOT_TRY(aoth_saved_find(&l->saved, key, &saved));
  if (find_rows(l, key, &saved, &first, &n)) return set_rows(l, key, first, n);
  if (saved.is_own) saved.tensor = aoth_st_find(l->saved.part[l->ranks->rank], key)->tensor;
  return aoth_step_set(l->step, key, &saved.tensor);
}

/* Damage cannot be found in it, so it is used as it is. */
static void note_no_digests(const loader_t *l) {
  const aoth_where_t where = {.file = l->path};
  if (!l->saved.has_digests)
    aoth_sink_report(l->sink, AOT_SEVERITY_NOTE, &where, "checkpoint.no-digests",
                     "an earlier version wrote this checkpoint, without digests: damage to it is not detected");
}

/* Everything is checked before anything is changed. */
static aot_status_t load(loader_t *l, aoth_checkpoint_t *at) {
  aoth_checkpoint_t read = *at;
  AOT_TRY(read_meta(l, &read));
  AOT_TRY(aoth_step_keys(l->step, AOTH_KEYS_LEAVES, check_leaf, l));
  AOT_TRY(aoth_saved_keys(&l->saved, check_key, l));
  AOT_TRY(aoth_saved_keys(&l->saved, check_contents, l));
  note_no_digests(l);
  AOT_TRY(aoth_saved_keys(&l->saved, set_leaf, l));
  *at = read;
  return AOT_OK;
}

aot_status_t aoth_checkpoint_load(const char *path, aoth_step_t *s, const aoth_checkpoint_ranks_t *ranks,
                                  aoth_checkpoint_t *at, aoth_sink_t *sink) {
  loader_t l = {.ranks = ranks, .step = s, .path = path, .sink = sink};
  AOT_TRY(aoth_saved_open(path, sink, &l.saved));
  const aot_status_t status = load(&l, at);
  aoth_saved_close(&l.saved);
  return status;
}

aot_status_t aoth_checkpoint_say(const char *path, kit_text_t *out, aoth_sink_t *sink) {
  char file[4096];
  aoth_saved_file(path, file, sizeof file);
  return aoth_said_file(out, file, sink);
}
