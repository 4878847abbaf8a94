#include "file_ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SLOT_NBYTES = 1 << 16, TEXT = 320, PATH_SIZE = 512, NAP_NS = 50000, SPINS = 200 };

typedef struct slot {
  rn_claim_t claim;
  uint32_t said[2];                  /* of a split: colour, key */
  uint64_t begin[FR_MOST_RANKS + 1]; /* where the piece for each rank begins, of all that is laid out */
  char bytes[SLOT_NBYTES];
} slot_t;

enum { ALL_HERE = 1, OPEN };

/* The file. It begins as zeros, which is nothing. */
typedef struct rendezvous {
  _Atomic int32_t process[FR_MOST_RANKS];  /* of those that are here; -1: it has left in good order */
  _Atomic uint32_t is_open;                /* ALL_HERE, then OPEN, when the file has no name any more */
  _Atomic uint64_t n_waits[FR_MOST_RANKS]; /* a barrier is passed when all have counted as far */
  _Atomic uint32_t failed;                 /* 1: something else writes the text, 2: it is there */
  char text[TEXT];
  slot_t slots[FR_MOST_RANKS];
} rendezvous_t;

typedef struct member {
  rendezvous_t *m;
  uint32_t rank, n_ranks, n_splits;
  uint64_t n_waits, patience_ns;
  char path[PATH_SIZE];
} member_t;

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void nap(void) { nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL); }

/* ---- who is gone, which is late ---- */

/* The process of a rank that has ended without leaving, else 0. It is read again once the process is known to be no
 * more: until then it may have left in good order. */
static int32_t dead_process(const rendezvous_t *m, uint32_t rank) {
  const int32_t process = atomic_load(&m->process[rank]);
  const int has_ended = process > 0 && kill(process, 0) != 0 && errno == ESRCH;
  return has_ended && atomic_load(&m->process[rank]) == process ? process : 0;
}

static int is_gone(const rendezvous_t *m, uint32_t rank) {
  return atomic_load(&m->process[rank]) == -1 || dead_process(m, rank);
}

static int has_failed(const member_t *g, rn_error_t *error) {
  if (atomic_load(&g->m->failed) == 2) {
    snprintf(error->text, sizeof error->text, "%s", g->m->text);
    return 1;
  }
  for (uint32_t r = 0; r < g->n_ranks; r++) {
    const int32_t process = r == g->rank ? 0 : dead_process(g->m, r);
    if (!process) continue;
    snprintf(error->text, sizeof error->text, "rank %u has ended (process %d), told by rank %u", r, process, g->rank);
    return 1;
  }
  return 0;
}

int fr_has_failed(const rn_transport_t *t, rn_error_t *error) { return has_failed(t->self, error); }

static void tell_late(const member_t *g, uint64_t wanted, const rn_exchange_t *x, rn_error_t *error) {
  uint8_t is_late[FR_MOST_RANKS] = {0};
  char late[96];
  for (uint32_t r = 0; r < g->n_ranks; r++) is_late[r] = atomic_load(&g->m->n_waits[r]) < wanted;
  rn_print_ranks(is_late, g->n_ranks, late, sizeof late);
  snprintf(error->text, sizeof error->text,
           "%s%s%s, exchange %llu: nothing was heard of %s within %.3g s, the option patience (told by rank %u)",
           x->what, x->what[0] ? ": " : "", rn_collective_name(x->claim.kind), (unsigned long long)x->claim.number,
           late, (double)g->patience_ns / 1e9, g->rank);
}

static aot_status_t wait_for_all(member_t *g, const rn_exchange_t *x, rn_error_t *error) {
  const uint64_t begin = now_ns(), wanted = ++g->n_waits;
  atomic_store(&g->m->n_waits[g->rank], wanted);
  for (uint32_t r = 0; r < g->n_ranks; r++)
    for (uint32_t spins = 0; atomic_load(&g->m->n_waits[r]) < wanted; spins++) {
      if (spins < SPINS) continue;
      if (has_failed(g, error)) return AOT_E_UNAVAILABLE;
      if (is_gone(g->m, r) && atomic_load(&g->m->n_waits[r]) < wanted) {
        snprintf(error->text, sizeof error->text, "%s: rank %u will not come: it has left (told by rank %u)",
                 rn_collective_name(x->claim.kind), r, g->rank);
        return AOT_E_UNAVAILABLE;
      }
      if (now_ns() - begin > g->patience_ns) {
        tell_late(g, wanted, x, error);
        return AOT_E_UNAVAILABLE;
      }
      nap();
    }
  return AOT_OK;
}

/* ---- an exchange ---- */

/* Bytes [at, at + n) of all that this rank lays out, which is its pieces one after another. */
static void lay_out(const member_t *g, const rn_exchange_t *x, uint64_t at, uint64_t n) {
  slot_t *own = &g->m->slots[g->rank];
  for (uint32_t r = 0; r < g->n_ranks; r++) {
    const uint64_t begin = own->begin[r] > at ? own->begin[r] : at,
                   end = own->begin[r + 1] < at + n ? own->begin[r + 1] : at + n;
    if (end > begin)
      memcpy(own->bytes + (begin - at), (const char *)x->send[r].at + (begin - own->begin[r]), (size_t)(end - begin));
  }
}

static void take(const member_t *g, const rn_exchange_t *x, uint32_t from, uint64_t at) {
  const slot_t *s = &g->m->slots[from];
  const uint64_t first = s->begin[g->rank], last = s->begin[g->rank + 1];
  const uint64_t begin = first > at ? first : at, end = last < at + SLOT_NBYTES ? last : at + SLOT_NBYTES;
  if (end > begin)
    memcpy((char *)x->receive[from].at + (begin - first), s->bytes + (begin - at), (size_t)(end - begin));
}

/* The claims, once all have laid theirs out; *out_most: bytes of the rank that lays out most. */
static aot_status_t compare(const member_t *g, const rn_exchange_t *x, uint64_t *out_most, rn_error_t *error) {
  *out_most = 0;
  for (uint32_t r = 0; r < g->n_ranks; r++) {
    const slot_t *s = &g->m->slots[r];
    if (memcmp(&s->claim, &x->claim, sizeof x->claim) != 0) {
      rn_print_difference(&x->claim, g->rank, &s->claim, r, error);
      return AOT_E_CONTRACT;
    }
    if (s->begin[g->n_ranks] > *out_most) *out_most = s->begin[g->n_ranks];
    if (r == g->rank || s->begin[g->rank + 1] - s->begin[g->rank] == x->receive[r].nbytes) continue;
    snprintf(error->text, sizeof error->text, "rank %u sends %llu bytes to rank %u, which takes %llu", r,
             (unsigned long long)(s->begin[g->rank + 1] - s->begin[g->rank]), g->rank,
             (unsigned long long)x->receive[r].nbytes);
    return AOT_E_CONTRACT;
  }
  return AOT_OK;
}

static aot_status_t exchange(void *self, const rn_exchange_t *x, rn_error_t *error) {
  member_t *g = self;
  slot_t *own = &g->m->slots[g->rank];
  uint64_t most;
  own->claim = x->claim;
  for (uint32_t r = 0; r < g->n_ranks; r++) own->begin[r + 1] = own->begin[r] + (r == g->rank ? 0 : x->send[r].nbytes);
  AOT_TRY(wait_for_all(g, x, error));
  AOT_TRY(compare(g, x, &most, error));
  for (uint64_t at = 0; at < most; at += SLOT_NBYTES) {
    lay_out(g, x, at, SLOT_NBYTES);
    AOT_TRY(wait_for_all(g, x, error));
    for (uint32_t r = 0; r < g->n_ranks; r++)
      if (r != g->rank) take(g, x, r, at);
    AOT_TRY(wait_for_all(g, x, error));
  }
  return wait_for_all(g, x, error); /* nothing claims the next while one still reads the claims of this */
}

/* ---- the ends ---- */

static void abort_ranks(void *self, const char *reason) {
  const member_t *g = self;
  uint32_t none = 0;
  if (!atomic_compare_exchange_strong(&g->m->failed, &none, 1)) return;
  snprintf(g->m->text, sizeof g->m->text, "%s", reason);
  atomic_store(&g->m->failed, 2);
}

static void leave(void *self) {
  member_t *g = self;
  atomic_store(&g->m->process[g->rank], -1);
  munmap(g->m, sizeof *g->m);
  free(g);
}

static aot_status_t split(void *self, uint32_t colour, uint32_t key, rn_transport_t *out, rn_error_t *error) {
  member_t *g = self;
  const rn_exchange_t x = {.claim = {.kind = AOT_COLLECTIVE_BARRIER}, .what = "a split"};
  char path[PATH_SIZE + 64];
  fr_how_t how = {.path = path, .patience_ns = g->patience_ns};
  g->m->slots[g->rank].said[0] = colour;
  g->m->slots[g->rank].said[1] = key;
  AOT_TRY(wait_for_all(g, &x, error));
  for (uint32_t r = 0; r < g->n_ranks; r++) {
    const uint32_t *said = g->m->slots[r].said;
    if (said[0] != colour) continue;
    how.n_ranks++;
    how.rank += said[1] < key || (said[1] == key && r < g->rank);
  }
  snprintf(path, sizeof path, "%s.%u.%u", g->path, ++g->n_splits, colour);
  AOT_TRY(wait_for_all(g, &x, error));
  return fr_join(&how, out, error);
}

/* ---- meeting ---- */

static rendezvous_t *map(int file) {
  void *at = mmap(NULL, sizeof(rendezvous_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return at == MAP_FAILED ? NULL : at;
}

/* Rank 0: a new file under its name at once, in the place of one that an earlier run may have left there. */
static rendezvous_t *make_file(const char *path) {
  char made[PATH_SIZE + 16];
  rendezvous_t *m = NULL;
  snprintf(made, sizeof made, "%.511s.XXXXXX", path);
  const int file = mkstemp(made);
  if (file < 0) return NULL;
  if (ftruncate(file, sizeof *m) == 0 && rename(made, path) == 0) m = map(file);
  if (!m) unlink(made);
  close(file);
  return m;
}

static rendezvous_t *find_file(const char *path, struct stat *out) {
  rendezvous_t *m = NULL;
  const int file = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return NULL;
  if (fstat(file, out) == 0 && out->st_size == (off_t)sizeof *m) m = map(file);
  close(file);
  return m;
}

static int is_same_file(const char *path, const struct stat *as) {
  struct stat now;
  return stat(path, &now) == 0 && now.st_ino == as->st_ino && now.st_dev == as->st_dev;
}

static uint32_t n_here(const rendezvous_t *m, uint32_t n) {
  uint32_t here = 0;
  for (uint32_t r = 0; r < n; r++) here += atomic_load(&m->process[r]) != 0;
  return here;
}

static void find_missing(const rendezvous_t *m, const fr_how_t *how, uint8_t *is_missing) {
  for (uint32_t r = 0; r < how->n_ranks; r++)
    is_missing[r] = r != how->rank && (m ? atomic_load(&m->process[r]) == 0 : r == 0);
}

/* m: the file that rank 0 has made, else NULL. NULL: not all have come in time; and who has not, as far as this one
 * knows: rank 0 alone, which brings the file, where there is none. */
static rendezvous_t *meet(const fr_how_t *how, rendezvous_t *m, uint8_t *is_missing) {
  const uint64_t begin = now_ns();
  struct stat file = {0};
  for (; now_ns() - begin < how->patience_ns; nap()) {
    if (how->rank == 0) {
      atomic_store(&m->process[0], (int32_t)getpid());
      if (n_here(m, how->n_ranks) < how->n_ranks) continue;
      atomic_store(&m->is_open, ALL_HERE); /* before the name goes: who finds none knows why */
      unlink(how->path);
      atomic_store(&m->is_open, OPEN);
      return m;
    }
    if (!m) m = find_file(how->path, &file);
    if (!m) continue;
    atomic_store(&m->process[how->rank], (int32_t)getpid());
    if (atomic_load(&m->is_open) == OPEN) return m;
    if (is_same_file(how->path, &file) || (atomic_load(&m->is_open) && !is_gone(m, 0))) continue;
    munmap(m, sizeof *m); /* one that an earlier run has left */
    m = NULL;
  }
  find_missing(m, how, is_missing);
  if (m) munmap(m, sizeof *m);
  return NULL;
}

aot_status_t fr_join(const fr_how_t *how, rn_transport_t *out, rn_error_t *error) {
  member_t *g = NULL;
  if (how->n_ranks > FR_MOST_RANKS || how->rank >= how->n_ranks) {
    snprintf(error->text, sizeof error->text, "rank %u of %u: ranks count from 0, and there are at most %u", how->rank,
             how->n_ranks, FR_MOST_RANKS);
    return AOT_E_INVALID;
  }
  uint8_t is_missing[FR_MOST_RANKS] = {0};
  rendezvous_t *m = how->rank == 0 ? make_file(how->path) : NULL;
  if (how->rank == 0 && !m) {
    snprintf(error->text, sizeof error->text, "rank 0 of %u cannot make %.160s, where the ranks meet: %.100s",
             how->n_ranks, how->path, strerror(errno));
    return AOT_E_UNAVAILABLE;
  }
  m = meet(how, m, is_missing);
  if (m) g = calloc(1, sizeof *g);
  if (!g) {
    char missing[96] = "the others";
    if (memchr(is_missing, 1, how->n_ranks)) rn_print_ranks(is_missing, how->n_ranks, missing, sizeof missing);
    snprintf(error->text, sizeof error->text,
             "rank %u of %u: nothing was seen of %.80s at %.140s within %.3g s, the option patience", how->rank,
             how->n_ranks, missing, how->path, (double)how->patience_ns / 1e9);
    return AOT_E_UNAVAILABLE;
  }
  *g = (member_t){.m = m, .rank = how->rank, .n_ranks = how->n_ranks, .patience_ns = how->patience_ns};
  snprintf(g->path, sizeof g->path, "%s", how->path);
  *out = (rn_transport_t){.self = g,
                          .rank = g->rank,
                          .n_ranks = g->n_ranks,
                          .exchange = exchange,
                          .split = split,
                          .abort = abort_ranks,
                          .leave = leave};
  return AOT_OK;
}
