#include "live_values.h"

#include "kit/base/errors.h"
#include <aot/assert.h>
#include <aot/graph.h>
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory of the host ---- */

static aot_status_t alloc(void *self, uint64_t nbytes, void **out, lw_error_t *error) {
  (void)self;
  *out = aligned_alloc(LW_ALIGN, ((size_t)nbytes + LW_ALIGN) / LW_ALIGN * LW_ALIGN);
  return *out ? AOT_OK : lw_no_memory(error, "for %llu bytes of a value", (unsigned long long)nbytes);
}

static void release(void *self, void *at, uint64_t nbytes) {
  (void)self, (void)nbytes;
  free(at);
}

const lw_memory_t lw_host_memory = {.alloc = alloc, .free = release};

/* ---- values ---- */

aot_status_t lw_live_init(lw_live_t *l, const lw_cut_t *cut, const lw_memory_t *memory, int64_t *symbols,
                          uint64_t n_symbols, lw_error_t *error) {
  sn_error_t wrong;
  memset(l, 0, sizeof *l);
  l->cut = cut;
  l->memory = memory;
  l->values = calloc((size_t)cut->s->values.count + 1, sizeof *l->values);
  l->known = (sn_known_t){cut->s, symbols, n_symbols, malloc(((size_t)cut->s->exprs.count + 1) * sizeof(int64_t))};
  if (!l->values || !l->known.exprs) return lw_no_memory(error, "for a run");
  if (sn_exprs_eval(cut->s, symbols, n_symbols, l->known.exprs, &wrong) != AOT_OK)
    return lw_fail(error, AOT_E_RANGE, "bad-symbols", "%s", wrong.text);
  return AOT_OK;
}

static void forget(const lw_live_t *l, uint32_t value) {
  lw_held_t *v = &l->values[value];
  AOT_ASSERT(!v->copy); /* let_go comes before */
  if (v->own) l->memory->free(l->memory->self, v->own, v->t.nbytes);
  memset(v, 0, sizeof *v);
}

void lw_live_deinit(lw_live_t *l) {
  for (uint32_t v = 0; l->values && v < l->cut->s->values.count; v++) forget(l, v);
  free(l->values);
  free(l->known.exprs);
  memset(l, 0, sizeof *l);
}

static uint64_t nbytes_of(const rk_tensor_t *t) {
  int64_t last = t->offset;
  for (int32_t d = 0; d < t->rank; d++) {
    if (t->sizes[d] == 0) return 0;
    last += (t->sizes[d] - 1) * t->strides[d];
  }
  return (uint64_t)(last + 1) * aot_dtype_size(t->dtype);
}

/* t's geometry gets memory of its own. */
static aot_status_t hold(lw_live_t *l, uint32_t value, const rk_tensor_t *t, lw_error_t *error) {
  lw_held_t *v = &l->values[value];
  forget(l, value);
  AOT_TRY(l->memory->alloc(l->memory->self, nbytes_of(t), &v->own, error));
  v->t = *t;
  v->t.nbytes = nbytes_of(t);
  v->t.data = v->own;
  return AOT_OK;
}

aot_status_t lw_live_inputs(lw_live_t *l, uint32_t graph, const aot_tensor_t *inputs, lw_error_t *error) {
  const aot_snap_graph_t *g = AOT_SNAP_ROWS(l->cut->s, aot_snap_graph_t, graphs) + graph;
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(l->cut->s, aot_snap_port_t, ports) + g->input_begin;
  const aot_snap_value_t *values = AOT_SNAP_ROWS(l->cut->s, aot_snap_value_t, values);
  for (uint32_t i = 0; i < g->n_inputs; i++) {
    const aot_tensor_t *in = &inputs[i];
    if (ports[i].value == AOT_NO_ID || !in->data || in->rank < 0) continue;
    if (values[ports[i].value].kind != AOT_TYPE_TENSOR && values[ports[i].value].kind != AOT_TYPE_SYMFLOAT) continue;
    if (in->rank > AOT_MAX_RANK)
      return lw_fail(error, AOT_E_INVALID, "bad-tensor", "input %u has rank %d", i, in->rank);
    rk_tensor_t *t = &l->values[ports[i].value].t;
    *t = (rk_tensor_t){
        .data = in->data, .nbytes = in->nbytes, .dtype = in->dtype, .rank = in->rank, .offset = in->offset};
    memcpy(t->sizes, in->sizes, (size_t)in->rank * sizeof *in->sizes);
    memcpy(t->strides, in->strides, (size_t)in->rank * sizeof *in->strides);
  }
  return AOT_OK;
}

aot_status_t lw_live_make(lw_live_t *l, const aot_snap_graph_t *segment, const lw_port_t *types, lw_error_t *error) {
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(l->cut->s, aot_snap_port_t, ports) + segment->output_begin;
  for (uint32_t o = 0; o < segment->n_outputs; o++) {
    const lw_tensor_t *type = &types[o].type;
    rk_tensor_t t = {.dtype = type->dtype, .rank = type->rank, .offset = type->offset};
    memcpy(t.sizes, type->sizes, sizeof t.sizes);
    memcpy(t.strides, type->strides, sizeof t.strides);
    AOT_TRY(hold(l, ports[o].value, &t, error));
  }
  return AOT_OK;
}

void lw_live_tensors(const lw_live_t *l, uint32_t port_begin, uint32_t n, aot_tensor_t *out) {
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(l->cut->s, aot_snap_port_t, ports) + port_begin;
  memset(out, 0, n * sizeof *out);
  for (uint32_t i = 0; i < n; i++) {
    if (ports[i].value == AOT_NO_ID) continue;
    const rk_tensor_t *t = &l->values[ports[i].value].t;
    if (t->dtype)
      out[i] = (aot_tensor_t){
          .data = t->data,
          .nbytes = t->nbytes,
          .dtype = t->dtype,
          .rank = t->rank,
          .offset = t->offset,
          .sizes = t->sizes,
          .strides = t->strides,
      };
  }
}

void lw_live_forget(lw_live_t *l, uint32_t graph, uint32_t number) {
  AOT_ASSERT(number < l->cut->n_parts_of[graph]);
  const lw_part_t *part = &l->cut->parts[l->cut->first_part[graph] + number];
  const aot_snap_graph_t *segment = AOT_SNAP_ROWS(l->cut->s, aot_snap_graph_t, graphs) + part->graph;
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(l->cut->s, aot_snap_port_t, ports);
  for (uint32_t i = segment->input_begin; i < segment->input_begin + segment->n_inputs; i++)
    if (ports[i].value != AOT_NO_ID && l->cut->last_use[ports[i].value] <= number) forget(l, ports[i].value);
  for (uint32_t o = segment->output_begin; o < segment->output_begin + segment->n_outputs; o++)
    if (part->birth != AOT_NO_ID && l->cut->last_use[ports[o].value] <= number) forget(l, ports[o].value);
}

/* ---- a node that reports sizes: its arguments ---- */

/* Arguments of one node; lists are after one another in arrays long enough for all. */
typedef struct arguments {
  rk_arg_t *args;
  int64_t *ints;
  const rk_tensor_t **tensors;
  uint32_t n_ints, n_tensors;
} arguments_t;

/* The value where the host computes on it. */
static aot_status_t bring_near(const lw_live_t *l, uint32_t value, const rk_tensor_t **out, lw_error_t *error) {
  lw_held_t *v = &l->values[value];
  *out = &v->near;
  if (v->near.dtype) return AOT_OK;
  if (!v->t.dtype)
    return lw_fail(error, AOT_E_INTERNAL, "internal", "value %%%u is read where it has none",
                   AOT_SNAP_ROWS(l->cut->s, aot_snap_value_t, values)[value].id);
  v->near = v->t;
  if (!l->memory->read) return AOT_OK;
  const uint64_t nbytes = nbytes_of(&v->t);
  v->near.data = v->copy = malloc((size_t)nbytes + 1);
  v->near.nbytes = nbytes;
  if (!v->copy) return lw_no_memory(error, "for a run");
  return nbytes ? l->memory->read(l->memory->self, v->copy, v->t.data, nbytes, error) : AOT_OK;
}

static void let_go(const lw_live_t *l, const aot_snap_node_t *node) {
  const uint32_t *operands = AOT_SNAP_ROWS(l->cut->s, uint32_t, operands) + node->operand_begin;
  for (uint32_t k = 0; k < node->n_operands; k++) {
    if (operands[k] == AOT_NO_ID) continue;
    lw_held_t *v = &l->values[operands[k]];
    free(v->copy);
    v->copy = NULL;
    v->near = (rk_tensor_t){.dtype = 0};
  }
}

static aot_status_t value_arg(const lw_live_t *l, uint32_t value, rk_arg_t *out, lw_error_t *error) {
  const aot_snap_value_t *v = AOT_SNAP_ROWS(l->cut->s, aot_snap_value_t, values) + value;
  if (v->kind == AOT_TYPE_NONE || v->kind == AOT_TYPE_TOKEN) {
    *out = rk_arg_of_tensor(NULL);
  } else if (v->kind == AOT_TYPE_SYMINT || v->kind == AOT_TYPE_SYMBOOL) {
    const int64_t number = sn_dim(v->expr, l->known.exprs);
    if (number == SN_NO_VALUE)
      return lw_fail(error, AOT_E_RANGE, "no-value", "value %%%u has no value with these inputs", v->id);
    *out = v->kind == AOT_TYPE_SYMBOOL ? rk_arg_of_bool(number != 0) : rk_arg_of_int(number);
  } else {
    const rk_tensor_t *t;
    double number = 0;
    AOT_TRY(bring_near(l, value, &t, error));
    if (v->kind == AOT_TYPE_SYMFLOAT) memcpy(&number, t->data, sizeof number);
    *out = v->kind == AOT_TYPE_SYMFLOAT ? rk_arg_of_float(number) : rk_arg_of_tensor(t);
  }
  return AOT_OK;
}

static aot_status_t list_arg(const lw_live_t *l, const aot_snap_arg_t *a, arguments_t *all, rk_arg_t *out,
                             lw_error_t *error) {
  const uint32_t *rows = AOT_SNAP_ROWS(l->cut->s, uint32_t, operands) + a->i;
  uint32_t n_numbers = 0;
  out->u.tensors = all->tensors + all->n_tensors;
  int64_t *numbers = all->ints + all->n_ints;
  for (uint32_t k = 0; k < a->n; k++) {
    rk_arg_t one = {0};
    if (rows[k] != AOT_NO_ID) AOT_TRY(value_arg(l, rows[k], &one, error));
    all->tensors[all->n_tensors++] = one.kind == AOT_ARG_VALUE ? one.u.tensor : NULL;
    if (one.kind == AOT_ARG_INT || one.kind == AOT_ARG_BOOL) numbers[n_numbers++] = one.u.i;
  }
  all->n_ints += n_numbers;
  if (n_numbers && n_numbers == a->n) *out = rk_arg_of_ints(numbers, a->n);
  return AOT_OK;
}

static void ints_arg(const lw_live_t *l, const aot_snap_arg_t *a, arguments_t *all, rk_arg_t *out) {
  const int64_t *ints = AOT_SNAP_ROWS(l->cut->s, int64_t, ints) + a->i;
  out->u.ints = all->ints + all->n_ints;
  for (uint32_t k = 0; k < a->n; k++) all->ints[all->n_ints++] = sn_dim(ints[k], l->known.exprs);
}

static aot_status_t read_arg(const lw_live_t *l, const aot_snap_arg_t *a, arguments_t *all, rk_arg_t *out,
                             lw_error_t *error) {
  *out = (rk_arg_t){.kind = a->kind, .n = a->n};
  switch (a->kind) {
    case AOT_ARG_VALUE: return value_arg(l, (uint32_t)a->i, out, error);
    case AOT_ARG_VALUES: return list_arg(l, a, all, out, error);
    case AOT_ARG_INTS:
    case AOT_ARG_BOOLS: ints_arg(l, a, all, out); break;
    case AOT_ARG_INT:
      out->u.i = sn_dim(a->i, l->known.exprs);
      if (out->u.i == SN_NO_VALUE)
        return lw_fail(error, AOT_E_RANGE, "no-value", "an argument has no value with these inputs");
      break;
    case AOT_ARG_FLOAT: memcpy(&out->u.f, &a->i, sizeof a->i); break;
    case AOT_ARG_FLOATS: out->u.floats = AOT_SNAP_ROWS(l->cut->s, double, floats) + (a->n ? a->i : 0); break;
    case AOT_ARG_STR: out->u.chars = AOT_SNAP_ROWS(l->cut->s, char, chars) + (a->n ? a->i : 0); break;
    default: out->u.i = a->i;
  }
  return AOT_OK;
}

static aot_status_t read_arguments(const lw_live_t *l, const aot_snap_node_t *node, arguments_t *all,
                                   lw_error_t *error) {
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(l->cut->s, aot_snap_arg_t, args) + node->arg_begin;
  size_t n_items = 1;
  for (uint32_t k = 0; k < node->n_args; k++) n_items += args[k].n;
  all->args = calloc((size_t)node->n_args + 1, sizeof *all->args);
  all->ints = calloc(n_items, sizeof *all->ints);
  all->tensors = calloc(n_items, sizeof *all->tensors);
  if (!all->args || !all->ints || !all->tensors) return lw_no_memory(error, "for a run");
  for (uint32_t k = 0; k < node->n_args; k++) AOT_TRY(read_arg(l, &args[k], all, &all->args[k], error));
  AOT_ASSERT(all->n_ints <= n_items && all->n_tensors <= n_items);
  return AOT_OK;
}

/* ---- its results ---- */

typedef struct results {
  rk_tensor_t *at; /* as the kernel leaves them */
  void **own;
  uint32_t n;
} results_t;

/* Dense memory for result r, whose sizes are known now. */
static aot_status_t place(void *self, uint32_t r, int32_t rank, const int64_t *sizes, rk_error_t *error) {
  const results_t *results = self;
  rk_tensor_t *t = &results->at[r];
  int64_t stride = 1;
  uint64_t nbytes = aot_dtype_size(t->dtype);
  int fits = rank == t->rank;
  for (int32_t d = rank - 1; d >= 0 && fits; d--) {
    t->sizes[d] = sizes[d];
    t->strides[d] = stride;
    fits = !__builtin_mul_overflow(stride, sizes[d] > 1 ? sizes[d] : 1, &stride) &&
           !__builtin_mul_overflow(nbytes, (uint64_t)sizes[d], &nbytes);
  }
  if (!fits) {
    snprintf(error->text, sizeof error->text, "result %u has another rank than declared, or too many elements", r);
    return AOT_E_INVALID;
  }
  t->offset = 0;
  t->nbytes = nbytes;
  t->data = results->own[r] = calloc(1, (size_t)nbytes + 1);
  if (t->data) return AOT_OK;
  return kit_no_memory_text(error->text, sizeof error->text, "for %llu bytes of result %u", (unsigned long long)nbytes,
                            r);
}

/* The type as declared; a size that nothing knows yet is -1. 1: there is one. */
static int declared(const lw_live_t *l, uint32_t value, rk_tensor_t *out) {
  const aot_snap_value_t *v = AOT_SNAP_ROWS(l->cut->s, aot_snap_value_t, values) + value;
  const int64_t *dims = AOT_SNAP_ROWS(l->cut->s, int64_t, ints) + v->dims;
  int open = 0;
  memset(out, 0, sizeof *out);
  if (v->kind == AOT_TYPE_SYMINT || v->kind == AOT_TYPE_SYMBOOL)
    out->dtype = v->kind == AOT_TYPE_SYMINT ? AOT_I64 : AOT_BOOL;
  if (v->kind != AOT_TYPE_TENSOR) return 0;
  out->dtype = v->dtype;
  out->rank = v->rank;
  out->offset = sn_offset(v->offset, l->known.exprs);
  for (int32_t d = 0; d < v->rank; d++) {
    out->sizes[d] = sn_dim(dims[d], l->known.exprs);
    out->strides[d] = sn_dim(dims[v->rank + d], l->known.exprs);
    if (out->sizes[d] != SN_NO_VALUE) continue;
    out->sizes[d] = -1;
    open = 1;
  }
  return open;
}

static aot_status_t call_kernel(const rk_kernel_t *kernel, const arguments_t *all, uint32_t n_args, const int *open,
                                results_t *results, lw_error_t *error) {
  rk_call_t call = {all->args, n_args, results->at, results->n};
  const rk_caller_t caller = {.self = results, .place = place};
  rk_error_t why;
  if (rk_is_view(kernel)) {
    const aot_status_t status = rk_view(kernel, &call, &why); /* results alias their operand */
    if (status != AOT_E_UNIMPLEMENTED)
      return status == AOT_OK ? AOT_OK : lw_fail(error, status, "bad-view", "%s", why.text);
  }
  for (uint32_t r = 0; r < results->n; r++) {
    if (open[r] && !rk_gives_sizes(kernel))
      return lw_fail(error, AOT_E_UNIMPLEMENTED, "no-size",
                     "the size of result %u depends on the data, which this operator cannot tell", r);
    if (open[r] || !results->at[r].dtype) continue;
    if (place(results, r, results->at[r].rank, results->at[r].sizes, &why) != AOT_OK)
      return lw_fail(error, AOT_E_EXHAUSTED, "no-memory", "%s", why.text);
  }
  const aot_status_t status = rk_run_for(kernel, &call, &caller, &why);
  return status == AOT_OK ? AOT_OK : lw_fail(error, status, "kernel-failed", "%s", why.text);
}

static aot_status_t learn(lw_live_t *l, uint32_t begin, const results_t *results, lw_error_t *error) {
  sn_error_t why;
  for (int checking = 0; checking < 2; checking++)
    for (uint32_t r = 0; r < results->n; r++) {
      const aot_snap_value_t *v = AOT_SNAP_ROWS(l->cut->s, aot_snap_value_t, values) + begin + r;
      const rk_tensor_t *t = &results->at[r];
      int64_t number = 0;
      if (!t->dtype) continue;
      if (v->kind == AOT_TYPE_SYMBOOL) number = *(const uint8_t *)t->data != 0;
      else if (v->kind == AOT_TYPE_SYMINT) memcpy(&number, t->data, sizeof number);
      const int64_t *is = v->kind == AOT_TYPE_TENSOR ? t->sizes : &number;
      const aot_status_t status =
          checking ? sn_agree(&l->known, begin + r, is, &why) : sn_learn(&l->known, begin + r, is, &why);
      if (status != AOT_OK) return lw_fail(error, status, "bad-size", "%s", why.text);
    }
  return AOT_OK;
}

/* The value gets what the host has computed. */
static aot_status_t put_away(const lw_live_t *l, uint32_t value, const rk_tensor_t *from, lw_error_t *error) {
  const rk_tensor_t *to = &l->values[value].t;
  rk_tensor_t near = *to;
  AOT_ASSERT(rk_numel(from) == rk_numel(to)); /* sn_agree has compared their sizes */
  if (!rk_numel(to)) return AOT_OK;
  if (l->memory->write) near.data = calloc(1, (size_t)to->nbytes);
  if (!near.data) return lw_no_memory(error, "for a run");
  rk_copy(&near, from);
  if (!l->memory->write) return AOT_OK;
  const aot_status_t status = l->memory->write(l->memory->self, to->data, near.data, to->nbytes, error);
  free(near.data);
  return status;
}

/* Results as their types say, now that they are known: later parts take them as inputs. */
static aot_status_t keep_results(lw_live_t *l, uint32_t begin, const results_t *results, lw_error_t *error) {
  for (uint32_t r = 0; r < results->n; r++) {
    rk_tensor_t type;
    declared(l, begin + r, &type);
    if (AOT_SNAP_ROWS(l->cut->s, aot_snap_value_t, values)[begin + r].kind != AOT_TYPE_TENSOR) continue;
    AOT_TRY(hold(l, begin + r, &type, error));
    AOT_TRY(put_away(l, begin + r, &results->at[r], error));
  }
  return AOT_OK;
}

static aot_status_t run_birth(lw_live_t *l, const aot_snap_node_t *node, arguments_t *all, results_t *results,
                              int *open, lw_error_t *error) {
  const rk_kernel_t *kernel =
      rk_find(aot_snap_text(l->cut->s, AOT_SNAP_ROWS(l->cut->s, aot_snap_op_t, ops)[node->op].name));
  if (!kernel) return lw_fail(error, AOT_E_UNIMPLEMENTED, "no-kernel", "the operator that tells a size has no kernel");
  AOT_TRY(read_arguments(l, node, all, error));
  for (uint32_t r = 0; r < results->n; r++) open[r] = declared(l, node->result_begin + r, &results->at[r]);
  AOT_TRY(call_kernel(kernel, all, node->n_args, open, results, error));
  AOT_TRY(learn(l, node->result_begin, results, error));
  return keep_results(l, node->result_begin, results, error);
}

aot_status_t lw_live_birth(lw_live_t *l, uint32_t row, lw_error_t *error) {
  const aot_snap_node_t *node = AOT_SNAP_ROWS(l->cut->s, aot_snap_node_t, nodes) + row;
  const size_t n = (size_t)node->n_results + 1;
  arguments_t all = {0};
  results_t results = {calloc(n, sizeof *results.at), calloc(n, sizeof *results.own), node->n_results};
  int *open = calloc(n, sizeof *open);
  const aot_status_t status = results.at && results.own && open ? run_birth(l, node, &all, &results, open, error)
                                                                : lw_no_memory(error, "for a run");
  let_go(l, node);
  for (uint32_t r = 0; results.own && r < node->n_results; r++) free(results.own[r]);
  free(results.at);
  free(results.own);
  free(open);
  free(all.args);
  free(all.ints);
  free(all.tensors);
  if (status != AOT_OK) error->node = node->id;
  return status;
}
