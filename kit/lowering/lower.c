#include "transaction.h"

#include "kit/base/errors.h"
#include "kit/base/vector.h"
#include "kit/model/value_size.h"
#include "kit/base/geometry.h"
#include <aot/assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors and memory ---- */

aot_status_t lw_fail(lw_error_t *e, aot_status_t status, const char *code, const char *format, ...) {
  va_list list;
  va_start(list, format);
  vsnprintf(e->text, sizeof e->text, format, list);
  va_end(list);
  e->code = code;
  return status;
}

aot_status_t lw_no_memory(lw_error_t *e, const char *format, ...) {
  va_list list;
  va_start(list, format);
  const aot_status_t status = kit_no_memory_list(e->text, sizeof e->text, format, list);
  va_end(list);
  e->code = "no-memory";
  return status;
}

typedef struct lw_pool_block {
  struct lw_pool_block *next;
  uint64_t used, capacity, pad;
} lw_pool_block_t;

void *lw_pool_alloc(lw_pool_t *p, uint64_t nbytes) {
  nbytes = (nbytes + 15) & ~UINT64_C(15);
  if (!p->blocks || p->blocks->capacity - p->blocks->used < nbytes) {
    uint64_t capacity = nbytes > 65536 ? nbytes : 65536;
    lw_pool_block_t *block = calloc(1, sizeof *block + (size_t)capacity);
    if (!block) return NULL;
    block->capacity = capacity;
    block->next = p->blocks;
    p->blocks = block;
  }
  char *at = (char *)(p->blocks + 1) + p->blocks->used;
  p->blocks->used += nbytes;
  AOT_ASSERT(p->blocks->used <= p->blocks->capacity && (uintptr_t)at % 16 == 0);
  return at;
}

typedef struct lw_pool_owned {
  struct lw_pool_owned *next;
  void *what;
  void (*destroy)(void *what);
} lw_pool_owned_t;

void lw_pool_deinit(lw_pool_t *p) {
  for (lw_pool_owned_t *o = p->owned; o; o = o->next) o->destroy(o->what);
  p->owned = NULL;
  while (p->blocks) {
    lw_pool_block_t *next = p->blocks->next;
    free(p->blocks);
    p->blocks = next;
  }
}

aot_status_t lw_own(lw_build_t *b, void *what, void (*destroy)(void *what)) {
  lw_pool_owned_t *o = lw_pool_alloc(b->pool, sizeof *o);
  if (!o) {
    destroy(what);
    return lw_no_memory(b->error, "for the schedule");
  }
  *o = (lw_pool_owned_t){b->pool->owned, what, destroy};
  b->pool->owned = o;
  return AOT_OK;
}

/* ---- arguments ---- */

const aot_snap_arg_t *lw_arg(const lw_build_t *b, uint32_t k) {
  static const aot_snap_arg_t none = {AOT_ARG_NONE, 0, 0};
  return k < b->node->n_args ? AOT_SNAP_ROWS(b->s, aot_snap_arg_t, args) + b->node->arg_begin + k : &none;
}

static double float_of(int64_t bits) {
  double f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

int64_t lw_arg_int(const lw_build_t *b, uint32_t k, int64_t preset) {
  const aot_snap_arg_t *a = lw_arg(b, k);
  switch (a->kind) {
    case AOT_ARG_NONE: return preset;
    case AOT_ARG_FLOAT: return (int64_t)float_of(a->i);
    case AOT_ARG_INT: return lw_dim(b, a->i);
    case AOT_ARG_VALUE:
      return lw_value(b, (uint32_t)a->i)->kind == AOT_TYPE_TENSOR ? preset : lw_value(b, (uint32_t)a->i)->number;
    default: return a->i;
  }
}

double lw_arg_float(const lw_build_t *b, uint32_t k, double preset) {
  const aot_snap_arg_t *a = lw_arg(b, k);
  if (a->kind == AOT_ARG_FLOAT) return float_of(a->i);
  if (a->kind == AOT_ARG_INT || a->kind == AOT_ARG_BOOL) return (double)lw_arg_int(b, k, 0);
  return preset;
}

uint32_t lw_arg_ints(const lw_build_t *b, uint32_t k, int64_t *out, uint32_t capacity) {
  const aot_snap_arg_t *a = lw_arg(b, k);
  const int64_t *ints = AOT_SNAP_ROWS(b->s, int64_t, ints);
  uint32_t n = a->n < capacity ? a->n : capacity;
  if (a->kind == AOT_ARG_INT && capacity) {
    out[0] = lw_dim(b, a->i);
    return 1;
  }
  if (a->kind != AOT_ARG_INTS && a->kind != AOT_ARG_BOOLS) return 0;
  for (uint32_t i = 0; i < n; i++) out[i] = lw_dim(b, ints[(uint64_t)a->i + i]);
  return n;
}

lw_value_t *lw_value(const lw_build_t *b, uint32_t row) {
  AOT_ASSERT(row >= b->value_begin && row - b->value_begin <= b->n_values);
  return &b->values[row - b->value_begin];
}

int lw_are_alike(const lw_build_t *build, uint32_t *a, uint32_t *b) {
  const aot_snapshot_t *s = build->s;
  const aot_snap_value_t *values = AOT_SNAP_ROWS(s, aot_snap_value_t, values);
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes);
  if (!values[*a].def || !values[*b].def) return 0;
  const aot_snap_node_t *x = nodes + values[*a].def, *y = nodes + values[*b].def;
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(s, aot_snap_arg_t, args);
  const int64_t *ints = AOT_SNAP_ROWS(s, int64_t, ints);
  if (AOT_SNAP_ROWS(s, aot_snap_op_t, ops)[x->op].flags & (AOT_OP_RANDOM | AOT_OP_EFFECT)) return 0;
  if (x->op != y->op || x->n_args != y->n_args || *a - x->result_begin != *b - y->result_begin) return 0;
  *a = *b;
  for (uint32_t k = 0; k < x->n_args; k++) {
    const aot_snap_arg_t *p = &args[x->arg_begin + k], *q = &args[y->arg_begin + k];
    if (p->kind != q->kind || p->n != q->n) return 0;
    if (p->i == q->i) continue;
    if (p->kind == AOT_ARG_INTS || p->kind == AOT_ARG_BOOLS) {
      if (memcmp(&ints[p->i], &ints[q->i], p->n * sizeof *ints)) return 0;
    } else if (p->kind == AOT_ARG_STR) {
      const char *chars = (const char *)s + s->chars.at;
      if (memcmp(chars + p->i, chars + q->i, p->n)) return 0;
    } else {
      if (p->kind != AOT_ARG_VALUE || *a != *b) return 0;
      *a = (uint32_t)p->i;
      *b = (uint32_t)q->i;
    }
  }
  return 1;
}

int lw_is_same_chain(const lw_build_t *b, uint32_t row, uint32_t other) {
  while (row != other)
    if (!lw_are_alike(b, &row, &other)) return 0;
  return 1;
}

const lw_tensor_t *lw_arg_tensor(const lw_build_t *b, uint32_t k) {
  const aot_snap_arg_t *a = lw_arg(b, k);
  if (a->kind != AOT_ARG_VALUE) return NULL;
  const lw_value_t *v = lw_value(b, (uint32_t)a->i);
  return v->kind == AOT_TYPE_TENSOR ? &v->t : NULL;
}

uint32_t lw_arg_row(const lw_build_t *b, uint32_t k) {
  const aot_snap_arg_t *a = lw_arg(b, k);
  return a->kind == AOT_ARG_VALUE ? (uint32_t)a->i : AOT_NO_ID;
}

int64_t lw_declared_stride(const lw_build_t *b, uint32_t row, int32_t d) {
  const aot_snap_value_t *v = AOT_SNAP_ROWS(b->s, aot_snap_value_t, values) + row;
  AOT_ASSERT(d >= 0 && d < v->rank);
  return lw_dim(b, AOT_SNAP_ROWS(b->s, int64_t, ints)[v->dims + (uint32_t)v->rank + (uint32_t)d]);
}

uint32_t lw_node_of(const lw_build_t *b, uint32_t row) {
  const uint32_t node = AOT_SNAP_ROWS(b->s, aot_snap_value_t, values)[row].def - b->graph->node_begin;
  return node < b->graph->n_nodes ? node : LW_NONE;
}

int lw_is_sum(const lw_build_t *b) {
  const aot_str_t name = aot_snap_text(b->s, AOT_SNAP_ROWS(b->s, aot_snap_op_t, ops)[b->node->op].name);
  const int has_factor = lw_arg(b, 2)->kind != AOT_ARG_NONE;
  return b->node->n_results == 1 && aot_str_eq(name, aot_str("aten.add.Tensor")) &&
         (!has_factor || lw_arg_float(b, 2, 0) == 1);
}

/* Until its node is lowered a value's slot holds the declared geometry. */
const lw_tensor_t *lw_type(const lw_build_t *b, uint32_t result) {
  return &lw_value(b, b->node->result_begin + result)->t;
}

/* ---- tensors ---- */

int64_t lw_numel(const lw_tensor_t *t) { return tn_numel(t->rank, t->sizes); }

int lw_same_sizes(const lw_tensor_t *a, const lw_tensor_t *b) {
  AOT_ASSERT(a->rank >= 0 && a->rank <= AOT_MAX_RANK && b->rank >= 0 && b->rank <= AOT_MAX_RANK);
  return a->rank == b->rank && memcmp(a->sizes, b->sizes, (size_t)a->rank * sizeof a->sizes[0]) == 0;
}

int64_t lw_place(const lw_tensor_t *t, int64_t element) {
  int64_t place = 0;
  for (int32_t d = t->rank - 1; d >= 0; element /= t->sizes[d], d--) place += element % t->sizes[d] * t->strides[d];
  return place;
}

int lw_is_contiguous(const lw_tensor_t *t) { return tn_is_row_major(t->rank, t->sizes, t->strides); }

void lw_make_contiguous(lw_tensor_t *t) {
  t->offset = 0;
  tn_row_major(t->rank, t->sizes, t->strides);
}

uint64_t lw_extent(const lw_tensor_t *t) {
  int64_t first, last;
  if (!tn_reach(t->rank, t->sizes, t->strides, t->offset, &first, &last)) return 0;
  return (uint64_t)(last + 1) * aot_dtype_size(t->dtype);
}

int lw_same_geometry(const lw_tensor_t *a, const lw_tensor_t *b) {
  if (a->rank != b->rank || a->dtype != b->dtype || a->offset != b->offset) return 0;
  for (int32_t d = 0; d < a->rank; d++)
    if (a->sizes[d] != b->sizes[d] || (a->sizes[d] != 1 && a->strides[d] != b->strides[d])) return 0;
  return 1;
}

rk_tensor_t lw_rk_tensor(const lw_build_t *b, const lw_tensor_t *t) {
  rk_tensor_t r;
  AOT_ASSERT(t->storage == LW_NONE || t->storage < b->out->n_storages);
  memset(&r, 0, sizeof r);
  r.nbytes = t->storage == LW_NONE ? 0 : b->out->storages[t->storage].nbytes;
  r.dtype = t->dtype;
  r.rank = t->rank;
  r.offset = t->offset;
  memcpy(r.sizes, t->sizes, sizeof r.sizes);
  memcpy(r.strides, t->strides, sizeof r.strides);
  return r;
}

/* ---- storages ---- */

/* Dense in some order of the dimensions, so that no two elements share a place. */
static int is_dense(const lw_tensor_t *t) {
  int64_t n = 1, last = 0;
  for (int32_t d = 0; d < t->rank; d++) {
    if (t->strides[d] < 0 || (t->sizes[d] > 1 && t->strides[d] == 0)) return 0;
    n *= t->sizes[d];
    last += t->sizes[d] > 0 ? (t->sizes[d] - 1) * t->strides[d] : 0;
  }
  return n == 0 || last + 1 == n;
}

aot_status_t lw_new_tensor(lw_build_t *b, lw_tensor_t *t) {
  lw_schedule_t *s = b->out;
  AOT_ASSERT(t->rank >= 0 && t->rank <= AOT_MAX_RANK);
  lw_storage_t *storages = kit_grow(s->storages, &s->storage_capacity, (uint64_t)s->n_storages + 1, sizeof *storages);
  if (!storages) return lw_no_memory(b->error, "for the schedule");
  s->storages = storages;
  t->storage = s->n_storages;
  s->storages[s->n_storages++] = (lw_storage_t){
      .kind = LW_ARENA,
      .nbytes = lw_extent(t),
      .first = LW_NONE,
      .last = LW_NONE,
      .last_apart = LW_NONE,
      .value = AOT_NO_ID,
      .taken = LW_NONE,
  };
  return AOT_OK;
}

void lw_bind(lw_build_t *b, uint32_t k, const lw_tensor_t *t) {
  const uint32_t row = b->node->result_begin + k, storage = t->storage;
  AOT_ASSERT(k < b->node->n_results && (storage == LW_NONE || storage < b->out->n_storages));
  lw_set_value(b, lw_value(b, row), t);
  if (storage == LW_NONE || b->out->storages[storage].value != AOT_NO_ID) return; /* views come later */
  lw_save_storage(b, storage);
  b->out->storages[storage].value = AOT_SNAP_ROWS(b->s, aot_snap_value_t, values)[row].id;
}

void lw_result_geometry(lw_tensor_t *t) {
  t->offset = 0;
  if (!is_dense(t)) lw_make_contiguous(t);
}

static aot_status_t new_result(lw_build_t *b, uint32_t k, int dense, lw_tensor_t *out) {
  *out = *lw_type(b, k);
  out->storage = LW_NONE;
  if (!out->dtype) return AOT_OK;
  lw_result_geometry(out);
  if (dense) lw_make_contiguous(out);
  AOT_TRY(lw_new_tensor(b, out));
  lw_bind(b, k, out);
  return AOT_OK;
}

aot_status_t lw_result(lw_build_t *b, uint32_t k, lw_tensor_t *out) { return new_result(b, k, 0, out); }
aot_status_t lw_result_dense(lw_build_t *b, uint32_t k, lw_tensor_t *out) { return new_result(b, k, 1, out); }

const lw_tensor_t *lw_place_of(const lw_build_t *b, uint32_t k) {
  const lw_tensor_t *place = b->places ? b->places[b->node->result_begin + k - b->value_begin] : NULL;
  return place && place->dtype == lw_type(b, k)->dtype && lw_same_sizes(place, lw_type(b, k)) ? place : NULL;
}

aot_status_t lw_scratch(lw_build_t *b, uint64_t nbytes, lw_tensor_t *out) {
  memset(out, 0, sizeof *out);
  out->dtype = AOT_U8;
  out->rank = 1;
  out->sizes[0] = (int64_t)nbytes;
  out->strides[0] = 1;
  return lw_new_tensor(b, out);
}

aot_status_t lw_contiguous(lw_build_t *b, const lw_tensor_t *t, lw_tensor_t *out) {
  lw_tensor_t source = *t; /* t may be in the table of values, out too */
  *out = source;
  if (lw_is_contiguous(&source)) return AOT_OK;
  lw_make_contiguous(out);
  AOT_TRY(lw_new_tensor(b, out));
  return lw_copy(b, out, &source);
}

/* ---- steps ---- */

aot_status_t lw_add_step(lw_build_t *b, lw_run_fn run, const char *kernel, uint64_t payload_size, void *out_payload) {
  lw_schedule_t *s = b->out;
  void *payload = lw_pool_alloc(b->pool, payload_size);
  if (!payload) return lw_no_memory(b->error, "for the schedule");
  lw_step_t *steps = kit_grow(s->steps, &s->step_capacity, (uint64_t)s->n_steps + 1, sizeof *steps);
  if (!steps) return lw_no_memory(b->error, "for the schedule");
  s->steps = steps;
  s->steps[s->n_steps++] = (lw_step_t){
      .run = run,
      .payload = payload,
      .node = b->node ? b->node->id : AOT_NO_ID,
      .kernel = kernel,
  };
  memcpy(out_payload, &payload, sizeof payload);
  return AOT_OK;
}

/* Bytes of the elements that the tensor has: one that is read along a stride of 0 counts once. */
static uint64_t distinct_nbytes(const lw_tensor_t *t) {
  uint64_t n = aot_dtype_size(t->dtype);
  for (int32_t d = 0; d < t->rank; d++)
    if (t->strides[d] || !t->sizes[d]) n *= (uint64_t)t->sizes[d];
  return n;
}

/* What a step reads of one storage by several tensors it reads once, at most all of it; what it writes likewise. */
static uint64_t counted_nbytes(const lw_schedule_t *s, uint32_t step, const lw_tensor_t *t, int is_read_only) {
  uint64_t before = 0;
  AOT_ASSERT(step + 1 == s->n_steps);
  const uint64_t nbytes = distinct_nbytes(t), whole = s->storages[t->storage].nbytes;
  for (uint32_t k = s->n_used; k-- > 0 && s->used[k].step == step;)
    if (s->used[k].storage == t->storage && s->used[k].is_read_only == is_read_only) before += s->used[k].nbytes;
  return before + nbytes <= whole ? nbytes : before < whole ? whole - before : 0;
}

static void remember(lw_schedule_t *s, lw_used_t used) {
  AOT_ASSERT(s->n_used == 0 || s->used[s->n_used - 1].step <= used.step); /* in the order of steps */
  lw_used_t *grown = kit_grow(s->used, &s->used_capacity, (uint64_t)s->n_used + 1, sizeof *grown);
  if (!grown) {
    s->is_incomplete = 1;
    return;
  }
  s->used = grown;
  s->used[s->n_used++] = used;
}

/* of: how it is used; the rest is found here. */
static lw_ref_t use(lw_build_t *b, const lw_tensor_t *t, lw_used_t of, int is_in_place) {
  if (!t || !t->dtype || t->storage == LW_NONE) return (lw_ref_t){LW_NONE, 0};
  AOT_ASSERT(b->out->n_steps > 0 && t->storage < b->out->n_storages); /* a use belongs to the last step */
  lw_storage_t *s = &b->out->storages[t->storage];
  uint32_t now = b->out->n_steps - 1;
  const int64_t size = (int64_t)aot_dtype_size(t->dtype);
  of.step = now;
  of.storage = t->storage;
  of.nbytes = counted_nbytes(b->out, now, t, of.is_read_only);
  if (tn_reach(t->rank, t->sizes, t->strides, t->offset, &of.begin, &of.end)) {
    of.begin *= size;
    of.end = (of.end + 1) * size;
  } else {
    of.begin = of.end = 0;
  }
  b->out->steps[now].nbytes += of.nbytes;
  lw_save_storage(b, t->storage);
  AOT_ASSERT(of.begin >= 0 && of.begin <= of.end && (uint64_t)of.end <= s->nbytes);
  AOT_ASSERT(s->first == LW_NONE || (s->first <= s->last && s->last <= now));
  if (s->first == LW_NONE) s->first = now;
  s->last = now;
  if (!is_in_place) s->last_apart = now;
  remember(b->out, of);
  return (lw_ref_t){t->storage, t->offset * size};
}

void lw_depends_on_run(lw_build_t *b) {
  AOT_ASSERT(b->out->n_steps > 0);
  b->out->steps[b->out->n_steps - 1].depends_on_run = 1;
  b->out->stays_in_order = 1;
}

void lw_count_loop(lw_build_t *b) {
  b->out->n_groups++;
  b->out->loop_nbytes += b->out->steps[b->out->n_steps - 1].nbytes;
}

lw_ref_t lw_use(lw_build_t *b, const lw_tensor_t *t) { return use(b, t, (lw_used_t){.inplace_of = LW_NONE}, 0); }
lw_ref_t lw_use_update(lw_build_t *b, const lw_tensor_t *t) {
  return use(b, t, (lw_used_t){.is_update = 1, .inplace_of = LW_NONE}, 0);
}
lw_ref_t lw_use_read_only(lw_build_t *b, const lw_tensor_t *t, int is_in_place) {
  return use(b, t, (lw_used_t){.is_read_only = 1, .inplace_of = LW_NONE}, is_in_place);
}
lw_ref_t lw_use_inplace_of(lw_build_t *b, const lw_tensor_t *t, int is_in_place, uint32_t inplace_of) {
  return use(b, t, (lw_used_t){.is_read_only = 1, .inplace_of = inplace_of}, is_in_place);
}

lw_ref_t lw_use_scratch(lw_build_t *b, const lw_tensor_t *t) {
  lw_step_t *step = &b->out->steps[b->out->n_steps - 1];
  const uint64_t nbytes = step->nbytes;
  const lw_ref_t r = lw_use(b, t);
  step->nbytes = nbytes;
  return r;
}

void lw_count_flops(lw_build_t *b, double flops, int32_t dtype) {
  lw_step_t *step = &b->out->steps[b->out->n_steps - 1];
  AOT_ASSERT(b->out->n_steps > 0 && flops >= 0);
  step->flops = flops < (double)NC_MOST ? (uint64_t)flops : NC_MOST;
  step->flops_dtype = dtype;
}

/* ---- nodes of plugins ---- */

int lw_is_collective(const lw_build_t *b, uint32_t node) {
  const aot_snap_node_t *row = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + node;
  return (AOT_SNAP_ROWS(b->s, aot_snap_op_t, ops)[row->op].flags & AOT_OP_COLLECTIVE) != 0;
}
