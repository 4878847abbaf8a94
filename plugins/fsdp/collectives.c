#include "collectives.h"

#include "kit/base/geometry.h"
#include <aot/ext/collect_together.h>
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Arguments, counted from 0, of one operator; a kernel's `self` leads to the row by its place. */
typedef struct row {
  const char *op;
  int32_t kind;
  int8_t reduce, size, root, splits, group; /* -1: it has none; splits: the first of two */
  aot_status_t(AOT_CALL *run)(const aot_kernel_t *kernel, const aot_kernel_call_t *call);
  uint32_t flags; /* AOT_KERNEL_* */
} row_t;

static aot_status_t AOT_CALL run(const aot_kernel_t *kernel, const aot_kernel_call_t *call);
static aot_status_t AOT_CALL begin(const aot_kernel_t *kernel, const aot_kernel_call_t *call);
static aot_status_t AOT_CALL wait_for(const aot_kernel_t *kernel, const aot_kernel_call_t *call);

/* clang-format off */
static const row_t table[FS_N_KERNELS] = {
    {"_c10d_functional.all_gather_into_tensor.default", AOT_COLLECTIVE_ALL_GATHER, -1, 1, -1, -1, 2, run, 0},
    {"_c10d_functional.reduce_scatter_tensor.default", AOT_COLLECTIVE_REDUCE_SCATTER, 1, 2, -1, -1, 3, run, 0},
    {"_c10d_functional.all_reduce.default", AOT_COLLECTIVE_ALL_REDUCE, 1, -1, -1, -1, 2, run, 0},
    {"_c10d_functional.broadcast.default", AOT_COLLECTIVE_BROADCAST, -1, -1, 1, -1, 2, run, 0},
    {"_c10d_functional.all_to_all_single.default", AOT_COLLECTIVE_ALL_TO_ALL, -1, -1, -1, 1, 3, run, 0},
    {"aot.start_all_gather.default", AOT_COLLECTIVE_ALL_GATHER, -1, 1, -1, -1, 2, begin, AOT_KERNEL_STARTS},
    {"aot.start_reduce_scatter.default", AOT_COLLECTIVE_REDUCE_SCATTER, 1, 2, -1, -1, 3, begin, AOT_KERNEL_STARTS},
    {"aot.start_all_reduce.default", AOT_COLLECTIVE_ALL_REDUCE, 1, -1, -1, -1, 2, begin, AOT_KERNEL_STARTS},
    {"aot.start_all_to_all.default", AOT_COLLECTIVE_ALL_TO_ALL, -1, 1, -1, -1, 2, begin, AOT_KERNEL_STARTS},
    {"aot.wait_for_ranks.default", 0, -1, -1, -1, -1, -1, wait_for, AOT_KERNEL_PASSES},
};
/* clang-format on */

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
  const int64_t *const strides = t->strides;
  int64_t index[AOT_MAX_RANK] = {0}, n = tn_numel(t->rank, t->sizes), place = 0;
  for (int64_t i = 0; i < n; i++, dense += size, tn_next(t->rank, t->sizes, index, 1, &strides, &place)) {
    char *at = first_of(t) + place * (int64_t)size;
    memcpy(is_out ? at : dense, is_out ? dense : at, (size_t)size);
  }
}

/* ---- the call ---- */

static int32_t reduction(const aot_kernel_arg_t *a) {
  static const char *const names[] = {"", "sum", "max", "min", "avg", "product"};
  for (int32_t i = 1; i <= AOT_REDUCE_PRODUCT; i++)
    if (a->kind == AOT_ARG_STR && aot_str_eq((aot_str_t){a->u.chars, a->n}, aot_str(names[i]))) return i;
  return 0;
}

/* Bytes of the pieces along dim 0; 0: they are not given, all are alike. */
static int pieces(const aot_kernel_arg_t *a, const aot_tensor_t *t, uint32_t n_ranks, uint64_t *out) {
  const uint64_t row = t->rank && t->sizes[0] ? nbytes_of(t) / (uint64_t)t->sizes[0] : 0;
  if (a->kind != AOT_ARG_INTS || a->n != n_ranks) return 0;
  for (uint32_t r = 0; r < n_ranks; r++) out[r] = (uint64_t)a->u.ints[r] * row;
  return 1;
}

/* With the ranks' own sentence, if there is one. */
static aot_status_t told(const fs_kernels_t *k, const aot_kernel_call_t *call, aot_status_t status) {
  char text[320];
  if (status == AOT_OK) return AOT_OK;
  const aot_str_t why = fs_groups_failure(k->groups);
  snprintf(text, sizeof text, "%.*s", (int)why.size, why.data);
  return bad(call, status, text);
}

typedef struct on {
  const aot_device_t *device; /* NULL, both: the host's memory, and it is done when collect returns */
  aot_queue_t *queue;
} on_t;

static aot_collective_t describe(const row_t *row, const aot_kernel_call_t *call, on_t on, aot_buffer_t from,
                                 aot_buffer_t to) {
  const aot_kernel_arg_t *a = call->args;
  return (aot_collective_t){.struct_size = sizeof(aot_collective_t),
                            .kind = row->kind,
                            .reduce = row->reduce < 0 ? 0 : reduction(&a[row->reduce]),
                            .dtype = call->results[0].dtype,
                            .root = row->root < 0 ? 0 : (uint32_t)a[row->root].u.i,
                            .to = to,
                            .from = from,
                            .device = on.device,
                            .queue = on.queue,
                            .what = aot_str(on.queue ? row->op : "")};
}

static aot_status_t collect(const fs_kernels_t *k, const row_t *row, const fs_group_t *g, const aot_kernel_call_t *call,
                            on_t on, void *from, void *to) {
  const aot_kernel_arg_t *a = call->args;
  const aot_communicator_t *c = k->groups->ranks.communicator;
  uint64_t *sizes = row->splits < 0 ? NULL : calloc(2 * (size_t)g->n_ranks, sizeof *sizes);
  aot_collective_t what = describe(row, call, on, (aot_buffer_t){(uintptr_t)from, nbytes_of(a[0].u.tensor)},
                                   (aot_buffer_t){(uintptr_t)to, nbytes_of(&call->results[0])});
  if (sizes && pieces(&a[row->splits], &call->results[0], g->n_ranks, sizes) &&
      pieces(&a[row->splits + 1], a[0].u.tensor, g->n_ranks, sizes + g->n_ranks)) {
    what.receive = sizes;
    what.send = sizes + g->n_ranks;
  }
  const aot_status_t status = c->collect(c, NULL, g->group, &what);
  free(sizes);
  return told(k, call, status);
}

static aot_status_t find_group(const fs_kernels_t *k, const aot_kernel_call_t *call, const aot_kernel_arg_t *a,
                               const fs_group_t **out) {
  const aot_str_t name = {a->kind == AOT_ARG_STR ? a->u.chars : "", a->kind == AOT_ARG_STR ? a->n : 0};
  char text[160];
  int is_new = 0;
  aot_status_t status = fs_group_find(k->groups, name, out, &is_new);
  if (status == AOT_OK && is_new) {
    AOT_TRY(told(k, call, fs_await_all(k->under_way)));
    return told(k, call, fs_group_make(k->groups, name, out));
  }
  if (status == AOT_OK) return AOT_OK;
  if (status == AOT_E_NOT_FOUND)
    return bad(call, AOT_E_UNIMPLEMENTED,
               "groups of ranks are \"world\", which is \"0\" in PyTorch, \"rows:N\" and \"columns:N\"");
  snprintf(text, sizeof text, "%u ranks do not make %.*s", k->groups->ranks.n_ranks, (int)name.size, name.data);
  return bad(call, status, text);
}

static aot_status_t check(const fs_kernels_t *k, const row_t *row, const aot_kernel_call_t *call,
                          const fs_group_t **out) {
  char text[160];
  AOT_TRY(find_group(k, call, &call->args[row->group], out));
  if (row->reduce >= 0 && !reduction(&call->args[row->reduce]))
    return bad(call, AOT_E_UNIMPLEMENTED, "reductions are sum, avg, max, min and product");
  if (row->size < 0 || call->args[row->size].u.i == (int64_t)(*out)->n_ranks) return AOT_OK;
  snprintf(text, sizeof text, "the program is made for %lld ranks, and there are %u",
           (long long)call->args[row->size].u.i, (*out)->n_ranks);
  return bad(call, AOT_E_PRECONDITION, text);
}

static aot_status_t AOT_CALL run(const aot_kernel_t *kernel, const aot_kernel_call_t *call) {
  const fs_kernels_t *k = kernel->head.self;
  const row_t *row = &table[kernel - k->rows];
  const fs_group_t *group;
  AOT_TRY(check(k, row, call, &group));
  AOT_TRY(told(k, call, fs_await_all(k->under_way))); /* those of a group are in one order on all ranks */
  const aot_tensor_t *in = call->args[0].u.tensor, *out = &call->results[0];
  char *from = is_dense(in) ? first_of(in) : malloc((size_t)nbytes_of(in) + 1);
  char *to = is_dense(out) ? first_of(out) : malloc((size_t)nbytes_of(out) + 1);
  aot_status_t status = from && to ? AOT_OK : bad(call, AOT_E_EXHAUSTED, "no memory left");
  if (status == AOT_OK && !is_dense(in)) move(in, from, 0);
  const uint64_t begin = fs_clock_ns();
  if (status == AOT_OK) status = collect(k, row, group, call, (on_t){NULL, NULL}, from, to);
  fs_count_wait(k->under_way, begin);
  if (status == AOT_OK && !is_dense(out)) move(out, to, 1);
  if (!is_dense(in)) free(from);
  if (!is_dense(out)) free(to);
  return status;
}

/* ---- on a device's queue ---- */

/* Tensors that go together: in row-major order, and of one dtype. */
static int go_together(const aot_kernel_call_t *call) {
  int all = 1;
  for (uint32_t i = 0; i < call->n_results; i++)
    all &= is_dense(call->args[0].u.tensors[i]) && is_dense(&call->results[i]) &&
           call->results[i].dtype == call->results[0].dtype;
  return all;
}

static int AOT_CALL takes(const aot_ext_queue_kernel_t *x, const aot_kernel_call_t *call) {
  const fs_kernels_t *k = x->head.self;
  const row_t *row = &table[x - k->on_queue];
  if (row->run == begin) return go_together(call);
  return is_dense(call->args[0].u.tensor) && is_dense(&call->results[0]);
}

static aot_status_t put_together(const fs_kernels_t *k, const row_t *row, const fs_group_t *g,
                                 const aot_kernel_call_t *call, on_t on) {
  const aot_communicator_t *c = k->groups->ranks.communicator;
  const aot_ext_collect_together_t *x = aot_ext(&c->head, AOT_EXT_COLLECT_TOGETHER);
  const uint32_t n = call->n_results;
  aot_collective_t *all = calloc((size_t)n + 1, sizeof *all);
  const aot_collective_t **list = calloc((size_t)n + 1, sizeof *list);
  aot_status_t status = all && list ? AOT_OK : AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < n && status == AOT_OK; i++) {
    const aot_tensor_t *in = call->args[0].u.tensors[i], *out = &call->results[i];
    all[i] = describe(row, call, on, (aot_buffer_t){(uintptr_t)first_of(in), nbytes_of(in)},
                      (aot_buffer_t){(uintptr_t)first_of(out), nbytes_of(out)});
    list[i] = &all[i];
    if (!x) status = c->collect(c, NULL, g->group, &all[i]);
  }
  if (status == AOT_OK && x && n) status = x->collect(x, NULL, g->group, list, n);
  free(all);
  free(list);
  return told(k, call, status);
}

/* What was in front of a wait on the queue is done when the queue comes to it. */
static aot_status_t copy_on_queue(const aot_kernel_call_t *call, const aot_device_t *device, aot_queue_t *queue) {
  const aot_tensor_t *in = call->args[0].u.tensor, *out = &call->results[0];
  if (first_of(in) == first_of(out) || nbytes_of(in) == 0) return AOT_OK;
  return device->copy(device, NULL, queue, (aot_buffer_t){(uintptr_t)first_of(out), nbytes_of(out)},
                      (uintptr_t)first_of(in));
}

static aot_status_t AOT_CALL enqueue(const aot_ext_queue_kernel_t *x, const aot_kernel_call_t *call,
                                     const aot_device_t *device, aot_queue_t *queue) {
  const fs_kernels_t *k = x->head.self;
  const row_t *row = &table[x - k->on_queue];
  const fs_group_t *group;
  if (row->run == wait_for) return copy_on_queue(call, device, queue);
  AOT_TRY(check(k, row, call, &group));
  if (row->run == begin) return put_together(k, row, group, call, (on_t){device, queue});
  return collect(k, row, group, call, (on_t){device, queue}, first_of(call->args[0].u.tensor),
                 first_of(&call->results[0]));
}

static const void *AOT_CALL extension(const aot_table_t *kernel, const char *id) {
  const fs_kernels_t *k = kernel->self;
  const uint64_t row = (uint64_t)((const aot_kernel_t *)(const void *)kernel - k->rows); /* head is first */
  const int goes = (k->groups->ranks.communicator->head.flags & AOT_COMMUNICATOR_STREAMS) != 0;
  return goes && strcmp(id, AOT_EXT_QUEUE_KERNEL) == 0 ? &k->on_queue[row] : NULL;
}

/* ---- those that continue ---- */

static uint64_t part_nbytes(const row_t *row, uint32_t n_ranks, const aot_tensor_t *in, const aot_tensor_t *out) {
  if (row->kind == AOT_COLLECTIVE_REDUCE_SCATTER) return nbytes_of(out);
  return row->kind == AOT_COLLECTIVE_ALL_TO_ALL ? nbytes_of(in) / n_ranks : nbytes_of(in);
}

static aot_status_t begin(const aot_kernel_t *kernel, const aot_kernel_call_t *call) {
  const fs_kernels_t *k = kernel->head.self;
  const row_t *row = &table[kernel - k->rows];
  const uint32_t n = call->n_results;
  const fs_group_t *group;
  AOT_TRY(check(k, row, call, &group));
  fs_part_t *parts = calloc((size_t)n + 1, sizeof *parts);
  aot_status_t status = parts ? AOT_OK : bad(call, AOT_E_EXHAUSTED, "no memory left");
  if (status == AOT_OK && !go_together(call))
    status = bad(call, AOT_E_UNIMPLEMENTED, "what goes on together is in row-major order, and of one dtype");
  for (uint32_t i = 0; i < n && status == AOT_OK; i++) {
    const aot_tensor_t *in = call->args[0].u.tensors[i], *out = &call->results[i];
    parts[i] = (fs_part_t){first_of(in), first_of(out), part_nbytes(row, group->n_ranks, in, out)};
    if (row->kind == AOT_COLLECTIVE_ALL_TO_ALL && nbytes_of(in) % group->n_ranks)
      status = bad(call, AOT_E_UNIMPLEMENTED, "a tensor that is exchanged has no even pieces");
  }
  if (status == AOT_OK && n) {
    const aot_collective_t how = {.struct_size = sizeof how,
                                  .kind = row->kind,
                                  .reduce = row->reduce < 0 ? 0 : reduction(&call->args[row->reduce]),
                                  .dtype = call->results[0].dtype,
                                  .what = aot_str(row->op)};
    status = told(k, call, fs_start(k->under_way, group->group, group->n_ranks, &how, parts, n));
  }
  free(parts);
  return status;
}

static aot_status_t wait_for(const aot_kernel_t *kernel, const aot_kernel_call_t *call) {
  const fs_kernels_t *k = kernel->head.self;
  const aot_tensor_t *in = call->args[0].u.tensor;
  const aot_status_t status = fs_await(k->under_way, first_of(in));
  if (status != AOT_E_NOT_FOUND) AOT_TRY(told(k, call, status)); /* else the backend had it done at its node */
  if (call->n_results == 0) return AOT_OK;
  char *dense = malloc((size_t)nbytes_of(in) + 1);
  if (!dense) return bad(call, AOT_E_EXHAUSTED, "no memory left");
  move(in, dense, 0);
  move(&call->results[0], dense, 1);
  free(dense);
  return AOT_OK;
}

static void AOT_CALL settle(const aot_kernel_t *kernel) {
  const fs_kernels_t *k = kernel->head.self;
  fs_settle(k->under_way);
}

static uint64_t AOT_CALL waited_ns(const aot_ext_waited_t *x) {
  fs_under_way_t *u = ((const fs_kernels_t *)x->head.self)->under_way;
  pthread_mutex_lock(&u->lock);
  const uint64_t ns = u->waited_ns;
  pthread_mutex_unlock(&u->lock);
  return ns;
}

void fs_kernels_init(fs_kernels_t *k, fs_groups_t *groups, fs_under_way_t *under_way) {
  k->groups = groups;
  k->under_way = under_way;
  for (int i = 0; i < FS_N_KERNELS; i++) {
    k->on_queue[i] = (aot_ext_queue_kernel_t){
        .head = {.struct_size = sizeof k->on_queue[i], .self = k}, .takes = takes, .enqueue = enqueue};
    k->rows[i] = (aot_kernel_t){
        .head = {.struct_size = sizeof k->rows[i], .flags = table[i].flags, .self = k, .get_ext = extension},
        .op = aot_str(table[i].op),
        .run = table[i].run,
        .settle = settle};
    k->list[i] = &k->rows[i];
  }
  k->ext = (aot_ext_kernels_t){
      .struct_size = sizeof k->ext, .kernels = k->list, .n_kernels = groups->ranks.communicator ? FS_N_KERNELS : 0};
  k->waited = (aot_ext_waited_t){.head = {.struct_size = sizeof k->waited, .self = k}, .ns = waited_ns};
}
