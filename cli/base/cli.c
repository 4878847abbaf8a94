/* Command lines -> aoth_cli_t. A flag is looked up in the command's table, then in the common one. */
#include "kit/base/vector.h"
#include <cli/base/cli.h>

#include <cli/base/bundle.h>
#include <cli/base/compile_report.h>
#include <cli/base/probe.h>
#include <trainer/supervisor.h>
#include <aot/inline.h>
#include <base/file.h>
#include <jansson.h>
#include <cli/base/overwrites.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int texts_add(aoth_texts_t *t, const char *text) {
  const char **items = kit_grow(t->items, &t->capacity, (uint64_t)t->n + 1, sizeof *items);
  if (!items) return 0;
  t->items = items;
  t->items[t->n++] = text;
  return 1;
}

#define N_COMMON 15u
static void common_flags(aoth_common_t *c, aoth_flag_t out[N_COMMON], int *help) {
  const aoth_flag_t rows[N_COMMON] = {
      {.name = "--verbose", .letter = "-v", .help = "print more detail", .set = &c->verbose},
      {.name = "--quiet", .letter = "-q", .help = "errors only", .set = &c->quiet},
      {
          .name = "--plugin-dir",
          .value = "D",
          .help = "search directory D (or load plugin file D) before the default path; repeatable",
          .list = &c->plugin_dirs,
      },
      {
          .name = "--set",
          .value = "K=V",
          .help = "override a pipeline key: stages.NAME.OPTION, run.train.steps, vars.NAME; repeatable",
          .list = &c->sets,
      },
      {
          .name = "--dump-after",
          .value = "STAGE",
          .help = "print the program after this stage; may repeat",
          .list = &c->dump_after,
      },
      {
          .name = "--dump-dir",
          .value = "D",
          .help = "write dumps to D/NN.STAGE.ir; without --dump-after, dump after every stage",
          .text = &c->dump_dir,
      },
      {.name = "--time", .help = "print time and statistics of each stage", .set = &c->time},
      {.name = "--trace",
       .value = "F",
       .help = "write a timeline for ui.perfetto.dev",
       .text = &c->trace_path,
       .writes = 1},
      {
          .name = "--json",
          .value = "F",
          .help = "write results as JSON to F (-: stdout)",
          .text = &c->json_path,
          .writes = 1,
      },
      {
          .name = "--bundle-dir",
          .value = "D",
          .help = "write a reproduction bundle to D when a stage or a call fails",
          .text = &c->bundle_dir,
      },
      {
          .name = "--isolate",
          .value = "W",
          .help = "isolation of passes and partitioners without `isolate`: worker (own process) or none (default: "
                  "worker for third-party plugins, and with a time limit)",
          .text = &c->isolate,
      },
      {
          .name = "--stage-timeout",
          .value = "S",
          .help = "time limit of a worker stage, in seconds; makes worker the default isolation (default: no limit)",
          .text = &c->timeout,
      },
      {
          .name = "--locked",
          .value = "F",
          .help = "load only plugins whose SHA-256 is listed in F (written by `plugins --lock`)",
          .text = &c->lock,
      },
      {
          .name = "--require-signed",
          .value = "F",
          .help = "load third-party plugins only if signed by a key in F",
          .text = &c->keys,
      },
      {.name = "--help", .letter = "-h", .help = "print this", .set = help},
  };
  memcpy(out, rows, sizeof rows);
}

/* ---- help ---- */

static void print_flags(const aoth_flag_t *flags, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    char left[64];
    snprintf(left, sizeof left, "%s%s%s%s%s", flags[i].letter ? flags[i].letter : "", flags[i].letter ? ", " : "",
             flags[i].name, flags[i].value ? " " : "", flags[i].value ? flags[i].value : "");
    printf("  %-22s %s\n", left, flags[i].help);
  }
}

static void print_help(const aoth_command_t *command, const aoth_flag_t *flags, uint32_t n_flags,
                       const aoth_flag_t *common) {
  const size_t n = strlen(command->text);
  printf("usage: aothost %s\n\n%s%s", command->usage, command->text, n && command->text[n - 1] == '\n' ? "" : "\n");
  if (n_flags) {
    printf("\noptions\n");
    print_flags(flags, n_flags);
  }
  printf("\ncommon options\n");
  print_flags(common, N_COMMON);
  printf(
      "\nexit status: 0 done; 1 the check or comparison failed; 2 bad usage or input; 3 a plugin failed; 130 Ctrl-C\n");
}

/* ---- parsing ---- */

static int usage_error(const aoth_cli_t *cli, const char *format, const char *what, const char *near) {
  fprintf(stderr, "aothost %s: ", cli->command->name);
  fprintf(stderr, format, what);
  if (near) fprintf(stderr, "; did you mean %s?", near);
  fprintf(stderr, "\nusage: aothost %s\n", cli->command->usage);
  return AOTH_EXIT_INPUT;
}

static int is_flag(const aoth_flag_t *f, const char *text, size_t size) {
  return (strlen(f->name) == size && memcmp(f->name, text, size) == 0) ||
         (f->letter && strlen(f->letter) == size && memcmp(f->letter, text, size) == 0);
}

static int ends_with(const char *text, const char *ending) {
  const size_t n = strlen(text), m = strlen(ending);
  return n >= m && strcmp(text + n - m, ending) == 0;
}

static int unknown_flag(const aoth_cli_t *cli, const char *text, size_t size, const aoth_flag_t *flags,
                        uint32_t n_flags, const aoth_flag_t *common) {
  aot_str_t names[64];
  char word[128];
  uint32_t n = 0;
  for (uint32_t i = 0; i < n_flags && n < 64; i++) names[n++] = (aot_str_t){flags[i].name, strlen(flags[i].name)};
  for (uint32_t i = 0; i < N_COMMON && n < 64; i++) names[n++] = (aot_str_t){common[i].name, strlen(common[i].name)};
  snprintf(word, sizeof word, "%.*s", (int)(size < 100 ? size : 100), text);
  const int near = kit_nearest((aot_str_t){text, size}, names, n);
  return usage_error(cli, "unknown option %s", word, near >= 0 ? names[near].data : NULL);
}

/* One flag at argv[*i]; AOTH_CLI_GO or an exit status. */
static int take_flag(const aoth_cli_t *cli, int argc, char **argv, int *i, const aoth_flag_t *flags, uint32_t n_flags,
                     const aoth_flag_t *common) {
  const char *text = argv[*i], *equals = strncmp(text, "--", 2) == 0 ? strchr(text, '=') : NULL;
  const size_t size = equals ? (size_t)(equals - text) : strlen(text);
  const aoth_flag_t *f = NULL;
  for (uint32_t k = 0; k < n_flags && !f; k++)
    if (is_flag(&flags[k], text, size)) f = &flags[k];
  for (uint32_t k = 0; k < N_COMMON && !f; k++)
    if (is_flag(&common[k], text, size)) f = &common[k];
  if (!f) return unknown_flag(cli, text, size, flags, n_flags, common);
  if (f->ending) {
    ++*f->set;
    if (equals) *f->text = equals + 1;
    else if (*i + 1 < argc && ends_with(argv[*i + 1], f->ending)) *f->text = argv[++*i];
    return AOTH_CLI_GO;
  }
  if (!f->value) {
    if (equals) return usage_error(cli, "%s takes no value", f->name, NULL);
    ++*f->set;
    return AOTH_CLI_GO;
  }
  if (!equals && *i + 1 >= argc) return usage_error(cli, "%s needs a value", f->name, NULL);
  const char *value = equals ? equals + 1 : argv[++*i];
  if (f->list) {
    if ((f->with_name && !texts_add(f->list, f->name)) || !texts_add(f->list, value))
      return usage_error(cli, "%s", "no memory", NULL);
  } else {
    *f->text = value;
  }
  return AOTH_CLI_GO;
}

/* ---- files that are read and written ---- */

static int is_path(const char *text) { return text && strcmp(text, "-") != 0; }

static int collect_outputs(aoth_cli_t *cli, const aoth_flag_t *flags, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (flags[i].writes && is_path(*flags[i].text))
      if (!texts_add(&cli->outputs, flags[i].name) || !texts_add(&cli->outputs, *flags[i].text)) return 0;
  return 1;
}

/* Two of the line's files are one, and the first is written: what the other one is for would be lost. A value that is
 * no file that exists may be no path at all; of a flag that writes it is one. */
static int is_clash(const aoth_cli_t *cli, const char *flag, const char *path, const aoth_flag_t *f,
                    const char *other) {
  const char *other_flag = f ? f->name : "";
  const int is_file = is_path(other) && ((f && f->writes) || access(other, F_OK) == 0);
  if (!is_file || path == other || !kit_file_same(path, other)) return 0;
  aoth_sink_report(cli->sink, AOT_SEVERITY_ERROR, NULL, "cli.overwrites",
                   "%s %s would be written over %s%s%s: they are the same file; give one of them another name", flag,
                   path, other_flag, *other_flag ? " " : "", other);
  return 1;
}

static int clashes_with_flags(const aoth_cli_t *cli, const char *flag, const char *path, const aoth_flag_t *flags,
                              uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    const aoth_texts_t *list = flags[i].list;
    for (uint32_t k = 0; list && k < list->n; k++)
      if (is_clash(cli, flag, path, &flags[i], list->items[k])) return 1;
    if (!list && flags[i].text && is_clash(cli, flag, path, &flags[i], *flags[i].text)) return 1;
  }
  return 0;
}

static int check_outputs(aoth_cli_t *cli, const aoth_flag_t *flags, uint32_t n_flags, const aoth_flag_t *common) {
  if (!collect_outputs(cli, flags, n_flags) || !collect_outputs(cli, common, N_COMMON))
    return usage_error(cli, "%s", "no memory", NULL);
  for (uint32_t i = 0; i < cli->outputs.n; i += 2) {
    const char *flag = cli->outputs.items[i], *path = cli->outputs.items[i + 1];
    for (uint32_t k = 0; k < cli->n_positional; k++)
      if (is_clash(cli, flag, path, NULL, cli->positional[k])) return AOTH_EXIT_INPUT;
    if (clashes_with_flags(cli, flag, path, flags, n_flags) || clashes_with_flags(cli, flag, path, common, N_COMMON))
      return AOTH_EXIT_INPUT;
  }
  return AOTH_CLI_GO;
}

int aoth_cli_init(aoth_cli_t *cli, const aoth_command_t *command, int argc, char **argv, const aoth_flag_t *flags,
                  uint32_t n_flags, uint32_t min, uint32_t max) {
  aoth_flag_t common[N_COMMON];
  int help = 0, no_more_flags = 0;
  memset(cli, 0, sizeof *cli);
  cli->command = command;
  common_flags(&cli->common, common, &help);
  cli->positional = calloc((size_t)argc + 1, sizeof *cli->positional);
  if (!cli->positional) return usage_error(cli, "%s", "no memory", NULL);
  if (command->listener) {
    command->listener->hear(command->listener, flags, n_flags);
    command->listener->hear(command->listener, common, N_COMMON);
    return AOTH_EXIT_OK;
  }
  for (int i = 1; i < argc; i++) {
    if (!no_more_flags && strcmp(argv[i], "--") == 0) {
      no_more_flags = 1;
    } else if (!no_more_flags && argv[i][0] == '-' && argv[i][1]) {
      const int code = take_flag(cli, argc, argv, &i, flags, n_flags, common);
      if (code != AOTH_CLI_GO) return code;
    } else if (cli->n_positional == max) {
      return usage_error(cli, "one argument too many: %s", argv[i], NULL);
    } else {
      cli->positional[cli->n_positional++] = argv[i];
    }
  }
  if (help) {
    print_help(command, flags, n_flags, common);
    return AOTH_EXIT_OK;
  }
  if (cli->n_positional < min) return usage_error(cli, "%s", "an argument is missing", NULL);
  cli->sink = aoth_sink_create(stderr);
  if (!cli->sink) return usage_error(cli, "%s", "no memory", NULL);
  aoth_sink_min(cli->sink, cli->common.quiet     ? AOT_SEVERITY_ERROR
                           : cli->common.verbose ? AOT_SEVERITY_NOTE
                                                 : AOT_SEVERITY_WARNING);
  const int code = check_outputs(cli, flags, n_flags, common);
  if (code == AOTH_CLI_GO) cli->trace = aoth_trace_create(cli->common.trace_path);
  return code;
}

/* ---- what the common flags set up ---- */

static int read_isolation(const aoth_cli_t *cli, int32_t *out_isolate, double *out_timeout) {
  const char *isolate = cli->common.isolate, *timeout = cli->common.timeout;
  char *end = NULL;
  *out_isolate = AOTH_ISOLATE_UNSAID;
  *out_timeout = timeout ? strtod(timeout, &end) : 0;
  if (isolate) *out_isolate = strcmp(isolate, "worker") == 0 ? AOTH_ISOLATE_WORKER : AOTH_ISOLATE_NONE;
  const int wrong_word = isolate && *out_isolate == AOTH_ISOLATE_NONE && strcmp(isolate, "none") != 0;
  const int wrong_number = timeout && (*end || !(*out_timeout >= 0.001 && *out_timeout <= 1e9));
  if (wrong_word)
    aoth_sink_report(cli->sink, AOT_SEVERITY_ERROR, NULL, "cli.isolate",
                     "--isolate: invalid value '%s'; expected one of: none, worker", isolate);
  if (wrong_number)
    aoth_sink_report(cli->sink, AOT_SEVERITY_ERROR, NULL, "cli.timeout",
                     "--stage-timeout %s: it takes a number of seconds, from 0.001", timeout);
  return !wrong_word && !wrong_number;
}

static int ask_session(void *session) { return aoth_session_cancel(session); }

static void put_span(void *trace, const char *category, const char *name, uint64_t begin_ns, const char *args) {
  aoth_trace_span(trace, category, name, begin_ns, args);
}

/* The first plugin that is not the project's own: from here on another process waits for this one. */
static const char *vet_plugin(const char *path, kit_arena_t *arena) {
  aoth_supervise();
  return aoth_is_command() ? aoth_probe(path, arena) : NULL;
}

aoth_session_t *aoth_cli_session(aoth_cli_t *cli) {
  const aoth_common_t *c = &cli->common;
  int32_t isolate;
  double timeout;
  if (cli->session) return cli->session;
  if (!read_isolation(cli, &isolate, &timeout)) return NULL;
  const aoth_session_config_t config = {
      .sink = cli->sink,
      .plugin_dirs = c->plugin_dirs.items,
      .n_plugin_dirs = c->plugin_dirs.n,
      .verbose = (uint32_t)c->verbose,
      .dump_after = c->dump_after.items,
      .n_dump_after = c->dump_after.n,
      .dump_dir = c->dump_dir,
      .bundle_dir = c->bundle_dir,
      .write_bundle = aoth_bundle_write,
      .note_lowering = aoth_bundle_lowering,
      .check_replay = (uint32_t)c->check_replay,
      .isolate = isolate,
      .timeout = timeout,
      .lock = c->lock,
      .keys = c->keys,
      .vet_plugin = vet_plugin,
      .no_cache = (uint32_t)c->no_cache,
      .span = cli->trace ? put_span : NULL,
      .span_self = cli->trace,
      .watch = cli->watch,
  };
  const uint32_t errors = aoth_sink_count(cli->sink, AOT_SEVERITY_ERROR);
  cli->session = aoth_session_create(&config);
  if (!cli->session && aoth_sink_count(cli->sink, AOT_SEVERITY_ERROR) == errors)
    aoth_sink_report(cli->sink, AOT_SEVERITY_ERROR, NULL, "session.memory", "no memory for a session");
  if (cli->session) {
    cli->interrupt = (aoth_interrupt_t){.ask = ask_session, .self = cli->session};
    aoth_interrupt_begin(&cli->interrupt);
  }
  return aoth_sink_count(cli->sink, AOT_SEVERITY_ERROR) > errors ? NULL
                                                                 : cli->session; /* a --plugin-dir that is none */
}

aot_status_t aoth_cli_pipeline(aoth_cli_t *cli, const char *path, aoth_overrides_t *overrides, aoth_pipeline_t **out) {
  *out = NULL;
  aoth_session_t *session = aoth_cli_session(cli);
  if (!session) return AOT_E_INVALID;
  overrides->sets = cli->common.sets.items;
  overrides->n_sets = cli->common.sets.n;
  const aot_status_t status = aoth_pipeline_load(path, overrides, cli->sink, out);
  const aot_status_t checked =
      *out ? aoth_pipeline_check(session, *out) : AOT_OK; /* further complaints, in the same go */
  const aot_status_t kept = *out ? aoth_pipeline_check_outputs(*out, cli->sink) : AOT_OK;
  if (status != AOT_OK || checked != AOT_OK) return status != AOT_OK ? status : checked;
  AOT_TRY(kept);
  for (uint32_t i = 0; i < cli->outputs.n; i += 2)
    AOT_TRY(aoth_pipeline_check_output(*out, cli->outputs.items[i + 1], cli->outputs.items[i], NULL, cli->sink));
  for (uint32_t i = 0; i < cli->common.dump_after.n; i++) {
    const char *name = cli->common.dump_after.items[i];
    int known = (*out)->run.train.present && (*out)->run.train.optimizer.use &&
                strcmp((*out)->run.train.optimizer.use, name) == 0;
    for (uint32_t k = 0; k < (*out)->n_stages; k++)
      known |= strcmp((*out)->stages[k].name, name) == 0 || strcmp((*out)->stages[k].use, name) == 0;
    if (known) continue;
    aoth_sink_report(cli->sink, AOT_SEVERITY_ERROR, NULL, "cli.dump-after", "--dump-after %s: %s has no such stage",
                     name, path);
    return AOT_E_INVALID;
  }
  return AOT_OK;
}

aot_status_t aoth_cli_json(aoth_cli_t *cli, struct json_t *value) {
  const char *path = cli->common.json_path;
  if (!path) return AOT_OK;
  char *text = json_dumps(value, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
  if (!text) {
    aoth_sink_report(cli->sink, AOT_SEVERITY_ERROR, NULL, "cli.json",
                     "the results hold a text that is not UTF-8, or memory ran out");
    return AOT_E_INVALID;
  }
  aot_status_t status = AOT_OK;
  if (strcmp(path, "-") == 0) {
    printf("%s\n", text);
  } else {
    aoth_writer_t *w = aoth_writer_begin(path, cli->sink);
    if (w) {
      aoth_writer_write(w, text, strlen(text));
      aoth_writer_write(w, "\n", 1);
    }
    status = w ? aoth_writer_commit(w) : AOT_E_INVALID;
  }
  free(text);
  return status;
}

int aoth_cli_deinit(aoth_cli_t *cli, int code) {
  fflush(stdout);
  if (cli->session && cli->common.time) aoth_records_print(cli->session, stderr);
  if (cli->session) aoth_interrupt_end(&cli->interrupt);
  if (cli->interrupt.asked && code != AOTH_EXIT_OK && code != AOTH_EXIT_PLUGIN) code = AOTH_EXIT_INTERRUPTED;
  aoth_session_destroy(cli->session);
  if (cli->trace && aoth_trace_write(cli->trace, cli->sink) != AOT_OK && code == AOTH_EXIT_OK) code = AOTH_EXIT_INPUT;
  aoth_trace_destroy(cli->trace);
  if (fflush(stdout) != 0 || ferror(stdout)) {
    struct pollfd p = {.fd = STDOUT_FILENO};
    const int nobody_reads = poll(&p, 1, 0) == 1 && (p.revents & POLLERR); /* `aothost ops | head` wants no complaint */
    if (!nobody_reads) fprintf(stderr, "aothost: cannot write to the standard output\n");
    if (code == AOTH_EXIT_OK) code = AOTH_EXIT_INPUT;
  }
  aoth_sink_destroy(cli->sink);
  free(cli->positional);
  free(cli->outputs.items);
  free(cli->common.plugin_dirs.items);
  free(cli->common.sets.items);
  free(cli->common.dump_after.items);
  return code;
}
