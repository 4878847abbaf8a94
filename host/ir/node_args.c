/* Arguments against schemas: defaults, coercions, and the words for what does not fit.
 *
 * An argument is brought into one form before it is stored, so that every reader sees one kind per slot: a number in an
 * int[] slot becomes a list (PyTorch's int[2] stride=1), an int in a float slot a float, an empty list the kind that
 * the schema names, NaN the one quiet NaN, NONE in a slot that takes none its default. Scalar and Tensor slots keep
 * int, float and bool apart: the kind is the type of the number. */
#include <aot/assert.h>
#include <aot/inline.h>
#include <ir/program_store.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LIST_SIZE 8 /* int[3] and the like */

static const char *const kind_names[] = {
    "none",    "a value",         "a list of values", "an int",  "a list of ints", "a float",  "a list of floats",
    "a bool",  "a list of bools", "a string",         "a dtype", "a layout",       "a device", "a memory format",
    "a graph", "an operator"};
static const char *const stype_names[] = {"?",     "Tensor",     "Scalar",  "int",    "float",        "bool",
                                          "str",   "ScalarType", "Layout",  "Device", "MemoryFormat", "Generator",
                                          "Graph", "Any",        "Operator"};

const char *aoth_arg_kind_name(int32_t kind) {
  return kind >= 0 && kind <= AOT_ARG_OP ? kind_names[kind] : "an argument of unknown kind";
}

void aoth_schema_arg_text(const aot_schema_arg_t *s, kit_text_t *out) {
  kit_text_z(out, s->type > 0 && s->type <= AOT_STYPE_OP ? stype_names[s->type] : "?");
  if (s->flags & AOT_SARG_OPTIONAL_ELEM) kit_text_z(out, "?");
  if (s->flags & AOT_SARG_LIST) {
    kit_text_z(out, "[");
    if (s->list_size > 0) kit_text_i64(out, s->list_size);
    kit_text_z(out, "]");
  }
  if (s->flags & AOT_SARG_OPTIONAL) kit_text_z(out, "?");
}

const aot_schema_arg_t *aoth_schema_arg(const aot_op_desc_t *d, uint32_t arg) {
  if (arg < d->n_args) return &d->args[arg];
  if (d->n_args && (d->args[d->n_args - 1].flags & AOT_SARG_VARIADIC)) return &d->args[d->n_args - 1];
  return NULL;
}

uint32_t aoth_args_full_count(const aot_op_desc_t *d, uint32_t n_args) {
  uint32_t fixed = d->n_args;
  if (fixed && (d->args[fixed - 1].flags & AOT_SARG_VARIADIC)) fixed--;
  return n_args > fixed ? n_args : fixed;
}

uint32_t aoth_arg_n_operands(const aot_arg_t *a) {
  return a->kind == AOT_ARG_VALUE ? 1 : a->kind == AOT_ARG_VALUES ? a->n : 0;
}

int aoth_arg_is_written(const aot_op_desc_t *d, const aot_arg_t *args, uint32_t n_args, uint32_t arg) {
  const aot_schema_arg_t *s = aoth_schema_arg(d, arg);
  if (!s || !(s->flags & AOT_SARG_WRITE) || arg >= n_args || aoth_arg_n_operands(&args[arg]) == 0) return 0;
  if (!s->write_if) return 1;
  const uint32_t when = (uint32_t)s->write_if - 1;
  AOT_ASSERT(when < d->n_args); /* descriptors are checked when they are added */
  return when < n_args && args[when].kind == AOT_ARG_BOOL && args[when].u.i;
}

static size_t list_bytes(const aot_arg_t *a) {
  switch (a->kind) {
    case AOT_ARG_INTS:
    case AOT_ARG_BOOLS: return a->n * sizeof(int64_t);
    case AOT_ARG_FLOATS: return a->n * sizeof(double);
    case AOT_ARG_VALUES: return a->n * sizeof(uint32_t);
    case AOT_ARG_STR: return a->n;
    default: return 0;
  }
}

int aoth_arg_same(const aot_arg_t *a, const aot_arg_t *b) {
  if (a->kind != b->kind) return 0;
  switch (a->kind) {
    case AOT_ARG_NONE: return 1;
    case AOT_ARG_FLOAT: return memcmp(&a->u.f, &b->u.f, sizeof a->u.f) == 0;
    case AOT_ARG_INTS:
    case AOT_ARG_BOOLS:
    case AOT_ARG_FLOATS:
    case AOT_ARG_VALUES:
    case AOT_ARG_STR: return a->n == b->n && (a->n == 0 || memcmp(a->u.ints, b->u.ints, list_bytes(a)) == 0);
    default: return a->u.i == b->u.i;
  }
}

/* The list kind of a schema type, or NONE where lists of it do not exist. */
static int32_t list_kind(int32_t type) {
  switch (type) {
    case AOT_STYPE_TENSOR: return AOT_ARG_VALUES;
    case AOT_STYPE_SCALAR:
    case AOT_STYPE_INT: return AOT_ARG_INTS;
    case AOT_STYPE_FLOAT: return AOT_ARG_FLOATS;
    case AOT_STYPE_BOOL: return AOT_ARG_BOOLS;
    default: return AOT_ARG_NONE;
  }
}

static int is_list(int32_t kind) {
  return kind == AOT_ARG_VALUES || kind == AOT_ARG_INTS || kind == AOT_ARG_FLOATS || kind == AOT_ARG_BOOLS;
}

/* A single number where the schema wants a list of them: the list with that number list_size times. */
static aot_status_t spread(aot_prog_t *p, const aot_schema_arg_t *s, aot_arg_t *a) {
  int64_t copies[MAX_LIST_SIZE];
  uint32_t n = s->list_size > 0 ? (uint32_t)s->list_size : 1;
  if (n > MAX_LIST_SIZE) return AOT_OK; /* left as it is: reported as a misfit */
  AOT_ASSERT(a->kind == AOT_ARG_INT || a->kind == AOT_ARG_BOOL);
  for (uint32_t i = 0; i < n; i++) copies[i] = a->u.i;
  a->kind = a->kind == AOT_ARG_INT ? AOT_ARG_INTS : AOT_ARG_BOOLS;
  a->n = n;
  a->u.ints = aoth_ints_intern(p, copies, n);
  return a->u.ints ? AOT_OK : aoth_no_memory(p, "an argument list", n * sizeof *copies);
}

static aot_status_t floats_of_ints(aot_prog_t *p, aot_arg_t *a) {
  double *floats = kit_arena_alloc(p->store, 8, a->n * sizeof *floats);
  if (!floats) return aoth_no_memory(p, "an argument list", a->n * sizeof *floats);
  for (uint32_t i = 0; i < a->n; i++) {
    if (AOT_DIM_IS_SYM(a->u.ints[i])) return AOT_OK;
    floats[i] = (double)a->u.ints[i];
  }
  a->kind = AOT_ARG_FLOATS;
  a->u.floats = floats;
  return AOT_OK;
}

static aot_status_t coerce(aot_prog_t *p, const aot_schema_arg_t *s, aot_arg_t *a) {
  if (s->type == AOT_STYPE_ANY) return AOT_OK;
  if (s->flags & AOT_SARG_LIST) {
    if (is_list(a->kind) && a->n == 0) a->kind = list_kind(s->type);
    if (s->type == AOT_STYPE_FLOAT && a->kind == AOT_ARG_INTS) return floats_of_ints(p, a);
    int number =
        (s->type == AOT_STYPE_INT && a->kind == AOT_ARG_INT) || (s->type == AOT_STYPE_BOOL && a->kind == AOT_ARG_BOOL);
    return number ? spread(p, s, a) : AOT_OK;
  }
  if (s->type == AOT_STYPE_FLOAT && a->kind == AOT_ARG_INT && !AOT_DIM_IS_SYM(a->u.i)) {
    double f = (double)a->u.i;
    a->kind = AOT_ARG_FLOAT;
    a->u.f = f;
  }
  return AOT_OK;
}

/* Members that the kind does not use are zero; bools are 0 or 1; NaN is one NaN. */
static void tidy(aot_arg_t *a) {
  if (a->kind == AOT_ARG_VALUE && (uint32_t)a->u.i == NONE) a->kind = AOT_ARG_NONE;
  if (a->kind == AOT_ARG_NONE) memset(a, 0, sizeof *a);
  if (!is_list(a->kind) && a->kind != AOT_ARG_STR) a->n = 0;
  if (a->kind == AOT_ARG_BOOL) a->u.i = a->u.i != 0;
  if (a->kind == AOT_ARG_FLOAT && isnan(a->u.f)) a->u.f = (double)NAN;
}

aot_status_t aoth_arg_normalise(aot_prog_t *p, const aot_op_desc_t *d, uint32_t arg, aot_arg_t *a) {
  const aot_schema_arg_t *s = aoth_schema_arg(d, arg);
  tidy(a);
  if (!s) return AOT_OK;
  int takes_none = (s->flags & AOT_SARG_OPTIONAL) || s->type == AOT_STYPE_GENERATOR || s->type == AOT_STYPE_ANY;
  if (a->kind == AOT_ARG_NONE && !takes_none && (s->flags & AOT_SARG_HAS_DEFAULT)) {
    *a = s->preset;
    tidy(a);
  }
  return coerce(p, s, a);
}

static int is_sym(const aot_prog_t *p, uint32_t value, int32_t kind) {
  return value_is_alive(p, value) && value_type_of(p, value)->kind == kind;
}

static int scalar_value_fits(const aot_prog_t *p, int32_t type, uint32_t value) {
  int i = is_sym(p, value, AOT_TYPE_SYMINT), f = is_sym(p, value, AOT_TYPE_SYMFLOAT),
      b = is_sym(p, value, AOT_TYPE_SYMBOOL);
  switch (type) {
    case AOT_STYPE_TENSOR: return 1;
    case AOT_STYPE_SCALAR: return i || f || b;
    case AOT_STYPE_INT: return i;
    case AOT_STYPE_FLOAT: return f || i;
    case AOT_STYPE_BOOL: return b;
    default: return 0;
  }
}

static int list_fits(const aot_prog_t *p, const aot_schema_arg_t *s, const aot_arg_t *a) {
  if (a->kind == AOT_ARG_VALUES) {
    for (uint32_t i = 0; i < a->n; i++) {
      if (a->u.ids[i] == NONE && !(s->flags & AOT_SARG_OPTIONAL_ELEM)) return 0;
      if (a->u.ids[i] != NONE && !scalar_value_fits(p, s->type, a->u.ids[i])) return 0;
    }
    return s->type >= AOT_STYPE_TENSOR && s->type <= AOT_STYPE_BOOL;
  }
  if (s->type == AOT_STYPE_SCALAR)
    return a->kind == AOT_ARG_INTS || a->kind == AOT_ARG_FLOATS || a->kind == AOT_ARG_BOOLS;
  return is_list(a->kind) && a->kind == list_kind(s->type);
}

static int scalar_fits(const aot_prog_t *p, const aot_schema_arg_t *s, const aot_arg_t *a) {
  if (a->kind == AOT_ARG_VALUE) return scalar_value_fits(p, s->type, (uint32_t)a->u.i);
  switch (s->type) {
    case AOT_STYPE_TENSOR:
    case AOT_STYPE_SCALAR: return a->kind == AOT_ARG_INT || a->kind == AOT_ARG_FLOAT || a->kind == AOT_ARG_BOOL;
    case AOT_STYPE_INT: return a->kind == AOT_ARG_INT;
    case AOT_STYPE_FLOAT: return a->kind == AOT_ARG_FLOAT || a->kind == AOT_ARG_INT; /* an int that is symbolic */
    case AOT_STYPE_BOOL: return a->kind == AOT_ARG_BOOL;
    case AOT_STYPE_STR: return a->kind == AOT_ARG_STR;
    case AOT_STYPE_DTYPE: return a->kind == AOT_ARG_DTYPE;
    case AOT_STYPE_LAYOUT: return a->kind == AOT_ARG_LAYOUT;
    case AOT_STYPE_DEVICE: return a->kind == AOT_ARG_DEVICE;
    case AOT_STYPE_MEMORY_FORMAT: return a->kind == AOT_ARG_MEMORY_FORMAT;
    case AOT_STYPE_GRAPH: return a->kind == AOT_ARG_GRAPH;
    case AOT_STYPE_OP: return a->kind == AOT_ARG_OP;
    default: return 0;
  }
}

static int fits(const aot_prog_t *p, const aot_schema_arg_t *s, const aot_arg_t *a) {
  if (s->type == AOT_STYPE_ANY) return 1;
  if (a->kind == AOT_ARG_NONE) return (s->flags & AOT_SARG_OPTIONAL) || s->type == AOT_STYPE_GENERATOR;
  return (s->flags & AOT_SARG_LIST) ? list_fits(p, s, a) : scalar_fits(p, s, a);
}

/* What is wrong with the contents of an argument, whatever the schema says. */
static const char *bad_contents(const aot_prog_t *p, const aot_arg_t *a) {
  aot_op_t op = {(uint32_t)a->u.i};
  if (a->kind < AOT_ARG_NONE || a->kind > AOT_ARG_OP) return "an argument kind that exists";
  if ((is_list(a->kind) || a->kind == AOT_ARG_STR) && a->n && !a->u.ints) return "elements (the pointer is NULL)";
  switch (a->kind) {
    case AOT_ARG_VALUE: return value_is_alive(p, (uint32_t)a->u.i) ? NULL : "a value that exists";
    case AOT_ARG_VALUES:
      for (uint32_t i = 0; i < a->n; i++)
        if (a->u.ids[i] != NONE && !value_is_alive(p, a->u.ids[i])) return "values that exist";
      return NULL;
    case AOT_ARG_INT: return aoth_dim_is_valid(p, a->u.i) ? NULL : "a shape expression that exists";
    case AOT_ARG_INTS:
      for (uint32_t i = 0; i < a->n; i++)
        if (!aoth_dim_is_valid(p, a->u.ints[i])) return "shape expressions that exist";
      return NULL;
    case AOT_ARG_GRAPH: return graph_is_alive(p, (uint32_t)a->u.i) ? NULL : "a graph that exists";
    case AOT_ARG_OP: return aoth_ops_desc(p->ops, op) ? NULL : "an operator that exists";
    default: return NULL;
  }
}

const char *aoth_arg_misfit(const aot_prog_t *p, const aot_schema_arg_t *s, const aot_arg_t *a) {
  const char *bad = bad_contents(p, a);
  if (bad) return bad;
  if (fits(p, s, a)) return NULL;
  return s->type > 0 && s->type <= AOT_STYPE_OP ? stype_names[s->type] : "?";
}

static aot_status_t complain_misfit(aot_prog_t *p, const aot_op_desc_t *d, uint32_t arg, const aot_arg_t *a) {
  const aot_schema_arg_t *s = aoth_schema_arg(d, arg);
  kit_text_t wanted = {0};
  const char *bad = bad_contents(p, a);
  if (bad) kit_text_z(&wanted, bad);
  else aoth_schema_arg_text(s, &wanted);
  aoth_complain_arg(p, arg, AOT_E_INVALID, "ir.bad-argument", "argument %u (%.*s) of %.*s is %s; it wants %s", arg,
                    STR_ARGS(s->name), STR_ARGS(d->name), aoth_arg_kind_name(a->kind), wanted.data ? wanted.data : "?");
  if (d->schema.size) aoth_hint(p, "the schema is %.*s%.*s", STR_ARGS(d->name), STR_ARGS(d->schema));
  kit_text_deinit(&wanted);
  return AOT_E_INVALID;
}

static aot_status_t preset_of(aot_prog_t *p, const aot_op_desc_t *d, uint32_t arg, aot_arg_t *out) {
  const aot_schema_arg_t *s = &d->args[arg];
  if (s->flags & AOT_SARG_HAS_DEFAULT) {
    *out = s->preset;
    return AOT_OK;
  }
  *out = aot_arg_none();
  if (s->type == AOT_STYPE_GENERATOR) return AOT_OK;
  aoth_diagnose(p, AOT_E_INVALID, "ir.missing-argument", "argument %u (%.*s) of %.*s is missing and has no default",
                arg, STR_ARGS(s->name), STR_ARGS(d->name));
  if (d->schema.size) aoth_hint(p, "the schema is %.*s%.*s", STR_ARGS(d->name), STR_ARGS(d->schema));
  return AOT_E_INVALID;
}

/* A given argument: brought into form, and checked before (it may point nowhere) and after. */
aot_status_t aoth_arg_accept(aot_prog_t *p, const aot_op_desc_t *d, uint32_t arg, aot_arg_t *a) {
  int absent = a->kind == AOT_ARG_VALUE && (uint32_t)a->u.i == NONE;
  if (!absent && bad_contents(p, a)) return complain_misfit(p, d, arg, a);
  AOT_TRY(aoth_arg_normalise(p, d, arg, a));
  return aoth_arg_misfit(p, aoth_schema_arg(d, arg), a) ? complain_misfit(p, d, arg, a) : AOT_OK;
}

aot_status_t aoth_args_complete(aot_prog_t *p, const aot_op_desc_t *d, const aot_arg_t *args, uint32_t n_args,
                                aot_arg_t *out) {
  uint32_t n = aoth_args_full_count(d, n_args);
  for (uint32_t i = 0; i < n; i++) {
    const aot_schema_arg_t *s = aoth_schema_arg(d, i);
    if (!s) {
      aoth_complain_arg(p, i, AOT_E_INVALID, "ir.too-many-arguments", "%.*s takes %u arguments, %u were given",
                        STR_ARGS(d->name), d->n_args, n_args);
      if (d->schema.size) aoth_hint(p, "the schema is %.*s%.*s", STR_ARGS(d->name), STR_ARGS(d->schema));
      return AOT_E_INVALID;
    }
    if (i < n_args) out[i] = args[i];
    else AOT_TRY(preset_of(p, d, i, &out[i]));
    AOT_TRY(aoth_arg_accept(p, d, i, &out[i]));
  }
  return AOT_OK;
}
