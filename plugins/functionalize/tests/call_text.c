#include "call_text.h"

#include <aot/inline.h>
#include <math.h>
#include <string.h>

typedef struct kind {
  int32_t dtype, rank;
  int64_t sizes[4];
} kind_t;

static const kind_t kinds[] = {
    {AOT_F64, 2, {3, 3}},       {AOT_F64, 1, {3}},     {AOT_I64, 2, {3, 3}},    {AOT_I64, 1, {3}},
    {AOT_BOOL, 2, {3, 3}},      {AOT_F64, 0, {0}},     {AOT_F64, 3, {2, 3, 3}}, {AOT_I64, 0, {0}},
    {AOT_F64, 4, {1, 3, 4, 4}}, {AOT_C128, 2, {3, 3}},
};
#define N_KINDS (int)(sizeof kinds / sizeof *kinds)

/* What is in slots that take no tensor. */
static const char *const ints[] = {"0", "1", "2", "3", NULL};
static const char *const int_lists[] = {"[1]", "[0]", "[3, 3]", "[0, 1]",    "[2, 2]", "[1, 1]",
                                        "[]",  "[9]", "[1, 2]", "[2, 0, 1]", NULL};
static const char *const scalars[] = {"0.5", "1", NULL};
static const char *const floats[] = {"0.5", "1.0", NULL};
static const char *const float_lists[] = {"[1.5, 1.5]", "[0.5, 0.5]", NULL};
static const char *const bools[] = {"false", "true", NULL};
static const char *const bool_lists[] = {"[true, true, true]", "[true, true]", NULL};
static const char *const strings[] = {"\"sum\"", "\"none\"", "\"reflect\"", "\"mean\"", NULL};
static const char *const dtypes[] = {"f64", "i64", NULL};
static const char *const devices[] = {"cpu", NULL};
static const char *const formats[] = {"contiguous", NULL};
static const char *const nothing[] = {NULL};

static const char *const *literals(const aot_schema_arg_t *a) {
  int list = (a->flags & AOT_SARG_LIST) != 0;
  switch (a->type) {
    case AOT_STYPE_INT: return list ? int_lists : ints;
    case AOT_STYPE_SCALAR: return list ? float_lists : scalars;
    case AOT_STYPE_FLOAT: return list ? float_lists : floats;
    case AOT_STYPE_BOOL: return list ? bool_lists : bools;
    case AOT_STYPE_STR: return strings;
    case AOT_STYPE_DTYPE: return dtypes;
    case AOT_STYPE_DEVICE: return devices;
    case AOT_STYPE_MEMORY_FORMAT: return formats;
    default: return nothing;
  }
}

static int may_be_left_out(const aot_schema_arg_t *a) {
  return (a->flags & (AOT_SARG_HAS_DEFAULT | AOT_SARG_OPTIONAL)) != 0;
}

static int n_literals(const aot_schema_arg_t *a) {
  int n = 0;
  while (literals(a)[n]) n++;
  return n;
}

static int n_options(const ct_call_t *c, uint32_t arg) {
  const aot_schema_arg_t *a = &c->op->args[arg];
  int left_out = may_be_left_out(a);
  if (c->skip >> arg & 1) return 1;
  if (left_out && !c->vary_defaults) return 1;
  return left_out + (a->type == AOT_STYPE_TENSOR ? N_KINDS : n_literals(a));
}

int ct_is_written(const aot_op_desc_t *d, uint32_t arg) {
  return (d->args[arg].flags & AOT_SARG_WRITE) && !d->args[arg].write_if;
}

static int is_given(const ct_call_t *c, uint32_t arg) {
  if (c->skip >> arg & 1) return 0;
  return !may_be_left_out(&c->op->args[arg]) || c->option[arg] > 0;
}

static int which_option(const ct_call_t *c, uint32_t arg) {
  return c->option[arg] - may_be_left_out(&c->op->args[arg]);
}

void ct_values(aoth_tensor_t *t, int which) {
  aoth_walk_t walk;
  uint64_t size = aot_dtype_size(t->dtype);
  memset(t->data, 0, t->nbytes);
  aoth_walk_begin(&walk, t, NULL);
  for (int i = 0; walk.left > 0; i++, aoth_walk_next(&walk)) {
    double fraction = fmod(0.37 * (i + 1) + 0.61 * which, 1.0);
    int whole = t->dtype == AOT_BOOL ? (i + which) % 2 : (i + which) % 3;
    int is_real = aot_dtype_is_float(t->dtype) || t->dtype == AOT_C128 || t->dtype == AOT_C64;
    kit_element_store(t->dtype == AOT_C128 ? AOT_F64 : t->dtype, walk.at[0], is_real ? 0.1 + 0.8 * fraction : whole);
    if (t->dtype == AOT_C128) kit_element_store(AOT_F64, walk.at[0] + size / 2, 0.3 * fraction);
  }
}

static void add_input(ct_call_t *c, const kind_t *k, int is_written) {
  ct_input_t *in = &c->input[c->n_inputs];
  in->tensor = aoth_tensor_make(in->data, k->dtype, k->rank, k->sizes);
  in->is_written = is_written;
  ct_values(&in->tensor, c->n_inputs++);
}

int ct_fill(ct_call_t *c) {
  c->n_inputs = 0;
  if (c->op->n_args > CT_ARGS) return 0;
  for (uint32_t a = 0; a < c->op->n_args; a++) {
    const aot_schema_arg_t *s = &c->op->args[a];
    if (!is_given(c, a)) continue;
    if (s->type == AOT_STYPE_TENSOR) {
      if (c->n_inputs + 2 > CT_INPUTS) return 0;
      add_input(c, &kinds[which_option(c, a)], ct_is_written(c->op, a));
      if (s->flags & AOT_SARG_LIST) add_input(c, &kinds[which_option(c, a)], ct_is_written(c->op, a));
    } else if (n_literals(s) == 0) {
      return 0;
    }
  }
  return 1;
}

int ct_next(ct_call_t *c) {
  for (uint32_t a = c->op->n_args; a-- > 0;) {
    if (++c->option[a] < n_options(c, a)) return 1;
    c->option[a] = 0;
  }
  return 0;
}

void ct_print(const ct_call_t *c, const char *op, const char *name, kit_text_t *out) {
  int n = 0, n_printed = 0;
  kit_text_z(out, op);
  for (uint32_t a = 0; a < c->op->n_args; a++) {
    const aot_schema_arg_t *s = &c->op->args[a];
    if (!is_given(c, a) && ((c->skip >> a & 1) || (s->flags & AOT_SARG_HAS_DEFAULT))) continue;
    kit_text_f(out, "%s%.*s=", n_printed++ ? ", " : " ", (int)s->name.size, s->name.data);
    if (!is_given(c, a)) kit_text_z(out, "none");
    else if (s->type != AOT_STYPE_TENSOR) kit_text_z(out, literals(s)[which_option(c, a)]);
    else if (s->flags & AOT_SARG_LIST) kit_text_f(out, "[%%%s%d, %%%s%d]", name, n, name, n + 1), n += 2;
    else kit_text_f(out, "%%%s%d", name, n++);
  }
}

void ct_print_type(const aoth_tensor_t *t, kit_text_t *out) { aoth_tensor_print_shape(t, out); }
