#include "nccl_groups.h"

#include "attempt.h"
#include "collective_call.h"
#include "first_window.h"
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LOOK_NS = 20000000, REMEMBERED = 1024 /* collectives, for messages: a step's, mostly */ };

typedef struct known { /* a piece of work, for messages */
  int32_t kind;
  uint32_t n; /* collectives in it */
  uint64_t nbytes;
} known_t;

typedef struct nl_channel {
  aot_group_t *group;
  const aot_device_t *device;
  const aot_ext_stream_t *stream;
  nl_comm_t comm;
  nl_comm_t copying; /* has the windows; NULL: none, or not yet */
  nl_windows_t windows;
  uint64_t *word;            /* pinned: the number of the collective that the device is at, 0: none */
  uint64_t n;                /* collectives put so far; numbers count from 1 */
  uint64_t at;               /* what the watcher has seen last .. */
  uint64_t since;            /* .. and when it saw it first */
  int has_ended;             /* failed and aborted, or returned */
  known_t known[REMEMBERED]; /* number k at k modulo them */
  struct nl_channel *next;
} nl_channel_t;

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- watching ---- */

static void print_place(const nl_channel_t *c, uint64_t number, char *out, size_t size) {
  const known_t *k = &c->known[number % REMEMBERED];
  char several[32] = "";
  if (k->n > 1) snprintf(several, sizeof several, "%u tensors, ", k->n);
  if (number)
    snprintf(out, size, "%s of %s%llu bytes, collective %llu of the program", rn_collective_name(k->kind), several,
             (unsigned long long)k->nbytes, (unsigned long long)number);
  else snprintf(out, size, "no collective");
}

static void fail(nl_groups_t *g, nl_channel_t *c, const char *why) {
  const uint32_t rank = rn_group_transport(c->group)->rank;
  char text[320], place[128];
  print_place(c, __atomic_load_n(c->word, __ATOMIC_ACQUIRE), place, sizeof place);
  snprintf(text, sizeof text, "%.170s; rank %u was at %s", why, rank, place);
  c->has_ended = 1;
  rn_group_fail(c->group, AOT_E_UNAVAILABLE, text);
  g->nccl.comm_abort(c->comm);
  if (c->copying) g->nccl.comm_abort(c->copying);
  c->comm = c->copying = NULL;
}

/* 0: none. */
static int error_of(const nl_groups_t *g, nl_comm_t comm) {
  int code = 0;
  return comm && g->nccl.comm_get_async_error(comm, &code) == 0 && code != NL_IN_PROGRESS ? code : 0;
}

/* In that order: who has ended explains why a collective does not. */
static void look(nl_groups_t *g, nl_channel_t *c) {
  const uint64_t at = __atomic_load_n(c->word, __ATOMIC_ACQUIRE), now = now_ns();
  rn_error_t error = {""};
  char text[320];
  int code;
  aot_str_t said;
  if (at != c->at) c->since = now;
  c->at = at;
  if (g->table->failure(g->table, c->group, &said) != AOT_OK) {
    snprintf(error.text, sizeof error.text, "%.*s", (int)said.size, said.data);
    fail(g, c, error.text);
  } else if (g->has_failed(rn_group_transport(c->group), &error)) {
    fail(g, c, error.text);
  } else if ((code = error_of(g, c->comm)) || (code = error_of(g, c->copying))) {
    snprintf(text, sizeof text, "NCCL has failed: %s", g->nccl.get_error_string(code));
    fail(g, c, text);
  } else if (at && now - c->since > g->patience_ns) {
    snprintf(text, sizeof text, "a collective has not ended within %.3g s", (double)g->patience_ns / 1e9);
    fail(g, c, text);
  }
}

static void *watch(void *arg) {
  nl_groups_t *g = arg;
  for (int ends = 0; !ends; nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL)) {
    pthread_mutex_lock(&g->lock);
    for (nl_channel_t *c = g->channels; c; c = c->next)
      if (!c->has_ended) look(g, c);
    ends = g->ends;
    pthread_mutex_unlock(&g->lock);
  }
  return NULL;
}

/* ---- making a communicator ---- */

typedef struct builder {
  nl_nccl_t nccl;
  nl_memory_t memory;
  const aot_device_t *device;
  const aot_ext_stream_t *stream;
  nl_id_t id;
  uint32_t rank, n_ranks;
  int has_windows, has_word; /* it is to have */
  int code;
  aot_status_t status; /* of the word */
  void *word;
  nl_comm_t comm;
} builder_t;

typedef struct made {
  nl_comm_t comm;
  void *word;
} made_t;

static void make(void *arg) {
  builder_t *m = arg;
  m->code = m->stream->enter(m->stream, NULL) == AOT_OK ? 0 : 1;
  nl_config_t config = nl_copying_config();
  if (!m->code && m->has_windows)
    m->code = m->nccl.comm_init_rank_config(&m->comm, (int)m->n_ranks, m->id, (int)m->rank, &config);
  else if (!m->code) m->code = m->nccl.comm_init_rank(&m->comm, (int)m->n_ranks, m->id, (int)m->rank);
  if (!m->code && m->has_windows) m->code = nl_first_window(&m->nccl, &m->memory, m->comm, m->n_ranks);
  if (!m->code && m->has_word) m->status = m->device->host_alloc(m->device, NULL, sizeof(uint64_t), &m->word);
}

static aot_status_t try_to_make(builder_t *m, uint64_t patience_ns, made_t *out, char *why, size_t size) {
  nl_attempt_t *a = nl_attempt_begin(make, m);
  if (!a) {
    free(m);
    return AOT_E_EXHAUSTED;
  }
  const int has_ended = nl_attempt_ends(a, patience_ns + 1000000000u), code = has_ended ? m->code : 0;
  const aot_status_t status = has_ended ? m->status : AOT_OK;
  if (has_ended) {
    out->comm = m->comm;
    out->word = m->word;
  } else {
    snprintf(why, size, "ncclCommInitRank of rank %u has not ended within %.3g s", m->rank, (double)patience_ns / 1e9);
  }
  if (status != AOT_OK) snprintf(why, size, "no pinned memory for the number of a collective");
  if (code) {
    const char *last = m->nccl.get_last_error(NULL);
    snprintf(why, size, "ncclCommInitRank of rank %u: %s; %.160s", m->rank, m->nccl.get_error_string(code),
             last ? last : "");
  }
  nl_attempt_forget(a, free);
  return has_ended && !code ? status : AOT_E_UNAVAILABLE;
}

/* The first rank names the communicator, the group's transport reports the others. */
static aot_status_t agree(const nl_groups_t *g, aot_group_t *group, nl_id_t *id, char *why, size_t size) {
  const rn_transport_t *t = rn_group_transport(group);
  const aot_buffer_t own = {(uintptr_t)id, sizeof *id};
  const aot_collective_t tell = {.struct_size = sizeof tell,
                                 .kind = AOT_COLLECTIVE_BROADCAST,
                                 .dtype = AOT_U8,
                                 .to = own,
                                 .from = own,
                                 .what = aot_str("NCCL's unique id")};
  if (t->rank == 0 && g->nccl.get_unique_id(id) != 0) {
    snprintf(why, size, "ncclGetUniqueId: %.200s", g->nccl.get_last_error(NULL));
    return AOT_E_UNAVAILABLE;
  }
  return g->table->collect(g->table, NULL, group, &tell); /* whose failure is the group's */
}

/* A communicator of a channel: the one for windows, or the other one with the word. */
static aot_status_t make_comm(const nl_groups_t *g, const nl_channel_t *c, int has_windows, made_t *out, char *why,
                              size_t size) {
  aot_group_t *const group = c->group;
  const rn_transport_t *t = rn_group_transport(group);
  builder_t *m = calloc(1, sizeof *m);
  if (!m) return AOT_E_EXHAUSTED;
  *m = (builder_t){.nccl = g->nccl,
                   .memory = g->memory,
                   .device = c->device,
                   .stream = c->stream,
                   .rank = t->rank,
                   .n_ranks = t->n_ranks,
                   .has_windows = has_windows,
                   .has_word = !has_windows};
  const aot_status_t status = agree(g, group, &m->id, why, size);
  if (status == AOT_OK) return try_to_make(m, g->patience_ns, out, why, size);
  free(m);
  return status;
}

static nl_channel_t *find(nl_groups_t *g, const aot_group_t *group) {
  pthread_mutex_lock(&g->lock);
  nl_channel_t *c = g->channels;
  while (c && c->group != group) c = c->next;
  pthread_mutex_unlock(&g->lock);
  return c;
}

static int can_have_windows(const nl_groups_t *g, const aot_group_t *group) {
  return g->windows_from && !g->has_one_name /* there is another communicator */ &&
         rn_group_transport(group)->n_ranks > 1 && g->memory.release && g->nccl.comm_init_rank_config &&
         g->nccl.window_register && g->nccl.window_deregister && g->nccl.mem_alloc && g->nccl.mem_free &&
         g->nccl.all_to_all;
}

static aot_status_t open_channel(nl_groups_t *g, aot_group_t *group, const aot_device_t *device,
                                 const aot_ext_stream_t *stream, nl_channel_t **out, char *why, size_t size) {
  nl_channel_t *c = calloc(1, sizeof *c);
  if (!c) return AOT_E_EXHAUSTED;
  if (g->has_one_name && rn_group_transport(group)->n_ranks != g->n_ranks) {
    free(c);
    snprintf(why, size,
             "NCCL_COMM_ID is one meeting place, and the rows and columns of a mesh need their own: unset it");
    return AOT_E_PRECONDITION;
  }
  *c = (nl_channel_t){.group = group, .device = device, .stream = stream};
  c->windows.from = can_have_windows(g, group) ? g->windows_from : 0;
  made_t made = {0};
  aot_status_t status = make_comm(g, c, 0, &made, why, size);
  c->comm = made.comm;
  c->word = made.word;
  if (status == AOT_OK) *c->word = 0;
  pthread_mutex_lock(&g->lock);
  if (status == AOT_OK && !g->is_watched) {
    g->is_watched = pthread_create(&g->watcher, NULL, watch, g) == 0;
    if (!g->is_watched) status = AOT_E_EXHAUSTED;
  }
  if (status == AOT_OK) {
    c->next = g->channels;
    g->channels = c;
  }
  pthread_mutex_unlock(&g->lock);
  *out = c;
  if (status == AOT_OK) return AOT_OK;
  if (c->comm) g->nccl.comm_abort(c->comm); /* the word stays: a thread that captures can neither get nor give memory */
  free(c);
  return status;
}

/* ---- a collective ---- */

/* Of a piece of work what goes through windows, or what does not: one by one, or as one of NCCL's. */
static int call_some(const nl_groups_t *g, const nl_channel_t *c, int through_windows, const aot_collective_t *const *w,
                     uint64_t n, void *stream) {
  const uint32_t n_ranks = rn_group_transport(c->group)->n_ranks;
  const nl_comm_t comm = through_windows ? c->copying : c->comm;
  uint64_t n_those = 0;
  for (uint64_t k = 0; k < n; k++) n_those += nl_goes_through_windows(&c->windows, w[k]) == through_windows;
  int code = n_those > 1 ? g->nccl.group_start() : 0, ended = 0;
  for (uint64_t k = 0; k < n && nl_goes_on(code); k++)
    if (nl_goes_through_windows(&c->windows, w[k]) == through_windows)
      code = nl_call(&g->nccl, comm, n_ranks, w[k], stream);
  if (n_those > 1) ended = g->nccl.group_end(); /* after a failure, too */
  return nl_goes_on(code) ? ended : code;
}

/* Does every rank of the group say yes? A failure is the group's. */
static aot_status_t do_all(const nl_groups_t *g, aot_group_t *group, int own, int *out) {
  const uint32_t n = rn_group_transport(group)->n_ranks;
  const uint8_t word = own != 0;
  uint8_t *all = malloc(n);
  if (!all) return AOT_E_EXHAUSTED;
  const aot_status_t status = nl_tell_all(g->table, group, n, &word, all, sizeof word);
  *out = status == AOT_OK;
  for (uint32_t r = 0; r < n && status == AOT_OK; r++) *out &= all[r];
  free(all);
  return status;
}

/* Where NCCL has no windows on this machine, there are none, and no error. */
static aot_status_t make_copying(nl_groups_t *g, nl_channel_t *c, char *why, size_t size) {
  made_t made = {0};
  int can_all;
  const aot_status_t own = make_comm(g, c, 1, &made, why, size);
  AOT_TRY(do_all(g, c->group, own == AOT_OK, &can_all));
  if (!can_all) {
    if (made.comm) g->nccl.comm_abort(made.comm);
    c->windows.from = 0;
    why[0] = 0;
    return AOT_OK;
  }
  pthread_mutex_lock(&g->lock);
  const int has_ended = c->has_ended;
  if (!has_ended) c->copying = made.comm;
  pthread_mutex_unlock(&g->lock);
  if (has_ended) g->nccl.comm_abort(made.comm);
  return has_ended ? AOT_E_UNAVAILABLE : AOT_OK;
}

/* The ranks look whether NCCL can know, or knows, where the collectives' buffers lie. */
static aot_status_t prepare(nl_groups_t *g, nl_channel_t *c, const aot_collective_t *const *w, uint64_t n, char *why,
                            size_t size) {
  int is_any = 0;
  for (uint64_t k = 0; k < n; k++) is_any |= nl_goes_through_windows(&c->windows, w[k]);
  if (!is_any) return AOT_OK;
  if (!c->copying) AOT_TRY(make_copying(g, c, why, size));
  if (!c->copying) return AOT_OK;
  const nl_windows_how_t how = {.table = g->table,
                                .group = c->group,
                                .nccl = &g->nccl,
                                .memory = &g->memory,
                                .comm = c->copying,
                                .stream = c->stream,
                                .n_ranks = rn_group_transport(c->group)->n_ranks,
                                .patience_ns = g->patience_ns};
  return nl_windows_prepare(&c->windows, &how, w, n, why, size);
}

static aot_status_t put(nl_groups_t *g, aot_ctx_t *ctx, nl_channel_t *c, const aot_collective_t *const *w, uint64_t n,
                        char *why, size_t size) {
  const aot_ext_stream_t *x = c->stream;
  aot_queue_t *queue = w[0]->queue;
  uint64_t nbytes = 0;
  for (uint64_t k = 0; k < n; k++) nbytes += nl_larger_side(w[k]);
  pthread_mutex_lock(&g->lock);
  const int has_ended = c->has_ended;
  const uint64_t number = ++c->n;
  c->known[number % REMEMBERED] = (known_t){w[0]->kind, (uint32_t)n, nbytes};
  pthread_mutex_unlock(&g->lock);
  if (has_ended) return AOT_E_UNAVAILABLE;
  AOT_TRY(x->enter(x, ctx));
  AOT_TRY(prepare(g, c, w, n, why, size));
  AOT_TRY(x->mark(x, ctx, queue, c->word, number));
  int code = call_some(g, c, 1, w, n, x->stream(x, queue));
  if (nl_goes_on(code)) code = call_some(g, c, 0, w, n, x->stream(x, queue));
  if (!nl_goes_on(code)) {
    const char *last = g->nccl.get_last_error(c->comm);
    snprintf(why, size, "%s of %llu bytes: NCCL: %s; %.160s", rn_collective_name(w[0]->kind),
             (unsigned long long)nbytes, g->nccl.get_error_string(code), last ? last : "");
    return AOT_E_UNAVAILABLE;
  }
  return x->mark(x, ctx, queue, c->word, 0);
}

/* What comes from the other ranks, as the transport's own collectives count it. */
static void count(aot_group_t *group, const aot_collective_t *w) {
  const rn_transport_t *t = rn_group_transport(group);
  const uint64_t n = t->n_ranks, share = w->to.nbytes / n;
  switch (w->kind) {
    case AOT_COLLECTIVE_ALL_GATHER: rn_group_count(group, (n - 1) * w->from.nbytes, 0); break;
    case AOT_COLLECTIVE_REDUCE_SCATTER: rn_group_count(group, 0, (n - 1) * w->to.nbytes); break;
    case AOT_COLLECTIVE_ALL_TO_ALL: rn_group_count(group, (n - 1) * share, 0); break;
    case AOT_COLLECTIVE_BROADCAST: rn_group_count(group, t->rank == w->root ? 0 : w->to.nbytes, 0); break;
    default: rn_group_count(group, w->to.nbytes - share, (n - 1) * share);
  }
}

aot_status_t nl_collect(nl_groups_t *g, aot_ctx_t *ctx, aot_group_t *group, const aot_collective_t *const *w,
                        uint64_t n, const aot_ext_stream_t *stream) {
  nl_channel_t *c = find(g, group);
  char why[320] = "";
  aot_str_t said;
  const char *refused = NULL;
  aot_status_t status = g->table->failure(g->table, group, &said);
  for (uint64_t k = 0; k < n && !refused; k++) refused = nl_refuse(w[k], rn_group_transport(group)->n_ranks);
  if (status == AOT_OK && refused) {
    snprintf(why, sizeof why, "%s: %s", rn_collective_name(w[0]->kind), refused);
    status = AOT_E_UNIMPLEMENTED;
  }
  if (status == AOT_OK && !c) status = open_channel(g, group, w[0]->device, stream, &c, why, sizeof why);
  if (status == AOT_OK) status = put(g, ctx, c, w, n, why, sizeof why);
  for (uint64_t k = 0; k < n && status == AOT_OK; k++) count(group, w[k]);
  if (status != AOT_OK) rn_group_fail(group, status, why[0] ? why : "a collective cannot be put on the device's queue");
  return status;
}

/* ---- the ends ---- */

void nl_groups_init(nl_groups_t *g, const aot_communicator_t *table, const nl_nccl_t *nccl, uint64_t patience_ns) {
  *g = (nl_groups_t){.table = table, .nccl = *nccl, .patience_ns = patience_ns};
  pthread_mutex_init(&g->lock, NULL);
}

void nl_forget(nl_groups_t *g, aot_group_t *group) {
  pthread_mutex_lock(&g->lock);
  nl_channel_t **at = &g->channels;
  while (*at && (*at)->group != group) at = &(*at)->next;
  nl_channel_t *c = *at;
  if (c) *at = c->next;
  pthread_mutex_unlock(&g->lock);
  if (!c) return;
  c->stream->enter(c->stream, NULL);
  if (c->copying) nl_windows_drop(&c->windows, &g->nccl, c->copying);
  if (c->copying) g->nccl.comm_destroy(c->copying);
  if (c->comm) g->nccl.comm_destroy(c->comm);
  c->device->host_free(c->device, NULL, c->word, sizeof(uint64_t));
  free(c);
}

void nl_groups_deinit(nl_groups_t *g) {
  pthread_mutex_lock(&g->lock);
  g->ends = 1;
  pthread_mutex_unlock(&g->lock);
  if (g->is_watched) pthread_join(g->watcher, NULL);
  pthread_mutex_destroy(&g->lock);
}
