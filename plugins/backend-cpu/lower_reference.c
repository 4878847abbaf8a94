/* Views become tensors; whatever no lowering takes is run by its reference kernel (common/kernels), slow and correct,
 * or by the kernel that a plugin has for it (common/custom). */
#include "lower.h"

#include <stdio.h>
#include <string.h>

typedef struct reference_step {
  const rk_kernel_t *kernel;
  const cu_node_t *custom; /* in place of the kernel */
  rk_arg_t *args;          /* the call's */
  rk_call_t call;
  rk_tensor_t **tensors; /* operands and results: data is set when run */
  bc_ref_t *refs;        /* storages only */
  uint32_t n_tensors;
  struct float_arg {
    uint32_t arg;
    bc_ref_t at;
  } * floats; /* numbers that are read when it runs */
  uint32_t n_floats;
} reference_step_t;

static aot_status_t no_memory(bc_build_t *b) {
  return bc_fail(b->error, AOT_E_EXHAUSTED, "no-memory", "no memory for a node's arguments");
}

/* ---- arguments ---- */

static aot_status_t tensor_arg(bc_build_t *b, uint32_t row, rk_arg_t *out) {
  const bc_value_t *v = bc_value(b, row);
  if (v->kind == AOT_TYPE_TENSOR) {
    rk_tensor_t *t = bc_pool_alloc(b->pool, sizeof *t);
    if (!t) return no_memory(b);
    *t = bc_rk_tensor(b, &v->t);
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
static aot_status_t list_arg(bc_build_t *b, const aot_snap_arg_t *a, rk_arg_t *out) {
  const uint32_t *rows = AOT_SNAP_ROWS(b->s, uint32_t, operands) + a->i;
  rk_tensor_t **tensors = bc_pool_alloc(b->pool, ((uint64_t)a->n + 1) * sizeof *tensors);
  int64_t *numbers = bc_pool_alloc(b->pool, ((uint64_t)a->n + 1) * sizeof *numbers);
  uint32_t n_numbers = 0;
  if (!tensors || !numbers) return no_memory(b);
  for (uint32_t k = 0; k < a->n; k++) {
    rk_arg_t element;
    if (rows[k] == AOT_NO_ID) continue;
    AOT_TRY(tensor_arg(b, rows[k], &element));
    if (element.kind == AOT_ARG_VALUE) {
      tensors[k] = bc_pool_alloc(b->pool, sizeof *tensors[k]);
      if (!tensors[k]) return no_memory(b);
      *tensors[k] = *element.u.tensor;
    } else if (element.kind == AOT_ARG_FLOAT) {
      return bc_fail(b->error, AOT_E_UNIMPLEMENTED, "refused",
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

static aot_status_t ints_arg(bc_build_t *b, const aot_snap_arg_t *a, rk_arg_t *out) {
  int64_t *copy = bc_pool_alloc(b->pool, ((uint64_t)a->n + 1) * sizeof *copy);
  const int64_t *ints = AOT_SNAP_ROWS(b->s, int64_t, ints) + a->i;
  if (!copy) return no_memory(b);
  for (uint32_t k = 0; k < a->n; k++) copy[k] = bc_dim(b, ints[k]);
  *out = rk_arg_of_ints(copy, a->n);
  out->kind = a->kind;
  return AOT_OK;
}

aot_status_t bc_rk_args(bc_build_t *b, rk_arg_t **out) {
  rk_arg_t *args = bc_pool_alloc(b->pool, ((uint64_t)b->node->n_args + 1) * sizeof *args);
  if (!args) return no_memory(b);
  for (uint32_t k = 0; k < b->node->n_args; k++) {
    const aot_snap_arg_t *a = bc_arg(b, k);
    args[k].kind = a->kind;
    args[k].n = a->n;
    switch (a->kind) {
      case AOT_ARG_VALUE: AOT_TRY(tensor_arg(b, (uint32_t)a->i, &args[k])); break;
      case AOT_ARG_VALUES: AOT_TRY(list_arg(b, a, &args[k])); break;
      case AOT_ARG_INTS:
      case AOT_ARG_BOOLS: AOT_TRY(ints_arg(b, a, &args[k])); break;
      case AOT_ARG_INT: args[k].u.i = bc_dim(b, a->i); break;
      case AOT_ARG_FLOAT: memcpy(&args[k].u.f, &a->i, sizeof a->i); break;
      case AOT_ARG_FLOATS: args[k].u.floats = AOT_SNAP_ROWS(b->s, double, floats) + a->i; break;
      case AOT_ARG_STR: args[k].u.chars = (const char *)b->s + b->s->chars.at + a->i; break;
      default: args[k].u.i = a->i; break;
    }
  }
  *out = args;
  return AOT_OK;
}

static aot_str_t op_name(const bc_build_t *b) {
  return aot_snap_text(b->s, AOT_SNAP_ROWS(b->s, aot_snap_op_t, ops)[b->node->op].name);
}

/* The first operand laid out as its type says, for operators that read strides: a copy if it lies otherwise. */
static aot_status_t declare_first(bc_build_t *b) {
  const aot_snap_arg_t *a = bc_arg(b, 0);
  const int64_t *ints = AOT_SNAP_ROWS(b->s, int64_t, ints);
  if (a->kind != AOT_ARG_VALUE) return AOT_OK;
  const aot_snap_value_t *row = AOT_SNAP_ROWS(b->s, aot_snap_value_t, values) + a->i;
  bc_value_t *v = bc_value(b, (uint32_t)a->i);
  bc_tensor_t declared = v->t, actual = v->t;
  for (int32_t d = 0; d < row->rank; d++)
    declared.strides[d] = bc_dim(b, ints[row->dims + (uint32_t)row->rank + (uint32_t)d]);
  declared.offset = bc_dim(b, row->offset);
  if (bc_same_geometry(&declared, &actual)) return AOT_OK;
  AOT_TRY(bc_new_tensor(b, &declared));
  AOT_TRY(bc_copy(b, &declared, &actual));
  v->t = declared;
  return AOT_OK;
}

/* ---- views ---- */

static const rk_tensor_t *base_of(const rk_arg_t *args, uint32_t n) {
  if (n && args[0].kind == AOT_ARG_VALUE) return args[0].u.tensor;
  return NULL;
}

/* No strides can express the view: the elements in order, in memory of their own, in the result's shape. */
static aot_status_t copy_reshaped(bc_build_t *b) {
  const bc_tensor_t *self = bc_arg_tensor(b, 0);
  bc_tensor_t result, source, shaped;
  if (!self || b->node->n_results != 1 || bc_type(b, 0)->dtype != self->dtype ||
      bc_numel(self) != bc_numel(bc_type(b, 0)))
    return BC_DECLINED;
  source = *self;
  AOT_TRY(bc_result_dense(b, 0, &result));
  shaped = source;
  bc_make_contiguous(&shaped);
  shaped.storage = result.storage;
  return bc_copy(b, &shaped, &source);
}

static aot_status_t lower_view(bc_build_t *b, const rk_kernel_t *kernel, rk_arg_t *args) {
  uint32_t n = b->node->n_results;
  rk_tensor_t *views = bc_pool_alloc(b->pool, ((uint64_t)n + 1) * sizeof *views);
  rk_call_t call = {args, b->node->n_args, views, n};
  rk_error_t error;
  const bc_tensor_t *self = bc_arg_tensor(b, 0);
  if (!views) return no_memory(b);
  if (!self || !base_of(args, b->node->n_args)) return BC_DECLINED;
  aot_status_t status = rk_view(kernel, &call, &error);
  if (status == AOT_E_UNIMPLEMENTED) return copy_reshaped(b);
  if (status != AOT_OK) return bc_fail(b->error, status, "bad-view", "%s", error.text);
  uint32_t storage = self->storage;
  for (uint32_t r = 0; r < n; r++) {
    bc_tensor_t t;
    memset(&t, 0, sizeof t);
    t.dtype = views[r].dtype;
    t.rank = views[r].rank;
    t.storage = storage;
    t.offset = views[r].offset;
    memcpy(t.sizes, views[r].sizes, sizeof t.sizes);
    memcpy(t.strides, views[r].strides, sizeof t.strides);
    if (!t.dtype || !bc_type(b, r)->dtype) continue;
    if (t.dtype != bc_type(b, r)->dtype || !bc_same_sizes(&t, bc_type(b, r)))
      return bc_fail(b->error, AOT_E_DATA_LOSS, "bad-type", "result %u of a view does not have its declared type", r);
    bc_bind(b, r, &t);
  }
  return AOT_OK;
}

/* ---- kernels ---- */

/* A line that the program prints. */
static void say(void *self, const char *text, uint32_t n) {
  (void)self;
  fwrite(text, 1, n, stdout);
  fputc('\n', stdout);
  fflush(stdout);
}

static aot_status_t run_reference(const bc_frame_t *f, void *payload) {
  reference_step_t *p = payload;
  rk_error_t error;
  for (uint32_t k = 0; k < p->n_tensors; k++) p->tensors[k]->data = f->base[p->refs[k].storage];
  for (uint32_t k = 0; k < p->n_floats; k++)
    memcpy(&p->args[p->floats[k].arg].u.f, bc_at(f, p->floats[k].at), sizeof(double));
  const rk_caller_t caller = {.say = say};
  aot_status_t status =
      p->custom ? cu_run(p->custom, p->call.args, p->call.n_args, p->call.results, p->call.n_results, &error)
                : rk_run_for(p->kernel, &p->call, &caller, &error);
  return status == AOT_OK ? AOT_OK : bc_fail(f->error, status, "kernel-failed", "%s", error.text);
}

static void remember(bc_build_t *b, reference_step_t *p, rk_tensor_t *t, const bc_tensor_t *own) {
  if (!t || !t->dtype || own->storage == BC_NONE) return;
  p->tensors[p->n_tensors] = t;
  p->refs[p->n_tensors++] = bc_use(b, own);
}

static void remember_args(bc_build_t *b, reference_step_t *p, rk_arg_t *args) {
  const uint32_t *rows = AOT_SNAP_ROWS(b->s, uint32_t, operands);
  for (uint32_t k = 0; k < b->node->n_args; k++) {
    const aot_snap_arg_t *a = bc_arg(b, k);
    const bc_value_t *v = a->kind == AOT_ARG_VALUE ? bc_value(b, (uint32_t)a->i) : NULL;
    if (v && v->kind == AOT_TYPE_SYMFLOAT) p->floats[p->n_floats++] = (struct float_arg){k, bc_use(b, &v->t)};
    if (args[k].kind == AOT_ARG_VALUE)
      remember(b, p, (rk_tensor_t *)(uintptr_t)args[k].u.tensor, &bc_value(b, (uint32_t)a->i)->t);
    for (uint32_t i = 0; args[k].kind == AOT_ARG_VALUES && i < args[k].n; i++)
      if (args[k].u.tensors[i])
        remember(b, p, (rk_tensor_t *)(uintptr_t)args[k].u.tensors[i], &bc_value(b, rows[a->i + (int64_t)i])->t);
  }
}

/* A written operand's memory becomes that of its new value where nobody can tell. */
static int keep_memory(bc_build_t *b, const cu_node_t *custom, uint32_t r, bc_tensor_t *out) {
  if (!custom || r < custom->n_own || !custom->written[r - custom->n_own].in_place) return 0;
  const bc_tensor_t *from = &bc_value(b, custom->written[r - custom->n_own].value)->t;
  bc_tensor_t dense = *from;
  if (!from->dtype || from->storage == BC_NONE || b->out->storages[from->storage].kind != BC_ARENA) return 0;
  bc_result_geometry(&dense);
  dense.offset = from->offset;
  if (!bc_same_geometry(&dense, from) || from->dtype != bc_type(b, r)->dtype || !bc_same_sizes(from, bc_type(b, r)))
    return 0;
  *out = *from;
  bc_bind(b, r, out);
  return 1;
}

static aot_status_t lower_kernel(bc_build_t *b, const rk_kernel_t *kernel, const cu_node_t *custom, rk_arg_t *args) {
  uint32_t n = b->node->n_results, most = b->node->n_operands + b->node->n_args + n + 1;
  rk_tensor_t *results = bc_pool_alloc(b->pool, ((uint64_t)n + 1) * sizeof *results);
  bc_tensor_t *own = bc_pool_alloc(b->pool, ((uint64_t)n + 1) * sizeof *own);
  reference_step_t *p;
  if (!results || !own) return no_memory(b);
  for (uint32_t r = 0; r < n; r++) {
    if (!keep_memory(b, custom, r, &own[r])) AOT_TRY(bc_result(b, r, &own[r]));
    if (own[r].dtype) results[r] = bc_rk_tensor(b, &own[r]);
  }
  BC_STEP(b, run_reference, p);
  p->kernel = kernel;
  p->custom = custom;
  p->args = args;
  p->call = (rk_call_t){args, b->node->n_args, results, n};
  p->tensors = bc_pool_alloc(b->pool, most * sizeof *p->tensors);
  p->refs = bc_pool_alloc(b->pool, most * sizeof *p->refs);
  p->floats = bc_pool_alloc(b->pool, ((uint64_t)b->node->n_args + 1) * sizeof *p->floats);
  if (!p->tensors || !p->refs || !p->floats) return no_memory(b);
  remember_args(b, p, args);
  for (uint32_t r = 0; r < n; r++) remember(b, p, &results[r], &own[r]);
  b->out->n_fallback++;
  return AOT_OK;
}

aot_status_t bc_lower_reference(bc_build_t *b) {
  const rk_kernel_t *kernel = bc_op(b)->kernel;
  aot_str_t name = op_name(b);
  rk_arg_t *args;
  if (!kernel)
    return bc_fail(b->error, AOT_E_UNIMPLEMENTED, "no-kernel", "%.*s is not supported in this form", (int)name.size,
                   name.data);
  if (rk_needs_storage(kernel)) AOT_TRY(declare_first(b));
  AOT_TRY(bc_rk_args(b, &args));
  const char *refusal = rk_refuse(kernel, args, b->node->n_args);
  if (refusal) return bc_fail(b->error, AOT_E_UNIMPLEMENTED, "refused", "%.*s: %s", (int)name.size, name.data, refusal);
  if (rk_is_view(kernel)) {
    aot_status_t status = lower_view(b, kernel, args);
    if (status != BC_DECLINED) return status;
  }
  return lower_kernel(b, kernel, NULL, args);
}

aot_status_t bc_lower_custom(bc_build_t *b, const cu_node_t *custom) {
  rk_arg_t *args;
  AOT_TRY(bc_rk_args(b, &args));
  return lower_kernel(b, NULL, custom, args);
}
