#include "nccl_ranks.h"

#include "kit/base/errors.h"
#include "attempt.h"
#include "meeting_address.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOT_NBYTES = 1 << 15 /* that go to a rank at once */ };
#define FAREWELL_NS 500000000u /* in which the others can be reported why this rank ends */
#define ABORT_NS 2000000000u   /* in which calls come back once NCCL has been reported to abort */

/* What goes ahead of pieces, to each rank. kind 0: nothing was heard. */
typedef struct note {
  rn_claim_t claim;
  uint64_t nbytes; /* of the piece that comes after it */
  uint64_t has_failed;
  char why[256]; /* has_failed: the rank goes no further */
} note_t;

/* What all groups of this process share. */
typedef struct link {
  nl_nccl_t nccl;
  nl_staging_t staging; /* a slot a rank */
  nl_comm_t comm;
  char address[300];
  uint32_t rank, n_ranks, n_groups;
  uint64_t patience_ns;
  uint64_t *n_out, *n_in;            /* bytes to and from each rank, of what goes now */
  size_t stride;                     /* of the slots */
  int code;                          /* NCCL's, of what went last .. */
  int cuda_code;                     /* .. and CUDA's */
  pthread_mutex_t lock;              /* of what follows */
  int is_busy, is_stuck, has_failed; /* is_stuck: a thread may still be at it, so that nothing is returned */
  char why[320];
} link_t;

typedef struct ranks {
  link_t *link;
  uint32_t rank, n_ranks;
  uint32_t *at; /* by rank of this group: the rank in the link */
} ranks_t;

static char *slot_out(const link_t *l, uint32_t r) { return l->staging.host_out + r * l->stride; }
static char *slot_in(const link_t *l, uint32_t r) { return l->staging.host_in + r * l->stride; }

/* ---- what goes at once ---- */

static void keep_failure(link_t *l, const char *why) {
  pthread_mutex_lock(&l->lock);
  if (!l->has_failed) snprintf(l->why, sizeof l->why, "%s", why);
  l->has_failed = 1;
  pthread_mutex_unlock(&l->lock);
}

/* What has come is brought to the host whatever happens: it reports who was heard of. */
static void swap(void *arg) {
  link_t *l = arg;
  const nl_nccl_t *const nccl = &l->nccl;
  const nl_staging_t *const s = &l->staging;
  const size_t nbytes = l->n_ranks * l->stride;
  pthread_mutex_lock(&l->lock);
  const nl_comm_t comm = l->comm; /* which may be aborted meanwhile */
  pthread_mutex_unlock(&l->lock);
  l->code = 0;
  l->cuda_code = comm ? nl_staging_enter(s) : 1;
  if (!l->cuda_code) l->cuda_code = s->driver.memcpy_to_device(s->out, s->host_out, nbytes, s->stream);
  if (!l->cuda_code) l->cuda_code = s->driver.memset_bytes(s->in, 0, nbytes, s->stream);
  if (l->cuda_code) return;
  l->code = nccl->group_start();
  for (uint32_t r = 0; r < l->n_ranks && !l->code; r++) {
    const void *from = (const void *)(uintptr_t)(s->out + r * l->stride);
    void *to = (void *)(uintptr_t)(s->in + r * l->stride);
    if (l->n_out[r]) l->code = nccl->send(from, l->n_out[r], NL_U8, (int)r, comm, s->stream);
    if (l->n_in[r] && !l->code) l->code = nccl->recv(to, l->n_in[r], NL_U8, (int)r, comm, s->stream);
  }
  const int ended = nccl->group_end(); /* after a failure, too */
  if (!l->code) l->code = ended;
  l->cuda_code = s->driver.memcpy_to_host(s->host_in, s->in, nbytes, s->stream);
  if (!l->cuda_code) l->cuda_code = s->driver.stream_synchronize(s->stream);
}

static void abort_comm(link_t *l) {
  pthread_mutex_lock(&l->lock);
  const nl_comm_t comm = l->comm;
  l->comm = NULL;
  pthread_mutex_unlock(&l->lock);
  if (comm) l->nccl.comm_abort(comm);
}

/* 1: all has gone and come. 0: it has not within the time, and the communicator is no more. */
static int go(link_t *l, uint64_t within_ns) {
  nl_attempt_t *a = nl_attempt_begin(swap, l);
  if (!a) return 0;
  const int is_well = nl_attempt_ends(a, within_ns);
  if (!is_well) {
    abort_comm(l);
    l->is_stuck = !nl_attempt_ends(a, ABORT_NS);
  }
  nl_attempt_forget(a, NULL);
  return is_well;
}

/* ---- an exchange ---- */

static aot_status_t tell_late(const ranks_t *g, const rn_exchange_t *x, rn_error_t *error) {
  const link_t *l = g->link;
  uint8_t *is_late = calloc(g->n_ranks, 1);
  char late[96] = "another rank";
  uint32_t n_late = 0;
  for (uint32_t r = 0; is_late && r < g->n_ranks && !l->is_stuck; r++) {
    note_t note;
    memcpy(&note, slot_in(l, g->at[r]), sizeof note);
    is_late[r] = r != g->rank && !note.claim.kind;
    n_late += is_late[r];
  }
  if (n_late) rn_print_ranks(is_late, g->n_ranks, late, sizeof late);
  snprintf(error->text, sizeof error->text,
           "%s%s%s, exchange %llu: nothing was heard of %s within %.3g s, the option patience (told by rank %u)",
           x->what, x->what[0] ? ": " : "", rn_collective_name(x->claim.kind), (unsigned long long)x->claim.number,
           late, (double)l->patience_ns / 1e9, g->rank);
  free(is_late);
  return AOT_E_UNAVAILABLE;
}

static aot_status_t check_codes(link_t *l, const rn_exchange_t *x, rn_error_t *error) {
  const char *said = "";
  if (!l->code && !l->cuda_code) return AOT_OK;
  if (l->code) said = l->nccl.get_error_string(l->code);
  else l->staging.driver.get_error_string(l->cuda_code, &said);
  snprintf(error->text, sizeof error->text, "%s, exchange %llu: %s: %s (told by rank %u)",
           rn_collective_name(x->claim.kind), (unsigned long long)x->claim.number, l->code ? "NCCL" : "CUDA",
           said ? said : "", l->rank);
  return AOT_E_UNAVAILABLE;
}

static void say_nothing(link_t *l) {
  memset(l->n_out, 0, l->n_ranks * sizeof *l->n_out);
  memset(l->n_in, 0, l->n_ranks * sizeof *l->n_in);
}

static aot_status_t exchange_notes(ranks_t *g, const rn_exchange_t *x, rn_error_t *error) {
  link_t *l = g->link;
  say_nothing(l);
  l->stride = sizeof(note_t);
  for (uint32_t r = 0; r < g->n_ranks; r++) {
    if (r == g->rank) continue;
    const note_t note = {.claim = x->claim, .nbytes = x->send[r].nbytes};
    memcpy(slot_out(l, g->at[r]), &note, sizeof note);
    l->n_out[g->at[r]] = l->n_in[g->at[r]] = sizeof note;
  }
  if (!go(l, l->patience_ns)) return tell_late(g, x, error);
  AOT_TRY(check_codes(l, x, error));
  for (uint32_t r = 0; r < g->n_ranks; r++) {
    note_t note;
    if (r == g->rank) continue;
    memcpy(&note, slot_in(l, g->at[r]), sizeof note);
    if (note.has_failed) {
      snprintf(error->text, sizeof error->text, "%.*s", (int)sizeof note.why, note.why);
      return AOT_E_CANCELLED;
    }
    if (memcmp(&note.claim, &x->claim, sizeof x->claim) != 0) {
      rn_print_difference(&x->claim, g->rank, &note.claim, r, error);
      return AOT_E_CONTRACT;
    }
    if (note.nbytes == x->receive[r].nbytes) continue;
    snprintf(error->text, sizeof error->text, "rank %u sends %llu bytes to rank %u, which takes %llu", r,
             (unsigned long long)note.nbytes, g->rank, (unsigned long long)x->receive[r].nbytes);
    return AOT_E_CONTRACT;
  }
  return AOT_OK;
}

static uint64_t part(uint64_t nbytes, uint64_t at) {
  const uint64_t left = nbytes > at ? nbytes - at : 0;
  return left < SLOT_NBYTES ? left : SLOT_NBYTES;
}

/* Two ranks agree on the bytes between them, so on the rounds, too. */
static aot_status_t exchange_pieces(ranks_t *g, const rn_exchange_t *x, rn_error_t *error) {
  link_t *l = g->link;
  uint64_t most = 0;
  for (uint32_t r = 0; r < g->n_ranks; r++) {
    if (r == g->rank) continue;
    if (x->send[r].nbytes > most) most = x->send[r].nbytes;
    if (x->receive[r].nbytes > most) most = x->receive[r].nbytes;
  }
  l->stride = most < SLOT_NBYTES ? most : SLOT_NBYTES;
  for (uint64_t at = 0; at < most; at += SLOT_NBYTES) {
    say_nothing(l);
    for (uint32_t r = 0; r < g->n_ranks; r++) {
      if (r == g->rank) continue;
      const uint64_t n = l->n_out[g->at[r]] = part(x->send[r].nbytes, at);
      l->n_in[g->at[r]] = part(x->receive[r].nbytes, at);
      if (n) memcpy(slot_out(l, g->at[r]), (const char *)x->send[r].at + at, n);
    }
    if (!go(l, l->patience_ns)) return tell_late(g, x, error);
    AOT_TRY(check_codes(l, x, error));
    for (uint32_t r = 0; r < g->n_ranks; r++) {
      const uint64_t n = r == g->rank ? 0 : l->n_in[g->at[r]];
      if (n) memcpy((char *)x->receive[r].at + at, slot_in(l, g->at[r]), n);
    }
  }
  return AOT_OK;
}

/* 0: it has failed already, or is at something. */
static int take(link_t *l) {
  pthread_mutex_lock(&l->lock);
  const int is_free = !l->has_failed && !l->is_busy;
  if (is_free) l->is_busy = 1;
  pthread_mutex_unlock(&l->lock);
  return is_free;
}
static void let_go(link_t *l) {
  pthread_mutex_lock(&l->lock);
  l->is_busy = 0;
  pthread_mutex_unlock(&l->lock);
}

static aot_status_t exchange(void *self, const rn_exchange_t *x, rn_error_t *error) {
  ranks_t *g = self;
  link_t *l = g->link;
  if (!take(l)) {
    snprintf(error->text, sizeof error->text, "%s", l->has_failed ? l->why : "two exchanges at once");
    return AOT_E_UNAVAILABLE;
  }
  aot_status_t status = exchange_notes(g, x, error);
  if (status == AOT_OK) status = exchange_pieces(g, x, error);
  let_go(l);
  /* of a contract that is broken all have heard; else no rank is left to inform */
  if (status != AOT_OK) keep_failure(l, error->text);
  return status == AOT_E_CANCELLED ? AOT_E_UNAVAILABLE : status;
}

/* ---- the ends ---- */

/* To all ranks of the run: who is at an exchange in whatever group hears of it. */
static void abort_ranks(void *self, const char *reason) {
  link_t *l = ((ranks_t *)self)->link;
  note_t note = {.has_failed = 1};
  if (!take(l)) {
    keep_failure(l, reason);
    return;
  }
  keep_failure(l, reason);
  snprintf(note.why, sizeof note.why, "%s", reason);
  l->stride = sizeof note;
  for (uint32_t r = 0; r < l->n_ranks; r++) {
    memcpy(slot_out(l, r), &note, sizeof note);
    l->n_out[r] = l->n_in[r] = r == l->rank ? 0 : sizeof note;
  }
  go(l, FAREWELL_NS);
  let_go(l);
}

static void drop(link_t *l) {
  nl_staging_deinit(&l->staging);
  pthread_mutex_destroy(&l->lock);
  free(l->n_out);
  free(l->n_in);
  free(l);
}

static void leave(void *self) {
  ranks_t *g = self;
  link_t *l = g->link;
  free(g->at);
  free(g);
  if (--l->n_groups) return;
  nl_staging_enter(&l->staging);
  if (l->has_failed) abort_comm(l);
  else l->nccl.comm_destroy(l->comm);
  if (!l->is_stuck) drop(l);
}

static aot_status_t split(void *self, uint32_t colour, uint32_t key, rn_transport_t *out, rn_error_t *error);

/* n ranks of the link; at: taken over. */
static aot_status_t open_ranks(link_t *l, uint32_t rank, uint32_t n, uint32_t *at, rn_transport_t *out,
                               rn_error_t *error) {
  ranks_t *g = at ? calloc(1, sizeof *g) : NULL;
  if (!g) {
    free(at);
    return kit_no_memory_text(error->text, sizeof error->text, "for %u ranks", n);
  }
  *g = (ranks_t){.link = l, .rank = rank, .n_ranks = n, .at = at};
  l->n_groups++;
  *out = (rn_transport_t){.self = g,
                          .rank = rank,
                          .n_ranks = n,
                          .exchange = exchange,
                          .split = split,
                          .abort = abort_ranks,
                          .leave = leave};
  return AOT_OK;
}

typedef struct wish {
  uint32_t colour, key;
} wish_t;

static int stands_before(const wish_t *a, uint32_t rank_a, const wish_t *b, uint32_t rank_b) {
  return a->key < b->key || (a->key == b->key && rank_a < rank_b);
}

static aot_status_t open_part(const ranks_t *g, const wish_t *all, rn_transport_t *out, rn_error_t *error) {
  uint32_t *at = calloc(g->n_ranks, sizeof *at), n = 0, rank = 0;
  if (!at) return kit_no_memory_text(error->text, sizeof error->text, "for %u ranks", g->n_ranks);
  for (uint32_t r = 0; r < g->n_ranks; r++) {
    uint32_t place = 0;
    if (all[r].colour != all[g->rank].colour) continue;
    for (uint32_t o = 0; o < g->n_ranks; o++)
      place += all[o].colour == all[r].colour && stands_before(&all[o], o, &all[r], r);
    at[place] = g->at[r];
    if (r == g->rank) rank = place;
    n++;
  }
  return open_ranks(g->link, rank, n, at, out, error);
}

/* Everyone's colour and key, for all: then each knows who is in its part. */
static aot_status_t split(void *self, uint32_t colour, uint32_t key, rn_transport_t *out, rn_error_t *error) {
  const ranks_t *g = self;
  wish_t own = {colour, key}, *all = calloc(g->n_ranks, sizeof *all);
  rn_piece_t *send = calloc(g->n_ranks, sizeof *send), *receive = calloc(g->n_ranks, sizeof *receive);
  const rn_exchange_t x = {.claim = {.kind = AOT_COLLECTIVE_ALL_GATHER, .nbytes = sizeof own * g->n_ranks},
                           .send = send,
                           .receive = receive,
                           .what = "a split"};
  aot_status_t status =
      all && send && receive ? AOT_OK : kit_no_memory_text(error->text, sizeof error->text, "for %u ranks", g->n_ranks);
  for (uint32_t r = 0; r < g->n_ranks && status == AOT_OK; r++) {
    send[r] = (rn_piece_t){&own, sizeof own};
    receive[r] = (rn_piece_t){&all[r], sizeof own};
  }
  if (status == AOT_OK) all[g->rank] = own;
  if (status == AOT_OK) status = exchange(self, &x, error);
  if (status == AOT_OK) status = open_part(g, all, out, error);
  free(all);
  free(send);
  free(receive);
  return status;
}

int nl_has_failed(const rn_transport_t *t, rn_error_t *error) {
  link_t *l = ((const ranks_t *)t->self)->link;
  int code = 0;
  pthread_mutex_lock(&l->lock);
  if (l->has_failed) snprintf(error->text, sizeof error->text, "%s", l->why);
  else if (l->comm && l->nccl.comm_get_async_error(l->comm, &code) == 0 && code && code != NL_IN_PROGRESS)
    snprintf(error->text, sizeof error->text, "NCCL has failed: %s", l->nccl.get_error_string(code));
  else code = 0;
  const int has_failed = l->has_failed || code;
  pthread_mutex_unlock(&l->lock);
  return has_failed;
}

/* ---- meeting ---- */

/* With the variable set when NCCL is first queried, it would take no other network than that of the address, and none
 * where this machine has no part in it (bootstrapNetInit; github.com/NVIDIA/nccl issues 474 and 730). So it is queried
 * for an id before, which nothing uses. */
static void meet(void *arg) {
  link_t *l = arg;
  nl_id_t id;
  unsetenv("NCCL_COMM_ID");
  l->code = nl_staging_enter(&l->staging) ? 1 : l->nccl.get_unique_id(&id);
  setenv("NCCL_COMM_ID", l->address, 1);
  if (!l->code) l->code = l->nccl.get_unique_id(&id);
  if (!l->code) l->code = l->nccl.comm_init_rank(&l->comm, (int)l->n_ranks, id, (int)l->rank);
  unsetenv("NCCL_COMM_ID");
}

static aot_status_t meet_in_time(link_t *l, rn_error_t *error) {
  nl_attempt_t *a = nl_attempt_begin(meet, l);
  const int has_ended = a && nl_attempt_ends(a, l->patience_ns), code = has_ended ? l->code : 0;
  if (a) nl_attempt_forget(a, NULL);
  l->is_stuck = a && !has_ended;
  if (!a) return kit_no_memory_text(error->text, sizeof error->text, "for %u ranks", l->n_ranks);
  if (!has_ended) {
    char place[200];
    nl_address_show(l->address, place, sizeof place);
    snprintf(error->text, sizeof error->text, "rank %u of %u: not all ranks have come within %.3g s to %s", l->rank,
             l->n_ranks, (double)l->patience_ns / 1e9, place);
  } else if (code) {
    const char *last = l->nccl.get_last_error(NULL);
    snprintf(error->text, sizeof error->text, "rank %u of %u, at %.100s: NCCL cannot make a communicator: %s; %.80s",
             l->rank, l->n_ranks, l->address, l->nccl.get_error_string(code), last ? last : "");
  }
  return has_ended && !code ? AOT_OK : AOT_E_UNAVAILABLE;
}

static link_t *make_link(const nl_how_t *how, rn_error_t *error) {
  link_t *l = calloc(1, sizeof *l);
  if (!l) return NULL;
  *l = (link_t){.nccl = *how->nccl, .rank = how->rank, .n_ranks = how->n_ranks, .patience_ns = how->patience_ns};
  snprintf(l->address, sizeof l->address, "%s", how->address);
  pthread_mutex_init(&l->lock, NULL);
  l->n_out = calloc(how->n_ranks, sizeof *l->n_out);
  l->n_in = calloc(how->n_ranks, sizeof *l->n_in);
  l->staging.driver = *how->driver;
  if (l->n_out && l->n_in &&
      nl_staging_init(&l->staging, how->device, (size_t)how->n_ranks * SLOT_NBYTES, error->text, sizeof error->text) ==
          0)
    return l;
  drop(l);
  return NULL;
}

/* A first exchange, of nothing: NCCL connects ranks when they first send to each other, and all have their own threads
 * for it here. */
static aot_status_t greet(rn_transport_t *t, rn_error_t *error) {
  rn_piece_t *none = calloc(t->n_ranks, sizeof *none);
  const rn_exchange_t x = {.claim = {.kind = AOT_COLLECTIVE_BARRIER}, .send = none, .receive = none, .what = "meeting"};
  const aot_status_t status = none ? t->exchange(t->self, &x, error)
                                   : kit_no_memory_text(error->text, sizeof error->text, "for %u ranks", t->n_ranks);
  free(none);
  if (status != AOT_OK) t->leave(t->self);
  return status;
}

aot_status_t nl_join(const nl_how_t *how, rn_transport_t *out, rn_error_t *error) {
  if (how->rank >= how->n_ranks) {
    snprintf(error->text, sizeof error->text, "rank %u of %u: ranks count from 0", how->rank, how->n_ranks);
    return AOT_E_INVALID;
  }
  if (!nl_address_is_good(how->address, how->rank, how->n_ranks, error->text, sizeof error->text)) return AOT_E_INVALID;
  link_t *l = make_link(how, error);
  if (!l)
    return error->text[0] ? AOT_E_UNAVAILABLE
                          : kit_no_memory_text(error->text, sizeof error->text, "for %u ranks", how->n_ranks);
  aot_status_t status = meet_in_time(l, error);
  uint32_t *at = status == AOT_OK ? calloc(how->n_ranks, sizeof *at) : NULL;
  for (uint32_t r = 0; at && r < how->n_ranks; r++) at[r] = r;
  if (status == AOT_OK) status = open_ranks(l, how->rank, how->n_ranks, at, out, error);
  if (status == AOT_OK) return greet(out, error);
  if (!l->is_stuck) drop(l);
  return status;
}
