/* The call of a shape rule: its arguments and its results. */
#include "shape.h"

#include <aot/inline.h>

#include <string.h>

/* ---- arguments ---- */

static const aot_arg_t none_arg = {AOT_ARG_NONE, 0, {0}};

static int32_t find_arg(at_infer_t *c, const char *name) {
  uint32_t i;
  size_t n = strlen(name);
  for (i = 0; i < c->desc->n_args; i++)
    if (c->desc->args[i].name.size == n && memcmp(c->desc->args[i].name.data, name, n) == 0) return (int32_t)i;
  return -1;
}

const aot_arg_t *at_arg(at_infer_t *c, const char *name) {
  int32_t i = find_arg(c, name);
  if (i < 0) return &none_arg;
  return (uint32_t)i < c->n_args ? &c->args[i] : &c->desc->args[i].preset;
}

int at_has(at_infer_t *c, const char *name) { return at_arg(c, name)->kind != AOT_ARG_NONE; }

/* An integer that is given as a value of type SymInt. */
static int64_t int_of_value(at_infer_t *c, uint32_t value) {
  aot_type_t t;
  memset(&t, 0, sizeof t);
  if (c->env->type_of(c->env->self, value, &t) != AOT_OK) at_fail(c, "value %u has no type", value);
  else if (t.kind != AOT_TYPE_SYMINT && t.kind != AOT_TYPE_SYMBOOL)
    at_fail(c, "a tensor stands where an integer is expected");
  return c->status == AOT_OK ? t.expr : 0;
}

int64_t at_int(at_infer_t *c, const char *name) {
  const aot_arg_t *a = at_arg(c, name);
  switch (a->kind) {
    case AOT_ARG_VALUE: return int_of_value(c, (uint32_t)a->u.i);
    case AOT_ARG_FLOAT: return aot_float_to_int(a->u.f);
    case AOT_ARG_INT:
    case AOT_ARG_BOOL:
    case AOT_ARG_DTYPE:
    case AOT_ARG_LAYOUT:
    case AOT_ARG_DEVICE:
    case AOT_ARG_MEMORY_FORMAT:
    case AOT_ARG_GRAPH: return a->u.i;
    default: at_fail(c, "argument '%s' must be an integer", name); return 0;
  }
}

int at_bool(at_infer_t *c, const char *name) { return at_has(c, name) && at_int(c, name) != 0; }

double at_float(at_infer_t *c, const char *name) {
  const aot_arg_t *a = at_arg(c, name);
  if (a->kind == AOT_ARG_FLOAT) return a->u.f;
  return (double)at_hint(c, at_int(c, name));
}

int at_str_is(at_infer_t *c, const char *name, const char *text) {
  const aot_arg_t *a = at_arg(c, name);
  return a->kind == AOT_ARG_STR && a->n == strlen(text) && memcmp(a->u.chars, text, a->n) == 0;
}

uint32_t at_ints(at_infer_t *c, const char *name, const int64_t **out) {
  const aot_arg_t *a = at_arg(c, name);
  uint32_t i;
  int64_t *copy;
  *out = NULL;
  if (a->kind == AOT_ARG_NONE) return 0;
  if (a->kind == AOT_ARG_INTS || a->kind == AOT_ARG_BOOLS) {
    *out = a->u.ints;
    return a->n;
  }
  if (a->kind == AOT_ARG_FLOATS && a->n == 0) return 0;
  if (a->kind == AOT_ARG_VALUES) {
    copy = at_dims(c, (int32_t)a->n);
    for (i = 0; i < a->n && c->status == AOT_OK; i++) copy[i] = int_of_value(c, a->u.ids[i]);
    *out = copy;
    return c->status == AOT_OK ? a->n : 0;
  }
  copy = at_dims(c, 1);
  copy[0] = at_int(c, name);
  *out = copy;
  return 1;
}

/* Rules continue after a failure, and look at dimensions from either end: no_dims[-AOT_MAX_RANK .. AOT_MAX_RANK - 1]
 * are there. */
static const int64_t zeros[2 * AOT_MAX_RANK] = {0};
static const int64_t *const no_dims = zeros + AOT_MAX_RANK;

static aot_type_t number_type(int32_t kind, int32_t dtype, int64_t expr) {
  aot_type_t t;
  memset(&t, 0, sizeof t);
  t.kind = kind;
  t.dtype = dtype;
  t.sizes = t.strides = no_dims;
  t.expr = expr;
  return t;
}

/* Strides that a value's type leaves open, and dtypes of numbers. */
static aot_type_t complete(at_infer_t *c, aot_type_t t) {
  if (t.kind == AOT_TYPE_SYMINT) return number_type(t.kind, AOT_I64, t.expr);
  if (t.kind == AOT_TYPE_SYMFLOAT) return number_type(t.kind, AOT_F32, 0);
  if (t.kind == AOT_TYPE_SYMBOOL) return number_type(t.kind, AOT_BOOL, t.expr);
  if (t.kind == AOT_TYPE_TENSOR && t.rank == 0) t.sizes = t.strides = no_dims;
  if (t.kind == AOT_TYPE_TENSOR && t.strides == NULL) {
    int64_t *strides = at_dims(c, t.rank);
    at_strides_contiguous(c, t.sizes, t.rank, strides);
    t.strides = strides;
  }
  return t;
}

static aot_type_t type_of(at_infer_t *c, uint32_t value) {
  aot_type_t t = number_type(AOT_TYPE_NONE, 0, 0);
  if (value == AOT_NO_ID || c->status != AOT_OK) return t;
  if (c->env->type_of(c->env->self, value, &t) != AOT_OK) {
    at_fail(c, "value %u has no type", value);
    return number_type(AOT_TYPE_NONE, 0, 0);
  }
  return complete(c, t);
}

aot_type_t at_operand_of(at_infer_t *c, const aot_arg_t *a) {
  switch (a->kind) {
    case AOT_ARG_VALUE: return type_of(c, (uint32_t)a->u.i);
    case AOT_ARG_INT: return number_type(AOT_TYPE_SYMINT, AOT_I64, a->u.i);
    case AOT_ARG_FLOAT: return number_type(AOT_TYPE_SYMFLOAT, AOT_F32, 0);
    case AOT_ARG_BOOL: return number_type(AOT_TYPE_SYMBOOL, AOT_BOOL, a->u.i);
    default: return number_type(AOT_TYPE_NONE, 0, 0);
  }
}

aot_type_t at_operand(at_infer_t *c, const char *name) { return at_operand_of(c, at_arg(c, name)); }

aot_type_t at_tensor(at_infer_t *c, const char *name) {
  aot_type_t t = at_operand(c, name);
  if (t.kind != AOT_TYPE_TENSOR) {
    at_fail(c, "argument '%s' must be a tensor", name);
    t = number_type(AOT_TYPE_TENSOR, AOT_F32, 0);
  }
  return t;
}

uint32_t at_list_size(at_infer_t *c, const char *name) {
  const aot_arg_t *a = at_arg(c, name);
  if (a->kind == AOT_ARG_VALUES) return a->n;
  return a->kind == AOT_ARG_VALUE ? 1 : 0;
}

aot_type_t at_list_item(at_infer_t *c, const char *name, uint32_t i) {
  const aot_arg_t *a = at_arg(c, name);
  if (a->kind == AOT_ARG_VALUE) return type_of(c, (uint32_t)a->u.i);
  return type_of(c, a->kind == AOT_ARG_VALUES && i < a->n ? a->u.ids[i] : AOT_NO_ID);
}

/* ---- shapes ---- */

int32_t at_broadcast(at_infer_t *c, const aot_type_t *operands, uint32_t n, int64_t *out) {
  int32_t rank = 0, d;
  uint32_t i;
  for (i = 0; i < n; i++)
    if (operands[i].kind == AOT_TYPE_TENSOR && operands[i].rank > rank) rank = operands[i].rank;
  for (d = 0; d < rank; d++) out[d] = 1;
  for (i = 0; i < n; i++) {
    const aot_type_t *t = &operands[i];
    if (t->kind != AOT_TYPE_TENSOR) continue;
    for (d = 0; d < t->rank; d++) {
      int64_t *o = &out[rank - t->rank + d], s = t->sizes[d];
      if (s == *o || (s == 1 && *o != 1)) continue;
      if (*o == 1) *o = s;
      else if (at_same(c, s, 1)) continue;
      else if (at_same(c, *o, 1)) *o = s;
      else if (!at_differs(c, s, *o)) *o = AOT_DIM_IS_SYM(*o) ? s : *o; /* a constant wins over a symbol */
      else if (!at_differs(c, *o, 1)) *o = s;
      else if (at_differs(c, s, 1)) {
        char text[2][120];
        at_fail(c, "shapes do not broadcast: [%s] with [%s]", at_dims_text(c, t->sizes, t->rank, text[0], 120),
                at_dims_text(c, out, rank, text[1], 120));
        return 0;
      }
    }
  }
  return rank;
}

/* ---- results ---- */

static void put_answer(at_infer_t *c, const aot_type_t *t) {
  at_answers_t *all = c->answers;
  if (all->n == AT_MAX_ANSWERS) {
    at_fail(c, "more than %d results", AT_MAX_ANSWERS);
    return;
  }
  int64_t *dims = all->dims[all->n];
  aot_type_t *to = &all->at[all->n++];
  *to = *t;
  if (t->kind != AOT_TYPE_TENSOR) return;
  to->sizes = dims;
  to->strides = dims + AOT_MAX_RANK;
  for (int32_t d = 0; d < t->rank; d++) {
    dims[d] = t->sizes[d];
    dims[AOT_MAX_RANK + d] = t->strides[d];
  }
}

void at_put_type(at_infer_t *c, const aot_type_t *t) {
  aot_type_t copy = *t;
  if (c->status != AOT_OK) return;
  copy.flags = 0;
  if (c->requires_grad && t->kind == AOT_TYPE_TENSOR &&
      (aot_dtype_is_float(t->dtype) || aot_dtype_is_complex(t->dtype)))
    copy.flags = AOT_TYPE_REQUIRES_GRAD;
  if (c->answers) put_answer(c, &copy);
  else c->status = c->env->put(c->env->self, &copy);
  c->n_put++;
}

static void put_tensor(at_infer_t *c, int32_t dtype, const int64_t *sizes, const int64_t *strides, int32_t rank,
                       int64_t offset) {
  aot_type_t t;
  memset(&t, 0, sizeof t);
  if (rank > AOT_MAX_RANK) {
    at_fail(c, "the result has rank %d, more than %d", (int)rank, AOT_MAX_RANK);
    return;
  }
  t.kind = AOT_TYPE_TENSOR;
  t.dtype = dtype;
  t.rank = rank;
  t.device = c->device;
  t.device_index = c->device_index;
  t.offset = offset;
  t.sizes = sizes;
  t.strides = strides;
  at_put_type(c, &t);
}

void at_put_strided(at_infer_t *c, int32_t dtype, const int64_t *sizes, const int64_t *strides, int32_t rank) {
  put_tensor(c, dtype, sizes, strides, rank, 0);
}

void at_put(at_infer_t *c, int32_t dtype, const int64_t *sizes, int32_t rank) {
  uint32_t mark = c->n_pool;
  int64_t *strides = at_dims(c, rank);
  at_strides_contiguous(c, sizes, rank, strides);
  put_tensor(c, dtype, sizes, strides, rank, 0);
  if (c->status == AOT_OK) c->n_pool = mark;
}

void at_put_view(at_infer_t *c, const aot_type_t *base, const int64_t *sizes, const int64_t *strides, int32_t rank,
                 int64_t offset) {
  if (c->copies) {
    at_put(c, base->dtype, sizes, rank);
    return;
  }
  put_tensor(c, base->dtype, sizes, strides, rank, offset);
}

void at_put_pointwise(at_infer_t *c, int32_t dtype, const aot_type_t *operands, uint32_t n) {
  int64_t *sizes = at_dims(c, AOT_MAX_RANK), *strides = at_dims(c, AOT_MAX_RANK);
  int32_t rank = at_broadcast(c, operands, n, sizes);
  at_strides_pointwise(c, operands, n, sizes, rank, strides);
  put_tensor(c, dtype, sizes, strides, rank, 0);
}

void at_put_in_format_of(at_infer_t *c, const aot_type_t *like, const int64_t *sizes, int32_t dtype) {
  int64_t *strides = at_dims(c, like->rank);
  if (at_suggests_channels_last(c, like)) at_strides_channels_last(c, sizes, like->rank, strides);
  else at_strides_contiguous(c, sizes, like->rank, strides);
  at_put_strided(c, dtype, sizes, strides, like->rank);
}

void at_put_like(at_infer_t *c, const aot_type_t *like, int32_t dtype) {
  int64_t *strides = at_dims(c, like->rank);
  at_strides_for_format(c, like, AOT_MEMORY_PRESERVE, strides);
  put_tensor(c, dtype, like->sizes, strides, like->rank, 0);
}

void at_put_none(at_infer_t *c) {
  aot_type_t t;
  memset(&t, 0, sizeof t);
  t.kind = AOT_TYPE_NONE;
  at_put_type(c, &t);
}

/* ---- the call ---- */

/* Results live where the first tensor lives and carry a gradient when some operand does. A 0-dim CPU tensor does not
 * decide the device when a tensor of another device is there. */
static void read_operands(at_infer_t *c) {
  uint32_t i, k;
  int have_device = 0;
  for (i = 0; i < c->n_args && c->status == AOT_OK; i++) {
    const aot_arg_t *a = &c->args[i];
    uint32_t n = a->kind == AOT_ARG_VALUES ? a->n : a->kind == AOT_ARG_VALUE;
    for (k = 0; k < n; k++) {
      uint32_t id = a->kind == AOT_ARG_VALUES ? a->u.ids[k] : (uint32_t)a->u.i;
      aot_type_t t;
      memset(&t, 0, sizeof t);
      if (id == AOT_NO_ID) continue;
      if (c->env->type_of(c->env->self, id, &t) != AOT_OK) {
        at_fail(c, "argument %u names value %u, which has no type", i, id);
        return;
      }
      if (t.kind != AOT_TYPE_TENSOR) continue;
      if (t.flags & AOT_TYPE_REQUIRES_GRAD) c->requires_grad = 1;
      if (!have_device || (t.rank > 0 && c->device == AOT_DEVICE_CPU && t.device != AOT_DEVICE_CPU)) {
        c->device = t.device;
        c->device_index = t.device_index;
        have_device = 1;
      }
    }
  }
  if (c->desc->flags & AOT_OP_NO_GRAD) c->requires_grad = 0;
}

static void check_required(at_infer_t *c) {
  uint32_t i;
  for (i = c->n_args; i < c->desc->n_args; i++)
    if (!(c->desc->args[i].flags & (AOT_SARG_HAS_DEFAULT | AOT_SARG_VARIADIC)))
      at_fail(c, "argument '%.*s' is missing", (int)c->desc->args[i].name.size, c->desc->args[i].name.data);
}

aot_status_t at_infer_run(at_infer_t *c, const at_row_t *row, const aot_op_desc_t *desc, const aot_arg_t *args,
                          uint32_t n_args, const at_env_t *env) {
  c->row = row;
  c->desc = desc;
  c->args = args;
  c->n_args = n_args;
  c->env = env;
  c->answers = NULL;
  c->status = AOT_OK;
  c->message[0] = '\0';
  c->n_put = c->n_pool = 0;
  c->requires_grad = c->copies = 0;
  c->device = AOT_DEVICE_CPU;
  c->device_index = 0;
  check_required(c);
  read_operands(c);
  if (c->status == AOT_OK) row->infer(c);
  return c->status;
}
