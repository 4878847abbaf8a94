/* aothost cache: list, explain, clear or verify the compile cache, clearing it. */
#include <cli/base/commands.h>

#include <cli/base/compile_report.h>
#include <aot/inline.h>
#include <jansson.h>
#include <cache/cache_entry.h>
#include <cache/cache_folder.h>
#include <compiler/compile.h>
#include <process/environment.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct cache {
  aoth_cli_t cli;
  const char *model, *older_than;
  kit_arena_t *arena;
  const char *folder;
  aoth_cache_file_t *files, *units; /* entries; files that units keep */
  uint32_t n_files, n_units;
  FILE *out; /* NULL: nothing for people */
} cache_t;

static const char *text_or(const json_t *about, const char *name, const char *otherwise) {
  const char *text = json_string_value(json_object_get(about, name));
  return text ? text : otherwise;
}

/* What an entry says of itself; NULL: `*out_wrong` says what is wrong with it. */
static json_t *read_about(const char *path, const char **out_wrong) {
  aoth_entry_t entry;
  int missing;
  *out_wrong = aoth_entry_open(path, &entry, &missing);
  if (*out_wrong) return NULL;
  json_t *about = aoth_entry_about(&entry);
  if (!about) *out_wrong = "damaged";
  aoth_entry_close(&entry);
  return about;
}

static void put_age(FILE *out, int64_t seconds) {
  if (seconds < 120) fprintf(out, "%5lld s ", (long long)(seconds > 0 ? seconds : 0));
  else if (seconds < 7200) fprintf(out, "%5lld min", (long long)(seconds / 60));
  else if (seconds < 172800) fprintf(out, "%5lld h ", (long long)(seconds / 3600));
  else fprintf(out, "%5lld d ", (long long)(seconds / 86400));
}

/* ---- list, verify ---- */

static int list(cache_t *c, int whole) {
  json_t *rows = json_array();
  const int64_t now = (int64_t)time(NULL);
  uint64_t total = 0, of_units = 0;
  uint32_t n_bad = 0;
  for (uint32_t i = 0; i < c->n_units; i++) of_units += c->units[i].nbytes;
  if (c->out)
    fprintf(c->out, "%s: %u entries, limit %lld bytes\n", c->folder, c->n_files, (long long)aoth_cache_limit());
  if (c->out && c->n_files) fprintf(c->out, "%-32s %10s %9s  %s\n", "entry", "bytes", "last use", "model, pipeline");
  for (uint32_t i = 0; i < c->n_files; i++) {
    const char *wrong;
    json_t *about = read_about(c->files[i].path, &wrong);
    total += c->files[i].nbytes;
    n_bad += wrong != NULL;
    json_array_append_new(rows, json_pack("{s:s, s:s, s:I, s:I, s:s?, s:s?, s:s?}", "key", c->files[i].hex, "file",
                                          c->files[i].path, "bytes", (json_int_t)c->files[i].nbytes, "last_use",
                                          (json_int_t)c->files[i].used, "model", text_or(about, "model", NULL),
                                          "pipeline", text_or(about, "pipeline", NULL), "wrong", wrong));
    if (c->out && (!whole || wrong)) {
      fprintf(c->out, "%-32s %10llu ", c->files[i].hex, (unsigned long long)c->files[i].nbytes);
      put_age(c->out, now - c->files[i].used);
      if (wrong) fprintf(c->out, "  %s; the next run that needs it makes it again\n", wrong);
      else fprintf(c->out, "  %s, %s\n", text_or(about, "model", "?"), text_or(about, "pipeline", "?"));
    }
    json_decref(about);
  }
  if (c->out) fprintf(c->out, "%llu bytes in all; %u damaged\n", (unsigned long long)total, n_bad);
  if (c->out && c->n_units)
    fprintf(c->out, "compiled code and the like, kept by units: %u files, %llu bytes\n", c->n_units,
            (unsigned long long)of_units);
  json_t *all = json_pack("{s:s, s:I, s:I, s:i, s:o, s:{s:i, s:I}}", "folder", c->folder, "limit",
                          (json_int_t)aoth_cache_limit(), "bytes", (json_int_t)total, "damaged", (int)n_bad, "entries",
                          rows, "units", "files", (int)c->n_units, "bytes", (json_int_t)of_units);
  const aot_status_t status = aoth_cli_json(&c->cli, all);
  json_decref(all);
  if (status != AOT_OK) return aoth_exit_code(status);
  return whole && n_bad ? AOTH_EXIT_DIFFERS : AOTH_EXIT_OK;
}

/* ---- clear ---- */

static int is_named(const cache_t *c, const aoth_cache_file_t *f) {
  for (uint32_t i = 1; i < c->cli.n_positional; i++)
    if (strncmp(f->hex, c->cli.positional[i], strlen(c->cli.positional[i])) == 0) return 1;
  return c->cli.n_positional == 1;
}

static uint32_t remove_unused(const aoth_cache_file_t *file, double days) {
  return (double)((int64_t)time(NULL) - file->used) >= days * 86400 && unlink(file->path) == 0;
}

static int clear(cache_t *c) {
  char *end = NULL;
  const double days = c->older_than ? strtod(c->older_than, &end) : 0;
  const int is_all = c->cli.n_positional <= 1;
  uint32_t n = 0, n_units = 0;
  if (c->older_than && (*end || !*c->older_than || days < 0)) {
    aoth_sink_report(c->cli.sink, AOT_SEVERITY_ERROR, NULL, "cli.number",
                     "--older-than takes a number of days, not \"%s\"", c->older_than);
    return AOTH_EXIT_INPUT;
  }
  for (uint32_t i = 1; i < c->cli.n_positional; i++) {
    uint32_t k = 0;
    while (k < c->n_files && strncmp(c->files[k].hex, c->cli.positional[i], strlen(c->cli.positional[i])) != 0) k++;
    if (k < c->n_files) continue;
    aoth_sink_report(c->cli.sink, AOT_SEVERITY_ERROR, NULL, "cache.entry",
                     "no entry begins with '%s'; `aothost cache` lists them", c->cli.positional[i]);
    return AOTH_EXIT_INPUT;
  }
  for (uint32_t i = 0; i < c->n_files; i++)
    if (is_named(c, &c->files[i])) n += remove_unused(&c->files[i], days);
  for (uint32_t i = 0; is_all && i < c->n_units; i++) n_units += remove_unused(&c->units[i], days);
  aoth_cache_evict(INT64_MAX, NULL); /* what killed writers left */
  if (c->out) fprintf(c->out, "removed %u of %u entries", n, c->n_files);
  if (c->out && is_all && c->n_units) fprintf(c->out, ", %u of %u files of units", n_units, c->n_units);
  if (c->out) fputc('\n', c->out);
  json_t *all = json_pack("{s:i, s:i, s:i, s:i}", "removed", (int)n, "entries", (int)c->n_files, "units_removed",
                          (int)n_units, "units", (int)c->n_units);
  const aot_status_t status = aoth_cli_json(&c->cli, all);
  json_decref(all);
  return aoth_exit_code(status);
}

/* ---- explain ---- */

typedef struct difference {
  FILE *out;
  json_t *list;
} difference_t;

static void put_difference(void *self, const char *what, const char *then, const char *now) {
  difference_t *d = self;
  if (d->out) fprintf(d->out, "  %s: %s then, %s now\n", what, then ? then : "not there", now ? now : "not there");
  json_array_append_new(d->list, json_pack("{s:s, s:s?, s:s?}", "what", what, "then", then, "now", now));
}

/* The entry with the fewest differing rows; entries of the same model come first. AOT_NO_INDEX: none. */
static uint32_t nearest(const cache_t *c, const aoth_cache_key_t *key) {
  uint32_t best = AOT_NO_INDEX, least = UINT32_MAX;
  for (uint32_t i = 0; i < c->n_files; i++) {
    const char *wrong;
    json_t *about = read_about(c->files[i].path, &wrong);
    const uint32_t n = about ? aoth_cache_differences(about, key, NULL, NULL) : UINT32_MAX;
    json_decref(about);
    if (n >= least) continue;
    least = n;
    best = i;
  }
  return best;
}

static int tell_difference(cache_t *c, const aoth_cache_key_t *key) {
  const uint32_t i = key->bypass ? AOT_NO_INDEX : nearest(c, key);
  difference_t d = {c->out, json_array()};
  const char *word = key->bypass ? "bypass" : "miss", *wrong = NULL;
  json_t *about = i == AOT_NO_INDEX ? NULL : read_about(c->files[i].path, &wrong);
  if (about && aoth_cache_differences(about, key, NULL, NULL) == 0) word = "hit";
  if (c->out && key->bypass)
    fprintf(c->out, "bypass (%s): %s%s%s\n", aoth_bypass_word(key->bypass), aoth_bypass_sentence(key->bypass),
            key->detail ? ": " : "", key->detail ? key->detail : "");
  else if (c->out && !about) fprintf(c->out, "miss: there is no entry yet\n");
  else if (c->out && strcmp(word, "hit") == 0) fprintf(c->out, "hit: entry %s\n", c->files[i].hex);
  else if (c->out)
    fprintf(c->out, "miss: the nearest entry, %s (%s, %s), differs in\n", c->files[i].hex, text_or(about, "model", "?"),
            text_or(about, "pipeline", "?"));
  if (about) aoth_cache_differences(about, key, put_difference, &d);
  json_t *all = json_pack("{s:s, s:s, s:s?, s:s?, s:s?, s:o}", "outcome", word, "key", key->hex, "reason",
                          key->bypass ? aoth_bypass_word(key->bypass) : NULL, "detail", key->detail, "nearest",
                          about ? c->files[i].hex : NULL, "differences", d.list);
  const aot_status_t status = aoth_cli_json(&c->cli, all);
  json_decref(all);
  json_decref(about);
  return aoth_exit_code(status);
}

static int explain(cache_t *c) {
  aoth_overrides_t overrides = {.model = c->model};
  aoth_pipeline_t *pipeline = NULL;
  aoth_cache_key_t key;
  aot_status_t status = aoth_cli_pipeline(&c->cli, c->cli.positional[1], &overrides, &pipeline);
  if (status == AOT_OK)
    status = aoth_pipeline_key(c->cli.session, pipeline,
                               pipeline->run.train.present ? AOTH_STAGES_OPTIMIZER | AOTH_STAGES_STITCH : 0, &key);
  const int code = status == AOT_OK ? tell_difference(c, &key) : aoth_exit_code(status);
  aoth_pipeline_destroy(pipeline);
  return code;
}

/* ---- the command ---- */

static const struct verb {
  const char *name;
  uint32_t min, max;
} verbs[] = {{"list", 1, 1}, {"explain", 2, 2}, {"clear", 1, 8}, {"verify", 1, 1}};
#define N_VERBS (sizeof verbs / sizeof *verbs)

static int run_verb(cache_t *c, const char *verb) {
  if (strcmp(verb, "explain") == 0) return explain(c);
  if (strcmp(verb, "clear") == 0) return clear(c);
  return list(c, strcmp(verb, "verify") == 0);
}

static int bad_verb(cache_t *c, const char *verb) {
  aot_str_t names[N_VERBS];
  for (size_t i = 0; i < N_VERBS; i++) names[i] = aot_str(verbs[i].name);
  const int near = kit_nearest(aot_str(verb), names, N_VERBS);
  aoth_sink_report(c->cli.sink, AOT_SEVERITY_ERROR, NULL, "cli.verb",
                   "cache does list, explain, clear or verify, not '%s'%s%s%s", verb,
                   near >= 0 ? "; did you mean '" : "", near >= 0 ? verbs[near].name : "", near >= 0 ? "'?" : "");
  return AOTH_EXIT_INPUT;
}

static int with_folder(cache_t *c) {
  const char *verb = c->cli.n_positional ? c->cli.positional[0] : "list";
  size_t i = 0;
  while (i < N_VERBS && strcmp(verbs[i].name, verb) != 0) i++;
  if (i == N_VERBS) return bad_verb(c, verb);
  if (c->cli.n_positional > 0 && (c->cli.n_positional < verbs[i].min || c->cli.n_positional > verbs[i].max)) {
    aoth_sink_report(c->cli.sink, AOT_SEVERITY_ERROR, NULL, "cli.missing", "cache %s takes %s", verb,
                     verbs[i].min == 2 ? "a pipeline" : "no more arguments");
    return AOTH_EXIT_INPUT;
  }
  const char *units = aoth_cache_dir(c->arena, AOTH_UNITS_FOLDER);
  c->folder = aoth_cache_dir(c->arena, AOTH_ENTRIES_FOLDER);
  if (!c->folder || !units) {
    aoth_sink_report(c->cli.sink, AOT_SEVERITY_ERROR, NULL, "cache.folder",
                     "there is no cache folder that belongs to this user alone; set AOT_CACHE_DIR to one");
    return AOTH_EXIT_INPUT;
  }
  c->files = aoth_cache_files(c->arena, c->folder, AOTH_CACHE_SUFFIX, &c->n_files);
  c->units = aoth_cache_files(c->arena, units, "", &c->n_units);
  return run_verb(c, verb);
}

static int cache_main(const aoth_command_t *self, int argc, char **argv) {
  cache_t c = {.model = NULL};
  const aoth_flag_t flags[] = {
      {.name = "--model", .value = "F", .help = "explain: model file instead of the pipeline's", .text = &c.model},
      {
          .name = "--older-than",
          .value = "DAYS",
          .help = "clear: only entries not used for so long",
          .text = &c.older_than,
      },
  };
  int code = aoth_cli_init(&c.cli, self, argc, argv, flags, sizeof flags / sizeof *flags, 0, AOTH_CLI_ANY);
  if (code == AOTH_CLI_GO) {
    const char *json = c.cli.common.json_path;
    c.out = c.cli.common.quiet || (json && strcmp(json, "-") == 0) ? NULL : stdout;
    c.arena = kit_arena_create();
    code = c.arena ? with_folder(&c) : AOTH_EXIT_INPUT;
    kit_arena_destroy(c.arena);
  }
  return aoth_cli_deinit(&c.cli, code);
}

const aoth_command_t aoth_cmd_cache = {
    .name = "cache",
    .usage = "cache [list | explain PIPELINE [--model F] | clear [KEY..] [--older-than DAYS] | verify] [options]",
    .summary = "list, explain, clear or verify the compile cache",
    .text = "Compiled programs are kept on disk and found again by everything that their making depends on: the\n"
            "model, the stages and those of their options that affect the output, the files of the plugins and of\n"
            "the host, and the environment variables that plugins read. `run` and `verify` look there first; -v says\n"
            "what came of it.\n"
            "\n"
            "list      every entry, the one used last first; how much compiled code units keep explain   would this\n"
            "pipeline hit? If not: the nearest entry, and what differs clear     removes entries: all, those named\n"
            "by the beginning of their key, those unused for DAYS;\n"
            "          without names also what units keep\n"
            "verify    reads every entry; status 1 when one is damaged\n"
            "\n"
            "The folders are `compiled` and `units` in AOT_CACHE_DIR, or in ~/.cache/aothost. AOT_CACHE_LIMIT bounds\n"
            "them (1GiB): files unused for longest go first. AOT_CACHE=off, or --no-cache, does without.\n"
            "\n"
            "  aothost cache\n"
            "  aothost cache explain train.yaml --set run.train.optimizer=sgd\n"
            "  aothost cache clear --older-than 30\n",
    .main = cache_main,
};
