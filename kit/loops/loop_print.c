#include "loop_print.h"

#include <aot/assert.h>
#include <aot/inline.h>
#include <math.h>
#include <string.h>

const char *lp_c_type(int32_t dtype) {
  switch (dtype) {
    case AOT_F32: return "float";
    case AOT_F64: return "double";
    case AOT_F16:
    case AOT_BF16: return "uint16_t";
    case AOT_BOOL:
    case AOT_U8: return "uint8_t";
    case AOT_I8: return "int8_t";
    case AOT_I16: return "int16_t";
    case AOT_I32: return "int32_t";
    case AOT_U32: return "uint32_t"; /* random words */
    case AOT_U64: return "uint64_t";
    default: return "int64_t";
  }
}
const char *lp_value_type(int32_t dtype) { return lp_c_type(lp_value_dtype(dtype)); }
const char *lp_half_name(int32_t dtype) { return dtype == AOT_BF16 ? "bf16" : dtype == AOT_F16 ? "f16" : NULL; }
int lp_is_float(int32_t dtype) { return lp_value_dtype(dtype) == AOT_F32 || dtype == AOT_F64; }
const char *lp_suffix(int32_t compute) {
  return lp_value_dtype(compute) == AOT_F32 ? "f32" : compute == AOT_F64 ? "f64" : "i64";
}

static void print_double(lp_text_t *out, int32_t compute, double v) {
  /* -0 would be an integer */
  const char *type = compute == AOT_F32 ? "float" : "double", *sign_kept = v == 0 ? ".0" : "";
  if (isnan(v)) lp_print(out, "((%s)NAN)", type);
  else if (isinf(v)) lp_print(out, "((%s)%sINFINITY)", type, v < 0 ? "-" : "");
  else if (compute == AOT_F32) lp_print(out, "((float)%.17g%s)", v, sign_kept);
  else lp_print(out, "((double)%.17g%s)", v, sign_kept);
}

static void print_int(lp_text_t *out, int64_t v) {
  if (v == INT64_MIN) lp_print(out, "INT64_MIN");
  else lp_print(out, "INT64_C(%lld)", (long long)v);
}

static void print_number(lp_text_t *out, int32_t compute, const lp_arg_t *a) {
  const double f = a->kind == LP_FLOAT ? a->f : (double)a->i;
  const char *half = lp_half_name(compute);
  if (half) { /* as a value of that dtype, as PyTorch compares */
    lp_print(out, "lp_round_%s(", half);
    print_double(out, AOT_F32, f);
    lp_print(out, ")");
    return;
  }
  if (lp_is_float(compute)) print_double(out, compute, f);
  else if (compute == AOT_BOOL) lp_print(out, "%d", f != 0);
  else if (a->kind == LP_FLOAT) print_int(out, aot_float_to_int(a->f));
  else print_int(out, a->i);
}

/* The variable, converted to the computing type. A cast of a comparison to a number would keep gcc from vectorising. */
static void print_variable(lp_text_t *out, int32_t compute, int32_t dtype, char kind, uint32_t index) {
  const char *half = dtype == compute ? NULL : lp_half_name(compute);
  dtype = lp_value_dtype(dtype);
  if (half) {
    lp_print(out, "lp_round_%s((float)%c%u)", half, kind, index);
    return;
  }
  compute = lp_value_dtype(compute);
  if (compute == AOT_BOOL) lp_print(out, "%c%u != 0", kind, index);
  else if (!lp_is_float(compute) && lp_is_float(dtype)) lp_print(out, "lp_to_i64((double)%c%u)", kind, index);
  else if (dtype == compute) lp_print(out, "%c%u", kind, index);
  else if (dtype == AOT_BOOL && kind == 'v')
    lp_print(out, "v%u ? (%s)1 : (%s)0", index, lp_c_type(compute), lp_c_type(compute));
  else lp_print(out, "(%s)%c%u", lp_c_type(compute), kind, index);
}

static void print_arg(lp_text_t *out, const lp_loop_t *l, const lp_inst_t *inst, uint32_t k) {
  const lp_arg_t *a = &inst->args[k];
  if (k >= LP_ARGS + LP_STEPS || k >= inst->n_args || a->kind == LP_ABSENT) lp_print(out, "0");
  else if (a->kind == LP_DRAWN) lp_print(out, "x%u", a->index);
  else if (a->kind == LP_LOAD) print_variable(out, inst->compute, l->accesses[a->index].dtype, 'x', a->index);
  else if (a->kind == LP_INST) print_variable(out, inst->compute, l->insts[a->index].dtype, 'v', a->index);
  else print_number(out, inst->compute, a);
}

/* Of a GPU: are all elements that it is made of f16 or bf16, whatever else the loop reads? */
static int takes_halves_alone(const lp_loop_t *l, const lp_inst_t *inst) {
  int n = 0;
  for (uint32_t k = 0; k < inst->n_args; k++) {
    const lp_arg_t *a = &inst->args[k];
    if (a->kind == LP_DRAWN) return 0;
    if (a->kind != LP_LOAD && a->kind != LP_INST) continue;
    if (!lp_half_name(a->kind == LP_LOAD ? l->accesses[a->index].dtype : l->insts[a->index].dtype)) return 0;
    n++;
  }
  return l->gpu.kind && n > 0;
}

/* Helpers that have a coarse form (lp_gpu_t.coarse). */
static const char *form_of(const lp_loop_t *l, const lp_inst_t *inst, const lp_token_t *call) {
  static const char *const names[] = {"exp",    "gelu_backward", "gelu_gate", "gelu_tanh_backward",
                                      "normal", "normal_or_nan", "sigmoid"};
  int has_forms = 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    has_forms |= call->size == strlen(names[i]) && memcmp(call->text, names[i], call->size) == 0;
  return has_forms && (l->gpu.coarse || takes_halves_alone(l, inst)) && inst->compute == AOT_F32 ? "_coarse" : "";
}

/* Floats of a GPU are multiplied by the length's reciprocal, a constant: every thread divides values of its row, and a
 * division is a dozen instructions. */
static const char over_length[] = "/ #";
static int is_over_length(const lp_loop_t *l, const lp_inst_t *inst, const char *text) {
  return l->gpu.kind && inst->compute == AOT_F32 && strncmp(text, over_length, strlen(over_length)) == 0;
}

/* exp(a - %0), such as a softmax has: %0 is multiplied by what exponentials are rounded with once a row. */
static int is_exp_of_difference(const lp_token_t *call, const char *form) {
  const char *at = call->text + call->size;
  return *form && call->size == 3 && strncmp(at, "(a - %", 6) == 0 && at[6] >= '0' && at[6] <= '9' && at[7] == ')';
}

static int is_rounded_gelu(const lp_loop_t *l, const lp_inst_t *inst) {
  return l->gpu.kind && inst->compute == AOT_F32 && inst->dtype == AOT_BF16 && inst->reduce == LP_EACH &&
         strcmp(inst->text, "a * normal_or_nan(a)") == 0;
}

void lp_print_template(lp_text_t *out, const lp_loop_t *l, const lp_inst_t *inst) {
  const char *at = inst->text;
  lp_token_t t;
  if (is_rounded_gelu(l, inst)) {
    lp_print(out, "lp_gelu_rounded_f32(");
    print_arg(out, l, inst, 0);
    lp_print(out, ")");
    return;
  }
  while (lp_token(&at, &t)) {
    switch (t.kind) {
      case LP_TK_ARG:
      case LP_TK_STEP:
        lp_text_add(out, "(", 1);
        print_arg(out, l, inst, t.index + (t.kind == LP_TK_STEP ? LP_ARGS : 0));
        lp_text_add(out, ")", 1);
        break;
      case LP_TK_CALL:
        if (is_exp_of_difference(&t, form_of(l, inst, &t))) {
          lp_print(out, "lp_exp_between_coarse_f32(");
          print_arg(out, l, inst, 0);
          lp_print(out, ", ");
          print_arg(out, l, inst, LP_ARGS + (uint32_t)(at[6] - '0'));
          lp_print(out, ")");
          at += sizeof "(a - %0)" - 1;
          break;
        }
        lp_print(out, "lp_%.*s%s_%s", (int)t.size, t.text, form_of(l, inst, &t), lp_suffix(inst->compute));
        break;
      case LP_TK_CONSTANT: lp_print(out, "(%s)", lp_value_type(inst->compute)); break;
      case LP_TK_LENGTH: lp_print(out, "(%s)length", lp_value_type(inst->compute)); break;
      case LP_TK_PLACE: lp_print(out, "place"); break;
      default:
        if (is_over_length(l, inst, t.text)) {
          lp_print(out, "* (1.0f / (float)length)");
          at = t.text + strlen(over_length);
        } else {
          lp_text_add(out, t.text, t.size);
        }
    }
  }
}

/* ---- loads that have more than strides ---- */

uint32_t lp_first_number(const lp_loop_t *l, uint32_t load) {
  uint32_t at = (l->n_loads + l->n_stores) * (uint32_t)l->rank;
  AOT_ASSERT(load < l->n_loads + l->n_stores);
  for (uint32_t k = 0; k < load; k++)
    at += 2 * (l->accesses[k].n_indices + (uint32_t)__builtin_popcount(l->accesses[k].bounded));
  return at;
}

static void print_number_of(lp_text_t *out, uint32_t at, int64_t v, int is_constant) {
  if (is_constant) lp_print(out, "%lld", (long long)v);
  else lp_print(out, "s[%u]", at);
}

void lp_print_indices(lp_text_t *out, const lp_loop_t *l, uint32_t k, int are_constants) {
  const lp_access_t *a = &l->accesses[k];
  uint32_t at = lp_first_number(l, k);
  if (!a->n_indices) return;
  lp_print(out, "const int64_t j%u = ", k);
  for (uint32_t i = 0; i < a->n_indices; i++, at += 2) {
    const lp_index_t *x = &a->indices[i];
    lp_print(out, x->wraps ? "%slp_place(lp_wrap(x%u, " : "%slp_place(x%u, ", i ? " + " : "", x->load);
    if (x->wraps) print_number_of(out, at + 1, x->size, are_constants);
    if (x->wraps) lp_print(out, "), ");
    print_number_of(out, at + 1, x->size, are_constants);
    lp_print(out, ", &wrong) * ");
    print_number_of(out, at, x->stride, are_constants);
  }
  lp_print(out, ";\n");
}

static uint32_t n_outer(const lp_loop_t *l) { return (uint32_t)(lp_row(l) - (l->columns != 0)); }

void lp_print_row_bounds(lp_text_t *out, const lp_loop_t *l, uint32_t k) {
  const uint32_t bounded = l->accesses[k].bounded & ((1u << n_outer(l)) - 1);
  const char *joint = "";
  AOT_ASSERT(n_outer(l) < (uint32_t)l->rank);
  if (!bounded) return;
  lp_print(out, "const int in%u = ", k);
  for (uint32_t d = 0; d < n_outer(l); d++) {
    if (!(bounded >> d & 1u)) continue;
    lp_print(out, "%si%u >= b%u_%u && i%u < e%u_%u", joint, d, k, d, d, k, d);
    joint = " && ";
  }
  lp_print(out, ";\n");
}

void lp_print_is_inside(lp_text_t *out, const lp_loop_t *l, uint32_t k, const char *inner, const char *row) {
  const uint32_t bounded = l->accesses[k].bounded;
  const char *joint = "";
  if (bounded & ((1u << n_outer(l)) - 1)) lp_print(out, "in%u", k), joint = " && ";
  for (uint32_t d = n_outer(l); d < (uint32_t)l->rank; d++) {
    const char *index = d + 1 == (uint32_t)l->rank && l->columns ? row : inner;
    if (!(bounded >> d & 1u)) continue;
    lp_print(out, "%s%s >= b%u_%u && %s < e%u_%u", joint, index, k, d, index, k, d);
    joint = " && ";
  }
}

void lp_print_outside(lp_text_t *out, const lp_loop_t *l, uint32_t k) {
  const lp_access_t *a = &l->accesses[k];
  const lp_arg_t *other = &a->outside;
  if (other->kind == LP_LOAD)
    print_variable(out, lp_value_dtype(a->dtype), l->accesses[other->index].dtype, 'x', other->index);
  else print_number(out, lp_is_float(a->dtype) || a->dtype == AOT_BOOL ? a->dtype : AOT_I64, other);
}

/* ---- instructions and stores ---- */

/* Does an instruction read it? Others are stored alone. */
static int is_read(const lp_loop_t *l, uint32_t k) {
  for (uint32_t i = k + 1; i < l->n_insts; i++)
    for (uint32_t a = 0; a < l->insts[i].n_args; a++)
      if (l->insts[i].args[a].kind == LP_INST && l->insts[i].args[a].index == k) return 1;
  return 0;
}

void lp_print_value(lp_text_t *out, const lp_loop_t *l, uint32_t k) {
  const char *type = lp_value_type(l->insts[k].dtype), *half = lp_half_name(l->insts[k].dtype);
  const char *form = !half ? "" : l->gpu.kind && !is_read(l, k) ? "lp_stored_" : "lp_round_";
  lp_print(out, "const %s v%u = %s%s((%s)", type, k, form, half ? half : "", type);
}

void lp_print_inst(lp_text_t *out, const lp_loop_t *l, uint32_t k) {
  const lp_inst_t *inst = &l->insts[k];
  lp_print_value(out, l, k);
  lp_print(out, "(");
  lp_print_template(out, l, inst);
  lp_print(out, inst->dtype == AOT_BOOL ? ") != 0);\n" : "));\n");
}

void lp_print_stored(lp_text_t *out, const lp_loop_t *l, uint32_t store) {
  const lp_access_t *a = &l->accesses[store];
  const char *half = lp_half_name(a->dtype);
  AOT_ASSERT(store >= l->n_loads && store < l->n_loads + l->n_stores && a->inst < l->n_insts);
  if (half && a->dtype == l->insts[a->inst].dtype) lp_print(out, "lp_to_%s(v%u)", half, a->inst);
  else if (half)
    lp_print(out, "lp_to_%s(%s_%s((float)v%u))", half, l->gpu.kind ? "lp_stored" : "lp_round", half, a->inst);
  else if (a->dtype == l->insts[a->inst].dtype) lp_print(out, "v%u", a->inst);
  else lp_print(out, "(%s)v%u", lp_c_type(a->dtype), a->inst);
}

/* ---- passes ---- */

int lp_moves(const lp_loop_t *l, uint32_t k) { return l->accesses[k].moves; }

int lp_is_element(const lp_inst_t *inst) { return !inst->of_row || lp_reduces_row(inst); }

void lp_find_pass(const lp_loop_t *l, uint32_t number, lp_pass_t *p) {
  AOT_ASSERT(number < l->n_passes && l->n_loads <= LP_INSTS * LP_ARGS); /* the size of p->loads */
  memset(p, 0, sizeof *p);
  p->number = number;
  lp_pass_members(l, number, p->insts);
  for (uint32_t k = 0; k < l->n_insts; k++) {
    const lp_inst_t *inst = &l->insts[k];
    if (!p->insts[k]) continue;
    p->in_pieces |= lp_reduces_row(inst);
    p->has_scan |= inst->scan != LP_EACH;
    p->has_place |= lp_reads(inst->text, LP_TK_PLACE, 0);
    for (uint32_t a = 0; a < inst->n_args; a++) {
      const lp_arg_t *arg = &inst->args[a];
      if (arg->kind == LP_LOAD || arg->kind == LP_DRAWN) p->loads[arg->index] = (uint8_t)lp_moves(l, arg->index);
      AOT_ASSERT(arg->kind != LP_INST || p->insts[arg->index] || l->insts[arg->index].of_row ||
                 l->insts[arg->index].keep); /* computed here, once a row, or in a row buffer */
      if (arg->kind == LP_INST && !p->insts[arg->index]) p->kept[arg->index] = !l->insts[arg->index].of_row;
    }
  }
  p->is_serial = p->has_scan;
  for (uint32_t s = l->n_loads; s < l->n_loads + l->n_stores; s++) {
    const lp_access_t *x = &l->accesses[s];
    if (!x->n_indices || lp_store_pass(l, s) != number) continue;
    p->is_serial = 1;
    for (uint32_t i = 0; i < x->n_indices; i++) p->loads[x->indices[i].load] = (uint8_t)lp_moves(l, x->indices[i].load);
  }
  for (uint32_t k = l->n_loads; k-- > 0;) { /* and what they read their places from, or outside of their bounds */
    const lp_access_t *x = &l->accesses[k];
    for (uint32_t i = 0; p->loads[k] && i < x->n_indices; i++)
      p->loads[x->indices[i].load] = (uint8_t)lp_moves(l, x->indices[i].load);
    if (p->loads[k] && x->bounded && x->outside.kind == LP_LOAD)
      p->loads[x->outside.index] = (uint8_t)lp_moves(l, x->outside.index);
  }
  for (uint32_t k = 0; k < l->n_loads; k++) p->n_draws += p->loads[k] && l->accesses[k].draws;
  p->in_pieces |= p->n_draws != 0;
}

/* ---- reductions ---- */

const char *lp_reduction_name(int32_t reduce) {
  AOT_ASSERT(reduce >= LP_SUM && reduce <= LP_MIN);
  switch (reduce) {
    case LP_SUM: return "sum";
    case LP_PROD: return "prod";
    case LP_MAX: return "max";
    default: return "min";
  }
}

const char *lp_first_value(const lp_inst_t *inst) {
  const int is_int = !lp_is_float(inst->compute);
  AOT_ASSERT(inst->reduce != LP_ACROSS && inst->reduce + inst->scan != LP_EACH);
  switch (inst->reduce + inst->scan) {
    case LP_SUM: return "0";
    case LP_PROD: return "1";
    case LP_MAX: return is_int ? "INT64_MIN" : "-INFINITY";
    case LP_LOG_ADD: return "-INFINITY";
    default: return is_int ? "INT64_MAX" : "INFINITY";
  }
}

const char *lp_join_name(int32_t reduce) {
  AOT_ASSERT(reduce >= LP_SUM && reduce <= LP_LOG_ADD);
  switch (reduce) {
    case LP_SUM: return "LP_ADD";
    case LP_PROD: return "LP_TIMES";
    case LP_MAX: return "LP_LARGER";
    case LP_LOG_ADD: return "lp_log_add";
    default: return "LP_SMALLER";
  }
}
