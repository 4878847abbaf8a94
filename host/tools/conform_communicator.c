/* Rules of communicators: what ranks hand to each other, and how they part (aot/communicator.h). */
#include <tools/conform_ranks.h>

#include <aot/inline.h>
#include <device/host_device.h>
#include <math.h>
#include <step/tensor.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

/* By 1 to 4 ranks, a trial each. 0: there is no further one. */
static int run_worlds(aoth_trial_t *t, aoth_rank_act_t act, const char *about) {
  const uint32_t n = t->number + 1;
  if (n > AOTH_MOST_RANKS) return 0;
  aoth_trial_about(t, "%s by %u rank%s", about, n, n == 1 ? "" : "s");
  aoth_ranks_run(t, n, 0, act, NULL);
  return 1;
}

static aot_status_t barrier(aoth_rank_t *r, aot_group_t *g) {
  return aoth_rank_collect(r, g, (aot_collective_t){.kind = AOT_COLLECTIVE_BARRIER}, NULL, 0, NULL, 0);
}

/* Of a group that has not failed. */
static int is_well(aoth_rank_t *r, aot_group_t *g) {
  aot_str_t text = {NULL, 0};
  const aot_status_t status = r->f->failure(r->c, g, &text);
  if (status != AOT_OK) aoth_rank_fail(r, "failure answers status %d of a group in which nothing failed", (int)status);
  return status == AOT_OK;
}

/* ---- 801 ---- */

static int has_place(aoth_rank_t *r, aot_group_t *g, uint32_t rank, uint32_t n) {
  aot_group_info_t info = {.struct_size = sizeof info};
  if (!aoth_rank_went(r, r->f->info(r->c, g, &info), "info")) return 0;
  if (info.rank == rank && info.n_ranks == n) return 1;
  aoth_rank_fail(r, "info says rank %u of %u, not %u of %u", info.rank, info.n_ranks, rank, n);
  return 0;
}

static void join_once(aoth_rank_t *r) {
  if (!aoth_rank_join(r)) return;
  if (has_place(r, r->group, r->rank, r->n_ranks) && aoth_rank_went(r, barrier(r, r->group), "barrier"))
    is_well(r, r->group);
  aoth_rank_leave(r);
}

static void join_again(aoth_rank_t *r) {
  for (int i = 0; i < 3 && r->t.end == AOTH_CONFORM_PASSED; i++) join_once(r);
}

/* A world that is refused, as by what a launcher has begun with another, need not be tried again. */
void aoth_rule_joins(aoth_trial_t *t) {
  if (run_worlds(t, join_once, "join, barrier, leave")) {
    if (t->end == AOTH_CONFORM_REFUSED && !t->n_refused_ranks) t->n_refused_ranks = t->number + 1;
    return;
  }
  if (t->number > AOTH_MOST_RANKS) {
    aoth_trial_none(t);
    return;
  }
  aoth_trial_about(t, "join and leave three times by 2 ranks");
  aoth_ranks_run(t, 2, 0, join_again, NULL);
}

/* ---- 802 ---- */

static const uint64_t sizes[] = {0, 1, 3, 4096, 70001}; /* bytes a rank */
#define N_SIZES (sizeof sizes / sizeof *sizes)
#define MOST_BYTES ((70001u + 64u) * AOTH_MOST_RANKS)

static uint8_t byte_of(uint32_t from, uint32_t to, uint64_t i) {
  return (uint8_t)(from * 97 + to * 31 + i * 7 + (i >> 8) + 1);
}

static void make_bytes(uint8_t *out, uint32_t from, uint32_t to, uint64_t n) {
  for (uint64_t i = 0; i < n; i++) out[i] = byte_of(from, to, i);
}

static int are_bytes(aoth_rank_t *r, const uint8_t *got, uint32_t from, uint32_t to, uint64_t n, const char *doing) {
  for (uint64_t i = 0; i < n; i++) {
    if (got[i] == byte_of(from, to, i)) continue;
    aoth_rank_fail(r, "%s of %llu bytes: byte %llu of rank %u is another one", doing, (unsigned long long)n,
                   (unsigned long long)i, from);
    return 0;
  }
  return 1;
}

static int gathers(aoth_rank_t *r, uint64_t n, uint8_t *from, uint8_t *to) {
  make_bytes(from, r->rank, 0, n);
  memset(to, 0, (size_t)(n * r->n_ranks));
  const aot_collective_t gather = {.kind = AOT_COLLECTIVE_ALL_GATHER};
  if (!aoth_rank_went(r, aoth_rank_collect(r, r->group, gather, to, n * r->n_ranks, from, n), "all_gather")) return 0;
  for (uint32_t k = 0; k < r->n_ranks; k++)
    if (!are_bytes(r, to + k * n, k, 0, n, "all_gather")) return 0;
  return 1;
}

/* From each root; of the root in place, too. */
static int broadcasts(aoth_rank_t *r, uint64_t n, uint8_t *from, uint8_t *to) {
  for (uint32_t root = 0; root < r->n_ranks; root++) {
    const int in_place = root % 2 && r->rank == root;
    make_bytes(from, r->rank, root, n);
    memset(to, 0, (size_t)n);
    if (in_place) make_bytes(to, r->rank, root, n);
    const aot_collective_t broadcast = {.kind = AOT_COLLECTIVE_BROADCAST, .root = root};
    if (!aoth_rank_went(r, aoth_rank_collect(r, r->group, broadcast, to, n, in_place ? to : from, n), "broadcast") ||
        !are_bytes(r, to, root, root, n, "broadcast"))
      return 0;
  }
  return 1;
}

/* Pieces of n bytes, or of n + 5 (from + to): another size for each pair, with nothing from 0 to 0. */
static uint64_t piece_of(uint64_t n, uint32_t from, uint32_t to, int is_even) {
  return is_even ? n : (n ? n - 1 : 0) % 50 + 5 * (from + to);
}

static int exchanges(aoth_rank_t *r, uint64_t n, uint8_t *from, uint8_t *to, int is_even) {
  uint64_t send[AOTH_MOST_RANKS], receive[AOTH_MOST_RANKS], out = 0, in = 0;
  for (uint32_t k = 0; k < r->n_ranks; k++) {
    send[k] = piece_of(n, r->rank, k, is_even);
    receive[k] = piece_of(n, k, r->rank, is_even);
    make_bytes(from + out, r->rank, k, send[k]);
    out += send[k];
    in += receive[k];
  }
  memset(to, 0, (size_t)in);
  const aot_collective_t all = {
      .kind = AOT_COLLECTIVE_ALL_TO_ALL, .send = is_even ? NULL : send, .receive = is_even ? NULL : receive};
  if (!aoth_rank_went(r, aoth_rank_collect(r, r->group, all, to, in, from, out), "all_to_all")) return 0;
  for (uint32_t k = 0; k < r->n_ranks; to += receive[k], k++)
    if (!are_bytes(r, to, k, r->rank, receive[k], "all_to_all")) return 0;
  return 1;
}

static void hand_over(aoth_rank_t *r) {
  uint8_t *from = malloc(MOST_BYTES), *to = malloc(MOST_BYTES);
  if (from && to && aoth_rank_join(r)) {
    for (uint32_t i = 0; i < N_SIZES; i++)
      if (!gathers(r, sizes[i], from, to) || !broadcasts(r, sizes[i], from, to) ||
          !exchanges(r, sizes[i], from, to, 1) || !exchanges(r, sizes[i], from, to, 0))
        break;
    if (r->t.end == AOTH_CONFORM_PASSED) is_well(r, r->group);
    aoth_rank_leave(r);
  }
  free(from);
  free(to);
}

void aoth_rule_exchanges(aoth_trial_t *t) {
  if (!run_worlds(t, hand_over, "gathers, broadcasts and exchanges of 0 to 70,001 bytes")) aoth_trial_none(t);
}

/* ---- 803 ---- */

#define N_ELEMENTS 1001u

static const int32_t dtypes[] = {
#define DTYPE(constant, number, text, size) constant,
    AOT_DTYPE_MAP(DTYPE)
#undef DTYPE
};
#define N_DTYPES (sizeof dtypes / sizeof *dtypes)

static const char *const reductions[] = {"", "sum", "max", "min", "avg", "product"};

/* 1 or 2, so that what comes of four ranks is exact in every dtype; of a mean the same on all of them. */
static double number(int32_t reduce, uint32_t rank, uint64_t i) {
  return reduce == AOT_REDUCE_AVG ? 1 + (double)(i % 2) : 1 + (double)((rank + i) % 2);
}

static double reduced(int32_t reduce, uint32_t n_ranks, uint64_t i) {
  double all = number(reduce, 0, i);
  for (uint32_t r = 1; r < n_ranks; r++) {
    const double x = number(reduce, r, i);
    if (reduce == AOT_REDUCE_MAX) all = x > all ? x : all;
    else if (reduce == AOT_REDUCE_MIN) all = x < all ? x : all;
    else if (reduce == AOT_REDUCE_PRODUCT) all *= x;
    else all += x;
  }
  return reduce == AOT_REDUCE_AVG ? all / n_ranks : all;
}

typedef struct numbers {
  int32_t dtype;
  uint64_t size;
  char *from, *to;
} numbers_t;

static int are_reduced(aoth_rank_t *r, const numbers_t *b, int32_t reduce, uint64_t first, uint64_t n,
                       const char *doing) {
  for (uint64_t i = 0; i < n; i++) {
    const double got = aoth_tensor_load(b->dtype, b->to + i * b->size), wanted = reduced(reduce, r->n_ranks, first + i);
    if (got == wanted) continue;
    aoth_rank_fail(r, "%s, %s of %llu %s: element %llu is %g, not %g", doing, reductions[reduce], (unsigned long long)n,
                   aot_dtype_name(b->dtype), (unsigned long long)i, got, wanted);
    return 0;
  }
  return 1;
}

/* 0: it has failed, or, told, there is no such reduction; either way the group is over. */
static int reduces(aoth_rank_t *r, const numbers_t *b, int32_t reduce) {
  static const uint64_t counts[] = {0, 1, N_ELEMENTS};
  aot_collective_t c = {.kind = AOT_COLLECTIVE_ALL_REDUCE, .reduce = reduce, .dtype = b->dtype};
  for (uint32_t k = 0; k < 3; k++) {
    const uint64_t n = counts[k];
    const int in_place = k == 2;
    for (uint64_t i = 0; i < n; i++)
      aoth_tensor_store(b->dtype, (in_place ? b->to : b->from) + i * b->size, number(reduce, r->rank, i));
    const aot_status_t status =
        aoth_rank_collect(r, r->group, c, b->to, n * b->size, in_place ? b->to : b->from, n * b->size);
    if (!aoth_rank_went(r, status, "all_reduce") || !are_reduced(r, b, reduce, 0, n, "all_reduce")) return 0;
  }
  c.kind = AOT_COLLECTIVE_REDUCE_SCATTER;
  for (uint64_t i = 0; i < N_ELEMENTS * r->n_ranks; i++)
    aoth_tensor_store(b->dtype, b->from + i * b->size, number(reduce, r->rank, i));
  const uint64_t nbytes = N_ELEMENTS * b->size;
  return aoth_rank_went(r, aoth_rank_collect(r, r->group, c, b->to, nbytes, b->from, nbytes * r->n_ranks),
                        "reduce_scatter") &&
         are_reduced(r, b, reduce, (uint64_t)N_ELEMENTS * r->rank, N_ELEMENTS, "reduce_scatter");
}

/* Each in a group of its own, which a refusal ends. What sum and mean of bools are is the communicator's to say. */
static void reduce_all(aoth_rank_t *r) {
  numbers_t b = {.dtype = *(const int32_t *)r->what};
  uint32_t n_right = 0;
  aoth_trial_t refused = {.end = AOTH_CONFORM_PASSED};
  b.size = aot_dtype_size(b.dtype);
  b.from = calloc(N_ELEMENTS * AOTH_MOST_RANKS, (size_t)b.size);
  b.to = calloc(N_ELEMENTS, (size_t)b.size);
  for (int32_t reduce = AOT_REDUCE_SUM; b.from && b.to && reduce <= AOT_REDUCE_PRODUCT; reduce++) {
    if (b.dtype == AOT_BOOL && (reduce == AOT_REDUCE_SUM || reduce == AOT_REDUCE_AVG)) continue;
    if (!aoth_rank_join(r)) break;
    n_right += reduces(r, &b, reduce) != 0;
    aoth_rank_leave(r);
    if (r->t.end == AOTH_CONFORM_FAILED) break;
    if (r->t.end == AOTH_CONFORM_REFUSED) refused = r->t;
    r->t.end = AOTH_CONFORM_PASSED;
    aoth_rank_hear(r);
  }
  if (!n_right && r->t.end == AOTH_CONFORM_PASSED && refused.end == AOTH_CONFORM_REFUSED)
    aoth_trial_end(&r->t, AOTH_CONFORM_REFUSED, "%s", refused.why);
  if (n_right && r->t.end == AOTH_CONFORM_REFUSED) r->t.end = AOTH_CONFORM_PASSED; /* it joins once alone */
  free(b.from);
  free(b.to);
}

/* Sums of which another order has other bits. */
static double awkward(uint32_t rank, uint32_t i) { return 1.0 / (1.0 + rank * 7 + i % 13) * (i % 2 ? 1e6 : 1e-3); }

typedef struct sums {
  double own[N_ELEMENTS], all[N_ELEMENTS];
  float own_f32[N_ELEMENTS], all_f32[N_ELEMENTS];
} sums_t;

static void check_sums(aoth_rank_t *r, const sums_t *s) {
  const int is_ordered = (r->f->head.flags & AOT_COMMUNICATOR_ORDERED) != 0;
  for (uint32_t i = 0; i < N_ELEMENTS && r->t.end == AOTH_CONFORM_PASSED; i++) {
    double all = awkward(0, i);
    float all_f32 = (float)all;
    for (uint32_t k = 1; k < r->n_ranks; k++) {
      all += awkward(k, i);
      all_f32 += (float)awkward(k, i);
    }
    const double near = is_ordered ? 0 : 1e-12 * all, near_f32 = is_ordered ? 0 : 1e-5 * all;
    if (fabs(s->all[i] - all) <= near && fabs((double)s->all_f32[i] - (double)all_f32) <= near_f32) continue;
    aoth_rank_fail(r, "element %u of a sum is %.17g in f64 and %.9g in f32, not %.17g and %.9g%s", i, s->all[i],
                   (double)s->all_f32[i], all, (double)all_f32, is_ordered ? ", as it is in the order of ranks" : "");
  }
}

static void sum_in_order(aoth_rank_t *r) {
  aot_collective_t sum = {.kind = AOT_COLLECTIVE_ALL_REDUCE, .reduce = AOT_REDUCE_SUM, .dtype = AOT_F64};
  sums_t *s = calloc(1, sizeof *s);
  if (s && aoth_rank_join(r)) {
    for (uint32_t i = 0; i < N_ELEMENTS; i++) s->own_f32[i] = (float)(s->own[i] = awkward(r->rank, i));
    aot_status_t status = aoth_rank_collect(r, r->group, sum, s->all, sizeof s->all, s->own, sizeof s->own);
    sum.dtype = AOT_F32;
    if (status == AOT_OK)
      status = aoth_rank_collect(r, r->group, sum, s->all_f32, sizeof s->all_f32, s->own_f32, sizeof s->own_f32);
    if (aoth_rank_went(r, status, "all_reduce")) check_sums(r, s);
    aoth_rank_leave(r);
  }
  free(s);
}

/* Of each dtype by three ranks; by one, whose reductions are what it has; in order by two to four. */
void aoth_rule_reductions(aoth_trial_t *t) {
  static const int32_t alone = AOT_F32;
  if (t->number < N_DTYPES) {
    aoth_trial_about(t, "reductions of %s by 3 ranks", aot_dtype_name(dtypes[t->number]));
    aoth_ranks_run(t, 3, 0, reduce_all, &dtypes[t->number]);
  } else if (t->number == N_DTYPES) {
    aoth_trial_about(t, "reductions of f32 by 1 rank");
    aoth_ranks_run(t, 1, 0, reduce_all, &alone);
  } else if (t->number < N_DTYPES + AOTH_MOST_RANKS) {
    const uint32_t n = t->number - (uint32_t)N_DTYPES + 1;
    aoth_trial_about(t, "sums in the order of %u ranks", n);
    aoth_ranks_run(t, n, 0, sum_in_order, NULL);
  } else {
    aoth_trial_none(t);
  }
}

/* ---- 804 ---- */

/* Who of the ranks has this colour: `mine` in the order of ranks turned. */
static uint32_t ranks_of(uint32_t colour, uint32_t n_colours, uint32_t n, uint32_t *out) {
  uint32_t n_out = 0;
  for (uint32_t k = n; k-- > 0;)
    if (k % n_colours == colour) out[n_out++] = k;
  return n_out;
}

static int split_by(aoth_rank_t *r, uint32_t n_colours) {
  uint32_t members[AOTH_MOST_RANKS], all[AOTH_MOST_RANKS] = {0}, place = 0;
  const uint32_t colour = r->rank % n_colours, n = ranks_of(colour, n_colours, r->n_ranks, members);
  aot_group_t *part = NULL;
  while (members[place] != r->rank) place++;
  const aot_status_t status = r->f->split(r->c, &r->ctx, r->group, colour, r->n_ranks - r->rank, &part);
  if (!aoth_rank_went(r, status, "split")) return 0;
  const aot_collective_t gather = {.kind = AOT_COLLECTIVE_ALL_GATHER};
  if (has_place(r, part, place, n) &&
      aoth_rank_went(r, aoth_rank_collect(r, part, gather, all, 4 * n, &r->rank, 4), "all_gather of a part"))
    for (uint32_t k = 0; k < n; k++)
      if (all[k] != members[k])
        aoth_rank_fail(r, "rank %u of a part of %u is rank %u of the whole, not %u", k, n, all[k], members[k]);
  if (r->t.end == AOTH_CONFORM_PASSED &&
      aoth_rank_went(r, barrier(r, r->group), "barrier of the whole beside its parts"))
    aoth_rank_went(r, barrier(r, part), "barrier of a part");
  r->f->leave(r->c, part);
  return r->t.end == AOTH_CONFORM_PASSED;
}

static void split_up(aoth_rank_t *r) {
  if (!aoth_rank_join(r)) return;
  if (split_by(r, 2) && split_by(r, 1) && split_by(r, r->n_ranks) &&
      aoth_rank_went(r, barrier(r, r->group), "barrier once its parts are left"))
    is_well(r, r->group);
  aoth_rank_leave(r);
}

void aoth_rule_groups(aoth_trial_t *t) {
  if (!run_worlds(t, split_up, "a group split in two, in one, in all")) aoth_trial_none(t);
}

/* ---- 805 ---- */

/* What rank 1 says, and the others. */
static const struct difference {
  const char *about;
  aot_collective_t own, other;
  uint64_t own_to, own_from, other_to, other_from;
} differences[] = {
    {"a barrier and a gather", {.kind = AOT_COLLECTIVE_BARRIER}, {.kind = AOT_COLLECTIVE_ALL_GATHER}, 0, 0, 48, 16},
    {"gathers of 8 and of 16 bytes",
     {.kind = AOT_COLLECTIVE_ALL_GATHER},
     {.kind = AOT_COLLECTIVE_ALL_GATHER},
     24,
     8,
     48,
     16},
    {"sums of 2 and of 4 numbers",
     {.kind = AOT_COLLECTIVE_ALL_REDUCE, .reduce = AOT_REDUCE_SUM, .dtype = AOT_F32},
     {.kind = AOT_COLLECTIVE_ALL_REDUCE, .reduce = AOT_REDUCE_SUM, .dtype = AOT_F32},
     8,
     8,
     16,
     16},
    {"a sum and a product",
     {.kind = AOT_COLLECTIVE_ALL_REDUCE, .reduce = AOT_REDUCE_SUM, .dtype = AOT_F32},
     {.kind = AOT_COLLECTIVE_ALL_REDUCE, .reduce = AOT_REDUCE_PRODUCT, .dtype = AOT_F32},
     16,
     16,
     16,
     16},
    {"sums of f32 and of f64",
     {.kind = AOT_COLLECTIVE_ALL_REDUCE, .reduce = AOT_REDUCE_SUM, .dtype = AOT_F64},
     {.kind = AOT_COLLECTIVE_ALL_REDUCE, .reduce = AOT_REDUCE_SUM, .dtype = AOT_F32},
     16,
     16,
     16,
     16},
    {"broadcasts of two roots",
     {.kind = AOT_COLLECTIVE_BROADCAST, .root = 1},
     {.kind = AOT_COLLECTIVE_BROADCAST},
     16,
     16,
     16,
     16},
};
#define N_DIFFERENCES (sizeof differences / sizeof *differences)

/* Of a group that has failed: it says so, with a sentence, and goes no further. 0: it does not. */
static int has_failed(aoth_rank_t *r, const char *named) {
  char said[400];
  aot_str_t text = {NULL, 0};
  const aot_status_t status = r->f->failure(r->c, r->group, &text);
  snprintf(said, sizeof said, "%.*s", (int)text.size, text.size ? text.data : "");
  if (status == AOT_OK || !*said) aoth_rank_fail(r, "failure has no sentence of a group that has failed");
  if (named && !strstr(said, named)) aoth_rank_fail(r, "failure does not name '%s': %s", named, said);
  aoth_rank_hear(r);
  return r->t.end == AOTH_CONFORM_PASSED &&
         aoth_rank_was_refused(r, barrier(r, r->group), "a collective of a group that has failed");
}

static void say_something_else(aoth_rank_t *r) {
  const struct difference *d = r->what;
  double from[8] = {1, 2, 3, 4, 5, 6, 7, 8}, to[8];
  if (!aoth_rank_join(r)) return;
  const aot_status_t status = r->rank == 1
                                  ? aoth_rank_collect(r, r->group, d->own, to, d->own_to, from, d->own_from)
                                  : aoth_rank_collect(r, r->group, d->other, to, d->other_to, from, d->other_from);
  if (status != AOT_OK && status != AOT_E_CONTRACT && status != AOT_E_UNAVAILABLE)
    aoth_rank_fail(r, "ranks that differ answer status %d", (int)status);
  if (aoth_rank_was_refused(r, status, "what ranks say that is not the same")) has_failed(r, NULL);
  aoth_rank_leave(r);
}

void aoth_rule_differences(aoth_trial_t *t) {
  if (t->number >= N_DIFFERENCES) {
    aoth_trial_none(t);
    return;
  }
  aoth_trial_about(t, "%s, by 3 ranks", differences[t->number].about);
  aoth_ranks_run(t, 3, 0, say_something_else, &differences[t->number]);
}

/* ---- 806 ---- */

static const char reason[] = "its disk is full";

static void rest(uint64_t ns) { nanosleep(&(struct timespec){(time_t)(ns / SECOND), (long)(ns % SECOND)}, NULL); }

static void leave_early(aoth_rank_t *r) { aoth_rank_leave(r); }
static void give_up(aoth_rank_t *r) {
  r->f->abort(r->c, r->group, aot_str(reason));
  rest(r->patience_ns); /* until the others know */
  aoth_rank_leave(r);
}
static void come_late(aoth_rank_t *r) {
  rest(2 * r->patience_ns);
  aoth_rank_leave(r);
}
static void die(aoth_rank_t *r) {
  if (r->f->head.flags & AOT_COMMUNICATOR_CONCURRENT) aoth_rank_leave(r); /* a thread cannot: as the first */
  else _exit(0);
}

/* What rank 1 does once all have joined, while the others go on. */
static const struct parting {
  const char *about, *named;
  void (*act)(aoth_rank_t *r);
} partings[] = {
    {"rank 1 of 3 leaves", "1", leave_early},
    {"rank 1 of 3 aborts", reason, give_up},
    {"rank 1 of 3 is late", "1", come_late},
    {"rank 1 of 3 dies", "1", die},
};
#define N_PARTINGS (sizeof partings / sizeof *partings)

static void part(aoth_rank_t *r) {
  const struct parting *p = r->what;
  if (!aoth_rank_join(r)) return;
  if (r->rank == 1) {
    p->act(r);
    return;
  }
  if (aoth_rank_was_refused(r, barrier(r, r->group), "a barrier with a rank that is gone")) has_failed(r, p->named);
  aoth_rank_leave(r);
}

static void join_without(aoth_rank_t *r) {
  r->n_ranks = 3;
  if (!aoth_rank_join(r)) {
    if (r->t.end == AOTH_CONFORM_REFUSED) r->t.end = AOTH_CONFORM_PASSED;
    return;
  }
  aoth_rank_was_refused(r, barrier(r, r->group), "a barrier with a rank that has never come");
  aoth_rank_leave(r);
}

/* Long enough for ranks that are there, and for this trial. */
static uint64_t short_patience(const aoth_trial_t *t) {
  const uint64_t limit = (uint64_t)(t->c->line->timeout / 8 * 1e9);
  return limit < SECOND ? limit : SECOND;
}

void aoth_rule_ranks_gone(aoth_trial_t *t) {
  if (t->number < N_PARTINGS) {
    aoth_trial_about(t, "%s", partings[t->number].about);
    aoth_ranks_run(t, 3, short_patience(t), part, &partings[t->number]);
  } else if (t->number == N_PARTINGS) {
    aoth_trial_about(t, "the third of 3 ranks does not come");
    aoth_ranks_run(t, 2, short_patience(t), join_without, NULL);
  } else {
    aoth_trial_none(t);
  }
}

/* ---- 807 ---- */

/* Its status: of join, else of a barrier. */
static void say_rank(aoth_rank_t *r, uint32_t rank, uint32_t n_ranks) {
  r->rank = rank;
  r->n_ranks = n_ranks;
  if (!aoth_rank_join(r)) {
    if (r->t.end == AOTH_CONFORM_REFUSED) r->t.end = AOTH_CONFORM_PASSED;
    return;
  }
  r->status = barrier(r, r->group);
  aoth_rank_leave(r);
}
static void be_past_the_last(aoth_rank_t *r) { say_rank(r, 2, 2); }
static void be_of_two_worlds(aoth_rank_t *r) { say_rank(r, r->rank, 2 + r->rank); }
static void be_the_same(aoth_rank_t *r) { say_rank(r, 0, 2); }

static const struct mistake {
  const char *about;
  void (*act)(aoth_rank_t *r);
  uint32_t n, wrong; /* ranks; the one that may not go on */
} mistakes[] = {
    {"rank 2 of 2", be_past_the_last, 1, 0},
    {"rank 0 of 2 and rank 1 of 3", be_of_two_worlds, 2, 1},
    {"rank 0 of 2, twice", be_the_same, 2, 2},
};

void aoth_rule_wrong_ranks(aoth_trial_t *t) {
  if (t->number >= sizeof mistakes / sizeof *mistakes) {
    aoth_trial_none(t);
    return;
  }
  const struct mistake *m = &mistakes[t->number];
  aoth_trial_about(t, "%s", m->about);
  const aoth_rank_t *ranks = aoth_ranks_run(t, m->n, short_patience(t), m->act, NULL);
  if (!ranks || t->end != AOTH_CONFORM_PASSED) return;
  const int went_on =
      m->wrong < m->n ? ranks[m->wrong].status == AOT_OK : ranks[0].status == AOT_OK && ranks[1].status == AOT_OK;
  if (went_on) aoth_trial_end(t, AOTH_CONFORM_FAILED, "they join, and a barrier goes on");
}

/* ---- 808 ---- */

static const uint64_t three_bytes[] = {3};
static const struct misuse {
  const char *about;
  aot_collective_t c;
  uint64_t to, from;
} misuses[] = {
    {"a gather into another size", {.kind = AOT_COLLECTIVE_ALL_GATHER}, 12, 8},
    {"a sum into another size", {.kind = AOT_COLLECTIVE_ALL_REDUCE, .reduce = AOT_REDUCE_SUM, .dtype = AOT_F32}, 12, 8},
    {"a reduce_scatter into another size",
     {.kind = AOT_COLLECTIVE_REDUCE_SCATTER, .reduce = AOT_REDUCE_SUM, .dtype = AOT_F32},
     12,
     8},
    {"a broadcast of a root that there is not", {.kind = AOT_COLLECTIVE_BROADCAST, .root = 1}, 8, 8},
    {"an exchange of other pieces than there are",
     {.kind = AOT_COLLECTIVE_ALL_TO_ALL, .send = three_bytes, .receive = three_bytes},
     8,
     8},
    {"a reduction of a kind that there is not",
     {.kind = AOT_COLLECTIVE_ALL_REDUCE, .reduce = 99, .dtype = AOT_F32},
     8,
     8},
    {"a collective of a kind that there is not", {.kind = 99}, 8, 8},
};
#define N_MISUSES (sizeof misuses / sizeof *misuses)

static void misuse(aoth_rank_t *r) {
  const struct misuse *m = r->what;
  double from[2] = {0, 0}, to[2];
  if (!aoth_rank_join(r)) return;
  if (aoth_rank_was_refused(r, aoth_rank_collect(r, r->group, m->c, to, m->to, from, m->from), m->about))
    has_failed(r, NULL);
  aoth_rank_leave(r);
}

void aoth_rule_wrong_sizes(aoth_trial_t *t) {
  if (t->number >= N_MISUSES) {
    aoth_trial_none(t);
    return;
  }
  aoth_trial_about(t, "%s", misuses[t->number].about);
  aoth_ranks_run(t, 1, 0, misuse, &misuses[t->number]);
}

/* ---- 809 ---- */

typedef struct queue {
  const aot_device_t *d;
  aot_queue_t *q;
  aot_timeline_t *t;
} queue_t;

static int make_queue(aoth_rank_t *r, queue_t *out) {
  out->d = aoth_host_device();
  return aoth_rank_went(r, out->d->queue_create(out->d, &r->ctx, AOT_QUEUE_COLLECTIVE, &out->q), "queue_create") &&
         aoth_rank_went(r, out->d->timeline_create(out->d, &r->ctx, &out->t), "timeline_create");
}

static void drop_queue(aoth_rank_t *r, const queue_t *q) {
  q->d->queue_destroy(q->d, &r->ctx, q->q);
  q->d->timeline_destroy(q->d, &r->ctx, q->t);
}

/* Behind a wait for the host, which fills the bytes after they were put there. */
static void gather_on_queue(aoth_rank_t *r) {
  uint8_t from[100] = {0}, to[100 * AOTH_MOST_RANKS] = {0};
  queue_t q;
  if (!aoth_rank_join(r) || !make_queue(r, &q)) return;
  const aot_collective_t gather = {.kind = AOT_COLLECTIVE_ALL_GATHER, .device = q.d, .queue = q.q};
  const uint64_t nbytes = sizeof from * r->n_ranks;
  q.d->wait(q.d, &r->ctx, q.q, (aot_point_t){q.t, 1});
  const aot_status_t status = aoth_rank_collect(r, r->group, gather, to, nbytes, from, sizeof from);
  make_bytes(from, r->rank, 0, sizeof from);
  q.d->signal(q.d, &r->ctx, q.q, (aot_point_t){q.t, 2});
  q.d->signal_host(q.d, &r->ctx, (aot_point_t){q.t, 1});
  const aot_status_t reached = q.d->wait_host(q.d, &r->ctx, (aot_point_t){q.t, 2}, r->patience_ns);
  if (aoth_rank_went(r, status, "all_gather on a queue") && aoth_rank_went(r, reached, "all_gather on a queue"))
    for (uint32_t k = 0; k < r->n_ranks; k++)
      are_bytes(r, to + k * sizeof from, k, 0, sizeof from, "all_gather on a queue");
  if (r->t.end == AOTH_CONFORM_PASSED) is_well(r, r->group);
  drop_queue(r, &q);
  aoth_rank_leave(r);
}

static aot_status_t AOT_CALL fail_work(void *self, aot_status_t before) {
  (void)self;
  return before == AOT_OK ? AOT_E_RANGE : before;
}

/* On rank 0 what it was to come after has failed: nobody waits for ever. */
static void fail_on_queue(aoth_rank_t *r) {
  uint8_t from[8] = {0}, to[8 * AOTH_MOST_RANKS];
  queue_t q;
  if (!aoth_rank_join(r) || !make_queue(r, &q)) return;
  const aot_ext_host_work_t *work = aot_ext(&q.d->head, AOT_EXT_HOST_WORK);
  const aot_collective_t gather = {.kind = AOT_COLLECTIVE_ALL_GATHER, .device = q.d, .queue = q.q};
  if (r->rank == 0) work->enqueue(work, &r->ctx, q.q, fail_work, NULL);
  const aot_status_t status = aoth_rank_collect(r, r->group, gather, to, sizeof from * r->n_ranks, from, sizeof from);
  q.d->signal(q.d, &r->ctx, q.q, (aot_point_t){q.t, 1});
  const aot_status_t reached = q.d->wait_host(q.d, &r->ctx, (aot_point_t){q.t, 1}, r->patience_ns);
  if (aoth_rank_went(r, status, "all_gather on a queue")) {
    if (reached == AOT_OK)
      aoth_rank_fail(r, "the point behind a collective that could not be is reached as if it had been");
    else has_failed(r, NULL);
  }
  drop_queue(r, &q);
  aoth_rank_leave(r);
}

void aoth_rule_on_queues(aoth_trial_t *t) {
  const uint32_t n = t->number / 2 + 1;
  if (n > 3) {
    aoth_trial_none(t);
    return;
  }
  aoth_trial_about(t, "a gather behind %s, by %u rank%s", t->number % 2 ? "work that fails" : "a wait for the host", n,
                   n == 1 ? "" : "s");
  aoth_ranks_run(t, n, 0, t->number % 2 ? fail_on_queue : gather_on_queue, NULL);
}

/* ---- 810 ---- */

static int join_gather_leave(aoth_trial_t *t, void *self) {
  aoth_rank_t *r = self;
  uint32_t own = 7, all = 0;
  (void)t;
  if (!aoth_rank_join(r)) return 0;
  const aot_collective_t gather = {.kind = AOT_COLLECTIVE_ALL_GATHER};
  const int ok = aoth_rank_went(r, aoth_rank_collect(r, r->group, gather, &all, 4, &own, 4), "all_gather");
  aoth_rank_leave(r);
  return ok;
}

static void join_often(aoth_rank_t *r) { aoth_trial_leaves_nothing(&r->t, join_gather_leave, r); }

void aoth_rule_joined_often(aoth_trial_t *t) {
  if (aoth_trial_is_first(t)) aoth_ranks_run(t, 1, 0, join_often, NULL);
}
