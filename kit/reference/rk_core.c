/* The running call: its errors, its scratch memory, its arguments, its results. */
#include "rk_core.h"
#include <aot/inline.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Scratch memory of a call: a list of blocks. */
typedef struct rk_chunk {
  struct rk_chunk *next;
  uint64_t pad; /* the payload is 16-byte aligned */
} rk_chunk_t;

const rk_kernel_t *rk_find_in(const rk_family_t *family, aot_str_t full_name) {
  for (uint32_t r = 0; r < family->n_rows; r++) {
    const rk_kernel_t *k = &family->rows[r];
    if (strncmp(k->name, full_name.data, (size_t)full_name.size) == 0 && k->name[full_name.size] == 0) return k;
  }
  return NULL;
}

aot_status_t rk_fail(rk_ctx_t *c, aot_status_t status, const char *format, ...) {
  va_list list;
  int n = snprintf(c->error->text, sizeof c->error->text, "%s: ", c->kernel->name);
  va_start(list, format);
  if (n >= 0 && (size_t)n < sizeof c->error->text)
    vsnprintf(c->error->text + n, sizeof c->error->text - (size_t)n, format, list);
  va_end(list);
  return status;
}

aot_status_t rk_scratch(rk_ctx_t *c, int64_t n, size_t size, void *out_pointer) {
  uint64_t nbytes;
  rk_chunk_t *chunk = NULL;
  void *payload;
  if (n >= 0 && !__builtin_mul_overflow((uint64_t)n, (uint64_t)size, &nbytes) && nbytes < (UINT64_MAX >> 2))
    chunk = calloc(1, sizeof *chunk + (size_t)(nbytes ? nbytes : 1));
  if (!chunk) return rk_fail(c, AOT_E_EXHAUSTED, "no memory for %lld work elements of %zu bytes", (long long)n, size);
  chunk->next = c->chunks;
  c->chunks = chunk;
  payload = chunk + 1;
  memcpy(out_pointer, &payload, sizeof payload);
  return AOT_OK;
}

void rk_scratch_free(rk_ctx_t *c) {
  while (c->chunks) {
    rk_chunk_t *next = c->chunks->next;
    free(c->chunks);
    c->chunks = next;
  }
}

/* ---- arguments ---- */

int rk_has(const rk_ctx_t *c, uint32_t arg) { return arg < c->call->n_args && c->call->args[arg].kind != AOT_ARG_NONE; }

/* A 0-dim tensor in a number's place gives its element. */
static int number_from_tensor(const rk_arg_t *a) {
  return a->kind == AOT_ARG_VALUE && a->u.tensor->rank == 0 && a->u.tensor->data && rk_tensor_fits(a->u.tensor);
}
static const void *element_of(const rk_tensor_t *t) {
  return (const char *)t->data + t->offset * (int64_t)aot_dtype_size(t->dtype);
}

int64_t rk_int(const rk_ctx_t *c, uint32_t arg, int64_t preset) {
  const rk_arg_t *a;
  if (!rk_has(c, arg)) return preset;
  a = &c->call->args[arg];
  if (a->kind == AOT_ARG_FLOAT) return aot_float_to_int(a->u.f);
  if (a->kind == AOT_ARG_INTS || a->kind == AOT_ARG_BOOLS) return a->n ? a->u.ints[0] : preset;
  if (number_from_tensor(a)) return rk_load_i(element_of(a->u.tensor), a->u.tensor->dtype);
  if (a->kind == AOT_ARG_VALUE || a->kind == AOT_ARG_VALUES || a->kind == AOT_ARG_FLOATS || a->kind == AOT_ARG_STR)
    return preset;
  return a->u.i;
}

double rk_float(const rk_ctx_t *c, uint32_t arg, double preset) {
  const rk_arg_t *a;
  if (!rk_has(c, arg)) return preset;
  a = &c->call->args[arg];
  if (a->kind == AOT_ARG_FLOAT) return a->u.f;
  if (a->kind == AOT_ARG_FLOATS) return a->n ? a->u.floats[0] : preset;
  if (number_from_tensor(a)) return rk_load_f(element_of(a->u.tensor), a->u.tensor->dtype);
  return (double)rk_int(c, arg, aot_float_to_int(preset));
}

int rk_bool(const rk_ctx_t *c, uint32_t arg, int preset) { return rk_int(c, arg, preset) != 0; }

int rk_str_is(const rk_ctx_t *c, uint32_t arg, const char *text) {
  const rk_arg_t *a;
  if (!rk_has(c, arg)) return 0;
  a = &c->call->args[arg];
  return a->kind == AOT_ARG_STR && a->n == strlen(text) && memcmp(a->u.chars, text, a->n) == 0;
}

uint32_t rk_list(const rk_ctx_t *c, uint32_t arg, const int64_t **out) {
  const rk_arg_t *a;
  *out = NULL;
  if (!rk_has(c, arg)) return 0;
  a = &c->call->args[arg];
  if (a->kind == AOT_ARG_INTS || a->kind == AOT_ARG_BOOLS) {
    *out = a->u.ints;
    return a->n;
  }
  if (a->kind != AOT_ARG_INT && a->kind != AOT_ARG_BOOL) return 0;
  *out = &a->u.i;
  return 1;
}

aot_status_t rk_ints(rk_ctx_t *c, uint32_t arg, uint32_t n, const int64_t *preset, int64_t *out) {
  const int64_t *list;
  uint32_t have = rk_list(c, arg, &list), k;
  if (have == 0 && preset) {
    for (k = 0; k < n; k++) out[k] = preset[k];
    return AOT_OK;
  }
  RK_CHECK(c, have == n || (have == 1 && n > 0), "argument %u has %u numbers where %u are needed", arg, have, n);
  for (k = 0; k < n; k++) out[k] = list[have == 1 ? 0 : k];
  return AOT_OK;
}

static aot_status_t number_tensor(rk_ctx_t *c, const rk_arg_t *a, const rk_tensor_t **out) {
  rk_tensor_t *t = NULL;
  double *payload = NULL;
  RK_SCRATCH(c, 1, t);
  RK_SCRATCH(c, 1, payload);
  t->data = payload;
  t->nbytes = sizeof *payload;
  t->dtype = a->kind == AOT_ARG_FLOAT ? AOT_F64 : a->kind == AOT_ARG_BOOL ? AOT_BOOL : AOT_I64;
  if (a->kind == AOT_ARG_FLOAT) rk_store_f(payload, AOT_F64, a->u.f);
  else rk_store_i(payload, t->dtype, a->u.i);
  *out = t;
  return AOT_OK;
}

aot_status_t rk_tensor_of(rk_ctx_t *c, uint32_t arg, const rk_tensor_t **out) {
  const rk_arg_t *a;
  *out = NULL;
  if (!rk_has(c, arg)) return AOT_OK;
  a = &c->call->args[arg];
  if (a->kind == AOT_ARG_VALUE) {
    *out = a->u.tensor;
    return AOT_OK;
  }
  RK_CHECK(c, a->kind == AOT_ARG_INT || a->kind == AOT_ARG_FLOAT || a->kind == AOT_ARG_BOOL, "argument %u is no tensor",
           arg);
  return number_tensor(c, a, out);
}

aot_status_t rk_need_tensor(rk_ctx_t *c, uint32_t arg, const rk_tensor_t **out) {
  AOT_TRY(rk_tensor_of(c, arg, out));
  RK_CHECK(c, *out, "argument %u is absent where a tensor is needed", arg);
  return AOT_OK;
}

aot_status_t rk_tensors_of(rk_ctx_t *c, uint32_t arg, const rk_tensor_t *const **out, uint32_t *out_n) {
  const rk_arg_t *a = &c->call->args[arg];
  *out = NULL;
  *out_n = 0;
  if (!rk_has(c, arg)) return AOT_OK;
  RK_CHECK(c, a->kind == AOT_ARG_VALUES || a->n == 0, "argument %u is no list of tensors", arg);
  if (a->kind != AOT_ARG_VALUES) return AOT_OK;
  *out = a->u.tensors;
  *out_n = a->n;
  return AOT_OK;
}

aot_status_t rk_dim(rk_ctx_t *c, int64_t dim, int32_t rank, int32_t *out) {
  int64_t n = rank ? rank : 1;
  RK_CHECK(c, dim >= -n && dim < n, "dimension %lld is out of range for rank %d", (long long)dim, rank);
  *out = (int32_t)(dim < 0 ? dim + n : dim);
  return AOT_OK;
}

aot_status_t rk_dim_marks(rk_ctx_t *c, uint32_t arg, int32_t rank, int all_if_empty, uint8_t *out_marks) {
  const int64_t *dims;
  uint32_t n = rk_list(c, arg, &dims);
  memset(out_marks, n == 0 && all_if_empty, AOT_MAX_RANK);
  for (uint32_t k = 0; k < n; k++) {
    int32_t d = 0;
    AOT_TRY(rk_dim(c, dims[k], rank, &d));
    out_marks[d] = 1;
  }
  return AOT_OK;
}

/* ---- results ---- */

int rk_wants(const rk_ctx_t *c, uint32_t result) {
  return result < c->call->n_results && c->call->results[result].dtype != 0;
}
rk_tensor_t *rk_result(const rk_ctx_t *c, uint32_t result) { return &c->call->results[result]; }
int32_t rk_result_dtype(const rk_ctx_t *c, uint32_t result) {
  return rk_wants(c, result) ? c->call->results[result].dtype : 0;
}

int rk_is_open(const rk_ctx_t *c, const rk_tensor_t *t) {
  return c->caller && c->caller->place && !t->data && (c->kernel->flags & RK_OPEN);
}

static void print_sizes(char *out, size_t capacity, int32_t rank, const int64_t *sizes) {
  size_t n = (size_t)snprintf(out, capacity, "[");
  for (int32_t d = 0; d < rank && n < capacity; d++)
    n += (size_t)snprintf(out + n, capacity - n, "%s%lld", d ? "," : "", (long long)sizes[d]);
  if (n < capacity) snprintf(out + n, capacity - n, "]");
}

aot_status_t rk_check_result(rk_ctx_t *c, uint32_t result, int32_t rank, const int64_t *sizes) {
  const rk_tensor_t *t = rk_result(c, result);
  char want[96], have[96];
  if (rk_is_open(c, t)) return c->caller->place(c->caller->self, result, rank, sizes, c->error);
  if (t->rank == rank && (rank == 0 || memcmp(t->sizes, sizes, (size_t)rank * sizeof sizes[0]) == 0)) return AOT_OK;
  print_sizes(want, sizeof want, rank, sizes);
  print_sizes(have, sizeof have, t->rank, t->sizes);
  return rk_fail(c, AOT_E_INVALID, "result %u is declared %s, but the operator gives %s", result, have, want);
}
