/* aothost verify: one step of a compiled model against recorded results, key by key. */
#include <commands/commands.h>
#include <tools/run_report.h>

#include <aot/inline.h>
#include <base/text.h>
#include <jansson.h>
#include <math.h>
#include <pipeline/compile.h>
#include <step/api.h>
#include <tools/expect.h>
#include <tools/widen.h>
#include <stdlib.h>
#include <string.h>

typedef struct verify {
  const char *model, *inputs, *rtol_text, *atol_text, *against;
  aoth_texts_t expects;
  double rtol, atol;
  uint32_t n_rows, n_ok, n_noise; /* noise: differs, and is no clearly further from float64 */
  json_t *rows;                   /* of --json */
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

static const char *verdict(const aoth_expect_row_t *r) {
  if (r->compare.ok) return "ok";
  if (r->ok) return "noise";
  if (!r->got.dtype) return "missing";
  if (r->got.dtype != r->wanted.dtype) return "dtype";
  return r->compare.same_type ? "differs" : "shape";
}

static void print_row(const aoth_expect_row_t *r, int against) {
  aoth_text_t shape = {0}, got = {0};
  const aoth_compare_t *c = &r->compare;
  aoth_tensor_print_shape(&r->wanted, &shape);
  aoth_tensor_print_shape(&r->got, &got);
  printf("%-44s %-22s", r->key, shape.data ? shape.data : "");
  if (c->same_type) printf(" %10.3g %10.3g %10.3g", c->max_abs, c->max_rel, c->rel_l2);
  else printf(" %10s %10s %10s", "-", "-", "-");
  if (against && r->has_reference) printf(" %10.3g %10.3g", r->off, r->wanted_off);
  else if (against) printf(" %10s %10s", "-", "-");
  printf("  %s", verdict(r));
  if (c->same_type && !c->ok)
    printf(": %lld element%s, first at %lld: %.9g, expected %.9g", (long long)c->n_bad, c->n_bad == 1 ? "" : "s",
           (long long)c->first_bad, c->got, c->wanted);
  else if (r->got.dtype && !c->same_type) printf(": got %s", got.data ? got.data : "");
  printf("\n");
  aoth_text_deinit(&shape);
  aoth_text_deinit(&got);
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
  json_object_set_new(o, "f64_off", r->has_reference ? number_or_null(r->off) : json_null());
  json_object_set_new(o, "expected_f64_off", r->has_reference ? number_or_null(r->wanted_off) : json_null());
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
    }
  }
}

/* reference: of the same program in float64; NULL: none. */
static aot_status_t verify_file(verify_t *v, aothost_t *h, aothost_t *reference, aoth_cli_t *cli, const char *path) {
  aoth_st_t *file = NULL, *inputs = NULL;
  aoth_expect_t e = {0};
  aot_status_t status = aoth_st_open(path, cli->sink, &file);
  if (status == AOT_OK && v->inputs) status = aoth_st_open(v->inputs, cli->sink, &inputs);
  if (status == AOT_OK)
    status = aoth_expect_against(aoth_api_step(h), reference ? aoth_api_step(reference) : NULL, inputs ? inputs : file,
                                 file, v->rtol, v->atol, cli->sink, &e);
  if (status == AOT_OK) {
    if (!v->quiet) {
      printf("%s\n%-44s %-22s %10s %10s %10s", path, "key", "expected", "max abs", "max rel", "rel L2");
      printf(v->against ? " %10s %10s\n" : "\n", "from f64", "expected's");
    }
    add_rows(v, &e, path);
    v->n_rows += e.n;
    v->n_ok += e.n_ok;
  }
  aoth_expect_deinit(&e);
  aoth_st_close(inputs);
  aoth_st_close(file);
  return status;
}

static aot_status_t run(verify_t *v, aoth_cli_t *cli, aothost_t *h, aothost_t *reference) {
  AOT_TRY(aothost_compile(h, 0));
  if (reference) AOT_TRY(aothost_compile(reference, 0));
  if (cli->common.verbose && !v->quiet) aoth_cache_print(cli->session, stdout);
  for (uint32_t i = 0; i < v->expects.n; i++) AOT_TRY(verify_file(v, h, reference, cli, v->expects.items[i]));
  return AOT_OK;
}

/* ---- the same in float64 ---- */

#define REFERENCE_BACKEND "backend-ref"

typedef struct reference {
  aoth_session_t *session;
  aoth_pipeline_t *pipeline;
  aothost_t *h;
} reference_t;

/* The pipeline's stages, the last of which is the backend, over the program in float64, on the host. */
static aot_status_t open_reference(const verify_t *v, aoth_cli_t *cli, reference_t *r) {
  const aoth_common_t *c = &cli->common;
  const aoth_session_config_t config = {
      .sink = cli->sink,
      .plugin_dirs = c->plugin_dirs.items,
      .n_plugin_dirs = c->plugin_dirs.n,
      .no_cache = 1,
      .prepare = aoth_widen,
  };
  aoth_overrides_t overrides = {.model = v->model, .sets = c->sets.items, .n_sets = c->sets.n};
  r->session = aoth_session_create(&config);
  if (!r->session) return AOT_E_EXHAUSTED;
  AOT_TRY(aoth_pipeline_load(cli->positional[0], &overrides, cli->sink, &r->pipeline));
  if (r->pipeline->n_stages) {
    aoth_stage_t *backend = &r->pipeline->stages[r->pipeline->n_stages - 1];
    backend->use = backend->name = REFERENCE_BACKEND;
    backend->with = NULL;
    backend->device = NULL;
  }
  r->pipeline->run.device = (aoth_stage_t){.use = NULL};
  AOT_TRY(aoth_pipeline_check(r->session, r->pipeline));
  r->h = aoth_api_wrap(r->session, r->pipeline);
  return r->h ? AOT_OK : AOT_E_EXHAUSTED;
}

static void close_reference(reference_t *r) {
  aothost_close(r->h);
  aoth_pipeline_destroy(r->pipeline);
  aoth_session_destroy(r->session);
}

/* Recorded numbers of a model that draws are those of another generator. */
static void tell_of_draws(const verify_t *v, aothost_t *h) {
  if (v->n_ok != v->n_rows && aoth_step_offset(aoth_api_step(h)) != 0)
    printf("the program draws random numbers: what depends on them is not what was recorded with other numbers\n");
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
  json_object_set_new(o, "ok", json_boolean(v->n_ok == v->n_rows));
  json_object_set_new(o, "n_keys", json_integer(v->n_rows));
  json_object_set_new(o, "n_ok", json_integer(v->n_ok));
  json_object_set_new(o, "n_noise", json_integer(v->n_noise));
  json_object_set(o, "keys", v->rows);
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
  reference_t reference = {0};
  aoth_session_t *session = aoth_cli_session(cli);
  if (!session) return AOTH_EXIT_INPUT;
  aot_status_t status = aoth_cli_pipeline(cli, cli->positional[0], &overrides, &pipeline);
  aothost_t *h = status == AOT_OK ? aoth_api_wrap(session, pipeline) : NULL;
  if (status == AOT_OK && v->against) status = open_reference(v, cli, &reference);
  if (status == AOT_OK) status = h ? run(v, cli, h, reference.h) : AOT_E_EXHAUSTED;
  if (status == AOT_OK && !v->quiet)
    printf("%u of %u keys agree (rtol %g, atol %g)\n", v->n_ok, v->n_rows, v->rtol, v->atol);
  if (status == AOT_OK && !v->quiet && v->n_noise)
    printf("%u of them differ by noise: no more than %d times as far from the float64 run as what was recorded\n",
           v->n_noise, AOTH_CLEARLY_FURTHER);
  if (status == AOT_OK && !v->quiet) tell_of_draws(v, h);
  if (status == AOT_OK) status = write_json(v, cli, session, h, pipeline);
  close_reference(&reference);
  aothost_close(h);
  aoth_pipeline_destroy(pipeline);
  if (status != AOT_OK) return aoth_exit_code(status);
  return v->n_ok == v->n_rows ? AOTH_EXIT_OK : AOTH_EXIT_DIFFERS;
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
          .value = "f64",
          .help = "judge what differs by a run in float64 on backend-ref",
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
  if (code == AOTH_CLI_GO && v.against && strcmp(v.against, "f64") != 0) {
    aoth_sink_report(cli.sink, AOT_SEVERITY_ERROR, NULL, "cli.against", "--against takes f64, not \"%s\"", v.against);
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
    .usage = "verify PIPELINE --expect E.safetensors [--model F] [--inputs F] [--rtol R] [--atol A] [--against f64] "
             "[options]",
    .summary = "run one step and compare it with recorded results",
    .text = "Compiles the model, feeds the inputs of an expectation file, runs forward and (when the file has\n"
            "tangents or gradients) backward, and compares every recorded result: output.K, input_after.K,\n"
            "grad.NAME, grad.input.K, buffer_after.NAME. A number agrees when |a - b| <= atol + rtol * |b|;\n"
            "integers must be equal. One row a key, those that fail first, with the relative L2 of the difference;\n"
            "status 1 when a key is missing, has another shape or dtype, or differs.\n"
            "\n"
            "--against f64 runs the same program with every floating type as float64 on backend-ref, too. A row that\n"
            "differs then fails only if it is clearly further from that than what was recorded (4 times, counted\n"
            "from the dtype's rounding): the last two columns, relative L2. Others are noise.\n"
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
