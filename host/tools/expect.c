#include <tools/expect.h>

#include <aot/graph.h>
#include <aot/inline.h>
#include <math.h>
#include <step/given_file.h>
#include <stdlib.h>
#include <string.h>
#include <tools/nearness.h>
#include <tools/widen.h>

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

static aot_status_t no_memory(aoth_sink_t *sink, const aoth_st_t *file) {
  aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "verify.memory", "no memory to compare with %s", aoth_st_path(file));
  return AOT_E_EXHAUSTED;
}

/* What is given to a step: the file's tensors, or wide copies of them. */
typedef struct given {
  const aoth_st_t *file;
  aoth_sink_t *sink;
  int is_wide;
  void **copies; /* one a tensor */
} given_t;

static aot_status_t give(const given_t *g, uint32_t k, aoth_tensor_t *t) {
  aoth_tensor_t wide;
  if (!g->is_wide) return AOT_OK;
  if (!aoth_tensor_widen(t, &wide)) return no_memory(g->sink, g->file);
  g->copies[k] = wide.data;
  *t = wide;
  return AOT_OK;
}

static void free_copies(const given_t *g, uint32_t n) {
  for (uint32_t k = 0; g->copies && k < n; k++) free(g->copies[k]);
  free(g->copies);
}

static aot_status_t forward(aoth_step_t *s, const aoth_st_t *file, int is_wide, aoth_sink_t *sink) {
  uint32_t n = aoth_step_n_inputs(s);
  aoth_tensor_t *inputs = calloc((size_t)n + 1, sizeof *inputs);
  given_t g = {file, sink, is_wide, calloc((size_t)n + 1, sizeof *g.copies)};
  aot_status_t status = inputs && g.copies ? AOT_OK : no_memory(sink, file);
  for (uint32_t k = 0; k < n && status == AOT_OK; k++) {
    status = aoth_given_input(file, k, sink, &inputs[k]);
    if (status == AOT_OK) status = give(&g, k, &inputs[k]);
    if (status != AOT_E_NOT_FOUND) continue;
    aoth_where_t where = {.file = aoth_st_path(file)};
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, &where, "verify.input",
                     "there is no tensor \"input.%u\"; the model takes %u inputs", k, n);
    status = AOT_E_INVALID;
  }
  if (status == AOT_OK) status = aoth_step_forward(s, inputs, n);
  free_copies(&g, n);
  free(inputs);
  return status;
}

static aot_status_t backward_of_loss(aoth_step_t *s, const aoth_st_t *file, aoth_sink_t *sink) {
  const aoth_where_t where = {.file = aoth_st_path(file)};
  const aot_status_t status = aoth_step_backward_of_loss(s);
  if (status != AOT_E_NOT_FOUND) return status;
  aoth_sink_report(sink, AOT_SEVERITY_ERROR, &where, "verify.tangent",
                   "output 0 is not one float number, so gradients need tangents, and there is no tensor tangent.K");
  return AOT_E_INVALID;
}

static aot_status_t backward(aoth_step_t *s, const aoth_st_t *file, int is_wide, aoth_sink_t *sink) {
  uint32_t n = aoth_step_n_outputs(s);
  const aoth_tensor_t **tangents = calloc((size_t)n + 1, sizeof *tangents);
  aoth_tensor_t *own = calloc((size_t)n + 1, sizeof *own);
  given_t g = {file, sink, is_wide, calloc((size_t)n + 1, sizeof *g.copies)};
  aot_status_t status = tangents && own && g.copies ? AOT_OK : no_memory(sink, file);
  uint32_t n_given = 0;
  for (uint32_t k = 0; k < n && status == AOT_OK; k++) {
    const aoth_st_entry_t *e = numbered(file, "tangent.", k);
    if (!e) continue;
    n_given++;
    own[k] = e->tensor;
    tangents[k] = &own[k];
    status = give(&g, k, &own[k]);
    if (is_wide || aoth_step_takes_tangent(s, k) || aoth_step_own_loss(s) == (int64_t)k) continue;
    aoth_where_t where = {.file = aoth_st_path(file)};
    aoth_sink_report(sink, AOT_SEVERITY_INFO, &where, "verify.tangent",
                     "\"tangent.%u\" is not used: no gradient depends on that output", k);
  }
  if (status == AOT_OK && (n_given || aoth_step_own_loss(s) >= 0)) status = aoth_step_backward(s, tangents, n);
  else if (status == AOT_OK) status = backward_of_loss(s, file, sink);
  free_copies(&g, n);
  free(own);
  free(tangents);
  return status;
}

static int wants_backward(const aoth_st_t *file) {
  const aoth_st_entry_t *e = aoth_st_entries(file);
  for (uint32_t i = 0; i < aoth_st_count(file); i++)
    if (begins(e[i].name, "grad.") || begins(e[i].name, "tangent.")) return 1;
  return 0;
}

static void hold_against(aoth_expect_row_t *row, const aoth_tensor_t *got, aoth_step_t *reference) {
  aoth_tensor_t exact;
  double off, wanted_off, norm;
  /* integers are exact */
  if (aoth_wide_dtype(got->dtype) == got->dtype && got->dtype != AOT_F64 && got->dtype != AOT_C128) return;
  if (!aoth_step_get(reference, row->key, &exact) || !aoth_tensor_same_sizes(&exact, got)) return;
  aoth_distance(got, &exact, &off, &norm);
  aoth_distance(&row->wanted, &exact, &wanted_off, &norm);
  row->has_reference = 1;
  row->off = off == 0 ? 0 : off / norm;
  row->wanted_off = wanted_off == 0 ? 0 : wanted_off / norm;
  if (!row->compare.ok && isfinite(row->compare.max_abs))
    row->ok = off <= AOTH_CLEARLY_FURTHER * (wanted_off + aoth_rounding(got->dtype) * norm);
}

static void compare_row(const aoth_step_t *s, aoth_step_t *reference, aoth_expect_row_t *row, double rtol,
                        double atol) {
  aoth_tensor_t got;
  row->compare.first_bad = -1;
  if (!aoth_step_get(s, row->key, &got)) return;
  row->compare = aoth_compare_tensors(&got, &row->wanted, rtol, atol);
  row->ok = row->compare.ok;
  if (reference && row->compare.same_type) hold_against(row, &got, reference);
  row->got = got;
  row->got.data = NULL; /* the step's memory may be gone when the rows are read */
}

static aot_status_t run_step(aoth_step_t *s, const aoth_st_t *inputs, const aoth_st_t *file, int is_wide,
                             aoth_sink_t *sink, int *ran_backward) {
  AOT_TRY(aoth_step_reset(s));
  AOT_TRY(forward(s, inputs, is_wide, sink));
  *ran_backward = wants_backward(file) && aoth_step_has(s, AOT_GRAPH_BACKWARD);
  return *ran_backward ? backward(s, inputs, is_wide, sink) : AOT_OK;
}

/* Wide inputs are copies, each on its own. */
static aot_status_t check_apart(const aoth_st_t *file, aoth_sink_t *sink) {
  const aoth_st_entry_t *e = aoth_st_entries(file);
  aoth_where_t where = {.file = aoth_st_path(file)};
  for (uint32_t i = 0; i < aoth_st_count(file); i++) {
    if (!begins(e[i].name, "storage.")) continue;
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, &where, "verify.against",
                     "inputs that share memory (%s) cannot be run in float64", e[i].name);
    return AOT_E_UNIMPLEMENTED;
  }
  return AOT_OK;
}

aot_status_t aoth_expect_against(aoth_step_t *s, aoth_step_t *reference, const aoth_st_t *inputs, const aoth_st_t *file,
                                 double rtol, double atol, aoth_sink_t *sink, aoth_expect_t *out) {
  const aoth_st_entry_t *e = aoth_st_entries(file);
  int ignored;
  memset(out, 0, sizeof *out);
  if (reference) AOT_TRY(check_apart(inputs, sink));
  if (reference) AOT_TRY(run_step(reference, inputs, file, 1, sink, &ignored));
  AOT_TRY(run_step(s, inputs, file, 0, sink, &out->ran_backward));
  out->rows = calloc((size_t)aoth_st_count(file) + 1, sizeof *out->rows);
  if (!out->rows) return no_memory(sink, file);
  for (uint32_t i = 0; i < aoth_st_count(file); i++) {
    if (!is_result(e[i].name)) continue;
    aoth_expect_row_t *row = &out->rows[out->n++];
    row->key = e[i].name;
    row->wanted = e[i].tensor;
    compare_row(s, reference, row, rtol, atol);
    out->n_ok += (uint32_t)row->ok;
  }
  return AOT_OK;
}

aot_status_t aoth_expect_run(aoth_step_t *s, const aoth_st_t *file, double rtol, double atol, aoth_sink_t *sink,
                             aoth_expect_t *out) {
  return aoth_expect_against(s, NULL, file, file, rtol, atol, sink, out);
}

void aoth_expect_deinit(aoth_expect_t *e) {
  free(e->rows);
  memset(e, 0, sizeof *e);
}
