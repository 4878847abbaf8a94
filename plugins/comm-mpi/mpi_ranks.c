#include "mpi_ranks.h"

#include "kit/base/vector.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TAG_CLAIM = 1, TAG_PIECE = 2 };
enum { SPINS = 200, NAP_NS = 20000, MOST_BYTES = 1 << 30 /* of one message: MPI counts in int */ };
#define FAREWELL_NS 500000000u /* so that the others can determine why they end, before mpirun ends the job */

/* What goes ahead of pieces. has_failed: the rank goes no further, and says why. */
typedef struct note {
  rn_claim_t claim;
  uint64_t has_failed;
  char why[256];
} note_t;

typedef struct ranks {
  MPI_Comm comm;
  uint32_t rank, n_ranks;
  uint64_t patience_ns;
  int finalizes; /* MPI was begun here */
  int has_failed;
  note_t own, *notes;     /* by rank */
  MPI_Request *requests;  /* 2 a rank and message */
  uint32_t *request_rank; /* whom each is with */
  uint32_t n_requests, capacity;
} ranks_t;

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void nap(uint64_t ns) {
  const struct timespec t = {0, (long)ns};
  nanosleep(&t, NULL);
}

/* ---- messages ---- */

static int room(ranks_t *g) {
  const uint64_t needed = (uint64_t)g->n_requests + 1;
  uint32_t of_requests = g->capacity, of_with = g->capacity;
  MPI_Request *requests = kit_grow(g->requests, &of_requests, needed, sizeof *requests);
  if (requests) g->requests = requests;
  uint32_t *with = kit_grow(g->request_rank, &of_with, needed, sizeof *with);
  if (with) g->request_rank = with;
  if (!requests || !with) return 0;
  g->capacity = of_with; /* that of both */
  return 1;
}

/* In messages that an int can count. */
static int start(ranks_t *g, int is_send, void *at, uint64_t nbytes, uint32_t with, int tag) {
  for (uint64_t done = 0; done < nbytes;) {
    const int n = nbytes - done < MOST_BYTES ? (int)(nbytes - done) : MOST_BYTES;
    if (!room(g)) return 0;
    MPI_Request *r = &g->requests[g->n_requests];
    char *piece = (char *)at + done;
    const int status = is_send ? MPI_Isend(piece, n, MPI_BYTE, (int)with, tag, g->comm, r)
                               : MPI_Irecv(piece, n, MPI_BYTE, (int)with, tag, g->comm, r);
    if (status != MPI_SUCCESS) return 0;
    g->request_rank[g->n_requests++] = with;
    done += (uint64_t)n;
  }
  return 1;
}

static void tell_late(const ranks_t *g, const rn_exchange_t *x, rn_error_t *error) {
  uint8_t *is_late = calloc(g->n_ranks, 1);
  char late[96] = "a rank";
  for (uint32_t i = 0; is_late && i < g->n_requests; i++)
    if (g->requests[i] != MPI_REQUEST_NULL) is_late[g->request_rank[i]] = 1;
  if (is_late) rn_print_ranks(is_late, g->n_ranks, late, sizeof late);
  snprintf(error->text, sizeof error->text,
           "%s%s%s of %llu bytes, exchange %llu: nothing was heard of %s within %.3g s, the option patience (told by "
           "rank %u)",
           x->what, x->what[0] ? ": " : "", rn_collective_name(x->claim.kind), (unsigned long long)x->claim.nbytes,
           (unsigned long long)x->claim.number, late, (double)g->patience_ns / 1e9, g->rank);
  free(is_late);
}

/* Until all messages have gone and come. What is still under way after a failure goes down with the process. */
static aot_status_t finish(ranks_t *g, const rn_exchange_t *x, rn_error_t *error) {
  const uint64_t begin = now_ns();
  for (uint64_t spins = 0;; spins++) {
    int all = 0;
    if (MPI_Testall((int)g->n_requests, g->requests, &all, MPI_STATUSES_IGNORE) != MPI_SUCCESS) {
      snprintf(error->text, sizeof error->text, "%s: MPI has lost a message (told by rank %u)",
               rn_collective_name(x->claim.kind), g->rank);
      return AOT_E_UNAVAILABLE;
    }
    if (all) break;
    if (spins < SPINS) continue;
    if (now_ns() - begin > g->patience_ns) {
      for (uint32_t i = 0; i < g->n_requests; i++) {
        int one = 0;
        MPI_Test(&g->requests[i], &one, MPI_STATUS_IGNORE); /* those that are done become MPI_REQUEST_NULL */
      }
      tell_late(g, x, error);
      return AOT_E_UNAVAILABLE;
    }
    nap(NAP_NS); /* there may be more ranks than cores */
  }
  g->n_requests = 0;
  return AOT_OK;
}

static aot_status_t no_start(const ranks_t *g, rn_error_t *error) {
  snprintf(error->text, sizeof error->text, "MPI takes no message of rank %u", g->rank);
  return AOT_E_UNAVAILABLE;
}

/* ---- an exchange ---- */

static aot_status_t compare(const ranks_t *g, const rn_exchange_t *x, rn_error_t *error) {
  for (uint32_t r = 0; r < g->n_ranks; r++) {
    if (r == g->rank) continue;
    if (g->notes[r].has_failed) {
      snprintf(error->text, sizeof error->text, "%.*s", (int)sizeof g->notes[r].why, g->notes[r].why);
      return AOT_E_UNAVAILABLE;
    }
    if (memcmp(&g->notes[r].claim, &x->claim, sizeof x->claim) == 0) continue;
    rn_print_difference(&x->claim, g->rank, &g->notes[r].claim, r, error);
    return AOT_E_CONTRACT;
  }
  return AOT_OK;
}

static aot_status_t exchange(void *self, const rn_exchange_t *x, rn_error_t *error) {
  ranks_t *g = self;
  int started = 1;
  g->own = (note_t){.claim = x->claim};
  for (uint32_t r = 0; r < g->n_ranks; r++)
    if (r != g->rank)
      started = started && start(g, 0, &g->notes[r], sizeof *g->notes, r, TAG_CLAIM) &&
                start(g, 1, &g->own, sizeof g->own, r, TAG_CLAIM);
  if (!started) return no_start(g, error);
  AOT_TRY(finish(g, x, error));
  AOT_TRY(compare(g, x, error));
  for (uint32_t r = 0; r < g->n_ranks; r++)
    if (r != g->rank)
      started = started && start(g, 0, x->receive[r].at, x->receive[r].nbytes, r, TAG_PIECE) &&
                start(g, 1, x->send[r].at, x->send[r].nbytes, r, TAG_PIECE);
  return started ? finish(g, x, error) : no_start(g, error);
}

/* ---- the ends ---- */

static void abort_job(void *self, const char *reason) {
  ranks_t *g = self;
  if (g->has_failed) return;
  g->has_failed = 1;
  g->own = (note_t){.has_failed = 1};
  snprintf(g->own.why, sizeof g->own.why, "%s", reason);
  for (uint32_t r = 0; r < g->n_ranks; r++)
    if (r != g->rank) start(g, 1, &g->own, sizeof g->own, r, TAG_CLAIM);
}

static void drop(ranks_t *g) {
  free(g->notes);
  free(g->requests);
  free(g->request_rank);
  free(g);
}

/* After a failure without MPI_Finalize, which would wait for code that is gone: mpirun ends a job that a process has
 * left so. */
static void leave(void *self) {
  ranks_t *g = self;
  const uint64_t begin = now_ns();
  if (g->has_failed && g->finalizes) {
    int all = 0;
    while (now_ns() - begin < FAREWELL_NS) {
      MPI_Testall((int)g->n_requests, g->requests, &all, MPI_STATUSES_IGNORE);
      nap(NAP_NS);
    }
  }
  if (g->has_failed) return; /* messages may be under way */
  MPI_Comm_free(&g->comm);
  if (g->finalizes) MPI_Finalize();
  drop(g);
}

static aot_status_t open_ranks(MPI_Comm comm, uint64_t patience_ns, int finalizes, rn_transport_t *out,
                               rn_error_t *error);

static aot_status_t split(void *self, uint32_t colour, uint32_t key, rn_transport_t *out, rn_error_t *error) {
  const ranks_t *g = self;
  MPI_Comm part;
  if (MPI_Comm_split(g->comm, (int)(colour & 0x7FFFFFFFu), (int)(key & 0x7FFFFFFFu), &part) != MPI_SUCCESS) {
    snprintf(error->text, sizeof error->text, "MPI cannot split the group");
    return AOT_E_UNAVAILABLE;
  }
  return open_ranks(part, g->patience_ns, 0, out, error);
}

static aot_status_t open_ranks(MPI_Comm comm, uint64_t patience_ns, int finalizes, rn_transport_t *out,
                               rn_error_t *error) {
  ranks_t *g = calloc(1, sizeof *g);
  int rank = 0, n = 1;
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &n);
  if (g) *g = (ranks_t){.comm = comm, .rank = (uint32_t)rank, .n_ranks = (uint32_t)n, .patience_ns = patience_ns};
  if (g) g->notes = calloc((size_t)n, sizeof *g->notes);
  if (!g || !g->notes) {
    free(g);
    snprintf(error->text, sizeof error->text, "no memory for %d ranks", n);
    return AOT_E_EXHAUSTED;
  }
  g->finalizes = finalizes;
  *out = (rn_transport_t){.self = g,
                          .rank = g->rank,
                          .n_ranks = g->n_ranks,
                          .exchange = exchange,
                          .split = split,
                          .abort = abort_job,
                          .leave = leave};
  return AOT_OK;
}

aot_status_t cm_join(uint64_t patience_ns, rn_transport_t *out, rn_error_t *error) {
  int is_begun = 0, is_over = 0, provided = 0;
  MPI_Comm own;
  MPI_Initialized(&is_begun);
  MPI_Finalized(&is_over);
  snprintf(error->text, sizeof error->text, "MPI %s", is_over ? "has ended in this process" : "does not begin");
  if (is_over) return AOT_E_PRECONDITION;
  if (!is_begun && MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS)
    return AOT_E_UNAVAILABLE;
  if (MPI_Comm_dup(MPI_COMM_WORLD, &own) != MPI_SUCCESS) return AOT_E_UNAVAILABLE;
  return open_ranks(own, patience_ns, !is_begun, out, error);
}
