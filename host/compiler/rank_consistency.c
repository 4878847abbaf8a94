#include <compiler/rank_consistency.h>

#include <aot/inline.h>
#include <ir/digest.h>
#include <compiler/cache_key.h>
#include <compiler/run_ranks.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define MOST_SHOWN 65536 /* bytes of what a rank says that the others look at, where they differ */

typedef struct digest {
  uint64_t hash, nbytes;
} digest_t;

/* ---- the first line that differs ---- */

typedef struct line {
  const char *at;
  int size;
} line_t;

static line_t next_line(const char **at) {
  while (**at == ' ') ++*at;
  line_t l = {*at, (int)strcspn(*at, "\n")};
  *at += l.size + (l.at[l.size] == '\n');
  if (!l.size) l = (line_t){"(nothing)", 9};
  return l;
}

static void show_difference(aoth_session_t *s, const char *first, const char *other, uint32_t rank) {
  line_t a = {"", 0}, b = a;
  while (*first || *other) {
    a = next_line(&first);
    b = next_line(&other);
    if (a.size != b.size || memcmp(a.at, b.at, (size_t)a.size) != 0) break;
  }
  if (!a.size) return;
  aoth_sink_line(s->config.sink, "rank 0: %.*s", a.size, a.at);
  aoth_sink_line(s->config.sink, "rank %u: %.*s", rank, b.size, b.at);
}

/* ---- among the ranks ---- */

static aot_status_t tell(aoth_session_t *s, const aoth_said_t *said, uint64_t most, uint32_t rank) {
  const uint64_t shown = most < MOST_SHOWN ? most : MOST_SHOWN, stride = shown + 1;
  const uint64_t own_size = said->text.size < shown ? said->text.size : shown;
  char *own = calloc(stride, 1), *all = calloc(stride, s->ranks.n);
  aot_status_t status = own && all ? AOT_OK
                                   : aoth_sink_no_memory(s->config.sink, NULL, "ranks.memory",
                                                         "to compare what %u ranks run", s->ranks.n);
  if (status == AOT_OK && own_size) memcpy(own, said->text.data, (size_t)own_size);
  if (status == AOT_OK) status = aoth_session_gather(s, own, stride, all, "what the ranks run, in words");
  if (status == AOT_OK) {
    aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, NULL, "ranks.differ",
                     "ranks disagree: %s of rank %u differs from that of rank 0 (reported by rank %u)", said->what,
                     rank, s->ranks.rank);
    show_difference(s, all, all + stride * rank, rank);
    status = AOT_E_PRECONDITION;
  }
  free(own);
  free(all);
  return status;
}

/* All ranks come to the same answer, so that all of them show what they have said, or none. */
static aot_status_t compare(aoth_session_t *s, const aoth_said_t *said, uint32_t n, const digest_t *all) {
  for (uint32_t k = 0; k < n; k++) {
    uint64_t most = 0;
    uint32_t unlike = s->ranks.n;
    for (uint32_t r = s->ranks.n; r-- > 0;) {
      const digest_t *d = &all[(size_t)r * n + k];
      if (d->hash != all[k].hash || d->nbytes != all[k].nbytes) unlike = r;
      if (d->nbytes > most) most = d->nbytes;
    }
    if (unlike < s->ranks.n) return tell(s, &said[k], most, unlike);
  }
  return AOT_OK;
}

aot_status_t aoth_ranks_alike(aoth_session_t *s, const aoth_said_t *said, uint32_t n, const char *doing) {
  digest_t *own = calloc(n, sizeof *own), *all = calloc((size_t)n * aoth_session_n_ranks(s), sizeof *all);
  aot_status_t status = own && all ? AOT_OK
                                   : aoth_sink_no_memory(s->config.sink, NULL, "ranks.memory",
                                                         "to compare what %u ranks run", s->ranks.n);
  for (uint32_t k = 0; k < n && status == AOT_OK; k++) {
    if (said[k].text.failed)
      status = aoth_sink_no_memory(s->config.sink, NULL, "ranks.memory", "to compare what %u ranks run", s->ranks.n);
    else
      own[k] =
          (digest_t){XXH3_64bits(said[k].text.data ? said[k].text.data : "", said[k].text.size), said[k].text.size};
  }
  if (status == AOT_OK) status = aoth_session_gather(s, own, n * sizeof *own, all, doing);
  if (status == AOT_OK) status = compare(s, said, n, all);
  free(own);
  free(all);
  return status;
}

/* ---- what was compiled ---- */

static void say_pipeline(const aoth_pipeline_t *p, kit_text_t *out) {
  aoth_pipeline_t alike = *p; /* where ranks meet, and as which rank, may differ */
  memset(&alike.run.ranks, 0, sizeof alike.run.ranks);
  aoth_pipeline_print(&alike, out);
}

static void say_plugins(const aoth_session_t *s, kit_text_t *out) {
  for (uint32_t i = 0; i < s->n_records; i++) {
    const aoth_record_t *r = &s->records[i];
    kit_text_f(out, "%s of %s %s\n", r->unit, r->plugin ? r->plugin : "", r->version ? r->version : "");
  }
}

aot_status_t aoth_session_note_model(aoth_session_t *s, const aoth_pipeline_t *p, const aoth_model_t *model) {
  char hex[AOTH_KEY_CHARS + 1];
  kit_text_t line = {0};
  if (aoth_session_n_ranks(s) == 1) return AOT_OK;
  aoth_cache_model_key(s, model, hex);
  kit_text_f(&line, "%s: %llu bytes, hash %s\n", p->model_path ? p->model_path : "",
             (unsigned long long)model->file.nbytes, hex);
  s->ranks.model = line.failed ? NULL : kit_arena_text(s->arena, line.data, line.size);
  kit_text_deinit(&line);
  return s->ranks.model ? AOT_OK : AOT_E_EXHAUSTED;
}

void aoth_session_note_program(aoth_session_t *s) {
  if (aoth_session_n_ranks(s) == 1) return;
  const aoth_digest_t program = aoth_prog_digest(s->now.prog);
  s->ranks.program = program.lo ^ program.hi;
}

aot_status_t aoth_session_agree(aoth_session_t *s, const aoth_pipeline_t *p) {
  enum { PIPELINE, PLUGINS, MODEL, PROGRAM, N };
  if (aoth_session_n_ranks(s) == 1) return AOT_OK;
  if (!(aoth_prog_properties(s->now.prog).known & AOTH_PROP_SHARDED)) {
    aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, &p->run.ranks.where, "ranks.alone",
                     "%u ranks, but no stage shards the program; ranks would train independent models. Add stage fsdp "
                     "after functionalize",
                     s->ranks.n);
    return AOT_E_PRECONDITION;
  }
  aoth_said_t said[N] = {
      {.what = "the pipeline"}, {.what = "the plugins"}, {.what = "the model"}, {.what = "the program"}};
  say_pipeline(p, &said[PIPELINE].text);
  say_plugins(s, &said[PLUGINS].text);
  kit_text_z(&said[MODEL].text, s->ranks.model ? s->ranks.model : "");
  kit_text_f(&said[PROGRAM].text, "hash %016llx\n", (unsigned long long)s->ranks.program);
  const aot_status_t status = aoth_ranks_alike(s, said, N, "what the ranks run");
  for (int k = 0; k < N; k++) kit_text_deinit(&said[k].text);
  return status;
}
