/* Rules of communicators: what ranks hand to each other, on the host and on queues (aot/communicator.h). */
#include <sdk/conform/conform_ranks.h>

#include <aot/inline.h>
#include <device/host_device.h>
#include <math.h>
#include <stdlib.h>
#include <step/tensor.h>
#include <string.h>

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
    if (r->t.end == AOTH_CONFORM_PASSED) aoth_rank_group_is_well(r, r->group);
    aoth_rank_leave(r);
  }
  free(from);
  free(to);
}

void aoth_rule_exchanges(aoth_trial_t *t) {
  if (!aoth_ranks_run_worlds(t, hand_over, "gathers, broadcasts and exchanges of 0 to 70,001 bytes"))
    aoth_trial_none(t);
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
    const double got = kit_element_load(b->dtype, b->to + i * b->size), wanted = reduced(reduce, r->n_ranks, first + i);
    if (got == wanted) continue;
    aoth_rank_fail(r, "%s, %s of %llu %s: element %llu is %g, not %g", doing, reductions[reduce], (unsigned long long)n,
                   aot_dtype_name(b->dtype), (unsigned long long)i, got, wanted);
    return 0;
  }
  return 1;
}

/* Of four elements the second is NaN on one rank, each in its turn, and the fourth on all ranks. */
static int is_nan_at(uint32_t rank, uint32_t n_ranks, uint64_t i) {
  return i % 4 == 3 || (i % 4 == 1 && i / 4 % n_ranks == rank);
}

/* NaN, as of PyTorch's sum and amax; or, of a communicator that says so, the largest or least of the numbers. */
static int are_nan_reduced(aoth_rank_t *r, const numbers_t *b, int32_t reduce) {
  const int is_dropped =
      (r->f->head.flags & AOT_COMMUNICATOR_DROPS_NAN) != 0 && (reduce == AOT_REDUCE_MAX || reduce == AOT_REDUCE_MIN);
  for (uint64_t i = 0; i < N_ELEMENTS; i++) {
    const double got = kit_element_load(b->dtype, b->to + i * b->size);
    int n_numbers = 0;
    double wanted = NAN;
    for (uint32_t k = 0; k < r->n_ranks; k++) {
      const double x = number(reduce, k, i);
      if (is_nan_at(k, r->n_ranks, i)) continue;
      if (!n_numbers++ || (reduce == AOT_REDUCE_MAX ? x > wanted : x < wanted)) wanted = x;
    }
    if (i % 2 == 0) wanted = reduced(reduce, r->n_ranks, i);
    else if (!is_dropped) wanted = NAN;
    if (got == wanted || (isnan(got) && isnan(wanted))) continue;
    aoth_rank_fail(r, "all_reduce, %s of %s: element %llu is %g, not %g; of %s ranks it is NaN", reductions[reduce],
                   aot_dtype_name(b->dtype), (unsigned long long)i, got, wanted,
                   i % 4 == 3   ? "all"
                   : i % 4 == 1 ? "some"
                                : "no");
    return 0;
  }
  return 1;
}

static int reduces_nan(aoth_rank_t *r, const numbers_t *b, int32_t reduce) {
  const aot_collective_t c = {.kind = AOT_COLLECTIVE_ALL_REDUCE, .reduce = reduce, .dtype = b->dtype};
  const uint64_t nbytes = N_ELEMENTS * b->size;
  if (!aot_dtype_is_float(b->dtype)) return 1;
  for (uint64_t i = 0; i < N_ELEMENTS; i++)
    kit_element_store(b->dtype, b->from + i * b->size,
                      is_nan_at(r->rank, r->n_ranks, i) ? NAN : number(reduce, r->rank, i));
  return aoth_rank_went(r, aoth_rank_collect(r, r->group, c, b->to, nbytes, b->from, nbytes), "all_reduce") &&
         are_nan_reduced(r, b, reduce);
}

/* 0: it has failed, or, reported, there is no such reduction; either way the group is over. */
static int reduces(aoth_rank_t *r, const numbers_t *b, int32_t reduce) {
  static const uint64_t counts[] = {0, 1, N_ELEMENTS};
  aot_collective_t c = {.kind = AOT_COLLECTIVE_ALL_REDUCE, .reduce = reduce, .dtype = b->dtype};
  for (uint32_t k = 0; k < 3; k++) {
    const uint64_t n = counts[k];
    const int in_place = k == 2;
    for (uint64_t i = 0; i < n; i++)
      kit_element_store(b->dtype, (in_place ? b->to : b->from) + i * b->size, number(reduce, r->rank, i));
    const aot_status_t status =
        aoth_rank_collect(r, r->group, c, b->to, n * b->size, in_place ? b->to : b->from, n * b->size);
    if (!aoth_rank_went(r, status, "all_reduce") || !are_reduced(r, b, reduce, 0, n, "all_reduce")) return 0;
  }
  if (!reduces_nan(r, b, reduce)) return 0;
  c.kind = AOT_COLLECTIVE_REDUCE_SCATTER;
  for (uint64_t i = 0; i < N_ELEMENTS * r->n_ranks; i++)
    kit_element_store(b->dtype, b->from + i * b->size, number(reduce, r->rank, i));
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

/* After a wait for the host, which fills the bytes after they were put there. */
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
  if (r->t.end == AOTH_CONFORM_PASSED) aoth_rank_group_is_well(r, r->group);
  drop_queue(r, &q);
  aoth_rank_leave(r);
}

static aot_status_t AOT_CALL fail_work(void *self, aot_status_t before) {
  (void)self;
  return before == AOT_OK ? AOT_E_RANGE : before;
}

/* On rank 0 what it was to come after has failed: nothing waits for ever. */
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
    else aoth_rank_group_has_failed(r, NULL);
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
