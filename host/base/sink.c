/* The diagnostic sink.
 *
 *     train.yaml:7:9: error: unknown option distance-bse [pipeline.unknown-option]
 *          with: {distance-bse: 1.2}
 *                 ^~~~~~~~~~~~
 *       hint: did you mean distance-base?
 *
 * What is printed is also collected, so that tests and bundles can read it back. Colours go to a terminal only.
 *
 * A message may be a plugin's, or have come out of a file: control characters, and those that reorder a line, are
 * escaped, further lines are indented after a bar, so that none passes for a diagnostic, and its length has a
 * limit. */
#include <base/sink.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N_SEVERITIES (AOT_SEVERITY_ERROR + 1) /* row 0 is empty */
#define SOURCE_WIDTH 140                      /* longer source lines are shown around the column */
#define MOST_OF_MESSAGE ((size_t)16 << 10)
#define MOST_COLLECTED ((size_t)16 << 20) /* later diagnostics are printed only */
#define NEXT_LINE "\n  | "

struct aoth_sink {
  FILE *out;
  int colours;
  int32_t min;
  int hidden; /* the last report was below min */
  uint32_t counts[N_SEVERITIES];
  char first_error[256];
  kit_text_t text;
  pthread_mutex_t lock;
};

typedef struct severity_look {
  const char *word, *colour;
} severity_look_t;

static const severity_look_t looks[N_SEVERITIES] = {
    {"", ""}, {"note", "\033[1;36m"}, {"info", "\033[1m"}, {"warning", "\033[1;35m"}, {"error", "\033[1;31m"}};

aoth_sink_t *aoth_sink_create(FILE *out) {
  aoth_sink_t *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  if (pthread_mutex_init(&s->lock, NULL) != 0) {
    free(s);
    return NULL;
  }
  s->out = out;
  s->colours = out && isatty(fileno(out));
  return s;
}

void aoth_sink_destroy(aoth_sink_t *s) {
  if (!s) return;
  kit_text_deinit(&s->text);
  pthread_mutex_destroy(&s->lock);
  free(s);
}

/* ---- text that a terminal can be shown ---- */

static int is_control(const char *at, size_t n) {
  static const char *const reorder[] = {"\u061c", "\u200e", "\u200f", "\u2028", "\u2029", "\u202a", "\u202b",
                                        "\u202c", "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069"};
  const unsigned char first = (unsigned char)at[0];
  if (n <= 1) return n == 0 || (first < 0x20 && first != '\t') || first == 0x7f;
  if (n == 2 && first == 0xc2 && (unsigned char)at[1] < 0xa0) return 1; /* U+0080 to U+009F */
  for (size_t i = 0; i < sizeof reorder / sizeof *reorder; i++)
    if (strlen(reorder[i]) == n && memcmp(reorder[i], at, n) == 0) return 1;
  return 0;
}

/* next_line: what represents a line feed. */
static void add_escaped(kit_text_t *t, const char *text, size_t size, const char *next_line) {
  size_t begin = 0, at = 0, n;
  for (; at < size; at += n) {
    n = kit_utf8_length(text + at, size - at);
    const int is_line = text[at] == '\n';
    const int is_escaped = !is_line && is_control(text + at, n);
    if (n == 0) n = 1;
    if (!is_line && !is_escaped) continue;
    kit_text_add(t, text + begin, at - begin);
    begin = at + n;
    if (is_line) kit_text_z(t, next_line);
    for (size_t k = 0; is_escaped && k < n; k++) kit_text_f(t, "\\x%02x", (unsigned)(unsigned char)text[at + k]);
  }
  kit_text_add(t, text + begin, size - begin);
}

static void add_shown(kit_text_t *t, const char *text) {
  size_t size = strlen(text), shown = size;
  while (shown && text[shown - 1] == '\n') shown--;
  if (shown > MOST_OF_MESSAGE) {
    shown = MOST_OF_MESSAGE;
    while (shown > MOST_OF_MESSAGE - 4 && ((unsigned char)text[shown] & 0xC0) == 0x80) shown--; /* whole characters */
    add_escaped(t, text, shown, NEXT_LINE);
    kit_text_f(t, " .. (%zu bytes more)", size - shown);
  } else {
    add_escaped(t, text, shown, NEXT_LINE);
  }
}

/* ---- a diagnostic ---- */

/* Bytes [begin, end) of source that are shown, with the column inside. */
static void source_window(const aoth_where_t *w, size_t size, size_t *begin, size_t *end) {
  size_t column = w->column ? w->column - 1 : 0;
  *begin = 0;
  *end = size;
  if (size <= SOURCE_WIDTH) return;
  if (column > SOURCE_WIDTH / 2) *begin = column - SOURCE_WIDTH / 2;
  if (*begin > size - SOURCE_WIDTH) *begin = size - SOURCE_WIDTH;
  *end = *begin + SOURCE_WIDTH;
  while (*begin < *end && ((unsigned char)w->source[*begin] & 0xC0) == 0x80) ++*begin; /* whole characters */
  while (*end < size && ((unsigned char)w->source[*end] & 0xC0) == 0x80) ++*end;
}

static void render_caret(kit_text_t *t, const aoth_where_t *w, size_t begin, size_t end) {
  size_t column = w->column - 1;
  kit_text_z(t, "    ");
  for (size_t i = begin; i < column && i < end; i++) {
    unsigned char c = (unsigned char)w->source[i];
    if (c == '\t') kit_text_z(t, "\t"); /* the terminal moves as it did in the line above */
    else if ((c & 0xC0) != 0x80) kit_text_z(t, " ");
  }
  kit_text_z(t, "^");
  for (size_t i = column + 1; i + 1 < w->end_column && i < end; i++)
    if (((unsigned char)w->source[i] & 0xC0) != 0x80) kit_text_z(t, "~");
  kit_text_z(t, "\n");
}

static void render_source(kit_text_t *t, const aoth_where_t *w) {
  size_t begin, end, size = strcspn(w->source, "\r\n");
  source_window(w, size, &begin, &end);
  kit_text_z(t, "    ");
  for (size_t i = begin, n; i < end; i += n) { /* one column each, so that the caret stays below its character */
    n = kit_utf8_length(w->source + i, end - i);
    const int is_plain = !is_control(w->source + i, n);
    if (n == 0) n = 1;
    kit_text_add(t, is_plain ? w->source + i : "?", is_plain ? n : 1);
  }
  kit_text_z(t, "\n");
  if (w->column && w->column - 1 <= size && w->column - 1 >= begin && w->column - 1 <= end)
    render_caret(t, w, begin, end);
}

static void render_place(kit_text_t *t, const aoth_where_t *w) {
  if (!w || !w->file) return;
  add_shown(t, w->file);
  if (w->line) kit_text_f(t, ":%u", (unsigned)w->line);
  if (w->line && w->column) kit_text_f(t, ":%u", (unsigned)w->column);
  kit_text_z(t, ": ");
}

static void render(kit_text_t *t, int colours, int32_t severity, const aoth_where_t *w, const char *code,
                   const char *message) {
  if (colours) kit_text_z(t, "\033[1m");
  render_place(t, w);
  if (colours) kit_text_z(t, looks[severity].colour);
  kit_text_f(t, "%s:", looks[severity].word);
  if (colours) kit_text_z(t, "\033[0m");
  kit_text_z(t, " ");
  add_shown(t, message);
  if (code && *code) {
    kit_text_z(t, " [");
    add_shown(t, code);
    kit_text_z(t, "]");
  }
  kit_text_z(t, "\n");
  if (w && w->line && w->source) render_source(t, w);
}

static int collects(const aoth_sink_t *s) { return s->text.size < MOST_COLLECTED; }

static void emit(aoth_sink_t *s, const char *bytes, size_t n) {
  if (!s->out || n == 0) return;
  fwrite(bytes, 1, n, s->out);
  fflush(s->out);
}

void aoth_sink_v(aoth_sink_t *s, int32_t severity, const aoth_where_t *where, const char *code, const char *format,
                 va_list args) {
  if (!s) return;
  if (severity < AOT_SEVERITY_NOTE || severity > AOT_SEVERITY_ERROR) severity = AOT_SEVERITY_ERROR;
  kit_text_t message = {0}, shown = {0};
  kit_text_v(&message, format, args);
  const char *text = message.data ? message.data : "";
  pthread_mutex_lock(&s->lock);
  if (severity == AOT_SEVERITY_ERROR && !s->counts[severity])
    snprintf(s->first_error, sizeof s->first_error, "%s", text);
  s->counts[severity]++;
  if (severity != AOT_SEVERITY_NOTE) s->hidden = severity < s->min; /* a note goes with its diagnostic */
  if (!s->hidden) {
    if (collects(s)) render(&s->text, 0, severity, where, code, text);
    render(&shown, s->colours, severity, where, code, text);
    emit(s, shown.data, shown.size);
  }
  pthread_mutex_unlock(&s->lock);
  kit_text_deinit(&message);
  kit_text_deinit(&shown);
}

void aoth_sink_report(aoth_sink_t *s, int32_t severity, const aoth_where_t *where, const char *code, const char *format,
                      ...) {
  va_list args;
  va_start(args, format);
  aoth_sink_v(s, severity, where, code, format, args);
  va_end(args);
}

void aoth_sink_line(aoth_sink_t *s, const char *format, ...) {
  if (!s) return;
  kit_text_t line = {0}, shown = {0};
  va_list args;
  va_start(args, format);
  kit_text_v(&line, format, args);
  va_end(args);
  kit_text_z(&shown, "  ");
  add_shown(&shown, line.data ? line.data : "");
  kit_text_z(&shown, "\n");
  pthread_mutex_lock(&s->lock);
  if (!s->hidden && shown.data) {
    if (collects(s)) kit_text_add(&s->text, shown.data, shown.size);
    emit(s, shown.data, shown.size);
  }
  pthread_mutex_unlock(&s->lock);
  kit_text_deinit(&line);
  kit_text_deinit(&shown);
}

uint32_t aoth_sink_count(const aoth_sink_t *s, int32_t severity) {
  uint32_t n = 0;
  for (int32_t i = severity < 0 ? 0 : severity; s && i < N_SEVERITIES; i++) n += s->counts[i];
  return n;
}

aot_status_t aoth_sink_no_memory(aoth_sink_t *s, const aoth_where_t *where, const char *code, const char *format, ...) {
  char what[256];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  aoth_sink_report(s, AOT_SEVERITY_ERROR, where, code, "no memory %s", what);
  return AOT_E_EXHAUSTED;
}

aot_status_t aoth_sink_exhausted(aoth_sink_t *s, uint32_t errors, aot_status_t status, const char *doing) {
  if (status == AOT_OK || !s || aoth_sink_count(s, AOT_SEVERITY_ERROR) > errors) return status;
  return aoth_sink_no_memory(s, NULL, "memory", "to %s", doing);
}

void aoth_sink_first_error(const aoth_sink_t *s, char *out, size_t size) {
  snprintf(out, size, "%s", s ? s->first_error : "");
}

const char *aoth_sink_text(const aoth_sink_t *s) { return s && s->text.data ? s->text.data : ""; }

void aoth_sink_adopt(aoth_sink_t *s, const char *text, size_t size, const uint32_t *counts) {
  if (!s) return;
  pthread_mutex_lock(&s->lock);
  const size_t room = collects(s) ? MOST_COLLECTED - s->text.size : 0;
  add_escaped(&s->text, text, size < room ? size : room, "\n"); /* the process that wrote it may be damaged */
  for (int32_t i = 0; i < N_SEVERITIES; i++) s->counts[i] += counts[i];
  pthread_mutex_unlock(&s->lock);
}

void aoth_sink_min(aoth_sink_t *s, int32_t severity) {
  if (s) s->min = severity;
}
