#include <runtime/expect.h>

#include <aot/graph.h>
#include <runtime/given_file.h>
#include <stdlib.h>
#include <string.h>

static int begins(const char *key, const char *prefix) { return strncmp(key, prefix, strlen(prefix)) == 0; }
static int is_result(const char *key) {
  return !begins(key, "tangent.") && !begins(key, "storage.") && !(begins(key, "input.") && !begins(key, "input_after."));
}

static const aoth_st_entry_t *numbered(const aoth_st_t *file, const char *prefix, uint32_t k) {
  char key[40];
  snprintf(key, sizeof key, "%s%u", prefix, k);
  return aoth_st_find(file, key);
}

static aot_status_t no_memory(aoth_sink_t *sink, const aoth_st_t *file) {
  aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "verify.memory", "no memory to compare with %s", aoth_st_path(file));
  return AOT_E_EXHAUSTED;
}

static aot_status_t forward(aoth_step_t *s, const aoth_st_t *file, aoth_sink_t *sink) {
  uint32_t n = aoth_step_n_inputs(s);
  aoth_tensor_t *inputs = calloc((size_t)n + 1, sizeof *inputs);
  if (!inputs) return no_memory(sink, file);
  aot_status_t status = AOT_OK;
  for (uint32_t k = 0; k < n && status == AOT_OK; k++) {
    status = aoth_given_input(file, k, sink, &inputs[k]);
    if (status != AOT_E_NOT_FOUND) continue;
    aoth_where_t where = {.file = aoth_st_path(file)};
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, &where, "verify.input", "there is no tensor \"input.%u\"; the model takes %u inputs", k, n);
    status = AOT_E_INVALID;
  }
  if (status == AOT_OK) status = aoth_step_forward(s, inputs, n);
  free(inputs);
  return status;
}

static aot_status_t backward(aoth_step_t *s, const aoth_st_t *file, aoth_sink_t *sink) {
  uint32_t n = aoth_step_n_outputs(s);
  const aoth_tensor_t **tangents = calloc((size_t)n + 1, sizeof *tangents);
  if (!tangents) return no_memory(sink, file);
  for (uint32_t k = 0; k < n; k++) {
    const aoth_st_entry_t *e = numbered(file, "tangent.", k);
    tangents[k] = e ? &e->tensor : NULL;
    if (e && !aoth_step_takes_tangent(s, k) && aoth_step_own_loss(s) != (int64_t)k) {
      aoth_where_t where = {.file = aoth_st_path(file)};
      aoth_sink_report(sink, AOT_SEVERITY_INFO, &where, "verify.tangent", "\"tangent.%u\" is not used: no gradient depends on that output", k);
    }
  }
  aot_status_t status = aoth_step_backward(s, tangents, n);
  free(tangents);
  return status;
}

static int wants_backward(const aoth_st_t *file) {
  const aoth_st_entry_t *e = aoth_st_entries(file);
  for (uint32_t i = 0; i < aoth_st_count(file); i++)
    if (begins(e[i].name, "grad.") || begins(e[i].name, "tangent.")) return 1;
  return 0;
}

static void compare_row(const aoth_step_t *s, aoth_expect_row_t *row, double rtol, double atol) {
  aoth_tensor_t got;
  row->compare.first_bad = -1;
  if (!aoth_step_get(s, row->key, &got)) return;
  row->compare = aoth_compare_tensors(&got, &row->wanted, rtol, atol);
  row->got = got;
  row->got.data = NULL; /* the step's memory may be gone when the rows are read */
}

aot_status_t aoth_expect_run(aoth_step_t *s, const aoth_st_t *file, double rtol, double atol, aoth_sink_t *sink, aoth_expect_t *out) {
  const aoth_st_entry_t *e = aoth_st_entries(file);
  memset(out, 0, sizeof *out);
  AOT_TRY(aoth_step_reset(s));
  AOT_TRY(forward(s, file, sink));
  out->ran_backward = wants_backward(file) && aoth_step_has(s, AOT_GRAPH_BACKWARD);
  if (out->ran_backward) AOT_TRY(backward(s, file, sink));
  out->rows = calloc((size_t)aoth_st_count(file) + 1, sizeof *out->rows);
  if (!out->rows) return no_memory(sink, file);
  for (uint32_t i = 0; i < aoth_st_count(file); i++) {
    if (!is_result(e[i].name)) continue;
    aoth_expect_row_t *row = &out->rows[out->n++];
    row->key = e[i].name;
    row->wanted = e[i].tensor;
    compare_row(s, row, rtol, atol);
    out->n_ok += (uint32_t)row->compare.ok;
  }
  return AOT_OK;
}

void aoth_expect_deinit(aoth_expect_t *e) {
  free(e->rows);
  memset(e, 0, sizeof *e);
}
