/* Reading exceptions.txt (op_case_exceptions.h). */
#include "kit/base/vector.h"
#include <cli/ops/op_case_exceptions.h>

#include <base/file.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One line that is no comment; 0: it cannot be read. */
static int read_line(const char *line, aoth_case_exception_t *out) {
  char how[96];
  int end = 0;
  memset(out, 0, sizeof *out);
  if (sscanf(line, " %95s %31s %95[^:]: %199[^\n]%n", out->who, out->result, how, out->reason, &end) != 4 || end == 0)
    return 0;
  if (strncmp(out->result, "output.", 7) != 0 && strncmp(out->result, "grad.", 5) != 0 &&
      strcmp(out->result, "shares") != 0)
    return 0;
  end = 0;
  if (sscanf(how, "any %n", &end) == 0 && end > 0 && how[end] == '\0') return 1;
  end = 0;
  out->picks = sscanf(how, "picks %" SCNu32 " along %" SCNu32 "=%" SCNd64 " gives %" SCNu32 " %n", &out->argument,
                      &out->dim_argument, &out->dim_preset, &out->output, &end) == 4;
  return out->picks && how[end] == '\0';
}

static int is_comment(const char *line) {
  line += strspn(line, " \t\r\n");
  return *line == '\0' || *line == '#';
}

static aoth_case_exception_t *grown(aoth_case_exceptions_t *e) {
  aoth_case_exception_t *more = kit_grow(e->at, &e->capacity, (uint64_t)e->n + 1, sizeof *more);
  if (!more) return NULL;
  e->at = more;
  return &more[e->n++];
}

aot_status_t aoth_case_exceptions_read(const char *path, aoth_sink_t *sink, aoth_case_exceptions_t *out) {
  char line[512];
  aoth_where_t where = {.file = path};
  aot_status_t status = AOT_OK;
  const char *why;
  FILE *f = kit_file_stream(path, &why);
  memset(out, 0, sizeof *out);
  if (!f && errno == ENOENT) return AOT_OK;
  if (!f) {
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "cases.exception", "cannot read %s: %s", path, why);
    return AOT_E_INVALID;
  }
  while (status == AOT_OK && fgets(line, sizeof line, f)) {
    where.line++;
    if (is_comment(line)) continue;
    aoth_case_exception_t *one = grown(out);
    if (!one) {
      status = AOT_E_EXHAUSTED;
    } else if (!read_line(line, one)) {
      aoth_sink_report(
          sink, AOT_SEVERITY_ERROR, &where, "cases.exception",
          "expected: a case or operator, output.K, grad.PATH or shares, 'any' or 'picks A along D=P gives K', ':', "
          "a reason");
      status = AOT_E_INVALID;
    }
  }
  fclose(f);
  return status;
}

void aoth_case_exceptions_deinit(aoth_case_exceptions_t *e) {
  free(e->at);
  memset(e, 0, sizeof *e);
}

const aoth_case_exception_t *aoth_case_exception(const aoth_case_exceptions_t *e, const char *id, const char *op,
                                                 const char *result) {
  for (uint32_t i = 0; i < e->n; i++)
    if ((strcmp(e->at[i].who, id) == 0 || strcmp(e->at[i].who, op) == 0) && strcmp(e->at[i].result, result) == 0)
      return &e->at[i];
  return NULL;
}
