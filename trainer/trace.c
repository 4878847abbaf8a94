/* Spans and counters as they happen, in memory; one file at the end. Times are microseconds since the trace began. */
#include <trainer/trace.h>

#include <base/clock.h>
#include <base/file.h>
#include "kit/base/text.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct aoth_trace {
  char *path;
  uint64_t begin_ns;
  kit_text_t events;
  pthread_mutex_t lock;
};

aoth_trace_t *aoth_trace_create(const char *path) {
  aoth_trace_t *t = path ? calloc(1, sizeof *t) : NULL;
  if (!t) return NULL;
  t->path = strdup(path);
  t->begin_ns = aoth_now_ns();
  pthread_mutex_init(&t->lock, NULL);
  return t;
}

static void begin_event(aoth_trace_t *t, const char *name) {
  kit_text_z(&t->events, t->events.size ? ",\n{\"name\": " : "{\"name\": ");
  kit_text_json(&t->events, (aot_str_t){name, strlen(name)});
}

void aoth_trace_lane(aoth_trace_t *t, int lane, const char *name) {
  if (!t) return;
  pthread_mutex_lock(&t->lock);
  begin_event(t, "thread_name");
  kit_text_f(&t->events, ", \"ph\": \"M\", \"pid\": %ld, \"tid\": %d, \"args\": {\"name\": ", (long)getpid(), lane);
  kit_text_json(&t->events, (aot_str_t){name, strlen(name)});
  kit_text_z(&t->events, "}}");
  pthread_mutex_unlock(&t->lock);
}

void aoth_trace_span(aoth_trace_t *t, const char *category, const char *name, uint64_t begin_ns, const char *args) {
  if (t) aoth_trace_past(t, AOTH_TRACE_HOST, category, name, begin_ns, aoth_now_ns() - begin_ns, args);
}

void aoth_trace_past(aoth_trace_t *t, int lane, const char *category, const char *name, uint64_t begin_ns, uint64_t ns,
                     const char *args) {
  if (!t || begin_ns < t->begin_ns) return;
  pthread_mutex_lock(&t->lock);
  begin_event(t, name);
  kit_text_z(&t->events, ", \"cat\": ");
  kit_text_json(&t->events, (aot_str_t){category, strlen(category)});
  kit_text_f(&t->events, ", \"ph\": \"X\", \"ts\": %.3f, \"dur\": %.3f, \"pid\": %ld, \"tid\": %d",
             (double)(begin_ns - t->begin_ns) / 1e3, (double)ns / 1e3, (long)getpid(), lane);
  if (args && *args) kit_text_f(&t->events, ", \"args\": {%s}", args);
  kit_text_z(&t->events, "}");
  pthread_mutex_unlock(&t->lock);
}

void aoth_trace_counter(aoth_trace_t *t, const char *name, double value) {
  if (!t || value - value != 0) return; /* JSON has no infinities */
  pthread_mutex_lock(&t->lock);
  begin_event(t, name);
  kit_text_f(&t->events, ", \"ph\": \"C\", \"ts\": %.3f, \"pid\": %ld, \"args\": {\"value\": %.17g}}",
             (double)(aoth_now_ns() - t->begin_ns) / 1e3, (long)getpid(), value);
  pthread_mutex_unlock(&t->lock);
}

aot_status_t aoth_trace_write(aoth_trace_t *t, aoth_sink_t *sink) {
  if (!t) return AOT_OK;
  if (!t->path || t->events.failed) {
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "trace.memory", "no memory for the trace");
    return AOT_E_EXHAUSTED;
  }
  aoth_writer_t *w = aoth_writer_begin(t->path, sink);
  if (!w) return AOT_E_INVALID;
  static const char head[] = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n", tail[] = "\n]}\n";
  aoth_writer_write(w, head, sizeof head - 1);
  aoth_writer_write(w, t->events.data ? t->events.data : "", t->events.size);
  aoth_writer_write(w, tail, sizeof tail - 1);
  return aoth_writer_commit(w);
}

void aoth_trace_destroy(aoth_trace_t *t) {
  if (!t) return;
  kit_text_deinit(&t->events);
  pthread_mutex_destroy(&t->lock);
  free(t->path);
  free(t);
}
