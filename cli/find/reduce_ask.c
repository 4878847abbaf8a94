#include <cli/find/reduce_bundle.h>

#include <base/file.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <trainer/trial/child.h>
#include <cli/find/replay_bundle.h>

/* In the child, with a session of its own. */
static aot_status_t answer_one(void *self, const aoth_request_t *request, json_t *answer) {
  const aoth_reduce_t *r = self;
  aoth_cli_t cli = *r->cli;
  cli.session = NULL;
  cli.watch = NULL;
  cli.common.bundle_dir = NULL;
  cli.sink = aoth_sink_create(stderr);
  json_object_set_new(answer, "status", json_integer(aoth_exit_code(aoth_replay(&cli, request->path))));
  return AOT_OK;
}

/* Numbers, names of values and whatever a stage computes otherwise are left out: they change with the program. */
static void without_numbers(const char *message, char *out, size_t size) {
  const char *computes = strstr(message, " computes: "), *end = computes ? computes : message + strlen(message);
  size_t n = 0;
  for (const char *at = message; at < end && n + 2 < size;) {
    const int is_value = *at == '%' && (isalnum((unsigned char)at[1]) || at[1] == '_');
    const int is_number = isdigit((unsigned char)*at) ||
                          (*at == '-' && isdigit((unsigned char)at[1]) && (at == message || at[-1] == ' '));
    if (!is_value && !is_number) {
      out[n++] = *at++;
      continue;
    }
    out[n++] = '#';
    for (at++; at < end && (isdigit((unsigned char)*at) || (is_value && (isalnum((unsigned char)*at) || *at == '_')) ||
                            (is_number && *at == '.' && isdigit((unsigned char)at[1])) ||
                            (is_number && *at == 'e' && (at[1] == '-' || at[1] == '+')) ||
                            (is_number && (*at == '-' || *at == '+') && at[-1] == 'e'));)
      at++;
  }
  out[n] = 0;
}

/* The bundle over this text: its exit status, its first error. -1: it cannot be queried. */
static int ask(aoth_reduce_t *r, const char *text, size_t size, char *out_message, size_t room) {
  aoth_child_t child = AOTH_NO_CHILD;
  aoth_served_t served = {answer_one, r};
  aoth_request_t request = {.what = 0};
  kit_text_t log = {0};
  char path[512];
  snprintf(path, sizeof path, "%s/program.ir", r->folder);
  aoth_writer_t *w = aoth_writer_begin_own(path, r->cli->sink);
  if (w) aoth_writer_write(w, text, size);
  if (!w || aoth_writer_commit(w) != AOT_OK) return -1;
  snprintf(request.path, sizeof request.path, "%s", r->folder);
  r->n_asked++;
  const int started = aoth_child_start(&child, aoth_child_serve_table, &served);
  json_t *answer = started ? aoth_child_ask(&child, &request, "replay", (int64_t)(r->timeout * 1000)) : NULL;
  const int status = answer    ? (int)json_integer_value(json_object_get(answer, "status"))
                     : started ? AOTH_EXIT_PLUGIN
                               : -1;
  if (answer) aoth_child_log(&child, &log);
  if (answer) aoth_first_error(log.data, out_message, room);
  else snprintf(out_message, room, "%s", child.why ? child.why : "");
  kit_text_deinit(&log);
  json_decref(answer);
  aoth_child_deinit(&child);
  return status;
}

aot_status_t aoth_reduce_first(aoth_reduce_t *r, const char *text, size_t size) {
  r->status = ask(r, text, size, r->said, sizeof r->said);
  without_numbers(r->said, r->message, sizeof r->message);
  return r->status < 0 ? AOT_E_EXHAUSTED : AOT_OK;
}

int aoth_reduce_still_fails(aoth_reduce_t *r, const char *text, size_t size) {
  char said[512], message[512];
  const int status = ask(r, text, size, said, sizeof said);
  without_numbers(said, message, sizeof message);
  return status == r->status && strcmp(message, r->message) == 0;
}
