/* Running recorded calls (op_cases.h). A case is written as a program, parsed into the session, taken through the
 * stages, run by a step, compared. Every case gets a sink of its own, so that a failure's reason is what was said
 * about it. */
#include "kit/base/splitmix.h"
#include "kit/base/geometry.h"
#include <cli/ops/op_cases.h>

#include <aot/inline.h>
#include <math.h>
#include <compiler/backend_stage.h>
#include <sandbox/session.h>
#include <stdio.h>
#include <stdlib.h>
#include <trainer/tensors/compare.h>
#include <step/step.h>
#include <string.h>
#include <cli/ops/op_case_exceptions.h>
#include <cli/ops/op_case_mutate.h>
#include <cli/ops/op_case_shares.h>
#include <cli/ops/op_case_text.h>
#include <cli/verify/tolerance.h>

#define MAX_TANGENTS 64u

struct aoth_op_cases {
  json_t *cases;
  aoth_st_t *data;
  aoth_case_exceptions_t exceptions;
};

const char *aoth_case_verdict(int verdict) {
  static const char *const names[AOTH_N_CASE_VERDICTS] = {
      "passed",           "none recorded",     "listed exception", "malformed case",
      "unknown operator", "arguments refused", "no derivative",    "refused by the backend",
      "fails when run",   "another type",      "differs",          "shares otherwise",
      "further off"};
  return verdict >= 0 && verdict < AOTH_N_CASE_VERDICTS ? names[verdict] : "";
}

/* ---- files ---- */

static char *beside(const char *path, const char *name) {
  const char *slash = strrchr(path, '/');
  const size_t n = slash ? (size_t)(slash - path) + 1 : 0;
  char *out = malloc(n + strlen(name) + 1);
  if (!out) return NULL;
  memcpy(out, path, n);
  strcpy(out + n, name);
  return out;
}

static aot_status_t check_cases(const char *path, json_t *cases, aoth_sink_t *sink) {
  const aoth_where_t where = {.file = path};
  size_t i;
  json_t *one;
  if (!json_is_array(cases)) {
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, &where, "cases.list", "a file of cases is a list of objects");
    return AOT_E_INVALID;
  }
  json_array_foreach(cases, i, one) {
    if (json_is_string(json_object_get(one, "id")) && json_is_string(json_object_get(one, "op")) &&
        json_is_array(json_object_get(one, "args")) && json_is_array(json_object_get(one, "outputs")))
      continue;
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, &where, "cases.case",
                     "case %u of the list lacks id, op, args or outputs", (unsigned)i);
    return AOT_E_INVALID;
  }
  return AOT_OK;
}

static aot_status_t read_exceptions(aoth_op_cases_t *c, const char *path, aoth_sink_t *sink) {
  char *name = beside(path, "exceptions.txt");
  if (!name) return AOT_E_EXHAUSTED;
  const aot_status_t status = aoth_case_exceptions_read(name, sink, &c->exceptions);
  free(name);
  return status;
}

aot_status_t aoth_op_cases_open(const char *path, const char *data, aoth_sink_t *sink, aoth_op_cases_t **out) {
  json_error_t error;
  aoth_op_cases_t *c = calloc(1, sizeof *c);
  *out = NULL;
  if (!c) return AOT_E_EXHAUSTED;
  aot_status_t status = AOT_OK;
  const char *why = NULL;
  FILE *f = kit_file_stream(path, &why);
  if (f) c->cases = json_loadf(f, JSON_REJECT_DUPLICATES, &error);
  if (f) fclose(f);
  if (!f) {
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "cases.json", "cannot read %s: %s", path, why);
    status = AOT_E_INVALID;
  } else if (!c->cases) {
    const aoth_where_t where = {
        .file = path,
        .line = error.line > 0 ? (uint32_t)error.line : 0,
        .column = error.column > 0 ? (uint32_t)error.column : 0,
    };
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, &where, "cases.json", "%s", error.text);
    status = AOT_E_INVALID;
  }
  if (status == AOT_OK) status = check_cases(path, c->cases, sink);
  char *by_default = data ? NULL : beside(path, "data.safetensors");
  if (status == AOT_OK)
    status = data || by_default ? aoth_st_open(data ? data : by_default, sink, &c->data) : AOT_E_EXHAUSTED;
  free(by_default);
  if (status == AOT_OK) status = read_exceptions(c, path, sink);
  if (status == AOT_OK) *out = c;
  else aoth_op_cases_close(c);
  return status;
}

void aoth_op_cases_close(aoth_op_cases_t *c) {
  if (!c) return;
  json_decref(c->cases);
  aoth_st_close(c->data);
  aoth_case_exceptions_deinit(&c->exceptions);
  free(c);
}

uint32_t aoth_op_cases_count(const aoth_op_cases_t *c) { return (uint32_t)json_array_size(c->cases); }

const char *aoth_op_cases_op(const aoth_op_cases_t *c, uint32_t i) {
  const char *op = json_string_value(json_object_get(json_array_get(c->cases, i), "op"));
  return op ? op : "";
}

/* ---- one direction of one case ---- */

typedef struct run_state {
  const aoth_op_cases_t *cases;
  json_t *one;
  aoth_session_t *s;
  const aoth_case_stages_t *stages;
  aoth_case_program_t program;
  aoth_step_t *step;
  aoth_case_part_t *part;
  aoth_case_ways_t *ways; /* NULL: nothing asks */
  /* of changed arguments */
  aoth_random_t *random;
  void *copies[AOTH_CASE_TENSORS];
  FILE *told;
  int is_large;
} run_state_t;

static aot_status_t exec(void *self, const aot_binding_t *what, int64_t *symbols, const aot_output_sink_t *open,
                         uint64_t *known) {
  return aoth_session_run_exe(self, what, symbols, open, known);
}

static int failed(run_state_t *r, int verdict, const char *why) {
  r->part->verdict = verdict;
  snprintf(r->part->why, sizeof r->part->why, "%s", why);
  return 0;
}

/* What was said first; colours do not occur in a sink that collects. The line below it is a reason the backend gave. */
static int failed_as_told(run_state_t *r, int verdict) {
  const char *text = aoth_sink_text(r->s->config.sink), *at = text ? strstr(text, "error: ") : NULL;
  const char *begin = at ? at + strlen("error: ") : text && *text ? text : "failed without a diagnostic";
  const size_t n = strcspn(begin, "\n"), more = begin[n] == '\n' ? strcspn(begin + n + 1, "\n") : 0;
  r->part->verdict = verdict;
  snprintf(r->part->why, sizeof r->part->why, "%.*s%s%.*s", (int)(n < 250 ? n : 250), begin, more ? ";" : "",
           (int)(more < 140 ? more : 140), more ? begin + n + 1 : "");
  return 0;
}

static aot_status_t parse(run_state_t *r) {
  aoth_session_t *s = r->s;
  aoth_session_exe_drop(s);
  if (s->now.prog) aoth_prog_destroy(s->now.prog);
  s->n_records = 0; /* of programs that are gone */
  s->ctx.graph = NULL;
  s->ctx.prog = s->now.prog = aoth_prog_create(s->ops, &s->ctx);
  if (!s->now.prog) return AOT_E_EXHAUSTED;
  s->ctx.graph = aoth_prog_arena(s->now.prog);
  s->ctx.stage = NULL;
  s->ctx.n_diags = 0;
  s->report = (aoth_report_t){.arena = s->arena};
  AOT_TRY(aoth_parse(s->now.prog, json_string_value(json_object_get(r->one, "id")), r->program.text.data,
                     r->program.text.size));
  return aoth_verify(s->now.prog, aoth_prog_properties(s->now.prog).known);
}

static int stage(run_state_t *r, const aoth_stage_t *stage_of, int verdict) {
  if (aoth_session_run_stage(r->s, stage_of) == AOT_OK) return 1;
  return failed_as_told(r, verdict);
}

void aoth_case_ways_add(aoth_case_ways_t *w, const char *name, double count) {
  uint32_t k = 0;
  while (k < w->n && strcmp(w->names[k], name) != 0) k++;
  if (k == AOTH_CASE_WAYS) return;
  w->names[k] = name;
  w->counts[k] += count;
  if (k == w->n) w->n++;
}

/* Of the stage that ran last. */
static void note_ways(run_state_t *r) {
  const aoth_record_t *rows;
  const uint32_t n = aoth_session_records(r->s, &rows);
  for (uint32_t k = 0; n && r->ways && k < rows[n - 1].n_numbers; k++) {
    const aoth_number_t *number = &rows[n - 1].numbers[k];
    if (!number->text && (strcmp(number->unit, "nodes") == 0 || strcmp(number->unit, "calls") == 0))
      aoth_case_ways_add(r->ways, number->name, number->value);
  }
}

static int check_shares(run_state_t *r, aot_op_t op) {
  json_t *recorded = json_object_get(r->one, "shares");
  const char *id = json_string_value(json_object_get(r->one, "id")),
             *name = json_string_value(json_object_get(r->one, "op"));
  char why[200];
  if (!recorded || aoth_case_exception(&r->cases->exceptions, id, name, "shares")) return 1;
  const aot_status_t status = aoth_case_shares(r->s->now.prog, op, &r->program, recorded, why, sizeof why);
  if (status == AOT_OK) return 1;
  return status == AOT_E_INVALID ? failed(r, AOTH_CASE_SHARES, why) : failed_as_told(r, AOTH_CASE_ARGUMENTS);
}

static int is_large(aot_prog_t *p) {
  for (uint32_t v = 1; v < aoth_graph_n_values(p); v++) {
    aot_type_t t;
    double numel = 1;
    if (aoth_graph_value_type(p, (aot_value_t){v}, &t) != AOT_OK || t.kind != AOT_TYPE_TENSOR) continue;
    for (int32_t d = 0; d < t.rank; d++) numel *= AOT_DIM_IS_SYM(t.sizes[d]) ? 1 : (double)t.sizes[d];
    if (numel > AOTH_MUTANT_NUMEL) return 1;
  }
  return 0;
}

/* From the case to a step that can be run. 0: reported in part. */
static int build(run_state_t *r, int with_grad) {
  const aoth_case_stages_t *stages = r->stages;
  const aot_op_t op = aoth_ops_find(r->s->ops, aot_str(json_string_value(json_object_get(r->one, "op"))));
  if (op.id == AOT_NO_ID) return failed(r, AOTH_CASE_UNKNOWN, "no opset has the operator");
  const aot_op_desc_t *desc = aoth_ops_desc(r->s->ops, op);
  if (!aoth_case_write(r->one, desc, r->cases->data, with_grad, &r->program))
    return failed(r, AOTH_CASE_MALFORMED, r->program.why);
  if (r->random) aoth_case_mutate_elements(&r->program, r->copies, r->random);
  if (r->told) fprintf(r->told, "%s\n", r->program.text.data);
  if (r->told) fflush(r->told); /* should it not come back */
  if (parse(r) != AOT_OK) return failed_as_told(r, AOTH_CASE_ARGUMENTS);
  if (!r->random && !check_shares(r, op)) return 0;
  r->is_large = r->random && is_large(r->s->now.prog);
  if (r->is_large) return 0;
  if (desc->flags & AOT_OP_WRITES && !stage(r, stages->functional, AOTH_CASE_REFUSED)) return 0;
  for (uint32_t i = 0; with_grad && i < stages->n_gradient; i++)
    if (!stage(r, &stages->gradient[i], AOTH_CASE_NO_DERIVATIVE)) return 0;
  if (!stage(r, stages->backend, AOTH_CASE_REFUSED)) return 0;
  note_ways(r);
  const aoth_exec_t run = {.self = r->s, .queue = &r->s->queue, .run = exec};
  if (aoth_step_create(r->s->now.prog, &run, r->s->config.sink, &r->step) != AOT_OK)
    return failed_as_told(r, AOTH_CASE_RUN);
  if (aoth_step_forward(r->step, r->program.inputs, r->program.n_inputs) != AOT_OK)
    return failed_as_told(r, AOTH_CASE_RUN);
  return 1;
}

/* ---- listed exceptions ---- */

/* Where place `index` along `dim` is in x, for the element `at` of a result that has x's sizes but for that
 * dimension, or lacks it. -1: outside. */
static int64_t picked_place(const aoth_tensor_t *x, int32_t dim, const aoth_tensor_t *places, const int64_t *at,
                            int64_t index) {
  int64_t flat = 0;
  int32_t from = 0;
  for (int32_t d = 0; d < x->rank; d++) {
    const int64_t i = d == dim ? index : at[from];
    from += d != dim || places->rank == x->rank;
    if (i < 0 || i >= x->sizes[d]) return -1;
    flat = flat * x->sizes[d] + i;
  }
  return x->rank || index == 0 ? flat : -1;
}

static void *element_at(const aoth_tensor_t *t, int64_t flat) {
  int64_t place = t->offset;
  for (int32_t d = t->rank - 1; d >= 0; flat /= t->sizes[d], d--) place += flat % t->sizes[d] * t->strides[d];
  return (char *)t->data + place * (int64_t)aot_dtype_size(t->dtype);
}

/* Every place that the result names holds the value that another output has there, and none is named twice. */
static int picks_values(const aoth_tensor_t *places, const aoth_tensor_t *x, int32_t dim, const aoth_tensor_t *values) {
  int64_t at[AOT_MAX_RANK] = {0};
  int ok = places->rank == values->rank && (places->rank == x->rank || places->rank + 1 == x->rank);
  uint8_t *seen = calloc((size_t)aoth_tensor_numel(x) + 1, 1);
  for (int64_t e = 0; ok && seen && e < aoth_tensor_numel(places); e++) {
    const int64_t place =
        picked_place(x, dim, places, at, (int64_t)kit_element_load(places->dtype, element_at(places, e)));
    ok = place >= 0 && !seen[place];
    if (ok) {
      const double is = kit_element_load(x->dtype, element_at(x, place));
      const double said = kit_element_load(values->dtype, element_at(values, e));
      ok = is == said || (isnan(is) && isnan(said));
      seen[place] = 1;
    }
    tn_next(places->rank, places->sizes, at, 0, NULL, NULL);
  }
  ok = ok && seen;
  free(seen);
  return ok;
}

/* Does `got` keep to what the exception asks? */
static int keeps_to(run_state_t *r, const aoth_case_exception_t *x, const aoth_tensor_t *got) {
  json_t *args = json_object_get(r->one, "args"), *dim_of = json_array_get(args, x->dim_argument);
  aoth_tensor_t from, values;
  char key[32];
  int32_t dtype;
  double dim = (double)x->dim_preset;
  if (!x->picks) return 1;
  if (!aoth_case_tensor(r->cases->data, json_array_get(args, x->argument), &from)) return 0;
  if (dim_of && !aoth_case_number(dim_of, &dim, &dtype)) return 0;
  snprintf(key, sizeof key, "output.%u", x->output);
  if (!aoth_step_get(r->step, key, &values) || !values.dtype) return 0;
  return picks_values(got, &from, (int32_t)(dim < 0 ? dim + from.rank : dim), &values);
}

/* A difference that is listed, with what it must still keep to. */
static int is_listed(run_state_t *r, const char *result, const aoth_tensor_t *got) {
  const aoth_case_exception_t *x =
      aoth_case_exception(&r->cases->exceptions, json_string_value(json_object_get(r->one, "id")),
                          json_string_value(json_object_get(r->one, "op")), result);
  if (!x || !keeps_to(r, x, got)) return 0;
  r->part->verdict = AOTH_CASE_LISTED;
  snprintf(r->part->why, sizeof r->part->why, "%s: %s", result, x->reason);
  return 1;
}

/* ---- results ---- */

static int failed_type(run_state_t *r, const char *what, const aoth_tensor_t *got, const aoth_tensor_t *wanted) {
  char why[300];
  kit_text_t a = {0}, b = {0};
  aoth_tensor_print_shape(got, &a);
  aoth_tensor_print_shape(wanted, &b);
  snprintf(why, sizeof why, "%s is %.100s, recorded %.100s", what, a.data ? a.data : "", b.data ? b.data : "");
  kit_text_deinit(&a);
  kit_text_deinit(&b);
  return failed(r, AOTH_CASE_TYPE, why);
}

/* |a - b| <= tol * (|b| + the largest |b| / 10) + 1e-7: sums that cancel are as exact as their terms allow. tol is the
 * case's `tolerance`, or the dtype's. */
static int compare_recorded(run_state_t *r, const char *what, const char *result, const aoth_tensor_t *got,
                            const aoth_tensor_t *wanted, int is_gradient) {
  const json_t *of_case = json_object_get(r->one, "tolerance");
  const double tol = json_is_number(of_case) ? json_number_value(of_case)
                                             : aoth_usual_tolerance(wanted->dtype, is_gradient),
               most = aot_dtype_size(wanted->dtype) ? aoth_tensor_largest(wanted) : 0;
  const aoth_compare_t c = aoth_compare_tensors(got, wanted, tol, tol * most / 10 + 1e-7);
  char why[300];
  const double error = most > 0 ? c.max_abs / most : c.max_abs;
  if (!c.ok && is_listed(r, result, got)) return 1;
  if (error > r->part->error) r->part->error = error;
  if (c.ok) return 1;
  snprintf(why, sizeof why, "%s: %lld of %lld elements, element %lld is %.9g, recorded %.9g", what, (long long)c.n_bad,
           (long long)aoth_tensor_numel(wanted), (long long)c.first_bad, c.got, c.wanted);
  return failed(r, AOTH_CASE_DIFFERS, why);
}

/* Against the truth, as far as PyTorch is from it. */
static int compare_exact(run_state_t *r, const char *what, const char *result, const aoth_tensor_t *got,
                         const aoth_tensor_t *wanted, json_t *truth) {
  aoth_tensor_t exact;
  char why[300];
  if (!aoth_case_tensor(r->cases->data, truth, &exact) || !aoth_tensor_same_sizes(&exact, wanted) ||
      !aot_dtype_is_float(wanted->dtype))
    return failed(r, AOTH_CASE_MALFORMED, "an exact result that the data file lacks, or of other sizes");
  const aoth_nearness_t c = aoth_nearness(got, wanted, &exact);
  if (!c.ok && is_listed(r, result, got)) return 1;
  if (c.off > r->part->error) r->part->error = c.off;
  if (c.ok) return 1;
  if (c.n_bad)
    snprintf(why, sizeof why, "%s: %lld of %lld elements, element %lld is %.9g, exact %.9g, recorded %.9g", what,
             (long long)c.n_bad, (long long)aoth_tensor_numel(wanted), (long long)c.first_bad, c.got, c.exact,
             c.theirs);
  else snprintf(why, sizeof why, "%s: %.3g off float64, recorded %.3g off", what, c.off, c.theirs_off);
  return failed(r, AOTH_CASE_FURTHER, why);
}

/* `result` is output.K or grad.PATH; exact: of a half, the reference to what float64 says; NULL or null: none. */
static int compare(run_state_t *r, const char *what, const char *result, const aoth_tensor_t *got,
                   const aoth_tensor_t *wanted, json_t *exact, int is_gradient) {
  if (got->dtype != wanted->dtype || !aoth_tensor_same_sizes(got, wanted)) return failed_type(r, what, got, wanted);
  if (json_is_object(exact)) return compare_exact(r, what, result, got, wanted, exact);
  return compare_recorded(r, what, result, got, wanted, is_gradient);
}

static int compare_output(run_state_t *r, uint32_t k, json_t *recorded) {
  aoth_tensor_t got = {0}, wanted;
  char key[32], what[32];
  union {
    double f;
    int64_t i;
    char b;
  } number = {0};
  double value;
  int32_t dtype;
  snprintf(key, sizeof key, "output.%u", k);
  snprintf(what, sizeof what, "output %u", k);
  const int is_there = aoth_step_get(r->step, key, &got) && got.dtype;
  if (json_is_null(recorded)) return is_there ? failed(r, AOTH_CASE_TYPE, "an output where none was recorded") : 1;
  if (json_object_get(recorded, "t")) {
    if (!aoth_case_tensor(r->cases->data, recorded, &wanted))
      return failed(r, AOTH_CASE_MALFORMED, "the data file lacks a recorded output");
  } else if (aoth_case_number(recorded, &value, &dtype)) {
    wanted = aoth_tensor_scalar(&number, dtype);
    kit_element_store(dtype, &number, value);
  } else {
    return failed(r, AOTH_CASE_MALFORMED, "a recorded output that is neither tensor nor number");
  }
  if (!is_there) return failed(r, AOTH_CASE_TYPE, "an output is missing");
  return compare(r, what, key, &got, &wanted, json_array_get(json_object_get(r->one, "exact"), k), 0);
}

static void run_forward(run_state_t *r) {
  json_t *outputs = json_object_get(r->one, "outputs");
  if (!build(r, 0)) return;
  for (size_t k = 0; k < json_array_size(outputs); k++)
    if (!compare_output(r, (uint32_t)k, json_array_get(outputs, k))) return;
}

static int is_zero(const aoth_tensor_t *t) {
  aoth_walk_t w;
  for (aoth_walk_begin(&w, t, NULL); w.left > 0; aoth_walk_next(&w))
    if (kit_element_load(t->dtype, w.at[0]) != 0) return 0;
  return 1;
}

/* Null represents a gradient that PyTorch does not have: none, or zeros. */
static int compare_gradient(run_state_t *r, const char *path, json_t *recorded) {
  aoth_tensor_t got, wanted;
  char key[32], what[64];
  uint32_t k = 0;
  while (k < r->program.n_inputs && strcmp(r->program.paths[k], path) != 0) k++;
  snprintf(what, sizeof what, "gradient of argument %.30s", path);
  if (k == r->program.n_inputs) return failed(r, AOTH_CASE_MALFORMED, "a gradient of no argument");
  snprintf(key, sizeof key, "grad.input.%u", k);
  const int is_there = aoth_step_get(r->step, key, &got) && got.dtype;
  if (json_is_null(recorded))
    return !is_there || is_zero(&got) ? 1 : failed(r, AOTH_CASE_DIFFERS, "a gradient where PyTorch has none");
  if (!aoth_case_tensor(r->cases->data, recorded, &wanted))
    return failed(r, AOTH_CASE_MALFORMED, "the data file lacks a recorded gradient");
  if (!is_there) return failed(r, AOTH_CASE_DIFFERS, "an argument has no gradient");
  snprintf(key, sizeof key, "grad.%.24s", path);
  return compare(r, what, key, &got, &wanted, json_object_get(json_object_get(r->one, "exact_grads"), path), 1);
}

static int run_backward(run_state_t *r) {
  aoth_tensor_t tensors[MAX_TANGENTS];
  const aoth_tensor_t *tangents[MAX_TANGENTS] = {0};
  const uint32_t n = aoth_step_n_outputs(r->step);
  const char *key;
  json_t *value;
  json_object_foreach(json_object_get(r->one, "tangents"), key, value) {
    const unsigned long k = strtoul(key, NULL, 10);
    if (k >= MAX_TANGENTS || k >= n || !aoth_case_tensor(r->cases->data, value, &tensors[k]))
      return failed(r, AOTH_CASE_MALFORMED, "a tangent of no output, or not in the data file");
    tangents[k] = &tensors[k];
    if (!aoth_step_takes_tangent(r->step, (uint32_t)k))
      return failed(r, AOTH_CASE_DIFFERS, "an output with a recorded tangent takes none");
  }
  if (n > MAX_TANGENTS) return failed(r, AOTH_CASE_MALFORMED, "more than 64 outputs");
  if (aoth_step_backward(r->step, tangents, n) == AOT_OK) return 1;
  return failed_as_told(r, AOTH_CASE_RUN);
}

static void run_gradients(run_state_t *r) {
  const char *path;
  json_t *value;
  if (!build(r, 1) || !run_backward(r)) return;
  json_object_foreach(json_object_get(r->one, "grads"), path, value) if (!compare_gradient(r, path, value)) return;
}

/* ---- one case ---- */

static void run_part(run_state_t *r, aoth_case_part_t *part, void (*run)(run_state_t *r)) {
  aoth_session_t *s = r->s;
  aoth_sink_t *before = s->config.sink, *own = aoth_sink_create(NULL);
  r->part = part;
  r->step = NULL;
  memset(&r->program, 0, sizeof r->program);
  if (!own) {
    failed(r, AOTH_CASE_RUN, "no memory");
  } else {
    s->config.sink = s->ctx.sink = own;
    run(r);
    aoth_step_destroy(r->step);
    s->config.sink = s->ctx.sink = before;
  }
  kit_text_deinit(&r->program.text);
  aoth_sink_destroy(own);
}

void aoth_op_cases_run(const aoth_op_cases_t *c, uint32_t i, aoth_session_t *s, const aoth_case_stages_t *stages,
                       aoth_case_result_t *out) {
  run_state_t r = {.cases = c, .one = json_array_get(c->cases, i), .s = s, .stages = stages};
  memset(out, 0, sizeof *out);
  r.ways = &out->ways;
  out->id = json_string_value(json_object_get(r.one, "id"));
  out->op = json_string_value(json_object_get(r.one, "op"));
  out->gradients.verdict = AOTH_CASE_ABSENT;
  run_part(&r, &out->forward, run_forward);
  if (json_object_size(json_object_get(r.one, "grads")) == 0) return;
  out->gradients.verdict = AOTH_CASE_PASSED;
  run_part(&r, &out->gradients, run_gradients);
}

/* ---- with changed arguments ---- */

static void run_mutant(run_state_t *r) {
  const aoth_tensor_t *tangents[MAX_TANGENTS] = {0};
  const int with_grad = json_object_size(json_object_get(r->one, "grads")) > 0 && aoth_random_below(r->random, 2);
  if (!build(r, with_grad) || !with_grad || aoth_step_n_outputs(r->step) > MAX_TANGENTS) return;
  if (aoth_step_backward(r->step, tangents, aoth_step_n_outputs(r->step)) != AOT_OK) failed_as_told(r, AOTH_CASE_RUN);
}

static int end_of(const run_state_t *r, const aoth_case_part_t *part) {
  if (r->is_large) return AOTH_MUTANT_LARGE;
  if (part->verdict == AOTH_CASE_PASSED) return AOTH_MUTANT_RAN;
  return strstr(part->why, "contract violation by") || strstr(part->why, "failed without a diagnostic")
             ? AOTH_MUTANT_BAD
             : AOTH_MUTANT_REFUSED;
}

void aoth_op_cases_run_mutant(const aoth_op_cases_t *c, uint32_t i, uint64_t seed, uint32_t number, aoth_session_t *s,
                              const aoth_case_stages_t *stages, FILE *program, aoth_mutant_t *out) {
  aoth_random_t random;
  aoth_case_part_t part = {.verdict = AOTH_CASE_PASSED};
  aoth_random_seed(&random, seed * KIT_GOLDEN + ((uint64_t)i << 32) + number);
  run_state_t r = {.cases = c, .s = s, .stages = stages, .random = &random, .told = program};
  r.one = aoth_case_mutate(json_array_get(c->cases, i), c->data, number, &random);
  *out = (aoth_mutant_t){.end = AOTH_MUTANT_BAD, .why = "no memory"};
  if (!r.one) return;
  snprintf(out->id, sizeof out->id, "%s", json_string_value(json_object_get(r.one, "id")));
  if (program) fprintf(program, "; %s\n", out->id);
  run_part(&r, &part, run_mutant);
  out->end = end_of(&r, &part);
  snprintf(out->why, sizeof out->why, "%s", part.why);
  for (uint32_t k = 0; k < AOTH_CASE_TENSORS; k++) free(r.copies[k]);
  json_decref(r.one);
}
