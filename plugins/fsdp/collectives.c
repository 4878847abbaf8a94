#include "collectives.h"

#include "common/tensor/geometry.h"
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORLD_OF_TORCH "0" /* how PyTorch names its group of all ranks */

/* Arguments, counted from 0, of one operator; a kernel's `self` leads to the row by its place. */
typedef struct row {
  const char *op;
  int32_t kind;
  int8_t reduce, size, root, splits, group; /* -1: it has none; splits: the first of two */
} row_t;
static const row_t table[FS_N_KERNELS] = {
    {"_c10d_functional.all_gather_into_tensor.default", AOT_COLLECTIVE_ALL_GATHER, -1, 1, -1, -1, 2},
    {"_c10d_functional.reduce_scatter_tensor.default", AOT_COLLECTIVE_REDUCE_SCATTER, 1, 2, -1, -1, 3},
    {"_c10d_functional.all_reduce.default", AOT_COLLECTIVE_ALL_REDUCE, 1, -1, -1, -1, 2},
    {"_c10d_functional.broadcast.default", AOT_COLLECTIVE_BROADCAST, -1, -1, 1, -1, 2},
    {"_c10d_functional.all_to_all_single.default", AOT_COLLECTIVE_ALL_TO_ALL, -1, -1, -1, 1, 3},
};

static aot_status_t bad(const aot_kernel_call_t *call, aot_status_t status, const char *text) {
  if (call->message_size) snprintf(call->message, call->message_size, "%s", text);
  return status;
}

/* ---- tensors in row-major order ---- */

static uint64_t nbytes_of(const aot_tensor_t *t) {
  return (uint64_t)tn_numel(t->rank, t->sizes) * aot_dtype_size(t->dtype);
}

static char *first_of(const aot_tensor_t *t) { return (char *)t->data + t->offset * (int64_t)aot_dtype_size(t->dtype); }

static int is_dense(const aot_tensor_t *t) { return tn_is_row_major(t->rank, t->sizes, t->strides); }

/* Between a tensor and its elements in row-major order. */
static void move(const aot_tensor_t *t, char *dense, int is_out) {
  const uint64_t size = aot_dtype_size(t->dtype);
  int64_t index[AOT_MAX_RANK] = {0}, n = tn_numel(t->rank, t->sizes);
  char *at = first_of(t);
  for (int64_t i = 0; i < n; i++, dense += size) {
    memcpy(is_out ? at : dense, is_out ? dense : at, (size_t)size);
    for (int32_t d = t->rank - 1; d >= 0; d--) {
      at += t->strides[d] * (int64_t)size;
      if (++index[d] < t->sizes[d]) break;
      at -= t->sizes[d] * t->strides[d] * (int64_t)size;
      index[d] = 0;
    }
  }
}

/* ---- the call ---- */

static int32_t reduction(const aot_kernel_arg_t *a) {
  static const char *const names[] = {"", "sum", "max", "min", "avg", "product"};
  for (int32_t i = 1; i <= AOT_REDUCE_PRODUCT; i++)
    if (a->kind == AOT_ARG_STR && aot_str_eq((aot_str_t){a->u.chars, a->n}, aot_str(names[i]))) return i;
  return 0;
}

static int names_all(const aot_kernel_arg_t *a) {
  const aot_str_t name = {a->u.chars, a->n};
  return a->kind == AOT_ARG_STR &&
         (aot_str_eq(name, aot_str(AOT_RANKS_ALL)) || aot_str_eq(name, aot_str(WORLD_OF_TORCH)));
}

/* Bytes of the pieces along dim 0; 0: they are not given, all are alike. */
static int pieces(const aot_kernel_arg_t *a, const aot_tensor_t *t, uint32_t n_ranks, uint64_t *out) {
  const uint64_t row = t->rank && t->sizes[0] ? nbytes_of(t) / (uint64_t)t->sizes[0] : 0;
  if (a->kind != AOT_ARG_INTS || a->n != n_ranks) return 0;
  for (uint32_t r = 0; r < n_ranks; r++) out[r] = (uint64_t)a->u.ints[r] * row;
  return 1;
}

static aot_status_t collect(const fs_kernels_t *k, const row_t *row, const aot_kernel_call_t *call, void *from,
                            void *to) {
  const aot_kernel_arg_t *a = call->args;
  const aot_communicator_t *c = k->ranks.communicator;
  uint64_t *sizes = row->splits < 0 ? NULL : calloc(2 * (size_t)k->ranks.n_ranks, sizeof *sizes);
  aot_collective_t what = {.struct_size = sizeof what,
                           .kind = row->kind,
                           .reduce = row->reduce < 0 ? 0 : reduction(&a[row->reduce]),
                           .dtype = call->results[0].dtype,
                           .root = row->root < 0 ? 0 : (uint32_t)a[row->root].u.i,
                           .to = {(uintptr_t)to, nbytes_of(&call->results[0])},
                           .from = {(uintptr_t)from, nbytes_of(a[0].u.tensor)}};
  if (sizes && pieces(&a[row->splits], &call->results[0], k->ranks.n_ranks, sizes) &&
      pieces(&a[row->splits + 1], a[0].u.tensor, k->ranks.n_ranks, sizes + k->ranks.n_ranks)) {
    what.receive = sizes;
    what.send = sizes + k->ranks.n_ranks;
  }
  const aot_status_t status = c->collect(c, NULL, k->ranks.group, &what);
  free(sizes);
  if (status == AOT_OK) return AOT_OK;
  aot_str_t why = {"", 0};
  char text[320];
  c->failure(c, k->ranks.group, &why);
  snprintf(text, sizeof text, "%.*s", (int)why.size, why.data);
  return bad(call, status, text);
}

static aot_status_t check(const fs_kernels_t *k, const row_t *row, const aot_kernel_call_t *call) {
  char text[160];
  if (!names_all(&call->args[row->group]))
    return bad(call, AOT_E_UNIMPLEMENTED, "there is one group of ranks, \"world\", which is \"0\" in PyTorch");
  if (row->reduce >= 0 && !reduction(&call->args[row->reduce]))
    return bad(call, AOT_E_UNIMPLEMENTED, "reductions are sum, avg, max, min and product");
  if (row->size < 0 || call->args[row->size].u.i == (int64_t)k->ranks.n_ranks) return AOT_OK;
  snprintf(text, sizeof text, "the program is made for %lld ranks, and there are %u",
           (long long)call->args[row->size].u.i, k->ranks.n_ranks);
  return bad(call, AOT_E_PRECONDITION, text);
}

static aot_status_t AOT_CALL run(const aot_kernel_t *kernel, const aot_kernel_call_t *call) {
  const fs_kernels_t *k = kernel->head.self;
  const row_t *row = &table[kernel - k->rows];
  AOT_TRY(check(k, row, call));
  const aot_tensor_t *in = call->args[0].u.tensor, *out = &call->results[0];
  char *from = is_dense(in) ? first_of(in) : malloc((size_t)nbytes_of(in) + 1);
  char *to = is_dense(out) ? first_of(out) : malloc((size_t)nbytes_of(out) + 1);
  aot_status_t status = from && to ? AOT_OK : bad(call, AOT_E_EXHAUSTED, "no memory left");
  if (status == AOT_OK && !is_dense(in)) move(in, from, 0);
  if (status == AOT_OK) status = collect(k, row, call, from, to);
  if (status == AOT_OK && !is_dense(out)) move(out, to, 1);
  if (!is_dense(in)) free(from);
  if (!is_dense(out)) free(to);
  return status;
}

void fs_kernels_init(fs_kernels_t *k, const aot_run_ranks_t *ranks) {
  k->ranks = *ranks;
  for (int i = 0; i < FS_N_KERNELS; i++) {
    k->rows[i] =
        (aot_kernel_t){.head = {.struct_size = sizeof k->rows[i], .self = k}, .op = aot_str(table[i].op), .run = run};
    k->list[i] = &k->rows[i];
  }
  k->ext = (aot_ext_kernels_t){
      .struct_size = sizeof k->ext, .kernels = k->list, .n_kernels = ranks->communicator ? FS_N_KERNELS : 0};
}
