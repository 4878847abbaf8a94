/* Scaled dot product attention and its kernels: query [.., L, E], key [.., S, E], value [.., S, Ev]. */
#include "shape_rules.h"

#include <aot/inline.h>

static void check(at_infer_t *c, const aot_type_t *q, const aot_type_t *k, const aot_type_t *v) {
  char text[3][70];
  int ok = q->rank >= 2 && k->rank >= 2 && v->rank >= 2 &&
           !at_differs(c, q->sizes[q->rank - 1], k->sizes[k->rank - 1]) &&
           !at_differs(c, k->sizes[k->rank - 2], v->sizes[v->rank - 2]);
  if (!ok)
    at_fail(c, "attention of query [%s], key [%s], value [%s]", at_dims_text(c, q->sizes, q->rank, text[0], 70),
            at_dims_text(c, k->sizes, k->rank, text[1], 70), at_dims_text(c, v->sizes, v->rank, text[2], 70));
  else if (q->dtype != k->dtype || q->dtype != v->dtype)
    at_fail(c, "attention of %s, %s and %s: query, key and value must have one dtype", aot_dtype_name(q->dtype),
            aot_dtype_name(k->dtype), aot_dtype_name(v->dtype));
}

/* [.., L, Ev]. The fused CPU kernel, which takes 4-d calls without dropout, writes in query's memory order; the path of
 * separate operators gives a contiguous result. */
static void put_output(at_infer_t *c, const aot_type_t *q, const aot_type_t *v, int fused) {
  int64_t *sizes = at_dims_copy(c, q->sizes, q->rank);
  sizes[q->rank - 1] = v->sizes[v->rank - 1];
  if (fused && q->rank == 4 && at_same(c, q->sizes[3], v->sizes[3])) at_put_like(c, q, q->dtype);
  else at_put(c, q->dtype, sizes, q->rank);
}

void at_shape_attention(at_infer_t *c) {
  aot_type_t q = at_tensor(c, "query"), k = at_tensor(c, "key"), v = at_tensor(c, "value");
  check(c, &q, &k, &v);
  if (c->status == AOT_OK) put_output(c, &q, &v, at_float(c, "dropout_p") == 0.0 && c->desc->n_results == 1);
}

/* As separate operators give it: [.., L, Ev], contiguous. */
void at_shape_dropout_attention(at_infer_t *c) {
  aot_type_t q = at_tensor(c, "query"), k = at_tensor(c, "key"), v = at_tensor(c, "value");
  check(c, &q, &k, &v);
  if (c->status == AOT_OK) put_output(c, &q, &v, 0);
}

static void put_logsumexp(at_infer_t *c, const aot_type_t *q) {
  int64_t *strides = at_dims(c, 3);
  if (q->rank != 4) {
    at_fail(c, "%s of a query of rank %d", c->row->name, (int)q->rank);
    return;
  }
  strides[0] = at_mul(c, q->sizes[1], q->sizes[2]);
  strides[1] = 1;
  strides[2] = q->sizes[1];
  at_put_strided(c, at_accumulate_dtype(q->dtype), q->sizes, strides, 3);
}

void at_shape_flash_cpu(at_infer_t *c) {
  aot_type_t q = at_tensor(c, "query"), k = at_tensor(c, "key"), v = at_tensor(c, "value");
  check(c, &q, &k, &v);
  if (c->status != AOT_OK) return;
  put_output(c, &q, &v, 1);
  put_logsumexp(c, &q);
}

/* Gradients of query, key, value: their shapes. */
void at_shape_attention_backward(at_infer_t *c) {
  aot_type_t q = at_tensor(c, "query"), k = at_tensor(c, "key"), v = at_tensor(c, "value");
  check(c, &q, &k, &v);
  at_put(c, q.dtype, q.sizes, q.rank);
  at_put(c, k.dtype, k.sizes, k.rank);
  at_put(c, v.dtype, v.sizes, v.rank);
}

/* The private backward draws no mask again, so that dropout has to be decomposed before differentiation. */
void at_shape_attention_backward_nodrop(at_infer_t *c) {
  if (at_float(c, "dropout_p") != 0.0)
    at_fail(c, "attention with dropout_p = %g has no fused backward; decompose the attention first",
            at_float(c, "dropout_p"));
  at_shape_attention_backward(c);
}
