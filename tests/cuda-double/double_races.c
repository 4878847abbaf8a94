#include "double_races.h"

#include <stdio.h>

static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Streams past RC_STREAMS share numbers: between them nothing is found. */
void rc_clock_init(rc_races_t *r, rc_clock_t *c) {
  *c = (rc_clock_t){.stream = (uint32_t)(r->n_streams++ % RC_STREAMS), .known = r->n_done};
  for (uint32_t s = 0; s < RC_STREAMS; s++) c->of[s] = 0;
}

uint64_t rc_done(const rc_races_t *r) { return r->n_done; }

void rc_begin(rc_races_t *r, rc_clock_t *c, uint64_t known) {
  r->n_done++;
  c->of[c->stream]++;
  c->known = most(c->known, known);
}

static int is_behind(const rc_clock_t *c, uint32_t stream, const rc_access_t *a) {
  return a->at <= c->of[stream] || a->number <= c->known;
}

int rc_access(rc_races_t *r, const rc_clock_t *c, uint64_t address, uint64_t nbytes, int is_written, const char *what) {
  const rc_access_t own = {address, address + nbytes, c->of[c->stream], r->n_done, is_written, what};
  for (uint32_t s = 0; s < RC_STREAMS; s++) {
    const uint64_t n = r->n_kept[s];
    for (uint64_t k = n; s != c->stream && k > 0 && n - k < RC_KEPT; k--) {
      const rc_access_t *a = &r->kept[s][(k - 1) % RC_KEPT];
      if (is_behind(c, s, a)) break; /* and so are those before it */
      if ((!is_written && !a->is_written) || a->end <= own.begin || own.end <= a->begin) continue;
      fprintf(
          stderr,
          "cuda-double: %s on stream %u %s %llu bytes at %#llx that %s on stream %u %s, and nothing orders the two\n",
          what, c->stream, is_written ? "writes" : "reads", (unsigned long long)nbytes, (unsigned long long)address,
          a->what, s, a->is_written ? "writes" : "reads");
      return 1;
    }
  }
  r->kept[c->stream][r->n_kept[c->stream]++ % RC_KEPT] = own;
  return 0;
}

static rc_word_t *find(rc_races_t *r, uint64_t address) {
  for (uint32_t k = 0; k < RC_WORDS; k++) {
    rc_word_t *w = &r->words[(address / 8 + k) % RC_WORDS];
    if (w->address == address || !w->address) return w;
  }
  return NULL;
}

static void join(rc_clock_t *to, const rc_clock_t *from) {
  for (uint32_t s = 0; s < RC_STREAMS; s++) to->of[s] = most(to->of[s], from->of[s]);
  to->known = most(to->known, from->known);
}

void rc_release(rc_races_t *r, const rc_clock_t *c, uint64_t word, uint64_t value) {
  rc_word_t *w = find(r, word);
  if (!w) return;
  w->address = word;
  w->value = value;
  join(&w->clock, c);
}

/* A value that no stream has written is the host's, which may have waited for all that was done. */
void rc_acquire(rc_races_t *r, rc_clock_t *c, uint64_t word, uint64_t value) {
  const rc_word_t *w = find(r, word);
  if (!w || w->address != word || w->value != value) c->known = r->n_done;
  else join(c, &w->clock);
}

void rc_forget(rc_races_t *r) {
  for (uint32_t s = 0; s < RC_STREAMS; s++) r->n_kept[s] = 0;
}
