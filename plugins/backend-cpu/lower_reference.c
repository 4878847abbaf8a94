/* Whatever no lowering takes, of halves neither as floats, is run by its reference kernel (common/kernels), slow and
 * correct, or by the kernel that a plugin has for it (common/custom). */
#include "target.h"

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

aot_status_t bc_lower_kernel(bc_build_t *b, const rk_kernel_t *kernel, const cu_node_t *custom, rk_arg_t *args) {
  uint32_t n = b->node->n_results, most = b->node->n_operands + b->node->n_args + n + 1;
  rk_tensor_t *results = bc_pool_alloc(b->pool, ((uint64_t)n + 1) * sizeof *results);
  bc_tensor_t *own = bc_pool_alloc(b->pool, ((uint64_t)n + 1) * sizeof *own);
  reference_step_t *p;
  if (!results || !own) return no_memory(b);
  if (kernel && bc_op(b)->lower) {
    const aot_status_t status = bc_lower_in_float(b, bc_op(b)->lower);
    if (status != BC_DECLINED) return status;
  }
  if (kernel) {
    const aot_status_t status = bc_lower_constant(b, kernel, args);
    if (status != BC_DECLINED) return status;
  }
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
  if (kernel) b->out->n_fallback++;
  return AOT_OK;
}
