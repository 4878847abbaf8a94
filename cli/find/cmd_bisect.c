/* aothost bisect: where a pipeline goes wrong. */
#include <cli/base/commands.h>
#include <cli/find/bisect.h>

#include "kit/base/byte_size.h"
#include <config/options.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct bisect_flags {
  const char *model, *inputs, *seed, *good, *by, *max_ms, *max_peak;
} bisect_flags_t;

static aot_status_t usage(aoth_cli_t *cli, const char *format, const char *text) {
  aoth_sink_report(cli->sink, AOT_SEVERITY_ERROR, NULL, "cli.usage", format, text);
  return AOT_E_INVALID;
}

static aot_status_t read_flags(aoth_cli_t *cli, const bisect_flags_t *f, aoth_bisect_t *b) {
  static const struct {
    const char *word;
    int by;
  } ways[] = {
      {"stage", AOTH_BY_STAGE}, {"edit", AOTH_BY_EDIT}, {"node", AOTH_BY_NODE}, {"pass-option", AOTH_BY_OPTION}};
  int64_t bytes = 0;
  if (f->by) b->by = 0;
  for (size_t i = 0; f->by && i < sizeof ways / sizeof *ways; i++)
    if (strcmp(f->by, ways[i].word) == 0) b->by = ways[i].by;
  if (!b->by) return usage(cli, "--by is stage, edit, node or pass-option, not %s", f->by);
  if (f->max_ms) {
    char *end;
    b->max_ms = strtod(f->max_ms, &end);
    if (*end || !(b->max_ms > 0)) return usage(cli, "--max-ms is a number of milliseconds above 0, not %s", f->max_ms);
  }
  if (f->max_peak && (!kit_byte_size(f->max_peak, &bytes) || bytes <= 0))
    return usage(cli, "--max-peak is a number of bytes such as 64MiB, not %s", f->max_peak);
  b->max_peak = (uint64_t)bytes;
  return AOT_OK;
}

/* "ref" is short for "backend-ref". */
static const char *unit_of(const char *good, char *room, size_t size) {
  if (!good) return AOTH_ORACLE_BACKEND;
  snprintf(room, size, "%s%s", strncmp(good, "backend-", 8) == 0 || strchr(good, '.') ? "" : "backend-", good);
  return room;
}

static aot_status_t search(aoth_cli_t *cli, aoth_bisect_t *b, const aoth_pipeline_t *p, const char *good) {
  aoth_session_t *s = cli->session;
  if (p->run.ranks.unit) return usage(cli, "bisect runs programs on one rank; leave run.ranks out of %s", p->path);
  AOT_TRY(aoth_bisect_begin(b, s, p, good));
  AOT_TRY(aoth_pipeline_import(s, p));
  const aot_status_t status =
      aoth_pipeline_run_stages(s, p, AOTH_STAGES_NO_BACKEND | AOTH_STAGES_OPTIMIZER | AOTH_STAGES_STITCH);
  if (b->found) return AOT_OK;
  return status == AOT_OK ? aoth_bisect_backend(b, s, p) : status;
}

static aot_status_t report(aoth_cli_t *cli, const aoth_bisect_t *b) {
  const int json_on_stdout = cli->common.json_path && strcmp(cli->common.json_path, "-") == 0;
  if (!cli->common.quiet) aoth_bisect_print(b, json_on_stdout ? stderr : stdout);
  json_t *o = json_pack("{s:s, s:s, s:b, s:i, s:O, s:O}", "command", "bisect", "pipeline", cli->positional[0], "wrong",
                        b->found != NULL, "programs", (int)b->n_asked, "found", b->found ? b->found : json_null(),
                        "not_compared", b->not_compared);
  const aot_status_t status = aoth_cli_json(cli, o);
  json_decref(o);
  return status;
}

static int main_with(aoth_cli_t *cli, const bisect_flags_t *f) {
  aoth_overrides_t overrides = {.model = f->model, .inputs = f->inputs, .seed = f->seed};
  aoth_pipeline_t *p = NULL;
  aoth_bisect_t b;
  char room[128];
  aoth_bisect_init(&b);
  cli->watch = &b.watch;
  aot_status_t status = read_flags(cli, f, &b);
  if (status == AOT_OK) status = aoth_cli_pipeline(cli, cli->positional[0], &overrides, &p);
  if (status == AOT_OK) status = search(cli, &b, p, unit_of(f->good, room, sizeof room));
  if (status == AOT_OK) status = report(cli, &b);
  const int found = b.found != NULL;
  aoth_bisect_deinit(&b);
  aoth_pipeline_destroy(p);
  return status != AOT_OK ? aoth_exit_code(status) : found ? AOTH_EXIT_DIFFERS : AOTH_EXIT_OK;
}

static int bisect_main(const aoth_command_t *self, int argc, char **argv) {
  bisect_flags_t f = {0};
  aoth_cli_t cli;
  /* clang-format off */
  const aoth_flag_t rows[] = {
      {.name = "--good", .value = "UNIT", .text = &f.good,
       .help = "backend assumed correct (default: backend-ref)"},
      {.name = "--by", .value = "WHAT", .text = &f.by,
       .help = "how far: stage, edit (of its journal; when left out), node, pass-option"},
      {.name = "--max-ms", .value = "T", .text = &f.max_ms,
       .help = "also treat a step slower than T ms on the pipeline's backend as a failure"},
      {.name = "--max-peak", .value = "B", .text = &f.max_peak,
       .help = "and one whose intermediate values take more bytes (64MiB)"},
      {.name = "--model", .value = "F", .help = "model file instead of the pipeline's", .text = &f.model},
      {.name = "--inputs", .value = "F", .help = "inputs (input.0, input.1, ..), or 'random'", .text = &f.inputs},
      {.name = "--seed", .value = "N", .help = "of made-up inputs and the model's random numbers", .text = &f.seed},
  };
  /* clang-format on */
  int code = aoth_cli_init(&cli, self, argc, argv, rows, sizeof rows / sizeof rows[0], 1, 1);
  if (code == AOTH_CLI_GO) code = main_with(&cli, &f);
  return aoth_cli_deinit(&cli, code);
}

const aoth_command_t aoth_cmd_bisect = {
    .name = "bisect",
    .usage = "bisect PIPELINE [--good UNIT] [--by WHAT] [--max-ms T] [--max-peak B] [options]",
    .summary = "bisect a pipeline to the first stage, edit or node with a wrong result, a crash or an exceeded bound",
    .text =
        "Runs the stages one by one, and after each the program, on a backend that is right: the first that\n"
        "computes something else, crashes, no longer runs or breaks a bound is the stage. Then halves its journal:\n"
        "the first prefix of its edits that goes wrong ends in the edit, which is printed with what it changed in\n"
        "the program. When all stages are right it is the backend, and its nodes are halved. docs/FIND.md.\n"
        "\n"
        "Status 0: nothing goes wrong; 1: something does, and it is told; 2, 3: as everywhere.\n"
        "\n"
        "  aothost bisect p.yaml --good ref\n"
        "  aothost bisect p.yaml --by pass-option\n"
        "  aothost bisect p.yaml --max-peak 64MiB --json found.json\n",
    .main = bisect_main,
};
