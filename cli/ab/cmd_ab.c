/* aothost ab: plugins next to each other in one stage of a pipeline, on the same program and the same inputs. */
#define _GNU_SOURCE /* nftw */
#include <cli/ab/ab.h>

#include <ftw.h>
#include <math.h>
#include <trainer/interrupt.h>
#include <trainer/writable.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct ab_flags {
  const char *model, *inputs, *stage, *html, *processes, *steps, *warmup, *seed, *rtol, *atol, *timeout;
  aoth_texts_t withs;
} ab_flags_t;

static int usage(const aoth_cli_t *cli, const char *format, const char *a, const char *b) {
  aoth_sink_report(cli->sink, AOT_SEVERITY_ERROR, NULL, "ab.usage", format, a, b);
  return 0;
}

/* ---- numbers ---- */

static int read_integer(const aoth_cli_t *cli, const char *flag, const char *text, int64_t least, int64_t most,
                        int64_t *out) {
  char *end;
  if (!text) return 1;
  const long long i = strtoll(text, &end, 10);
  if (*text && !*end && i >= least && i <= most) {
    *out = i;
    return 1;
  }
  aoth_sink_report(cli->sink, AOT_SEVERITY_ERROR, NULL, "cli.number",
                   "%s takes an integer from %lld to %lld, not \"%s\"", flag, (long long)least, (long long)most, text);
  return 0;
}

static int read_number(const aoth_cli_t *cli, const char *flag, const char *text, double least, double *out) {
  char *end;
  if (!text) return 1;
  const double d = strtod(text, &end);
  if (*text && !*end && d >= least && isfinite(d) && d < 1e9) {
    *out = d;
    return 1;
  }
  aoth_sink_report(cli->sink, AOT_SEVERITY_ERROR, NULL, "cli.number", "%s takes a number of at least %g, not \"%s\"",
                   flag, least, text);
  return 0;
}

static int read_numbers(aoth_ab_t *ab, const ab_flags_t *f) {
  int64_t processes = 4, steps = 10, warmup = 3;
  int ok = read_integer(ab->cli, "--processes", f->processes, 1, AOTH_AB_MOST_PROCESSES, &processes);
  ok &= read_integer(ab->cli, "--steps", f->steps, 1, 1000000, &steps);
  ok &= read_integer(ab->cli, "--warmup", f->warmup, 0, 1000000, &warmup);
  ok &= read_integer(ab->cli, "--seed", f->seed, INT64_MIN, INT64_MAX, &ab->seed);
  ok &= read_number(ab->cli, "--rtol", f->rtol, 0, &ab->rtol);
  ok &= read_number(ab->cli, "--atol", f->atol, 0, &ab->atol);
  ok &= read_number(ab->cli, "--timeout", f->timeout, 0.001, &ab->timeout);
  ab->n_processes = (uint32_t)processes;
  ab->n_steps = (uint32_t)steps;
  ab->n_warmup = (uint32_t)warmup;
  return ok;
}

/* ---- stage and arms ---- */

static int find_stage(aoth_ab_t *ab, const char *wanted) {
  const aoth_pipeline_t *p = ab->pipeline;
  uint32_t n = 0;
  kit_text_t names = {0};
  for (uint32_t i = 0; i < p->n_stages; i++) {
    char number[16];
    snprintf(number, sizeof number, "%u", i + 1);
    kit_text_f(&names, "%s%s", i ? ", " : "", p->stages[i].name);
    if (!wanted) continue;
    if (strcmp(p->stages[i].name, wanted) != 0 && strcmp(p->stages[i].use, wanted) != 0 && strcmp(number, wanted) != 0)
      continue;
    ab->stage = i;
    n++;
  }
  const char *list = names.data ? names.data : "none";
  if (!wanted) usage(ab->cli, "ab needs the stage that the arms stand in: --stage S; %s has: %s", p->path, list);
  else if (n == 0 && p->run.train.present && strcmp(p->run.train.optimizer.use, wanted) == 0)
    usage(ab->cli, "--stage %s: the optimizer of the train section is no stage; ab compares forward and backward%s",
          wanted, "");
  else if (n == 0) usage(ab->cli, "--stage %s: there is no such stage; there are: %s", wanted, list);
  else if (n > 1)
    usage(ab->cli, "--stage %s: several stages have this name; say which by its number among: %s", wanted, list);
  kit_text_deinit(&names);
  return n == 1;
}

static int read_arms(aoth_ab_t *ab, const ab_flags_t *f, kit_arena_t *arena) {
  aoth_ab_arm_t arms[AOTH_AB_MOST_ARMS];
  int ok = 1;
  if (f->withs.n < 2) return usage(ab->cli, "ab compares two arms or more: --with A --with B%s%s", "", "");
  if (f->withs.n > AOTH_AB_MOST_ARMS) return usage(ab->cli, "ab compares 16 arms at most%s%s", "", "");
  for (uint32_t i = 0; i < f->withs.n; i++)
    ok &= aoth_ab_arm_parse(f->withs.items[i], arena, ab->cli->sink, &arms[i]) == AOT_OK;
  if (!ok || aoth_ab_arms_name(arms, f->withs.n, arena, ab->cli->sink) != AOT_OK) return 0;
  ab->arms = calloc(f->withs.n, sizeof *ab->arms);
  if (!ab->arms) return usage(ab->cli, "no memory for the arms%s%s", "", "");
  ab->n_arms = f->withs.n;
  for (uint32_t i = 0; i < ab->n_arms; i++) {
    aoth_ab_arm_run_t *a = &ab->arms[i];
    *a = (aoth_ab_arm_run_t){.arm = arms[i], .worker = AOTH_NO_CHILD};
    const size_t n = (size_t)ab->n_processes * ab->n_steps, n_compiles = ab->n_processes + AOTH_AB_LEAST_COMPILES;
    a->forward_ms = calloc(3 * n + 2 * n_compiles, sizeof(double));
    if (!a->forward_ms) return usage(ab->cli, "no memory for the times of so many steps%s%s", "", "");
    a->backward_ms = a->forward_ms + n;
    a->step_ms = a->backward_ms + n;
    a->stage_ms = a->step_ms + n;
    a->compile_ms = a->stage_ms + n_compiles;
  }
  return 1;
}

/* ---- the course of it ---- */

/* What an arm printed: of a lost one, and with -v or --time of all. */
static void print_log(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a) {
  kit_text_t log = {0};
  const int warned = a->compiled && json_integer_value(json_object_get(a->compiled, "warnings")) > 0;
  if (a->worker.fate == AOTH_CHILD_FINE && !warned && !ab->cli->common.verbose && !ab->cli->common.time) return;
  aoth_child_log(&a->worker, &log);
  if (log.size) fprintf(stderr, "--- %s\n%s", a->arm.name, log.data);
  kit_text_deinit(&log);
}

/* The first process of an arm reports what it is; of the others the times count. */
static void keep_answer(json_t **place, json_t *answer) {
  if (*place) json_decref(answer);
  else *place = answer;
}

static void ask_all(aoth_ab_t *ab, int32_t what, const char *doing, const char *progress) {
  for (uint32_t i = 0; i < ab->n_arms; i++) {
    aoth_ab_arm_run_t *a = &ab->arms[i];
    const aoth_request_t r = {.what = what, .is_patient = what == AOTH_AB_MEMORY || what == AOTH_AB_FINISH};
    if (!aoth_ab_alive(a)) continue;
    aoth_ab_progress(ab, "process %u of %u, %s %.40s", ab->n_done + 1, ab->n_processes, progress, a->arm.name);
    json_t *answer = aoth_child_ask(&a->worker, &r, doing, (int64_t)(ab->timeout * 1000));
    if (what == AOTH_AB_COMPILE && answer) {
      a->stage_ms[a->n_compiled] = json_number_value(json_object_get(answer, "stage_ms"));
      a->compile_ms[a->n_compiled++] = json_number_value(json_object_get(answer, "total_ms"));
    }
    if (what == AOTH_AB_ISOLATE) json_decref(answer);
    else
      keep_answer(what == AOTH_AB_CHECK     ? &a->about
                  : what == AOTH_AB_COMPILE ? &a->compiled
                  : what == AOTH_AB_MEMORY  ? &a->memory
                                            : &a->finished,
                  answer);
  }
  aoth_ab_progress(ab, "%s", "");
}

/* 1: the input is at fault, reported: of some arm at the check, or of every arm later. */
static int is_input_fault(const aoth_ab_t *ab, int everyone) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < ab->n_arms; i++) n += ab->arms[i].worker.fate != AOTH_CHILD_FINE && ab->arms[i].worker.input;
  if (n == 0 || (everyone && n < ab->n_arms)) return 0;
  for (uint32_t i = 0, told = 0; i < ab->n_arms && (told == 0 || !everyone); i++) {
    if (ab->arms[i].worker.fate == AOTH_CHILD_FINE) continue;
    print_log(ab, &ab->arms[i]);
    told++;
  }
  return 1;
}

/* Ctrl-C while arms are checked or compiled ends it; during the rounds it ends the rounds. */
static int is_interrupted(const aoth_ab_t *ab) {
  return aoth_interrupt_asked() && !usage(ab->cli, "interrupted before anything was measured%s%s", "", "");
}

static int is_runnable(const aoth_ab_t *ab) {
  for (uint32_t i = 0; i < ab->n_arms; i++)
    if (aoth_ab_alive(&ab->arms[i]) && json_object_get(ab->arms[i].compiled, "inputs")) return 1;
  return 0;
}

static int exit_code(const aoth_ab_t *ab) {
  int code = AOTH_EXIT_OK;
  for (uint32_t i = 0; i < ab->n_arms; i++) {
    if (ab->arms[i].worker.fate != AOTH_CHILD_FINE) return AOTH_EXIT_PLUGIN;
    if (ab->arms[i].differs) code = AOTH_EXIT_DIFFERS;
  }
  return code;
}

static int report(aoth_ab_t *ab, const char *html) {
  const int json_on_stdout = ab->cli->common.json_path && strcmp(ab->cli->common.json_path, "-") == 0;
  json_t *differences = aoth_ab_differences(ab), *json = aoth_ab_json(ab, differences);
  for (uint32_t i = 0; i < ab->n_arms; i++) print_log(ab, &ab->arms[i]);
  if (!ab->cli->common.quiet) aoth_ab_print(ab, differences, json_on_stdout ? stderr : stdout);
  aot_status_t status = aoth_cli_json(ab->cli, json);
  if (html && aoth_ab_write_page(ab, differences, html) != AOT_OK) status = AOT_E_INVALID;
  json_decref(json);
  json_decref(differences);
  return status == AOT_OK ? exit_code(ab) : AOTH_EXIT_INPUT;
}

/* Each process has a cache of its own, so that each compiles whole. */
static int start_arms(aoth_ab_t *ab, aoth_ab_job_t *jobs) {
  for (uint32_t i = 0; i < ab->n_arms; i++) {
    aoth_child_t *w = &ab->arms[i].worker;
    if (w->fate != AOTH_CHILD_FINE) continue;
    aoth_child_deinit(w);
    snprintf(jobs[i].cache, sizeof jobs[i].cache, "%s/cache-%u-%u", ab->folder, i, ab->arms[i].n_compiled);
    if (!aoth_child_start(w, aoth_ab_serve, &jobs[i]))
      return usage(ab->cli, "no process can be made for the arm %s%s", ab->arms[i].arm.name, "");
  }
  return 1;
}

/* A worker costs time, so the stage runs in one for every arm as soon as it does for any. */
static void level_isolation(aoth_ab_t *ab) {
  int all = 1;
  for (uint32_t i = 0; i < ab->n_arms; i++) {
    const aoth_ab_arm_run_t *a = &ab->arms[i];
    if (!aoth_ab_alive(a)) continue;
    const int is_isolated = json_is_true(json_object_get(a->about, "isolated"));
    ab->is_isolated |= is_isolated;
    all &= is_isolated;
  }
  if (ab->is_isolated && !all) ask_all(ab, AOTH_AB_ISOLATE, "check", "isolating");
}

/* Further processes of the arms that are left, which compile and do no more. */
static void compile_again(aoth_ab_t *ab, aoth_ab_job_t *jobs) {
  for (;;) {
    uint32_t least = AOTH_AB_LEAST_COMPILES;
    for (uint32_t i = 0; i < ab->n_arms; i++)
      if (aoth_ab_alive(&ab->arms[i]) && ab->arms[i].n_compiled < least) least = ab->arms[i].n_compiled;
    if (least == AOTH_AB_LEAST_COMPILES || ab->interrupted || !start_arms(ab, jobs)) return;
    ask_all(ab, AOTH_AB_CHECK, "check", "checking");
    level_isolation(ab);
    ask_all(ab, AOTH_AB_COMPILE, "compile", "compiling");
    ab->interrupted = aoth_interrupt_asked();
  }
}

/* One process of every arm that is left. AOTH_CLI_GO, or the exit status. */
static int one_process(aoth_ab_t *ab, aoth_ab_job_t *jobs) {
  if (!start_arms(ab, jobs)) return AOTH_EXIT_INPUT;
  ask_all(ab, AOTH_AB_CHECK, "check", "checking");
  if (ab->n_done == 0 && (is_interrupted(ab) || is_input_fault(ab, 0))) return AOTH_EXIT_INPUT;
  level_isolation(ab);
  ask_all(ab, AOTH_AB_COMPILE, "compile", "compiling");
  if (ab->n_done == 0 && (is_interrupted(ab) || is_input_fault(ab, 1))) return AOTH_EXIT_INPUT;
  if (ab->n_done == 0) ask_all(ab, AOTH_AB_MEMORY, "memory", "asking");
  ab->interrupted = aoth_interrupt_asked();
  if (is_runnable(ab) && !ab->interrupted) aoth_ab_step_rounds(ab);
  if (ab->n_done == 0 && is_input_fault(ab, 1)) return AOTH_EXIT_INPUT;
  if (ab->n_done == 0) ask_all(ab, AOTH_AB_FINISH, "report", "asking");
  return AOTH_CLI_GO;
}

/* Processes that went through whole count; the first also when it was interrupted. */
static int compare(aoth_ab_t *ab, aoth_ab_job_t *jobs, const char *html) {
  for (uint32_t k = 0; k < ab->n_processes && !ab->interrupted; k++) {
    const int code = one_process(ab, jobs);
    if (code != AOTH_CLI_GO) return code;
    if (k == 0 && ab->n_rounds && ab->n_rounds < ab->n_steps) ab->n_steps = ab->n_rounds;
    if (ab->n_rounds < ab->n_steps) break;
    ab->n_done++;
  }
  compile_again(ab, jobs);
  aoth_ab_weigh_compiles(ab);
  aoth_ab_weigh_times(ab);
  aoth_ab_compare_results(ab);
  return report(ab, html);
}

/* ---- setting up ---- */

/* What would otherwise be found out at the end. */
static int are_writable(const aoth_ab_t *ab, const char *html) {
  const char *json = ab->cli->common.json_path;
  const aoth_where_t nowhere = {0};
  return (!json || strcmp(json, "-") == 0 ||
          aoth_check_writable(json, "the results", &nowhere, ab->cli->sink) == AOT_OK) &&
         aoth_check_writable(html, "the page", &nowhere, ab->cli->sink) == AOT_OK;
}

static int make_folder(aoth_ab_t *ab) {
  const char *tmp = getenv("TMPDIR");
  snprintf(ab->folder, sizeof ab->folder, "%s/aothost-ab-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  if (mkdtemp(ab->folder)) return 1;
  const char *made = tmp && *tmp ? tmp : "/tmp";
  ab->folder[0] = 0;
  return usage(ab->cli, "no folder for results on their way can be made in %s%s", made, "");
}

static void make_jobs(aoth_ab_t *ab, aoth_ab_job_t *jobs, const aoth_overrides_t *overrides, int has_seed) {
  const aoth_common_t *common = &ab->cli->common;
  for (uint32_t i = 0; i < ab->n_arms; i++) {
    jobs[i] = (aoth_ab_job_t){
        .cli = ab->cli,
        .overrides = overrides,
        .arm = &ab->arms[i].arm,
        .stage = ab->stage,
        .seed = ab->seed,
        .has_seed = has_seed,
    };
    if (common->dump_dir) snprintf(jobs[i].dumps, sizeof jobs[i].dumps, "%s/arm-%u", common->dump_dir, i + 1);
    if (common->bundle_dir) snprintf(jobs[i].bundles, sizeof jobs[i].bundles, "%s/arm-%u", common->bundle_dir, i + 1);
  }
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *at) {
  (void)status, (void)kind, (void)at;
  remove(path);
  return 0;
}

static void end(aoth_ab_t *ab) {
  for (uint32_t i = 0; i < ab->n_arms; i++) {
    aoth_ab_arm_run_t *a = &ab->arms[i];
    aoth_child_deinit(&a->worker);
    json_decref(a->about);
    json_decref(a->compiled);
    json_decref(a->finished);
    json_decref(a->memory);
    aoth_st_close(a->results[0]);
    aoth_st_close(a->results[1]);
    free(a->forward_ms);
  }
  free(ab->arms);
  if (ab->folder[0]) nftw(ab->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int main_with(aoth_cli_t *cli, const ab_flags_t *f) {
  aoth_ab_t ab = {.cli = cli, .rtol = 1e-4, .atol = 1e-5, .timeout = 600};
  aoth_overrides_t overrides = {
      .sets = cli->common.sets.items, .n_sets = cli->common.sets.n, .model = f->model, .inputs = f->inputs};
  aoth_ab_job_t *jobs = calloc(AOTH_AB_MOST_ARMS, sizeof *jobs);
  aoth_pipeline_t *pipeline = NULL;
  kit_arena_t *arena = kit_arena_create();
  aoth_interrupt_t interrupt = {.ask = NULL};
  int code = AOTH_EXIT_INPUT;
  int ok = arena && jobs && read_numbers(&ab, f) &&
           aoth_pipeline_load(cli->positional[0], &overrides, cli->sink, &pipeline) == AOT_OK;
  ab.pipeline = pipeline;
  ok = ok && find_stage(&ab, f->stage) && read_arms(&ab, f, arena) && are_writable(&ab, f->html) && make_folder(&ab);
  if (ok) {
    make_jobs(&ab, jobs, &overrides, f->seed != NULL);
    aoth_interrupt_begin(&interrupt);
    code = compare(&ab, jobs, f->html);
    aoth_interrupt_end(&interrupt);
  }
  end(&ab);
  aoth_pipeline_destroy(pipeline);
  kit_arena_destroy(arena);
  free(jobs);
  return code;
}

static int ab_main(const aoth_command_t *self, int argc, char **argv) {
  ab_flags_t f = {0};
  aoth_cli_t cli;
  /* clang-format off */
  const aoth_flag_t rows[] = {
      {.name = "--stage", .value = "S", .help = "the stage that the arms take the place of, by name, unit or number",
       .text = &f.stage},
      {.name = "--with", .value = "ARM", .help = "an arm, [NAME=]UNIT[:OPTION=VALUE,..]; UNIT . is the pipeline's own; two or more", .list = &f.withs},
      {.name = "--model", .value = "F", .help = "model file instead of the pipeline's", .text = &f.model},
      {.name = "--inputs", .value = "F", .help = "inputs (input.0, .., tangent.0, ..) instead of the pipeline's, or 'random'", .text = &f.inputs},
      {.name = "--processes", .value = "N",
       .help = "processes per arm, run one after another (default 4); at least 3 compile it",
       .text = &f.processes},
      {.name = "--steps", .value = "N", .help = "rounds that are measured in each process, 10", .text = &f.steps},
      {.name = "--warmup", .value = "N", .help = "untimed rounds per process (default 3)", .text = &f.warmup},
      {.name = "--seed", .value = "N", .help = "of inputs, tangents and draws; the pipeline's unless given",
       .text = &f.seed},
      {.name = "--rtol", .value = "R", .help = "relative tolerance of results, 1e-4", .text = &f.rtol},
      {.name = "--atol", .value = "A", .help = "absolute tolerance of results, 1e-5", .text = &f.atol},
      {.name = "--timeout", .value = "S", .help = "time limit for compiling an arm, and for each step, in seconds (default 600)",
       .text = &f.timeout},
      {.name = "--html", .value = "F", .help = "write a page that holds all of it: table, memory, choices, times",
       .text = &f.html, .writes = 1},
  };
  /* clang-format on */
  int code = aoth_cli_init(&cli, self, argc, argv, rows, sizeof rows / sizeof rows[0], 1, 1);
  if (code == AOTH_CLI_GO) code = main_with(&cli, &f);
  free(f.withs.items);
  return aoth_cli_deinit(&cli, code);
}

const aoth_command_t aoth_cmd_ab = {
    .name = "ab",
    .usage = "ab PIPELINE --stage S --with A --with B [--with C ..] [options]",
    .summary = "benchmark alternative units or options of one stage (A/B test)",
    .text = "Compiles the pipeline once for each arm, with the arm in the place of stage S, and runs forward and\n"
            "backward of all arms in turn, A B A B .., on the same inputs from the same parameters. Tells of each\n"
            "arm what it took to compile, what it saves and recomputes, its memory, its step time, and whether its\n"
            "results are those of the others. Times come with an interval (bootstrap over processes and rounds); a\n"
            "verdict is given where it allows one. Every arm has a process of its own: one that crashes, hangs or\n"
            "breaks the program loses by name, and the others still report.\n"
            "\n"
            "  aothost ab p.yaml --stage partition-mincut --with partition-default --with partition-mincut\n"
            "  aothost ab p.yaml --stage partition-mincut --with . --with 'near=.:distance-base=2' --html ab.html\n"
            "  aothost ab p.yaml --stage 4 --with backend-ref --with backend-cpu --steps 100 --json ab.json\n"
            "  aothost ab p.yaml --stage 4 --with backend-cpu --with backend-cpu     how much noise there is\n"
            "\n"
            "Without inputs in the pipeline they are made up from the seed. Status 0: all arms ran and agree; 1:\n"
            "results differ beyond tolerance; 2: bad usage; 3: an arm was lost. docs/AB.md tells more.\n",
    .main = ab_main,
};
