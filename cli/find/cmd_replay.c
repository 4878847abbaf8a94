/* aothost replay: a failure again, out of the bundle that it left. */
#include <cli/base/commands.h>
#include <cli/find/replay_bundle.h>

#include <jansson.h>
#include <stdio.h>

static int main_with(aoth_cli_t *cli) {
  const char *bundle = cli->positional[0];
  const aot_status_t status = aoth_replay(cli, bundle);
  const int code = aoth_exit_code(status);
  if (status == AOT_OK && !cli->common.quiet) printf("nothing fails\n");
  json_t *o = json_pack("{s:s, s:s, s:b, s:i}", "command", "replay", "bundle", bundle, "fails", status != AOT_OK,
                        "status", code);
  const aot_status_t written = aoth_cli_json(cli, o);
  json_decref(o);
  return code == AOTH_EXIT_OK ? aoth_exit_code(written) : code;
}

static int replay_main(const aoth_command_t *self, int argc, char **argv) {
  aoth_cli_t cli;
  int code = aoth_cli_init(&cli, self, argc, argv, NULL, 0, 1, 1);
  if (code == AOTH_CLI_GO) code = main_with(&cli);
  return aoth_cli_deinit(&cli, code);
}

const aoth_command_t aoth_cmd_replay = {
    .name = "replay",
    .usage = "replay BUNDLE [options]",
    .summary = "reproduce the failure recorded in a bundle (see --bundle-dir)",
    .text =
        "Reads the folder that --bundle-dir left and does what had failed: the stage over its program, or, where a\n"
        "run had failed, compiles the program and calls it with the inputs, parameters and seed that it had. Ends\n"
        "with the same message and status, or with 0 when nothing fails any more: a fix is tried so.\n"
        "\n"
        "  aothost replay bundle\n"
        "  aothost replay bundle --plugin-dir fixed\n",
    .main = replay_main,
};
