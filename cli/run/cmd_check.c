/* aothost check: every complaint about a pipeline file; runs nothing. */
#include <cli/base/commands.h>
#include <config/pipeline.h>
#include <plugin/registry.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "train.yaml:7:9: error: text [code]" as the sink prints it -> an object; other lines belong to the one before. */
static json_t *diagnostic(const char *line, size_t size) {
  static const char *const severities[] = {"error", "warning", "note", "info"};
  char text[4096], file[4096] = "";
  unsigned row = 0, column = 0;
  if (size >= sizeof text || line[0] == ' ') return NULL;
  memcpy(text, line, size);
  text[size] = 0;
  for (int i = 0; i < 4; i++) {
    char mark[16];
    snprintf(mark, sizeof mark, "%s: ", severities[i]);
    char *at = strstr(text, mark);
    if (!at || (at != text && (at < text + 2 || memcmp(at - 2, ": ", 2) != 0))) continue;
    char *message = at + strlen(mark), *code = strrchr(message, '['), *end = code ? strchr(code, ']') : NULL;
    if (at != text) {
      at[-2] = 0;
      if (sscanf(text, "%4095[^:]:%u:%u", file, &row, &column) < 1) snprintf(file, sizeof file, "%s", text);
    }
    if (end) *end = 0;
    if (end && code > message) code[-1] = 0;
    return json_pack("{s:s, s:o, s:o, s:o, s:s, s:s}", "severity", severities[i], "file",
                     *file ? json_string(file) : json_null(), "line", row ? json_integer(row) : json_null(), "column",
                     column ? json_integer(column) : json_null(), "code", end ? code + 1 : "", "message", message);
  }
  return NULL;
}

static json_t *diagnostics(const char *text) {
  json_t *list = json_array();
  while (*text) {
    const size_t n = strcspn(text, "\n");
    json_t *one = diagnostic(text, n);
    if (one) json_array_append_new(list, one);
    text += n + (text[n] == '\n');
  }
  return list;
}

/* Several backends, in the order in which they are queried. */
static void print_preference(const aoth_pipeline_t *p, FILE *out) {
  const char *before = "backends, the preferred one first: ";
  for (uint32_t i = 0; p->assign.unit && i < p->n_stages; i++) {
    if (strcmp(p->stages[i].unit->kind, "backend/2") != 0) continue;
    fprintf(out, "%s%s", before, p->stages[i].name);
    before = ", ";
  }
  if (p->assign.unit) fprintf(out, "\n");
}

static int check(aoth_cli_t *cli, aoth_overrides_t *overrides) {
  const char *path = cli->positional[0];
  aoth_pipeline_t *p = NULL;
  const aot_status_t status = aoth_cli_pipeline(cli, path, overrides, &p);
  const int json_on_stdout = cli->common.json_path && strcmp(cli->common.json_path, "-") == 0;
  FILE *out = json_on_stdout ? stderr : stdout;
  if (status == AOT_OK && cli->common.verbose) {
    kit_text_t text = {0};
    aoth_pipeline_print(p, &text);
    fputs(text.data ? text.data : "", out);
    kit_text_deinit(&text);
  } else if (status == AOT_OK && !cli->common.quiet) {
    fprintf(out, "%s: ok, %u stage%s%s\n", path, p->n_stages, p->n_stages == 1 ? "" : "s",
            p->run.train.present ? ", training" : "");
    print_preference(p, out);
  }
  json_t *result = json_pack(
      "{s:s, s:b, s:I, s:I, s:o}", "pipeline", path, "ok", status == AOT_OK, "errors",
      (json_int_t)aoth_sink_count(cli->sink, AOT_SEVERITY_ERROR), "warnings",
      (json_int_t)(aoth_sink_count(cli->sink, AOT_SEVERITY_WARNING) - aoth_sink_count(cli->sink, AOT_SEVERITY_ERROR)),
      "diagnostics", diagnostics(aoth_sink_text(cli->sink)));
  const aot_status_t written = aoth_cli_json(cli, result);
  json_decref(result);
  aoth_pipeline_destroy(p);
  return aoth_exit_code(status != AOT_OK ? status : written);
}

static int check_main(const aoth_command_t *self, int argc, char **argv) {
  aoth_overrides_t overrides = {0};
  aoth_cli_t cli;
  const aoth_flag_t flags[] = {
      {.name = "--model", .value = "F", .help = "model file instead of the pipeline's", .text = &overrides.model},
      {.name = "--inputs", .value = "F", .help = "input file instead of the pipeline's", .text = &overrides.inputs},
      {.name = "--outputs", .value = "F", .help = "output file instead of the pipeline's", .text = &overrides.outputs},
  };
  int code = aoth_cli_init(&cli, self, argc, argv, flags, 3, 1, 1);
  if (code == AOTH_CLI_GO) code = check(&cli, &overrides);
  return aoth_cli_deinit(&cli, code);
}

const aoth_command_t aoth_cmd_check = {
    .name = "check",
    .usage = "check PIPELINE [options]",
    .summary = "validate a pipeline file without compiling or running it",
    .text = "Reads the file with its includes, variables and overrides, and tells everything that is wrong in\n"
            "one go, each complaint with its line: YAML, keys, units that are not there, options of the wrong\n"
            "type or outside their range, stages in an order that cannot work. Status 2 when something is.\n"
            "With -v it prints the pipeline as it was understood, every default filled in; the text is itself\n"
            "a pipeline that means the same.\n"
            "\n"
            "  aothost check train.yaml\n"
            "  aothost check train.yaml -v --set stages.partition-mincut.distance-base=1.5\n"
            "  aothost check train.yaml --json -\n",
    .main = check_main,
};
