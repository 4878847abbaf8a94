#include "rank_group.h"

#include "reduce.h"
#include "kit/base/errors.h"
#include <aot/host_backend.h>
#include <aot/inline.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WHAT_SIZE 96u

typedef struct group {
  const aot_communicator_t *communicator;
  struct group *whole; /* that it was split from, which counts what it does; NULL: none */
  rn_transport_t t;
  uint64_t n_exchanges;
  pthread_mutex_t lock; /* of what follows: a queue may be at work while the host asks */
  aot_group_info_t info;
  aot_status_t status; /* of the first failure */
  rn_error_t error;
  rn_record_t record;
} group_t;

static group_t *group_of(const aot_group_t *g) { return (group_t *)(uintptr_t)g; }

const char *rn_collective_name(int32_t kind) {
  static const char *const names[] = {"",           "barrier",   "all_gather", "reduce_scatter",
                                      "all_reduce", "broadcast", "all_to_all"};
  return kind > 0 && (size_t)kind < sizeof names / sizeof *names ? names[kind] : "unknown collective";
}

void rn_print_ranks(const uint8_t *is_meant, uint32_t n_ranks, char *out, uint64_t size) {
  uint32_t n = 0, left = 0;
  uint64_t at = 0;
  for (uint32_t r = 0; r < n_ranks; r++) left += is_meant[r] != 0;
  at += (uint64_t)snprintf(out, size, left == 1 ? "rank" : "ranks");
  for (uint32_t r = 0; r < n_ranks && at < size; r++) {
    if (!is_meant[r]) continue;
    const char *between = n == 0 ? " " : left == 1 ? " and " : ", ";
    if (++n > 8) {
      snprintf(out + at, size - at, " and %u more", left);
      return;
    }
    at += (uint64_t)snprintf(out + at, size - at, "%s%u", between, r);
    left--;
  }
}

static void print_claim(const rn_claim_t *c, uint32_t rank, char *out, size_t size) {
  snprintf(out, size, "rank %u is at %s of %llu bytes, exchange %llu", rank, rn_collective_name(c->kind),
           (unsigned long long)c->nbytes, (unsigned long long)c->number);
}

void rn_print_difference(const rn_claim_t *own, uint32_t own_rank, const rn_claim_t *other, uint32_t other_rank,
                         rn_error_t *out) {
  char a[128], b[128];
  print_claim(own, own_rank, a, sizeof a);
  print_claim(other, other_rank, b, sizeof b);
  snprintf(out->text, sizeof out->text, "the ranks do not run the same program: %s; %s", a, b);
}

aot_status_t rn_tell(const aot_communicator_t *c, aot_ctx_t *ctx, aot_status_t status, const char *text) {
  const rn_communicator_t *own = c->head.self;
  const aot_diag_t d = kit_diag(AOT_SEVERITY_ERROR, "ranks.failed", text);
  return ctx ? kit_report(own->host, ctx, status, &d) : status;
}

/* ---- one collective ---- */

typedef struct collector {
  group_t *g;
  aot_collective_t c;
  uint64_t element;           /* bytes */
  rn_piece_t *send, *receive; /* by rank */
  void **parts;               /* by rank: what is reduced */
  char *scratch;
  char what[WHAT_SIZE];
  rn_error_t error;
} collector_t;

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static char *host_of(aot_buffer_t b) { return (char *)(uintptr_t)b.address; }

static aot_status_t exchange(collector_t *w, uint64_t nbytes) {
  const rn_exchange_t x = {.claim = {.number = ++w->g->n_exchanges,
                                     .nbytes = nbytes,
                                     .kind = w->c.kind,
                                     .reduce = w->c.reduce,
                                     .dtype = w->c.dtype,
                                     .root = w->c.root},
                           .send = w->send,
                           .receive = w->receive,
                           .what = w->what};
  return w->g->t.exchange(w->g->t.self, &x, &w->error);
}

static aot_status_t refuse(collector_t *w, aot_status_t status, const char *why) {
  snprintf(w->error.text, sizeof w->error.text, "%s: %s", rn_collective_name(w->c.kind), why);
  return status;
}

static void count(group_t *g, uint64_t gathered, uint64_t scattered) {
  for (; g; g = g->whole) {
    pthread_mutex_lock(&g->lock);
    g->info.gathered_nbytes += gathered;
    g->info.scattered_nbytes += scattered;
    pthread_mutex_unlock(&g->lock);
  }
}

static void count_time(group_t *g, uint64_t spent_ns) {
  for (; g; g = g->whole) {
    pthread_mutex_lock(&g->lock);
    g->info.n_collectives++;
    g->info.spent_ns += spent_ns;
    pthread_mutex_unlock(&g->lock);
  }
}

static aot_status_t barrier(collector_t *w) { return exchange(w, 0); }

static aot_status_t all_gather(collector_t *w) {
  const uint32_t n = w->g->t.n_ranks, own = w->g->t.rank;
  const uint64_t each = w->c.from.nbytes;
  if (w->c.to.nbytes != n * each) return refuse(w, AOT_E_INVALID, "the result is not as large as the ranks' tensors");
  for (uint32_t r = 0; r < n; r++) {
    w->send[r] = (rn_piece_t){host_of(w->c.from), each};
    w->receive[r] = (rn_piece_t){host_of(w->c.to) + r * each, each};
  }
  if (each && w->receive[own].at != w->send[own].at) memcpy(w->receive[own].at, w->send[own].at, (size_t)each);
  count(w->g, (n - 1) * each, 0);
  return exchange(w, w->c.to.nbytes);
}

static aot_status_t broadcast(collector_t *w) {
  const uint32_t n = w->g->t.n_ranks, own = w->g->t.rank;
  const uint64_t nbytes = w->c.to.nbytes;
  if (w->c.root >= n) return refuse(w, AOT_E_INVALID, "there is no such root");
  for (uint32_t r = 0; r < n; r++) {
    w->send[r] = own == w->c.root ? (rn_piece_t){host_of(w->c.from), nbytes} : (rn_piece_t){NULL, 0};
    w->receive[r] = r == w->c.root ? (rn_piece_t){host_of(w->c.to), nbytes} : (rn_piece_t){NULL, 0};
  }
  if (own == w->c.root && nbytes && w->c.to.address != w->c.from.address)
    memcpy(host_of(w->c.to), host_of(w->c.from), (size_t)nbytes);
  if (own != w->c.root) count(w->g, nbytes, 0);
  return exchange(w, nbytes);
}

static aot_status_t all_to_all(collector_t *w) {
  const uint32_t n = w->g->t.n_ranks, own = w->g->t.rank;
  uint64_t out = 0, in = 0;
  for (uint32_t r = 0; r < n; r++) {
    w->send[r] = (rn_piece_t){host_of(w->c.from) + out, w->c.send ? w->c.send[r] : w->c.from.nbytes / n};
    w->receive[r] = (rn_piece_t){host_of(w->c.to) + in, w->c.receive ? w->c.receive[r] : w->c.to.nbytes / n};
    out += w->send[r].nbytes;
    in += w->receive[r].nbytes;
  }
  if (out != w->c.from.nbytes || in != w->c.to.nbytes || w->send[own].nbytes != w->receive[own].nbytes)
    return refuse(w, AOT_E_INVALID, "the pieces are not the tensors");
  if (w->send[own].nbytes) memcpy(w->receive[own].at, w->send[own].at, (size_t)w->send[own].nbytes);
  count(w->g, in - w->receive[own].nbytes, 0);
  return exchange(w, 0);
}

/* The ranks' shares of [0, n) elements, as even as may be. */
static uint64_t share_begin(uint64_t n, uint32_t n_ranks, uint32_t r) {
  return n / n_ranks * r + (r < n % n_ranks ? r : n % n_ranks);
}

/* This rank's share of the reduction of everyone's `from`, into `to`. */
static aot_status_t reduce_share(collector_t *w, char *from, char *to, uint64_t n_elements, uint64_t claim) {
  const uint32_t n = w->g->t.n_ranks, own = w->g->t.rank;
  const uint64_t own_begin = share_begin(n_elements, n, own), own_n = share_begin(n_elements, n, own + 1) - own_begin;
  const uint64_t nbytes = own_n * w->element;
  w->scratch = malloc((size_t)((n - 1) * nbytes + 1));
  if (!w->scratch) return refuse(w, AOT_E_EXHAUSTED, "no memory for the ranks' parts");
  for (uint32_t r = 0, k = 0; r < n; r++) {
    const uint64_t begin = share_begin(n_elements, n, r);
    w->send[r] = (rn_piece_t){from + begin * w->element, (share_begin(n_elements, n, r + 1) - begin) * w->element};
    w->parts[r] = r == own ? from + own_begin * w->element : w->scratch + k++ * nbytes;
    w->receive[r] = (rn_piece_t){w->parts[r], nbytes};
  }
  AOT_TRY(exchange(w, claim));
  rn_reduce(w->c.dtype, rn_reduction(w->c.reduce, w->g->communicator->head.flags), n, (const void *const *)w->parts, to,
            own_n);
  count(w->g, 0, (n - 1) * nbytes);
  return AOT_OK;
}

static aot_status_t check_reduction(collector_t *w) {
  w->element = aot_dtype_size(w->c.dtype);
  if (rn_can_reduce(w->c.dtype, w->c.reduce)) return AOT_OK;
  char why[96];
  snprintf(why, sizeof why, "there is no reduction %d of elements of %s", w->c.reduce, aot_dtype_name(w->c.dtype));
  return refuse(w, AOT_E_UNIMPLEMENTED, why);
}

static aot_status_t reduce_scatter(collector_t *w) {
  const uint64_t n_elements = w->c.from.nbytes / aot_dtype_size(w->c.dtype);
  if (w->c.from.nbytes != w->g->t.n_ranks * w->c.to.nbytes)
    return refuse(w, AOT_E_INVALID, "a rank's part is not its share of the tensor");
  return reduce_share(w, host_of(w->c.from), host_of(w->c.to), n_elements, w->c.from.nbytes);
}

static aot_status_t all_reduce(collector_t *w) {
  const uint32_t n = w->g->t.n_ranks, own = w->g->t.rank;
  const uint64_t n_elements = w->c.from.nbytes / w->element;
  char *to = host_of(w->c.to), *share = to + share_begin(n_elements, n, own) * w->element;
  if (w->c.to.nbytes != w->c.from.nbytes) return refuse(w, AOT_E_INVALID, "the result is not as large as the tensor");
  AOT_TRY(reduce_share(w, host_of(w->c.from), share, n_elements, w->c.from.nbytes));
  for (uint32_t r = 0; r < n; r++) {
    const uint64_t begin = share_begin(n_elements, n, r), end = share_begin(n_elements, n, r + 1);
    w->receive[r] = (rn_piece_t){to + begin * w->element, (end - begin) * w->element};
    w->send[r] = (rn_piece_t){share, 0};
  }
  for (uint32_t r = 0; r < n; r++) w->send[r].nbytes = w->receive[own].nbytes;
  count(w->g, w->c.to.nbytes - w->receive[own].nbytes, 0);
  return exchange(w, w->c.from.nbytes);
}

static aot_status_t dispatch(collector_t *w) {
  switch (w->c.kind) {
    case AOT_COLLECTIVE_BARRIER: return barrier(w);
    case AOT_COLLECTIVE_ALL_GATHER: return all_gather(w);
    case AOT_COLLECTIVE_BROADCAST: return broadcast(w);
    case AOT_COLLECTIVE_ALL_TO_ALL: return all_to_all(w);
    case AOT_COLLECTIVE_REDUCE_SCATTER: AOT_TRY(check_reduction(w)); return reduce_scatter(w);
    case AOT_COLLECTIVE_ALL_REDUCE: AOT_TRY(check_reduction(w)); return all_reduce(w);
    default: return refuse(w, AOT_E_INVALID, "it is not known here");
  }
}

/* The first failure stays; a rank that cannot continue reports the others, which would wait for it. */
static void keep_failure(group_t *g, aot_status_t status, const rn_error_t *error) {
  pthread_mutex_lock(&g->lock);
  const int is_first = g->status == AOT_OK;
  if (is_first) {
    const rn_communicator_t *c = g->communicator->head.self;
    g->status = status;
    g->error = *error;
    if (c->record[0]) rn_record_write(&g->record, c->record, g->t.rank, error->text, now_ns());
  }
  pthread_mutex_unlock(&g->lock);
  if (is_first) g->t.abort(g->t.self, error->text);
}

const rn_transport_t *rn_group_transport(const aot_group_t *g) { return &group_of(g)->t; }

void rn_group_count(aot_group_t *g, uint64_t gathered, uint64_t scattered) {
  count(group_of(g), gathered, scattered);
  count_time(group_of(g), 0);
}

void rn_group_fail(aot_group_t *g, aot_status_t status, const char *text) {
  rn_error_t error;
  snprintf(error.text, sizeof error.text, "%s", text);
  for (group_t *at = group_of(g); at; at = at->whole) keep_failure(at, status, &error);
}

static aot_status_t run(collector_t *w) {
  group_t *g = w->g;
  pthread_mutex_lock(&g->lock);
  aot_status_t status = g->status;
  if (status != AOT_OK) w->error = g->error;
  const uint64_t begin = now_ns(), larger = w->c.to.nbytes > w->c.from.nbytes ? w->c.to.nbytes : w->c.from.nbytes;
  if (status == AOT_OK)
    rn_record_begin(&g->record, rn_collective_name(w->c.kind), g->n_exchanges + 1, larger, w->what, begin);
  pthread_mutex_unlock(&g->lock);
  if (status != AOT_OK) return status;
  status = dispatch(w);
  const uint64_t end = now_ns();
  count_time(g, end - begin);
  pthread_mutex_lock(&g->lock);
  if (status == AOT_OK) rn_record_end(&g->record, end);
  pthread_mutex_unlock(&g->lock);
  if (status != AOT_OK) keep_failure(g, status, &w->error);
  return status;
}

static void drop(collector_t *w) {
  free(w->scratch);
  free(w->send);
  free(w->parts);
  free((void *)(uintptr_t)w->c.send);
  free(w);
}

static aot_status_t AOT_CALL run_on_queue(void *self, aot_status_t before) {
  collector_t *w = self;
  aot_status_t status = before;
  if (before == AOT_OK) {
    status = run(w);
  } else {
    snprintf(w->error.text, sizeof w->error.text, "rank %u: what %s was to come after has failed", w->g->t.rank,
             w->what[0] ? w->what : rn_collective_name(w->c.kind));
    keep_failure(w->g, before, &w->error);
  }
  drop(w);
  return status;
}

/* A copy that lives until the queue has passed it. */
static collector_t *make(group_t *g, const aot_collective_t *c) {
  const uint32_t n = g->t.n_ranks;
  collector_t *w = calloc(1, sizeof *w);
  if (!w) return NULL;
  *w = (collector_t){.g = g, .c = *c};
  w->send = calloc(2 * (size_t)n, sizeof *w->send);
  w->receive = w->send ? w->send + n : NULL;
  w->parts = calloc(n, sizeof *w->parts);
  w->c.send = w->c.receive = NULL;
  int is_whole = w->send && w->parts;
  if (c->send && c->receive) {
    uint64_t *sizes = malloc(2 * (size_t)n * sizeof *sizes);
    if (sizes) memcpy(sizes, c->send, n * sizeof *sizes);
    if (sizes) memcpy(sizes + n, c->receive, n * sizeof *sizes);
    w->c.send = sizes;
    w->c.receive = sizes ? sizes + n : NULL;
    is_whole = is_whole && sizes;
  }
  if (c->what.size) snprintf(w->what, sizeof w->what, "%.*s", (int)c->what.size, c->what.data);
  if (is_whole) return w;
  drop(w);
  return NULL;
}

static aot_status_t AOT_CALL collect(const aot_communicator_t *c, aot_ctx_t *ctx, aot_group_t *given,
                                     const aot_collective_t *what) {
  group_t *g = group_of(given);
  aot_collective_t own;
  if (aot_import(&own, sizeof own, what) != AOT_OK)
    return rn_tell(c, ctx, AOT_E_TOO_NEW, "the collective is made for a newer communicator");
  collector_t *w = make(g, &own);
  if (!w) return rn_tell(c, ctx, AOT_E_EXHAUSTED, "no memory for a collective");
  if (!own.queue) {
    const aot_status_t status = run(w);
    const rn_error_t error = w->error;
    drop(w);
    return status == AOT_OK ? AOT_OK : rn_tell(c, ctx, status, error.text);
  }
  const aot_ext_host_work_t *work = own.device ? aot_host_work(own.device) : NULL;
  if (work) return work->enqueue(work, ctx, own.queue, run_on_queue, w);
  drop(w);
  return rn_tell(c, ctx, AOT_E_UNIMPLEMENTED, "this communicator works on memory that the CPU computes on");
}

/* ---- the rest of the table ---- */

static aot_status_t AOT_CALL info(const aot_communicator_t *c, const aot_group_t *given, aot_group_info_t *out) {
  group_t *g = group_of(given);
  (void)c;
  pthread_mutex_lock(&g->lock);
  const aot_group_info_t now = g->info;
  pthread_mutex_unlock(&g->lock);
  aot_export(out, &now, sizeof now);
  return AOT_OK;
}

static aot_status_t AOT_CALL failure(const aot_communicator_t *c, const aot_group_t *given, aot_str_t *out_text) {
  group_t *g = group_of(given);
  (void)c;
  pthread_mutex_lock(&g->lock);
  const aot_status_t status = g->status;
  pthread_mutex_unlock(&g->lock);
  *out_text = aot_str(status == AOT_OK ? "" : g->error.text); /* written once, before status */
  return status;
}

static void AOT_CALL abort_group(const aot_communicator_t *c, aot_group_t *given, aot_str_t reason) {
  group_t *g = group_of(given);
  rn_error_t error;
  (void)c;
  snprintf(error.text, sizeof error.text, "rank %u has given up: %.*s", g->t.rank, (int)reason.size, reason.data);
  keep_failure(g, AOT_E_CANCELLED, &error);
}

static aot_status_t AOT_CALL split(const aot_communicator_t *c, aot_ctx_t *ctx, aot_group_t *given, uint32_t colour,
                                   uint32_t key, aot_group_t **out) {
  group_t *g = group_of(given);
  rn_transport_t part;
  rn_error_t error = {""};
  const aot_status_t status = g->t.split(g->t.self, colour, key, &part, &error);
  if (status != AOT_OK) return rn_tell(c, ctx, status, error.text);
  AOT_TRY(rn_group_open(c, ctx, &part, out));
  group_of(*out)->whole = g;
  return AOT_OK;
}

static void AOT_CALL leave(const aot_communicator_t *c, aot_group_t *given) {
  group_t *g = group_of(given);
  (void)c;
  g->t.leave(g->t.self);
  pthread_mutex_destroy(&g->lock);
  free(g);
}

void rn_communicator_init(rn_communicator_t *c, const aot_host_t *host, uint32_t flags) {
  c->host = host;
  c->record[0] = 0;
  c->table = (aot_communicator_t){
      .head = {.struct_size = sizeof c->table, .flags = flags, .self = c},
      .split = split,
      .leave = leave,
      .info = info,
      .collect = collect,
      .failure = failure,
      .abort = abort_group,
  };
}

aot_status_t rn_group_open(const aot_communicator_t *c, aot_ctx_t *ctx, const rn_transport_t *t, aot_group_t **out) {
  group_t *g = calloc(1, sizeof *g);
  if (!g) {
    t->leave(t->self);
    return rn_tell(c, ctx, AOT_E_EXHAUSTED, "no memory for a group of ranks");
  }
  *g = (group_t){.communicator = c, .t = *t};
  g->info = (aot_group_info_t){.struct_size = sizeof g->info, .rank = t->rank, .n_ranks = t->n_ranks};
  pthread_mutex_init(&g->lock, NULL);
  *out = (aot_group_t *)g;
  return AOT_OK;
}
