#include <trainer/trial/trial_step.h>

#include <aot/inline.h>
#include <ir/tables.h>
#include <stdlib.h>
#include <string.h>
#include "kit/base/splitmix.h"
#include <trainer/feed.h>
#include <trainer/tensors/step_file.h>

#define TANGENT_SEED KIT_GOLDEN /* other numbers than those of the inputs */
#define UPDATE_RATE 0.01

aot_status_t aoth_trial_step_init(aoth_trial_step_t *v, aoth_step_t *step, aot_prog_t *prog, const aoth_run_spec_t *run,
                                  const int64_t *seed, aoth_sink_t *sink) {
  *v = (aoth_trial_step_t){.step = step, .run = run, .sink = sink};
  if (run) v->data = run->train.present ? run->train.data : run->inputs;
  if (run) v->seed = run->train.present ? run->train.seed : run->seed;
  if (seed) v->seed = *seed;
  v->made_up = v->data.kind == AOTH_DATA_NONE || v->data.kind == AOTH_DATA_RANDOM;
  if (v->made_up) v->data.kind = AOTH_DATA_RANDOM;
  aoth_random_seed(&v->random, (uint64_t)v->seed);
  aoth_step_seed(step, v->seed, 0);
  AOT_TRY(aoth_feed_open(&v->data, &(aoth_feed_ranks_t){.n = 1}, step, prog, sink, &v->feed));
  if (v->data.kind == AOTH_DATA_SAFETENSORS) AOT_TRY(aoth_st_open(v->data.path, sink, &v->file));
  const size_t n = aoth_step_n_outputs(step) + (size_t)1;
  v->tangent = calloc(n, sizeof *v->tangent);
  v->tangents = calloc(n, sizeof *v->tangents);
  return v->tangent && v->tangents ? AOT_OK
                                   : aoth_sink_no_memory(v->sink, NULL, "trial.memory", "for %s", "the tangents");
}

void aoth_trial_step_deinit(aoth_trial_step_t *v) {
  for (uint32_t k = 0; v->tangent && k < aoth_step_n_outputs(v->step); k++) free(v->tangent[k].data);
  free(v->tangent);
  free(v->tangents);
  aoth_st_close(v->file);
  aoth_feed_close(v->feed);
  *v = (aoth_trial_step_t){0};
}

/* ---- leaves without contents ---- */

static aot_status_t fill_leaf(aoth_trial_step_t *v, const aot_leaf_info_t *leaf) {
  const char *prefix = leaf->role == AOT_ROLE_PARAMETER ? "param." : "buffer.";
  kit_text_t key = {0};
  aoth_tensor_t t;
  aoth_random_t r;
  uint64_t seed = (uint64_t)v->seed;
  kit_text_z(&key, prefix);
  kit_text_str(&key, leaf->names[0]);
  if (key.failed) return aoth_sink_no_memory(v->sink, NULL, "trial.memory", "for %s", "the parameters");
  for (const char *c = key.data; *c; c++) seed = seed * UINT64_C(0x100000001b3) ^ (unsigned char)*c;
  aoth_random_seed(&r, seed);
  aot_status_t status = AOT_OK;
  if (aoth_step_get(v->step, key.data, &t) && aot_dtype_is_float(t.dtype)) {
    aoth_tensor_t own = aoth_tensor_make(NULL, t.dtype, t.rank, t.sizes);
    own.data = calloc(1, (size_t)own.nbytes + 1);
    aoth_walk_t w;
    if (own.data)
      for (aoth_walk_begin(&w, &own, NULL); w.left > 0; aoth_walk_next(&w))
        kit_element_store(own.dtype, w.at[0], aoth_random_normal(&r) / 2 + (leaf->role == AOT_ROLE_BUFFER ? 4 : 0));
    status = own.data ? aoth_step_set(v->step, key.data, &own)
                      : aoth_sink_no_memory(v->sink, NULL, "trial.memory", "for %s", "the parameters");
    free(own.data);
  }
  kit_text_deinit(&key);
  return status;
}

/* Buffers are stored away from zero: some are variances. */
aot_status_t aoth_trial_step_fill_leaves(aoth_trial_step_t *v, aot_prog_t *prog) {
  for (uint32_t i = 1; i < aoth_graph_n_leaves(prog); i++) {
    aot_leaf_info_t leaf = {.struct_size = sizeof leaf};
    AOT_TRY(aoth_graph_leaf_info(prog, (aot_leaf_t){i}, &leaf));
    if (leaf.data || !leaf.n_names || (leaf.role != AOT_ROLE_PARAMETER && leaf.role != AOT_ROLE_BUFFER)) continue;
    AOT_TRY(fill_leaf(v, &leaf));
  }
  return AOT_OK;
}

/* ---- tangents ---- */

/* Room for a tangent of the output's geometry as the forward has just made it; withheld from step to step. */
static aot_status_t fit_tangent(aoth_trial_step_t *v, uint32_t k, const aoth_tensor_t *output) {
  aoth_tensor_t *t = &v->tangent[k], fresh = aoth_tensor_make(NULL, output->dtype, output->rank, output->sizes);
  if (!t->data || t->nbytes != fresh.nbytes) {
    free(t->data);
    t->data = calloc(1, (size_t)fresh.nbytes + 1);
    if (!t->data) return aoth_sink_no_memory(v->sink, NULL, "trial.memory", "for %s", "the tangents");
  }
  fresh.data = t->data;
  *t = fresh;
  v->tangents[k] = t;
  return AOT_OK;
}

static int output_of(const aoth_trial_step_t *v, int64_t k, aoth_tensor_t *out) {
  char key[32];
  snprintf(key, sizeof key, "output.%lld", (long long)k);
  return k >= 0 && k < aoth_step_n_outputs(v->step) && aoth_step_get(v->step, key, out);
}

/* The output that is one float number and is to be minimised: as training says, the model, or the first; -1: there
 * is none. */
static int64_t find_loss(const aoth_trial_step_t *v) {
  const aoth_train_spec_t *train = v->run ? &v->run->train : NULL;
  const int64_t marked = aoth_step_loss(v->step);
  const int64_t k = train && train->present ? train->loss : marked >= 0 ? marked : 0;
  aoth_tensor_t t;
  return output_of(v, k, &t) && aoth_tensor_numel(&t) == 1 && aot_dtype_is_float(t.dtype) &&
                 aoth_step_takes_tangent(v->step, (uint32_t)k)
             ? k
             : -1;
}

static uint32_t tangents_of_file(aoth_trial_step_t *v) {
  uint32_t found = 0;
  for (uint32_t k = 0; v->file && k < aoth_step_n_outputs(v->step); k++) {
    char key[32];
    snprintf(key, sizeof key, "tangent.%u", k);
    const aoth_st_entry_t *e = aoth_st_find(v->file, key);
    v->tangents[k] = e ? &e->tensor : NULL;
    found += e != NULL;
  }
  return found;
}

/* Normal numbers for every output that takes a tangent; of equal steps in every arm the same. */
static aot_status_t make_tangents(aoth_trial_step_t *v, int64_t step) {
  aoth_random_t r;
  aoth_random_seed(&r, ((uint64_t)v->seed ^ TANGENT_SEED) + (uint64_t)step);
  for (uint32_t k = 0; k < aoth_step_n_outputs(v->step); k++) {
    aoth_tensor_t output;
    v->tangents[k] = NULL;
    if (!aoth_step_takes_tangent(v->step, k) || !output_of(v, k, &output) || !aot_dtype_is_float(output.dtype))
      continue;
    AOT_TRY(fit_tangent(v, k, &output));
    const size_t size = (size_t)aot_dtype_size(output.dtype);
    for (int64_t i = 0, n = aoth_tensor_numel(v->tangents[k]); i < n; i++)
      kit_element_store(output.dtype, (char *)v->tangent[k].data + (size_t)i * size, aoth_random_normal(&r));
  }
  return AOT_OK;
}

static aot_status_t set_tangents(aoth_trial_step_t *v, int64_t step) {
  v->tangents_from = "none: the program has a loss of its own";
  if (aoth_step_own_loss(v->step) >= 0) return AOT_OK;
  v->tangents_from = "the inputs' file";
  if (tangents_of_file(v)) return AOT_OK;
  const int64_t loss = find_loss(v);
  v->tangents_from = "random";
  if (loss < 0) return make_tangents(v, step);
  aoth_tensor_t output;
  v->tangents_from = "1 for the loss";
  if (!output_of(v, loss, &output)) return AOT_E_INTERNAL;
  AOT_TRY(fit_tangent(v, (uint32_t)loss, &output));
  aoth_tensor_fill(v->tangents[loss], 1);
  return AOT_OK;
}

/* ---- a step ---- */

aot_status_t aoth_trial_step_run(aoth_trial_step_t *v, int64_t number) {
  const aoth_tensor_t *inputs;
  uint32_t n;
  AOT_TRY(aoth_feed_next(v->feed, &v->random, number, &inputs, &n));
  uint64_t begin = aoth_now_ns();
  AOT_TRY(aoth_step_forward(v->step, inputs, n));
  v->forward_ms = (double)(aoth_now_ns() - begin) / 1e6;
  if (!aoth_step_has(v->step, AOT_GRAPH_BACKWARD)) return AOT_OK;
  AOT_TRY(set_tangents(v, number));
  begin = aoth_now_ns();
  AOT_TRY(aoth_step_backward(v->step, v->tangents, aoth_step_n_outputs(v->step)));
  v->backward_ms = (double)(aoth_now_ns() - begin) / 1e6;
  return AOT_OK;
}

aot_status_t aoth_trial_step_whole(aoth_trial_step_t *v, int64_t number) {
  const aoth_tensor_t *inputs;
  uint32_t n;
  v->is_updated = aoth_step_has(v->step, AOT_GRAPH_STEP) || aoth_step_has(v->step, AOT_GRAPH_UPDATE);
  if (!aoth_step_has(v->step, AOT_GRAPH_STEP)) {
    AOT_TRY(aoth_trial_step_run(v, number));
    return v->is_updated ? aoth_step_update(v->step, UPDATE_RATE) : AOT_OK;
  }
  AOT_TRY(aoth_feed_next(v->feed, &v->random, number, &inputs, &n));
  AOT_TRY(aoth_step_whole(v->step, inputs, n, UPDATE_RATE));
  return aoth_step_apply(v->step, UPDATE_RATE);
}

/* ---- results ---- */

aot_status_t aoth_trial_step_keep(aoth_trial_step_t *v, const char *path) {
  const uint32_t leaves = v->is_updated ? AOTH_KEYS_LEAVES : AOTH_KEYS_BUFFERS;
  return aoth_step_save(v->step, AOTH_KEYS_OUTPUTS | AOTH_KEYS_GRADIENTS | leaves, path, 0, NULL, 0, v->sink);
}
