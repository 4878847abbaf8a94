/* Operators over lists of tensors, element by element, and other names of operators. */
#include "at_formula.h"

#include <aot/inline.h>
#include <string.h>

#define MAX_ARGS 32

/* The place of an argument in a schema; n_args when it has none of the name. */
static uint32_t place_of(const aot_op_desc_t *d, aot_str_t name) {
  uint32_t i;
  for (i = 0; i < d->n_args && !aot_str_eq(d->args[i].name, name); i++) continue;
  return i;
}

/* Where the plain operator's argument k stands among the list operator's: under its name, or in the same place under
 * a name that the plain one does not have (`scalars` for `value`). n_args: nowhere. */
static uint32_t source_of(const aot_op_desc_t *each, const aot_op_desc_t *plain, uint32_t k) {
  uint32_t at = place_of(each, plain->args[k].name);
  if (at < each->n_args || k >= each->n_args) return at;
  return place_of(plain, each->args[k].name) < plain->n_args ? each->n_args : k;
}

static em_x_t call_of_element(em_t *e, const aot_op_desc_t *plain, uint32_t i) {
  em_x_t args[MAX_ARGS];
  uint32_t k, at;
  for (k = 0; k < plain->n_args && k < MAX_ARGS; k++) {
    at = source_of(e->desc, plain, k);
    if (at >= e->desc->n_args) args[k] = plain->args[k].preset;
    else
      args[k] = at_element(&e->desc->args[at], at < e->info.n_args ? &e->info.args[at] : &e->desc->args[at].preset, i);
  }
  return em_call(e, at_of(e)->row->of->name, k, args);
}

/* self + scalars[i] * (tensor1 op tensor2), where the number is in a tensor */
static em_x_t scaled_product(em_t *e, uint32_t i) {
  int divides = strstr(at_name(e), "addcdiv") != NULL;
  em_x_t list[3] = {IN("self"), IN("tensor1"), IN("tensor2")}, product, factor;
  aot_value_t v;
  uint32_t k;
  for (k = 0; k < 3; k++) {
    v.id = list[k].u.ids[i];
    list[k] = at_math(e, em_v(v));
  }
  factor = em_cast(e, EM(e, "select.int", IN("scalars"), em_i(0), em_i((int64_t)i)), TYPE(list[0]).dtype);
  product = divides ? DIV(MUL(factor, list[1]), list[2]) : MUL(MUL(factor, list[1]), list[2]);
  return em_cast(e, ADD(list[0], product), at_result_type(e, i).dtype);
}

aot_status_t at_dc_each(em_t *e, aot_value_t *out) {
  const aot_op_desc_t *plain =
      e->host->graph->op_desc(e->prog, e->host->graph->op_find(e->prog, aot_str(at_of(e)->row->of->name)));
  uint32_t i;
  int in_tensor = IN("scalars").kind == AOT_ARG_VALUE;
  if (plain == NULL) return AOT_E_INTERNAL;
  for (i = 0; i < e->info.n_results && e->status == AOT_OK; i++) {
    at_infer(e)->n_pool = 0;
    out[i] = VAL(in_tensor ? scaled_product(e, i) : call_of_element(e, plain, i));
  }
  return e->status;
}

aot_status_t at_dc_same(em_t *e, aot_value_t *out) {
  em_x_t first = em_call(e, at_of(e)->row->of->name, e->info.n_args, e->info.args);
  uint32_t i;
  for (i = 0; i < e->info.n_results; i++) out[i] = VAL(em_nth(first, i));
  return e->status;
}
