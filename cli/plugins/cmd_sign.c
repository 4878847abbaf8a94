/* aothost sign: code that ships a plugin vouches for its file. */
#include <cli/base/commands.h>

#include <config/pipeline.h>
#include <cli/plugins/signing.h>
#include <stdio.h>

static int sign(aoth_cli_t *cli, const char *new_key, const char *key) {
  aot_status_t status = AOT_E_INVALID;
  if (!new_key == !key || !key != !cli->n_positional) {
    aoth_sink_report(cli->sink, AOT_SEVERITY_ERROR, NULL, "sign.usage",
                     "sign takes a new key, `aothost sign --new-key F`, or a key and files, `aothost sign --key F "
                     "PLUGIN.so`");
  } else if (new_key) {
    status = aoth_key_make(new_key, cli->sink);
    if (status == AOT_OK && !cli->common.quiet)
      printf("%s: the secret key, which signs: nobody else should ever read it\n%s.pub: the public key, by which "
             "users know it\n",
             new_key, new_key);
  } else {
    status = aoth_sign(key, cli->positional, cli->n_positional, cli->sink);
    for (uint32_t i = 0; i < cli->n_positional && status == AOT_OK && !cli->common.quiet; i++)
      printf("%s.sig\n", cli->positional[i]);
  }
  return aoth_exit_code(status);
}

static int sign_main(const aoth_command_t *self, int argc, char **argv) {
  const char *new_key = NULL, *key = NULL;
  aoth_cli_t cli;
  const aoth_flag_t flags[] = {
      {.name = "--key", .value = "F", .help = "the secret key", .text = &key},
      {.name = "--new-key",
       .value = "F",
       .help = "make a key: F, the secret one, and F.pub, the public one",
       .text = &new_key},
  };
  int code = aoth_cli_init(&cli, self, argc, argv, flags, sizeof flags / sizeof *flags, 0, AOTH_CLI_ANY);
  if (code == AOTH_CLI_GO) code = sign(&cli, new_key, key);
  return aoth_cli_deinit(&cli, code);
}

const aoth_command_t aoth_cmd_sign = {
    .name = "sign",
    .usage = "sign (--key F PLUGIN.so.. | --new-key F) [options]",
    .summary = "sign plugin files (writes FILE.sig), or create a key pair",
    .text = "Writes PLUGIN.so.sig, an Ed25519 signature of the file's SHA-256 by the secret key F. Who has the public\n"
            "key opens nothing else with `--require-signed F.pub`, a flag of every command, but what came with\n"
            "aothost; a file of several public keys, a line each, trusts any of them. A file that changes has to be "
            "signed anew. A signature\n"
            "says who vouches for the bytes, not that they do no harm.\n"
            "\n"
            "  aothost sign --new-key acme\n"
            "  aothost sign --key acme split.so\n"
            "  aothost run p.yaml --require-signed acme.pub\n",
    .main = sign_main,
};
