/* The kernels, family by family, and the run of one: what rk.h declares. */
#include "rk_complex.h"
#include "rk_families.h"
#include <aot/inline.h>

static const rk_family_t *const families[] = {RK_FAMILIES};
#define N_FAMILIES (sizeof families / sizeof families[0])

const rk_kernel_t *rk_find(aot_str_t full_name) {
  const rk_kernel_t *k = NULL;
  for (size_t f = 0; f < N_FAMILIES && !k; f++) k = rk_find_in(families[f], full_name);
  return k;
}

uint32_t rk_count(void) {
  uint32_t n = 0;
  for (size_t f = 0; f < N_FAMILIES; f++) n += families[f]->n_rows;
  return n;
}

const rk_kernel_t *rk_at(uint32_t i) {
  for (size_t f = 0; f < N_FAMILIES; f++) {
    if (i < families[f]->n_rows) return &families[f]->rows[i];
    i -= families[f]->n_rows;
  }
  return NULL;
}

aot_str_t rk_name(const rk_kernel_t *k) { return aot_str(k->name); }
int rk_is_view(const rk_kernel_t *k) { return k->view != NULL; }
int rk_needs_storage(const rk_kernel_t *k) { return (k->flags & RK_STORAGE) != 0; }
int rk_gives_sizes(const rk_kernel_t *k) { return (k->flags & RK_OPEN) != 0; }
int rk_takes_complex(const rk_kernel_t *k) { return rk_complex_find(k) != NULL; }
int rk_is_fill(const rk_kernel_t *k) { return (k->flags & RK_FILL) != 0; }

/* Every tensor of the call is inside its storage and has a dtype that kernels can read. */
static aot_status_t check_tensor(rk_ctx_t *c, const rk_tensor_t *t, const char *what, uint32_t i) {
  RK_CHECK(c, rk_dtype_supported(t->dtype), "%s %u has dtype %s, which is not supported", what, i,
           aot_dtype_name(t->dtype));
  RK_CHECK(c, rk_tensor_fits(t), "%s %u reaches outside its storage of %llu bytes", what, i,
           (unsigned long long)t->nbytes);
  return AOT_OK;
}

static aot_status_t check_arguments(rk_ctx_t *c) {
  for (uint32_t a = 0; a < c->call->n_args; a++) {
    const rk_arg_t *arg = &c->call->args[a];
    if (arg->kind == AOT_ARG_VALUE) AOT_TRY(check_tensor(c, arg->u.tensor, "argument", a));
    for (uint32_t k = 0; arg->kind == AOT_ARG_VALUES && k < arg->n; k++)
      if (arg->u.tensors[k]) AOT_TRY(check_tensor(c, arg->u.tensors[k], "argument", a));
  }
  return AOT_OK;
}

static int has_complex(const rk_call_t *call) {
  for (uint32_t r = 0; r < call->n_results; r++)
    if (aot_dtype_is_complex(call->results[r].dtype)) return 1;
  for (uint32_t a = 0; a < call->n_args; a++) {
    const rk_arg_t *arg = &call->args[a];
    if (arg->kind == AOT_ARG_VALUE && aot_dtype_is_complex(arg->u.tensor->dtype)) return 1;
    for (uint32_t k = 0; arg->kind == AOT_ARG_VALUES && k < arg->n; k++)
      if (arg->u.tensors[k] && aot_dtype_is_complex(arg->u.tensors[k]->dtype)) return 1;
  }
  return 0;
}

static aot_status_t run_kernel(rk_ctx_t *c) {
  if (!has_complex(c->call)) return c->kernel->run(c);
  const rk_complex_row_t *row = rk_complex_find(c->kernel);
  if (!row) return rk_fail(c, AOT_E_UNIMPLEMENTED, "complex numbers are not supported");
  return rk_complex_run(c, row);
}

aot_status_t rk_run(const rk_kernel_t *k, const rk_call_t *call, rk_error_t *error) {
  return rk_run_for(k, call, NULL, error);
}

aot_status_t rk_run_for(const rk_kernel_t *k, const rk_call_t *call, const rk_caller_t *caller, rk_error_t *error) {
  rk_ctx_t c = {k, call, error, NULL, caller};
  aot_status_t status;
  error->text[0] = 0;
  status = check_arguments(&c);
  for (uint32_t r = 0; r < call->n_results && status == AOT_OK; r++)
    if (call->results[r].dtype && !rk_is_open(&c, &call->results[r]))
      status = check_tensor(&c, &call->results[r], "result", r);
  if (status == AOT_OK) status = run_kernel(&c);
  rk_scratch_free(&c);
  return status;
}

aot_status_t rk_view(const rk_kernel_t *k, const rk_call_t *call, rk_error_t *error) {
  rk_ctx_t c = {k, call, error, NULL, NULL};
  aot_status_t status;
  error->text[0] = 0;
  if (!k->view) return AOT_E_UNIMPLEMENTED;
  status = check_arguments(&c);
  if (status == AOT_OK) status = k->view(&c);
  for (uint32_t r = 0; r < call->n_results && status == AOT_OK; r++)
    status = check_tensor(&c, &call->results[r], "result", r);
  rk_scratch_free(&c);
  return status;
}

const char *rk_refuse(const rk_kernel_t *k, const rk_arg_t *args, uint32_t n_args) {
  rk_call_t call = {args, n_args, NULL, 0};
  rk_ctx_t c = {k, &call, NULL, NULL, NULL};
  if (k->flags & RK_DROPOUT && rk_bool(&c, 2, 1) && rk_float(&c, 1, 0) > 0)
    return "it draws random numbers (dropout with p > 0); make them explicit first (stage rng)";
  if (k->flags & RK_DROPOUT_P)
    for (uint32_t a = 3; a < n_args && a < 7; a++)
      if (args[a].kind == AOT_ARG_FLOAT) { /* the first float is dropout_p */
        if (args[a].u.f > 0) return "it draws random numbers (dropout_p > 0); make them explicit first (stage rng)";
        break;
      }
  return NULL;
}
