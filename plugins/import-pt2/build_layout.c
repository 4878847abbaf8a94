/* build_layout.c - strides of results: those of the operators' rules, whatever the archive records.
 *
 * A damaged stride gives other numbers without a word, so that recorded ones count for nothing where a rule knows the
 * layout. Of operators that PyTorch composes of others (einsum, stft) only PyTorch knows it: recorded strides are used
 * if no two elements share an address and all are inside the memory that such a result can have: a new storage, or an
 * operand's. Sizes and strides are looked at with symbols at their traced values. */
#include "builder.h"
#include <stdio.h>
#include <string.h>

#define LAYOUT_UNKNOWN (AOT_OP_COMPOSITE | AOT_OP_MAYBE_SELF | AOT_OP_REGION)

static int64_t hint(const p2_builder_t *b, int64_t dim) { return b->host->graph->dim_hint(b->prog, dim); }

static int has_elements(const p2_builder_t *b, const aot_type_t *t) {
  for (int32_t i = 0; i < t->rank; i++)
    if (hint(b, t->sizes[i]) == 0) return 0;
  return 1;
}

/* Elements from the first to after the last one; INT64_MAX: too many. */
static int64_t extent(const p2_builder_t *b, const aot_type_t *t) {
  int64_t last = hint(b, t->offset), step;
  for (int32_t i = 0; i < t->rank; i++)
    if (__builtin_mul_overflow(hint(b, t->sizes[i]) - 1, hint(b, t->strides[i]), &step) ||
        __builtin_add_overflow(last, step, &last))
      return INT64_MAX;
  return last == INT64_MAX ? last : last + 1;
}

static int64_t count(const p2_builder_t *b, const aot_type_t *t) {
  int64_t n = 1;
  for (int32_t i = 0; i < t->rank; i++)
    if (__builtin_mul_overflow(n, hint(b, t->sizes[i]), &n)) return INT64_MAX;
  return n;
}

/* Without the sizes that are symbols: where no rule gives them, a run reports them. */
static aot_type_t of_known_sizes(const aot_type_t *t, int64_t *sizes) {
  aot_type_t known = *t;
  for (int32_t i = 0; i < t->rank; i++) sizes[i] = AOT_DIM_IS_SYM(t->sizes[i]) ? 1 : t->sizes[i];
  known.sizes = sizes;
  if (AOT_DIM_IS_SYM(t->offset)) known.offset = 0;
  return known;
}

/* From the innermost dimension on, each stride passes over all that is inside of it. */
static int shares_addresses(const p2_builder_t *b, const aot_type_t *t) {
  int64_t inner = 1; /* elements that the dimensions so far reach over */
  uint32_t seen = 0;
  for (int32_t k = 0; k < t->rank; k++) {
    int32_t next = -1;
    for (int32_t i = 0; i < t->rank; i++)
      if (!(seen >> i & 1) && hint(b, t->sizes[i]) > 1 &&
          (next < 0 || hint(b, t->strides[i]) < hint(b, t->strides[next])))
        next = i;
    if (next < 0) return 0;
    seen |= 1u << next;
    int64_t step;
    if (hint(b, t->strides[next]) < inner) return 1;
    if (__builtin_mul_overflow(hint(b, t->sizes[next]) - 1, hint(b, t->strides[next]), &step) ||
        __builtin_add_overflow(inner, step, &inner))
      return 1;
  }
  return 0;
}

static int64_t largest_operand(const p2_builder_t *b, const aot_arg_t *args, uint32_t n_args) {
  int64_t largest = 0;
  for (uint32_t i = 0; i < n_args; i++) {
    const uint32_t n = args[i].kind == AOT_ARG_VALUE ? 1 : args[i].kind == AOT_ARG_VALUES ? args[i].n : 0;
    for (uint32_t k = 0; k < n; k++) {
      const aot_value_t v = {args[i].kind == AOT_ARG_VALUE ? (uint32_t)args[i].u.i : args[i].u.ids[k]};
      aot_type_t t;
      if (v.id == AOT_NO_ID || b->host->graph->value_type(b->prog, v, &t) != AOT_OK || t.kind != AOT_TYPE_TENSOR)
        continue;
      const int64_t reach = extent(b, &t);
      if (reach > largest) largest = reach;
    }
  }
  return largest;
}

static int is_possible(const p2_builder_t *b, const aot_arg_t *args, uint32_t n_args, const aot_type_t *t,
                       int has_rule) {
  int64_t sizes[AOT_MAX_RANK];
  const aot_type_t known = of_known_sizes(t, sizes), *looked_at = has_rule ? t : &known;
  const int all = has_rule || memcmp(sizes, t->sizes, (size_t)t->rank * sizeof *sizes) == 0;
  if (!has_elements(b, looked_at)) return 1;
  if (shares_addresses(b, looked_at)) return 0;
  const int64_t reach = extent(b, looked_at);
  return (!all && reach != INT64_MAX) || reach <= count(b, looked_at) || reach <= largest_operand(b, args, n_args);
}

/* Where there is more than one element, as traced. */
static int same_strides(const p2_builder_t *b, const aot_type_t *x, const aot_type_t *y) {
  for (int32_t i = 0; i < x->rank; i++)
    if (hint(b, x->sizes[i]) != 1 && hint(b, x->strides[i]) != hint(b, y->strides[i])) return 0;
  return 1;
}

/* Row-major, whatever the values of the symbols. */
static aot_status_t is_dense(p2_builder_t *b, const aot_type_t *t, int *out) {
  int64_t dense = 1;
  *out = 0;
  for (int32_t i = t->rank; i-- > 0;) {
    if (t->sizes[i] != 1 && t->strides[i] != dense) return AOT_OK;
    if (t->sizes[i] == 0) break;
    AOT_TRY(b->host->edit->dim_make(b->prog, AOT_EXPR_MUL, dense, t->sizes[i], 0, &dense));
  }
  *out = 1;
  return AOT_OK;
}

/* A region reads the operands in its layout: it is recorded with the same strides. */
aot_status_t p2_check_region_input(p2_builder_t *b, uint32_t position, const aot_type_t *input,
                                   const aot_type_t *operand) {
  if (input->kind != AOT_TYPE_TENSOR || operand->kind != AOT_TYPE_TENSOR) return AOT_OK;
  if (input->dtype == operand->dtype && input->rank == operand->rank && same_strides(b, input, operand)) return AOT_OK;
  p2_node_bad(b, b->node, "import-pt2.bad-region",
              "input %u of the region is recorded with another dtype, rank or strides than the operand that it is",
              position);
  p2_hint(b->env, "the archive is damaged");
  return AOT_E_INVALID;
}

/* On a device that neither an operand nor the rule of the operator names. */
static int is_elsewhere(const p2_builder_t *b, const aot_arg_t *args, uint32_t n_args, const aot_type_t *t,
                        const aot_type_t *rule) {
  int any = 0;
  if (!rule || rule->device == t->device) return 0;
  for (uint32_t i = 0; i < n_args; i++) {
    const uint32_t n = args[i].kind == AOT_ARG_VALUE ? 1 : args[i].kind == AOT_ARG_VALUES ? args[i].n : 0;
    if (args[i].kind == AOT_ARG_DEVICE) return 0;
    for (uint32_t k = 0; k < n; k++) {
      const aot_value_t v = {args[i].kind == AOT_ARG_VALUE ? (uint32_t)args[i].u.i : args[i].u.ids[k]};
      aot_type_t operand;
      if (v.id == AOT_NO_ID || b->host->graph->value_type(b->prog, v, &operand) != AOT_OK) continue;
      if (operand.kind != AOT_TYPE_TENSOR) continue;
      if (operand.device == t->device) return 0;
      any = 1;
    }
  }
  return any;
}

static aot_status_t refuse(p2_builder_t *b, const p2_node_t *n, uint32_t result, const aot_type_t *t) {
  char text[400] = "";
  size_t used = 0;
  for (int32_t i = 0; i < t->rank && used + 48 < sizeof text; i++)
    used +=
        (size_t)snprintf(text + used, sizeof text - used, "%s%lld", i ? ", " : "", (long long)hint(b, t->strides[i]));
  p2_node_bad(b, n, "import-pt2.strides",
              "result %u is recorded with the strides [%s], which such a tensor cannot have", result, text);
  p2_hint(b->env, "the archive is damaged");
  return AOT_E_INVALID;
}

aot_status_t p2_lay_out(p2_builder_t *b, const p2_node_t *n, uint32_t flags, const aot_arg_t *args, uint32_t n_args,
                        const p2_types_t *inferred, p2_types_t *types) {
  for (uint32_t i = 0; i < types->n; i++) {
    aot_type_t *t = &types->at[i];
    const aot_type_t *rule = i < inferred->n ? &inferred->at[i] : NULL;
    if (t->kind != AOT_TYPE_TENSOR || !t->strides) continue;
    if (rule && (rule->kind != AOT_TYPE_TENSOR || rule->rank != t->rank || !rule->strides)) rule = NULL;
    if (is_elsewhere(b, args, n_args, t, rule)) {
      p2_node_bad(b, n, "import-pt2.device", "result %u is recorded on another device than its operands are on", i);
      p2_hint(b->env, "the archive is damaged");
      return AOT_E_INVALID;
    }
    const int agrees = rule && same_strides(b, t, rule);
    if (!agrees && !is_possible(b, args, n_args, t, rule != NULL)) return refuse(b, n, i, t);
    if (!rule || flags & LAYOUT_UNKNOWN) continue;
    int dense;
    AOT_TRY(is_dense(b, rule, &dense));
    t->strides = dense ? NULL : rule->strides; /* NULL: dense, in terms of its own sizes */
    t->offset = rule->offset;
  }
  return AOT_OK;
}
