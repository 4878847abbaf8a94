/* One node: its arguments out of the slots, its results into slots.
 *
 * Results get storages of their own, with the declared strides where those are dense, else contiguous: kernels read
 * actual strides, never declared ones. View kernels are requested a view first and share their operand's storage. A
 * result that is a graph output is computed straight into the caller's buffer. The few operators whose meaning hangs on
 * their argument's strides (as_strided) get that argument in its declared layout. */
#include "ref_state.h"
#include "kit/reference/not_finite.h"
#include "kit/base/geometry.h"
#include <aot/graph.h>
#include <aot/inline.h>
#include <string.h>

static rf_slot_t *slot_of(const rf_state_t *st, rf_frame_t *f, uint64_t value) {
  return &f->slots[value - st->p->graphs[f->graph].value_begin];
}

/* ---- arguments ---- */

/* A number in a slot (symbolic int, float, bool) as a plain argument. */
static rk_arg_t number_arg(const rf_slot_t *slot, int32_t kind) {
  rk_arg_t a = {kind == AOT_TYPE_SYMFLOAT  ? AOT_ARG_FLOAT
                : kind == AOT_TYPE_SYMBOOL ? AOT_ARG_BOOL
                                           : AOT_ARG_INT,
                0,
                {0}};
  if (kind == AOT_TYPE_SYMFLOAT) memcpy(&a.u.f, slot->t.data, sizeof a.u.f);
  else if (kind == AOT_TYPE_SYMBOOL) a.u.i = *(const uint8_t *)slot->t.data != 0;
  else memcpy(&a.u.i, slot->t.data, sizeof a.u.i);
  return a;
}

static aot_status_t value_arg(rf_state_t *st, rf_frame_t *f, uint32_t node, uint64_t value, rk_arg_t *out) {
  const aot_snap_value_t *v = &AOT_SNAP_ROWS(st->p->s, aot_snap_value_t, values)[value];
  const rf_slot_t *slot = slot_of(st, f, value);
  memset(out, 0, sizeof *out);
  if (v->kind == AOT_TYPE_NONE || v->kind == AOT_TYPE_TOKEN) return AOT_OK;
  if (!slot->storage) return rf_fail(st, AOT_E_INTERNAL, node, "value %%%u is read where it has none", v->id);
  if (v->kind == AOT_TYPE_TENSOR) *out = rk_arg_of_tensor(&slot->t);
  else *out = number_arg(slot, v->kind);
  return AOT_OK;
}

static aot_status_t list_arg(rf_state_t *st, rf_frame_t *f, uint32_t node, const aot_snap_arg_t *a, uint32_t *used,
                             rk_arg_t *out) {
  const uint32_t *operands = AOT_SNAP_ROWS(st->p->s, uint32_t, operands);
  out->n = a->n;
  out->u.tensors = st->tensors + *used;
  for (uint32_t k = 0; k < a->n; k++) {
    uint32_t v = operands[(uint64_t)a->i + k];
    rk_arg_t one = {0, 0, {0}};
    if (v != AOT_NO_ID) AOT_TRY(value_arg(st, f, node, v, &one));
    if (one.kind != AOT_ARG_NONE && one.kind != AOT_ARG_VALUE)
      return rf_fail(st, AOT_E_INVALID, node, "element %u of a list is no tensor", k);
    st->tensors[(*used)++] = one.kind == AOT_ARG_VALUE ? one.u.tensor : NULL;
  }
  return AOT_OK;
}

static void ints_arg(rf_state_t *st, const aot_snap_arg_t *a, uint32_t *used, rk_arg_t *out) {
  const int64_t *ints = AOT_SNAP_ROWS(st->p->s, int64_t, ints);
  out->n = a->n;
  out->u.ints = st->ints + *used;
  for (uint32_t k = 0; k < a->n; k++) st->ints[(*used)++] = sn_dim(ints[(uint64_t)a->i + k], st->dims);
}

static aot_status_t read_args(rf_state_t *st, rf_frame_t *f, uint32_t node) {
  const aot_snapshot_t *s = st->p->s;
  const aot_snap_node_t *n = &AOT_SNAP_ROWS(s, aot_snap_node_t, nodes)[node];
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(s, aot_snap_arg_t, args) + n->arg_begin;
  uint32_t used_tensors = 0, used_ints = 0;
  for (uint32_t a = 0; a < n->n_args; a++) {
    rk_arg_t *out = &st->args[a];
    memset(out, 0, sizeof *out);
    out->kind = args[a].kind;
    switch (args[a].kind) {
      case AOT_ARG_VALUE: AOT_TRY(value_arg(st, f, node, (uint64_t)args[a].i, out)); break;
      case AOT_ARG_VALUES: AOT_TRY(list_arg(st, f, node, &args[a], &used_tensors, out)); break;
      case AOT_ARG_INTS:
      case AOT_ARG_BOOLS: ints_arg(st, &args[a], &used_ints, out); break;
      case AOT_ARG_FLOATS:
        out->n = args[a].n;
        out->u.floats = AOT_SNAP_ROWS(s, double, floats) + (args[a].n ? args[a].i : 0);
        break;
      case AOT_ARG_STR:
        out->n = args[a].n;
        out->u.chars = AOT_SNAP_ROWS(s, char, chars) + (args[a].n ? args[a].i : 0);
        break;
      case AOT_ARG_FLOAT: memcpy(&out->u.f, &args[a].i, sizeof out->u.f); break;
      case AOT_ARG_INT:
        out->u.i = sn_dim(args[a].i, st->dims);
        if (out->u.i == SN_NO_VALUE && AOT_DIM_IS_SYM(args[a].i))
          return rf_fail(st, AOT_E_RANGE, node, "argument %u has no value with these inputs", a);
        break;
      default: out->u.i = args[a].i;
    }
  }
  return AOT_OK;
}

/* ---- results ---- */

/* Do the strides place the elements without gaps or overlaps? Then they are stored. */
static int is_dense(const rk_tensor_t *t) {
  int64_t span = 1, numel = 1;
  for (int32_t d = 0; d < t->rank; d++) {
    int64_t reach;
    if (__builtin_mul_overflow(numel, t->sizes[d], &numel)) return 0;
    if (t->sizes[d] <= 1) continue;
    if (t->strides[d] <= 0 || __builtin_mul_overflow(t->sizes[d] - 1, t->strides[d], &reach) ||
        __builtin_add_overflow(span, reach, &span))
      return 0;
  }
  if (numel == 0) return 1;
  if (span != numel) return 0;
  /* a gapless span can still overlap: every stride is a product of smaller dims */
  for (int32_t d = 0; d < t->rank; d++)
    for (int32_t e = 0; t->sizes[d] > 1 && e < t->rank; e++)
      if (e != d && t->sizes[e] > 1 && t->strides[e] <= t->strides[d] && t->strides[d] < t->strides[e] * t->sizes[e])
        return 0;
  return 1;
}

static int contiguous(rk_tensor_t *t, int64_t *numel) {
  *numel = tn_numel(t->rank, t->sizes);
  return tn_row_major(t->rank, t->sizes, t->strides) && *numel < INT64_MAX;
}

static int same_geometry(const rk_tensor_t *t, const aot_tensor_t *o) {
  if (t->dtype != o->dtype || t->rank != o->rank || !o->data) return 0;
  for (int32_t d = 0; d < t->rank; d++)
    if (t->sizes[d] != o->sizes[d] || (t->sizes[d] > 1 && t->strides[d] != o->strides[d])) return 0;
  return 1;
}

/* Storage for a result: the caller's output buffer where the value is one of the same geometry, else new. */
static aot_status_t place_result(rf_state_t *st, uint32_t node, rf_slot_t *slot, rk_tensor_t *t, rf_storage_t **out) {
  int64_t numel;
  rk_tensor_t dense = *t;
  uint64_t nbytes;
  if (!contiguous(&dense, &numel) || __builtin_mul_overflow((uint64_t)numel, aot_dtype_size(t->dtype), &nbytes))
    return rf_fail(st, AOT_E_EXHAUSTED, node, "a result is larger than the address space");
  if (!is_dense(t)) *t = dense;
  t->offset = 0;
  if (slot->port >= 0 && st->depth == 1 && same_geometry(t, &st->outputs[slot->port])) {
    const aot_tensor_t *o = &st->outputs[slot->port];
    t->offset = o->offset;
    *out = rf_storage_borrow(o->data, o->nbytes);
    if (st->rehearsal) rf_rehearse_output(st, (uint32_t)slot->port);
  } else {
    *out = rf_storage_create(st, nbytes);
  }
  if (!*out)
    return rf_fail(st, AOT_E_EXHAUSTED, node, "no memory for %llu bytes; %llu are in use", (unsigned long long)nbytes,
                   (unsigned long long)st->now_nbytes);
  t->data = (*out)->data;
  t->nbytes = (*out)->nbytes;
  return AOT_OK;
}

static aot_status_t place_results(rf_state_t *st, rf_frame_t *f, uint32_t node) {
  const aot_snap_node_t *n = &AOT_SNAP_ROWS(st->p->s, aot_snap_node_t, nodes)[node];
  for (uint32_t r = 0; r < n->n_results; r++) {
    rf_slot_t *slot = slot_of(st, f, n->result_begin + r);
    rf_storage_t *storage;
    if (!st->results[r].dtype || st->open[r] || slot->storage) continue;
    AOT_TRY(place_result(st, node, slot, &st->results[r], &storage));
    if (st->rehearsal) rf_rehearse_value(st, storage, n->result_begin + r);
    rf_slot_share(slot, &st->results[r], storage);
  }
  return AOT_OK;
}

/* ---- views ---- */

/* The storage among the node's operands that this memory is. */
static rf_storage_t *storage_of(rf_state_t *st, rf_frame_t *f, const aot_snap_node_t *n, const void *data) {
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(st->p->s, aot_snap_arg_t, args) + n->arg_begin;
  const uint32_t *operands = AOT_SNAP_ROWS(st->p->s, uint32_t, operands);
  for (uint32_t a = 0; a < n->n_args; a++) {
    uint32_t many = args[a].kind == AOT_ARG_VALUE ? 1 : args[a].kind == AOT_ARG_VALUES ? args[a].n : 0;
    for (uint32_t k = 0; k < many; k++) {
      uint64_t v = args[a].kind == AOT_ARG_VALUE ? (uint64_t)args[a].i : operands[(uint64_t)args[a].i + k];
      rf_slot_t *slot = v == AOT_NO_ID ? NULL : slot_of(st, f, v);
      if (slot && slot->storage && slot->storage->data == data) return slot->storage;
    }
  }
  return NULL;
}

/* b's open sizes are whatever a's are. */
static int sizes_fit(const rk_tensor_t *a, const rk_tensor_t *b) {
  if (a->dtype != b->dtype || a->rank != b->rank) return 0;
  for (int32_t d = 0; d < a->rank; d++)
    if (a->sizes[d] != b->sizes[d] && b->sizes[d] != RF_OPEN) return 0;
  return 1;
}

/* AOT_E_UNIMPLEMENTED: run the kernel instead. */
static aot_status_t share_views(rf_state_t *st, rf_frame_t *f, uint32_t node, const rk_kernel_t *k,
                                const rk_call_t *call) {
  const aot_snap_node_t *n = &AOT_SNAP_ROWS(st->p->s, aot_snap_node_t, nodes)[node];
  rk_call_t view_call = *call;
  rk_error_t why;
  aot_status_t status;
  view_call.results = st->views;
  status = rk_view(k, &view_call, &why);
  if (status == AOT_E_UNIMPLEMENTED) return status;
  if (status != AOT_OK) return rf_fail(st, status, node, "%s", why.text);
  for (uint32_t r = 0; r < n->n_results; r++) {
    if (!sizes_fit(&st->views[r], &st->results[r])) return AOT_E_UNIMPLEMENTED; /* the kernel says what does not fit */
    if (!storage_of(st, f, n, st->views[r].data)) return AOT_E_UNIMPLEMENTED;
  }
  for (uint32_t r = 0; r < n->n_results; r++)
    rf_slot_share(slot_of(st, f, n->result_begin + r), &st->views[r], storage_of(st, f, n, st->views[r].data));
  return AOT_OK;
}

/* ---- declared layouts ---- */

/* Argument 0 with its declared strides and offset, if it does not have them: *out_storage is then new, else NULL. */
static aot_status_t to_declared(rf_state_t *st, uint32_t node, rk_tensor_t *copy, rf_storage_t **out_storage) {
  const aot_snap_node_t *n = &AOT_SNAP_ROWS(st->p->s, aot_snap_node_t, nodes)[node];
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(st->p->s, aot_snap_arg_t, args) + n->arg_begin;
  const rk_tensor_t *actual = st->args[0].u.tensor;
  int64_t high;
  *out_storage = NULL;
  if (n->n_args == 0 || st->args[0].kind != AOT_ARG_VALUE) return AOT_OK;
  AOT_TRY(rf_declared(st, &AOT_SNAP_ROWS(st->p->s, aot_snap_value_t, values)[args[0].i], node, copy, NULL));
  high = copy->offset;
  {
    int same = copy->offset == actual->offset && copy->rank == actual->rank;
    for (int32_t d = 0; d < copy->rank && same; d++) same = copy->strides[d] == actual->strides[d];
    if (same) return AOT_OK;
  }
  for (int32_t d = 0; d < copy->rank; d++) {
    int64_t reach;
    if (copy->strides[d] < 0 ||
        __builtin_mul_overflow(copy->sizes[d] > 0 ? copy->sizes[d] - 1 : 0, copy->strides[d], &reach) ||
        __builtin_add_overflow(high, reach, &high))
      return rf_fail(st, AOT_E_INVALID, node, "the declared layout of the argument is not possible");
  }
  if (high < 0 || (uint64_t)high >= UINT64_MAX / 16)
    return rf_fail(st, AOT_E_INVALID, node, "the declared layout of the argument is not possible");
  *out_storage = rf_storage_create(st, ((uint64_t)high + 1) * aot_dtype_size(copy->dtype));
  if (!*out_storage) return rf_fail(st, AOT_E_EXHAUSTED, node, "no memory for %lld elements", (long long)high + 1);
  copy->data = (*out_storage)->data;
  copy->nbytes = (*out_storage)->nbytes;
  if (!st->rehearsal) rk_copy(copy, actual);
  st->args[0].u.tensor = copy;
  return AOT_OK;
}

/* ---- symbolic results ---- */

/* A node whose results are numbers of the shape environment needs no kernel. */
static int only_symbols(const rf_state_t *st, const aot_snap_node_t *n) {
  const aot_snap_value_t *values = AOT_SNAP_ROWS(st->p->s, aot_snap_value_t, values);
  for (uint32_t r = 0; r < n->n_results; r++) {
    const aot_snap_value_t *v = &values[n->result_begin + r];
    if (v->kind != AOT_TYPE_SYMINT && v->kind != AOT_TYPE_SYMBOOL) return 0;
  }
  return n->n_results > 0;
}

static aot_status_t put_symbols(rf_state_t *st, rf_frame_t *f, uint32_t node) {
  const aot_snap_node_t *n = &AOT_SNAP_ROWS(st->p->s, aot_snap_node_t, nodes)[node];
  const aot_snap_value_t *values = AOT_SNAP_ROWS(st->p->s, aot_snap_value_t, values);
  for (uint32_t r = 0; r < n->n_results; r++) {
    const aot_snap_value_t *v = &values[n->result_begin + r];
    int64_t number = sn_dim(v->expr, st->dims);
    rk_tensor_t *t = &st->results[r];
    if (number == SN_NO_VALUE)
      return rf_fail(st, AOT_E_RANGE, node, "value %%%u has no value with these inputs", v->id);
    AOT_TRY(rf_declared(st, v, node, t, NULL));
    rf_storage_t *storage = rf_storage_create(st, 8);
    if (!storage) return rf_fail(st, AOT_E_EXHAUSTED, node, "no memory for a number");
    t->data = storage->data;
    t->nbytes = storage->nbytes;
    if (st->rehearsal) rf_rehearse_value(st, storage, n->result_begin + r);
    if (t->dtype == AOT_BOOL) *(uint8_t *)t->data = number != 0;
    else memcpy(t->data, &number, sizeof number);
    rf_slot_share(slot_of(st, f, n->result_begin + r), t, storage);
  }
  return AOT_OK;
}

/* ---- the node ---- */

static void say(void *self, const char *text, uint32_t n) {
  const rf_placing_t *p = self;
  const rf_printer_t *printer = p->st->printer;
  if (printer) printer->line(printer->self, text, n, AOT_SNAP_ROWS(p->st->p->s, aot_snap_node_t, nodes)[p->node].id);
}

static aot_status_t run_kernel(rf_state_t *st, rf_frame_t *f, uint32_t node, const rk_kernel_t *k,
                               const rk_call_t *call) {
  rf_placing_t placing = {st, f, node};
  rk_caller_t caller = {&placing, rf_place_open, say};
  rk_error_t why;
  aot_status_t status;
  for (uint32_t r = 0; r < call->n_results; r++)
    if (st->open[r] && !rk_gives_sizes(k))
      return rf_fail(st, AOT_E_UNIMPLEMENTED, node,
                     "the size of result %u depends on the data, which this operator cannot tell", r);
  AOT_TRY(place_results(st, f, node));
  if (st->rehearsal) return AOT_OK;
  status = rk_run_for(k, call, &caller, &why);
  return status == AOT_OK ? AOT_OK : rf_fail(st, status, node, "%s", why.text);
}

static aot_status_t call_kernel(rf_state_t *st, rf_frame_t *f, uint32_t node, const rk_kernel_t *k) {
  const aot_snap_node_t *n = &AOT_SNAP_ROWS(st->p->s, aot_snap_node_t, nodes)[node];
  rk_call_t call = {st->args, n->n_args, st->results, n->n_results};
  rf_storage_t *declared = NULL;
  rk_tensor_t copy;
  aot_status_t status = AOT_E_UNIMPLEMENTED;
  if (rk_needs_storage(k)) AOT_TRY(to_declared(st, node, &copy, &declared));
  if (rk_is_view(k) && !declared) status = share_views(st, f, node, k, &call);
  if (status == AOT_E_UNIMPLEMENTED) status = run_kernel(st, f, node, k, &call);
  rf_storage_release(st, declared);
  return status;
}

/* ---- kernels of plugins ---- */

/* Does the operand's memory become its new value's? Its storage must be the interpreter's own, with nothing else
 * looking at it. */
static int can_keep(const rf_slot_t *from, const rk_tensor_t *t) {
  return from->storage && from->storage->owned && from->storage->refs == 1 && sizes_fit(&from->t, t) &&
         is_dense(&from->t);
}

static aot_status_t place_written(rf_state_t *st, rf_frame_t *f, uint32_t node, const custom_node_t *c) {
  const aot_snap_node_t *n = &AOT_SNAP_ROWS(st->p->s, aot_snap_node_t, nodes)[node];
  for (uint32_t k = 0; k < c->n_written; k++) {
    const rf_slot_t *from = slot_of(st, f, c->written[k].value);
    rk_tensor_t *t = &st->results[c->n_own + k];
    if (!c->written[k].in_place || !can_keep(from, t)) continue;
    *t = from->t;
    rf_slot_share(slot_of(st, f, n->result_begin + c->n_own + k), t, from->storage);
  }
  return AOT_OK;
}

/* What a kernel lets through stays where it is. */
static void pass_first(rf_state_t *st, rf_frame_t *f, uint32_t node) {
  const aot_snap_node_t *n = &AOT_SNAP_ROWS(st->p->s, aot_snap_node_t, nodes)[node];
  const aot_snap_arg_t *first = AOT_SNAP_ROWS(st->p->s, aot_snap_arg_t, args) + n->arg_begin;
  const rf_slot_t *from = slot_of(st, f, (uint32_t)first->i);
  if (!from->storage || !sizes_fit(&from->t, &st->results[0])) return;
  st->results[0] = from->t;
  rf_slot_share(slot_of(st, f, n->result_begin), &from->t, from->storage);
}

static aot_status_t run_custom(rf_state_t *st, rf_frame_t *f, uint32_t node, const custom_node_t *c) {
  const aot_snap_node_t *n = &AOT_SNAP_ROWS(st->p->s, aot_snap_node_t, nodes)[node];
  rk_error_t why;
  if (c->passes) pass_first(st, f, node);
  AOT_TRY(place_written(st, f, node, c));
  AOT_TRY(place_results(st, f, node));
  if (st->rehearsal) return AOT_OK;
  const aot_status_t status = custom_run(c, st->args, n->n_args, st->results, n->n_results, &why);
  return status == AOT_OK ? AOT_OK : rf_fail(st, status, node, "%s", why.text);
}

aot_status_t rf_run_node(rf_state_t *st, rf_frame_t *f, uint32_t node) {
  const aot_snapshot_t *s = st->p->s;
  const aot_snap_node_t *n = &AOT_SNAP_ROWS(s, aot_snap_node_t, nodes)[node];
  const aot_snap_value_t *values = AOT_SNAP_ROWS(s, aot_snap_value_t, values);
  const rk_kernel_t *k = st->p->kernels[n->op];
  int any_open = 0;
  if (only_symbols(st, n) && (st->rehearsal || !(k && !rk_is_fill(k)))) return put_symbols(st, f, node);
  const custom_node_t *custom = k ? NULL : custom_find(&st->p->custom, node);
  if (!k && !custom) {
    aot_str_t name = aot_snap_text(s, AOT_SNAP_ROWS(s, aot_snap_op_t, ops)[n->op].name);
    return rf_fail(st, AOT_E_UNIMPLEMENTED, node, "operator %.*s is not supported", (int)name.size, name.data);
  }
  AOT_TRY(read_args(st, f, node));
  for (uint32_t r = 0; r < n->n_results; r++) {
    AOT_TRY(rf_declared(st, &values[n->result_begin + r], node, &st->results[r], &st->open[r]));
    any_open |= st->open[r];
  }
  if (st->rehearsal && any_open)
    return rf_fail(st, AOT_E_UNIMPLEMENTED, node,
                   "the size of a result depends on the data, so that memory cannot be told before the run");
  if (custom && any_open)
    return rf_fail(st, AOT_E_UNIMPLEMENTED, node,
                   "a result whose size depends on the data is not supported for kernels of plugins");
  if (custom) return run_custom(st, f, node, custom);
  AOT_TRY(call_kernel(st, f, node, k));
  return any_open || only_symbols(st, n) ? rf_learn(st, f, node) : AOT_OK;
}

aot_status_t rf_look(rf_state_t *st, rf_frame_t *f, uint32_t node) {
  const aot_snapshot_t *s = st->p->s;
  const aot_snap_node_t *n = &AOT_SNAP_ROWS(s, aot_snap_node_t, nodes)[node];
  const uint32_t *operands = AOT_SNAP_ROWS(s, uint32_t, operands) + n->operand_begin;
  const aot_str_t op = aot_snap_text(s, AOT_SNAP_ROWS(s, aot_snap_op_t, ops)[n->op].name);
  int found = 0, before = 0;
  for (uint32_t r = 0; r < n->n_results; r++) {
    const rf_slot_t *slot = slot_of(st, f, n->result_begin + r);
    if (slot->storage && slot->t.dtype) found |= nf_look(&slot->t);
  }
  for (uint32_t k = 0; k < n->n_operands && found; k++) {
    const rf_slot_t *slot = operands[k] == AOT_NO_ID ? NULL : slot_of(st, f, operands[k]);
    if (slot && slot->storage && slot->t.dtype) before |= nf_look(&slot->t);
  }
  const char *what = found ? nf_made(s, node, before, found) : NULL;
  return what ? rf_fail(st, AOT_E_RANGE, node, NF_MADE, (int)op.size, op.data, what) : AOT_OK;
}
