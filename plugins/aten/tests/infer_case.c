#include "infer_case.h"

#include <aot/inline.h>
#include <kit/schema/schema.h>
#include <derive.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- descriptors ---- */

/* Schemas live as long as the test program. */
static void *keep_memory(void *self, uint64_t align, uint64_t nbytes) {
  static char bytes[1 << 22];
  static size_t used;
  size_t at = (used + align - 1) / align * align;
  (void)self;
  if (at + nbytes > sizeof bytes) return NULL;
  used = at + nbytes;
  return bytes + at;
}

const aot_op_desc_t *case_desc(uint32_t row) {
  static aot_op_desc_t descs[AT_N_OPS];
  if (descs[row].struct_size == 0) {
    sch_memory_t memory = {NULL, keep_memory};
    sch_schema_t s;
    sch_error_t error;
    aot_str_t text;
    if (at_rows[row].of != NULL) case_desc((uint32_t)(at_rows[row].of - at_rows)); /* it is in descs before */
    if (at_row_schema(&at_rows[row], descs, &memory, &s, &text, &error) != AOT_OK) {
      fprintf(stderr, "%s: byte %u: %s\n", at_rows[row].name, error.at, error.message);
      abort();
    }
    descs[row].struct_size = sizeof descs[row];
    descs[row].flags = at_row_flags(&at_rows[row]);
    descs[row].schema = text;
    descs[row].args = s.args;
    descs[row].n_args = s.n_args;
    descs[row].results = s.results;
    descs[row].n_results = s.n_results;
  }
  return &descs[row];
}

/* ---- reading ---- */

static int64_t *pool(infer_case_t *c, uint32_t n) {
  int64_t *p = &c->pool[c->n_pool];
  c->n_pool += n;
  if (c->n_pool > sizeof c->pool / sizeof c->pool[0]) abort();
  return p;
}

static int32_t read_dtype(const char **s) {
  static const struct {
    const char *name;
    int32_t dtype;
  } names[] = {
#define NAME(constant, n, text, bytes) {text, n},
      AOT_DTYPE_MAP(NAME)
#undef NAME
  };
  size_t i, best = 0;
  int32_t dtype = 0;
  for (i = 0; i < sizeof names / sizeof names[0]; i++) {
    size_t n = strlen(names[i].name);
    if (strncmp(*s, names[i].name, n) == 0 && n > best) {
      best = n;
      dtype = names[i].dtype;
    }
  }
  *s += best;
  return dtype;
}

static int32_t read_dims(infer_case_t *c, const char **s, const int64_t **out) {
  int64_t *dims = pool(c, AOT_MAX_RANK);
  int32_t n = 0;
  (*s)++;
  while (**s != ')') {
    char *end;
    dims[n++] = strtoll(*s, &end, 10);
    *s = *end == ',' ? end + 1 : end;
  }
  (*s)++;
  *out = dims;
  return n;
}

static aot_type_t read_type(infer_case_t *c, const char **s) {
  aot_type_t t;
  memset(&t, 0, sizeof t);
  if (**s == '?' || **s == '-') {
    (*s)++;
    return t;
  }
  t.kind = AOT_TYPE_TENSOR;
  t.device = AOT_DEVICE_CPU;
  t.dtype = read_dtype(s);
  t.rank = read_dims(c, s, &t.sizes);
  if (**s == '(') {
    char *end;
    read_dims(c, s, &t.strides);
    t.offset = strtoll(*s, &end, 10);
    *s = end;
  } else {
    int64_t *strides = pool(c, AOT_MAX_RANK), step = 1;
    int32_t d;
    for (d = t.rank - 1; d >= 0; d--) {
      strides[d] = step;
      step *= t.sizes[d] > 1 ? t.sizes[d] : 1;
    }
    t.strides = strides;
  }
  return t;
}

static double read_double(const char **s) {
  char *end;
  double d = strtod(*s, &end);
  *s = end;
  return d;
}

static void read_list(infer_case_t *c, const char **s, aot_arg_t *a) {
  int64_t *ints = pool(c, 64);
  double *floats = (double *)pool(c, 64);
  int is_float = 0, is_bool = 0;
  (*s)++;
  while (**s != ']') {
    char mark = *(*s)++;
    double d = read_double(s);
    is_float |= mark == 'd';
    is_bool |= mark == 'b';
    floats[a->n] = d;
    ints[a->n++] = (int64_t)d;
    if (**s == ',') (*s)++;
  }
  (*s)++;
  a->kind = is_float ? AOT_ARG_FLOATS : is_bool ? AOT_ARG_BOOLS : AOT_ARG_INTS;
  if (is_float) a->u.floats = floats;
  else a->u.ints = ints;
}

static uint32_t read_value(infer_case_t *c, const char **s) {
  if (**s == '-') {
    (*s)++;
    return AOT_NO_ID;
  }
  c->values[c->n_values] = read_type(c, s);
  return c->n_values++;
}

static aot_arg_t read_arg(infer_case_t *c, const char **s) {
  aot_arg_t a = aot_arg_none();
  char *end;
  switch (**s) {
    case '-': (*s)++; return a;
    case '[': read_list(c, s, &a); return a;
    case '"':
      a.kind = AOT_ARG_STR;
      a.u.chars = ++*s;
      while (**s != '"') (*s)++, a.n++;
      (*s)++;
      return a;
    case '{': {
      uint32_t *ids = (uint32_t *)pool(c, 32);
      (*s)++;
      a.kind = AOT_ARG_VALUES;
      a.u.ids = ids;
      while (**s != '}') {
        ids[a.n++] = read_value(c, s);
        if (**s == ';') (*s)++;
      }
      (*s)++;
      return a;
    }
    case '@': (*s)++; return aot_arg_dtype(read_dtype(s));
    case '^': a.kind = AOT_ARG_LAYOUT; break;
    case '#': a = aot_arg_device(AOT_DEVICE_CPU, 0); break;
    case '%': a.kind = AOT_ARG_MEMORY_FORMAT; break;
    default: break;
  }
  { /* i64(2) is a tensor, i64 a number */
    size_t n = strcspn(*s, "( ");
    if ((*s)[n] == '(' && strchr("iubfc", **s) != NULL) {
      a.kind = AOT_ARG_VALUE;
      a.u.i = read_value(c, s);
      return a;
    }
  }
  if (**s == 'i') a.kind = AOT_ARG_INT;
  if (**s == 'b') a.kind = AOT_ARG_BOOL;
  if (**s == 'd') {
    (*s)++;
    return aot_arg_float(read_double(s));
  }
  (*s)++;
  a.u.i = strtoll(*s, &end, 10);
  *s = end;
  return a;
}

static uint32_t find_row(const char *name, size_t n) {
  uint32_t i;
  for (i = 0; i < AT_N_OPS; i++)
    if (strlen(at_rows[i].name) == n && memcmp(at_rows[i].name, name, n) == 0) return i;
  return AT_N_OPS;
}

static int find_arg(const aot_op_desc_t *d, const char *name, size_t n, uint32_t *out) {
  for (*out = 0; *out < d->n_args; (*out)++)
    if (d->args[*out].name.size == n && memcmp(d->args[*out].name.data, name, n) == 0) return 1;
  return 0;
}

int case_read(infer_case_t *c, const char *line) {
  const char *s = line;
  size_t n = strcspn(s, " ");
  uint32_t at = 0, i;
  const aot_op_desc_t *d;
  c->text = line;
  c->n_args = c->n_expected = c->n_got = c->n_pool = 0;
  c->n_values = 1; /* ids count from 1 */
  c->row = find_row(s, n);
  if (c->row == AT_N_OPS) return 1;
  d = case_desc(c->row);
  for (i = 0; i < d->n_args && i < MAX_CASE_ARGS; i++) c->args[i] = d->args[i].preset;
  s += n + 1;
  while (strncmp(s, "-> ", 3) != 0) {
    size_t name = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    if (s[name] == '=') {
      if (!find_arg(d, s, name, &at)) return 0;
      s += name + 1;
    }
    if (at >= d->n_args) return 0;
    c->args[at++] = read_arg(c, &s);
    if (at > c->n_args) c->n_args = at;
    if (*s++ != ' ') return 0;
  }
  c->n_args = d->n_args;
  s += 3;
  while (*s && *s != '\n') {
    c->expected[c->n_expected++] = read_type(c, &s);
    if (*s == ' ') s++;
  }
  return 1;
}

/* ---- the world ---- */

static aot_status_t type_of(void *self, uint32_t value, aot_type_t *out) {
  const infer_case_t *c = self;
  if (!value || value >= c->n_values) return AOT_E_RANGE;
  *out = c->values[value];
  return AOT_OK;
}

#define UNKNOWN (AOT_DIM_SYM + 1) /* the symbol of a size that only a run reports; the next: some expression with it */

static aot_status_t make_dim(void *self, int32_t op, int64_t a, int64_t b, int64_t c, int64_t *out) {
  (void)self;
  (void)op;
  (void)c;
  *out = UNKNOWN + 1;
  /* constants are folded before anything asks */
  return AOT_DIM_IS_SYM(a) || AOT_DIM_IS_SYM(b) ? AOT_OK : AOT_E_INTERNAL;
}

static int64_t hint_of(void *self, int64_t dim) {
  const infer_case_t *c = self;
  return AOT_DIM_IS_SYM(dim) ? c->unknown_min : dim;
}

static int compare_dims(void *self, int32_t op, int64_t a, int64_t b) {
  (void)self;
  if (AOT_DIM_IS_SYM(a) || AOT_DIM_IS_SYM(b)) return AOT_DIMS_UNKNOWN;
  return op == AOT_EXPR_EQ ? a == b : op == AOT_EXPR_LT ? a < b : a <= b;
}

static void dim_text(void *self, int64_t dim, char *out, uint64_t capacity) {
  (void)self;
  snprintf(out, (size_t)capacity, "d%lld", (long long)(dim - AOT_DIM_SYM));
}

/* One for all that a call does not know. */
static aot_status_t make_symbol(void *self, int64_t min, int64_t max, int64_t hint, int64_t *out) {
  infer_case_t *c = self;
  c->unknown_min = min;
  c->unknown_max = max;
  *out = UNKNOWN;
  return min <= hint && hint <= max ? AOT_OK : AOT_E_INTERNAL;
}

static aot_status_t region_result(void *self, uint32_t graph, uint32_t i, aot_type_t *out) {
  (void)self;
  (void)graph;
  (void)i;
  (void)out;
  return AOT_E_NOT_FOUND;
}

static aot_status_t put(void *self, const aot_type_t *type) {
  infer_case_t *c = self;
  aot_type_t *t = &c->got[c->n_got++];
  *t = *type;
  if (type->kind == AOT_TYPE_TENSOR) {
    int64_t *dims = pool(c, 2 * AOT_MAX_RANK);
    if (type->rank) memcpy(dims, type->sizes, (size_t)type->rank * sizeof *dims);
    if (type->rank) memcpy(dims + AOT_MAX_RANK, type->strides, (size_t)type->rank * sizeof *dims);
    t->sizes = dims;
    t->strides = dims + AOT_MAX_RANK;
  }
  return AOT_OK;
}

/* There is one operator here. */
static aot_status_t infer_other(void *self, uint32_t op, const aot_arg_t *args, uint32_t n_args) {
  (void)self;
  (void)op;
  (void)args;
  (void)n_args;
  return AOT_E_UNIMPLEMENTED;
}

/* Operands are inputs here. */
static int carries_bit(void *self, uint32_t value, uint32_t bit) {
  (void)self;
  (void)value;
  (void)bit;
  return 0;
}

aot_status_t case_run(infer_case_t *c, at_infer_t *infer) {
  at_env_t env = {c,           type_of,       make_dim, hint_of,     compare_dims, dim_text,
                  make_symbol, region_result, put,      infer_other, carries_bit};
  return at_infer_run(infer, &at_rows[c->row], case_desc(c->row), c->args, c->n_args, &env);
}

/* The recorded size must be in the symbol's range, and be the same wherever the symbol is. */
static int dim_agrees(const infer_case_t *c, int64_t recorded, int64_t inferred, int64_t *known) {
  if (inferred == UNKNOWN + 1) return 1;
  if (inferred != UNKNOWN) return recorded == inferred;
  if (*known < 0) *known = recorded;
  return recorded == *known && recorded >= c->unknown_min && recorded <= c->unknown_max;
}

int case_agrees(const infer_case_t *c, int offsets) {
  uint32_t i;
  int32_t d;
  /* nothing, recorded as None */
  if (c->n_got == 0 && c->n_expected == 1 && c->expected[0].kind == AOT_TYPE_NONE) return 1;
  int64_t known = -1;
  if (c->n_got != c->n_expected) return 0;
  for (i = 0; i < c->n_got; i++) {
    const aot_type_t *e = &c->expected[i], *g = &c->got[i];
    if (e->kind == AOT_TYPE_NONE) continue; /* not a tensor, or a gradient that was not requested */
    if (g->kind != e->kind || g->dtype != e->dtype || g->rank != e->rank) return 0;
    if (offsets && g->offset != e->offset) return 0;
    for (d = 0; d < g->rank; d++)
      if (!dim_agrees(c, e->sizes[d], g->sizes[d], &known) || !dim_agrees(c, e->strides[d], g->strides[d], &known))
        return 0;
  }
  return 1;
}

void case_print_type(const aot_type_t *t, char *out, size_t capacity) {
  size_t at = 0;
  int32_t d;
  if (t->kind != AOT_TYPE_TENSOR) {
    snprintf(out, capacity, "(kind %d)", (int)t->kind);
    return;
  }
  at += (size_t)snprintf(out, capacity, "%s(", aot_dtype_name(t->dtype));
  for (d = 0; d < t->rank && at < capacity; d++)
    at += (size_t)snprintf(out + at, capacity - at, "%s%lld", d ? "," : "", (long long)t->sizes[d]);
  if (at < capacity) at += (size_t)snprintf(out + at, capacity - at, ")(");
  for (d = 0; d < t->rank && at < capacity; d++)
    at += (size_t)snprintf(out + at, capacity - at, "%s%lld", d ? "," : "", (long long)t->strides[d]);
  if (at < capacity) snprintf(out + at, capacity - at, ")%lld", (long long)t->offset);
}
