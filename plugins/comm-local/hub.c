#include "hub.h"
#include "kit/base/splitmix.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAME_SIZE 160u

typedef struct seat { /* of a rank, at the hub */
  rn_claim_t claim;
  const rn_piece_t *send;   /* by rank, while an exchange is under way */
  uint64_t n_laid, n_taken; /* exchanges in which it has laid out its pieces, and taken the others' */
  int has_left;
  int is_taken; /* of the places' lock, as n_joined is */
} seat_t;

typedef struct hub {
  struct hub *next; /* of those that are not full yet */
  char name[NAME_SIZE];
  uint32_t n_ranks, n_joined, n_users;
  uint32_t n_taking; /* ranks that read others' memory now */
  int is_aborted;
  rn_error_t error; /* why */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  seat_t *seats;
} hub_t;

typedef struct member {
  hub_t *hub;
  cl_meeting_t how;
  char name[NAME_SIZE];
  uint64_t n, n_splits; /* exchanges and splits so far */
  uint64_t random;
  int is_dead; /* on purpose */
} member_t;

/* The one place of a process: names of hubs that wait for ranks. */
static struct {
  pthread_mutex_t lock;
  hub_t *waiting;
} places = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- time ---- */

static struct timespec deadline(uint64_t patience_ns) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  const uint64_t ns = (uint64_t)t.tv_nsec + patience_ns % 1000000000u;
  t.tv_sec += (time_t)(patience_ns / 1000000000u + ns / 1000000000u);
  t.tv_nsec = (long)(ns % 1000000000u);
  return t;
}

static uint64_t draw(member_t *m) { return kit_splitmix64(&m->random); }

static void dawdle(member_t *m) {
  if (!m->how.faults.delay_ns) return;
  const uint64_t ns = draw(m) % m->how.faults.delay_ns;
  const struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
  nanosleep(&t, NULL);
}

/* ---- hubs ---- */

static void free_hub(hub_t *h) {
  pthread_cond_destroy(&h->changed);
  pthread_mutex_destroy(&h->lock);
  free(h->seats);
  free(h);
}

static hub_t *make_hub(const char *name, uint32_t n_ranks) {
  hub_t *h = calloc(1, sizeof *h);
  pthread_condattr_t monotonic;
  if (!h) return NULL;
  h->seats = calloc(n_ranks, sizeof *h->seats);
  if (!h->seats) {
    free(h);
    return NULL;
  }
  h->n_ranks = n_ranks;
  snprintf(h->name, sizeof h->name, "%s", name);
  pthread_mutex_init(&h->lock, NULL);
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&h->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  return h;
}

/* The hub of that name that waits for this rank, made if there is none. The rank is in it. */
static hub_t *enter(const cl_meeting_t *m, const char **why_not) {
  pthread_mutex_lock(&places.lock);
  hub_t **at = &places.waiting;
  while (*at && strcmp((*at)->name, m->name) != 0) at = &(*at)->next;
  *why_not = "no memory for it";
  if (!*at) *at = make_hub(m->name, m->n_ranks);
  hub_t *h = *at;
  if (h && h->n_ranks != m->n_ranks) {
    *why_not = "others wait there for another number of ranks";
    h = NULL;
  } else if (h && h->seats[m->rank].is_taken) {
    *why_not = "this rank is there already";
    h = NULL;
  }
  if (h) {
    pthread_mutex_lock(&h->lock);
    h->seats[m->rank].n_laid = 1; /* counts from here */
    h->n_users++;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    h->seats[m->rank].is_taken = 1;
    if (++h->n_joined == h->n_ranks) *at = h->next;
  }
  pthread_mutex_unlock(&places.lock);
  return h;
}

/* Out of the waiting ones: it will not be full any more. */
static void forget(hub_t *h) {
  pthread_mutex_lock(&places.lock);
  for (hub_t **at = &places.waiting; *at; at = &(*at)->next)
    if (*at == h) {
      *at = h->next;
      break;
    }
  pthread_mutex_unlock(&places.lock);
}

static void abort_hub(hub_t *h, const char *reason) { /* locked */
  if (!h->is_aborted) snprintf(h->error.text, sizeof h->error.text, "%s", reason);
  h->is_aborted = 1;
  pthread_cond_broadcast(&h->changed);
}

static void leave_hub(void *self) {
  member_t *m = self;
  hub_t *h = m->hub;
  pthread_mutex_lock(&h->lock);
  h->seats[m->how.rank].has_left = 1;
  const uint32_t left = --h->n_users;
  pthread_cond_broadcast(&h->changed);
  pthread_mutex_unlock(&h->lock);
  if (left == 0) free_hub(h);
  free(m);
}

static void abort_member(void *self, const char *reason) {
  const member_t *m = self;
  if (m->is_dead) return; /* the dead say nothing */
  pthread_mutex_lock(&m->hub->lock);
  abort_hub(m->hub, reason);
  pthread_mutex_unlock(&m->hub->lock);
}

/* ---- an exchange ---- */

enum { LAID, TAKEN };

static int is_missing(const seat_t *s, int half, uint64_t n) { return (half == LAID ? s->n_laid : s->n_taken) < n; }

/* only_gone: of those that are missing the ones that will not come, either */
static void tell_missing(const member_t *m, int only_gone, int half, uint64_t n, const rn_exchange_t *x,
                         const char *why, rn_error_t *error) {
  const hub_t *h = m->hub;
  uint8_t *is_late = calloc(h->n_ranks, 1);
  char ranks[96] = "a rank", what[128];
  for (uint32_t r = 0; is_late && r < h->n_ranks; r++)
    is_late[r] = is_missing(&h->seats[r], half, n) && (h->seats[r].has_left || !only_gone);
  if (is_late) rn_print_ranks(is_late, h->n_ranks, ranks, sizeof ranks);
  snprintf(what, sizeof what, "%s%s%s of %llu bytes, exchange %llu", x->what, x->what[0] ? ": " : "",
           rn_collective_name(x->claim.kind), (unsigned long long)x->claim.nbytes, (unsigned long long)x->claim.number);
  snprintf(error->text, sizeof error->text, "%s: %s %s (told by rank %u)", what, ranks, why, m->how.rank);
  free(is_late);
}

/* Until every rank has come so far; locked. */
static aot_status_t await(member_t *m, int half, uint64_t n, const rn_exchange_t *x, rn_error_t *error) {
  hub_t *h = m->hub;
  const struct timespec end = deadline(m->how.patience_ns);
  for (;;) {
    uint32_t n_missing = 0, n_gone = 0;
    for (uint32_t r = 0; r < h->n_ranks; r++)
      if (is_missing(&h->seats[r], half, n)) {
        n_missing++;
        n_gone += (uint32_t)h->seats[r].has_left;
      }
    /* Whoever all have met, the first exchange, has met them however late it wakes, and what all have taken is used;
     * of what is laid out to be taken the others may have undone theirs. */
    if (!n_missing && (n == 1 || half == TAKEN || !h->is_aborted)) return AOT_OK;
    if (h->is_aborted) {
      *error = h->error;
      return AOT_E_UNAVAILABLE;
    }
    if (n_gone)
      tell_missing(m, 1, half, n, x, n_gone == 1 ? "will not come: it has left" : "will not come: they have left",
                   error);
    else if (pthread_cond_timedwait(&h->changed, &h->lock, &end) != 0)
      tell_missing(m, 0, half, n, x, n_missing == 1 ? "was not heard of in time" : "were not heard of in time", error);
    else continue;
    abort_hub(h, error->text);
    return AOT_E_UNAVAILABLE;
  }
}

static aot_status_t compare_claims(const member_t *m, const rn_exchange_t *x, rn_error_t *error) {
  const hub_t *h = m->hub;
  for (uint32_t r = 0; r < h->n_ranks; r++) {
    if (memcmp(&h->seats[r].claim, &x->claim, sizeof x->claim) == 0) continue;
    rn_print_difference(&x->claim, m->how.rank, &h->seats[r].claim, r, error);
    return AOT_E_CONTRACT;
  }
  return AOT_OK;
}

/* The others' pieces for this rank, in an order of its own. */
static aot_status_t take(member_t *m, const rn_exchange_t *x, rn_error_t *error) {
  const hub_t *h = m->hub;
  const uint32_t n = h->n_ranks, own = m->how.rank, first = m->how.faults.seed ? (uint32_t)(draw(m) % n) : 0;
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t r = (first + k) % n;
    if (r == own) continue;
    const rn_piece_t *from = &h->seats[r].send[own], *to = &x->receive[r];
    if (from->nbytes != to->nbytes) {
      snprintf(error->text, sizeof error->text, "%s: rank %u gives %llu bytes to rank %u, which expects %llu",
               rn_collective_name(x->claim.kind), r, (unsigned long long)from->nbytes, own,
               (unsigned long long)to->nbytes);
      return AOT_E_CONTRACT;
    }
    if (to->nbytes) memcpy(to->at, from->at, (size_t)to->nbytes);
  }
  return AOT_OK;
}

/* A rank that is to die is gone for good; one that hangs comes back when the others have given up. */
static aot_status_t misbehave(member_t *m, rn_error_t *error) { /* locked */
  hub_t *h = m->hub;
  const struct timespec end = deadline(4 * m->how.patience_ns);
  if (m->n == m->how.faults.die_at) {
    h->seats[m->how.rank].has_left = m->is_dead = 1;
    pthread_cond_broadcast(&h->changed);
    snprintf(error->text, sizeof error->text, "rank %u dies at exchange %llu, as its options say", m->how.rank,
             (unsigned long long)m->n);
    return AOT_E_UNAVAILABLE;
  }
  while (!h->is_aborted && pthread_cond_timedwait(&h->changed, &h->lock, &end) == 0) {}
  snprintf(error->text, sizeof error->text, "rank %u hung at exchange %llu, as its options say", m->how.rank,
           (unsigned long long)m->n);
  return AOT_E_UNAVAILABLE;
}

static aot_status_t exchange_locked(member_t *m, const rn_exchange_t *x, rn_error_t *error) {
  hub_t *h = m->hub;
  seat_t *own = &h->seats[m->how.rank];
  const uint64_t n = m->n + 1; /* coming to the hub was the first */
  own->claim = x->claim;
  own->send = x->send;
  own->n_laid = n;
  pthread_cond_broadcast(&h->changed);
  AOT_TRY(await(m, LAID, n, x, error));
  aot_status_t status = compare_claims(m, x, error);
  if (status == AOT_OK) {
    h->n_taking++;
    pthread_mutex_unlock(&h->lock);
    dawdle(m);
    status = take(m, x, error);
    pthread_mutex_lock(&h->lock);
    h->n_taking--;
    own->n_taken = n;
  }
  if (status != AOT_OK) abort_hub(h, error->text);
  pthread_cond_broadcast(&h->changed);
  return status == AOT_OK ? await(m, TAKEN, n, x, error) : status;
}

static aot_status_t exchange(void *self, const rn_exchange_t *x, rn_error_t *error) {
  member_t *m = self;
  hub_t *h = m->hub;
  dawdle(m);
  m->n++;
  pthread_mutex_lock(&h->lock);
  aot_status_t status = m->n == m->how.faults.die_at || m->n == m->how.faults.hang_at ? misbehave(m, error)
                                                                                      : exchange_locked(m, x, error);
  while (status != AOT_OK && h->n_taking) pthread_cond_wait(&h->changed, &h->lock); /* they read what is ours */
  pthread_mutex_unlock(&h->lock);
  return status;
}

/* ---- meeting ---- */

static aot_status_t split(void *self, uint32_t colour, uint32_t key, rn_transport_t *out, rn_error_t *error) {
  member_t *m = self;
  const uint32_t n = m->hub->n_ranks, own = m->how.rank;
  uint32_t said[2] = {colour, key}, (*all)[2] = calloc(n, sizeof *all);
  rn_piece_t *pieces = calloc(2 * (size_t)n, sizeof *pieces);
  aot_status_t status = AOT_E_EXHAUSTED;
  snprintf(error->text, sizeof error->text, "no memory to split a group of ranks");
  if (all && pieces) {
    for (uint32_t r = 0; r < n; r++) {
      pieces[r] = (rn_piece_t){said, sizeof said};
      pieces[n + r] = (rn_piece_t){all[r], sizeof said};
    }
    const rn_exchange_t x = {.claim = {.nbytes = sizeof said}, .send = pieces, .receive = pieces + n, .what = "split"};
    status = exchange(m, &x, error);
  }
  if (status == AOT_OK) {
    char name[NAME_SIZE];
    cl_meeting_t part = m->how;
    memcpy(all[own], said, sizeof said);
    snprintf(name, sizeof name, "%.120s/%llu.%u", m->name, (unsigned long long)++m->n_splits, colour);
    part.name = name;
    part.rank = part.n_ranks = 0;
    for (uint32_t r = 0; r < n; r++) {
      if (all[r][0] != colour) continue;
      part.n_ranks++;
      if (all[r][1] < key || (all[r][1] == key && r < own)) part.rank++;
    }
    status = cl_meet(&part, out, error);
  }
  free(all);
  free(pieces);
  return status;
}

aot_status_t cl_meet(const cl_meeting_t *meeting, rn_transport_t *out, rn_error_t *error) {
  static const rn_exchange_t coming = {.what = "join"};
  const char *why;
  member_t *m = calloc(1, sizeof *m);
  hub_t *h = m ? enter(meeting, &why) : NULL;
  if (!h) {
    snprintf(error->text, sizeof error->text, "cannot join '%s' as rank %u of %u: %s", meeting->name, meeting->rank,
             meeting->n_ranks, m ? why : "no memory");
    free(m);
    return AOT_E_PRECONDITION;
  }
  *m = (member_t){.hub = h, .how = *meeting};
  snprintf(m->name, sizeof m->name, "%s", meeting->name);
  m->how.name = m->name;
  m->random = meeting->faults.seed * 0x2545F4914F6CDD1Du + meeting->rank;
  pthread_mutex_lock(&h->lock);
  const aot_status_t status = await(m, LAID, 1, &coming, error);
  pthread_mutex_unlock(&h->lock);
  if (status != AOT_OK) {
    forget(h);
    leave_hub(m);
    return status;
  }
  *out = (rn_transport_t){.self = m,
                          .rank = meeting->rank,
                          .n_ranks = meeting->n_ranks,
                          .exchange = exchange,
                          .split = split,
                          .abort = abort_member,
                          .leave = leave_hub};
  return AOT_OK;
}
