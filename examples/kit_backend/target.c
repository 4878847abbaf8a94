/* What each step does. kit/lowering decides which steps there are: views become geometry, pointwise nodes and row
 * reductions become loops, products become `product`, and every other node `kernel`.
 *
 * For hardware, replace the bodies: a step's payload then holds what is submitted, its run function submits it. */
#include "target.h"

#include "kit/base/sealed_file.h"
#include "kit/lowering/group_loop.h"
#include "kit/lowering/kernel_step.h"
#include "kit/lowering/region_steps.h"
#include <stdio.h>
#include <string.h>

/* ---- copies, zeros, sums in place ---- */

typedef struct copy_step {
  lw_ref_t dst, src;
  rk_tensor_t to, from; /* geometry; data is set when it runs */
  const int64_t *rounds;
  int64_t dst_move, src_move; /* bytes per round of a loop */
} copy_step_t;

static aot_status_t run_copy(const lw_frame_t *f, void *payload) {
  copy_step_t *p = payload;
  const int64_t round = p->rounds ? *p->rounds : 0;
  p->to.data = f->base[p->dst.storage] + round * p->dst_move;
  p->from.data = f->base[p->src.storage] + round * p->src_move;
  rk_copy(&p->to, &p->from);
  return AOT_OK;
}

static aot_status_t copy(lw_build_t *b, const lw_tensor_t *dst, int64_t dst_step, const lw_tensor_t *src,
                         int64_t src_step, const int64_t *rounds) {
  copy_step_t *p;
  if (lw_numel(dst) == 0) return AOT_OK;
  LW_STEP(b, run_copy, p);
  p->dst = lw_use(b, dst);
  p->src = lw_use_read(b, src);
  p->to = lw_rk_tensor(b, dst);
  p->from = lw_rk_tensor(b, src);
  p->rounds = rounds;
  p->dst_move = dst_step * (int64_t)aot_dtype_size(dst->dtype);
  p->src_move = src_step * (int64_t)aot_dtype_size(src->dtype);
  return AOT_OK;
}

typedef struct zero_step {
  lw_ref_t dst;
  size_t nbytes;
} zero_step_t;

static aot_status_t run_zero(const lw_frame_t *f, void *payload) {
  const zero_step_t *p = payload;
  if (p->nbytes) memset(lw_at(f, p->dst), 0, p->nbytes);
  return AOT_OK;
}

static aot_status_t zero(lw_build_t *b, const lw_tensor_t *dst) {
  zero_step_t *p;
  LW_STEP(b, run_zero, p);
  p->dst = lw_use(b, dst);
  p->nbytes = (size_t)lw_numel(dst) * aot_dtype_size(dst->dtype);
  return AOT_OK;
}

typedef struct add_step {
  lw_ref_t dst, src;
  rk_tensor_t to, from;
  const rk_kernel_t *kernel;
} add_step_t;

static aot_status_t run_add(const lw_frame_t *f, void *payload) {
  add_step_t *p = payload;
  rk_error_t error;
  p->to.data = f->base[p->dst.storage];
  p->from.data = f->base[p->src.storage];
  const rk_arg_t args[] = {rk_arg_of_tensor(&p->to), rk_arg_of_tensor(&p->from), rk_arg_of_int(1)};
  const rk_call_t call = {args, 3, &p->to, 1};
  const aot_status_t status = rk_run(p->kernel, &call, &error);
  return status == AOT_OK ? AOT_OK : lw_fail(f->error, status, "kernel-failed", "%s", error.text);
}

static aot_status_t add(lw_build_t *b, const lw_tensor_t *dst, const lw_tensor_t *src) {
  add_step_t *p;
  if (lw_numel(dst) == 0) return AOT_OK;
  LW_STEP(b, run_add, p);
  p->dst = lw_use_update(b, dst);
  p->src = lw_use_read(b, src);
  p->to = lw_rk_tensor(b, dst);
  p->from = lw_rk_tensor(b, src);
  p->kernel = rk_find(aot_str("aten.add.Tensor"));
  return AOT_OK;
}

/* ---- matrix products: in double, on contiguous copies; rounded once ---- */

typedef struct product_step {
  lw_ref_t x, y, sum;
  int64_t n_batch, rows, inner, columns;
  double alpha, beta; /* beta: of what `sum` holds before; 0: it is not read */
} product_step_t;

static aot_status_t run_product(const lw_frame_t *f, void *payload) {
  const product_step_t *p = payload;
  const double *x = (const double *)(const void *)lw_at(f, p->x), *y = (const double *)(const void *)lw_at(f, p->y);
  double *sum = (double *)(void *)lw_at(f, p->sum);
  for (int64_t n = 0; n < p->n_batch; n++, y += p->inner * p->columns)
    for (int64_t i = 0; i < p->rows; i++, x += p->inner, sum += p->columns) {
      for (int64_t j = 0; j < p->columns; j++) sum[j] = p->beta != 0 ? p->beta * sum[j] : 0;
      for (int64_t k = 0; k < p->inner; k++) {
        const double factor = p->alpha * x[k];
        for (int64_t j = 0; j < p->columns; j++) sum[j] += factor * y[k * p->columns + j];
      }
    }
  return AOT_OK;
}

static aot_status_t as_doubles(lw_build_t *b, const lw_tensor_t *t, lw_tensor_t *out) {
  *out = *t;
  if (t->dtype == AOT_F64 && lw_is_contiguous(t)) return AOT_OK;
  out->dtype = AOT_F64;
  lw_make_contiguous(out);
  AOT_TRY(lw_new_tensor(b, out));
  return lw_copy(b, out, t);
}

static aot_status_t product(lw_build_t *b, const lw_tensor_t *x, const lw_tensor_t *y, const lw_tensor_t *addend,
                            const lw_tensor_t *c, double alpha, double beta) {
  lw_tensor_t left, right, sum = *c, spread;
  product_step_t *p;
  if (lw_numel(c) == 0) return AOT_OK;
  AOT_TRY(as_doubles(b, x, &left));
  AOT_TRY(as_doubles(b, y, &right));
  sum.dtype = AOT_F64;
  lw_make_contiguous(&sum);
  AOT_TRY(lw_new_tensor(b, &sum));
  if (addend && !lw_expanded(addend, c->rank, c->sizes, &spread)) return LW_DECLINED;
  if (addend) AOT_TRY(lw_copy(b, &sum, &spread));
  LW_STEP(b, run_product, p);
  p->x = lw_use_read(b, &left);
  p->y = lw_use_read(b, &right);
  p->sum = addend ? lw_use_update(b, &sum) : lw_use(b, &sum);
  p->rows = c->sizes[c->rank - 2];
  p->columns = c->sizes[c->rank - 1];
  p->inner = x->sizes[x->rank - 1];
  p->n_batch = lw_numel(c) / (p->rows * p->columns);
  p->alpha = alpha;
  p->beta = addend ? beta : 0;
  lw_count_flops(b, 2 * (double)lw_numel(c) * (double)p->inner, c->dtype);
  return lw_copy(b, c, &sum);
}

/* ---- loops: a group of nodes as a generated C function (loop_code.h) ---- */

typedef struct loop_step {
  const lw_loop_fn *function;
  lw_ref_t *refs;  /* by access: loads, then stores */
  char **pointers; /* the same, then row buffers, then where the function reports a wrong index */
  int64_t *numbers, *sizes;
  uint32_t n_accesses, n_kept;
  lw_ref_t kept; /* row buffers */
  int64_t kept_nbytes, wrong;
  uint32_t indexed; /* id of the node whose index tensors it reads; AOT_NO_ID: none */
} loop_step_t;

static aot_status_t run_loop(const lw_frame_t *f, void *payload) {
  loop_step_t *p = payload;
  for (uint32_t k = 0; k < p->n_accesses; k++) /* a random draw's pointer stays as it is */
    if (p->refs[k].storage != LW_NONE) p->pointers[k] = lw_at(f, p->refs[k]);
  for (uint32_t k = 0; k < p->n_kept; k++) p->pointers[p->n_accesses + k] = lw_at(f, p->kept) + k * p->kept_nbytes;
  p->wrong = 0;
  (*p->function)(p->pointers, p->sizes, p->numbers, 0, p->sizes[0]);
  if (!p->wrong) return AOT_OK;
  f->error->node = p->indexed;
  return lw_fail(f->error, AOT_E_RANGE, "bad-index", "an index is out of range for the dimension that it selects from");
}

/* The function's name is the hash of its text, so that equal loops of all layers share one. */
static aot_status_t find_function(lw_build_t *b, const lp_loop_t *loop, const lw_loop_fn **out) {
  lp_text_t body = {0}, text = {0};
  char name[32];
  lp_gen_c(loop, "F", &body);
  const kf_key_t key = kf_key(body.data, (size_t)body.size, 0);
  snprintf(name, sizeof name, "loop_%016llx", (unsigned long long)key.low64);
  *out = b->machine->find(b->machine->self, name);
  if (!*out) lp_gen_c(loop, name, &text);
  int failed = body.failed || text.failed;
  if (!failed && !*out) failed = b->machine->add(b->machine->self, name, text.data, text.size, out) != AOT_OK;
  lp_text_deinit(&body);
  lp_text_deinit(&text);
  return failed ? lw_fail(b->error, AOT_E_EXHAUSTED, "no-memory", "no memory for generated code") : AOT_OK;
}

static aot_status_t row_buffers(lw_build_t *b, const lp_loop_t *loop, lw_tensor_t *out, int64_t *out_nbytes) {
  uint64_t widest = 0;
  *out = (lw_tensor_t){.storage = LW_NONE};
  for (uint32_t k = 1; k <= loop->n_kept; k++)
    if (lp_keep_size(loop, k) > widest) widest = lp_keep_size(loop, k);
  const uint64_t nbytes = (widest * (uint64_t)lp_length(loop) + LW_ALIGN - 1) / LW_ALIGN * LW_ALIGN;
  *out_nbytes = (int64_t)nbytes;
  return loop->n_kept ? lw_scratch(b, nbytes * loop->n_kept, out) : AOT_OK;
}

static aot_status_t loop(lw_build_t *b, lw_group_t *g) {
  const uint32_t n = g->loop.n_loads + g->loop.n_stores, n_kept = g->loop.n_kept;
  const lw_loop_fn *function = NULL;
  lw_tensor_t kept;
  int64_t kept_nbytes;
  loop_step_t *p;
  AOT_TRY(find_function(b, &g->loop, &function));
  if (!function) return LW_DECLINED;
  AOT_TRY(lw_store_results(b, g));
  AOT_TRY(row_buffers(b, &g->loop, &kept, &kept_nbytes));
  LW_STEP(b, run_loop, p);
  p->function = function;
  p->n_accesses = n;
  p->n_kept = n_kept;
  p->kept = lw_use(b, n_kept ? &kept : NULL);
  p->kept_nbytes = kept_nbytes;
  p->indexed = AOT_NO_ID;
  p->refs = lw_pool_alloc(b->pool, (n + 1) * sizeof *p->refs);
  p->pointers = lw_pool_alloc(b->pool, (n + n_kept + 1) * sizeof *p->pointers);
  p->numbers = lw_pool_alloc(b->pool, (lp_n_numbers(&g->loop) + 1) * sizeof *p->numbers);
  p->sizes = lw_pool_alloc(b->pool, sizeof g->loop.sizes);
  if (!p->refs || !p->pointers || !p->numbers || !p->sizes)
    return lw_fail(b->error, AOT_E_EXHAUSTED, "no-memory", "no memory for a loop");
  lp_numbers(&g->loop, p->numbers);
  memcpy(p->sizes, g->loop.sizes, sizeof g->loop.sizes);
  for (uint32_t k = 0; k < n; k++) {
    p->refs[k] = lw_use_access(b, g, k);
    p->pointers[k] = (char *)g->draws[k];
    for (uint32_t i = 0; i < g->accesses[k].n_indices; i++) {
      lw_use_read(b, &g->tensors[g->accesses[k].indices[i].load]);
      p->indexed = g->nodes[k];
    }
  }
  p->pointers[n + n_kept] = (char *)&p->wrong;
  lw_count_loop(b);
  return AOT_OK;
}

/* ---- everything else ---- */

static aot_status_t run_kernel(const lw_frame_t *f, void *payload) { return lw_run_kernel(payload, f->base, f->error); }

static aot_status_t kernel(lw_build_t *b, const rk_kernel_t *reference, const custom_node_t *custom, rk_arg_t *args) {
  lw_kernel_step_t *step;
  return lw_add_kernel_step(b, run_kernel, reference, custom, args, &step);
}

/* Of `cond`, `scan` and `while_loop`, whose bodies are steps of the same list. */
static aot_status_t run_jump(const lw_frame_t *f, void *payload) {
  lw_jump_t *p = payload;
  if (p->pred.storage != LW_NONE) p->value.data = f->base[p->pred.storage];
  return lw_take_jump(f, p);
}

static const lw_lowering_table_t *const tables[] = {&lw_lowerings_products, &lw_lowerings_joins,
                                                    &lw_lowerings_branches, &lw_lowerings_loops,
                                                    &lw_lowerings_regions,  &lw_lowerings_spared};

const lw_target_t kb_target = {
    .tables = tables,
    .n_tables = sizeof tables / sizeof tables[0],
    /* Of one core: measure yours. They decide which nodes share a loop. */
    .costs = {.bytes_a_ns = 10,
              .step_ns = 200,
              .row_ns = 13,
              .ops_a_ns = 4,
              .row_elements = 65536,
              .thread_elements = 32768},
    .product = product,
    .loop = loop,
    .kernel = kernel,
    .copy = copy,
    .zero = zero,
    .add = add,
    .jump = run_jump,
};
