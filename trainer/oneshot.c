#include <trainer/oneshot.h>

#include <aot/inline.h>
#include <trainer/feed.h>
#include <trainer/tensors/safetensors.h>
#include <stdlib.h>
#include <string.h>
#include <trainer/tensors/step_file.h>

static aot_status_t fail(const aoth_run_spec_t *spec, aoth_sink_t *sink, const char *code, const char *text) {
  aoth_sink_report(sink, AOT_SEVERITY_ERROR, &spec->inputs.where, code, "%s", text);
  return AOT_E_INVALID;
}

/* Tangents out of the file; 0: it has none. */
static uint32_t file_tangents(const aoth_st_t *file, const aoth_tensor_t **tangents, uint32_t n) {
  uint32_t found = 0;
  for (uint32_t k = 0; k < n; k++) {
    char key[32];
    snprintf(key, sizeof key, "tangent.%u", k);
    const aoth_st_entry_t *e = aoth_st_find(file, key);
    tangents[k] = e ? &e->tensor : NULL;
    found += e != NULL;
  }
  return found;
}

static aot_status_t backward(aoth_step_t *s, const aoth_run_spec_t *spec, const aoth_st_t *file,
                             const aoth_tensor_t **tangents, aoth_sink_t *sink) {
  const uint32_t n = aoth_step_n_outputs(s);
  if (file && file_tangents(file, tangents, n)) return aoth_step_backward(s, tangents, n);
  const aot_status_t status = aoth_step_backward_of_loss(s);
  if (status != AOT_E_NOT_FOUND) return status;
  return fail(spec, sink, "run.tangents",
              "output 0 is not a single floating-point element, so the backward needs tangents; add tensors tangent.K "
              "to the inputs file");
}

static aot_status_t run_backward(aoth_step_t *s, const aoth_run_spec_t *spec, aoth_sink_t *sink) {
  const aoth_tensor_t **tangents = calloc((size_t)aoth_step_n_outputs(s) + 1, sizeof *tangents);
  aoth_st_t *file = NULL;
  aot_status_t status = tangents ? AOT_OK : fail(spec, sink, "run.memory", "no memory for the tangents");
  if (status == AOT_OK && spec->inputs.kind == AOTH_DATA_SAFETENSORS)
    status = aoth_st_open(spec->inputs.path, sink, &file);
  if (status == AOT_OK) status = backward(s, spec, file, tangents, sink);
  aoth_st_close(file);
  free(tangents);
  return status;
}

aot_status_t aoth_oneshot_run(aoth_step_t *s, aot_prog_t *prog, const aoth_run_spec_t *spec, int grads,
                              aoth_sink_t *sink) {
  aoth_feed_t *feed;
  aoth_random_t random;
  const aoth_tensor_t *inputs;
  uint32_t n;
  if (grads && !aoth_step_has(s, AOT_GRAPH_BACKWARD))
    return fail(
        spec, sink, "run.grads",
        "gradients require a backward graph, and the program has none; add stage autograd and a partition stage");
  AOT_TRY(aoth_feed_open(&spec->inputs, &(aoth_feed_ranks_t){.n = 1}, s, prog, sink, &feed));
  aoth_random_seed(&random, (uint64_t)spec->seed);
  aoth_step_seed(s, spec->seed, 0);
  aot_status_t status = aoth_feed_next(feed, &random, 0, &inputs, &n);
  if (status == AOT_OK) status = aoth_step_forward(s, inputs, n);
  aoth_feed_close(feed);
  if (status == AOT_OK && grads) status = run_backward(s, spec, sink);
  return status;
}

aot_status_t aoth_oneshot_write(const aoth_step_t *s, const char *path, aoth_sink_t *sink) {
  return aoth_step_save(s, AOTH_KEYS_OUTPUTS | AOTH_KEYS_GRADIENTS, path, 0, NULL, 0, sink);
}
