/* Ranks that are processes of one machine, and meet in a file that all of them map:
 *
 *     join      rank 0 makes the file, the others find it; when all have come nobody needs its name any more
 *     collect   in rounds: each rank lays a piece of its bytes into its slot, all wait, each takes what it needs of
 *               the others' slots, all wait
 *     failures  who cannot go on says so in the file; who waits reads it, or runs out of patience
 *
 * Ranks are taken in their order, so sums have the same bits everywhere. Read it from the bottom. */
#define _POSIX_C_SOURCE 200809L
#include <aot/communicator.h>
#include <aot/describe.h>
#include <aot/host_backend.h>
#include <aot/inline.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ID "example.shared-file"
#define HELP "ranks that are processes of one machine and meet in a file"
#define MAX_RANKS 16u
#define SLOT_NBYTES 65536u
#define TEXT_SIZE 256u
#define PATH_SIZE 1024u
#define SECOND 1000000000u

enum { OPT_FILE, OPT_RANK, OPT_RANKS, OPT_PATIENCE };

/* What a rank says of a collective before its bytes: all must say the same. */
typedef struct claim {
  int32_t kind, reduce, dtype;
  uint32_t root;
  uint64_t nbytes; /* of what must be equal; 0: nothing must */
} claim_t;

typedef struct slot {
  claim_t claim;
  uint64_t nbytes;               /* that this rank lays out, in all its rounds */
  uint64_t begin[MAX_RANKS + 1]; /* of an exchange: where the piece for each rank begins */
  char bytes[SLOT_NBYTES];
} slot_t;

enum { ALL_HERE = 1, OPEN };

/* The file. It begins as zeros. */
typedef struct meeting {
  _Atomic uint32_t is_open; /* set by rank 0: ALL_HERE, then OPEN, when the file has no name any more */
  _Atomic uint32_t is_here[MAX_RANKS];
  _Atomic uint64_t n_waits[MAX_RANKS]; /* a barrier is passed when all have counted as far */
  _Atomic uint32_t failed;             /* 1: somebody writes the text, 2: it is there */
  char text[TEXT_SIZE];
  slot_t slots[MAX_RANKS];
} meeting_t;

typedef struct group {
  const aot_communicator_t *c;
  meeting_t *m;
  uint32_t n_splits;
  uint64_t n_waits, patience_ns;
  char path[PATH_SIZE];
  char error[TEXT_SIZE + 64]; /* of the first failure */
  _Atomic int32_t status;     /* set after it */
  aot_group_info_t info;
} group_t;

typedef struct unit {
  aot_communicator_t table;
  aot_host_t host;
  char path[PATH_SIZE];
  aot_join_t own;
} unit_t;

static group_t *group_of(const aot_group_t *g) { return (group_t *)(uintptr_t)g; }

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static void rest(void) { nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL); }

static aot_status_t tell(const aot_communicator_t *c, aot_ctx_t *ctx, aot_status_t status, const char *text) {
  const unit_t *u = c->head.self;
  const aot_diag_t d = {
      .struct_size = sizeof d, .severity = AOT_SEVERITY_ERROR, .code = aot_str(ID ".failed"), .message = aot_str(text)};
  if (ctx) u->host.diag(&u->host, ctx, &d);
  return status;
}

/* ---- failures and waits ---- */

/* The first one stays, here and in the file. */
static aot_status_t fail(group_t *g, aot_status_t status, const char *text) {
  uint32_t none = 0;
  if (atomic_load(&g->status) != AOT_OK) return atomic_load(&g->status);
  snprintf(g->error, sizeof g->error, "rank %u of %u: %s", g->info.rank, g->info.n_ranks, text);
  atomic_store(&g->status, status);
  if (atomic_compare_exchange_strong(&g->m->failed, &none, 1)) {
    snprintf(g->m->text, sizeof g->m->text, "rank %u has given up: %.200s", g->info.rank, text);
    atomic_store(&g->m->failed, 2);
  }
  return status;
}

static aot_status_t wait_for_all(group_t *g, const char *what) {
  const uint64_t end = now_ns() + g->patience_ns, wanted = ++g->n_waits;
  char text[TEXT_SIZE];
  atomic_store(&g->m->n_waits[g->info.rank], wanted);
  for (uint32_t r = 0; r < g->info.n_ranks; r++)
    while (atomic_load(&g->m->n_waits[r]) < wanted) {
      if (atomic_load(&g->m->failed) == 2) return fail(g, AOT_E_UNAVAILABLE, g->m->text);
      if (now_ns() > end) {
        snprintf(text, sizeof text, "rank %u has not come to %.100s in time", r, what);
        return fail(g, AOT_E_UNAVAILABLE, text);
      }
      rest();
    }
  return AOT_OK;
}

/* ---- one collective ---- */

typedef struct work {
  group_t *g;
  aot_collective_t c;
  uint64_t send[MAX_RANKS];
  char what[64];
} work_t;

static char *host_of(aot_buffer_t b) { return (char *)(uintptr_t)b.address; }

static double number_at(int32_t dtype, const char *at, uint64_t i) {
  float f;
  double d;
  if (dtype == AOT_F64) return memcpy(&d, at + i * sizeof d, sizeof d), d;
  return memcpy(&f, at + i * sizeof f, sizeof f), (double)f;
}

static void set_number(int32_t dtype, char *at, uint64_t i, double d) {
  const float f = (float)d;
  if (dtype == AOT_F64) memcpy(at + i * sizeof d, &d, sizeof d);
  else memcpy(at + i * sizeof f, &f, sizeof f);
}

static double reduced(int32_t reduce, double a, double b) {
  switch (reduce) {
    case AOT_REDUCE_MAX: return a > b || a != a ? a : b;
    case AOT_REDUCE_MIN: return a < b || a != a ? a : b;
    case AOT_REDUCE_PRODUCT: return a * b;
    default: return a + b;
  }
}

/* Rank r's elements, into what the ranks before it have made. */
static void reduce(const work_t *w, uint32_t r, char *to, const char *from, uint64_t nbytes) {
  const uint64_t n = nbytes / aot_dtype_size(w->c.dtype);
  const int is_mean = w->c.reduce == AOT_REDUCE_AVG && r + 1 == w->g->info.n_ranks;
  for (uint64_t i = 0; i < n; i++) {
    double d = number_at(w->c.dtype, from, i);
    if (r) d = reduced(w->c.reduce, number_at(w->c.dtype, to, i), d);
    set_number(w->c.dtype, to, i, is_mean ? d / w->g->info.n_ranks : d);
  }
}

/* Of [at, at + n) of what rank r lays out, the part within [begin, end): where in `data`, and how much. */
static uint64_t part(uint64_t begin, uint64_t end, uint64_t at, uint64_t n, uint64_t *out_from) {
  const uint64_t first = begin > at ? begin : at, last = end < at + n ? end : at + n;
  *out_from = first - at;
  return last > first ? last - first : 0;
}

/* What this rank needs of bytes [at, at + n) of those that rank r lays out. */
static void take(const work_t *w, uint32_t r, uint64_t at, const char *data, uint64_t n) {
  const uint32_t own = w->g->info.rank;
  const slot_t *slot = &w->g->m->slots[r];
  char *to = host_of(w->c.to);
  uint64_t from, begin = 0;
  switch (w->c.kind) {
    case AOT_COLLECTIVE_ALL_GATHER: memcpy(to + r * w->c.from.nbytes + at, data, n); break;
    case AOT_COLLECTIVE_BROADCAST: memcpy(to + at, data, n); break;
    case AOT_COLLECTIVE_ALL_REDUCE: reduce(w, r, to + at, data, n); break;
    case AOT_COLLECTIVE_REDUCE_SCATTER:
      begin = own * w->c.to.nbytes;
      n = part(begin, begin + w->c.to.nbytes, at, n, &from);
      if (n) reduce(w, r, to + at + from - begin, data + from, n);
      break;
    case AOT_COLLECTIVE_ALL_TO_ALL:
      for (uint32_t k = 0; k < r; k++) begin += w->g->m->slots[k].begin[own + 1] - w->g->m->slots[k].begin[own];
      n = part(slot->begin[own], slot->begin[own + 1], at, n, &from);
      if (n) memcpy(to + begin + at + from - slot->begin[own], data + from, n);
      break;
    default: break;
  }
  if (r == own) return;
  if (w->c.kind == AOT_COLLECTIVE_ALL_REDUCE || w->c.kind == AOT_COLLECTIVE_REDUCE_SCATTER)
    w->g->info.scattered_nbytes += n;
  else w->g->info.gathered_nbytes += n;
}

/* Who lays out how much, and whether all mean the same. */
static aot_status_t agree(const work_t *w, uint64_t nbytes, uint64_t *out_most) {
  group_t *g = w->g;
  const int is_exchange = w->c.kind == AOT_COLLECTIVE_ALL_TO_ALL, is_broadcast = w->c.kind == AOT_COLLECTIVE_BROADCAST;
  slot_t *own = &g->m->slots[g->info.rank];
  uint64_t received = 0;
  own->claim = (claim_t){w->c.kind, w->c.reduce, w->c.dtype, w->c.root,
                         is_exchange    ? 0
                         : is_broadcast ? w->c.to.nbytes
                                        : w->c.from.nbytes};
  own->nbytes = nbytes;
  for (uint32_t r = 0; r < g->info.n_ranks; r++) own->begin[r + 1] = own->begin[r] + w->send[r];
  AOT_TRY(wait_for_all(g, w->what));
  *out_most = 0;
  for (uint32_t r = 0; r < g->info.n_ranks; r++) {
    const slot_t *slot = &g->m->slots[r];
    if (memcmp(&slot->claim, &own->claim, sizeof own->claim) != 0)
      return fail(g, AOT_E_CONTRACT, "the ranks do not run the same program");
    if (slot->nbytes > *out_most) *out_most = slot->nbytes;
    received += slot->begin[g->info.rank + 1] - slot->begin[g->info.rank];
  }
  if (is_exchange && (received != w->c.to.nbytes || own->begin[g->info.n_ranks] != w->c.from.nbytes))
    return fail(g, AOT_E_INVALID, "the pieces of an exchange are not its tensors");
  return AOT_OK;
}

static const char *wrong_sizes(const work_t *w) {
  const uint64_t to = w->c.to.nbytes, from = w->c.from.nbytes, n = w->g->info.n_ranks;
  if (w->c.kind < AOT_COLLECTIVE_BARRIER || w->c.kind > AOT_COLLECTIVE_ALL_TO_ALL) return "it is not known here";
  if (w->c.kind == AOT_COLLECTIVE_ALL_GATHER && to != n * from) return "the result is not as large as all tensors";
  if (w->c.kind == AOT_COLLECTIVE_REDUCE_SCATTER && from != n * to) return "the result is not a rank's share";
  if (w->c.kind == AOT_COLLECTIVE_ALL_REDUCE && to != from) return "the result is not as large as the tensor";
  if (w->c.kind != AOT_COLLECTIVE_BROADCAST) return NULL;
  if (w->c.root >= n) return "there is no such root";
  return w->c.root == w->g->info.rank && to != from ? "the root's result is not as large as its tensor" : NULL;
}

static const char *missing_reduction(const work_t *w) {
  const int is_reduction = w->c.kind == AOT_COLLECTIVE_ALL_REDUCE || w->c.kind == AOT_COLLECTIVE_REDUCE_SCATTER;
  if (!is_reduction) return NULL;
  if (w->c.reduce < AOT_REDUCE_SUM || w->c.reduce > AOT_REDUCE_PRODUCT) return "there is no such reduction here";
  return w->c.dtype == AOT_F32 || w->c.dtype == AOT_F64 ? NULL : "only f32 and f64 are reduced here";
}

static aot_status_t run(const work_t *w) {
  group_t *g = w->g;
  const char *wrong = wrong_sizes(w), *missing = missing_reduction(w);
  const int lays_out =
      w->c.kind != AOT_COLLECTIVE_BARRIER && (w->c.kind != AOT_COLLECTIVE_BROADCAST || g->info.rank == w->c.root);
  const uint64_t nbytes = lays_out ? w->c.from.nbytes : 0, begin = now_ns();
  uint64_t most;
  if (atomic_load(&g->status) != AOT_OK) return atomic_load(&g->status);
  if (wrong) return fail(g, AOT_E_INVALID, wrong);
  if (missing) return fail(g, AOT_E_UNIMPLEMENTED, missing);
  g->info.n_collectives++;
  AOT_TRY(agree(w, nbytes, &most));
  for (uint64_t at = 0; at < most; at += SLOT_NBYTES) {
    const uint64_t own = nbytes > at ? nbytes - at : 0;
    if (own) memcpy(g->m->slots[g->info.rank].bytes, host_of(w->c.from) + at, own < SLOT_NBYTES ? own : SLOT_NBYTES);
    AOT_TRY(wait_for_all(g, w->what));
    for (uint32_t r = 0; r < g->info.n_ranks; r++) {
      const slot_t *slot = &g->m->slots[r];
      const uint64_t left = slot->nbytes > at ? slot->nbytes - at : 0;
      if (left) take(w, r, at, slot->bytes, left < SLOT_NBYTES ? left : SLOT_NBYTES);
    }
    AOT_TRY(wait_for_all(g, w->what));
  }
  AOT_TRY(wait_for_all(g, w->what)); /* nobody claims the next while one still reads the claims of this */
  g->info.spent_ns += now_ns() - begin;
  return AOT_OK;
}

static aot_status_t run_on_queue(void *self, aot_status_t before) {
  work_t *w = self;
  const aot_status_t status =
      before == AOT_OK ? run(w) : fail(w->g, before, "what a collective comes after has failed");
  free(w);
  return status;
}

static aot_status_t collect(const aot_communicator_t *c, aot_ctx_t *ctx, aot_group_t *given,
                            const aot_collective_t *what) {
  group_t *g = group_of(given);
  work_t *w = calloc(1, sizeof *w);
  if (!w) return tell(c, ctx, AOT_E_EXHAUSTED, "no memory for a collective");
  w->g = g;
  if (aot_import(&w->c, sizeof w->c, what) != AOT_OK) {
    free(w);
    return tell(c, ctx, AOT_E_TOO_NEW, "the collective is made for a newer communicator");
  }
  for (uint32_t r = 0; r < g->info.n_ranks && w->c.kind == AOT_COLLECTIVE_ALL_TO_ALL; r++)
    w->send[r] = w->c.send ? w->c.send[r] : w->c.from.nbytes / g->info.n_ranks;
  snprintf(w->what, sizeof w->what, "%.*s", (int)(w->c.what.size < 60 ? w->c.what.size : 60),
           w->c.what.size ? w->c.what.data : "");
  const aot_ext_host_work_t *work = w->c.queue && w->c.device ? aot_host_work(w->c.device) : NULL;
  if (work) return work->enqueue(work, ctx, w->c.queue, run_on_queue, w);
  const aot_status_t status = w->c.queue ? AOT_E_UNIMPLEMENTED : run(w);
  const char *why = w->c.queue ? "this communicator works on memory that the CPU computes on" : g->error;
  free(w);
  return status == AOT_OK ? AOT_OK : tell(c, ctx, status, why);
}

/* ---- ranks that meet ---- */

static meeting_t *map(int fd) {
  void *at = mmap(NULL, sizeof(meeting_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return at == MAP_FAILED ? NULL : at;
}

/* Rank 0: a new file under its name at once, in the place of one that an earlier run may have left there. */
static meeting_t *make_file(const char *path) {
  char made[PATH_SIZE + 8];
  meeting_t *m = NULL;
  snprintf(made, sizeof made, "%s.XXXXXX", path);
  const int fd = mkstemp(made);
  if (fd < 0) return NULL;
  if (ftruncate(fd, sizeof *m) == 0 && rename(made, path) == 0) m = map(fd);
  else unlink(made);
  close(fd);
  return m;
}

/* Another rank: the file of that name, unless it is another by now. */
static meeting_t *find_file(const char *path, struct stat *out) {
  meeting_t *m = NULL;
  const int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return NULL;
  if (fstat(fd, out) == 0 && out->st_size == sizeof *m) m = map(fd);
  close(fd);
  return m;
}

static int is_same_file(const char *path, const struct stat *as) {
  struct stat now;
  return stat(path, &now) == 0 && now.st_ino == as->st_ino && now.st_dev == as->st_dev;
}

static int are_all_here(meeting_t *m, uint32_t n) {
  for (uint32_t r = 1; r < n; r++)
    if (!atomic_load(&m->is_here[r])) return 0;
  return 1;
}

/* 0: not in time. */
static int meet(group_t *g) {
  const uint64_t end = now_ns() + g->patience_ns;
  struct stat file;
  if (g->info.rank == 0) g->m = make_file(g->path);
  if (g->info.rank == 0 && !g->m) return 0;
  for (; now_ns() < end; rest()) {
    if (g->info.rank == 0) {
      if (!are_all_here(g->m, g->info.n_ranks)) continue;
      atomic_store(&g->m->is_open, ALL_HERE); /* before the name goes: who finds none knows why */
      unlink(g->path);
      atomic_store(&g->m->is_open, OPEN);
      return 1;
    }
    if (!g->m) g->m = find_file(g->path, &file);
    if (!g->m) continue;
    atomic_store(&g->m->is_here[g->info.rank], 1);
    if (atomic_load(&g->m->is_open) == OPEN) return 1;
    if (is_same_file(g->path, &file) || atomic_load(&g->m->is_open)) continue;
    munmap(g->m, sizeof *g->m); /* one that an earlier run has left */
    g->m = NULL;
  }
  return 0;
}

static void leave(const aot_communicator_t *c, aot_group_t *given) {
  group_t *g = group_of(given);
  (void)c;
  if (g->m) munmap(g->m, sizeof *g->m);
  free(g);
}

static aot_status_t open_group(const aot_communicator_t *c, aot_ctx_t *ctx, const char *path, const aot_join_t *how,
                               aot_group_t **out) {
  char text[PATH_SIZE + 128];
  if (how->n_ranks > MAX_RANKS || how->rank >= how->n_ranks)
    return tell(c, ctx, AOT_E_OPTION, "'ranks' is at most 16, and 'rank' smaller than 'ranks'");
  group_t *g = calloc(1, sizeof *g);
  if (!g) return tell(c, ctx, AOT_E_EXHAUSTED, "no memory for a group of ranks");
  g->c = c;
  g->patience_ns = how->patience_ns;
  g->info = (aot_group_info_t){.struct_size = sizeof g->info, .rank = how->rank, .n_ranks = how->n_ranks};
  snprintf(g->path, sizeof g->path, "%s", path);
  if (meet(g)) {
    *out = (aot_group_t *)g;
    return AOT_OK;
  }
  snprintf(text, sizeof text, "rank %u of %u: the others have not come to %s in time", how->rank, how->n_ranks, path);
  if (g->info.rank == 0 && g->m) unlink(path);
  leave(c, (aot_group_t *)g);
  return tell(c, ctx, AOT_E_UNAVAILABLE, text);
}

static aot_status_t join(const aot_communicator_t *c, aot_ctx_t *ctx, const aot_join_t *how, aot_group_t **out) {
  const unit_t *u = c->head.self;
  char path[PATH_SIZE];
  aot_join_t own;
  if (aot_import(&own, sizeof own, how) != AOT_OK)
    return tell(c, ctx, AOT_E_TOO_NEW, "the ranks are made for a newer communicator");
  if (!own.n_ranks) own.rank = u->own.rank;
  if (!own.n_ranks) own.n_ranks = u->own.n_ranks;
  if (!own.patience_ns) own.patience_ns = u->own.patience_ns;
  snprintf(path, sizeof path, "%.*s", (int)own.rendezvous.size, own.rendezvous.size ? own.rendezvous.data : "");
  return open_group(c, ctx, *path ? path : u->path, &own, out);
}

/* All ranks say their colours; those of one meet in a file of their own. */
static aot_status_t split(const aot_communicator_t *c, aot_ctx_t *ctx, aot_group_t *given, uint32_t colour,
                          uint32_t key, aot_group_t **out) {
  group_t *g = group_of(given);
  uint32_t said[2] = {colour, key}, all[MAX_RANKS][2];
  char path[PATH_SIZE + 32];
  aot_join_t how = {.struct_size = sizeof how, .patience_ns = g->patience_ns};
  const aot_collective_t gather = {
      .struct_size = sizeof gather,
      .kind = AOT_COLLECTIVE_ALL_GATHER,
      .to = {(uint64_t)(uintptr_t)all, sizeof said * g->info.n_ranks},
      .from = {(uint64_t)(uintptr_t)said, sizeof said},
      .what = aot_str("colours"),
  };
  AOT_TRY(collect(c, ctx, given, &gather));
  for (uint32_t r = 0; r < g->info.n_ranks; r++) {
    if (all[r][0] != colour) continue;
    how.rank += all[r][1] < key || (all[r][1] == key && r < g->info.rank);
    how.n_ranks++;
  }
  snprintf(path, sizeof path, "%s.%u.%u", g->path, g->n_splits++, colour);
  return open_group(c, ctx, path, &how, out);
}

/* ---- the rest of the table ---- */

static aot_status_t info(const aot_communicator_t *c, const aot_group_t *given, aot_group_info_t *out) {
  (void)c;
  aot_export(out, &group_of(given)->info, sizeof *out);
  return AOT_OK;
}

static aot_status_t failure(const aot_communicator_t *c, const aot_group_t *given, aot_str_t *out_text) {
  group_t *g = group_of(given);
  const aot_status_t status = atomic_load(&g->status);
  (void)c;
  *out_text = aot_str(status == AOT_OK ? "" : g->error);
  return status;
}

static void abort_group(const aot_communicator_t *c, aot_group_t *given, aot_str_t reason) {
  char text[TEXT_SIZE];
  (void)c;
  snprintf(text, sizeof text, "%.*s", (int)(reason.size < 200 ? reason.size : 200), reason.size ? reason.data : "");
  fail(group_of(given), AOT_E_CANCELLED, text);
}

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  const aot_opt_value_t *o = opts->values;
  unit_t *u = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *u);
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  snprintf(u->path, sizeof u->path, "%.*s", (int)o[OPT_FILE].s.size, o[OPT_FILE].s.data);
  u->own = (aot_join_t){
      .rank = (uint32_t)o[OPT_RANK].i,
      .n_ranks = (uint32_t)o[OPT_RANKS].i,
      .patience_ns = (uint64_t)o[OPT_PATIENCE].i * SECOND,
  };
  u->table = (aot_communicator_t){
      .head = {.struct_size = sizeof u->table, .flags = AOT_COMMUNICATOR_ORDERED, .self = u},
      .join = join,
      .split = split,
      .leave = leave,
      .info = info,
      .collect = collect,
      .failure = failure,
      .abort = abort_group,
  };
  *out_table = &u->table.head;
  return AOT_OK;
}

/* clang-format off */
static const aot_option_t options[] = {
    [OPT_FILE] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_PATH, .flags = AOT_OPT_REQUIRED,
                  .name = AOT_STR_INIT("file"), .help = AOT_STR_INIT("where the ranks meet")},
    [OPT_RANK] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_HAS_RANGE,
                  .name = AOT_STR_INIT("rank"), .help = AOT_STR_INIT("number of this rank, from 0"),
                  .max = MAX_RANKS - 1},
    [OPT_RANKS] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_HAS_RANGE,
                   .name = AOT_STR_INIT("ranks"), .help = AOT_STR_INIT("how many there are"), .preset = {.i = 1},
                   .min = 1, .max = MAX_RANKS},
    [OPT_PATIENCE] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_HAS_RANGE,
                      .name = AOT_STR_INIT("patience"), .help = AOT_STR_INIT("how long another rank is waited for"),
                      .unit = AOT_STR_INIT("seconds"), .preset = {.i = 30}, .min = 1, .max = 100000},
};
/* clang-format on */

AOT_PLUGIN_ONE("communicator/1", ID, "1.0.0", "example", "Apache-2.0", HELP, create, AOT_OPTIONS(options));
