/* Bags of embeddings, sums and means: by bag forward, by column backward, so that threads share no row. Results that
 * PyTorch keeps for the backward (the bag of each index, the counts of a mean) are written where the program declares
 * them. */
#include "bag_kernels.h"
#include "target.h"
#include <string.h>

#define BAG_SUM 0
#define BAG_MEAN 1
enum { WORTH_A_THREAD = 16384 }; /* elements */

typedef struct bags_step {
  bc_bags_t bags; /* pointers are set when run */
  lw_ref_t table, index, offsets, scale, y, owner, counts, top;
  int64_t n_owners, n_counts, n_top; /* elements that are wanted; 0: nothing asked */
} bags_step_t;

static int64_t *i64(const lw_frame_t *f, lw_ref_t r) {
  return r.storage == LW_NONE ? NULL : (int64_t *)(void *)lw_at(f, r);
}

static int is(const lw_tensor_t *t, int32_t dtype, int32_t rank) { return t && t->dtype == dtype && t->rank == rank; }

static void point(bags_step_t *p, const lw_frame_t *f) {
  p->bags.index = i64(f, p->index);
  p->bags.offsets = i64(f, p->offsets);
  p->bags.scale = lw_f32_or_null(f, p->scale);
}

/* ---- forward ---- */

typedef struct sum_state {
  const bags_step_t *p;
  const lw_frame_t *f;
} sum_state_t;

static void sum_part(void *arg, int32_t part, int64_t begin, int64_t end) {
  const sum_state_t *s = arg;
  const bags_step_t *p = s->p;
  (void)part;
  bc_bags_sum(&p->bags, lw_f32(s->f, p->table), begin, end, lw_f32(s->f, p->y),
              p->bags.is_mean && p->n_counts ? i64(s->f, p->counts) : NULL);
}

static aot_status_t out_of_range(const lw_frame_t *f, const bags_step_t *p, int64_t wrong) {
  if (wrong <= -2)
    return lw_fail(f->error, AOT_E_INVALID, "bad-bag", "bag %lld does not lie within the %lld indices",
                   (long long)(-2 - wrong), (long long)p->bags.n_index);
  return lw_fail(f->error, AOT_E_RANGE, "bad-index", "index %lld at position %lld is no row of a table of %lld",
                 (long long)p->bags.index[wrong], (long long)wrong, (long long)p->bags.n_table);
}

static void write_owners(const bc_bags_t *b, int64_t *owner) {
  for (int64_t bag = 0; bag < b->n_bags; bag++)
    for (int64_t k = b->offsets[bag]; k < (bag + 1 < b->n_offsets ? b->offsets[bag + 1] : b->n_index); k++)
      owner[k] = bag;
}

static aot_status_t run_embedding_bag(const lw_frame_t *f, void *payload) {
  bags_step_t *p = payload;
  sum_state_t s = {p, f};
  point(p, f);
  const int64_t wrong = bc_bags_check(&p->bags);
  if (wrong != -1) return out_of_range(f, p, wrong);
  if (p->n_owners) write_owners(&p->bags, i64(f, p->owner));
  if (p->n_counts) memset(i64(f, p->counts), 0, (size_t)p->n_counts * sizeof(int64_t)); /* PyTorch counts for means */
  const int64_t mean_bag = p->bags.n_index / (p->bags.n_bags ? p->bags.n_bags : 1) + 1;
  bc_parallel(f->workers, p->bags.n_bags, WORTH_A_THREAD / (mean_bag * p->bags.width + 1) + 1, sum_part, &s);
  if (p->n_top && p->bags.is_mean && p->n_counts == p->n_top)
    memcpy(i64(f, p->top), i64(f, p->counts), (size_t)p->n_top * sizeof(int64_t));
  else if (p->n_top) memset(i64(f, p->top), 0, (size_t)p->n_top * sizeof(int64_t));
  return AOT_OK;
}

/* Elements of integers that result k has and something else declared; its memory in *out. -1: they are no integers of
 * ours. */
static aot_status_t integers(lw_build_t *b, uint32_t k, lw_tensor_t *out, int64_t *n) {
  memset(out, 0, sizeof *out);
  *n = 0;
  if (!lw_type(b, k)->dtype) return AOT_OK;
  AOT_TRY(lw_result_dense(b, k, out));
  *n = lw_numel(out);
  return AOT_OK;
}

/* What a result must be to be written as the kernel has it: as many integers as it makes, or none. */
static int fits(const lw_tensor_t *t, int64_t n, int64_t or_n) {
  return !t->dtype || (t->dtype == AOT_I64 && (lw_numel(t) == 0 || lw_numel(t) == n || lw_numel(t) == or_n));
}

/* _embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset,
 * padding_idx) -> (y, bag of each index, counts, maxima) */
static aot_status_t lower_embedding_bag(lw_build_t *b) {
  const lw_tensor_t *w = lw_arg_tensor(b, 0), *i = lw_arg_tensor(b, 1), *o = lw_arg_tensor(b, 2),
                    *scale = lw_arg_tensor(b, 6), *y = lw_type(b, 0);
  const int64_t mode = lw_arg_int(b, 4, BAG_SUM), last = lw_arg_int(b, 7, 0);
  lw_tensor_t table, index, offsets, weights = {0}, out, owner, counts, top;
  bags_step_t *p;
  int64_t n_owners, n_counts, n_top;
  if (!is(w, AOT_F32, 2) || !is(i, AOT_I64, 1) || !is(o, AOT_I64, 1) || !is(y, AOT_F32, 2) || o->sizes[0] < last)
    return LW_DECLINED;
  const int64_t n_bags = o->sizes[0] - last;
  if (mode > BAG_MEAN || (scale && (mode != BAG_SUM || !is(scale, AOT_F32, 1) || scale->sizes[0] != i->sizes[0])) ||
      y->sizes[0] != n_bags || y->sizes[1] != w->sizes[1] || lw_numel(y) == 0)
    return LW_DECLINED;
  if (!fits(lw_type(b, 1), i->sizes[0], i->sizes[0]) || !fits(lw_type(b, 2), n_bags, o->sizes[0]) ||
      !fits(lw_type(b, 3), n_bags, o->sizes[0]))
    return LW_DECLINED;
  AOT_TRY(lw_contiguous(b, w, &table));
  AOT_TRY(lw_contiguous(b, i, &index));
  AOT_TRY(lw_contiguous(b, o, &offsets));
  if (scale) AOT_TRY(lw_contiguous(b, scale, &weights));
  AOT_TRY(lw_result_dense(b, 0, &out));
  AOT_TRY(integers(b, 1, &owner, &n_owners));
  AOT_TRY(integers(b, 2, &counts, &n_counts));
  AOT_TRY(integers(b, 3, &top, &n_top));
  LW_STEP(b, run_embedding_bag, p);
  *p = (bags_step_t){
      .bags = {.n_index = index.sizes[0],
               .n_offsets = offsets.sizes[0],
               .n_bags = n_bags,
               .n_table = table.sizes[0],
               .width = table.sizes[1],
               .padding = lw_arg_int(b, 8, -1),
               .is_mean = mode == BAG_MEAN},
      .table = lw_use_read(b, &table),
      .index = lw_use_read(b, &index),
      .offsets = lw_use_read(b, &offsets),
      .scale = lw_use_read(b, &weights),
      .y = lw_use(b, &out),
      .owner = lw_use(b, &owner),
      .counts = lw_use(b, &counts),
      .top = lw_use(b, &top),
      .n_owners = n_owners,
      .n_counts = n_counts,
      .n_top = n_top,
  };
  return AOT_OK;
}

/* ---- backward ---- */

typedef struct bags_backward {
  bc_bags_t bags;
  lw_ref_t g, index, offsets, owner, counts, scale, out; /* offsets: of nothing where the bag of each index is given */
} bags_backward_t;

typedef struct addition {
  const bags_backward_t *p;
  const lw_frame_t *f;
} addition_t;

static void add_part(void *arg, int32_t part, int64_t begin, int64_t end) {
  const addition_t *a = arg;
  const bags_backward_t *p = a->p;
  (void)part;
  bc_bags_backward(&p->bags, lw_f32(a->f, p->g), i64(a->f, p->owner), i64(a->f, p->counts), begin, end,
                   lw_f32(a->f, p->out));
}

/* The forward keeps no bag of each index where it is quick to find again. */
static void count_owners(const bc_bags_t *b, const int64_t *offsets, int64_t *owner) {
  for (int64_t k = 0, bag = 0; k < b->n_index; k++) {
    while (bag + 1 < b->n_offsets && offsets[bag + 1] <= k) bag++;
    owner[k] = bag;
  }
}

static aot_status_t run_embedding_bag_backward(const lw_frame_t *f, void *payload) {
  bags_backward_t *p = payload;
  const int64_t *owner = i64(f, p->owner);
  addition_t a = {p, f};
  if (p->offsets.storage != LW_NONE) count_owners(&p->bags, i64(f, p->offsets), i64(f, p->owner));
  p->bags.index = i64(f, p->index);
  p->bags.scale = lw_f32_or_null(f, p->scale);
  for (int64_t k = 0; k < p->bags.n_index; k++) {
    if (p->bags.index[k] < 0 || p->bags.index[k] >= p->bags.n_table)
      return lw_fail(f->error, AOT_E_RANGE, "bad-index", "index %lld at position %lld is no row of a table of %lld",
                     (long long)p->bags.index[k], (long long)k, (long long)p->bags.n_table);
    if (owner[k] < 0 || owner[k] >= p->bags.n_bags)
      return lw_fail(f->error, AOT_E_RANGE, "bad-bag", "bag %lld is out of range for %lld", (long long)owner[k],
                     (long long)p->bags.n_bags);
  }
  /* not fewer columns a thread than a cache line has */
  const int64_t grain = WORTH_A_THREAD / (p->bags.n_index + p->bags.n_table + 1) + 16;
  bc_parallel(f->workers, p->bags.width, grain, add_part, &a);
  return AOT_OK;
}

/* _embedding_bag_backward(g, indices, offsets, bag of each index, counts, maxima, num_weights, scale_grad_by_freq,
 * mode, sparse, per_sample_weights, padding_idx) */
static aot_status_t lower_embedding_bag_backward(lw_build_t *b) {
  const lw_tensor_t *g = lw_arg_tensor(b, 0), *i = lw_arg_tensor(b, 1), *starts = lw_arg_tensor(b, 2),
                    *o = lw_arg_tensor(b, 3), *n = lw_arg_tensor(b, 4), *scale = lw_arg_tensor(b, 10),
                    *y = lw_type(b, 0);
  const int64_t mode = lw_arg_int(b, 8, BAG_SUM);
  lw_tensor_t up, index, owner, offsets = {0}, counts = {0}, weights = {0}, out;
  bags_backward_t *p;
  if (!is(g, AOT_F32, 2) || !is(i, AOT_I64, 1) || !is(starts, AOT_I64, 1) || !is(o, AOT_I64, 1) || !is(y, AOT_F32, 2) ||
      (o->sizes[0] && o->sizes[0] != i->sizes[0]) || y->sizes[1] != g->sizes[1] || y->sizes[0] != lw_arg_int(b, 6, 0) ||
      lw_numel(y) == 0)
    return LW_DECLINED;
  if (lw_arg_int(b, 7, 0) || mode > BAG_MEAN || lw_arg_int(b, 9, 0) ||
      (scale && (!is(scale, AOT_F32, 1) || scale->sizes[0] != i->sizes[0])) ||
      (mode == BAG_MEAN && !(is(n, AOT_I64, 1) && n->sizes[0] == g->sizes[0])))
    return LW_DECLINED;
  AOT_TRY(lw_contiguous(b, g, &up));
  AOT_TRY(lw_contiguous(b, i, &index));
  if (o->sizes[0]) {
    AOT_TRY(lw_contiguous(b, o, &owner));
  } else {
    AOT_TRY(lw_contiguous(b, starts, &offsets));
    owner = index;
    AOT_TRY(lw_new_tensor(b, &owner));
  }
  if (mode == BAG_MEAN) AOT_TRY(lw_contiguous(b, n, &counts));
  if (scale) AOT_TRY(lw_contiguous(b, scale, &weights));
  AOT_TRY(lw_result_dense(b, 0, &out));
  LW_STEP(b, run_embedding_bag_backward, p);
  *p = (bags_backward_t){
      .bags = {.n_index = index.sizes[0],
               .n_offsets = starts->sizes[0],
               .n_bags = up.sizes[0],
               .n_table = out.sizes[0],
               .width = out.sizes[1],
               .padding = lw_arg_int(b, 11, -1),
               .is_mean = mode == BAG_MEAN},
      .g = lw_use_read(b, &up),
      .index = lw_use_read(b, &index),
      .offsets = lw_use_read(b, &offsets),
      .owner = o->sizes[0] ? lw_use_read(b, &owner) : lw_use(b, &owner),
      .counts = lw_use_read(b, &counts),
      .scale = lw_use_read(b, &weights),
      .out = lw_use(b, &out),
  };
  return AOT_OK;
}

static const lw_lowering_t rows[] = {
    {"aten._embedding_bag.default", lower_embedding_bag},
    {"aten._embedding_bag_forward_only.default", lower_embedding_bag},
    {"aten._embedding_bag_backward.default", lower_embedding_bag_backward},
};
const lw_lowering_table_t bc_lowerings_bags = LW_TABLE(rows);
