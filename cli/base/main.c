/* aothost: argv -> command table. */
#include <cli/base/commands.h>

#include <aot/base.h>
#include <fcntl.h>
#include <process/crash.h>
#include <cli/base/probe.h>
#include <trainer/supervisor.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const aoth_command_t *const commands[] = {
    &aoth_cmd_run,     &aoth_cmd_verify, &aoth_cmd_gradcheck, &aoth_cmd_ab,      &aoth_cmd_bisect,
    &aoth_cmd_replay,  &aoth_cmd_reduce, &aoth_cmd_check,     &aoth_cmd_opt,     &aoth_cmd_export,
    &aoth_cmd_inspect, &aoth_cmd_plan,   &aoth_cmd_plugins,   &aoth_cmd_conform, &aoth_cmd_ops,
    &aoth_cmd_cache,   &aoth_cmd_schema, &aoth_cmd_new,       &aoth_cmd_sign,
};
#define N_COMMANDS (sizeof commands / sizeof *commands)

static int help(void) {
  printf("aothost %s: compiles and trains exported PyTorch models with plugins. No Python.\n\n"
         "usage: aothost COMMAND [arguments]\n\n",
         AOT_VERSION);
  for (size_t i = 0; i < N_COMMANDS; i++) printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
  printf("\n"
         "A pipeline file says what happens, stage by stage; docs/PIPELINE.md is its reference.\n\n"
         "  aothost check train.yaml                          everything that can be wrong, nothing run\n"
         "  aothost run train.yaml --model gpt.pt2            compile and train\n"
         "  aothost run train.yaml --set run.train.steps=5    with another value\n"
         "  aothost opt a.ir --use functionalize              one stage on a program in text\n"
         "  aothost plugins partition-mincut                  what a unit does and its options\n\n"
         "`aothost COMMAND --help` tells the rest of each. AOT_PLUGIN_PATH names folders of plugins;\n"
         "AOT_LOADER_DEBUG=1 prints every decision of the loader.\n"
         "Exit status: 0 done; 1 the check or comparison failed; 2 bad usage or input; 3 a plugin failed;\n"
         "130 ended by Ctrl-C.\n");
  return AOTH_EXIT_OK;
}

static const aoth_command_t *find(const char *name) {
  for (size_t i = 0; i < N_COMMANDS; i++)
    if (strcmp(commands[i]->name, name) == 0) return commands[i];
  return NULL;
}

static int unknown(const char *name) {
  aot_str_t names[N_COMMANDS];
  for (size_t i = 0; i < N_COMMANDS; i++) names[i] = (aot_str_t){commands[i]->name, strlen(commands[i]->name)};
  const int near = kit_nearest((aot_str_t){name, strlen(name)}, names, N_COMMANDS);
  fprintf(stderr, "aothost: no command '%s'", name);
  if (near >= 0) fprintf(stderr, "; did you mean '%s'?", names[near].data);
  fprintf(stderr, "\n`aothost --help` lists the commands\n");
  return AOTH_EXIT_INPUT;
}

/* A shell that runs a script ends it, too, where the program was ended by the signal, and not where it exits. */
static void end_by_interrupt(void) {
  fflush(NULL);
  signal(SIGINT, SIG_DFL);
  raise(SIGINT);
}

/* A file that is opened where one of them is closed would get its number, and what is printed would go into it. */
static int open_standard_streams(void) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) /* open() returns the lowest number: fd, if it is closed */
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0) return 0;
  return 1;
}

int main(int argc, char **argv) {
  if (!open_standard_streams()) return AOTH_EXIT_INPUT; /* nothing can be said about it, perhaps */
  signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is reported by the write that meets it, which then cleans up */
  /* training continues when nothing reads its log any more; the end reports (aoth_cli_deinit) */
  signal(SIGPIPE, SIG_IGN);
  const char *name = argc > 1 ? argv[1] : "";
  if (argc < 2) {
    help();
    return AOTH_EXIT_INPUT;
  }
  if (strcmp(name, "--version") == 0 || strcmp(name, "version") == 0) {
    printf("aothost %s (plugin ABI %u.%u)\n", AOT_VERSION, AOT_ABI_EPOCH, AOT_ABI_MINOR);
    return AOTH_EXIT_OK;
  }
  if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
    const aoth_command_t *about = argc > 2 ? find(argv[2]) : NULL;
    if (argc > 2 && !about) return unknown(argv[2]);
    if (!about) return help();
    char flag[] = "--help", *line[] = {argv[2], flag, NULL};
    return about->main(about, 2, line);
  }
  if (strcmp(name, "complete") == 0) return aoth_complete(commands, N_COMMANDS, (uint32_t)argc - 2, argv + 2);
  if (argc == 3 && strcmp(name, AOTH_PROBE_COMMAND) == 0) return aoth_probe_be(argv[2]);
  const aoth_command_t *command = find(name);
  if (!command) return unknown(name);
  if (!aoth_contain_begin())
    fprintf(stderr, "aothost: crashes of plugins are not contained: no thread, or no memory, for it\n");
  aoth_contain_watch();
  aoth_supervise_command();
  const int code = command->main(command, argc - 1, argv + 1);
  aoth_contain_end();
  if (code == AOTH_EXIT_INTERRUPTED) end_by_interrupt();
  aoth_supervised_end(code);
  return code;
}
