#include "kernel_step.h"

#include <aot/assert.h>
#include <stdio.h>
#include <string.h>

/* ---- kernels ---- */

/* A line that the program prints. */
static void say(void *self, const char *text, uint32_t n) {
  (void)self;
  fwrite(text, 1, n, stdout);
  fputc('\n', stdout);
  fflush(stdout);
}

aot_status_t lw_run_kernel(const lw_kernel_step_t *p, char *const *base, lw_error_t *e) {
  rk_error_t error;
  for (uint32_t k = 0; k < p->n_tensors; k++) p->tensors[k]->data = base[p->refs[k].storage];
  for (uint32_t k = 0; k < p->n_floats; k++)
    memcpy(&p->args[p->floats[k].arg].u.f, base[p->floats[k].at.storage] + p->floats[k].at.at, sizeof(double));
  const rk_caller_t caller = {.say = say};
  aot_status_t status =
      p->custom ? custom_run(p->custom, p->call.args, p->call.n_args, p->call.results, p->call.n_results, &error)
                : rk_run_for(p->kernel, &p->call, &caller, &error);
  return status == AOT_OK ? AOT_OK : lw_fail(e, status, "kernel-failed", "%s", error.text);
}

/* A plugin's kernel may write into what it reads. */
static void remember(lw_build_t *b, lw_kernel_step_t *p, rk_tensor_t *t, const lw_tensor_t *own, int is_operand) {
  if (!t || !t->dtype || own->storage == LW_NONE) return;
  p->tensors[p->n_tensors] = t;
  p->refs[p->n_tensors++] = !is_operand ? lw_use(b, own) : p->custom ? lw_use_update(b, own) : lw_use_read(b, own);
  AOT_ASSERT(p->refs[p->n_tensors - 1].storage == own->storage); /* lw_run_kernel finds memory by it */
}

static void remember_args(lw_build_t *b, lw_kernel_step_t *p, rk_arg_t *args) {
  const uint32_t *rows = AOT_SNAP_ROWS(b->s, uint32_t, operands);
  for (uint32_t k = 0; k < b->node->n_args; k++) {
    const aot_snap_arg_t *a = lw_arg(b, k);
    const lw_value_t *v = a->kind == AOT_ARG_VALUE ? lw_value(b, (uint32_t)a->i) : NULL;
    if (v && v->kind == AOT_TYPE_SYMFLOAT) p->floats[p->n_floats++] = (lw_kernel_float_t){k, lw_use_read(b, &v->t)};
    if (args[k].kind == AOT_ARG_VALUE)
      remember(b, p, (rk_tensor_t *)(uintptr_t)args[k].u.tensor, &lw_value(b, (uint32_t)a->i)->t, 1);
    for (uint32_t i = 0; args[k].kind == AOT_ARG_VALUES && i < args[k].n; i++)
      if (args[k].u.tensors[i])
        remember(b, p, (rk_tensor_t *)(uintptr_t)args[k].u.tensors[i], &lw_value(b, rows[a->i + (int64_t)i])->t, 1);
  }
}

/* What a kernel lets through stays where it is. */
static int pass_memory(lw_build_t *b, const custom_node_t *custom, lw_tensor_t *out) {
  const lw_tensor_t *from = custom && custom->passes ? lw_arg_tensor(b, 0) : NULL;
  if (!from || !from->dtype || from->storage == LW_NONE || !lw_same_sizes(from, lw_type(b, 0))) return 0;
  *out = *from;
  lw_bind(b, 0, out);
  return 1;
}

/* A written operand's memory becomes that of its new value where nothing can determine. */
static int keep_memory(lw_build_t *b, const custom_node_t *custom, uint32_t r, lw_tensor_t *out) {
  if (pass_memory(b, custom, out)) return 1;
  if (!custom || r < custom->n_own || !custom->written[r - custom->n_own].in_place) return 0;
  const lw_tensor_t *from = &lw_value(b, custom->written[r - custom->n_own].value)->t;
  lw_tensor_t dense = *from;
  if (!from->dtype || from->storage == LW_NONE || b->out->storages[from->storage].kind != LW_ARENA) return 0;
  lw_result_geometry(&dense);
  dense.offset = from->offset;
  if (!lw_same_geometry(&dense, from) || from->dtype != lw_type(b, r)->dtype || !lw_same_sizes(from, lw_type(b, r)))
    return 0;
  *out = *from;
  lw_bind(b, r, out);
  return 1;
}

aot_status_t lw_add_kernel_step(lw_build_t *b, lw_run_fn run, const rk_kernel_t *kernel, const custom_node_t *custom,
                                rk_arg_t *args, lw_kernel_step_t **out) {
  uint32_t n = b->node->n_results, most = b->node->n_operands + b->node->n_args + n + 1;
  rk_tensor_t *results = lw_pool_alloc(b->pool, ((uint64_t)n + 1) * sizeof *results);
  lw_tensor_t *own = lw_pool_alloc(b->pool, ((uint64_t)n + 1) * sizeof *own);
  lw_kernel_step_t *p;
  if (!results || !own) return lw_no_memory(b->error, "for a node's arguments");
  for (uint32_t r = 0; r < n; r++) {
    if (!keep_memory(b, custom, r, &own[r])) AOT_TRY(lw_result(b, r, &own[r]));
    if (own[r].dtype) results[r] = lw_rk_tensor(b, &own[r]);
  }
  LW_STEP(b, run, p);
  p->kernel = kernel;
  p->custom = custom;
  p->args = args;
  p->call = (rk_call_t){args, b->node->n_args, results, n};
  p->tensors = lw_pool_alloc(b->pool, most * sizeof *p->tensors);
  p->refs = lw_pool_alloc(b->pool, most * sizeof *p->refs);
  p->floats = lw_pool_alloc(b->pool, ((uint64_t)b->node->n_args + 1) * sizeof *p->floats);
  if (!p->tensors || !p->refs || !p->floats) return lw_no_memory(b->error, "for a node's arguments");
  remember_args(b, p, args);
  p->n_operands = p->n_tensors;
  for (uint32_t r = 0; r < n; r++) remember(b, p, &results[r], &own[r], 0);
  AOT_ASSERT(p->n_tensors <= most && p->n_floats <= b->node->n_args);
  if (kernel) b->out->n_fallback++;
  *out = p;
  return AOT_OK;
}
