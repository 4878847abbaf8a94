/* aothost new: create a plugin project from a template. */
#include <cli/base/commands.h>
#include <cli/plugins/plugin_template.h>

#include <stdio.h>
#include <string.h>

static void print_kinds(const aoth_templates_t *t) {
  printf("kinds of plugins, from %s\n", t->folder);
  for (uint32_t i = 0; i < t->n; i++) printf("  %-14s %s\n", t->kinds[i], t->titles[i]);
}

static void print_next(const aoth_templates_t *t, const char *kind, const char *folder, const char *files) {
  const int is_usual = strcmp(t->prefix, "/usr") == 0 || strcmp(t->prefix, "/usr/local") == 0;
  printf("%s: a new %s plugin: %s\nnext\n", folder, kind, files);
  printf("  cmake -S %s -B %s/build%s%s\n", folder, folder,
         is_usual ? "" : " -DCMAKE_PREFIX_PATH=", is_usual ? "" : t->prefix);
  printf("  cmake --build %s/build\n  ctest --test-dir %s/build --output-on-failure\n", folder, folder);
  printf("then read %s/README.md, and change what it does\n", folder);
}

static int new_plugin(aoth_cli_t *cli, const char *kind, const char *folder, kit_arena_t *arena) {
  const char *name = cli->n_positional ? cli->positional[0] : NULL, *files = "";
  aoth_templates_t t;
  aot_status_t status = arena ? aoth_templates_find(arena, cli->sink, &t) : AOT_E_EXHAUSTED;
  if (status == AOT_OK && !name && !kind) {
    print_kinds(&t);
    return AOTH_EXIT_OK;
  }
  if (status == AOT_OK && (!name || !kind)) {
    aoth_sink_report(cli->sink, AOT_SEVERITY_ERROR, NULL, "new.usage",
                     "new takes a name and a kind: `aothost new my-pass --kind pass`; without both it lists the kinds");
    return AOTH_EXIT_INPUT;
  }
  if (status == AOT_OK) status = aoth_template_copy(&t, kind, name, folder ? folder : name, arena, cli->sink, &files);
  if (status == AOT_OK && !cli->common.quiet) print_next(&t, kind, folder ? folder : name, files);
  return aoth_exit_code(status);
}

static int new_main(const aoth_command_t *self, int argc, char **argv) {
  const char *kind = NULL, *folder = NULL;
  aoth_cli_t cli;
  const aoth_flag_t flags[] = {
      {.name = "--kind",
       .value = "KIND",
       .help = "pass, partition, backend, backend-kit, device, opset, importer or communicator",
       .text = &kind},
      {.name = "--output",
       .letter = "-o",
       .value = "D",
       .help = "the folder to make; NAME if left out",
       .text = &folder},
  };
  int code = aoth_cli_init(&cli, self, argc, argv, flags, sizeof flags / sizeof *flags, 0, 1);
  if (code == AOTH_CLI_GO) {
    kit_arena_t *arena = kit_arena_create();
    code = new_plugin(&cli, kind, folder, arena);
    kit_arena_destroy(arena);
  }
  return aoth_cli_deinit(&cli, code);
}

const aoth_command_t aoth_cmd_new = {
    .name = "new",
    .usage = "new [NAME --kind KIND] [-o FOLDER] [options]",
    .summary = "create a plugin project from a template",
    .text =
        "Writes a folder with a plugin of that kind under the name NAME: source, CMakeLists.txt, a README, a small\n"
        "program and a test that runs it. It builds against the installed SDK, does what its README says, and is\n"
        "there to be changed. NAME is what pipelines will say (`use: NAME`): a letter, then letters, digits, '.',\n"
        "'-' and '_'; those who ship put their reverse domain in front (org.example.fuse). A folder that is there\n"
        "is left alone. Without NAME and --kind it lists the kinds.\n"
        "The templates are files of the SDK, found in ../share/aothost/templates beside the program.\n"
        "\n"
        "  aothost new my-pass --kind pass\n"
        "  cmake -S my-pass -B my-pass/build && cmake --build my-pass/build && ctest --test-dir my-pass/build\n"
        "  aothost plugins my-pass --plugin-dir my-pass/build\n",
    .main = new_main,
};
