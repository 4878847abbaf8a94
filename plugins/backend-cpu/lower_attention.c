/* scaled_dot_product_attention and _scaled_dot_product_flash_attention_for_cpu with their backwards, in float32 and
 * halves, with dropout where it receives what to keep. Operands need no copy as long as their element dimension is
 * contiguous: transposed views of a projection are read where they lie. Gradients are laid out as the operands' types
 * say, so that the views that follow need no copy either. */
#include "attention_halves.h"
#include "attention_kernels.h"
#include "kit/lowering/attention_call.h"
#include "target.h"

#include <stdatomic.h>
#include <string.h>

typedef struct attention_step {
  lw_ref_t q, k, v, mask, keep, o, lse, dq, dk, dv, sums, work; /* o: the output, or its gradient */
  bc_rows_t so, sdq, sdk, sdv;                                  /* strides; data is set when run */
  bc_attention_t a;
  int64_t n_parts;         /* of a head of keys, in the backward */
  uint64_t n_sums, n_work; /* floats */
  const lw_frame_t *frame; /* of the run */
  atomic_int failed;
} attention_step_t;

static bc_rows_t with(const lw_frame_t *f, bc_rows_t r, lw_ref_t ref) {
  r.data = lw_at(f, ref);
  return r;
}

/* For one thread; `failed` is its own. */
static bc_attention_t operands(const attention_step_t *p, int32_t thread, int *failed) {
  const lw_frame_t *f = p->frame;
  bc_attention_t a = p->a;
  a.lane = thread;
  a.failed = failed;
  a.q = with(f, a.q, p->q);
  a.k = with(f, a.k, p->k);
  a.v = with(f, a.v, p->v);
  a.mask = p->mask.storage == LW_NONE ? NULL : lw_at(f, p->mask);
  a.keep = p->keep.storage == LW_NONE ? NULL : lw_at(f, p->keep);
  return a;
}

static float *work_of(const attention_step_t *p, int32_t thread) {
  return lw_f32(p->frame, p->work) + (uint64_t)thread * p->n_work;
}

static void forward_part(void *payload, int32_t thread, int64_t begin, int64_t end) {
  attention_step_t *p = payload;
  int failed = 0;
  const bc_attention_t a = operands(p, thread, &failed);
  bc_attention_forward(&a, with(p->frame, p->so, p->o), lw_f32_or_null(p->frame, p->lse), begin, end,
                       work_of(p, thread));
  if (failed) atomic_store(&p->failed, 1);
}

static aot_status_t status_of(attention_step_t *p) {
  if (!atomic_load(&p->failed)) return AOT_OK;
  return lw_fail(p->frame->error, AOT_E_EXHAUSTED, "no-memory", "oneDNN cannot run a product of attention");
}

static aot_status_t run_forward(const lw_frame_t *f, void *payload) {
  attention_step_t *p = payload;
  p->frame = f;
  atomic_store(&p->failed, 0);
  bc_parallel(f->workers, bc_attention_blocks(&p->a), 1, forward_part, p);
  return status_of(p);
}

static void finish(const attention_step_t *p, const bc_attention_t *a, int64_t head, float *sums) {
  bc_attention_finish(a, with(p->frame, p->sdk, p->dk), with(p->frame, p->sdv, p->dv), head, p->n_parts, sums);
}

/* Where a head is one part, a thread's sums serve one after the other; where it is many, all are stored. */
static void backward_part(void *payload, int32_t thread, int64_t begin, int64_t end) {
  attention_step_t *p = payload;
  int failed = 0;
  const bc_attention_t a = operands(p, thread, &failed);
  for (int64_t i = begin; i < end; i++) {
    const int64_t head = i / p->n_parts;
    float *sums = lw_f32(p->frame, p->sums) + (uint64_t)(p->n_parts > 1 ? i : thread) * p->n_sums;
    bc_attention_backward(&a, with(p->frame, p->so, p->o), with(p->frame, p->sdq, p->dq), head, i % p->n_parts,
                          p->n_parts, sums, work_of(p, thread));
    if (p->n_parts == 1) finish(p, &a, head, sums);
  }
  if (failed) atomic_store(&p->failed, 1);
}

static aot_status_t run_backward(const lw_frame_t *f, void *payload) {
  attention_step_t *p = payload;
  p->frame = f;
  atomic_store(&p->failed, 0);
  const bc_attention_t a = operands(p, 0, NULL);
  const int64_t heads = bc_attention_key_heads(&a);
  bc_parallel(f->workers, heads * p->n_parts, 1, backward_part, p);
  for (int64_t head = 0; p->n_parts > 1 && head < heads; head++)
    finish(p, &a, head, lw_f32(f, p->sums) + (uint64_t)(head * p->n_parts) * p->n_sums);
  return status_of(p);
}

/* ---- operands ---- */

/* [.., position, element]: the element dimension steps by 1, positions do not overlap. */
static int is_rows(const lw_tensor_t *t) {
  return (t->strides[t->rank - 1] == 1 || lw_from_end(t, 1) == 1) &&
         (t->strides[t->rank - 2] >= lw_from_end(t, 1) || lw_from_end(t, 2) == 1);
}

static bc_rows_t rows_of(const lw_tensor_t *t) {
  bc_rows_t r = {.position = lw_from_end(t, 2) == 1 ? lw_from_end(t, 1) : t->strides[t->rank - 2]};
  memcpy(r.lead, t->strides, (size_t)(t->rank - 2) * sizeof *r.lead);
  return r;
}

static aot_status_t readable(lw_build_t *b, const lw_tensor_t *t, lw_tensor_t *out) {
  if (!is_rows(t)) return lw_contiguous(b, t, out);
  *out = *t;
  return AOT_OK;
}

static int takes(lw_build_t *b, const lw_attention_places_t *at, lw_attention_t *out) {
  if (!lw_attention_call(b, at, out) || !bc_is_float(out->q)) return 0;
  return !out->keep || out->keep->dtype == out->q->dtype;
}

static int64_t mask_stride(const lw_tensor_t *m, int32_t n) {
  return n > m->rank || lw_from_end(m, n) == 1 ? 0 : m->strides[m->rank - n];
}

static bc_attention_t describe(const lw_attention_t *call, const lw_tensor_t t[3]) {
  const lw_tensor_t *q = &t[0], *m = call->mask;
  bc_attention_t a = {
      .dtype = q->dtype,
      .n_lead = q->rank - 2,
      .share = call->share,
      .n_query = lw_from_end(q, 2),
      .n_key = lw_from_end(&t[1], 2),
      .width = lw_from_end(q, 1),
      .width_v = lw_from_end(&t[2], 1),
      .scale = call->scale,
      .causal = call->is_causal,
      .keep_scale = (float)call->keep_scale,
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
static aot_status_t add_attention(lw_build_t *b, const lw_attention_t *call, const lw_tensor_t *o,
                                  const lw_tensor_t *lse, const lw_tensor_t *gradients) {
  const lw_tensor_t *const inputs[3] = {call->q, call->k, call->v};
  const int64_t n_threads = b->machine->n_threads;
  lw_tensor_t t[3], work, sums, keep = {0};
  attention_step_t *p;
  for (uint32_t i = 0; i < 3; i++) AOT_TRY(readable(b, inputs[i], &t[i]));
  if (call->keep) AOT_TRY(lw_contiguous(b, call->keep, &keep));
  bc_attention_t a = describe(call, t);
  bc_attention_halves_t *halves = bc_attention_halves_create(&a, gradients != NULL, (int32_t)n_threads);
  if (halves) AOT_TRY(lw_own(b, halves, bc_attention_halves_destroy));
  a.halves = halves;
  const uint64_t n_work = gradients ? bc_attention_backward_work(&a) : bc_attention_forward_work(&a);
  const int64_t n_parts = bc_attention_parts(&a, n_threads);
  const int64_t n_sums = n_parts > 1 ? n_parts * bc_attention_key_heads(&a) : n_threads;
  AOT_TRY(lw_scratch(b, n_work * sizeof(float) * (uint64_t)n_threads, &work));
  if (gradients) AOT_TRY(lw_scratch(b, bc_attention_sums(&a) * sizeof(float) * (uint64_t)n_sums, &sums));
  const lw_run_fn run_attention = gradients ? run_backward : run_forward;
  LW_STEP(b, run_attention, p);
  p->a = a;
  p->n_work = n_work;
  p->q = lw_use_read(b, &t[0]);
  p->k = lw_use_read(b, &t[1]);
  p->v = lw_use_read(b, &t[2]);
  p->mask = lw_use_read(b, call->mask);
  p->keep = lw_use_read(b, call->keep ? &keep : NULL);
  p->o = gradients ? lw_use_read(b, o) : lw_use(b, o);
  p->so = rows_of(o);
  p->lse = gradients ? lw_use_read(b, lse) : lw_use(b, lse);
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

static aot_status_t forward(lw_build_t *b, const lw_attention_places_t *at) {
  lw_attention_t call;
  lw_tensor_t o, lse;
  if (!takes(b, at, &call) || !lw_is_attention_output(lw_type(b, 0), &call)) return LW_DECLINED;
  const int has_lse = b->node->n_results > 1 && lw_type(b, 1)->dtype;
  if (has_lse && !lw_is_attention_lse(lw_type(b, 1), &call)) return LW_DECLINED;
  AOT_TRY(writable(b, 0, &o));
  if (has_lse) AOT_TRY(lw_result_dense(b, 1, &lse));
  return add_attention(b, &call, &o, has_lse ? &lse : NULL, NULL);
}

static aot_status_t backward(lw_build_t *b, const lw_attention_places_t *at) {
  const lw_tensor_t *g = lw_arg_tensor(b, 0);
  lw_attention_t call;
  lw_tensor_t go, results[3];
  if (!g || !takes(b, at, &call) || b->node->n_results != 3 || !lw_is_attention_output(g, &call)) return LW_DECLINED;
  for (uint32_t r = 0; r < 3; r++)
    if (lw_type(b, r)->dtype != g->dtype || !lw_same_sizes(lw_type(b, r), lw_arg_tensor(b, at->query + r)))
      return LW_DECLINED;
  AOT_TRY(readable(b, g, &go));
  for (uint32_t r = 0; r < 3; r++) AOT_TRY(writable(b, r, &results[r]));
  return add_attention(b, &call, &go, NULL, results);
}

static aot_status_t lower_attention(lw_build_t *b) {
  const aot_snap_op_t *op = AOT_SNAP_ROWS(b->s, aot_snap_op_t, ops) + b->node->op;
  const lw_attention_places_t *at = lw_attention_places(aot_snap_text(b->s, op->name));
  return at->is_backward ? backward(b, at) : forward(b, at);
}

const lw_lowering_table_t bc_lowerings_attention = {
    .has = lw_is_attention, .lower = lower_attention, .goes_by_strides = 1};
