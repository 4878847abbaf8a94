/* A node's arguments as reference kernels take them. */
#include "lower.h"

#include <string.h>

static aot_status_t tensor_arg(lw_build_t *b, uint32_t row, rk_arg_t *out) {
  const lw_value_t *v = lw_value(b, row);
  if (v->kind == AOT_TYPE_TENSOR) {
    rk_tensor_t *t = lw_pool_alloc(b->pool, sizeof *t);
    if (!t) return lw_no_memory(b->error, "for a node's arguments");
    *t = lw_rk_tensor(b, &v->t);
    *out = rk_arg_of_tensor(t);
  } else if (v->kind == AOT_TYPE_NONE) {
    *out = rk_arg_of_tensor(NULL);
  } else if (v->kind == AOT_TYPE_SYMFLOAT) {
    *out = rk_arg_of_float(0); /* remember_args */
  } else {
    *out = v->kind == AOT_TYPE_SYMBOOL ? rk_arg_of_bool(v->number != 0) : rk_arg_of_int(v->number);
  }
  return AOT_OK;
}

/* A list of SymInts may come as values; a list of tensors stays one. */
static aot_status_t list_arg(lw_build_t *b, const aot_snap_arg_t *a, rk_arg_t *out) {
  const uint32_t *rows = AOT_SNAP_ROWS(b->s, uint32_t, operands) + a->i;
  rk_tensor_t **tensors = lw_pool_alloc(b->pool, ((uint64_t)a->n + 1) * sizeof *tensors);
  int64_t *numbers = lw_pool_alloc(b->pool, ((uint64_t)a->n + 1) * sizeof *numbers);
  uint32_t n_numbers = 0;
  if (!tensors || !numbers) return lw_no_memory(b->error, "for a node's arguments");
  for (uint32_t k = 0; k < a->n; k++) {
    rk_arg_t element;
    if (rows[k] == AOT_NO_ID) continue;
    AOT_TRY(tensor_arg(b, rows[k], &element));
    if (element.kind == AOT_ARG_VALUE) {
      tensors[k] = lw_pool_alloc(b->pool, sizeof *tensors[k]);
      if (!tensors[k]) return lw_no_memory(b->error, "for a node's arguments");
      *tensors[k] = *element.u.tensor;
    } else if (element.kind == AOT_ARG_FLOAT) {
      return lw_fail(b->error, AOT_E_UNIMPLEMENTED, "refused",
                     "a list of floats that are read out of tensors is not supported");
    } else if (element.kind != AOT_ARG_NONE) {
      numbers[n_numbers++] = element.u.i;
    }
  }
  if (n_numbers && n_numbers == a->n) {
    *out = rk_arg_of_ints(numbers, a->n);
    return AOT_OK;
  }
  out->kind = AOT_ARG_VALUES;
  out->n = a->n;
  out->u.tensors = (const rk_tensor_t *const *)tensors;
  return AOT_OK;
}

static aot_status_t ints_arg(lw_build_t *b, const aot_snap_arg_t *a, rk_arg_t *out) {
  int64_t *copy = lw_pool_alloc(b->pool, ((uint64_t)a->n + 1) * sizeof *copy);
  const int64_t *ints = AOT_SNAP_ROWS(b->s, int64_t, ints) + a->i;
  if (!copy) return lw_no_memory(b->error, "for a node's arguments");
  for (uint32_t k = 0; k < a->n; k++) copy[k] = lw_dim(b, ints[k]);
  *out = rk_arg_of_ints(copy, a->n);
  out->kind = a->kind;
  return AOT_OK;
}

aot_status_t lw_rk_args(lw_build_t *b, rk_arg_t **out) {
  rk_arg_t *args = lw_pool_alloc(b->pool, ((uint64_t)b->node->n_args + 1) * sizeof *args);
  if (!args) return lw_no_memory(b->error, "for a node's arguments");
  for (uint32_t k = 0; k < b->node->n_args; k++) {
    const aot_snap_arg_t *a = lw_arg(b, k);
    args[k].kind = a->kind;
    args[k].n = a->n;
    switch (a->kind) {
      case AOT_ARG_VALUE: AOT_TRY(tensor_arg(b, (uint32_t)a->i, &args[k])); break;
      case AOT_ARG_VALUES: AOT_TRY(list_arg(b, a, &args[k])); break;
      case AOT_ARG_INTS:
      case AOT_ARG_BOOLS: AOT_TRY(ints_arg(b, a, &args[k])); break;
      case AOT_ARG_INT: args[k].u.i = lw_dim(b, a->i); break;
      case AOT_ARG_FLOAT: memcpy(&args[k].u.f, &a->i, sizeof a->i); break;
      case AOT_ARG_FLOATS: args[k].u.floats = AOT_SNAP_ROWS(b->s, double, floats) + a->i; break;
      case AOT_ARG_STR: args[k].u.chars = (const char *)b->s + b->s->chars.at + a->i; break;
      default: args[k].u.i = a->i; break;
    }
  }
  *out = args;
  return AOT_OK;
}
