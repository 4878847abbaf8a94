#include "lower.h"
#include "group_read.h"

#include "common/loops/loop.h"
#include "common/tensor/geometry.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors and memory ---- */

aot_status_t bc_fail(bc_error_t *e, aot_status_t status, const char *code, const char *format, ...) {
  va_list list;
  va_start(list, format);
  vsnprintf(e->text, sizeof e->text, format, list);
  va_end(list);
  e->code = code;
  return status;
}

typedef struct bc_pool_block {
  struct bc_pool_block *next;
  uint64_t used, capacity, pad;
} bc_pool_block_t;

void *bc_pool_alloc(bc_pool_t *p, uint64_t nbytes) {
  nbytes = (nbytes + 15) & ~UINT64_C(15);
  if (!p->blocks || p->blocks->capacity - p->blocks->used < nbytes) {
    uint64_t capacity = nbytes > 65536 ? nbytes : 65536;
    bc_pool_block_t *block = calloc(1, sizeof *block + (size_t)capacity);
    if (!block) return NULL;
    block->capacity = capacity;
    block->next = p->blocks;
    p->blocks = block;
  }
  char *at = (char *)(p->blocks + 1) + p->blocks->used;
  p->blocks->used += nbytes;
  return at;
}

typedef struct bc_pool_owned {
  struct bc_pool_owned *next;
  void *what;
  void (*destroy)(void *what);
} bc_pool_owned_t;

void bc_pool_deinit(bc_pool_t *p) {
  for (bc_pool_owned_t *o = p->owned; o; o = o->next) o->destroy(o->what);
  p->owned = NULL;
  while (p->blocks) {
    bc_pool_block_t *next = p->blocks->next;
    free(p->blocks);
    p->blocks = next;
  }
}

static aot_status_t no_memory(bc_build_t *b) {
  return bc_fail(b->error, AOT_E_EXHAUSTED, "no-memory", "no memory for the schedule");
}

aot_status_t bc_own(bc_build_t *b, void *what, void (*destroy)(void *what)) {
  bc_pool_owned_t *o = bc_pool_alloc(b->pool, sizeof *o);
  if (!o) {
    destroy(what);
    return no_memory(b);
  }
  *o = (bc_pool_owned_t){b->pool->owned, what, destroy};
  b->pool->owned = o;
  return AOT_OK;
}

/* ---- arguments ---- */

const aot_snap_arg_t *bc_arg(const bc_build_t *b, uint32_t k) {
  static const aot_snap_arg_t none = {AOT_ARG_NONE, 0, 0};
  return k < b->node->n_args ? AOT_SNAP_ROWS(b->s, aot_snap_arg_t, args) + b->node->arg_begin + k : &none;
}

static double float_of(int64_t bits) {
  double f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

int64_t bc_arg_int(const bc_build_t *b, uint32_t k, int64_t preset) {
  const aot_snap_arg_t *a = bc_arg(b, k);
  switch (a->kind) {
    case AOT_ARG_NONE: return preset;
    case AOT_ARG_FLOAT: return (int64_t)float_of(a->i);
    case AOT_ARG_INT: return bc_dim(b, a->i);
    case AOT_ARG_VALUE:
      return bc_value(b, (uint32_t)a->i)->kind == AOT_TYPE_TENSOR ? preset : bc_value(b, (uint32_t)a->i)->number;
    default: return a->i;
  }
}

double bc_arg_float(const bc_build_t *b, uint32_t k, double preset) {
  const aot_snap_arg_t *a = bc_arg(b, k);
  if (a->kind == AOT_ARG_FLOAT) return float_of(a->i);
  if (a->kind == AOT_ARG_INT || a->kind == AOT_ARG_BOOL) return (double)bc_arg_int(b, k, 0);
  return preset;
}

uint32_t bc_arg_ints(const bc_build_t *b, uint32_t k, int64_t *out, uint32_t capacity) {
  const aot_snap_arg_t *a = bc_arg(b, k);
  const int64_t *ints = AOT_SNAP_ROWS(b->s, int64_t, ints);
  uint32_t n = a->n < capacity ? a->n : capacity;
  if (a->kind == AOT_ARG_INT && capacity) {
    out[0] = bc_dim(b, a->i);
    return 1;
  }
  if (a->kind != AOT_ARG_INTS && a->kind != AOT_ARG_BOOLS) return 0;
  for (uint32_t i = 0; i < n; i++) out[i] = bc_dim(b, ints[(uint64_t)a->i + i]);
  return n;
}

bc_value_t *bc_value(const bc_build_t *b, uint32_t row) { return &b->values[row - b->value_begin]; }

const bc_tensor_t *bc_arg_tensor(const bc_build_t *b, uint32_t k) {
  const aot_snap_arg_t *a = bc_arg(b, k);
  if (a->kind != AOT_ARG_VALUE) return NULL;
  const bc_value_t *v = bc_value(b, (uint32_t)a->i);
  return v->kind == AOT_TYPE_TENSOR ? &v->t : NULL;
}

/* Until its node is lowered a value's slot holds the declared geometry. */
const bc_tensor_t *bc_type(const bc_build_t *b, uint32_t result) {
  return &bc_value(b, b->node->result_begin + result)->t;
}

/* ---- tensors ---- */

int64_t bc_numel(const bc_tensor_t *t) { return tn_numel(t->rank, t->sizes); }

int bc_same_sizes(const bc_tensor_t *a, const bc_tensor_t *b) {
  return a->rank == b->rank && memcmp(a->sizes, b->sizes, (size_t)a->rank * sizeof a->sizes[0]) == 0;
}

int64_t bc_place(const bc_tensor_t *t, int64_t element) {
  int64_t place = 0;
  for (int32_t d = t->rank - 1; d >= 0; element /= t->sizes[d], d--) place += element % t->sizes[d] * t->strides[d];
  return place;
}

int bc_is_contiguous(const bc_tensor_t *t) { return tn_is_row_major(t->rank, t->sizes, t->strides); }

void bc_make_contiguous(bc_tensor_t *t) {
  t->offset = 0;
  tn_row_major(t->rank, t->sizes, t->strides);
}

uint64_t bc_extent(const bc_tensor_t *t) {
  int64_t first, last;
  if (!tn_reach(t->rank, t->sizes, t->strides, t->offset, &first, &last)) return 0;
  return (uint64_t)(last + 1) * aot_dtype_size(t->dtype);
}

int bc_same_geometry(const bc_tensor_t *a, const bc_tensor_t *b) {
  if (a->rank != b->rank || a->dtype != b->dtype || a->offset != b->offset) return 0;
  for (int32_t d = 0; d < a->rank; d++)
    if (a->sizes[d] != b->sizes[d] || (a->sizes[d] != 1 && a->strides[d] != b->strides[d])) return 0;
  return 1;
}

rk_tensor_t bc_rk_tensor(const bc_build_t *b, const bc_tensor_t *t) {
  rk_tensor_t r;
  memset(&r, 0, sizeof r);
  r.nbytes = t->storage == BC_NONE ? 0 : b->out->storages[t->storage].nbytes;
  r.dtype = t->dtype;
  r.rank = t->rank;
  r.offset = t->offset;
  memcpy(r.sizes, t->sizes, sizeof r.sizes);
  memcpy(r.strides, t->strides, sizeof r.strides);
  return r;
}

/* ---- storages ---- */

/* Dense in some order of the dimensions, so that no two elements share a place. */
static int is_dense(const bc_tensor_t *t) {
  int64_t n = 1, last = 0;
  for (int32_t d = 0; d < t->rank; d++) {
    if (t->strides[d] < 0 || (t->sizes[d] > 1 && t->strides[d] == 0)) return 0;
    n *= t->sizes[d];
    last += t->sizes[d] > 0 ? (t->sizes[d] - 1) * t->strides[d] : 0;
  }
  return n == 0 || last + 1 == n;
}

aot_status_t bc_new_tensor(bc_build_t *b, bc_tensor_t *t) {
  bc_schedule_t *s = b->out;
  if (s->n_storages == s->storage_capacity) {
    uint32_t capacity = s->storage_capacity ? 2 * s->storage_capacity : 64;
    bc_storage_t *grown = realloc(s->storages, capacity * sizeof *grown);
    if (!grown) return no_memory(b);
    s->storages = grown;
    s->storage_capacity = capacity;
  }
  t->storage = s->n_storages;
  s->storages[s->n_storages++] = (bc_storage_t){
      .kind = BC_ARENA,
      .nbytes = bc_extent(t),
      .first = BC_NONE,
      .last = BC_NONE,
      .last_apart = BC_NONE,
      .value = AOT_NO_ID,
  };
  return AOT_OK;
}

void bc_bind(bc_build_t *b, uint32_t k, const bc_tensor_t *t) {
  const uint32_t row = b->node->result_begin + k;
  bc_value(b, row)->t = *t;
  if (t->storage == BC_NONE) return;
  bc_storage_t *s = &b->out->storages[t->storage];
  if (s->value == AOT_NO_ID) s->value = AOT_SNAP_ROWS(b->s, aot_snap_value_t, values)[row].id; /* views come later */
}

void bc_result_geometry(bc_tensor_t *t) {
  t->offset = 0;
  if (!is_dense(t)) bc_make_contiguous(t);
}

static aot_status_t new_result(bc_build_t *b, uint32_t k, int dense, bc_tensor_t *out) {
  *out = *bc_type(b, k);
  out->storage = BC_NONE;
  if (!out->dtype) return AOT_OK;
  bc_result_geometry(out);
  if (dense) bc_make_contiguous(out);
  AOT_TRY(bc_new_tensor(b, out));
  bc_bind(b, k, out);
  return AOT_OK;
}

aot_status_t bc_result(bc_build_t *b, uint32_t k, bc_tensor_t *out) { return new_result(b, k, 0, out); }
aot_status_t bc_result_dense(bc_build_t *b, uint32_t k, bc_tensor_t *out) { return new_result(b, k, 1, out); }

aot_status_t bc_scratch(bc_build_t *b, uint64_t nbytes, bc_tensor_t *out) {
  memset(out, 0, sizeof *out);
  out->dtype = AOT_U8;
  out->rank = 1;
  out->sizes[0] = (int64_t)nbytes;
  out->strides[0] = 1;
  return bc_new_tensor(b, out);
}

aot_status_t bc_contiguous(bc_build_t *b, const bc_tensor_t *t, bc_tensor_t *out) {
  bc_tensor_t source = *t; /* t may stand in the table of values, out too */
  *out = source;
  if (bc_is_contiguous(&source)) return AOT_OK;
  bc_make_contiguous(out);
  AOT_TRY(bc_new_tensor(b, out));
  return bc_copy(b, out, &source);
}

/* ---- steps ---- */

aot_status_t bc_add_step(bc_build_t *b, bc_run_fn run, const char *kernel, uint64_t payload_size, void *out_payload) {
  bc_schedule_t *s = b->out;
  void *payload = bc_pool_alloc(b->pool, payload_size);
  if (!payload) return no_memory(b);
  if (s->n_steps == s->step_capacity) {
    uint32_t capacity = s->step_capacity ? 2 * s->step_capacity : 64;
    bc_step_t *grown = realloc(s->steps, capacity * sizeof *grown);
    if (!grown) return no_memory(b);
    s->steps = grown;
    s->step_capacity = capacity;
  }
  s->steps[s->n_steps++] = (bc_step_t){
      .run = run,
      .payload = payload,
      .node = b->node ? b->node->id : AOT_NO_ID,
      .kernel = kernel,
  };
  memcpy(out_payload, &payload, sizeof payload);
  return AOT_OK;
}

/* Bytes of the elements that the tensor has: one that is read along a stride of 0 counts once. */
static uint64_t distinct_nbytes(const bc_tensor_t *t) {
  uint64_t n = aot_dtype_size(t->dtype);
  for (int32_t d = 0; d < t->rank; d++)
    if (t->strides[d] || !t->sizes[d]) n *= (uint64_t)t->sizes[d];
  return n;
}

bc_ref_t bc_use(bc_build_t *b, const bc_tensor_t *t) {
  if (!t || !t->dtype || t->storage == BC_NONE) return (bc_ref_t){BC_NONE, 0};
  bc_storage_t *s = &b->out->storages[t->storage];
  uint32_t now = b->out->n_steps - 1;
  b->out->steps[now].nbytes += distinct_nbytes(t);
  if (s->first == BC_NONE) s->first = now;
  s->last = s->last_apart = now;
  return (bc_ref_t){t->storage, t->offset * (int64_t)aot_dtype_size(t->dtype)};
}

bc_ref_t bc_use_in_place(bc_build_t *b, const bc_tensor_t *t) {
  if (!t || !t->dtype || t->storage == BC_NONE) return (bc_ref_t){BC_NONE, 0};
  bc_storage_t *s = &b->out->storages[t->storage];
  const uint32_t last_apart = s->last_apart;
  const bc_ref_t ref = bc_use(b, t);
  s->last_apart = last_apart;
  return ref;
}

/* ---- operators ---- */

static bc_lower_fn find_lowering(const bc_target_t *target, aot_str_t op) {
  for (uint32_t t = 0; t < target->n_tables; t++)
    for (uint32_t r = 0; r < target->tables[t]->n_rows; r++)
      if (aot_str_eq(aot_str(target->tables[t]->rows[r].op), op)) return target->tables[t]->rows[r].lower;
  return NULL;
}

aot_status_t bc_find_ops(bc_build_t *b) {
  const aot_snap_op_t *rows = AOT_SNAP_ROWS(b->s, aot_snap_op_t, ops);
  bc_op_t *ops = bc_pool_alloc(b->pool, ((uint64_t)b->s->ops.count + 1) * sizeof *ops);
  if (!ops) return no_memory(b);
  for (uint32_t o = 1; o < b->s->ops.count; o++) {
    const aot_str_t name = aot_snap_text(b->s, rows[o].name);
    ops[o] = (bc_op_t){find_lowering(b->machine->target, name),
                       rk_find(name),
                       lp_op_find(name),
                       lp_row_op_find(name),
                       bc_read_find(name),
                       bc_write_find(name)};
  }
  b->ops = ops;
  return AOT_OK;
}
