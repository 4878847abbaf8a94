/* scaled_dot_product_attention and _scaled_dot_product_flash_attention_for_cpu with their backwards, in float32 and
 * halves, without dropout. Operands need no copy as long as their element dimension is contiguous: transposed views of
 * a projection are read where they lie. Gradients are laid out as the operands' types say, so that the views that
 * follow need no copy either. */
#include "attention_kernels.h"
#include "target.h"

#include <math.h>
#include <string.h>

typedef struct attention_step {
  lw_ref_t q, k, v, mask, o, lse, dq, dk, dv, sums, work; /* o: the output, or its gradient */
  bc_rows_t so, sdq, sdk, sdv;                            /* strides; data is set when run */
  bc_attention_t a;
  int64_t n_parts;         /* of a head of keys, in the backward */
  uint64_t n_sums, n_work; /* floats */
  const lw_frame_t *frame; /* of the run */
} attention_step_t;

static bc_rows_t with(const lw_frame_t *f, bc_rows_t r, lw_ref_t ref) {
  r.data = lw_at(f, ref);
  return r;
}

static bc_attention_t operands(const attention_step_t *p) {
  const lw_frame_t *f = p->frame;
  bc_attention_t a = p->a;
  a.q = with(f, a.q, p->q);
  a.k = with(f, a.k, p->k);
  a.v = with(f, a.v, p->v);
  a.mask = p->mask.storage == LW_NONE ? NULL : lw_at(f, p->mask);
  return a;
}

static float *work_of(const attention_step_t *p, int32_t thread) {
  return lw_f32(p->frame, p->work) + (uint64_t)thread * p->n_work;
}

static void forward_part(void *payload, int32_t thread, int64_t begin, int64_t end) {
  const attention_step_t *p = payload;
  const bc_attention_t a = operands(p);
  bc_attention_forward(&a, with(p->frame, p->so, p->o), lw_f32_or_null(p->frame, p->lse), begin, end,
                       work_of(p, thread));
}

static aot_status_t run_forward(const lw_frame_t *f, void *payload) {
  attention_step_t *p = payload;
  p->frame = f;
  bc_parallel(f->workers, bc_attention_blocks(&p->a), 1, forward_part, p);
  return AOT_OK;
}

static void finish(const attention_step_t *p, const bc_attention_t *a, int64_t head, float *sums) {
  bc_attention_finish(a, with(p->frame, p->sdk, p->dk), with(p->frame, p->sdv, p->dv), head, p->n_parts, sums);
}

/* Where a head is one part, a thread's sums serve one after the other; where it is many, all are kept. */
static void backward_part(void *payload, int32_t thread, int64_t begin, int64_t end) {
  const attention_step_t *p = payload;
  const bc_attention_t a = operands(p);
  for (int64_t i = begin; i < end; i++) {
    const int64_t head = i / p->n_parts;
    float *sums = lw_f32(p->frame, p->sums) + (uint64_t)(p->n_parts > 1 ? i : thread) * p->n_sums;
    bc_attention_backward(&a, with(p->frame, p->so, p->o), with(p->frame, p->sdq, p->dq), head, i % p->n_parts,
                          p->n_parts, sums, work_of(p, thread));
    if (p->n_parts == 1) finish(p, &a, head, sums);
  }
}

static aot_status_t run_backward(const lw_frame_t *f, void *payload) {
  attention_step_t *p = payload;
  p->frame = f;
  const bc_attention_t a = operands(p);
  const int64_t heads = bc_attention_key_heads(&a);
  bc_parallel(f->workers, heads * p->n_parts, 1, backward_part, p);
  for (int64_t head = 0; p->n_parts > 1 && head < heads; head++)
    finish(p, &a, head, lw_f32(f, p->sums) + (uint64_t)(head * p->n_parts) * p->n_sums);
  return AOT_OK;
}

/* ---- operands ---- */

static int64_t from_end(const lw_tensor_t *t, int32_t n) { return t->sizes[t->rank - n]; }

/* [.., position, element]: the element dimension steps by 1, positions do not overlap. */
static int is_rows(const lw_tensor_t *t) {
  return (t->strides[t->rank - 1] == 1 || from_end(t, 1) == 1) &&
         (t->strides[t->rank - 2] >= from_end(t, 1) || from_end(t, 2) == 1);
}

static bc_rows_t rows_of(const lw_tensor_t *t) {
  bc_rows_t r = {.position = from_end(t, 2) == 1 ? from_end(t, 1) : t->strides[t->rank - 2]};
  memcpy(r.lead, t->strides, (size_t)(t->rank - 2) * sizeof *r.lead);
  return r;
}

static aot_status_t readable(lw_build_t *b, const lw_tensor_t *t, lw_tensor_t *out) {
  if (!is_rows(t)) return lw_contiguous(b, t, out);
  *out = *t;
  return AOT_OK;
}

/* Where an operator has its arguments. */
typedef struct places {
  uint32_t query, mask, dropout, causal, scale, gqa; /* gqa: NONE where heads are never shared */
} places_t;
#define NONE UINT32_MAX

/* Heads of queries for one of keys; 0: leading dimensions are not as these kernels have them. */
static int64_t share_of(const lw_build_t *b, const places_t *at) {
  const lw_tensor_t *q = lw_arg_tensor(b, at->query), *k = lw_arg_tensor(b, at->query + 1);
  const lw_tensor_t *v = lw_arg_tensor(b, at->query + 2);
  const int32_t heads = q->rank - 3;
  if (k->rank != q->rank || v->rank != q->rank) return 0;
  for (int32_t d = 0; d < heads; d++)
    if (k->sizes[d] != q->sizes[d] || v->sizes[d] != q->sizes[d]) return 0;
  if (heads < 0) return 1;
  if (k->sizes[heads] != v->sizes[heads] || k->sizes[heads] == 0 || q->sizes[heads] % k->sizes[heads]) return 0;
  if (q->sizes[heads] == k->sizes[heads]) return 1;
  return at->gqa != NONE && lw_arg_int(b, at->gqa, 0) ? q->sizes[heads] / k->sizes[heads] : 0;
}

static int fits_mask(const lw_build_t *b, const places_t *at) {
  const lw_tensor_t *m = lw_arg_tensor(b, at->mask), *q = lw_arg_tensor(b, at->query);
  if (!m) return lw_arg(b, at->mask)->kind == AOT_ARG_NONE;
  if (m->rank > q->rank || (m->dtype != AOT_BOOL && m->dtype != AOT_F32 && m->dtype != q->dtype)) return 0;
  for (int32_t n = 1; n <= m->rank; n++)
    if (from_end(m, n) != 1 &&
        from_end(m, n) != (n == 1 ? from_end(lw_arg_tensor(b, at->query + 1), 2) : from_end(q, n)))
      return 0;
  return 1;
}

static int is_float(int32_t dtype) { return dtype == AOT_F32 || dtype == AOT_BF16 || dtype == AOT_F16; }

static int takes(const lw_build_t *b, const places_t *at) {
  const lw_tensor_t *q = lw_arg_tensor(b, at->query), *k = lw_arg_tensor(b, at->query + 1);
  const lw_tensor_t *v = lw_arg_tensor(b, at->query + 2);
  if (!q || !k || !v || !is_float(q->dtype) || k->dtype != q->dtype || v->dtype != q->dtype) return 0;
  if (q->rank < 2 || lw_arg_float(b, at->dropout, 0) != 0 || !share_of(b, at)) return 0;
  if (lw_numel(q) == 0 || lw_numel(k) == 0 || lw_numel(v) == 0) return 0;
  return from_end(k, 1) == from_end(q, 1) && from_end(v, 2) == from_end(k, 2) && fits_mask(b, at);
}

/* Is t what attention of q and v gives? */
static int is_output(const lw_tensor_t *t, const lw_tensor_t *q, const lw_tensor_t *v) {
  return t->dtype == q->dtype && t->rank == q->rank && from_end(t, 1) == from_end(v, 1) &&
         memcmp(t->sizes, q->sizes, (size_t)(q->rank - 1) * sizeof *q->sizes) == 0;
}

static int64_t mask_stride(const lw_tensor_t *m, int32_t n) {
  return n > m->rank || from_end(m, n) == 1 ? 0 : m->strides[m->rank - n];
}

static bc_attention_t describe(const lw_build_t *b, const places_t *at, const lw_tensor_t t[3]) {
  const lw_tensor_t *q = &t[0], *m = lw_arg_tensor(b, at->mask);
  bc_attention_t a = {
      .dtype = q->dtype,
      .n_lead = q->rank - 2,
      .share = share_of(b, at),
      .n_query = from_end(q, 2),
      .n_key = from_end(&t[1], 2),
      .width = from_end(q, 1),
      .width_v = from_end(&t[2], 1),
      .scale = lw_arg_float(b, at->scale, 1 / sqrt((double)from_end(q, 1))),
      .causal = lw_arg_int(b, at->causal, 0) != 0,
      .q = rows_of(&t[0]),
      .k = rows_of(&t[1]),
      .v = rows_of(&t[2]),
  };
  memcpy(a.lead, q->sizes, (size_t)a.n_lead * sizeof *a.lead);
  if (!m) return a;
  a.mask_dtype = m->dtype;
  for (int32_t d = 0; d < a.n_lead; d++) a.mask_lead[d] = mask_stride(m, q->rank - d);
  a.mask_query = mask_stride(m, 2);
  a.mask_key = mask_stride(m, 1);
  return a;
}

/* ---- steps ---- */

/* Both directions share everything but results; `o` is that of the forward, the gradient that enters the backward. */
static aot_status_t add_attention(lw_build_t *b, const places_t *at, const lw_tensor_t *o, const lw_tensor_t *lse,
                                  const lw_tensor_t *gradients) {
  const int64_t n_threads = b->machine->n_threads;
  lw_tensor_t t[3], work, sums;
  attention_step_t *p;
  for (uint32_t i = 0; i < 3; i++) AOT_TRY(readable(b, lw_arg_tensor(b, at->query + i), &t[i]));
  const bc_attention_t a = describe(b, at, t);
  const uint64_t n_work = gradients ? bc_attention_backward_work(&a) : bc_attention_forward_work(&a);
  const int64_t n_parts = bc_attention_parts(&a, n_threads);
  const int64_t n_sums = n_parts > 1 ? n_parts * bc_attention_key_heads(&a) : n_threads;
  AOT_TRY(lw_scratch(b, n_work * sizeof(float) * (uint64_t)n_threads, &work));
  if (gradients) AOT_TRY(lw_scratch(b, bc_attention_sums(&a) * sizeof(float) * (uint64_t)n_sums, &sums));
  const lw_run_fn run_attention = gradients ? run_backward : run_forward;
  LW_STEP(b, run_attention, p);
  p->a = a;
  p->n_work = n_work;
  p->q = lw_use(b, &t[0]);
  p->k = lw_use(b, &t[1]);
  p->v = lw_use(b, &t[2]);
  p->mask = lw_use(b, lw_arg_tensor(b, at->mask));
  p->o = lw_use(b, o);
  p->so = rows_of(o);
  p->lse = lw_use(b, lse);
  p->work = lw_use(b, &work);
  if (!gradients) return AOT_OK;
  p->n_parts = n_parts;
  p->n_sums = bc_attention_sums(&a);
  p->sums = lw_use(b, &sums);
  p->dq = lw_use(b, &gradients[0]);
  p->dk = lw_use(b, &gradients[1]);
  p->dv = lw_use(b, &gradients[2]);
  p->sdq = rows_of(&gradients[0]);
  p->sdk = rows_of(&gradients[1]);
  p->sdv = rows_of(&gradients[2]);
  return AOT_OK;
}

/* A result that the kernel can write: as declared, or contiguous. */
static aot_status_t writable(lw_build_t *b, uint32_t r, lw_tensor_t *out) {
  return is_rows(lw_type(b, r)) ? lw_result(b, r, out) : lw_result_dense(b, r, out);
}

static int is_lse(const lw_tensor_t *t, const lw_tensor_t *q) {
  return t->dtype == AOT_F32 && t->rank == q->rank - 1 &&
         memcmp(t->sizes, q->sizes, (size_t)t->rank * sizeof *q->sizes) == 0;
}

static aot_status_t forward(lw_build_t *b, const places_t *at, int has_lse) {
  const lw_tensor_t *q = lw_arg_tensor(b, at->query);
  lw_tensor_t o, lse;
  if (!takes(b, at) || !is_output(lw_type(b, 0), q, lw_arg_tensor(b, at->query + 2))) return LW_DECLINED;
  has_lse = has_lse && b->node->n_results > 1 && lw_type(b, 1)->dtype;
  if (has_lse && !is_lse(lw_type(b, 1), q)) return LW_DECLINED;
  AOT_TRY(writable(b, 0, &o));
  if (has_lse) AOT_TRY(lw_result_dense(b, 1, &lse));
  return add_attention(b, at, &o, has_lse ? &lse : NULL, NULL);
}

static aot_status_t backward(lw_build_t *b, const places_t *at) {
  const lw_tensor_t *g = lw_arg_tensor(b, 0);
  lw_tensor_t go, results[3];
  if (!g || !takes(b, at) || b->node->n_results != 3 ||
      !is_output(g, lw_arg_tensor(b, at->query), lw_arg_tensor(b, at->query + 2)))
    return LW_DECLINED;
  for (uint32_t r = 0; r < 3; r++)
    if (lw_type(b, r)->dtype != g->dtype || !lw_same_sizes(lw_type(b, r), lw_arg_tensor(b, at->query + r)))
      return LW_DECLINED;
  AOT_TRY(readable(b, g, &go));
  for (uint32_t r = 0; r < 3; r++) AOT_TRY(writable(b, r, &results[r]));
  return add_attention(b, at, &go, NULL, results);
}

/* (query, key, value, attn_mask, dropout_p, is_causal, *, scale, enable_gqa) */
static aot_status_t lower_attention(lw_build_t *b) {
  return forward(b, &(places_t){.query = 0, .mask = 3, .dropout = 4, .causal = 5, .scale = 6, .gqa = 7}, 0);
}
/* (grad, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa) */
static aot_status_t lower_attention_backward(lw_build_t *b) {
  return backward(b, &(places_t){.query = 1, .mask = 4, .dropout = 5, .causal = 6, .scale = 7, .gqa = 8});
}
/* (query, key, value, dropout_p, is_causal, *, attn_mask, scale) */
static aot_status_t lower_flash(lw_build_t *b) {
  return forward(b, &(places_t){.query = 0, .dropout = 3, .causal = 4, .mask = 5, .scale = 6, .gqa = NONE}, 1);
}
/* (grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, *, attn_mask, scale) */
static aot_status_t lower_flash_backward(lw_build_t *b) {
  return backward(b, &(places_t){.query = 1, .dropout = 6, .causal = 7, .mask = 8, .scale = 9, .gqa = NONE});
}

static const lw_lowering_t rows[] = {
    {"aten.scaled_dot_product_attention.default", lower_attention},
    {"aot.scaled_dot_product_attention_backward.default", lower_attention_backward},
    {"aten._scaled_dot_product_flash_attention_for_cpu.default", lower_flash},
    {"aten._scaled_dot_product_flash_attention_for_cpu_backward.default", lower_flash_backward},
};
const lw_lowering_table_t bc_lowerings_attention = LW_TABLE(rows);
