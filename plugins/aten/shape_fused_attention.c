/* The fused attention kernels of other devices: torch/_meta_registrations.py of PyTorch 2.11. query [batch, heads,
 * steps, features], or [batch, steps, heads, features] for _flash_attention_* and _efficient_attention_*. */
#include "shape_rules.h"

#include <aot/inline.h>
#include <string.h>

static int named(at_infer_t *c, const char *part) { return strstr(c->row->name, part) != NULL; }

static int heads_dim(at_infer_t *c) { return named(c, "_scaled_dot_product") ? 1 : 2; }

static void check(at_infer_t *c, const aot_type_t *q, const aot_type_t *k, const aot_type_t *v) {
  int32_t h = heads_dim(c);
  if (q->rank != 4 || k->rank != 4 || v->rank != 4)
    at_fail(c, "%s of tensors of rank %d, %d and %d; packed sequences are not supported", c->row->name, (int)q->rank,
            (int)k->rank, (int)v->rank);
  else if (at_differs(c, q->sizes[3], k->sizes[3]) || at_differs(c, k->sizes[3 - h], v->sizes[3 - h]) ||
           at_differs(c, q->sizes[h], k->sizes[h]))
    at_fail(c, "%s: query, key and value do not fit", c->row->name);
  else if (q->dtype != k->dtype || q->dtype != v->dtype)
    at_fail(c, "%s of %s, %s and %s: they must have one dtype", c->row->name, aot_dtype_name(q->dtype),
            aot_dtype_name(k->dtype), aot_dtype_name(v->dtype));
}

/* [batch, heads, steps, features] that lies as [batch, steps, heads, features] */
static void put_steps_outside(at_infer_t *c, const aot_type_t *like, int64_t features) {
  int64_t *sizes = at_dims_copy(c, like->sizes, 4), *strides = at_dims(c, 4);
  sizes[3] = features;
  strides[3] = 1;
  strides[1] = features;
  strides[2] = at_mul(c, features, sizes[1]);
  strides[0] = at_mul(c, strides[2], sizes[2]);
  at_put_strided(c, like->dtype, sizes, strides, 4);
}

static void put_output(at_infer_t *c, const aot_type_t *q, const aot_type_t *v) {
  int64_t *sizes = at_dims_copy(c, q->sizes, 4);
  sizes[3] = v->sizes[3];
  if (named(c, "product_efficient")) put_steps_outside(c, q, v->sizes[3]);
  else if (!named(c, "efficient") && at_same(c, q->sizes[3], v->sizes[3])) at_put_like(c, q, q->dtype);
  else if (named(c, "_scaled") && at_hint(c, q->strides[1]) < at_hint(c, q->strides[2]))
    put_steps_outside(c, q, v->sizes[3]);
  else at_put(c, q->dtype, sizes, 4);
}

/* The efficient kernel pads rows to a multiple of 32 and gives none unless queried; cuDNN adds a dimension. */
static void put_logsumexp(at_infer_t *c, const aot_type_t *q) {
  int64_t *sizes = at_dims(c, 4), rows = q->sizes[3 - heads_dim(c)];
  sizes[0] = q->sizes[0];
  sizes[1] = q->sizes[heads_dim(c)];
  sizes[2] = rows;
  sizes[3] = 1;
  if (named(c, "efficient"))
    sizes[2] = at_bool(c, "compute_log_sumexp") ? at_mul(c, at_floordiv(c, at_add(c, rows, 31), 32), 32) : 0;
  at_put(c, AOT_F32, sizes, named(c, "cudnn") ? 4 : 3);
}

static void put_number(at_infer_t *c, int64_t n) {
  aot_type_t t;
  memset(&t, 0, sizeof t);
  t.kind = AOT_TYPE_SYMINT;
  t.expr = n;
  at_put_type(c, &t);
}

/* Seed and offset: flash keeps two words in one, the others a number each. */
static void put_random_state(at_infer_t *c) {
  static const int64_t two = 2;
  int flash = named(c, "flash");
  at_put(c, flash ? AOT_U64 : AOT_I64, &two, flash ? 1 : 0);
  at_put(c, flash ? AOT_U64 : AOT_I64, NULL, 0);
}

void at_shape_fused_attention(at_infer_t *c) {
  static const int64_t none = 0;
  aot_type_t q = at_tensor(c, "query"), k = at_tensor(c, "key"), v = at_tensor(c, "value");
  check(c, &q, &k, &v);
  if (c->status == AOT_OK && at_bool(c, "return_debug_mask"))
    at_fail(c, "%s with return_debug_mask is not supported", c->row->name);
  if (c->status != AOT_OK) return;
  put_output(c, &q, &v);
  put_logsumexp(c, &q);
  if (c->desc->n_results == 9) { /* cum_seq_q, cum_seq_k, max_q, max_k */
    at_put_none(c);
    at_put_none(c);
    put_number(c, q.sizes[2]);
    put_number(c, k.sizes[2]);
  }
  put_random_state(c);
  if (c->desc->n_results == 6) {
    put_number(c, at_has(c, "max_seqlen_q") ? at_int(c, "max_seqlen_q") : q.sizes[1]);
    put_number(c, at_has(c, "max_seqlen_k") ? at_int(c, "max_seqlen_k") : k.sizes[1]);
  } else if (named(c, "flash")) {
    at_put(c, q.dtype, &none, 1);
  } else if (c->desc->n_results == 9) {
    at_put_none(c);
  }
}

/* Gradients of query, key, value, and of the bias where there is one and it is wanted. */
void at_shape_fused_attention_backward(at_infer_t *c) {
  static const char *const names[3] = {"query", "key", "value"};
  aot_type_t t[3], bias = at_operand(c, "attn_bias");
  const int64_t *wanted;
  uint32_t n = at_ints(c, "grad_input_mask", &wanted), i;
  for (i = 0; i < 3; i++) t[i] = at_tensor(c, names[i]);
  check(c, &t[0], &t[1], &t[2]);
  if (c->status != AOT_OK) return;
  for (i = 0; i < 3; i++) {
    if (named(c, "efficient")) put_steps_outside(c, &t[i], t[i].sizes[3]);
    else at_put_like(c, &t[i], t[i].dtype);
  }
  if (c->desc->n_results < 4) return;
  if (bias.kind == AOT_TYPE_TENSOR && n > 3 && wanted[3]) at_put(c, bias.dtype, bias.sizes, bias.rank);
  else at_put_none(c);
}

/* _scaled_dot_product_attention_math: the result, and the probabilities [.., rows, columns] */
void at_shape_attention_math(at_infer_t *c) {
  aot_type_t q = at_tensor(c, "query"), k = at_tensor(c, "key");
  int64_t *sizes;
  if (at_has(c, "dropout_mask")) at_fail(c, "%s with dropout_mask is not supported", c->row->name);
  at_shape_attention(c);
  if (c->status != AOT_OK) return;
  sizes = at_dims_copy(c, q.sizes, q.rank);
  sizes[q.rank - 1] = k.sizes[k.rank - 2];
  at_put(c, q.dtype, sizes, q.rank);
}
