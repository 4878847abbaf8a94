/* A double of NCCL between processes of one machine: collectives are calls on a stream of the driver's double, with the
 * memory open. Ranks meet in a file of /dev/shm that the unique id names, lay a part of their bytes into their slots,
 * wait for each other, and take what is theirs; sums are made in the order of ranks. A rank that does not come is
 * waited for until ncclCommAbort, as a kernel of NCCL's would.
 *
 * AOT_NCCL_DOUBLE="hang-at=9 fail-at=7 version=21805": the 9th piece of work of this process never continues, the 7th
 * does neither, and its communicator has an error; what the library reports itself. "other-subnet=1": this machine is
 * not of the network of NCCL_COMM_ID's address. "windows=FILE": FILE.RANK reports at the process's end how many windows
 * there were, and how many collectives between windows; what is in them otherwise than on other ranks is a trap.
 * "no-window-at=2": the second cannot be made; "no-memory=1": nor is there memory for one of the library's own. */
#include "double_api.h"

#include "kit/ranks/reduce.h"
#include <aot/communicator.h>
#include <aot/inline.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SUCCESS = 0, CUDA_ERROR = 1, SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, INVALID_USAGE = 5, REMOTE_ERROR = 6 };
enum { MOST_RANKS = 16, SLOT_NBYTES = 1 << 16, ID_NBYTES = 128, MOST_TOGETHER = 256 };
enum { MAIL_NBYTES = 4096 };
enum { GATHER, SCATTER, REDUCE, BROADCAST, EXCHANGE, SEND, RECEIVE };

typedef struct unique_id {
  int is_named; /* by NCCL_COMM_ID: its first rank has yet to open the place */
  char path[ID_NBYTES - sizeof(int)];
} unique_id_t;

typedef struct mail { /* bytes on their way from one rank to another */
  _Atomic uint64_t n_put, n_taken;
  char bytes[MAIL_NBYTES];
} mail_t;

typedef struct rendezvous {
  _Atomic uint32_t n_here;
  _Atomic uint64_t n_waits[MOST_RANKS];
  _Atomic uint64_t n_told[MOST_RANKS], told[MOST_RANKS]; /* of the hosts */
  char slots[MOST_RANKS][SLOT_NBYTES];
  mail_t mail[MOST_RANKS][MOST_RANKS]; /* from, to */
} rendezvous_t;

typedef struct comm {
  rendezvous_t *m;
  int rank, n_ranks;
  uint64_t n_waits;
  _Atomic int is_aborted, error;
  int has_config, has_begun;  /* has_begun: what collectives between windows need is there */
  uint64_t n_told, n_windows; /* n_windows: ever */
  struct window *windows;
  struct comm *next; /* of those that were aborted */
} comm_t;

typedef struct work {
  comm_t *comm;
  const char *from;
  char *to;
  uint64_t n, size;                  /* elements of a rank's part */
  uint64_t place;                    /* of its buffers in windows, as a hash; 0: in none */
  int is_own;                        /* between windows of ncclMemAlloc's memory */
  int32_t kind, dtype, reduce, root; /* root: of SEND and RECEIVE the other rank */
} work_t;

/* What goes onto a stream together, one after another. */
typedef struct works {
  uint32_t n;
  int hangs, fails;
  work_t rows[MOST_TOGETHER];
} works_t;

static _Thread_local struct {
  uint32_t depth; /* of groups that have begun */
  void *stream;
  works_t works;
} group;

static int (*enqueue)(void *stream, int (*function)(void *argument), const void *argument, size_t nbytes,
                      const double_range_t *ranges, uint32_t n);
static _Atomic uint64_t n_collectives;
static struct {                                              /* of the process */
  _Atomic uint64_t n_asked, n_made, n_given_back, n_between; /* between: collectives with both buffers in windows */
  int rank;                                                  /* of the first communicator */
} n_windows = {.rank = -1};

static uint64_t setting(const char *name, uint64_t preset) {
  const char *text = getenv("AOT_NCCL_DOUBLE"), *at = text ? strstr(text, name) : NULL;
  return at ? strtoull(at + strlen(name), NULL, 10) : preset;
}

static void nap(void) { nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL); }

/* 0: aborted. */
static int wait_for_all(comm_t *c) {
  const uint64_t wanted = ++c->n_waits;
  atomic_store(&c->m->n_waits[c->rank], wanted);
  for (int r = 0; r < c->n_ranks; r++)
    while (atomic_load(&c->m->n_waits[r]) < wanted) {
      if (atomic_load(&c->is_aborted)) return 0;
      nap();
    }
  return 1;
}

/* Bytes [at, at + n) of what every rank lays out are there. */
static void take(const work_t *w, uint64_t at, uint64_t n) {
  const comm_t *c = w->comm;
  const uint64_t part = w->n * w->size;
  const void *parts[MOST_RANKS];
  if (w->kind == BROADCAST) memcpy(w->to + at, c->m->slots[w->root], n);
  for (int r = 0; r < c->n_ranks && w->kind == GATHER; r++) memcpy(w->to + (uint64_t)r * part + at, c->m->slots[r], n);
  if (w->kind == GATHER || w->kind == BROADCAST) return;
  const uint64_t own = (uint64_t)c->rank * part;
  const uint64_t first = w->kind == REDUCE || at > own ? at : own,
                 last = w->kind == REDUCE || at + n < own + part ? at + n : own + part;
  if (last <= first) return; /* nothing of this rank's is among these bytes */
  for (int r = 0; r < c->n_ranks; r++) parts[r] = c->m->slots[r] + (first - at);
  for (int r = 0; r < c->n_ranks && w->kind == EXCHANGE; r++)
    memcpy(w->to + (uint64_t)r * part + (first - own), parts[r], last - first);
  if (w->kind == EXCHANGE) return;
  /* NCCL's kernels reduce by fmax() and fmin() */
  rn_reduce(w->dtype, rn_reduction(w->reduce, AOT_COMMUNICATOR_DROPS_NAN), (uint32_t)c->n_ranks, parts,
            w->to + first - (w->kind == REDUCE ? 0 : own), (last - first) / w->size);
}

static uint64_t nbytes_sent(const work_t *w) {
  return w->n * w->size * (w->kind == SCATTER || w->kind == EXCHANGE ? (uint64_t)w->comm->n_ranks : 1);
}
static uint64_t nbytes_received(const work_t *w) {
  return w->n * w->size * (w->kind == GATHER || w->kind == EXCHANGE ? (uint64_t)w->comm->n_ranks : 1);
}

/* The buffers of collectives stand alike in windows on all ranks, or in none. */
static int lies_alike(const work_t *w) {
  const comm_t *c = w->comm;
  uint64_t other;
  for (int r = 0; r < c->n_ranks; r++) {
    memcpy(&other, c->m->slots[r], sizeof other);
    if (other == w->place) continue;
    fprintf(stderr, "NCCL's double: rank %d has a collective's buffers elsewhere in its windows than rank %d\n",
            c->rank, r);
    return 0;
  }
  return 1;
}

/* 0: they are not; -1: aborted. */
static int places_are_alike(const work_t *w) {
  comm_t *c = w->comm;
  if (!c->has_config) return 1;
  memcpy(c->m->slots[c->rank], &w->place, sizeof w->place);
  if (!wait_for_all(c)) return -1;
  const int are = lies_alike(w);
  return wait_for_all(c) ? are : -1;
}

/* 0: aborted. */
static int do_one(const work_t *w) {
  comm_t *c = w->comm;
  const uint64_t whole = nbytes_sent(w);
  for (uint64_t at = 0; at < whole; at += SLOT_NBYTES) {
    const uint64_t n = whole - at < SLOT_NBYTES ? whole - at : SLOT_NBYTES;
    if (w->kind != BROADCAST || c->rank == w->root) memcpy(c->m->slots[c->rank], w->from + at, n);
    if (!wait_for_all(c)) return 0;
    take(w, at, n);
    if (!wait_for_all(c)) return 0;
  }
  return 1;
}

/* As many of a letter's bytes as can go now; at: those that have gone. 1: some have. */
static int go_on(const work_t *w, uint64_t *at) {
  const comm_t *c = w->comm;
  const int is_send = w->kind == SEND;
  mail_t *m = is_send ? &c->m->mail[c->rank][w->root] : &c->m->mail[w->root][c->rank];
  const uint64_t put = atomic_load(&m->n_put), taken = atomic_load(&m->n_taken), n = w->n * w->size - *at;
  uint64_t room = is_send ? MAIL_NBYTES - (put - taken) : put - taken;
  if (room > n) room = n;
  for (uint64_t k = 0; k < room; k++) {
    if (is_send) m->bytes[(put + k) % MAIL_NBYTES] = w->from[*at + k];
    else w->to[*at + k] = m->bytes[(taken + k) % MAIL_NBYTES];
  }
  *at += room;
  atomic_fetch_add(is_send ? &m->n_put : &m->n_taken, room);
  return room > 0;
}

/* Is letter k after another of the same way, which is not through yet? */
static int is_behind(const works_t *all, const uint64_t *at, uint32_t k) {
  for (uint32_t j = 0; j < k; j++) {
    const work_t *w = &all->rows[j];
    if (w->kind == all->rows[k].kind && w->root == all->rows[k].root && at[j] < w->n * w->size) return 1;
  }
  return 0;
}

/* Letters of a group go next to each other: without an owner first waits for another's second. Those from one rank to
 * another come in their order. */
static void deliver(const works_t *all) {
  uint64_t at[MOST_TOGETHER] = {0};
  for (uint32_t n_open = all->n; n_open && !atomic_load(&all->rows[0].comm->is_aborted);) {
    int moves = 0;
    n_open = 0;
    for (uint32_t k = 0; k < all->n; k++) {
      if (!is_behind(all, at, k)) moves |= go_on(&all->rows[k], &at[k]);
      n_open += at[k] < all->rows[k].n * all->rows[k].size;
    }
    if (n_open && !moves) nap();
  }
}

static int run(void *argument) {
  const works_t *all = argument;
  comm_t *c = all->rows[0].comm;
  if (all->fails) atomic_store(&c->error, REMOTE_ERROR);
  while ((all->hangs || all->fails) && !atomic_load(&c->is_aborted)) nap();
  if (atomic_load(&c->is_aborted)) return 0;
  for (uint32_t k = 0; k < all->n && all->rows[0].kind < SEND; k++) {
    const int are_alike = places_are_alike(&all->rows[k]);
    if (are_alike <= 0) return are_alike == 0;
  }
  if (all->rows[0].kind >= SEND) deliver(all);
  for (uint32_t k = 0; k < all->n && all->rows[0].kind < SEND && do_one(&all->rows[k]); k++) continue;
  return 0;
}

/* ---- the library ---- */

static int version(void) { return (int)setting("version=", 22809); } /* functions that it has not yet are refused */
API int ncclGetVersion(int *out) { return *out = version(), SUCCESS; }
API const char *ncclGetErrorString(int error) {
  return error == SUCCESS        ? "no error"
         : error == CUDA_ERROR   ? "unhandled cuda error"
         : error == SYSTEM_ERROR ? "unhandled system error"
         : error == REMOTE_ERROR ? "remote process exited or there was a network error"
                                 : "invalid argument";
}
API const char *ncclGetLastError(void *comm) { return (void)comm, "told by NCCL's double"; }

/* NCCL picks its network once: with the variable that of its address, if this machine is of it. */
static int begin(void) {
  static _Atomic int has_begun;
  if (!has_begun && getenv("NCCL_COMM_ID") && setting("other-subnet=", 0)) return SYSTEM_ERROR;
  has_begun = 1;
  return SUCCESS;
}

API int ncclGetUniqueId(unique_id_t *out) {
  static _Atomic int n_made;
  const char *named = getenv("NCCL_COMM_ID");
  if (begin()) return SYSTEM_ERROR;
  memset(out, 0, sizeof *out);
  out->is_named = named != NULL;
  if (named && !strchr(named, ':')) return INVALID_ARGUMENT;
  if (named) return snprintf(out->path, sizeof out->path, "/dev/shm/aot-nccl-%.64s", named), SUCCESS;
  snprintf(out->path, sizeof out->path, "/dev/shm/aot-nccl-%d-%d", (int)getpid(), atomic_fetch_add(&n_made, 1));
  return SUCCESS;
}

static rendezvous_t *open_meeting(const char *path, int flags) {
  const int file = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
  if (file < 0) return NULL;
  void *at = !(flags & O_CREAT) || ftruncate(file, sizeof(rendezvous_t)) == 0
                 ? mmap(NULL, sizeof(rendezvous_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                 : MAP_FAILED;
  close(file);
  return at == MAP_FAILED ? NULL : at;
}

static char listened_at[ID_NBYTES]; /* by this process, which may end before the others come */
__attribute__((destructor)) static void listen_no_more(void) {
  if (listened_at[0]) unlink(listened_at);
}

/* As NCCL has it, the variable makes an id that is the same everywhere, and nothing listens there until the first rank
 * makes its communicator, with the variable still set; an id without it is listened at already, and with it that
 * fails. */
static int find_meeting(const unique_id_t *id, int rank, rendezvous_t **out) {
  const int is_set = getenv("NCCL_COMM_ID") != NULL;
  char fresh[ID_NBYTES + 8];
  if (!id->is_named && is_set && rank == 0) return SYSTEM_ERROR;
  if (!id->is_named) return *out = open_meeting(id->path, O_CREAT), *out ? SUCCESS : SYSTEM_ERROR;
  snprintf(fresh, sizeof fresh, "%s.made", id->path);
  if (rank == 0 && is_set) *out = open_meeting(fresh, O_CREAT | O_EXCL);
  if (rank == 0 && is_set) {
    snprintf(listened_at, sizeof listened_at, "%s", id->path);
    return *out && rename(fresh, id->path) == 0 ? SUCCESS : SYSTEM_ERROR;
  }
  while (!(*out = open_meeting(id->path, 0))) nap();
  return SUCCESS;
}

static int make_comm(void **out, int n_ranks, unique_id_t id, int rank, int has_config) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL),
       *symbol = driver ? dlsym(driver, "aot_double_enqueue_over") : NULL;
  memcpy(&enqueue, &symbol, sizeof symbol);
  comm_t *c = calloc(1, sizeof *c);
  if (begin()) return free(c), SYSTEM_ERROR;
  if (!symbol || !c || n_ranks > MOST_RANKS || rank < 0 || rank >= n_ranks) return free(c), INVALID_ARGUMENT;
  *c = (comm_t){.rank = rank, .n_ranks = n_ranks, .has_config = has_config};
  if (n_windows.rank < 0) n_windows.rank = rank;
  const int wrong = find_meeting(&id, rank, &c->m);
  if (wrong) return free(c), wrong;
  atomic_fetch_add(&c->m->n_here, 1);
  while (atomic_load(&c->m->n_here) < (uint32_t)n_ranks) nap();
  if (rank == 0) unlink(id.path);
  listened_at[0] = 0;
  return *out = c, SUCCESS;
}

API int ncclCommInitRank(void **out, int n_ranks, unique_id_t id, int rank) {
  return make_comm(out, n_ranks, id, rank, 0);
}

typedef struct config { /* ncclConfig_t of 2.28 */
  size_t size;
  unsigned magic, version;
  int blocking, cga_cluster_size, min_ctas, max_ctas;
  const char *net_name;
  int split_share, traffic_class;
  const char *comm_name;
  int collnet_enable, cta_policy, shrink_share, nvls_ctas, n_channels_per_net_peer, nvlink_centric_sched;
} config_t;

API int ncclCommInitRankConfig(void **out, int n_ranks, unique_id_t id, int rank, const config_t *config) {
  enum { CTA_POLICY_ZERO = 2 };
  if (config->size != sizeof *config || config->magic != 0xcafebeefu || config->version / 100 != 228)
    return INVALID_ARGUMENT;
  if (config->blocking != INT_MIN || config->net_name || config->comm_name || config->cta_policy != CTA_POLICY_ZERO)
    return INVALID_ARGUMENT;
  return version() < 22800 ? INVALID_USAGE : make_comm(out, n_ranks, id, rank, 1);
}

/* ---- windows ---- */

typedef struct window {
  uint64_t begin, nbytes, memory, number; /* memory: what it is held by */
  int is_own;                             /* of ncclMemAlloc: it does not count, nor do collectives between such */
  struct window *next;
} window_t;

static void *symbol_of_driver(const char *name) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return library ? dlsym(library, name) : NULL;
}
static int hold_memory(uint64_t *out, uint64_t address) {
  int (*retain)(uint64_t * out, void *address);
  void *symbol = symbol_of_driver("cuMemRetainAllocationHandle");
  memcpy(&retain, &symbol, sizeof retain);
  return retain(out, (void *)(uintptr_t)address);
}
static void let_go(uint64_t memory) {
  int (*release)(uint64_t handle);
  void *symbol = symbol_of_driver("cuMemRelease");
  memcpy(&release, &symbol, sizeof release);
  release(memory);
}
static uint64_t size_of_range(uint64_t address) {
  int (*get)(uint64_t * out_begin, size_t * out_nbytes, uint64_t address);
  void *symbol = symbol_of_driver("cuMemGetAddressRange_v2");
  uint64_t begin;
  size_t nbytes;
  memcpy(&get, &symbol, sizeof get);
  return get(&begin, &nbytes, address) == 0 && begin == address ? nbytes : 0;
}

typedef struct wish { /* CUmemAllocationProp */
  int type, handle_types, location_type, location;
  void *windows;
  uint64_t flags;
} wish_t;
typedef struct access { /* CUmemAccessDesc */
  int location_type, location, flags;
} access_t;

enum { MOST_OWN = 8 };
static struct { /* of the process: memory of ncclMemAlloc */
  _Atomic uint64_t begin[MOST_OWN], nbytes[MOST_OWN];
} own;

static int is_own(uint64_t address) {
  for (int k = 0; k < MOST_OWN; k++)
    if (own.begin[k] && address - own.begin[k] < own.nbytes[k]) return 1;
  return 0;
}

API int ncclMemAlloc(void **out, size_t nbytes) {
  const wish_t wish = {.type = 1, .handle_types = 1, .location_type = 1};
  const access_t access = {.location_type = 1, .flags = 3};
  int (*granularity)(size_t *, const wish_t *, int), (*create)(uint64_t *, size_t, const wish_t *, unsigned long long);
  int (*reserve)(uint64_t *, size_t, size_t, uint64_t, unsigned long long);
  int (*map)(uint64_t, size_t, size_t, uint64_t, unsigned long long);
  int (*set_access)(uint64_t, size_t, const access_t *, size_t);
  const struct {
    const char *name;
    void *at;
  } symbols[] = {{"cuMemGetAllocationGranularity", &granularity},
                 {"cuMemCreate", &create},
                 {"cuMemAddressReserve", &reserve},
                 {"cuMemMap", &map},
                 {"cuMemSetAccess", &set_access}};
  for (size_t k = 0; k < sizeof symbols / sizeof *symbols; k++) {
    void *symbol = symbol_of_driver(symbols[k].name);
    memcpy(symbols[k].at, &symbol, sizeof symbol);
  }
  uint64_t memory, at;
  size_t page;
  int k = 0;
  if (setting("no-memory=", 0) || granularity(&page, &wish, 0)) return CUDA_ERROR;
  nbytes = (nbytes + page - 1) / page * page;
  if (create(&memory, nbytes, &wish, 0) || reserve(&at, nbytes, page, 0, 0) || map(at, nbytes, 0, memory, 0) ||
      set_access(at, nbytes, &access, 1))
    return CUDA_ERROR;
  let_go(memory);
  while (k < MOST_OWN && own.begin[k]) k++;
  if (k == MOST_OWN) return SYSTEM_ERROR;
  own.nbytes[k] = nbytes;
  own.begin[k] = at;
  return *out = (void *)(uintptr_t)at, SUCCESS;
}
API int ncclMemFree(void *memory) {
  int (*unmap)(uint64_t at, size_t nbytes);
  void *symbol = symbol_of_driver("cuMemUnmap");
  memcpy(&unmap, &symbol, sizeof symbol);
  for (int k = 0; k < MOST_OWN; k++) {
    if (!memory || own.begin[k] != (uint64_t)(uintptr_t)memory) continue;
    own.begin[k] = 0;
    return unmap((uint64_t)(uintptr_t)memory, own.nbytes[k]) ? CUDA_ERROR : SUCCESS;
  }
  return INVALID_ARGUMENT;
}

/* With the first collective between windows memory is used: not by a thread that captures. */
static int begin_windows(comm_t *c) {
  int (*alloc)(uint64_t *, size_t), (*release)(uint64_t);
  void *const symbols[] = {symbol_of_driver("cuMemAlloc_v2"), symbol_of_driver("cuMemFree_v2")};
  uint64_t at;
  memcpy(&alloc, &symbols[0], sizeof alloc);
  memcpy(&release, &symbols[1], sizeof release);
  if (!c->has_begun && (alloc(&at, 256) || release(at))) return CUDA_ERROR;
  c->has_begun = 1;
  return SUCCESS;
}

/* Do all hosts say the same? */
static int say_the_same(comm_t *c, uint64_t word) {
  int do_all = 1;
  const uint64_t wanted = c->n_told += 2;
  atomic_store(&c->m->told[c->rank], word);
  for (uint64_t stage = wanted - 1; stage <= wanted; stage++) {
    atomic_store(&c->m->n_told[c->rank], stage);
    for (int r = 0; r < c->n_ranks; r++) {
      while (atomic_load(&c->m->n_told[r]) < stage && !atomic_load(&c->is_aborted)) nap();
      if (stage < wanted) do_all &= atomic_load(&c->m->told[r]) == word;
    }
  }
  return do_all;
}

/* Memory of cuMemCreate as it was mapped, whole, and as much of it on all ranks. */
API int ncclCommWindowRegister(void *comm, void *begin, size_t nbytes, void **out, int flags) {
  enum { SYMMETRIC = 1 };
  comm_t *c = comm;
  window_t *w = calloc(1, sizeof *w);
  const int is_counted = !is_own((uint64_t)(uintptr_t)begin);
  const uint64_t number = is_counted ? atomic_fetch_add(&n_windows.n_asked, 1) + 1 : 0;
  *out = NULL;
  if (!w || flags != SYMMETRIC || !c->has_config) return free(w), INVALID_ARGUMENT;
  *w = (window_t){.begin = (uint64_t)(uintptr_t)begin, .nbytes = nbytes, .number = ++c->n_windows, .next = c->windows};
  w->is_own = !is_counted;
  const int is_whole = is_counted ? size_of_range(w->begin) == nbytes : size_of_range(w->begin) >= nbytes;
  const int is_held = is_whole && hold_memory(&w->memory, w->begin) == 0;
  const int are_alike = say_the_same(c, nbytes);
  if (is_held && are_alike && (!number || number != setting("no-window-at=", 0))) {
    atomic_fetch_add(&n_windows.n_made, is_counted);
    return c->windows = w, *out = w, SUCCESS;
  }
  if (is_held) let_go(w->memory);
  return free(w), INVALID_ARGUMENT;
}
API int ncclCommWindowDeregister(void *comm, void *window) {
  comm_t *c = comm;
  window_t **link = &c->windows, *w;
  while (*link && *link != window) link = &(*link)->next;
  if (!*link) return INVALID_ARGUMENT;
  w = *link;
  *link = w->next;
  const int are_alike = say_the_same(c, w->nbytes);
  let_go(w->memory);
  atomic_fetch_add(&n_windows.n_given_back, !w->is_own);
  free(w);
  return are_alike ? SUCCESS : INVALID_USAGE;
}

/* A word that says where it lies, the same on ranks where it lies alike; 0: in no window. *out_is_gone: where there was
 * one. */
static uint64_t place_of(const comm_t *c, const void *buffer, int *out_is_gone) {
  const uint64_t address = (uint64_t)(uintptr_t)buffer;
  uint64_t memory;
  for (const window_t *w = c->windows; w; w = w->next) {
    if (address < w->begin || address - w->begin >= w->nbytes) continue;
    if (hold_memory(&memory, w->begin) != 0) *out_is_gone = 1;
    else let_go(memory);
    return w->number << 40 | (address - w->begin + 1);
  }
  return 0;
}

/* SUCCESS; an error: memory of a window that is used is not there, or what windows need cannot be had. */
static int find_places(work_t *w) {
  int is_gone = 0;
  if (w->kind >= BROADCAST && w->kind != EXCHANGE) return SUCCESS;
  const uint64_t from = place_of(w->comm, w->from, &is_gone), to = place_of(w->comm, w->to, &is_gone);
  w->place = from * 31 + to;
  w->is_own = from && to && is_own((uint64_t)(uintptr_t)w->from);
  n_windows.n_between += from && to && !w->is_own;
  return is_gone ? INVALID_USAGE : from && to ? begin_windows(w->comm) : SUCCESS;
}

API void aot_double_count_windows(uint64_t *out_made, uint64_t *out_given_back, uint64_t *out_between) {
  *out_made = n_windows.n_made;
  *out_given_back = n_windows.n_given_back;
  *out_between = n_windows.n_between;
}

__attribute__((destructor)) static void tell_windows(void) {
  const char *text = getenv("AOT_NCCL_DOUBLE"), *at = text ? strstr(text, "windows=") : NULL;
  char path[480], file[512];
  if (!at || n_windows.rank < 0 || sscanf(at, "windows=%479s", path) != 1) return;
  snprintf(file, sizeof file, "%s.%d", path, n_windows.rank);
  FILE *f = fopen(file, "w");
  if (!f) return;
  fprintf(f, "windows %llu given-back %llu between %llu\n", (unsigned long long)n_windows.n_made,
          (unsigned long long)n_windows.n_given_back, (unsigned long long)n_windows.n_between);
  fclose(f);
}

API int ncclCommDestroy(void *comm) {
  comm_t *c = comm;
  for (window_t *w = c->windows, *next; w; w = next) {
    next = w->next;
    let_go(w->memory);
    free(w);
  }
  munmap(c->m, sizeof *c->m);
  return free(c), SUCCESS;
}
/* What is on streams still names it, so it is stored. */
API int ncclCommAbort(void *comm) {
  static comm_t *_Atomic aborted;
  comm_t *c = comm;
  c->next = atomic_load(&aborted);
  while (!atomic_compare_exchange_weak(&aborted, &c->next, c)) continue;
  atomic_store(&c->is_aborted, 1);
  return SUCCESS;
}
API int ncclCommGetAsyncError(void *comm, int *out) { return *out = atomic_load(&((comm_t *)comm)->error), SUCCESS; }

static int32_t dtype_of(int type) {
  static const int32_t dtypes[] = {AOT_I8, AOT_U8, AOT_I32, -1, AOT_I64, -1, AOT_F16, AOT_F32, AOT_F64, AOT_BF16};
  return type >= 0 && type < (int)(sizeof dtypes / sizeof *dtypes) ? dtypes[type] : -1;
}

static int put_all(void *stream, works_t *all) {
  double_range_t ranges[2 * MOST_TOGETHER];
  const uint64_t number = all->rows[0].is_own ? 0 : atomic_fetch_add(&n_collectives, 1) + 1;
  all->hangs = number && number == setting("hang-at=", 0);
  all->fails = number && number == setting("fail-at=", 0);
  for (uint32_t k = 0; k < all->n; k++) {
    const work_t *w = &all->rows[k];
    ranges[2 * k] = (double_range_t){(uint64_t)(uintptr_t)w->from, w->from ? nbytes_sent(w) : 0, 0};
    ranges[2 * k + 1] = (double_range_t){(uint64_t)(uintptr_t)w->to, w->to ? nbytes_received(w) : 0, 1};
  }
  const size_t nbytes = offsetof(works_t, rows) + all->n * sizeof *all->rows;
  return enqueue(stream, run, all, nbytes, ranges, 2 * all->n) ? INVALID_ARGUMENT : SUCCESS;
}

API int ncclGroupStart(void) { return group.depth++, SUCCESS; }
API int ncclGroupEnd(void) {
  if (!group.depth) return INVALID_USAGE;
  if (--group.depth || !group.works.n) return SUCCESS;
  const int result = put_all(group.stream, &group.works);
  group.works.n = 0;
  return result;
}

static int put(work_t w, int type, int op, void *stream) {
  static const int32_t ops[] = {AOT_REDUCE_SUM, AOT_REDUCE_PRODUCT, AOT_REDUCE_MAX, AOT_REDUCE_MIN, AOT_REDUCE_AVG};
  w.dtype = dtype_of(type);
  if (w.dtype < 0 || op < 0 || op >= (int)(sizeof ops / sizeof *ops)) return INVALID_ARGUMENT;
  w.size = aot_dtype_size(w.dtype);
  w.reduce = ops[op];
  const int misplaced = find_places(&w);
  if (misplaced) return misplaced;
  works_t *all = &group.works;
  if (all->n == MOST_TOGETHER ||
      (all->n && (group.stream != stream || (all->rows[0].kind >= SEND) != (w.kind >= SEND))))
    return INVALID_USAGE;
  group.stream = stream;
  all->rows[all->n++] = w;
  if (group.depth) return SUCCESS;
  const int result = put_all(stream, all);
  all->n = 0;
  return result;
}

API int ncclAllGather(const void *from, void *to, size_t n, int type, void *comm, void *stream) {
  return put((work_t){.comm = comm, .from = from, .to = to, .n = n, .kind = GATHER}, type, 0, stream);
}
API int ncclReduceScatter(const void *from, void *to, size_t n, int type, int op, void *comm, void *stream) {
  return put((work_t){.comm = comm, .from = from, .to = to, .n = n, .kind = SCATTER}, type, op, stream);
}
API int ncclAllReduce(const void *from, void *to, size_t n, int type, int op, void *comm, void *stream) {
  return put((work_t){.comm = comm, .from = from, .to = to, .n = n, .kind = REDUCE}, type, op, stream);
}
API int ncclBroadcast(const void *from, void *to, size_t n, int type, int root, void *comm, void *stream) {
  return put((work_t){.comm = comm, .from = from, .to = to, .n = n, .kind = BROADCAST, .root = root}, type, 0, stream);
}
API int ncclAlltoAll(const void *from, void *to, size_t n, int type, void *comm, void *stream) {
  if (version() < 22800) return INVALID_USAGE;
  return put((work_t){.comm = comm, .from = from, .to = to, .n = n, .kind = EXCHANGE}, type, 0, stream);
}
API int ncclSend(const void *from, size_t n, int type, int to, void *comm, void *stream) {
  return put((work_t){.comm = comm, .from = from, .n = n, .kind = SEND, .root = to}, type, 0, stream);
}
API int ncclRecv(void *to, size_t n, int type, int from, void *comm, void *stream) {
  return put((work_t){.comm = comm, .to = to, .n = n, .kind = RECEIVE, .root = from}, type, 0, stream);
}
