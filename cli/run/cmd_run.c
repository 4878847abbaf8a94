/* aothost run: compile the pipeline's model and train it, or call it once. */
#include <cli/base/commands.h>
#include <cli/run/check_stages.h>
#include <cli/base/html_page.h>
#include <cli/run/run_memory.h>
#include <cli/run/run_report.h>

#include <compiler/run_ranks.h>
#include <step/api.h>
#include <trainer/oneshot.h>
#include <trainer/writable.h>
#include <stdlib.h>
#include <string.h>
#include <trainer/tensors/step_file.h>

typedef struct run_flags {
  const char *model, *inputs, *outputs, *seed, *profile_page;
  int grads, profile, check_stages, check_nan;
} run_flags_t;

static aot_status_t train(aoth_run_t *r) {
  const aoth_train_spec_t *t = &r->pipeline->run.train;
  const aoth_feed_ranks_t ranks = {aoth_session_rank(r->session), aoth_session_n_ranks(r->session),
                                   aoth_session_first_draw(r->session)};
  aot_status_t status = aoth_train(r->step, aoth_session_prog(r->session), t, &ranks, r->session, r->out, r->cli->sink,
                                   r->cli->trace, &r->train);
  r->trained = status == AOT_OK;
  return status;
}

static aot_status_t call_once(aoth_run_t *r, int grads) {
  const aoth_run_spec_t *spec = &r->pipeline->run;
  AOT_TRY(aoth_oneshot_run(r->step, aoth_session_prog(r->session), spec, grads, r->cli->sink));
  r->called = 1;
  return spec->outputs ? aoth_oneshot_write(r->step, spec->outputs, r->cli->sink) : AOT_OK;
}

/* What would otherwise be found out after hours of training. */
static aot_status_t check_first(const aoth_run_t *r, const run_flags_t *flags) {
  const aoth_run_spec_t *spec = &r->pipeline->run;
  AOT_TRY(aoth_check_writable(spec->outputs, "the outputs", &spec->where_outputs, r->cli->sink));
  AOT_TRY(aoth_check_writable(flags->profile_page, "the profile", NULL, r->cli->sink));
  if (!spec->train.present || !(spec->outputs || flags->grads) || spec->inputs.kind != AOTH_DATA_NONE) return AOT_OK;
  aoth_sink_report(
      r->cli->sink, AOT_SEVERITY_ERROR, spec->where_outputs.line ? &spec->where_outputs : &spec->where, "run.inputs",
      "the call after training has no inputs; name them: --inputs FILE.safetensors, or 'inputs:' in the run section");
  return AOT_E_INVALID;
}

/* The first rank speaks for all of them. */
static aot_status_t take_rank(aoth_run_t *r, int is_called) {
  if (aoth_session_n_ranks(r->session) == 1) return AOT_OK;
  if (aoth_session_rank(r->session)) r->out = NULL;
  if (!is_called) return AOT_OK;
  aoth_sink_report(r->cli->sink, AOT_SEVERITY_ERROR, &r->pipeline->run.ranks.where, "run.ranks",
                   "several ranks run this, which train; a call's outputs and gradients are those of one rank");
  return AOT_E_UNIMPLEMENTED;
}

static aot_status_t begin_checks(aoth_run_t *r) {
  if (!r->pipeline->run.ranks.unit) return aoth_stage_checks_begin(r->checks, r->session, &r->pipeline->run);
  aoth_sink_report(r->cli->sink, AOT_SEVERITY_ERROR, &r->pipeline->run.ranks.where, "run.check-stages",
                   "--check-stages runs programs on one rank; leave run.ranks out");
  return AOT_E_UNIMPLEMENTED;
}

static aot_status_t check_compiled(aoth_run_t *r) {
  const aoth_pipeline_t *p = r->pipeline;
  AOT_TRY(aoth_stage_checks_step(r->checks, r->step, p->stages[p->n_stages - 1].name));
  if (r->out) aoth_stage_checks_print(r->checks, r->out);
  return AOT_OK;
}

/* Training, and after it one call when the file requests outputs; without training one call. */
static aot_status_t run(aoth_run_t *r, aothost_t *h, const run_flags_t *flags) {
  const aoth_run_spec_t *spec = &r->pipeline->run;
  AOT_TRY(check_first(r, flags));
  if (r->checks) AOT_TRY(begin_checks(r));
  /* a call after the training wants its forward */
  const uint32_t step = spec->outputs || flags->grads ? 0 : AOTHOST_STEP;
  AOT_TRY(aothost_compile(h, spec->train.present ? AOTHOST_OPTIMIZER | step : 0));
  r->step = aoth_api_step(h);
  AOT_TRY(take_rank(r, step == 0));
  aoth_run_print_stages(r);
  if (r->checks) AOT_TRY(check_compiled(r));
  if (flags->check_nan) AOT_TRY(aoth_session_check_nan(r->session));
  if (flags->profile) AOT_TRY(aoth_session_profile_start(r->session));
  if (spec->train.present) AOT_TRY(train(r));
  if (r->train.diverged || r->train.interrupted) return AOT_OK;
  if (!spec->train.present || spec->outputs || flags->grads) AOT_TRY(call_once(r, flags->grads));
  return AOT_OK;
}

static aot_status_t write_page(const aoth_run_t *r, const run_flags_t *flags) {
  kit_text_t page = {0};
  if (!flags->profile_page) return AOT_OK;
  aot_status_t status = aoth_profile_html(r->profile, r->cli->positional[0], &page);
  if (status == AOT_OK) status = aoth_page_write(&page, flags->profile_page, r->cli->sink);
  kit_text_deinit(&page);
  return status;
}

static int main_with(aoth_cli_t *cli, const run_flags_t *flags) {
  aoth_overrides_t overrides = {
      .model = flags->model,
      .inputs = flags->inputs,
      .outputs = flags->outputs,
      .seed = flags->seed,
  };
  aoth_stage_checks_t checks;
  aoth_run_t r = {.cli = cli, .checks = flags->check_stages ? &checks : NULL};
  aoth_pipeline_t *pipeline = NULL;
  aoth_profile_view_t profile;
  kit_arena_t *arena = flags->profile ? kit_arena_create() : NULL;
  int json_on_stdout = cli->common.json_path && strcmp(cli->common.json_path, "-") == 0;
  r.out = cli->common.quiet ? NULL : json_on_stdout ? stderr : stdout;
  aoth_stage_checks_init(&checks);
  if (r.checks) cli->watch = &checks.watch;
  r.session = aoth_cli_session(cli);
  if (!r.session) return AOTH_EXIT_INPUT;
  aot_status_t status = aoth_cli_pipeline(cli, cli->positional[0], &overrides, &pipeline);
  r.pipeline = pipeline;
  aothost_t *h = status == AOT_OK ? aoth_api_wrap(r.session, pipeline, aoth_step_save_call) : NULL;
  if (status == AOT_OK) status = h ? run(&r, h, flags) : AOT_E_EXHAUSTED;
  if (status == AOT_OK && flags->profile)
    status = arena ? aoth_profile_read(r.session, arena, &profile) : AOT_E_EXHAUSTED;
  if (status == AOT_OK && flags->profile) {
    r.profile = &profile;
    aoth_profile_trace(&profile, cli->trace);
    status = write_page(&r, flags);
  }
  if (status == AOT_OK) aoth_run_hear_ranks(&r);
  if (status == AOT_OK) aoth_run_print_summary(&r);
  if (status == AOT_OK) status = aoth_run_write_json(&r);
  if (status == AOT_E_EXHAUSTED) aoth_run_tell_memory(&r);
  if (status != AOT_OK) aoth_session_give_up(r.session);
  free(r.ranks);
  int diverged = r.train.diverged;
  aoth_train_deinit(&r.train);
  aoth_stage_checks_deinit(&checks);
  kit_arena_destroy(arena);
  aothost_close(h);
  aoth_pipeline_destroy(pipeline);
  return status != AOT_OK ? aoth_exit_code(status) : diverged ? AOTH_EXIT_DIFFERS : AOTH_EXIT_OK;
}

static int run_main(const aoth_command_t *self, int argc, char **argv) {
  run_flags_t flags = {0};
  aoth_cli_t cli;
  /* clang-format off */
  const aoth_flag_t rows[] = {
      {.name = "--model", .value = "F", .help = "model file instead of the pipeline's", .text = &flags.model},
      {.name = "--inputs", .value = "F", .help = "inputs of a single call (input.0, input.1, ..), or 'random'",
       .text = &flags.inputs},
      {.name = "--outputs", .value = "F", .help = "write the results of a single call to F (safetensors)",
       .text = &flags.outputs, .writes = 1},
      {.name = "--seed", .value = "N", .help = "seed of data order, random inputs and random operators (default: the pipeline's)",
       .text = &flags.seed},
      {.name = "--no-cache", .help = "bypass the compile cache: no lookup, no store", .set = &cli.common.no_cache},
      {.name = "--profile", .value = "[F.html]", .ending = ".html", .text = &flags.profile_page, .writes = 1, .set = &flags.profile,
       .help = "bypass the cache and report time by kernel and operator, and the slowest steps; with F.html, also write a page"},
      {.name = "--check-stages", .set = &flags.check_stages,
       .help = "bypass the cache; compare the program before and after each stage on backend-ref; fail if a result changes"},
      {.name = "--check-nan", .set = &flags.check_nan,
       .help = "bypass the cache, run node by node and stop at the first node that produces a NaN or infinity (slow)"},
      {.name = "--grads", .help = "also run the backward and write the gradients", .set = &flags.grads},
  };
  /* clang-format on */
  int code = aoth_cli_init(&cli, self, argc, argv, rows, sizeof rows / sizeof rows[0], 1, 1);
  if (flags.profile || flags.check_stages || flags.check_nan)
    cli.common.no_cache = 1; /* a program out of the cache has no nodes to name */
  if (code == AOTH_CLI_GO) code = main_with(&cli, &flags);
  return aoth_cli_deinit(&cli, code);
}

const aoth_command_t aoth_cmd_run = {
    .name = "run",
    .usage = "run PIPELINE [--model F] [--inputs F] [--outputs F] [--seed N] [--grads] [--profile [F.html]] "
             "[--check-stages] [--check-nan] [options]",
    .summary = "compile a model, then train it or run it once on given inputs",
    .text =
        "Compiles the pipeline's model. With a train section it trains: Ctrl-C (SIGINT, SIGTERM, SIGHUP)\n"
        "finishes the step, saves the checkpoint and stops. Without one, or for --outputs, it calls the model\n"
        "once with the inputs. Status 1 when the loss stops being a number.\n"
        "\n"
        "--check-stages finds the stage that makes results go wrong: after each, the program as it was and as it is\n"
        "runs on backend-ref in a child, on the same inputs (the pipeline's, else made up). A stage that changes a\n"
        "result has failed (status 3), with the first value that differs; --bundle-dir keeps a reproduction.\n"
        "\n"
        "--check-nan finds where a NaN comes from: the node, with its module, whose result holds one that none of its\n"
        "operands held, forward or backward, on the backend and device of the pipeline (status 2).\n"
        "\n"
        "  aothost run pipelines/quickstart.yaml\n"
        "  aothost run pipelines/quickstart.yaml --set run.train.steps=500 --json result.json\n"
        "  aothost run pipelines/quickstart.yaml --set run.train.steps=20 --profile\n"
        "  aothost run pipelines/quickstart.yaml --set run.train.steps=0 --check-stages -v\n"
        "  aothost run pipelines/inference.yaml --model m.pt2 --inputs in.safetensors --outputs out.safetensors\n",
    .main = run_main,
};
