#include <cli/verify/expect.h>

#include <aot/graph.h>
#include <aot/inline.h>
#include <math.h>
#include <trainer/tensors/given_file.h>
#include <stdlib.h>
#include <string.h>
#include <cli/verify/rounding_noise.h>

static int begins(const char *key, const char *prefix) { return strncmp(key, prefix, strlen(prefix)) == 0; }
static int is_result(const char *key) {
  return !begins(key, "tangent.") && !begins(key, "storage.") &&
         !(begins(key, "input.") && !begins(key, "input_after."));
}

static const aoth_st_entry_t *numbered(const aoth_st_t *file, const char *prefix, uint32_t k) {
  char key[40];
  snprintf(key, sizeof key, "%s%u", prefix, k);
  return aoth_st_find(file, key);
}

static aot_status_t forward(aoth_step_t *s, const aoth_st_t *file, const uint32_t *numbers, aoth_sink_t *sink) {
  uint32_t n = aoth_step_n_inputs(s);
  aoth_tensor_t *inputs = calloc((size_t)n + 1, sizeof *inputs);
  aot_status_t status =
      inputs ? AOT_OK : aoth_sink_no_memory(sink, NULL, "verify.memory", "to compare with %s", aoth_st_path(file));
  for (uint32_t k = 0; k < n && status == AOT_OK; k++) {
    status = aoth_given_input(file, numbers[k], sink, &inputs[k]);
    if (status != AOT_E_NOT_FOUND) continue;
    aoth_where_t where = {.file = aoth_st_path(file)};
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, &where, "verify.input",
                     "missing tensor \"input.%u\"; the model has %u inputs", k, n);
    status = AOT_E_INVALID;
  }
  if (status == AOT_OK) status = aoth_step_forward(s, inputs, n);
  free(inputs);
  return status;
}

static aot_status_t backward_of_loss(aoth_step_t *s, const aoth_st_t *file, aoth_sink_t *sink) {
  const aoth_where_t where = {.file = aoth_st_path(file)};
  const aot_status_t status = aoth_step_backward_of_loss(s);
  if (status != AOT_E_NOT_FOUND) return status;
  aoth_sink_report(
      sink, AOT_SEVERITY_ERROR, &where, "verify.tangent",
      "output 0 is not a single floating-point element, so the backward needs tangents; add tensors tangent.K");
  return AOT_E_INVALID;
}

static aot_status_t backward(aoth_step_t *s, const aoth_st_t *file, aoth_sink_t *sink) {
  uint32_t n = aoth_step_n_outputs(s);
  const aoth_tensor_t **tangents = calloc((size_t)n + 1, sizeof *tangents);
  aot_status_t status =
      tangents ? AOT_OK : aoth_sink_no_memory(sink, NULL, "verify.memory", "to compare with %s", aoth_st_path(file));
  uint32_t n_given = 0;
  for (uint32_t k = 0; k < n && status == AOT_OK; k++) {
    const aoth_st_entry_t *e = numbered(file, "tangent.", k);
    if (!e) continue;
    n_given++;
    tangents[k] = &e->tensor;
    if (aoth_step_takes_tangent(s, k) || aoth_step_own_loss(s) == (int64_t)k) continue;
    aoth_where_t where = {.file = aoth_st_path(file)};
    aoth_sink_report(sink, AOT_SEVERITY_INFO, &where, "verify.tangent",
                     "\"tangent.%u\" is not used: no gradient depends on that output", k);
  }
  if (status == AOT_OK && (n_given || aoth_step_own_loss(s) >= 0)) status = aoth_step_backward(s, tangents, n);
  else if (status == AOT_OK) status = backward_of_loss(s, file, sink);
  free(tangents);
  return status;
}

static int wants_backward(const aoth_st_t *file) {
  const aoth_st_entry_t *e = aoth_st_entries(file);
  for (uint32_t i = 0; i < aoth_st_count(file); i++)
    if (begins(e[i].name, "grad.") || begins(e[i].name, "tangent.")) return 1;
  return 0;
}

static int is_rounded(int32_t dtype) { return aot_dtype_is_float(dtype) || aot_dtype_is_complex(dtype); }

static void judge_row(aoth_expect_row_t *row, const aoth_tensor_t *got, const aoth_noise_judge_t *judge) {
  if (!is_rounded(got->dtype)) return; /* integers are exact */
  row->noise = aoth_noise_of(judge, row->key, got, &row->wanted);
  if (!row->compare.ok && isfinite(row->compare.max_abs)) row->ok = row->noise.verdict == AOTH_NOISE_YES;
}

/* The step's name of a key: "grad.input.K" and "input_after.K" have K as the file counts inputs. */
static const char *key_of_step(const char *key, const uint32_t *numbers, uint32_t n, char *renamed, size_t size) {
  const size_t prefix = begins(key, "grad.input.")    ? sizeof "grad.input." - 1
                        : begins(key, "input_after.") ? sizeof "input_after." - 1
                                                      : 0;
  char *end;
  const unsigned long number = prefix ? strtoul(key + prefix, &end, 10) : 0;
  if (!prefix || end == key + prefix || *end || number > UINT32_MAX) return key;
  snprintf(renamed, size, "%.*s%u", (int)prefix, key, aoth_given_index(numbers, n, (uint32_t)number));
  return renamed;
}

static void compare_row(const aoth_step_t *s, const char *key, const aoth_noise_judge_t *judge, aoth_expect_row_t *row,
                        double rtol, double atol) {
  aoth_tensor_t got;
  row->compare.first_bad = -1;
  if (!aoth_step_get(s, key, &got)) return;
  row->compare = aoth_compare_tensors(&got, &row->wanted, rtol, atol);
  row->ok = row->compare.ok;
  if (judge && row->compare.same_type) judge_row(row, &got, judge);
  row->got = got;
  row->got.data = NULL; /* the step's memory may be gone when the rows are read */
}

static aot_status_t run_step(aoth_step_t *s, const aoth_st_t *inputs, const uint32_t *numbers, const aoth_st_t *file,
                             aoth_sink_t *sink, int *ran_backward) {
  AOT_TRY(aoth_step_reset(s));
  AOT_TRY(forward(s, inputs, numbers, sink));
  *ran_backward = wants_backward(file) && aoth_step_has(s, AOT_GRAPH_BACKWARD);
  return *ran_backward ? backward(s, inputs, sink) : AOT_OK;
}

static aot_status_t compare_rows(aoth_step_t *s, const uint32_t *numbers, const aoth_noise_judge_t *judge,
                                 const aoth_st_t *file, double rtol, double atol, aoth_sink_t *sink,
                                 aoth_expect_t *out) {
  const aoth_st_entry_t *e = aoth_st_entries(file);
  out->rows = calloc((size_t)aoth_st_count(file) + 1, sizeof *out->rows);
  if (!out->rows) return aoth_sink_no_memory(sink, NULL, "verify.memory", "to compare with %s", aoth_st_path(file));
  for (uint32_t i = 0; i < aoth_st_count(file); i++) {
    if (!is_result(e[i].name)) continue;
    aoth_expect_row_t *row = &out->rows[out->n++];
    char renamed[40];
    row->key = e[i].name;
    row->wanted = e[i].tensor;
    compare_row(s, key_of_step(row->key, numbers, aoth_step_n_inputs(s), renamed, sizeof renamed), judge, row, rtol,
                atol);
    out->n_ok += (uint32_t)row->ok;
  }
  return AOT_OK;
}

aot_status_t aoth_expect_judged(aoth_step_t *s, const aoth_noise_judge_t *judge, const aoth_st_t *inputs,
                                const aoth_st_t *file, double rtol, double atol, aoth_sink_t *sink,
                                aoth_expect_t *out) {
  const uint32_t n = aoth_step_n_inputs(s);
  uint32_t *numbers = calloc((size_t)n + 1, sizeof *numbers);
  memset(out, 0, sizeof *out);
  if (!numbers) return aoth_sink_no_memory(sink, NULL, "verify.memory", "to compare with %s", aoth_st_path(file));
  aoth_given_numbers(inputs, n, numbers);
  aot_status_t status = run_step(s, inputs, numbers, file, sink, &out->ran_backward);
  aoth_given_numbers(file, n, numbers);
  if (status == AOT_OK) status = compare_rows(s, numbers, judge, file, rtol, atol, sink, out);
  free(numbers);
  return status;
}

aot_status_t aoth_expect_run(aoth_step_t *s, const aoth_st_t *file, double rtol, double atol, aoth_sink_t *sink,
                             aoth_expect_t *out) {
  return aoth_expect_judged(s, NULL, file, file, rtol, atol, sink, out);
}

void aoth_expect_deinit(aoth_expect_t *e) {
  free(e->rows);
  memset(e, 0, sizeof *e);
}
