/* scaled_dot_product_attention and its backward, float32, without dropout. Operands need no copy as long as their
 * element dimension is contiguous: transposed views of a projection are read where they lie. Gradients are laid out as
 * the operands' types say, so that the views that follow need no copy either. */
#include "attention_kernels.h"
#include "lower.h"

#include <math.h>
#include <string.h>

typedef struct attention_step {
  bc_ref_t q, k, v, mask, o, dq, dk, dv, work; /* o: the output, or its gradient */
  bc_rows_t so, sdq, sdk, sdv;                 /* strides; data is set when run */
  bc_attention_t a;
  int bool_mask;
  uint64_t n_work;         /* floats a thread */
  const bc_frame_t *frame; /* of the run */
} attention_step_t;

static bc_rows_t with(const bc_frame_t *f, bc_rows_t r, bc_ref_t ref) {
  r.data = bc_f32(f, ref);
  return r;
}

static void operands(const bc_frame_t *f, const attention_step_t *p, bc_attention_t *a) {
  *a = p->a;
  a->q = with(f, a->q, p->q);
  a->k = with(f, a->k, p->k);
  a->v = with(f, a->v, p->v);
  if (p->mask.storage == BC_NONE) return;
  if (p->bool_mask) a->bool_mask = (const uint8_t *)bc_at(f, p->mask);
  else a->mask = bc_f32(f, p->mask);
}

static void forward_part(void *payload, int32_t part, int64_t begin, int64_t end) {
  const attention_step_t *p = payload;
  const bc_frame_t *f = p->frame;
  bc_attention_t a;
  operands(f, p, &a);
  bc_attention_forward(&a, with(f, p->so, p->o), begin, end, bc_f32(f, p->work) + (uint64_t)part * p->n_work);
}

static void backward_part(void *payload, int32_t part, int64_t begin, int64_t end) {
  const attention_step_t *p = payload;
  const bc_frame_t *f = p->frame;
  bc_attention_t a;
  operands(f, p, &a);
  bc_attention_backward(&a, with(f, p->so, p->o), with(f, p->sdq, p->dq), with(f, p->sdk, p->dk),
                        with(f, p->sdv, p->dv), begin, end, bc_f32(f, p->work) + (uint64_t)part * p->n_work);
}

static aot_status_t run_parts(const bc_frame_t *f, attention_step_t *p, bc_part_fn fn) {
  p->frame = f;
  bc_parallel(f->workers, p->a.n_batch * p->a.n_head_kv, 1, fn, p);
  return AOT_OK;
}
static aot_status_t run_forward(const bc_frame_t *f, void *payload) { return run_parts(f, payload, forward_part); }
static aot_status_t run_backward(const bc_frame_t *f, void *payload) { return run_parts(f, payload, backward_part); }

/* [.., head, position, element]: up to two leading dimensions; the element dimension steps by 1, positions do not
 * overlap. */
static int is_rows(const bc_tensor_t *t) {
  int32_t r = t->rank;
  return (t->strides[r - 1] == 1 || t->sizes[r - 1] == 1) &&
         (t->strides[r - 2] >= t->sizes[r - 1] || t->sizes[r - 2] == 1);
}

static bc_rows_t rows_of(const bc_tensor_t *t) {
  bc_rows_t r = {NULL, 0, 0, 0};
  r.position = t->sizes[t->rank - 2] == 1 ? t->sizes[t->rank - 1] : t->strides[t->rank - 2];
  if (t->rank > 2) r.head = t->strides[t->rank - 3];
  if (t->rank > 3) r.batch = t->strides[t->rank - 4];
  return r;
}

static aot_status_t readable(bc_build_t *b, const bc_tensor_t *t, bc_tensor_t *out) {
  if (!is_rows(t)) return bc_contiguous(b, t, out);
  *out = *t;
  return AOT_OK;
}

static int64_t lead(const bc_tensor_t *t, int32_t from_back) {
  return t->rank >= from_back ? t->sizes[t->rank - from_back] : 1;
}

static int same_leading(const bc_tensor_t *x, const bc_tensor_t *y) {
  return x->rank == y->rank && lead(x, 4) == lead(y, 4);
}

static int broadcasts(const bc_tensor_t *m, int32_t from_back, int64_t size) {
  return m->rank < from_back || m->sizes[m->rank - from_back] == 1 || m->sizes[m->rank - from_back] == size;
}

/* Is t what attention of q and v gives? */
static int is_output(const bc_tensor_t *t, const bc_tensor_t *q, const bc_tensor_t *v) {
  return t->dtype == AOT_F32 && t->rank == q->rank && lead(t, 4) == lead(q, 4) && lead(t, 3) == lead(q, 3) &&
         lead(t, 2) == lead(q, 2) && lead(t, 1) == lead(v, 1);
}

/* k: position of the query. (query, key, value, attn_mask?, dropout_p, is_causal, scale?, enable_gqa) */
static int takes(const bc_build_t *b, uint32_t k) {
  const bc_tensor_t *q = bc_arg_tensor(b, k), *key = bc_arg_tensor(b, k + 1), *v = bc_arg_tensor(b, k + 2);
  const bc_tensor_t *m = bc_arg_tensor(b, k + 3);
  if (!q || !key || !v || q->dtype != AOT_F32 || key->dtype != AOT_F32 || v->dtype != AOT_F32) return 0;
  if (q->rank < 2 || q->rank > 4 || !same_leading(q, key) || !same_leading(q, v) || bc_arg_float(b, k + 4, 0) != 0)
    return 0;
  if (lead(key, 3) != lead(v, 3) || lead(q, 3) % (lead(key, 3) ? lead(key, 3) : 1)) return 0;
  if (lead(q, 3) != lead(key, 3) && !bc_arg_int(b, k + 7, 0)) return 0; /* broadcast heads: rare */
  if (bc_numel(q) == 0 || bc_numel(key) == 0 || bc_numel(v) == 0) return 0;
  if (lead(key, 1) != lead(q, 1) || lead(v, 2) != lead(key, 2)) return 0;
  if (m && !(broadcasts(m, 1, lead(key, 2)) && broadcasts(m, 2, lead(q, 2)) && broadcasts(m, 3, lead(q, 3)) &&
             broadcasts(m, 4, lead(q, 4))))
    return 0;
  return bc_arg(b, k + 3)->kind == AOT_ARG_NONE || (m && m->rank <= 4 && (m->dtype == AOT_F32 || m->dtype == AOT_BOOL));
}

static int64_t mask_stride(const bc_tensor_t *m, int32_t from_back) {
  return m->rank < from_back || m->sizes[m->rank - from_back] == 1 ? 0 : m->strides[m->rank - from_back];
}

static void describe(const bc_build_t *b, uint32_t k, const bc_tensor_t t[3], const bc_tensor_t *m, bc_attention_t *a) {
  const bc_tensor_t *q = &t[0];
  memset(a, 0, sizeof *a);
  a->n_batch = lead(q, 4);
  a->n_head = lead(q, 3);
  a->n_head_kv = lead(&t[1], 3);
  a->n_query = lead(q, 2);
  a->n_key = lead(&t[1], 2);
  a->width = lead(q, 1);
  a->width_v = lead(&t[2], 1);
  a->scale = bc_arg_float(b, k + 6, 1 / sqrt((double)a->width));
  a->causal = bc_arg_int(b, k + 5, 0) != 0;
  a->q = rows_of(&t[0]);
  a->k = rows_of(&t[1]);
  a->v = rows_of(&t[2]);
  if (!m) return;
  a->mask_batch = mask_stride(m, 4);
  a->mask_head = mask_stride(m, 3);
  a->mask_query = mask_stride(m, 2);
  a->mask_key = mask_stride(m, 1);
}

/* Steps share everything but the direction; `o` is the result of the forward, the gradient that enters the backward. */
static aot_status_t add_attention(bc_build_t *b, uint32_t k, bc_run_fn run, const bc_tensor_t *o,
                                  const bc_tensor_t *results, int backward) {
  const bc_tensor_t *mask = bc_arg_tensor(b, k + 3);
  bc_tensor_t t[3], work;
  bc_attention_t a;
  attention_step_t *p;
  for (uint32_t i = 0; i < 3; i++) AOT_TRY(readable(b, bc_arg_tensor(b, k + i), &t[i]));
  describe(b, k, t, mask, &a);
  AOT_TRY(bc_scratch(b, bc_attention_work(&a) * sizeof(float) * (uint64_t)b->machine->n_threads, &work));
  BC_STEP(b, run, p);
  p->a = a;
  p->n_work = bc_attention_work(&a);
  p->bool_mask = mask && mask->dtype == AOT_BOOL;
  p->q = bc_use(b, &t[0]);
  p->k = bc_use(b, &t[1]);
  p->v = bc_use(b, &t[2]);
  p->mask = bc_use(b, mask);
  p->o = bc_use(b, o);
  p->so = rows_of(o);
  p->work = bc_use(b, &work);
  if (!backward) return AOT_OK;
  p->dq = bc_use(b, &results[0]);
  p->dk = bc_use(b, &results[1]);
  p->dv = bc_use(b, &results[2]);
  p->sdq = rows_of(&results[0]);
  p->sdk = rows_of(&results[1]);
  p->sdv = rows_of(&results[2]);
  return AOT_OK;
}

/* A result that the kernel can write: as declared, or contiguous. */
static aot_status_t writable(bc_build_t *b, uint32_t r, bc_tensor_t *out) {
  return is_rows(bc_type(b, r)) ? bc_result(b, r, out) : bc_result_dense(b, r, out);
}

static aot_status_t lower_attention(bc_build_t *b) {
  bc_tensor_t o;
  if (!takes(b, 0) || !is_output(bc_type(b, 0), bc_arg_tensor(b, 0), bc_arg_tensor(b, 2))) return BC_DECLINED;
  AOT_TRY(writable(b, 0, &o));
  return add_attention(b, 0, run_forward, &o, NULL, 0);
}

static aot_status_t lower_attention_backward(bc_build_t *b) {
  const bc_tensor_t *g = bc_arg_tensor(b, 0);
  bc_tensor_t go, results[3];
  if (!g || g->dtype != AOT_F32 || !takes(b, 1) || b->node->n_results != 3 ||
      !is_output(g, bc_arg_tensor(b, 1), bc_arg_tensor(b, 3)))
    return BC_DECLINED;
  for (uint32_t r = 0; r < 3; r++)
    if (bc_type(b, r)->dtype != AOT_F32 || !bc_same_sizes(bc_type(b, r), bc_arg_tensor(b, r + 1))) return BC_DECLINED;
  AOT_TRY(readable(b, g, &go));
  for (uint32_t r = 0; r < 3; r++) AOT_TRY(writable(b, r, &results[r]));
  return add_attention(b, 1, run_backward, &go, results, 1);
}

static const bc_lowering_t rows[] = {
    {"aten.scaled_dot_product_attention.default", lower_attention},
    {"aot.scaled_dot_product_attention_backward.default", lower_attention_backward},
};
const bc_lowering_table_t bc_lowerings_attention = BC_TABLE(rows);
