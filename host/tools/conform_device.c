/* Rules of devices: memory, moves, queues, timelines, as a host uses them that loads executables there (aot/device.h). What a host
 * may not do (ranges past a buffer, copies that overlap) is not tried. */
#include <tools/conform_trial.h>

#include <aot/inline.h>
#include <pipeline/call.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tools/child.h>

#define MOST_NS UINT64_C(10000000000) /* that work of a few bytes is waited for */
#define MILLISECOND UINT64_C(1000000)

typedef struct trying {
  aoth_trial_t *t;
  const aot_device_t *f, *d; /* its functions, and what they are handed: itself */
  aoth_arena_t *arena;
  aot_ctx_t ctx; /* of the calls: hears what they tell; over its own arena */
  aot_queue_t *one, *two;
  aot_timeline_t *line;
  uint64_t raised; /* to what `line` was raised last */
  uint64_t patience_ns;
} trying_t;

/* ---- what calls answer ---- */

static void fail(trying_t *y, const char *doing, const char *why) {
  if (y->t->end == AOTH_CONFORM_PASSED) aoth_trial_end(y->t, AOTH_CONFORM_FAILED, "%s %s", doing, why);
}

/* From here on nothing has been told. The arena, and what was heard so far, go with the trial's process. */
static void hear(trying_t *y) {
  if (!y->arena) y->arena = aoth_arena_create();
  y->ctx = y->t->s->ctx;
  y->ctx.prog = NULL;
  y->ctx.session = y->ctx.graph = y->ctx.scratch = y->arena;
  y->ctx.n_diags = 0;
  y->ctx.sink = aoth_sink_create(NULL);
}

/* A call that is to go well. 0: it has not, and the trial has ended; without memory, or for what it says not to have, refused. */
static int went(trying_t *y, aot_status_t status, const char *doing) {
  char told[400];
  if (status == AOT_OK) return y->t->end == AOTH_CONFORM_PASSED;
  aoth_first_error(aoth_sink_text(y->ctx.sink), told, sizeof told);
  const int is_refused = *told && (status == AOT_E_EXHAUSTED || status == AOT_E_UNIMPLEMENTED);
  if (is_refused) aoth_trial_end(y->t, AOTH_CONFORM_REFUSED, "%s: %s", doing, told);
  else if (y->t->end == AOTH_CONFORM_PASSED)
    aoth_trial_end(y->t, AOTH_CONFORM_FAILED, "%s answers status %d: %s", doing, (int)status,
                   *told ? told : "and does not say why");
  return 0;
}

/* A call that is to fail, with a diagnostic: with this status, or, 0, any that refuses. */
static int was_refused(trying_t *y, aot_status_t status, aot_status_t wanted, const char *doing) {
  const int is_told = y->ctx.n_diags > 0;
  hear(y);
  if (status == AOT_OK) fail(y, doing, "is not refused");
  else if (wanted ? status != wanted : !aoth_is_refusal(status)) {
    aoth_trial_end(y->t, AOTH_CONFORM_FAILED, "%s answers status %d in place of %s", doing, (int)status,
                   wanted == AOT_E_EXHAUSTED     ? "AOT_E_EXHAUSTED"
                   : wanted == AOT_E_UNAVAILABLE ? "AOT_E_UNAVAILABLE"
                                                 : "one of refusal");
  } else if (!is_told) fail(y, doing, "is refused without a diagnostic");
  return y->t->end == AOTH_CONFORM_PASSED;
}

static int get(trying_t *y, uint64_t nbytes, aot_buffer_t *out) {
  return went(y, y->f->alloc(y->d, &y->ctx, nbytes, out), "alloc");
}
static int give_back(trying_t *y, aot_buffer_t b) { return went(y, y->f->free(y->d, &y->ctx, b), "free"); }
static int put_write(trying_t *y, aot_queue_t *q, aot_buffer_t to, const void *from) {
  return went(y, y->f->write(y->d, &y->ctx, q, to, from), "write");
}
static int put_read(trying_t *y, aot_queue_t *q, void *to, aot_buffer_t from) {
  return went(y, y->f->read(y->d, &y->ctx, q, to, from), "read");
}
static int put_copy(trying_t *y, aot_queue_t *q, aot_buffer_t to, uint64_t from) {
  return went(y, y->f->copy(y->d, &y->ctx, q, to, from), "copy");
}
static int put_fill(trying_t *y, aot_queue_t *q, aot_buffer_t to, uint8_t byte) {
  return went(y, y->f->fill(y->d, &y->ctx, q, to, byte), "fill");
}
static int put_wait(trying_t *y, aot_queue_t *q, uint64_t value) {
  return went(y, y->f->wait(y->d, &y->ctx, q, (aot_point_t){y->line, value}), "wait");
}
static int put_signal(trying_t *y, aot_queue_t *q, uint64_t value) {
  return went(y, y->f->signal(y->d, &y->ctx, q, (aot_point_t){y->line, value}), "signal");
}
static aot_status_t wait_host(trying_t *y, uint64_t value, uint64_t limit_ns) {
  return y->f->wait_host(y->d, &y->ctx, (aot_point_t){y->line, value}, limit_ns);
}
static aot_status_t signal_host(trying_t *y, uint64_t value) {
  return y->f->signal_host(y->d, &y->ctx, (aot_point_t){y->line, value});
}
static int wait_for(trying_t *y, uint64_t value) { return went(y, wait_host(y, value, y->patience_ns), "wait_host"); }

/* Until all that stands on the queue is done. */
static int finish(trying_t *y, aot_queue_t *q) { return put_signal(y, q, ++y->raised) && wait_for(y, y->raised); }

static int is_value(trying_t *y, uint64_t wanted) {
  const uint64_t value = y->f->value(y->d, y->line);
  if (value != wanted)
    aoth_trial_end(y->t, AOTH_CONFORM_FAILED, "a timeline stands at %llu, not at %llu", (unsigned long long)value,
                   (unsigned long long)wanted);
  return value == wanted;
}

static aot_buffer_t part(aot_buffer_t b, uint64_t at, uint64_t nbytes) {
  return (aot_buffer_t){b.address + at, nbytes};
}

static void make_bytes(uint8_t *out, uint64_t n, uint32_t seed) {
  for (uint64_t i = 0; i < n; i++) out[i] = (uint8_t)(i * 31 + (i >> 8) * 7 + seed * 101 + 1);
}

static int is_same(trying_t *y, const uint8_t *got, const uint8_t *wanted, uint64_t n, const char *doing) {
  for (uint64_t i = 0; i < n; i++) {
    if (got[i] == wanted[i]) continue;
    aoth_trial_end(y->t, AOTH_CONFORM_FAILED, "%s: byte %llu of %llu is %u, not %u", doing, (unsigned long long)i,
                   (unsigned long long)n, got[i], wanted[i]);
    return 0;
  }
  return 1;
}

/* ---- a trial: a unit, two queues, a timeline, one thing tried ---- */

typedef struct step {
  const char *about;
  void (*act)(trying_t *y);
} step_t;

static int make_queues(trying_t *y) {
  return went(y, y->f->queue_create(y->d, &y->ctx, AOT_QUEUE_COMPUTE, &y->one), "queue_create") &&
         went(y, y->f->queue_create(y->d, &y->ctx, AOT_QUEUE_COPY, &y->two), "queue_create") &&
         went(y, y->f->timeline_create(y->d, &y->ctx, &y->line), "timeline_create");
}

static void drop_queues(trying_t *y) {
  if (went(y, y->f->queue_destroy(y->d, &y->ctx, y->one), "queue_destroy") &&
      went(y, y->f->queue_destroy(y->d, &y->ctx, y->two), "queue_destroy"))
    went(y, y->f->timeline_destroy(y->d, &y->ctx, y->line), "timeline_destroy");
}

/* 0: there is no unit, and the trial has ended. */
static int begin(aoth_trial_t *t, aoth_instance_t *unit, trying_t *out) {
  if (!aoth_trial_judge(t, aoth_instance_try(t->s, t->stage, unit))) return 0;
  const double limit = t->c->line->timeout / 2 * 1e9; /* so that what hangs is told before the trial is ended */
  *out = (trying_t){.t = t, .f = &unit->table.device, .d = unit->self};
  out->patience_ns = limit < (double)MOST_NS ? (uint64_t)limit : MOST_NS;
  hear(out);
  return 1;
}

static void run_step(aoth_trial_t *t, const step_t *steps, uint32_t n) {
  aoth_instance_t unit;
  trying_t y;
  if (t->number >= n) {
    aoth_trial_none(t);
    return;
  }
  aoth_trial_about(t, "%s", steps[t->number].about);
  if (!begin(t, &unit, &y)) return;
  if (make_queues(&y)) steps[t->number].act(&y);
  if (t->end != AOTH_CONFORM_PASSED) return; /* work may be on its queues */
  drop_queues(&y);
  aoth_instance_destroy(t->s, t->stage, &unit);
}

/* ---- 701: what it tells of itself ---- */

static void describes_itself(trying_t *y) {
  aot_device_info_t info = {.struct_size = sizeof info}, shorter = {.struct_size = 16, .ordinal = 77, .alignment = 77};
  if (!went(y, y->f->info(y->d, &info), "info") || !went(y, y->f->info(y->d, &shorter), "info")) return;
  if (info.struct_size != sizeof info) fail(y, "info", "changes struct_size");
  if (!info.alignment || info.alignment & (info.alignment - 1))
    fail(y, "info", "has an alignment that is no power of two");
  if (!info.name.size) fail(y, "info", "has no name");
  if (info.free_nbytes > info.total_nbytes && info.total_nbytes) fail(y, "info", "has more free bytes than there are");
  if (shorter.ordinal != 77 || shorter.alignment != 77) fail(y, "info", "writes behind the end of a shorter struct");
}

void aoth_rule_information(aoth_trial_t *t) {
  static const step_t steps[] = {{"info, and into a shorter struct", describes_itself}};
  run_step(t, steps, 1);
}

/* ---- 702: memory ---- */

static const uint64_t sizes[] = {0, 1, 0, 3, 63, 64, 65, 4095, 4096, 4097, 1 << 20};
#define N_SIZES (sizeof sizes / sizeof *sizes)

static void has_sizes(trying_t *y) {
  aot_device_info_t info = {.struct_size = sizeof info};
  aot_buffer_t b[N_SIZES];
  if (!went(y, y->f->info(y->d, &info), "info")) return;
  for (uint32_t i = 0; i < N_SIZES; i++) {
    if (!get(y, sizes[i], &b[i])) return;
    if (!b[i].address) fail(y, "alloc", "answers address 0");
    if (b[i].nbytes != sizes[i]) fail(y, "alloc", "answers another size than it was asked for");
    if (info.alignment && b[i].address % info.alignment) fail(y, "alloc", "answers an address that is not aligned");
    for (uint32_t k = 0; k < i; k++) {
      const uint64_t n = b[k].nbytes ? b[k].nbytes : 1, m = sizes[i] ? sizes[i] : 1;
      if (b[k].address < b[i].address + m && b[i].address < b[k].address + n)
        fail(y, "alloc", "answers addresses of a buffer that is there");
    }
  }
  for (uint32_t i = 0; i < N_SIZES; i++) give_back(y, b[(i * 4 + 3) % N_SIZES]);
}

static void tells_what_it_has_not(trying_t *y) {
  static const uint64_t most[] = {UINT64_C(1) << 60, UINT64_MAX / 2, UINT64_MAX - 100, UINT64_MAX};
  aot_buffer_t b;
  for (uint32_t i = 0; i < 4; i++)
    if (!was_refused(y, y->f->alloc(y->d, &y->ctx, most[i], &b), AOT_E_EXHAUSTED, "alloc of more than there is"))
      return;
  if (get(y, 64, &b)) give_back(y, b);
}

static void has_host_memory(trying_t *y) {
  void *at[3];
  for (uint32_t i = 0; i < 3; i++) {
    if (!went(y, y->f->host_alloc(y->d, &y->ctx, sizes[i * 4 + 1], &at[i]), "host_alloc")) return;
    if (!at[i]) fail(y, "host_alloc", "answers no address");
    else memset(at[i], 1, (size_t)sizes[i * 4 + 1]);
  }
  for (uint32_t i = 0; i < 3; i++) went(y, y->f->host_free(y->d, &y->ctx, at[i], sizes[i * 4 + 1]), "host_free");
  was_refused(y, y->f->host_alloc(y->d, &y->ctx, UINT64_MAX / 2, &at[0]), AOT_E_EXHAUSTED,
              "host_alloc of more than there is");
}

void aoth_rule_memory(aoth_trial_t *t) {
  static const step_t steps[] = {{"buffers of 0 bytes to a megabyte", has_sizes},
                                 {"buffers of more than there is", tells_what_it_has_not},
                                 {"memory of the host", has_host_memory}};
  run_step(t, steps, 3);
}

/* ---- 703: moves ---- */

#define N_MOVED 5000u

static void moves_sizes(trying_t *y) {
  uint8_t *from = malloc(1 << 20), *to = malloc(1 << 20);
  aot_buffer_t b;
  for (uint32_t i = 0; from && to && i < N_SIZES; i++) {
    make_bytes(from, sizes[i], i);
    memset(to, 0, (size_t)sizes[i]);
    if (!get(y, sizes[i], &b) || !put_write(y, y->one, b, from) || !put_read(y, y->one, to, b) || !finish(y, y->one) ||
        !is_same(y, to, from, sizes[i], "what was written and read") || !give_back(y, b))
      break;
  }
  free(from);
  free(to);
}

/* Each move is made on the host's own bytes, too. */
static void moves_ranges(trying_t *y) {
  uint8_t *own = calloc(3, N_MOVED), *from = own ? own + N_MOVED : NULL, *to = own ? from + N_MOVED : NULL;
  uint64_t random = 12345;
  aot_buffer_t b;
  int ok = own && get(y, N_MOVED, &b) && put_fill(y, y->one, b, 0);
  for (uint32_t i = 0; ok && i < 300; i++) {
    random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    const uint64_t half = N_MOVED / 2, n = (random >> 33) % 97, at = (random >> 13) % (half - 97),
                   other = half + (random >> 45) % (half - 97);
    const int goes_up = (int)(random >> 60 & 1); /* between halves: copies may not overlap */
    const uint64_t source = goes_up ? at : other, target = goes_up ? other : at;
    make_bytes(from, n, i);
    if (i % 3 == 0) ok = put_write(y, y->one, part(b, target, n), from) && finish(y, y->one);
    else if (i % 3 == 1) ok = put_copy(y, y->one, part(b, target, n), b.address + source);
    else ok = put_fill(y, y->one, part(b, target, n), (uint8_t)i);
    if (i % 3 == 1) memcpy(own + target, own + source, (size_t)n);
    else if (i % 3 == 0) memcpy(own + target, from, (size_t)n);
    else memset(own + target, (uint8_t)i, (size_t)n);
  }
  ok = ok && put_read(y, y->one, to + 1, part(b, 1, N_MOVED - 2)) && finish(y, y->one) &&
       is_same(y, to + 1, own + 1, N_MOVED - 2, "a buffer after 300 moves of its parts") && give_back(y, b);
  free(own);
}

static void moves_host_memory(trying_t *y) {
  void *from, *to;
  aot_buffer_t b, c;
  if (!went(y, y->f->host_alloc(y->d, &y->ctx, N_MOVED, &from), "host_alloc") ||
      !went(y, y->f->host_alloc(y->d, &y->ctx, N_MOVED, &to), "host_alloc") || !get(y, N_MOVED, &b) ||
      !get(y, N_MOVED, &c))
    return;
  make_bytes(from, N_MOVED, 9);
  memset(to, 0, N_MOVED);
  const int ok = put_write(y, y->two, b, from) && put_copy(y, y->two, c, b.address) && put_read(y, y->two, to, c) &&
                 finish(y, y->two) && is_same(y, to, from, N_MOVED, "what went from memory of host_alloc to another");
  if (!ok || !give_back(y, b) || !give_back(y, c)) return;
  went(y, y->f->host_free(y->d, &y->ctx, from, N_MOVED), "host_free");
  went(y, y->f->host_free(y->d, &y->ctx, to, N_MOVED), "host_free");
}

void aoth_rule_moves(aoth_trial_t *t) {
  static const step_t steps[] = {{"writes and reads of 0 bytes to a megabyte", moves_sizes},
                                 {"writes, copies and fills of parts of a buffer", moves_ranges},
                                 {"moves between memory of the host's", moves_host_memory}};
  run_step(t, steps, 3);
}

/* ---- 704: order ---- */

#define N_ROUNDS 64u

static void keeps_order(trying_t *y) {
  uint8_t to[N_ROUNDS], wanted[N_ROUNDS];
  aot_buffer_t one, all;
  if (!get(y, 1, &one) || !get(y, N_ROUNDS, &all)) return;
  for (uint32_t i = 0; i < N_ROUNDS; i++) {
    wanted[i] = (uint8_t)(i + 1);
    if (!put_fill(y, y->one, one, wanted[i]) || !put_copy(y, y->one, part(all, i, 1), one.address)) return;
  }
  if (put_read(y, y->one, to, all) && finish(y, y->one) &&
      is_same(y, to, wanted, N_ROUNDS, "what a queue did in turn") && give_back(y, one))
    give_back(y, all);
}

/* One queue writes a byte, the other takes it; all of the second is put before any of the first. */
static void waits_across_queues(trying_t *y) {
  uint8_t to[N_ROUNDS], wanted[N_ROUNDS];
  aot_buffer_t one, all;
  if (!get(y, 1, &one) || !get(y, N_ROUNDS, &all) || !put_fill(y, y->one, one, 255) || !finish(y, y->one)) return;
  const uint64_t first = y->raised;
  for (uint32_t i = 0; i < N_ROUNDS; i++)
    if (!put_wait(y, y->two, first + 2 * i + 1) || !put_copy(y, y->two, part(all, i, 1), one.address) ||
        !put_signal(y, y->two, first + 2 * i + 2))
      return;
  for (uint32_t i = 0; i < N_ROUNDS; i++) {
    wanted[i] = (uint8_t)(i + 1);
    if (!put_wait(y, y->one, first + 2 * i) || !put_fill(y, y->one, one, wanted[i]) ||
        !put_signal(y, y->one, first + 2 * i + 1))
      return;
  }
  y->raised = first + 2 * N_ROUNDS;
  if (wait_for(y, y->raised) && put_read(y, y->two, to, all) && finish(y, y->two) &&
      is_same(y, to, wanted, N_ROUNDS, "what one queue took from the other") && give_back(y, one))
    give_back(y, all);
}

/* The host's memory is read when the queue comes to it. */
static void waits_for_the_host(trying_t *y) {
  uint8_t to[8] = {0};
  void *from;
  aot_buffer_t b;
  if (!get(y, 8, &b) || !went(y, y->f->host_alloc(y->d, &y->ctx, 8, &from), "host_alloc")) return;
  make_bytes(from, 8, 1);
  if (!put_wait(y, y->one, 1) || !put_write(y, y->one, b, from) || !put_signal(y, y->one, 2) ||
      !put_wait(y, y->two, 2) || !put_read(y, y->two, to, b) || !put_signal(y, y->two, 3))
    return;
  make_bytes(from, 8, 2);
  y->raised = 3;
  if (went(y, signal_host(y, 1), "signal_host") && wait_for(y, 3) &&
      is_same(y, to, from, 8, "what was written behind a wait for the host") && give_back(y, b))
    went(y, y->f->host_free(y->d, &y->ctx, from, 8), "host_free");
}

static void has_queues_of_all_kinds(trying_t *y) {
  static const int32_t kinds[] = {AOT_QUEUE_COMPUTE, AOT_QUEUE_COPY, AOT_QUEUE_COLLECTIVE};
  uint8_t from[100], to[100];
  aot_buffer_t b;
  aot_queue_t *q;
  if (!get(y, sizeof from, &b)) return;
  for (uint32_t i = 0; i < 3; i++) {
    make_bytes(from, sizeof from, i);
    if (!went(y, y->f->queue_create(y->d, &y->ctx, kinds[i], &q), "queue_create") || !put_write(y, q, b, from) ||
        !put_read(y, q, to, b) || !finish(y, q) ||
        !is_same(y, to, from, sizeof from, "what went by a queue of its own") ||
        !went(y, y->f->queue_destroy(y->d, &y->ctx, q), "queue_destroy"))
      return;
  }
  give_back(y, b);
}

void aoth_rule_order(aoth_trial_t *t) {
  static const step_t steps[] = {
      {"128 items of one queue", keeps_order},
      {"two queues that wait for each other, waits put before their signals", waits_across_queues},
      {"queues that wait for the host", waits_for_the_host},
      {"a queue of each kind", has_queues_of_all_kinds}};
  run_step(t, steps, 4);
}

/* ---- 705: timelines ---- */

static void begins_at_zero(trying_t *y) {
  if (is_value(y, 0) && went(y, wait_host(y, 0, 0), "wait_host for what is reached")) {
    if (went(y, signal_host(y, 7), "signal_host") && is_value(y, 7) && wait_for(y, 5) && wait_for(y, 7))
      went(y, wait_host(y, 7, UINT64_MAX), "wait_host without a limit for what is reached");
  }
}

static void limits_waits(trying_t *y) {
  static const uint64_t limits[] = {0, MILLISECOND, 50 * MILLISECOND};
  for (uint32_t i = 0; i < 3; i++)
    if (!was_refused(y, wait_host(y, 1, limits[i]), AOT_E_UNAVAILABLE, "wait_host for what nobody raises")) return;
  if (went(y, signal_host(y, 1), "signal_host")) wait_for(y, 1);
}

static void goes_up_alone(trying_t *y) {
  if (!went(y, signal_host(y, 5), "signal_host")) return;
  if (!was_refused(y, signal_host(y, 5), 0, "signal_host to where a timeline stands")) return;
  if (!was_refused(y, signal_host(y, 3), 0, "signal_host to where a timeline has passed") || !is_value(y, 5)) return;
  const aot_status_t status = y->f->signal(y->d, &y->ctx, y->one, (aot_point_t){y->line, 4});
  if (!was_refused(y, status, 0, "signal of what a timeline has passed")) return;
  y->raised = 5;
  if (finish(y, y->one)) is_value(y, 6);
}

static void leaps(trying_t *y) {
  y->raised = UINT64_C(1) << 40;
  if (put_wait(y, y->two, 3) && put_signal(y, y->two, (UINT64_C(1) << 41) - 1) && finish(y, y->one) &&
      wait_for(y, (UINT64_C(1) << 41) - 1))
    is_value(y, (UINT64_C(1) << 41) - 1);
}

static void *raise_later(void *self) {
  trying_t *y = self;
  const struct timespec moment = {0, 20 * (long)MILLISECOND};
  nanosleep(&moment, NULL);
  signal_host(y, 1);
  return NULL;
}

/* Two threads, each with a context of its own. */
static void another_thread_raises(trying_t *y) {
  trying_t other = *y;
  pthread_t thread;
  other.arena = NULL;
  hear(&other);
  if (!put_wait(y, y->one, 1) || !put_signal(y, y->one, 2) || pthread_create(&thread, NULL, raise_later, &other) != 0)
    return;
  wait_for(y, 2);
  pthread_join(thread, NULL);
}

void aoth_rule_timelines(aoth_trial_t *t) {
  static const step_t steps[] = {{"a new timeline, and one that the host raises", begins_at_zero},
                                 {"waits with limits of 0 to 50 milliseconds", limits_waits},
                                 {"signals that are not higher", goes_up_alone},
                                 {"values of 41 bits", leaps},
                                 {"a wait that another thread ends", another_thread_raises}};
  run_step(t, steps, 5);
}

/* ---- 706, 707: work of the host's ---- */

typedef struct work {
  uint64_t address; /* of a byte that it raises by one; 0: none */
  uint32_t n_calls;
  uint32_t number, *order; /* order: counts calls; number: what it stood at */
  aot_status_t before, answer;
} work_t;

static aot_status_t AOT_CALL do_work(void *self, aot_status_t before) {
  work_t *w = self;
  w->n_calls++;
  w->before = before;
  if (w->order) w->number = (*w->order)++;
  if (before != AOT_OK) return before;
  if (w->address) ++*(uint8_t *)(uintptr_t)w->address;
  return w->answer;
}

static const aot_ext_host_work_t *host_work(trying_t *y) {
  const aot_ext_host_work_t *x = aot_ext(&y->d->head, AOT_EXT_HOST_WORK);
  if (!x) aoth_trial_end(y->t, AOTH_CONFORM_NOT, "it does not offer " AOT_EXT_HOST_WORK);
  return x;
}

static int put_work(trying_t *y, const aot_ext_host_work_t *x, aot_queue_t *q, work_t *w) {
  return went(y, x->enqueue(x, &y->ctx, q, do_work, w), "enqueue of aot.host-work/1");
}

/* Fills, work on the byte, copies, in turn. */
static void works_in_order(trying_t *y) {
  const aot_ext_host_work_t *x = host_work(y);
  work_t works[N_ROUNDS] = {{0}};
  uint8_t to[N_ROUNDS], wanted[N_ROUNDS];
  uint32_t order = 0;
  aot_buffer_t one, all;
  if (!x || !get(y, 1, &one) || !get(y, N_ROUNDS, &all)) return;
  for (uint32_t i = 0; i < N_ROUNDS; i++) {
    works[i] = (work_t){.address = one.address, .order = &order, .before = AOT_E_INTERNAL};
    wanted[i] = (uint8_t)(2 * i + 1);
    if (!put_fill(y, y->one, one, (uint8_t)(2 * i)) || !put_work(y, x, y->one, &works[i]) ||
        !put_copy(y, y->one, part(all, i, 1), one.address))
      return;
  }
  if (!put_read(y, y->one, to, all) || !finish(y, y->one)) return;
  for (uint32_t i = 0; i < N_ROUNDS; i++) {
    if (works[i].n_calls != 1) fail(y, "work of the host's", "is not called once");
    if (works[i].number != i) fail(y, "work of the host's", "is called out of its order");
    if (works[i].before != AOT_OK) fail(y, "work of the host's", "is told of a failure that there was not");
  }
  if (y->t->end == AOTH_CONFORM_PASSED && is_same(y, to, wanted, N_ROUNDS, "what work of the host's did to buffers") &&
      give_back(y, one))
    give_back(y, all);
}

void aoth_rule_host_work(aoth_trial_t *t) {
  static const step_t steps[] = {{"fills, work and copies in turn", works_in_order}};
  run_step(t, steps, 1);
}

static int has_status(trying_t *y, aot_status_t status, aot_status_t wanted, const char *what) {
  hear(y);
  if (status != wanted)
    aoth_trial_end(y->t, AOTH_CONFORM_FAILED, "%s: status %d in place of %d", what, (int)status, (int)wanted);
  return status == wanted;
}

/* fails, left out, read, signal 2; works, signal 3. The other queue waits for 2. */
static void fails_up_to_the_signal(trying_t *y) {
  const aot_ext_host_work_t *x = host_work(y);
  work_t fails = {.answer = AOT_E_RANGE}, left_out = {0}, behind = {0}, after = {0};
  uint8_t to[8] = {0};
  aot_buffer_t b;
  if (!x || !get(y, 8, &b) || !put_fill(y, y->one, b, 'a') || !finish(y, y->one)) return;
  const int is_put = put_work(y, x, y->one, &fails) && put_work(y, x, y->one, &left_out) &&
                     put_read(y, y->one, to, b) && put_signal(y, y->one, 2) && put_work(y, x, y->one, &after) &&
                     put_signal(y, y->one, 3) && put_wait(y, y->two, 2) && put_work(y, x, y->two, &behind) &&
                     put_signal(y, y->two, 4);
  if (!is_put) return;
  if (!has_status(y, wait_host(y, 4, y->patience_ns), AOT_E_RANGE, "a point behind a wait for work that failed") ||
      !has_status(y, wait_host(y, 2, y->patience_ns), AOT_E_RANGE, "the point that work failed on the way to") ||
      !has_status(y, wait_host(y, 3, y->patience_ns), AOT_OK, "the next point of the queue"))
    return;
  if (left_out.n_calls != 1 || left_out.before != AOT_E_RANGE)
    fail(y, "work behind work that failed", "is not told of it");
  if (behind.n_calls != 1 || behind.before != AOT_E_RANGE) fail(y, "work behind a wait for it", "is not told of it");
  if (after.n_calls != 1 || after.before != AOT_OK) fail(y, "work behind the next signal", "is left out, too");
  if (to[0]) fail(y, "a read behind work that failed", "is done all the same");
  y->raised = 4;
  if (y->t->end == AOTH_CONFORM_PASSED && put_read(y, y->one, to, b) && finish(y, y->one)) give_back(y, b);
}

void aoth_rule_failures(aoth_trial_t *t) {
  static const step_t steps[] = {{"work that fails, and what stands behind it on two queues", fails_up_to_the_signal}};
  run_step(t, steps, 1);
}

/* ---- 708: threads ---- */

#define N_THREADS 4u

static void use(trying_t *y, uint32_t n_rounds, uint32_t seed) {
  uint8_t from[1000], to[1000];
  aot_buffer_t b, c;
  for (uint32_t i = 0; i < n_rounds; i++) {
    make_bytes(from, sizeof from, seed * 7 + i);
    if (!get(y, sizeof from, &b) || !get(y, sizeof from, &c) || !put_write(y, y->one, b, from) ||
        !put_copy(y, y->one, c, b.address) || !put_read(y, y->one, to, c) || !finish(y, y->one) ||
        !is_same(y, to, from, sizeof from, "what a thread wrote and read") || !give_back(y, b) || !give_back(y, c))
      return;
  }
}

typedef struct thread {
  trying_t y;
  aoth_trial_t own; /* so that what goes wrong is told of each alone */
  uint32_t number;
  pthread_t id;
} thread_t;

static void *use_in_thread(void *self) {
  thread_t *th = self;
  if (make_queues(&th->y)) use(&th->y, 50, th->number);
  return NULL;
}

static void is_used_by_threads(trying_t *y) {
  thread_t threads[N_THREADS];
  for (uint32_t i = 0; i < N_THREADS; i++) {
    threads[i] = (thread_t){.y = *y, .own = *y->t, .number = i};
    threads[i].y.t = &threads[i].own;
    threads[i].y.arena = NULL;
    hear(&threads[i].y);
    if (pthread_create(&threads[i].id, NULL, use_in_thread, &threads[i]) != 0) abort();
  }
  for (uint32_t i = 0; i < N_THREADS; i++) pthread_join(threads[i].id, NULL);
  for (uint32_t i = 0; i < N_THREADS && y->t->end == AOTH_CONFORM_PASSED; i++) {
    if (threads[i].own.end != AOTH_CONFORM_PASSED)
      aoth_trial_end(y->t, threads[i].own.end, "thread %u of %u: %s", i, N_THREADS, threads[i].own.why);
    else drop_queues(&threads[i].y);
  }
}

void aoth_rule_threads(aoth_trial_t *t) {
  static const step_t steps[] = {{"four threads, each with queues and buffers of its own", is_used_by_threads}};
  run_step(t, steps, 1);
}

/* ---- 709, 710: its end ---- */

/* What the host leaves behind when it gives up. */
void aoth_rule_left_behind(aoth_trial_t *t) {
  aoth_instance_t unit;
  trying_t y;
  aot_buffer_t b;
  void *own;
  if (t->number > 1) {
    aoth_trial_none(t);
    return;
  }
  aoth_trial_about(t, t->number ? "work that nobody has waited for"
                                : "queues, a timeline and memory that are still there");
  if (!begin(t, &unit, &y) || !make_queues(&y) || !get(&y, 100, &b)) return;
  if (!went(&y, y.f->host_alloc(y.d, &y.ctx, 100, &own), "host_alloc") || !put_fill(&y, y.one, b, 1) ||
      !finish(&y, y.one))
    return;
  for (uint32_t i = 0; t->number && i < 10; i++)
    if (!put_fill(&y, y.two, b, (uint8_t)i) || !put_signal(&y, y.two, ++y.raised)) return;
  aoth_instance_destroy(t->s, t->stage, &unit);
}

/* Queues, a timeline, buffers, moves, and all given back. */
static int use_once(aoth_trial_t *t, void *self) {
  trying_t *y = self;
  y->raised = 0;
  if (make_queues(y)) use(y, 3, 1);
  if (t->end == AOTH_CONFORM_PASSED) drop_queues(y);
  return t->end == AOTH_CONFORM_PASSED;
}

void aoth_rule_used_often(aoth_trial_t *t) {
  aoth_instance_t unit;
  trying_t y;
  if (!aoth_trial_is_first(t) || !begin(t, &unit, &y)) return;
  aoth_trial_leaves_nothing(t, use_once, &y);
}
