/* A double of the CUDA driver, for machines without a GPU: libcuda.so.1 with the functions that backend-cuda uses, by
 * the names and numbers of cuda.h.
 *
 *     memory    the host cannot touch it: closed pages between guards, poison in fresh memory (device-strict's)
 *     streams   run late, when the driver is queried (query, synchronize), and out of step with each other
 *     kernels   what the double of NVRTC made of their text: functions of the CPU (kit/cuda)
 *     order     an access to memory that another stream uses, and nothing orders the two, is a trap, and reported
 *               (double_races.h)
 *     faults    a range that is in no buffer, or a stream used after its end, has the error that a GPU gives, and
 *               from then on every call has it
 *
 * A process has one driver, so its state is one static struct. AOT_CUDA_DOUBLE="seed=3 memory=1048576 lose-at=5" sets
 * the generator that picks the stream that continues, the bytes there are, and the number of the move that traps. */
#define _GNU_SOURCE /* dladdr */
#include "double_api.h"
#include "double_image.h"
#include "double_races.h"
#include "strict_memory.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_IMAGE = 200 };
enum {
  INVALID_CONTEXT = 201,
  INVALID_HANDLE = 400,
  NOT_FOUND = 500,
  NOT_READY = 600,
  ILLEGAL_ADDRESS = 700,
  LAUNCH_TIMEOUT = 702,
  NOT_SUPPORTED = 801
};
enum {
  CAPTURE_UNSUPPORTED = 900,
  CAPTURE_UNMATCHED = 903,
  CAPTURE_UNJOINED = 904,
  CAPTURE_ISOLATION = 905,
  CAPTURED_EVENT = 907
};
enum { STAY = 8, FEW = 16 }; /* items in a row of one stream, on the average; items of an empty list */

typedef enum item_kind {
  TO_DEVICE,
  TO_HOST,
  ON_DEVICE,
  FILL,
  WAIT_VALUE,
  WRITE_VALUE,
  MARK, /* of a capture: `to` is its number; a launch writes and waits for words instead */
  AWAIT,
  CALL,
  HOST_CALL,
  STAMP
} item_kind_t;
typedef struct item {
  item_kind_t kind;
  uint64_t to, from, nbytes; /* addresses; of values: `to` is the word, `from` the value */
  uint8_t byte;
  int (*call)(void *argument); /* CALL: with the memory open; not 0: a trap */
  void (*host_call)(void *argument);
  void *argument;
  int owns_argument;            /* it goes with the item */
  size_t n_argument;            /* CALL: its bytes, which name the memory that it touches .. */
  const double_range_t *ranges; /* .. if it is not reported: n_ranges of them, in the argument's memory */
  uint32_t n_ranges;
  uint64_t known; /* items that had been done when the host put it on the stream */
} item_t;
typedef struct items {
  item_t *rows;
  size_t head, end, capacity; /* [head, end) are to be done */
} items_t;

typedef struct stream {
  items_t items;
  struct capture *capture; /* NULL: it is not captured */
  uint32_t lane;
  int is_stalled; /* its next item never ends */
  rc_clock_t clock;
  struct stream *next;
} stream_t;

/* What streams were given while they were captured: a lane each, the first of whom began. A stream joins by waiting for
 * an event of another lane; every event that is recorded is a mark, with the work that is in front of it. */
enum { MOST_LANES = 4 };
typedef struct lane {
  items_t items;
  size_t known[MOST_LANES]; /* by lane: work that is in front of what comes next; of itself: all it has */
} lane_t;
typedef struct mark {
  size_t known[MOST_LANES];
} mark_t;
typedef struct capture {
  uint64_t number;
  lane_t lanes[MOST_LANES];
  stream_t *streams[MOST_LANES];
  uint32_t n_lanes, n_marks, capacity, is_strict;
  mark_t *marks;
} capture_t;

static struct driver {
  pthread_mutex_t lock;
  int is_ready, is_retained, has_no_context, has_own_clock;
  sd_memory_t memory;
  stream_t *streams, *last; /* the one that went on */
  uint64_t own_ns;          /* of that clock */
  uint64_t random, limit, peak, n_moves, lose_at, n_calls, trap_at, n_items, stall_at;
  uint64_t taken; /* bytes that another process has */
  struct memory *memories;
  uint64_t granularity;
  uint64_t n_captures, n_waits, drop_wait;
  FILE *trace;
  int lose_with, lost;
  rc_races_t races;
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int run_launch(void *argument);
static _Thread_local int has_context;

static int context_handle; /* an address to hand out */

/* ---- lists of items ---- */

static int add(items_t *list, const item_t *item) {
  if (list->head == list->end) list->head = list->end = 0;
  if (list->end == list->capacity) {
    const size_t capacity = list->capacity ? 2 * list->capacity : FEW;
    item_t *rows = realloc(list->rows, capacity * sizeof *rows);
    if (!rows) return OUT_OF_MEMORY;
    list->rows = rows;
    list->capacity = capacity;
  }
  list->rows[list->end++] = *item;
  return SUCCESS;
}

/* ---- running ---- */

static void *at(uint64_t address) { return (void *)(uintptr_t)address; }

static int copy_value(stream_t *s, const item_t *i) {
  uint64_t *word = at(i->to);
  if (i->kind == WRITE_VALUE) {
    rc_release(&driver.races, &s->clock, i->to, i->from);
    __atomic_store_n(word, i->from, __ATOMIC_RELEASE);
  } else {
    rc_acquire(&driver.races, &s->clock, i->to, __atomic_load_n(word, __ATOMIC_ACQUIRE));
  }
  return SUCCESS;
}

static int move(stream_t *s, const item_t *i) {
  static const char *const words[] = {[TO_DEVICE] = "a copy from the host",
                                      [TO_HOST] = "a copy to the host",
                                      [ON_DEVICE] = "a copy",
                                      [FILL] = "a fill"};
  const sd_buffer_t *to = i->kind == TO_HOST ? NULL : sd_memory_find(&driver.memory, i->to, i->nbytes);
  const sd_buffer_t *from =
      i->kind == TO_HOST || i->kind == ON_DEVICE ? sd_memory_find(&driver.memory, i->from, i->nbytes) : NULL;
  if ((i->kind != TO_HOST && !to) || ((i->kind == TO_HOST || i->kind == ON_DEVICE) && !from)) return ILLEGAL_ADDRESS;
  if (++driver.n_moves == driver.lose_at) return driver.lose_with;
  if (from && rc_access(&driver.races, &s->clock, i->from, i->nbytes, 0, words[i->kind])) return ILLEGAL_ADDRESS;
  if (to && rc_access(&driver.races, &s->clock, i->to, i->nbytes, 1, words[i->kind])) return ILLEGAL_ADDRESS;
  if (to) sd_buffer_open(to, 1);
  if (from) sd_buffer_open(from, 1);
  if (i->kind == FILL) memset(at(i->to), i->byte, (size_t)i->nbytes);
  else memmove(at(i->to), at(i->from), (size_t)i->nbytes);
  if (to) sd_buffer_open(to, 0);
  if (from) sd_buffer_open(from, 0);
  return SUCCESS;
}

/* A call's argument names the memory that it touches, among other words: the elements at these addresses are read, and
 * written if they are others afterwards. */
enum { MOST_TOUCHED = 520, ELEMENT = 2 };
typedef struct touched {
  uint64_t at[MOST_TOUCHED];
  uint16_t was[MOST_TOUCHED];
  uint32_t n;
} touched_t;

static void find_touched(const item_t *i, touched_t *out) {
  out->n = 0;
  for (size_t k = 0; k + 8 <= i->n_argument && out->n < MOST_TOUCHED; k += 8) {
    uint64_t word;
    memcpy(&word, (const char *)i->argument + k, 8);
    if (!word || !sd_memory_find(&driver.memory, word, ELEMENT)) continue;
    memcpy(&out->was[out->n], at(word), ELEMENT);
    out->at[out->n++] = word;
  }
}

static int check_touched(stream_t *s, const touched_t *t, const char *what) {
  for (uint32_t k = 0; k < t->n; k++) {
    const int is_written = memcmp(&t->was[k], at(t->at[k]), ELEMENT) != 0;
    if (rc_access(&driver.races, &s->clock, t->at[k], ELEMENT, is_written, what)) return ILLEGAL_ADDRESS;
  }
  return SUCCESS;
}

static int check_ranges(stream_t *s, const item_t *i) {
  for (uint32_t k = 0; k < i->n_ranges; k++)
    if (rc_access(&driver.races, &s->clock, i->ranges[k].address, i->ranges[k].nbytes, i->ranges[k].is_written,
                  "a collective"))
      return ILLEGAL_ADDRESS;
  return SUCCESS;
}

/* AOT_CUDA_DOUBLE="trace=FILE": a line for each kernel and library's call that runs: what it is, the stream, the
 * stream's count and the number among all, items that the host knew, and by stream what is after it. */
static void trace(const stream_t *s, const item_t *i) {
  Dl_info about;
  const uint64_t n = driver.races.n_streams < RC_STREAMS ? driver.races.n_streams : RC_STREAMS;
  const char *file = "?";
  if (!driver.trace) return;
  if (i->call != run_launch && dladdr((void *)(uintptr_t)i->call, &about) && about.dli_fname)
    file = strrchr(about.dli_fname, '/') ? strrchr(about.dli_fname, '/') + 1 : about.dli_fname;
  fprintf(driver.trace, "%s %u %llu %llu %llu", i->call == run_launch ? "kernel" : file, s->clock.stream,
          (unsigned long long)s->clock.of[s->clock.stream], (unsigned long long)rc_done(&driver.races),
          (unsigned long long)s->clock.known);
  for (uint64_t k = 0; k < n; k++) fprintf(driver.trace, " %llu", (unsigned long long)s->clock.of[k]);
  fputc('\n', driver.trace);
}

/* The memory is the call's while it runs, and what it wrote past a buffer is a trap. */
static int call(stream_t *s, const item_t *i) {
  int64_t where;
  touched_t touched;
  if (++driver.n_calls == driver.trap_at) return ILLEGAL_ADDRESS;
  trace(s, i);
  sd_memory_open(&driver.memory, 1);
  find_touched(i, &touched);
  int result = i->call(i->argument) ? ILLEGAL_ADDRESS : SUCCESS;
  if (sd_memory_overrun(&driver.memory, &where)) result = ILLEGAL_ADDRESS;
  if (result == SUCCESS && i->n_ranges) result = check_ranges(s, i);
  else if (result == SUCCESS)
    result = check_touched(s, &touched, i->call == run_launch ? "a kernel" : "a library's call");
  sd_memory_open(&driver.memory, 0);
  return result;
}

typedef struct event {
  uint64_t ns; /* when it happened; 0: not yet */
  int has_no_time;
  uint64_t word, n_records; /* streams write the number of the record, and wait for it */
  uint64_t captured_in;     /* number of the capture that it was recorded in last; 0: none */
  uint32_t mark;            /* there */
} event_t;

static uint64_t now_ns(void) {
  struct timespec t;
  if (driver.has_own_clock) return ++driver.own_ns;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int do_item(stream_t *s, const item_t *i) {
  int result = SUCCESS;
  rc_begin(&driver.races, &s->clock, i->known);
  if (i->kind == WAIT_VALUE || i->kind == WRITE_VALUE) result = copy_value(s, i);
  else if (i->kind == CALL) result = call(s, i);
  else if (i->kind == HOST_CALL) i->host_call(i->argument);
  else if (i->kind == STAMP) ((event_t *)i->argument)->ns = now_ns();
  else result = move(s, i);
  if (i->owns_argument) free(i->argument);
  return result;
}

static int can_go_on(const stream_t *s) {
  if (s->items.head == s->items.end || s->is_stalled) return 0;
  const item_t *i = &s->items.rows[s->items.head];
  if (i->kind != WAIT_VALUE) return 1;
  return (int64_t)(__atomic_load_n((uint64_t *)at(i->to), __ATOMIC_ACQUIRE) - i->from) >= 0;
}

static uint64_t draw(void) { /* xorshift64* (Vigna 2016) */
  uint64_t x = driver.random;
  x ^= x >> 12, x ^= x << 25, x ^= x >> 27;
  driver.random = x;
  return x * UINT64_C(2685821657736338717) >> 32;
}

/* The stream of last time, mostly; else one by the generator. */
static stream_t *pick(void) {
  size_t n = 0;
  stream_t *last = NULL;
  for (stream_t *s = driver.streams; s; s = s->next) {
    if (s == driver.last && can_go_on(s)) last = s;
    n += (size_t)can_go_on(s);
  }
  if (!n) return NULL;
  if (last && draw() % STAY) return last;
  size_t k = draw() % n;
  for (stream_t *s = driver.streams; s; s = s->next)
    if (can_go_on(s) && k-- == 0) return s;
  return NULL;
}

/* All that can be done now. */
static void run(void) {
  stream_t *s;
  while (driver.lost == SUCCESS && (s = pick()) != NULL) {
    s->is_stalled = ++driver.n_items == driver.stall_at;
    if (s->is_stalled) continue;
    const item_t i = s->items.rows[s->items.head++];
    driver.last = s;
    driver.lost = do_item(s, &i);
  }
}

static int put(void *stream, const item_t *item) {
  stream_t *s = driver.streams;
  while (s && s != stream) s = s->next;
  if (!s) return INVALID_HANDLE;
  item_t known = *item;
  known.known = rc_done(&driver.races);
  if (!s->capture) return add(&s->items, &known);
  lane_t *lane = &s->capture->lanes[s->lane];
  lane->known[s->lane]++;
  return add(&lane->items, &known);
}

static int begin(void) {
  pthread_mutex_lock(&driver.lock);
  return driver.lost        ? driver.lost
         : !driver.is_ready ? 3 /* NOT_INITIALIZED */
         : has_context      ? SUCCESS
                            : INVALID_CONTEXT;
}
static int end(int result) {
  pthread_mutex_unlock(&driver.lock);
  return result;
}

/* ---- the driver itself ---- */

static uint64_t setting(const char *text, const char *name, uint64_t preset) {
  const char *found = text ? strstr(text, name) : NULL;
  return found ? strtoull(found + strlen(name), NULL, 10) : preset;
}

/* AOT_CUDA_DOUBLE="peak=FILE": the most bytes that buffers took, for code that wants to know what a program needs. */
__attribute__((destructor)) static void write_peak(void) {
  const char *text = getenv("AOT_CUDA_DOUBLE"), *at = text ? strstr(text, "peak=") : NULL;
  char path[512];
  if (!at || sscanf(at, "peak=%511s", path) != 1) return;
  FILE *f = fopen(path, "w");
  if (!f) return;
  fprintf(f, "%llu\n", (unsigned long long)driver.peak);
  fclose(f);
}

static void open_trace(const char *text) {
  const char *at = text ? strstr(text, "trace=") : NULL;
  char path[512];
  if (at && sscanf(at, "trace=%511s", path) == 1) driver.trace = fopen(path, "w");
}

API int cuInit(unsigned flags) {
  const char *text = getenv("AOT_CUDA_DOUBLE");
  if (flags) return INVALID_VALUE;
  if (setting(text, "devices=", 1) == 0) return NO_DEVICE;
  pthread_mutex_lock(&driver.lock);
  if (!driver.is_ready) {
    sd_memory_init(&driver.memory);
    driver.random = setting(text, "seed=", 0) * UINT64_C(0x9E3779B97F4A7C15) + 1;
    driver.limit = setting(text, "memory=", UINT64_C(1) << 34);
    driver.lose_at = setting(text, "lose-at=", 0);
    driver.lose_with = (int)setting(text, "lose-with=", ILLEGAL_ADDRESS);
    driver.taken = setting(text, "taken=", 0);
    driver.granularity = setting(text, "granularity=", 2 << 20);
    driver.trap_at = setting(text, "trap-at=", 0);
    driver.has_no_context = setting(text, "no-context=", 0) != 0;
    driver.has_own_clock = setting(text, "own-clock=", 0) != 0;
    driver.stall_at = setting(text, "stall-at=", 0);
    driver.drop_wait = setting(text, "drop-wait=", 0);
    open_trace(text);
    driver.is_ready = 1;
  }
  return end(SUCCESS);
}

API int cuDriverGetVersion(int *out) {
  return *out = (int)setting(getenv("AOT_CUDA_DOUBLE"), "driver-version=", 13000), SUCCESS;
}

API int cuGetErrorName(int error, const char **out) {
  static const struct {
    int error;
    const char *name;
  } names[] = {
      {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
      {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
      {NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
      {LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT"},
      {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
      {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"},
      {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
      {214, "CUDA_ERROR_ECC_UNCORRECTABLE"},
      {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
      {NOT_READY, "CUDA_ERROR_NOT_READY"},
      {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"},
      {CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
      {CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"},
      {CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"},
      {CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"},
      {CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT"},
  };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (names[i].error == error) return *out = names[i].name, SUCCESS;
  return *out = NULL, INVALID_VALUE;
}
API int cuGetErrorString(int error, const char **out) {
  (void)error;
  return *out = "told by the driver's double", SUCCESS;
}

/* AOT_CUDA_DOUBLE="devices=4": they differ by their numbers alone. */
API int cuDeviceGetCount(int *out) { return *out = (int)setting(getenv("AOT_CUDA_DOUBLE"), "devices=", 1), SUCCESS; }
API int cuDeviceGet(int *out, int ordinal) {
  int count;
  cuDeviceGetCount(&count);
  return *out = ordinal, ordinal >= 0 && ordinal < count ? SUCCESS : INVALID_DEVICE;
}
API int cuDeviceGetName(char *out, int size, int device) {
  (void)device;
  return snprintf(out, (size_t)size, "a double of a GPU"), SUCCESS;
}
API int cuDeviceGetAttribute(int *out, int attribute, int device) {
  (void)device;
  switch (attribute) {
    case 16: return *out = (int)setting(getenv("AOT_CUDA_DOUBLE"), "multiprocessors=", 2), SUCCESS;
    case 75: return *out = (int)setting(getenv("AOT_CUDA_DOUBLE"), "capability=", 90) / 10, SUCCESS;
    case 76: return *out = (int)setting(getenv("AOT_CUDA_DOUBLE"), "capability=", 90) % 10, SUCCESS;
    case 81: return *out = 228 * 1024, SUCCESS; /* shared memory of a multiprocessor */
    case 97: return *out = 227 * 1024, SUCCESS; /* and of a block */
    default: return INVALID_VALUE;
  }
}
API int cuDeviceTotalMem_v2(size_t *out, int device) {
  (void)device;
  return *out = driver.limit + driver.taken, SUCCESS;
}
API int cuDevicePrimaryCtxRetain(void **out, int device) {
  (void)device;
  if (driver.has_no_context) return OUT_OF_MEMORY;
  driver.is_retained++;
  return *out = &context_handle, SUCCESS;
}
API int cuDevicePrimaryCtxRelease_v2(int device) {
  (void)device;
  return driver.is_retained-- > 0 ? SUCCESS : INVALID_CONTEXT;
}
API int cuCtxSetCurrent(void *context) {
  has_context = context != NULL;
  return context == NULL || context == &context_handle ? SUCCESS : INVALID_CONTEXT;
}

static int drain(void) {
  const int result = begin();
  if (result == SUCCESS) run();
  return end(result ? result : driver.lost);
}
API int cuCtxSynchronize(void) { return drain(); }

/* ---- memory ---- */

/* In a thread that captures, but for the relaxed way of it (cuThreadExchangeStreamCaptureMode). */
enum { CAPTURE_RELAXED = 2 };
static _Thread_local uint32_t n_strict_captures;
static int begin_memory_call(void) {
  const int result = begin();
  return result == SUCCESS && n_strict_captures ? CAPTURE_UNSUPPORTED : result;
}

typedef struct memory { /* what a handle is, and it lives as long as it is held or mapped */
  uint64_t nbytes, at;  /* at: 0: it is not mapped */
  uint32_t n_held;
  int is_buffer; /* it may be touched */
  struct memory *next;
} memory_t;

static uint64_t free_nbytes(void) {
  uint64_t used = driver.memory.nbytes;
  for (const memory_t *m = driver.memories; m; m = m->next) used += m->is_buffer ? 0 : m->nbytes;
  return used < driver.limit ? driver.limit - used : 0;
}

API int cuMemGetInfo_v2(size_t *out_free, size_t *out_total) {
  const int result = begin();
  *out_total = driver.limit + driver.taken;
  *out_free = free_nbytes();
  return end(result);
}
API int cuMemAlloc_v2(uint64_t *out, size_t nbytes) {
  char *data = NULL;
  int result = begin_memory_call();
  /* As on a GPU, addresses are multiples of 256; room for that is in front. */
  if (result == SUCCESS && nbytes == 0) result = INVALID_VALUE;
  if (result == SUCCESS && nbytes > free_nbytes()) result = OUT_OF_MEMORY;
  const uint64_t whole = ((uint64_t)nbytes + 255) / 256 * 256; /* of what is no more than the limit */
  if (result == SUCCESS && whole > free_nbytes()) result = OUT_OF_MEMORY;
  if (result == SUCCESS && !sd_memory_alloc(&driver.memory, whole, &data)) result = OUT_OF_MEMORY;
  if (driver.memory.nbytes > driver.peak) driver.peak = driver.memory.nbytes;
  *out = (uint64_t)(uintptr_t)data;
  return end(result);
}
API int cuMemFree_v2(uint64_t address) {
  int result = begin_memory_call();
  if (result == SUCCESS) run(); /* it waits for what uses the memory */
  const sd_buffer_t *b = sd_memory_find(&driver.memory, address, 0);
  if (!result && (!b || (uint64_t)(uintptr_t)b->data != address)) result = INVALID_VALUE;
  if (!result) rc_forget(&driver.races);
  if (!result) sd_memory_free(&driver.memory, b);
  return end(result ? result : driver.lost);
}
API int cuMemHostAlloc(void **out, size_t nbytes, unsigned flags) {
  const int result = begin_memory_call();
  (void)flags;
  if (result == SUCCESS && (nbytes >= SIZE_MAX / 2 || posix_memalign(out, 256, nbytes + 256) != 0))
    return end(OUT_OF_MEMORY);
  if (result == SUCCESS) sd_poison(*out, nbytes);
  return end(result);
}
API int cuMemFreeHost(void *memory) {
  const int result = begin_memory_call();
  if (result == SUCCESS) run();
  if (result != CAPTURE_UNSUPPORTED) free(memory);
  return end(result);
}

/* ---- memory that is had as pages, and mapped at addresses that are had by themselves ---- */

static memory_t *find_memory(uint64_t handle) {
  memory_t *m = driver.memories;
  while (m && (uint64_t)(uintptr_t)m != handle) m = m->next;
  return m;
}
static memory_t *mapped_at(uint64_t address) {
  memory_t *m = driver.memories;
  while (m && (!m->at || address < m->at || address - m->at >= m->nbytes)) m = m->next;
  return m;
}
static void drop_unheld(memory_t *m) {
  memory_t **link = &driver.memories;
  if (m->n_held || m->at) return;
  while (*link != m) link = &(*link)->next;
  *link = m->next;
  free(m);
}

typedef struct location {
  int type, id;
} location_t;
typedef struct wish {
  int type, handle_types;
  location_t location;
} wish_t;
typedef struct access {
  location_t location;
  int flags;
} access_t;
enum { PINNED = 1, FILE_DESCRIPTOR = 1, ON_A_DEVICE = 1, READ_WRITE = 3 };

static int is_known(const wish_t *w) {
  return w->type == PINNED && w->handle_types == FILE_DESCRIPTOR && w->location.type == ON_A_DEVICE;
}
API int cuMemGetAllocationGranularity(size_t *out, const wish_t *wish, int which) {
  (void)which;
  return *out = driver.granularity, is_known(wish) ? SUCCESS : INVALID_VALUE;
}
API int cuMemCreate(uint64_t *out, size_t nbytes, const wish_t *wish, unsigned long long flags) {
  int result = begin_memory_call();
  if (result == SUCCESS && (flags || !is_known(wish) || !nbytes || nbytes % driver.granularity)) result = INVALID_VALUE;
  if (result == SUCCESS && nbytes > free_nbytes()) result = OUT_OF_MEMORY;
  memory_t *m = result == SUCCESS ? malloc(sizeof *m) : NULL;
  if (!m) return end(result ? result : OUT_OF_MEMORY);
  *m = (memory_t){.nbytes = nbytes, .n_held = 1, .next = driver.memories};
  driver.memories = m;
  return *out = (uint64_t)(uintptr_t)m, end(SUCCESS);
}
API int cuMemRelease(uint64_t handle) {
  int result = begin();
  memory_t *m = find_memory(handle);
  if (result == SUCCESS && (!m || !m->n_held)) result = INVALID_VALUE;
  if (result == SUCCESS) m->n_held--, drop_unheld(m);
  return end(result);
}
API int cuMemRetainAllocationHandle(uint64_t *out, void *address) {
  int result = begin();
  memory_t *m = mapped_at((uint64_t)(uintptr_t)address);
  if (result == SUCCESS && !m) result = INVALID_VALUE;
  if (result == SUCCESS) m->n_held++;
  return *out = (uint64_t)(uintptr_t)m, end(result);
}
/* Between guard pages. */
API int cuMemAddressReserve(uint64_t *out, size_t nbytes, size_t alignment, uint64_t wanted, unsigned long long flags) {
  int result = begin();
  const size_t page = driver.memory.page;
  (void)alignment;
  if (result == SUCCESS && (wanted || flags || !nbytes || nbytes % driver.granularity)) result = INVALID_VALUE;
  if (result) return end(result);
  char *map = mmap(NULL, nbytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return *out = (uint64_t)(uintptr_t)(map + page), end(map == MAP_FAILED ? OUT_OF_MEMORY : SUCCESS);
}
API int cuMemAddressFree(uint64_t address, size_t nbytes) {
  const size_t page = driver.memory.page;
  pthread_mutex_lock(&driver.lock); /* no context is needed */
  if (mapped_at(address)) return end(INVALID_VALUE);
  if (driver.lost == SUCCESS) run(); /* addresses may be another buffer's from here on */
  rc_forget(&driver.races);
  munmap((char *)at(address) - page, nbytes + 2 * page);
  return end(SUCCESS);
}
API int cuMemMap(uint64_t address, size_t nbytes, size_t offset, uint64_t handle, unsigned long long flags) {
  int result = begin_memory_call();
  memory_t *m = find_memory(handle);
  if (result == SUCCESS && (!m || offset || flags || nbytes != m->nbytes || m->at)) result = INVALID_VALUE;
  if (result == SUCCESS) m->at = address;
  return end(result);
}
/* From here on it may be touched. */
API int cuMemSetAccess(uint64_t address, size_t nbytes, const access_t *access, size_t n) {
  int result = begin_memory_call();
  memory_t *m = mapped_at(address);
  if (result == SUCCESS && (!m || m->at != address || m->nbytes != nbytes || m->is_buffer || n != 1 ||
                            access->location.type != ON_A_DEVICE || access->flags != READ_WRITE))
    result = INVALID_VALUE;
  if (result == SUCCESS && !sd_memory_adopt(&driver.memory, at(address), nbytes)) result = OUT_OF_MEMORY;
  if (result == SUCCESS) m->is_buffer = 1;
  if (driver.memory.nbytes > driver.peak) driver.peak = driver.memory.nbytes;
  return end(result);
}
/* It waits for nothing: what still uses the memory traps. */
API int cuMemUnmap(uint64_t address, size_t nbytes) {
  int result = begin_memory_call();
  memory_t *m = mapped_at(address);
  if (result == SUCCESS && (!m || m->at != address || m->nbytes != nbytes)) result = INVALID_VALUE;
  if (result) return end(result);
  if (m->is_buffer) sd_memory_disown(&driver.memory, sd_memory_find(&driver.memory, address, nbytes));
  m->is_buffer = 0;
  m->at = 0;
  drop_unheld(m);
  return end(SUCCESS);
}
API int cuMemGetAddressRange_v2(uint64_t *out_begin, size_t *out_nbytes, uint64_t address) {
  const int result = begin();
  const sd_buffer_t *b = sd_memory_find(&driver.memory, address, 1);
  *out_begin = b ? (uint64_t)(uintptr_t)b->data : 0;
  *out_nbytes = b ? b->nbytes : 0;
  return end(result ? result : b ? SUCCESS : NOT_FOUND);
}

/* ---- streams ---- */

static stream_t *find_stream(const void *stream) {
  stream_t *s = driver.streams;
  while (s && s != stream) s = s->next;
  return s;
}

static stream_t *make_stream(void) {
  stream_t *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  s->next = driver.streams;
  rc_clock_init(&driver.races, &s->clock);
  return driver.streams = s;
}

static int end_stream(void *stream) {
  stream_t **link = &driver.streams;
  while (*link && *link != stream) link = &(*link)->next;
  if (!*link) return INVALID_HANDLE;
  stream_t *s = *link;
  *link = s->next;
  if (driver.last == s) driver.last = NULL;
  free(s->items.rows);
  free(s);
  return SUCCESS;
}

API int cuStreamCreateWithPriority(void **out, unsigned flags, int priority) {
  int result = begin();
  (void)flags, (void)priority;
  if (result == SUCCESS && !(*out = make_stream())) result = OUT_OF_MEMORY;
  return end(result);
}
API int cuStreamCreate(void **out, unsigned flags) { return cuStreamCreateWithPriority(out, flags, 0); }
API int cuStreamDestroy_v2(void *stream) {
  int result = begin();
  if (result == SUCCESS) run();
  const int ended = end_stream(stream);
  return end(result ? result : ended);
}
/* A stream that is captured may not be queried how far it is. */
static int check_not_captured(const void *stream) {
  const stream_t *s = find_stream(stream);
  return !s ? INVALID_HANDLE : s->capture ? CAPTURE_UNSUPPORTED : SUCCESS;
}
API int cuStreamSynchronize(void *stream) {
  int result = begin();
  if (result == SUCCESS) result = check_not_captured(stream);
  if (result == SUCCESS) run();
  return end(result ? result : driver.lost);
}
API int cuStreamQuery(void *stream) {
  int result = begin();
  if (result == SUCCESS) result = check_not_captured(stream);
  if (result == SUCCESS) run();
  if (result == SUCCESS) result = driver.lost;
  const stream_t *s = find_stream(stream);
  if (result == SUCCESS && s && s->items.head < s->items.end) result = NOT_READY;
  return end(result);
}

static int put_item(void *stream, item_t item) {
  const int result = begin();
  return end(result ? result : put(stream, &item));
}
API int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t nbytes, void *stream) {
  return put_item(stream, (item_t){.kind = TO_DEVICE, .to = to, .from = (uint64_t)(uintptr_t)from, .nbytes = nbytes});
}
API int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t nbytes, void *stream) {
  return put_item(stream, (item_t){.kind = TO_HOST, .to = (uint64_t)(uintptr_t)to, .from = from, .nbytes = nbytes});
}
API int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t nbytes, void *stream) {
  return put_item(stream, (item_t){.kind = ON_DEVICE, .to = to, .from = from, .nbytes = nbytes});
}
API int cuMemsetD8Async(uint64_t to, unsigned char byte, size_t nbytes, void *stream) {
  return put_item(stream, (item_t){.kind = FILL, .to = to, .from = 0, .nbytes = nbytes, .byte = byte});
}
API int cuStreamWaitValue64_v2(void *stream, uint64_t word, uint64_t value, unsigned flags) {
  return flags ? NOT_SUPPORTED : put_item(stream, (item_t){.kind = WAIT_VALUE, .to = word, .from = value, .nbytes = 8});
}
API int cuStreamWriteValue64_v2(void *stream, uint64_t word, uint64_t value, unsigned flags) {
  return flags ? NOT_SUPPORTED
               : put_item(stream, (item_t){.kind = WRITE_VALUE, .to = word, .from = value, .nbytes = 8});
}

/* ---- events ---- */

API int cuEventCreate(void **out, unsigned flags) {
  enum { DISABLE_TIMING = 2 };
  event_t *e = flags & ~(unsigned)DISABLE_TIMING ? NULL : calloc(1, sizeof *e);
  if (e) e->has_no_time = flags != 0;
  *out = e;
  return e ? SUCCESS : flags & ~(unsigned)DISABLE_TIMING ? NOT_SUPPORTED : OUT_OF_MEMORY;
}
API int cuEventDestroy_v2(void *event) {
  int result = begin();
  if (result == SUCCESS) run();
  free(event);
  return end(result);
}

static int record_captured(capture_t *c, const stream_t *s, event_t *e) {
  if (c->n_marks == c->capacity) {
    const uint32_t capacity = c->capacity ? 2 * c->capacity : FEW;
    mark_t *more = realloc(c->marks, capacity * sizeof *more);
    if (!more) return OUT_OF_MEMORY;
    c->marks = more;
    c->capacity = capacity;
  }
  memcpy(c->marks[c->n_marks].known, c->lanes[s->lane].known, sizeof c->marks->known);
  e->captured_in = c->number;
  e->mark = c->n_marks++;
  return add(&c->lanes[s->lane].items, &(item_t){.kind = MARK, .to = e->mark});
}
API int cuEventRecord(void *event, void *stream) {
  event_t *e = event;
  int result = begin();
  stream_t *s = find_stream(stream);
  if (result == SUCCESS && !s) result = INVALID_HANDLE;
  if (result != SUCCESS) return end(result);
  e->ns = 0;
  if (!e->has_no_time) return end(put(stream, &(item_t){.kind = STAMP, .argument = event}));
  if (s->capture) return end(record_captured(s->capture, s, e));
  e->captured_in = 0;
  return end(put(stream, &(item_t){.kind = WRITE_VALUE, .to = (uint64_t)(uintptr_t)&e->word, .from = ++e->n_records}));
}

static capture_t *find_capture(uint64_t number) {
  for (stream_t *s = driver.streams; s; s = s->next)
    if (s->capture && s->capture->number == number) return s->capture;
  return NULL;
}
static int await_captured(stream_t *s, const event_t *e) {
  capture_t *c = find_capture(e->captured_in);
  if (!c) return CAPTURED_EVENT;
  if (s->capture && s->capture != c) return CAPTURE_ISOLATION;
  if (!s->capture) {
    if (c->n_lanes == MOST_LANES) return NOT_SUPPORTED;
    s->capture = c;
    s->lane = c->n_lanes;
    c->streams[c->n_lanes++] = s;
  }
  lane_t *lane = &c->lanes[s->lane];
  for (uint32_t k = 0; k < MOST_LANES; k++)
    if (c->marks[e->mark].known[k] > lane->known[k]) lane->known[k] = c->marks[e->mark].known[k];
  return add(&lane->items, &(item_t){.kind = AWAIT, .to = e->mark});
}
/* AOT_CUDA_DOUBLE="drop-wait=3": the third is forgotten. */
API int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
  const event_t *e = event;
  int result = begin();
  stream_t *s = find_stream(stream);
  if (result == SUCCESS && (!s || !e)) result = INVALID_HANDLE;
  if (result == SUCCESS && (flags || !e->has_no_time)) result = NOT_SUPPORTED;
  if (result != SUCCESS || ++driver.n_waits == driver.drop_wait) return end(result);
  if (e->captured_in) return end(await_captured(s, e));
  if (s->capture) return end(CAPTURE_ISOLATION);
  if (!e->n_records) return end(SUCCESS);
  return end(put(stream, &(item_t){.kind = WAIT_VALUE, .to = (uint64_t)(uintptr_t)&e->word, .from = e->n_records}));
}
API int cuEventElapsedTime(float *out, void *begin, void *end) {
  const event_t *from = begin, *to = end;
  if (!from->ns || !to->ns) return NOT_READY;
  return *out = (float)((double)(to->ns - from->ns) * 1e-6), SUCCESS;
}

/* ---- graphs: what streams were given between begin and end ---- */

static void free_capture(capture_t *c) {
  for (uint32_t k = 0; k < c->n_lanes; k++) free(c->lanes[k].items.rows);
  free(c->marks);
  free(c);
}

API int cuStreamBeginCapture_v2(void *stream, int mode) {
  int result = begin();
  stream_t *s = find_stream(stream);
  if (!result && (!s || s->capture)) result = INVALID_HANDLE;
  if (!result && !(s->capture = calloc(1, sizeof *s->capture))) result = OUT_OF_MEMORY;
  if (!result) {
    *s->capture =
        (capture_t){.number = ++driver.n_captures, .streams = {s}, .n_lanes = 1, .is_strict = mode != CAPTURE_RELAXED};
    n_strict_captures += s->capture->is_strict;
    s->lane = 0;
  }
  return end(result);
}
/* Every stream that has joined is to be joined in turn. */
API int cuStreamEndCapture(void *stream, void **out) {
  int result = begin();
  stream_t *s = find_stream(stream);
  capture_t *c = s ? s->capture : NULL;
  *out = NULL;
  if (!result && !c) result = INVALID_HANDLE;
  if (!result && s->lane) result = CAPTURE_UNMATCHED;
  if (result) return end(result);
  n_strict_captures -= c->is_strict;
  for (uint32_t k = 0; k < c->n_lanes; k++) {
    c->streams[k]->capture = NULL;
    if (c->lanes[0].known[k] < c->lanes[k].known[k]) result = CAPTURE_UNJOINED;
  }
  if (result) free_capture(c);
  else *out = c;
  return end(result);
}

/* Its first lane goes onto the stream that it is launched on, others have streams of their own. */
typedef struct executable {
  items_t lanes[MOST_LANES];
  stream_t *streams[MOST_LANES];
  uint32_t n_lanes;
  uint64_t *words, n_launches; /* by mark: the number of the launch that has come there */
} executable_t;

enum { USE_NODE_PRIORITY = 8 }; /* of which there is none here */
API int cuGraphInstantiateWithFlags(void **out, void *graph, unsigned long long flags) {
  const capture_t *from = graph;
  executable_t *to = calloc(1, sizeof *to);
  int result = begin();
  if (!to || (flags && flags != USE_NODE_PRIORITY)) {
    free(to);
    return end(to ? NOT_SUPPORTED : OUT_OF_MEMORY);
  }
  to->n_lanes = from->n_lanes;
  to->words = calloc((size_t)from->n_marks + 1, sizeof *to->words);
  if (!to->words) result = OUT_OF_MEMORY;
  for (uint32_t k = 0; k < from->n_lanes && !result; k++) {
    if (k && !(to->streams[k] = make_stream())) result = OUT_OF_MEMORY;
    for (size_t i = 0; i < from->lanes[k].items.end && !result; i++)
      result = add(&to->lanes[k], &from->lanes[k].items.rows[i]);
  }
  return *out = to, end(result);
}
static int launch_item(const executable_t *x, void *stream, item_t item) {
  item.owns_argument = 0; /* the graph's */
  if (item.kind == MARK || item.kind == AWAIT) {
    item.kind = item.kind == MARK ? WRITE_VALUE : WAIT_VALUE;
    item.to = (uint64_t)(uintptr_t)&x->words[item.to];
    item.from = x->n_launches;
  }
  return put(stream, &item);
}
API int cuGraphLaunch(void *exec, void *stream) {
  executable_t *x = exec;
  int result = begin();
  x->n_launches++;
  for (uint32_t k = 0; k < x->n_lanes; k++)
    for (size_t i = 0; i < x->lanes[k].end && !result; i++)
      result = launch_item(x, k ? x->streams[k] : stream, x->lanes[k].rows[i]);
  return end(result);
}
/* Arguments are the executable's: what it was made of gives them away. */
API int cuGraphExecDestroy(void *exec) {
  executable_t *x = exec;
  const int result = begin();
  if (result == SUCCESS && x->n_lanes > 1) run();
  for (uint32_t k = 0; k < x->n_lanes; k++) {
    for (size_t i = 0; i < x->lanes[k].end; i++)
      if (x->lanes[k].rows[i].owns_argument) free(x->lanes[k].rows[i].argument);
    free(x->lanes[k].rows);
    if (k) end_stream(x->streams[k]);
  }
  free(x->words);
  free(x);
  return end(SUCCESS);
}
API int cuGraphDestroy(void *graph) { return free_capture(graph), SUCCESS; }

/* ---- kernels ---- */

static int enqueue(void *stream, int (*function)(void *argument), const void *argument, size_t nbytes,
                   const double_range_t *ranges, uint32_t n) {
  const size_t room = (nbytes + 7) / 8 * 8;
  char *copy = malloc(room + n * sizeof *ranges + 1);
  if (!copy) return OUT_OF_MEMORY;
  if (nbytes) memcpy(copy, argument, nbytes);
  if (n) memcpy(copy + room, ranges, n * sizeof *ranges);
  const int result = put_item(stream, (item_t){.kind = CALL,
                                               .call = function,
                                               .argument = copy,
                                               .owns_argument = 1,
                                               .n_argument = nbytes,
                                               .ranges = (const double_range_t *)(const void *)(copy + room),
                                               .n_ranges = n});
  if (result) free(copy);
  return result;
}

/* A function of the double's own libraries as an item of a stream: with the memory open, on a copy of its argument. */
API int aot_double_enqueue(void *stream, int (*function)(void *argument), const void *argument, size_t nbytes) {
  return enqueue(stream, function, argument, nbytes, NULL, 0);
}
/* The same of one that reports what memory it touches. */
API int aot_double_enqueue_over(void *stream, int (*function)(void *argument), const void *argument, size_t nbytes,
                                const double_range_t *ranges, uint32_t n) {
  return enqueue(stream, function, argument, nbytes, ranges, n);
}

/* For what runs as such an item: it takes so long. */
API void aot_double_pass(uint64_t ns) {
  if (driver.has_own_clock) driver.own_ns += ns;
  else nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
}

API int cuLaunchHostFunc(void *stream, void (*function)(void *self), void *self) {
  return put_item(stream, (item_t){.kind = HOST_CALL, .host_call = function, .argument = self});
}

/* A library is opened from a file, which may go once it is open. */
API int cuModuleLoadData(void **out, const void *image) {
  const double_image_t *head = image;
  char path[] = "/tmp/aot-double-XXXXXX";
  if (memcmp(head->magic, DOUBLE_IMAGE_MAGIC, sizeof head->magic) != 0) return INVALID_IMAGE;
  const int file = mkstemp(path);
  const int is_whole = file >= 0 && write(file, head + 1, head->nbytes) == (ssize_t)head->nbytes;
  if (file >= 0) close(file);
  *out = is_whole ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (file >= 0) unlink(path);
  return *out ? SUCCESS : INVALID_IMAGE;
}
API int cuModuleUnload(void *module) { return dlclose(module) == 0 ? SUCCESS : INVALID_VALUE; }

typedef struct function {
  int (*run)(void *kernel, uint32_t blocks, uint32_t threads, char *const *pointers);
  void *kernel;
  unsigned most_shared; /* bytes of shared memory that a launch may request */
} function_t;

/* Shared memory that a launch may use without opting in: 48 KB less 2 KB for the kernel's static part, unknown here. */
enum { UNASKED_SHARED = (48 - 2) * 1024 };

/* Handles live as long as the process: the driver has no call that ends one. */
API int cuModuleGetFunction(void **out, void *module, const char *name) {
  function_t *f = malloc(sizeof *f);
  void *run = dlsym(module, "shim_run");
  if (!f) return OUT_OF_MEMORY;
  memcpy(&f->run, &run, sizeof run);
  f->kernel = dlsym(module, name);
  f->most_shared = UNASKED_SHARED;
  if (run && f->kernel) return *out = f, SUCCESS;
  return free(f), *out = NULL, NOT_FOUND;
}
API int cuFuncSetAttribute(void *function, int attribute, int value) {
  enum { MAX_DYNAMIC_SHARED = 8, MOST = 227 * 1024 };
  if (attribute != MAX_DYNAMIC_SHARED || value > MOST) return INVALID_VALUE;
  return ((function_t *)function)->most_shared = (unsigned)value, SUCCESS;
}

typedef struct launch {
  function_t function;
  uint32_t blocks, threads;
  char *pointers[512];
} launch_t;

static int run_launch(void *argument) {
  const launch_t *l = argument;
  return !l->function.run(l->function.kernel, l->blocks, l->threads, l->pointers);
}

/* Arguments as one buffer of pointers: what generated kernels take. */
API int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                       unsigned block_y, unsigned block_z, unsigned shared_nbytes, void *stream, void **arguments,
                       void **extra) {
  launch_t l = {.function = *(function_t *)function, .blocks = grid_x, .threads = block_x};
  if (arguments || !extra || grid_y != 1 || grid_z != 1 || block_y != 1 || block_z != 1) return NOT_SUPPORTED;
  if (shared_nbytes > l.function.most_shared) return INVALID_VALUE;
  if (extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4]) return INVALID_VALUE;
  const size_t nbytes = *(const size_t *)extra[3];
  if (nbytes > sizeof l.pointers || !grid_x || !block_x) return INVALID_VALUE;
  memcpy(l.pointers, extra[1], nbytes);
  return aot_double_enqueue(stream, run_launch, &l, sizeof l);
}
