/* Functional form of a writing operator: the opset's form, else aot.auto_functionalized on its operands. */
#include "auto_functional.h"

#include "schema_marks.h"
#include "written_overlap.h"
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPERATOR "aot.auto_functionalized.default"

/* The node that is being made: its result types, and which of them are whose. */
typedef struct form {
  aot_node_info_t info;
  aot_type_t *types; /* of the new node's results */
  uint32_t n_types, n_own, no_grad;
  aot_arg_t *args;
} form_t;

static aot_status_t refuse(const fz_rewrite_t *w, aot_node_t node, const aot_op_desc_t *d, const char *what) {
  char message[320];
  snprintf(message, sizeof message, "%.*s %s", (int)d->name.size, d->name.data, what);
  return fz_fail(w->host, w->ctx, AOT_E_UNIMPLEMENTED, "functionalize.custom", message, node);
}

/* ---- types ---- */

typedef struct one_type {
  const fz_rewrite_t *w;
  aot_type_t *out;
} one_type_t;

/* Dimensions live in the program; the arrays of a type may not: they are taken over into scratch memory. */
static aot_status_t keep_type(const one_type_t *o, const aot_type_t *t) {
  const uint64_t n = (uint64_t)t->rank;
  int64_t *dims = o->w->host->alloc(o->w->host, o->w->ctx, AOT_ARENA_SCRATCH, 8, (2 * n + 1) * sizeof *dims);
  if (!dims) return AOT_E_EXHAUSTED;
  *o->out = *t;
  if (n) memcpy(dims, t->sizes, n * sizeof *dims);
  if (n && t->strides) memcpy(dims + n, t->strides, n * sizeof *dims);
  o->out->sizes = dims;
  o->out->strides = t->strides ? dims + n : NULL;
  return AOT_OK;
}

static aot_status_t AOT_CALL put_type(const aot_type_sink_t *sink, const aot_type_t *t) {
  return keep_type(sink->head.self, t);
}

/* A copy of the tensor: its strides where those leave no gaps, else dense in the same order of dimensions. */
static aot_status_t copy_type(const fz_rewrite_t *w, aot_value_t of, aot_type_t *out) {
  const aot_op_t clone = w->host->graph->op_find(w->prog, aot_str("aten.clone.default"));
  const aot_arg_t arg = aot_arg_value(of);
  one_type_t one = {w, out};
  const aot_type_sink_t sink = {.head = {.struct_size = sizeof sink, .self = &one}, .put = put_type};
  if (clone.id == AOT_NO_ID)
    return fz_fail(
        w->host, w->ctx, AOT_E_PRECONDITION, "functionalize.no-operator",
        "a custom operator that writes needs the operator aten.clone.default, which no loaded operator set has",
        aot_no_node());
  return w->host->edit->infer(w->prog, clone, &arg, 1, &sink);
}

/* Is the result one of the operator's own, and no written argument? */
static int is_own(const fz_rewrite_t *w, const aot_op_desc_t *d, const aot_node_info_t *n, uint32_t i) {
  const aot_schema_arg_t *s = aot_schema_result(d, n->n_results, i);
  (void)w;
  return !s || s->alias_set == 0;
}

static aot_status_t own_types(fz_rewrite_t *w, const aot_op_desc_t *d, form_t *f) {
  for (uint32_t i = 0; i < f->info.n_results; i++) {
    aot_type_t type;
    one_type_t one = {w, &f->types[f->n_types]};
    if (!is_own(w, d, &f->info, i)) continue;
    AOT_TRY(w->host->graph->value_type(w->prog, (aot_value_t){f->info.first_result.id + i}, &type));
    AOT_TRY(keep_type(&one, &type));
    f->n_types++;
  }
  f->n_own = f->n_types;
  return AOT_OK;
}

static aot_status_t written_types(fz_rewrite_t *w, const aot_op_desc_t *d, form_t *f) {
  for (uint32_t k = 0, a = 0; a < f->info.n_args; a++) {
    const uint32_t n = aot_n_operands(&f->info.args[a]);
    for (uint32_t i = 0; i < n; i++, k++) {
      if (f->info.operands[k] == AOT_NO_ID || !fz_writes_arg(d, &f->info, a)) continue;
      AOT_TRY(copy_type(w, (aot_value_t){f->info.operands[k]}, &f->types[f->n_types]));
      f->n_types++;
    }
  }
  return AOT_OK;
}

/* ---- what cannot be run on copies ---- */

/* Two written operands on one storage: the same tensor twice is one copy; parts that do not touch each other are put
 * back one after the other; anything else would need the parts to continue sharing memory. */
static aot_status_t check_sharing(fz_rewrite_t *w, aot_node_t node, const aot_op_desc_t *d, const form_t *f,
                                  const uint32_t *original) {
  uint32_t *places = malloc(((size_t)f->info.n_operands + 1) * sizeof *places), n = 0;
  aot_status_t status = AOT_OK;
  if (!places) return fz_no_alias_memory(w);
  for (uint32_t k = 0, a = 0; a < f->info.n_args; a++)
    for (uint32_t i = 0; i < aot_n_operands(&f->info.args[a]); i++, k++)
      if (original[k] != AOT_NO_ID && fz_writes_arg(d, &f->info, a)) places[n++] = fz_place_of(&w->alias, original[k]);
  if (fz_any_overlap(w, places, n))
    status = refuse(w, node, d, "writes two arguments that overlap in memory, which is not supported");
  free(places);
  return status;
}

static aot_status_t check_form(fz_rewrite_t *w, aot_node_t node, const aot_op_desc_t *d, const form_t *f,
                               const uint32_t *original) {
  if (d->flags & (AOT_OP_REGION | AOT_OP_INPLACE_VIEW))
    return refuse(w, node, d,
                  "changes shapes in place or owns graphs, and its operator set has no functional form of it");
  for (uint32_t r = 0; r < f->info.n_results; r++) {
    const uint32_t operand = fz_aliased_operand(d, &f->info, r);
    uint32_t arg = 0;
    if (!operand) continue;
    for (uint32_t k = 0; k + aot_n_operands(&f->info.args[arg]) < operand; arg++)
      k += aot_n_operands(&f->info.args[arg]);
    if (!fz_writes_arg(d, &f->info, arg))
      return refuse(
          w, node, d,
          "writes one argument and gives a view of another, and its operator set has no functional form of it");
  }
  return check_sharing(w, node, d, f, original);
}

/* ---- the node ---- */

static aot_status_t make_node(fz_rewrite_t *w, aot_node_t node, form_t *f, aot_value_t *out_first) {
  em_t e = fz_emitter(w->host, w->ctx, w->prog, w->graph, node, "a custom operator that writes");
  aot_node_info_t made;
  em_carry(&e, &f->info);
  e.flags |= f->no_grad;
  f->args[0] = aot_arg_int_kind(AOT_ARG_OP, (int64_t)f->info.op.id);
  memcpy(f->args + 1, f->info.args, f->info.n_args * sizeof *f->args);
  em_put(&e, em_op(&e, OPERATOR), f->info.n_args + 1, f->args, f->n_types, f->types, &made);
  if (e.status == AOT_OK) *out_first = made.first_result;
  return e.status;
}

/* A result that is a written argument is that argument's new value. */
static void hand_out(const fz_rewrite_t *w, const aot_op_desc_t *d, const form_t *f, aot_value_t first,
                     aot_value_t *out_results, aot_value_t *out_written) {
  uint32_t own = first.id, next = first.id + f->n_own, n_written = 0;
  for (uint32_t i = 0; i < f->info.n_results; i++)
    out_results[i] = is_own(w, d, &f->info, i) ? (aot_value_t){own++} : aot_no_value();
  for (uint32_t k = 0, a = 0; a < f->info.n_args; a++)
    for (uint32_t e = 0; e < aot_n_operands(&f->info.args[a]); e++, k++) {
      if (f->info.operands[k] == AOT_NO_ID || !fz_writes_arg(d, &f->info, a)) continue;
      for (uint32_t r = 0; r < f->info.n_results; r++)
        if (out_results[r].id == AOT_NO_ID && fz_aliased_operand(d, &f->info, r) == k + 1) out_results[r].id = next;
      out_written[n_written++].id = next++;
    }
}

static aot_status_t on_copies(fz_rewrite_t *w, aot_node_t node, const aot_op_desc_t *d, const uint32_t *original,
                              form_t *f, aot_value_t *out_results, aot_value_t *out_written) {
  aot_value_t first = aot_no_value();
  AOT_TRY(w->host->graph->node_info(w->prog, node, &f->info));
  f->types = calloc((size_t)f->info.n_results + f->info.n_operands + 1, sizeof *f->types);
  f->args = calloc((size_t)f->info.n_args + 1, sizeof *f->args);
  if (!f->types || !f->args) return fz_no_alias_memory(w);
  if (d->flags & AOT_OP_NO_GRAD) f->no_grad = AOT_NODE_NO_GRAD;
  AOT_TRY(check_form(w, node, d, f, original));
  AOT_TRY(own_types(w, d, f));
  AOT_TRY(written_types(w, d, f));
  AOT_TRY(w->host->graph->node_info(w->prog, node, &f->info)); /* types may have made dimensions */
  AOT_TRY(make_node(w, node, f, &first));
  AOT_TRY(w->host->graph->node_info(w->prog, node, &f->info));
  hand_out(w, d, f, first, out_results, out_written);
  return AOT_OK;
}

aot_status_t fz_functional_form(fz_rewrite_t *w, aot_node_t node, const aot_op_desc_t *d, const uint32_t *original,
                                aot_value_t *out_results, aot_value_t *out_written, int *out_is_auto) {
  form_t f = {.info = {.struct_size = sizeof f.info}};
  aot_status_t status = w->host->edit->functional_form(w->prog, node, out_results, out_written);
  *out_is_auto = status == AOT_E_NOT_FOUND;
  if (!*out_is_auto) return status;
  status = on_copies(w, node, d, original, &f, out_results, out_written);
  free(f.types);
  free(f.args);
  return status;
}
