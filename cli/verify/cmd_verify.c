/* aothost verify: one step of a compiled model against recorded results, key by key. */
#include <cli/base/commands.h>
#include <cli/run/run_report.h>

#include <cli/base/compile_report.h>
#include <aot/inline.h>
#include "kit/base/text.h"
#include <jansson.h>
#include <math.h>
#include <compiler/compile.h>
#include <step/api.h>
#include <cli/verify/backend_shares.h>
#include <cli/verify/expect.h>
#include <cli/verify/tolerance.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <trainer/tensors/step_file.h>

typedef struct verify {
  const char *model, *inputs, *rtol_text, *atol_text, *against;
  aoth_texts_t expects;
  double rtol, atol;
  uint32_t n_rows, n_ok, n_noise,
      n_unjudged; /* noise: differs by rounding; unjudged: differs, and --against cannot say */
  json_t *rows;   /* of --json */
  aoth_backend_shares_t backends;
  int quiet;
} verify_t;

static int read_tolerance(const aoth_cli_t *cli, const char *flag, const char *text, double *out) {
  char *end;
  if (!text) return 1;
  *out = strtod(text, &end);
  if (*text && !*end && *out >= 0 && isfinite(*out)) return 1;
  aoth_sink_report(cli->sink, AOT_SEVERITY_ERROR, NULL, "cli.number", "%s takes a number of at least 0, not \"%s\"",
                   flag, text);
  return 0;
}

/* ---- one row ---- */

/* It differs by numbers, and the float64 results cannot say whether by noise. */
static int is_unjudged(const aoth_expect_row_t *r) {
  return !r->ok && r->noise.why && r->compare.same_type && isfinite(r->compare.max_abs);
}

static const char *verdict(const aoth_expect_row_t *r) {
  if (r->compare.ok) return "ok";
  if (r->ok) return "noise";
  if (!r->got.dtype) return "missing";
  if (r->got.dtype != r->wanted.dtype) return "dtype";
  if (is_unjudged(r)) return "not judged";
  return r->compare.same_type ? "differs" : "shape";
}

static void print_row(const aoth_expect_row_t *r, int against) {
  kit_text_t shape = {0}, got = {0};
  const aoth_compare_t *c = &r->compare;
  aoth_tensor_print_shape(&r->wanted, &shape);
  aoth_tensor_print_shape(&r->got, &got);
  printf("%-44s %-22s", r->key, shape.data ? shape.data : "");
  if (c->same_type) printf(" %10.3g %10.3g %10.3g", c->max_abs, c->max_rel, c->rel_l2);
  else printf(" %10s %10s %10s", "-", "-", "-");
  if (against && r->noise.has_distances) printf(" %10.3g %10.3g", r->noise.off, r->noise.wanted_off);
  else if (against) printf(" %10s %10s", "-", "-");
  printf("  %s", verdict(r));
  if (c->same_type && !c->ok)
    printf(": %s%s%lld element%s, first at %lld: %.9g, expected %.9g", is_unjudged(r) ? r->noise.why : "",
           is_unjudged(r) ? "; " : "", (long long)c->n_bad, c->n_bad == 1 ? "" : "s", (long long)c->first_bad, c->got,
           c->wanted);
  else if (r->got.dtype && !c->same_type) printf(": got %s", got.data ? got.data : "");
  printf("\n");
  kit_text_deinit(&shape);
  kit_text_deinit(&got);
}

static json_t *number_or_null(double d) { return isfinite(d) ? json_real(d) : json_null(); }

static json_t *sizes_json(const aoth_tensor_t *t) {
  json_t *list = json_array();
  for (int32_t d = 0; d < t->rank; d++) json_array_append_new(list, json_integer(t->sizes[d]));
  return list;
}

static json_t *row_json(const aoth_expect_row_t *r, const char *file) {
  json_t *o = json_object();
  json_object_set_new(o, "file", json_string(file));
  json_object_set_new(o, "key", json_string(r->key));
  json_object_set_new(o, "ok", json_boolean(r->ok));
  json_object_set_new(o, "verdict", json_string(verdict(r)));
  json_object_set_new(o, "dtype", json_string(aot_dtype_name(r->wanted.dtype)));
  json_object_set_new(o, "shape", sizes_json(&r->wanted));
  json_object_set_new(o, "max_abs", r->compare.same_type ? number_or_null(r->compare.max_abs) : json_null());
  json_object_set_new(o, "max_rel", r->compare.same_type ? number_or_null(r->compare.max_rel) : json_null());
  json_object_set_new(o, "rel_l2", r->compare.same_type ? number_or_null(r->compare.rel_l2) : json_null());
  json_object_set_new(o, "f64_off", r->noise.has_distances ? number_or_null(r->noise.off) : json_null());
  json_object_set_new(o, "expected_f64_off",
                      r->noise.has_distances ? number_or_null(r->noise.wanted_off) : json_null());
  json_object_set_new(o, "why_not_judged", is_unjudged(r) ? json_string(r->noise.why) : json_null());
  json_object_set_new(o, "n_bad", json_integer(r->compare.n_bad));
  return o;
}

/* ---- one file ---- */

/* Rows that fail come first. */
static void add_rows(verify_t *v, const aoth_expect_t *e, const char *path) {
  for (int ok = 0; ok < 2; ok++) {
    for (uint32_t i = 0; i < e->n; i++) {
      if (e->rows[i].ok != ok) continue;
      if (!v->quiet) print_row(&e->rows[i], v->against != NULL);
      json_array_append_new(v->rows, row_json(&e->rows[i], path));
      v->n_noise += (uint32_t)(ok && !e->rows[i].compare.ok);
      v->n_unjudged += (uint32_t)is_unjudged(&e->rows[i]);
    }
  }
}

/* The coarsest rounding of what the program computes in. */
static double coarsest_rounding(aot_prog_t *p) {
  double most = 0;
  for (uint32_t k = 1; k < aoth_graph_n_values(p); k++) {
    aot_type_t t;
    if (aoth_graph_value_type(p, (aot_value_t){k}, &t) != AOT_OK || t.kind != AOT_TYPE_TENSOR) continue;
    if (aot_dtype_is_float(t.dtype)) most = fmax(most, aoth_rounding(t.dtype));
  }
  return most;
}

/* The files of one comparison. records: of the float64 step; NULL: there are none. */
typedef struct files {
  aoth_st_t *expected, *inputs, *records;
  int is_of_expectation; /* records are next to the expectation file, not in addition to that of the inputs */
} files_t;

static aot_status_t open_records(const verify_t *v, aoth_cli_t *cli, const char *expectation, files_t *f) {
  const char *const beside[] = {expectation, v->inputs};
  f->is_of_expectation = 1;
  if (strcmp(v->against, "f64") != 0) return aoth_st_open(v->against, cli->sink, &f->records);
  for (int i = 0; i < 2 && beside[i] && !f->records; i++) {
    kit_text_t path = {0};
    aoth_noise_path(beside[i], &path);
    aot_status_t status = path.data ? AOT_OK : AOT_E_EXHAUSTED;
    if (status == AOT_OK && access(path.data, F_OK) == 0) status = aoth_st_open(path.data, cli->sink, &f->records);
    f->is_of_expectation = i == 0;
    kit_text_deinit(&path);
    AOT_TRY(status);
  }
  if (f->records) return AOT_OK;
  const aoth_where_t where = {.file = expectation};
  aoth_sink_report(cli->sink, AOT_SEVERITY_WARNING, &where, "verify.not-judged",
                   "there are no float64 results beside it (*.f64.safetensors), so what differs is not judged; "
                   "tools/export_model.py writes them, tools/float64_records.py for an archive that exists");
  return AOT_OK;
}

static aot_status_t open_files(const verify_t *v, aoth_cli_t *cli, const char *path, files_t *f) {
  AOT_TRY(aoth_st_open(path, cli->sink, &f->expected));
  if (v->inputs) AOT_TRY(aoth_st_open(v->inputs, cli->sink, &f->inputs));
  if (v->against) AOT_TRY(open_records(v, cli, path, f));
  return f->records ? aoth_noise_check_inputs(f->records, f->inputs ? f->inputs : f->expected, cli->sink) : AOT_OK;
}

static void close_files(const files_t *f) {
  aoth_st_close(f->records);
  aoth_st_close(f->inputs);
  aoth_st_close(f->expected);
}

/* Without records every row that differs is unjudged. */
static void leave_unjudged(aoth_expect_t *e) {
  for (uint32_t i = 0; i < e->n; i++) e->rows[i].noise.why = "there are no float64 results";
}

static aot_status_t verify_file(verify_t *v, aothost_t *h, aoth_cli_t *cli, const char *path) {
  files_t f = {0};
  aoth_expect_t e = {0};
  aoth_noise_judge_t judge;
  aot_status_t status = open_files(v, cli, path, &f);
  if (status == AOT_OK && f.records)
    judge = aoth_noise_judge(f.records, f.is_of_expectation, coarsest_rounding(aoth_session_prog(cli->session)));
  if (status == AOT_OK)
    status = aoth_expect_judged(aoth_api_step(h), f.records ? &judge : NULL, f.inputs ? f.inputs : f.expected,
                                f.expected, v->rtol, v->atol, cli->sink, &e);
  if (status == AOT_OK) {
    if (v->against && !f.records) leave_unjudged(&e);
    if (!v->quiet) {
      printf("%s\n%-44s %-22s %10s %10s %10s", path, "key", "expected", "max abs", "max rel", "rel L2");
      printf(v->against ? " %10s %10s\n" : "\n", "from f64", "expected's");
    }
    add_rows(v, &e, path);
    v->n_rows += e.n;
    v->n_ok += e.n_ok;
  }
  aoth_expect_deinit(&e);
  close_files(&f);
  return status;
}

static aot_status_t run(verify_t *v, aoth_cli_t *cli, aothost_t *h, const aoth_pipeline_t *pipeline) {
  AOT_TRY(aothost_compile(h, 0));
  aoth_backend_shares(cli->session, pipeline, &v->backends);
  if (cli->common.verbose && !v->quiet) aoth_cache_print(cli->session, stdout);
  for (uint32_t i = 0; i < v->expects.n; i++) AOT_TRY(verify_file(v, h, cli, v->expects.items[i]));
  return AOT_OK;
}

/* Recorded numbers of a model that draws are those of another generator. */
static void tell_of_draws(const verify_t *v, aothost_t *h) {
  if (v->n_ok != v->n_rows && aoth_step_offset(aoth_api_step(h)) != 0)
    printf("the program draws random numbers: what depends on them is not what was recorded with other numbers\n");
}

/* A comparison in which the backend that the pipeline prefers runs nothing says nothing about it. */
static void report_backends(const verify_t *v, aoth_cli_t *cli) {
  if (!v->quiet) aoth_backend_shares_print(&v->backends, cli->common.verbose != 0, stdout);
  if (!aoth_backend_is_idle(&v->backends)) return;
  aoth_sink_report(cli->sink, AOT_SEVERITY_ERROR, NULL, "verify.idle-backend",
                   "backend %s runs no node, so nothing of it was verified (-v: why it leaves them to the others)",
                   v->backends.at[0].backend);
}

static aot_status_t write_json(const verify_t *v, aoth_cli_t *cli, aoth_session_t *session, aothost_t *h,
                               const aoth_pipeline_t *pipeline) {
  json_t *o = json_object();
  json_object_set_new(o, "command", json_string("verify"));
  json_object_set_new(o, "pipeline", json_string(cli->positional[0]));
  json_object_set_new(o, "model", pipeline->model_path ? json_string(pipeline->model_path) : json_null());
  json_object_set_new(o, "rtol", json_real(v->rtol));
  json_object_set_new(o, "atol", json_real(v->atol));
  json_object_set_new(o, "against", v->against ? json_string(v->against) : json_null());
  json_object_set_new(o, "ok", json_boolean(v->n_ok == v->n_rows && !aoth_backend_is_idle(&v->backends)));
  json_object_set_new(o, "n_keys", json_integer(v->n_rows));
  json_object_set_new(o, "n_ok", json_integer(v->n_ok));
  json_object_set_new(o, "n_noise", json_integer(v->n_noise));
  json_object_set_new(o, "n_not_judged", json_integer(v->n_unjudged));
  json_object_set(o, "keys", v->rows);
  json_t *backends = aoth_backend_shares_json(&v->backends);
  json_object_set_new(o, "backends", backends ? backends : json_null());
  json_object_set_new(o, "stages", aoth_records_json(session));
  json_object_set_new(o, "cache", aoth_cache_json(session));
  json_object_set_new(o, "alias_patterns", aoth_patterns_json(aoth_api_step(h)));
  aot_status_t status = aoth_cli_json(cli, o);
  json_decref(o);
  return status;
}

static int main_with(verify_t *v, aoth_cli_t *cli) {
  aoth_overrides_t overrides = {.model = v->model};
  aoth_pipeline_t *pipeline = NULL;
  aoth_session_t *session = aoth_cli_session(cli);
  if (!session) return AOTH_EXIT_INPUT;
  aot_status_t status = aoth_cli_pipeline(cli, cli->positional[0], &overrides, &pipeline);
  aothost_t *h = status == AOT_OK ? aoth_api_wrap(session, pipeline, aoth_step_save_call) : NULL;
  if (status == AOT_OK) status = h ? run(v, cli, h, pipeline) : AOT_E_EXHAUSTED;
  if (status == AOT_OK && !v->quiet)
    printf("%u of %u keys agree (rtol %g, atol %g)\n", v->n_ok, v->n_rows, v->rtol, v->atol);
  if (status == AOT_OK && !v->quiet && v->n_noise)
    printf("%u of them differ by noise: about as far from PyTorch's float64 as its own numbers are\n", v->n_noise);
  if (status == AOT_OK && !v->quiet && v->n_unjudged) printf("%u that differ are not judged\n", v->n_unjudged);
  if (status == AOT_OK && !v->quiet) tell_of_draws(v, h);
  if (status == AOT_OK) report_backends(v, cli);
  if (status == AOT_OK) status = write_json(v, cli, session, h, pipeline);
  aothost_close(h);
  aoth_pipeline_destroy(pipeline);
  if (status != AOT_OK) return aoth_exit_code(status);
  return v->n_ok == v->n_rows && !aoth_backend_is_idle(&v->backends) ? AOTH_EXIT_OK : AOTH_EXIT_DIFFERS;
}

static int verify_main(const aoth_command_t *self, int argc, char **argv) {
  verify_t v = {.rtol = 1e-4, .atol = 1e-5};
  aoth_cli_t cli;
  const aoth_flag_t flags[] = {
      {.name = "--model", .value = "F", .help = "model file instead of the pipeline's", .text = &v.model},
      {.name = "--expect", .value = "E", .help = "expectation file; may be given several times", .list = &v.expects},
      {.name = "--inputs", .value = "F", .help = "inputs and tangents of this file, not of E", .text = &v.inputs},
      {.name = "--no-cache", .help = "compile anew, and keep nothing", .set = &cli.common.no_cache},
      {.name = "--rtol", .value = "R", .help = "relative tolerance, 1e-4", .text = &v.rtol_text},
      {
          .name = "--against",
          .value = "f64|F",
          .help = "judge what differs by PyTorch's float64 results: beside E, or F",
          .text = &v.against,
      },
      {.name = "--atol", .value = "A", .help = "absolute tolerance, 1e-5", .text = &v.atol_text},
  };
  int code = aoth_cli_init(&cli, self, argc, argv, flags, sizeof flags / sizeof flags[0], 1, 1);
  if (code == AOTH_CLI_GO && v.expects.n == 0) {
    aoth_sink_report(cli.sink, AOT_SEVERITY_ERROR, NULL, "cli.missing",
                     "verify needs an expectation file: --expect E.safetensors");
    code = AOTH_EXIT_INPUT;
  }
  if (code == AOTH_CLI_GO &&
      !(read_tolerance(&cli, "--rtol", v.rtol_text, &v.rtol) && read_tolerance(&cli, "--atol", v.atol_text, &v.atol)))
    code = AOTH_EXIT_INPUT;
  if (code == AOTH_CLI_GO && v.against && strcmp(v.against, "f64") != 0 && access(v.against, R_OK) != 0) {
    aoth_sink_report(cli.sink, AOT_SEVERITY_ERROR, NULL, "cli.against",
                     "--against takes f64 or a file of float64 results; there is no file \"%s\"", v.against);
    code = AOTH_EXIT_INPUT;
  }
  v.rows = json_array();
  v.quiet = cli.common.quiet || (cli.common.json_path && strcmp(cli.common.json_path, "-") == 0);
  if (code == AOTH_CLI_GO) code = main_with(&v, &cli);
  json_decref(v.rows);
  free(v.expects.items);
  return aoth_cli_deinit(&cli, code);
}

const aoth_command_t aoth_cmd_verify = {
    .name = "verify",
    .usage = "verify PIPELINE --expect E.safetensors [--model F] [--inputs F] [--rtol R] [--atol A] [--against f64|F] "
             "[options]",
    .summary = "compare outputs, gradients and buffers of one forward/backward with recorded values",
    .text =
        "Compiles the model, feeds the inputs of an expectation file, runs forward and (when the file has\n"
        "tangents or gradients) backward, and compares every recorded result: output.K, input_after.K,\n"
        "grad.NAME, grad.input.K, buffer_after.NAME. A number agrees when |a - b| <= atol + rtol * |b|;\n"
        "integers must be equal. One row a key, those that fail first, with the relative L2 of the difference;\n"
        "status 1 when a key is missing, has another shape or dtype, or differs.\n"
        "\n"
        "--against f64 judges a row that differs by what PyTorch computed in float64, which is recorded beside the\n"
        "expectation file (E.f64.safetensors, by tools/export_model.py). It is noise if neither ours nor the\n"
        "recorded numbers are more than 4 times as far from float64 as PyTorch's own runs; the last two columns,\n"
        "relative L2, are how far both are. Without such a record it is not judged: status 1.\n"
        "\n"
        "  aothost verify pipelines/verify.yaml --model mlp/train.pt2 --expect mlp/expected.safetensors\n"
        "\n"
        "One backend against another, here in bfloat16 (a pipeline with the stage autocast):\n"
        "\n"
        "  aothost run p.yaml --inputs in.safetensors --grads --outputs ref.safetensors\n"
        "  aothost verify p.yaml --set vars.backend=mine --inputs in.safetensors --expect ref.safetensors "
        "--against f64\n",
    .main = verify_main,
};
