/* aothost conform: does a plugin keep to what plugins promise? */
#include "kit/base/vector.h"
#include <cli/base/commands.h>
#include <sdk/conform/conform.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static aot_status_t usage(aoth_cli_t *cli, const char *flag, const char *wants, const char *text) {
  aoth_sink_report(cli->sink, AOT_SEVERITY_ERROR, NULL, "cli.number", "%s takes %s, not '%s'", flag, wants, text);
  return AOT_E_INVALID;
}

static aot_status_t read_flags(aoth_cli_t *cli, const char *rule, const char *trial, const char *timeout,
                               aoth_conform_line_t *line) {
  char *end = NULL;
  line->rule = rule ? (uint32_t)strtoul(rule, &end, 10) : 0;
  if (rule && (*end || !line->rule)) return usage(cli, "--rule", "the number of a rule", rule);
  line->trial = trial ? strtol(trial, &end, 10) : -1;
  if (trial && (*end || line->trial < 0 || line->trial > UINT32_MAX)) return usage(cli, "--trial", "a number", trial);
  line->timeout = timeout ? strtod(timeout, &end) : 60;
  if (timeout && (*end || !(line->timeout >= 0.01 && line->timeout <= 1e6)))
    return usage(cli, "--timeout", "a number of seconds", timeout);
  return AOT_OK;
}

/* A file is searched before all folders. */
static aot_status_t add_file(aoth_cli_t *cli, const char *plugin) {
  aoth_texts_t *dirs = &cli->common.plugin_dirs;
  if (access(plugin, F_OK) != 0) return AOT_OK; /* it may be a unit's id */
  const char **items = kit_grow(dirs->items, &dirs->capacity, (uint64_t)dirs->n + 1, sizeof *items);
  if (!items) return AOT_E_EXHAUSTED;
  memmove(items + 1, items, dirs->n * sizeof *items);
  items[0] = plugin;
  dirs->items = items;
  dirs->n++;
  return AOT_OK;
}

static int main_with(aoth_cli_t *cli, const aoth_conform_line_t *line) {
  aoth_conform_t c;
  aot_status_t status = add_file(cli, line->plugin);
  if (status != AOT_OK) return aoth_exit_code(status);
  aoth_session_t *s = aoth_cli_session(cli);
  if (!s) return AOTH_EXIT_INPUT;
  status = aoth_conform_run(&c, s, line);
  const int failed = c.n_rules[AOTH_CONFORM_FAILED] != 0;
  json_t *o = json_pack("{s:s, s:s, s:b, s:i, s:i, s:i, s:i, s:i, s:O}", "command", "conform", "plugin", line->plugin,
                        "conforms", status == AOT_OK && !failed, "passed", (int)c.n_rules[AOTH_CONFORM_PASSED],
                        "failed", (int)c.n_rules[AOTH_CONFORM_FAILED], "refused", (int)c.n_rules[AOTH_CONFORM_REFUSED],
                        "not_applicable", (int)c.n_rules[AOTH_CONFORM_NOT], "not_reached",
                        (int)c.n_rules[AOTH_CONFORM_UNREACHED], "units", c.units);
  const aot_status_t written = status == AOT_OK ? aoth_cli_json(cli, o) : status;
  json_decref(o);
  aoth_conform_deinit(&c);
  return written != AOT_OK ? aoth_exit_code(written) : failed ? AOTH_EXIT_DIFFERS : AOTH_EXIT_OK;
}

static int conform_main(const aoth_command_t *self, int argc, char **argv) {
  const char *rule = NULL, *trial = NULL, *timeout = NULL;
  aoth_conform_line_t line = {.plugin = NULL};
  aoth_texts_t withs = {0}, programs = {0};
  aoth_cli_t cli;
  /* clang-format off */
  const aoth_flag_t flags[] = {
      {.name = "--kind", .value = "KIND", .text = &line.kind,
       .help = "only units of it: pass, partition, backend, opset, importer, device or communicator"},
      {.name = "--unit", .value = "ID", .help = "only this unit", .text = &line.unit},
      {.name = "--rule", .value = "N", .help = "only this rule", .text = &rule},
      {.name = "--trial", .value = "K", .help = "of that rule only this trial, with all that it prints", .text = &trial},
      {.name = "--program", .value = "F", .list = &programs,
       .help = "a program or model to try units with before those of the SDK, or a file of an importer's own; may repeat"},
      {.name = "--with", .value = "K=V", .help = "an option of the units that have it; may repeat", .list = &withs},
      {.name = "--timeout", .value = "T", .help = "seconds that a trial may take; 60", .text = &timeout},
  };
  /* clang-format on */
  int code = aoth_cli_init(&cli, self, argc, argv, flags, sizeof flags / sizeof *flags, 1, 1);
  if (code == AOTH_CLI_GO) {
    line.plugin = cli.positional[0];
    line.withs = (aoth_conform_texts_t){withs.items, withs.n};
    line.programs = (aoth_conform_texts_t){programs.items, programs.n};
    line.json_path = cli.common.json_path;
    line.is_quiet = cli.common.quiet;
    line.is_verbose = cli.common.verbose;
    const aot_status_t status = read_flags(&cli, rule, trial, timeout, &line);
    code = status == AOT_OK ? main_with(&cli, &line) : aoth_exit_code(status);
  }
  free(withs.items);
  free(programs.items);
  return aoth_cli_deinit(&cli, code);
}

const aoth_command_t aoth_cmd_conform = {
    .name = "conform",
    .usage = "conform PLUGIN [--kind KIND] [--unit ID] [--rule N [--trial K]] [--program F].. [--with K=V].. "
             "[--timeout T] [options]",
    .summary = "check that a plugin conforms to the ABI, under fault injection",
    .text =
        "PLUGIN is a file, or the id of a unit. Each of its units is tried against the rules of its kind\n"
        "(docs/CONFORM.md): created a thousand times, with options at their edges, with no memory left at any\n"
        "allocation, over empty, huge and odd programs in every dtype; what it computes is held against\n"
        "backend-ref. Every trial is a process of its own with a time limit, so that a crash or an endless loop\n"
        "is a row of the report. A rule is passed, failed with the first trial that failed and the line that\n"
        "repeats it, refused (the unit said why it does not take that: no failure), or not applicable.\n"
        "Programs of the SDK may have nothing for a unit to do, which fails rule 216 of a pass and 603 of a backend:\n"
        "--program gives one that has.\n"
        "-v tells the reasons of refusals. The programs are files of the SDK, in ../share/aothost/conform beside\n"
        "the command.\n"
        "\n"
        "Status 0: no rule failed; 1: one did; 2: bad usage.\n"
        "\n"
        "  aothost conform build/my-pass.so\n"
        "  aothost conform build/my-pass.so --rule 209 --trial 17\n"
        "  aothost conform build/my-pass.so --program what_it_edits.ir\n"
        "  aothost conform partition-mincut --json report.json\n",
    .main = conform_main,
};
