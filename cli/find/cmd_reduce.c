/* aothost reduce: the smallest program that still fails. */
#include <cli/base/commands.h>
#include <cli/find/reduce_bundle.h>

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static int main_with(aoth_cli_t *cli, const char *output) {
  const char *bundle = cli->positional[0];
  const int json_on_stdout = cli->common.json_path && strcmp(cli->common.json_path, "-") == 0;
  FILE *out = json_on_stdout ? stderr : stdout;
  char folder[4096];
  aoth_reduce_t r;
  snprintf(folder, sizeof folder, output ? "%s" : "%s-reduced", output ? output : bundle);
  aot_status_t status = aoth_reduce_run(&r, cli, bundle);
  const int fails = status == AOT_OK && r.status != AOTH_EXIT_OK;
  if (fails) status = aoth_reduce_write(&r, folder, cli->sink);
  if (status == AOT_OK && !fails && !cli->common.quiet) fprintf(out, "nothing fails: there is nothing to reduce\n");
  if (status == AOT_OK && fails && !cli->common.quiet) {
    fwrite(r.text.data, 1, r.text.size, out);
    fprintf(out, "; %llu nodes were %llu; status %d: %s\n; %u programs ran; again: aothost replay %s\n",
            (unsigned long long)r.nodes_after, (unsigned long long)r.nodes_before, r.status, r.said, r.n_asked, folder);
  }
  json_t *o = json_pack("{s:s, s:s, s:b, s:i, s:s, s:i, s:i, s:i, s:s, s:s%}", "command", "reduce", "bundle", bundle,
                        "fails", fails, "status", r.status, "message", r.said, "nodes_before", (int)r.nodes_before,
                        "nodes_after", (int)r.nodes_after, "programs", (int)r.n_asked, "folder", fails ? folder : "",
                        "program", r.text.data ? r.text.data : "", r.text.size);
  if (status == AOT_OK) status = aoth_cli_json(cli, o);
  json_decref(o);
  aoth_reduce_deinit(&r);
  return status != AOT_OK ? aoth_exit_code(status) : fails ? AOTH_EXIT_OK : AOTH_EXIT_DIFFERS;
}

static int reduce_main(const aoth_command_t *self, int argc, char **argv) {
  const char *output = NULL;
  aoth_cli_t cli;
  const aoth_flag_t flags[] = {{
      .name = "--output",
      .letter = "-o",
      .value = "D",
      .help = "the folder of the smaller bundle; BUNDLE-reduced when left out",
      .text = &output,
  }};
  int code = aoth_cli_init(&cli, self, argc, argv, flags, 1, 1, 1);
  if (code == AOTH_CLI_GO) code = main_with(&cli, output);
  return aoth_cli_deinit(&cli, code);
}

const aoth_command_t aoth_cmd_reduce = {
    .name = "reduce",
    .usage = "reduce BUNDLE [-o D] [options]",
    .summary = "minimise the program of a bundle while the failure reproduces",
    .text =
        "Reads the folder that --bundle-dir left and makes its program smaller as long as `aothost replay` ends with\n"
        "the same status and the same first error, numbers aside: outputs become None, groups of nodes go (an "
        "operand,\n"
        "an input or a new input of the same type stands in their place), then inputs, leaves, sizes and dtypes.\n"
        "Prints the program, and writes a bundle with it. Each try is a process of its own.\n"
        "\n"
        "Status 0: reduced; 1: nothing fails any more; 2: bad usage or no bundle.\n"
        "\n"
        "  aothost run p.yaml --bundle-dir bundle\n"
        "  aothost reduce bundle -o small\n"
        "  aothost replay small\n",
    .main = reduce_main,
};
