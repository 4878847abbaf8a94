/* Every kernel against what PyTorch 2.11 recorded: tests/fixtures/ops/{cases.json,data.safetensors,schemas.tsv}.
 *
 * Arguments are filled in by schema position, the results get the recorded shape, strides and dtype. Each case runs
 * twice: as recorded, and with every argument spread over a storage with gaps, its dimensions reversed in memory.
 * Integers and booleans must agree exactly, f32 to 1e-5, bf16 to 2e-2 of the value (and of the largest value, for sums
 * that cancel). Which of equal elements topk and kthvalue name is PyTorch's secret: there the index must lead to the
 * value.
 *
 *     recorded_cases [-v] [-l] [OP..]     -v: every failure, -l: operators without a kernel, OP: only these */
#include "kit/reference/rk.h"
#include "kit/schema/schema.h"
#include <aot/inline.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef AOT_FIXTURES
#define AOT_FIXTURES "tests/fixtures"
#endif

#define MAX_ARGS 32
#define MAX_RESULTS 64

/* ---- memory of one case ---- */

typedef struct pool {
  void *blocks[4096];
  int n;
} pool_t;

static void *take(pool_t *p, size_t n) {
  void *m = calloc(1, n ? n : 1);
  if (!m || p->n == 4096) exit(2);
  p->blocks[p->n++] = m;
  return m;
}
static void drop(pool_t *p) {
  while (p->n) free(p->blocks[--p->n]);
}
static void *schema_alloc(void *self, uint64_t align, uint64_t nbytes) {
  (void)align;
  return take(self, (size_t)nbytes);
}

/* ---- files ---- */

static char *read_whole(const char *path, size_t *size) {
  FILE *f = fopen(path, "rb");
  char *data;
  long n;
  if (!f || fseek(f, 0, SEEK_END) != 0) {
    fprintf(stderr, "cannot read %s\n", path);
    exit(2);
  }
  n = ftell(f);
  rewind(f);
  data = malloc((size_t)n + 1);
  if (!data || fread(data, 1, (size_t)n, f) != (size_t)n) exit(2);
  data[n] = 0;
  fclose(f);
  *size = (size_t)n;
  return data;
}

typedef struct fixtures {
  json_t *cases, *index; /* index: the header of data.safetensors */
  char *file, *bytes, *schemas;
} fixtures_t;

static fixtures_t open_fixtures(void) {
  fixtures_t fx;
  size_t n;
  uint64_t header;
  json_error_t error;
  fx.cases = json_load_file(AOT_FIXTURES "/ops/cases.json", 0, &error);
  fx.file = read_whole(AOT_FIXTURES "/ops/data.safetensors", &n);
  memcpy(&header, fx.file, sizeof header);
  fx.index = json_loadb(fx.file + 8, (size_t)header, 0, &error);
  fx.bytes = fx.file + 8 + header;
  fx.schemas = read_whole(AOT_FIXTURES "/ops/schemas.tsv", &n);
  if (!fx.cases || !fx.index) {
    fprintf(stderr, "%s:%d: %s\n", error.source, error.line, error.text);
    exit(2);
  }
  return fx;
}

static int32_t dtype_of(const char *name) {
  static const struct {
    const char *name;
    int32_t dtype;
  } names[] = {{"F32", AOT_F32},     {"F64", AOT_F64},       {"BF16", AOT_BF16},   {"F16", AOT_F16},
               {"I64", AOT_I64},     {"I32", AOT_I32},       {"I16", AOT_I16},     {"I8", AOT_I8},
               {"U8", AOT_U8},       {"U64", AOT_U64},       {"BOOL", AOT_BOOL},   {"float32", AOT_F32},
               {"float64", AOT_F64}, {"bfloat16", AOT_BF16}, {"float16", AOT_F16}, {"int64", AOT_I64},
               {"int32", AOT_I32},   {"int16", AOT_I16},     {"int8", AOT_I8},     {"uint8", AOT_U8},
               {"uint64", AOT_U64},  {"bool", AOT_BOOL}};
  for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
    if (strcmp(names[k].name, name) == 0) return names[k].dtype;
  fprintf(stderr, "dtype %s\n", name);
  exit(2);
}

static void set_dims(rk_tensor_t *t, json_t *sizes, json_t *strides) {
  int64_t stride = 1;
  t->rank = (int32_t)json_array_size(sizes);
  for (int32_t d = t->rank - 1; d >= 0; d--) {
    t->sizes[d] = json_integer_value(json_array_get(sizes, (size_t)d));
    t->strides[d] = strides ? json_integer_value(json_array_get(strides, (size_t)d)) : stride;
    stride *= t->sizes[d] > 1 ? t->sizes[d] : 1;
  }
}

static rk_tensor_t tensor_at(const fixtures_t *fx, json_t *node) {
  json_t *row = json_object_get(fx->index, json_string_value(json_object_get(node, "t")));
  json_t *offsets = json_object_get(row, "data_offsets");
  rk_tensor_t t = {0};
  int64_t begin = json_integer_value(json_array_get(offsets, 0));
  t.data = fx->bytes + begin;
  t.nbytes = (uint64_t)(json_integer_value(json_array_get(offsets, 1)) - begin);
  t.dtype = dtype_of(json_string_value(json_object_get(row, "dtype")));
  set_dims(&t, json_object_get(row, "shape"), NULL);
  if (json_object_get(node, "stride")) {
    set_dims(&t, json_object_get(node, "shape"), json_object_get(node, "stride"));
    t.offset = json_integer_value(json_object_get(node, "offset"));
  }
  return t;
}

/* The same elements in a storage with gaps, last dimension slowest. */
static rk_tensor_t spread(pool_t *p, const rk_tensor_t *t) {
  rk_tensor_t s = *t;
  int64_t stride = 2;
  s.offset = 3;
  for (int32_t d = 0; d < t->rank; d++) {
    s.strides[d] = stride;
    stride = stride * (t->sizes[d] ? t->sizes[d] : 1) + 1;
  }
  s.nbytes = (uint64_t)(stride + 3) * aot_dtype_size(t->dtype);
  s.data = take(p, (size_t)s.nbytes);
  memset(s.data, 0x5A, (size_t)s.nbytes);
  rk_copy(&s, t);
  return s;
}

/* ---- arguments ---- */

typedef struct reader {
  const fixtures_t *fx;
  pool_t *p;
  int spread;
} reader_t;

static double number(json_t *v) {
  const char *text = json_string_value(v);
  if (!text) return json_number_value(v);
  return strcmp(text, "nan") == 0 ? NAN : strcmp(text, "inf") == 0 ? INFINITY : -INFINITY;
}

static const rk_tensor_t *read_tensor(reader_t *r, json_t *node) {
  rk_tensor_t *t = take(r->p, sizeof *t);
  *t = tensor_at(r->fx, node);
  if (r->spread) *t = spread(r->p, t);
  return t;
}

static rk_arg_t read_list(reader_t *r, json_t *list) {
  rk_arg_t a = {AOT_ARG_INTS, (uint32_t)json_array_size(list), {0}};
  int64_t *ints = take(r->p, (a.n + 1) * sizeof *ints);
  double *floats = take(r->p, (a.n + 1) * sizeof *floats);
  const rk_tensor_t **tensors = take(r->p, (a.n + 1) * sizeof *tensors);
  for (uint32_t k = 0; k < a.n; k++) {
    json_t *e = json_array_get(list, k);
    if (json_is_null(e)) continue;
    if (json_object_get(e, "t")) {
      a.kind = AOT_ARG_VALUES;
      tensors[k] = read_tensor(r, e);
    } else if (json_object_get(e, "f")) {
      a.kind = AOT_ARG_FLOATS;
      floats[k] = number(json_object_get(e, "f"));
    } else {
      ints[k] =
          json_object_get(e, "b") ? json_is_true(json_object_get(e, "b")) : json_integer_value(json_object_get(e, "i"));
    }
  }
  if (a.kind == AOT_ARG_VALUES) a.u.tensors = tensors;
  else if (a.kind == AOT_ARG_FLOATS) a.u.floats = floats;
  else a.u.ints = ints;
  return a;
}

static rk_arg_t read_arg(reader_t *r, json_t *node) {
  rk_arg_t a = {AOT_ARG_NONE, 0, {0}};
  json_t *v;
  if (!node || json_is_null(node)) return a;
  if (json_object_get(node, "t")) return rk_arg_of_tensor(read_tensor(r, node));
  if ((v = json_object_get(node, "i"))) return rk_arg_of_int(json_integer_value(v));
  if ((v = json_object_get(node, "f"))) return rk_arg_of_float(number(v));
  if ((v = json_object_get(node, "b"))) return rk_arg_of_bool(json_is_true(v));
  if ((v = json_object_get(node, "l"))) return read_list(r, v);
  if ((v = json_object_get(node, "s"))) {
    a.kind = AOT_ARG_STR;
    a.n = (uint32_t)json_string_length(v);
    a.u.chars = json_string_value(v);
  } else if ((v = json_object_get(node, "dtype"))) {
    a.kind = AOT_ARG_DTYPE;
    a.u.i = dtype_of(json_string_value(v));
  }
  return a; /* device, layout, memory format: no kernel looks at them */
}

static rk_arg_t preset_arg(const aot_schema_arg_t *s) {
  rk_arg_t a = {s->preset.kind, s->preset.n, {0}};
  if (!(s->flags & AOT_SARG_HAS_DEFAULT)) a.kind = AOT_ARG_NONE;
  else if (a.kind == AOT_ARG_FLOAT) a.u.f = s->preset.u.f;
  else if (a.kind == AOT_ARG_INTS) a.u.ints = s->preset.u.ints;
  else if (a.kind == AOT_ARG_STR) a.u.chars = s->preset.u.chars;
  else a.u.i = s->preset.u.i;
  return a;
}

static aot_str_t schema_text(const fixtures_t *fx, const char *op) {
  aot_str_t text = {NULL, 0};
  size_t n = strlen(op);
  for (const char *line = fx->schemas; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
    if (strncmp(line, op, n) != 0 || line[n] != '\t') continue;
    text.data = line + n + 1;
    text.size = strcspn(text.data, "\n");
    return text;
  }
  return text;
}

static uint32_t read_args(reader_t *r, json_t *one, rk_arg_t *args) {
  sch_schema_t schema;
  sch_error_t error;
  sch_memory_t memory = {r->p, schema_alloc};
  json_t *list = json_object_get(one, "args"), *named = json_object_get(one, "kwargs");
  const char *op = json_string_value(json_object_get(one, "op"));
  if (sch_parse(schema_text(r->fx, op), &memory, &schema, &error) != AOT_OK) {
    fprintf(stderr, "%s: %s\n", op, error.message);
    exit(2);
  }
  for (uint32_t a = 0; a < schema.n_args; a++) {
    char name[64];
    json_t *by_name;
    snprintf(name, sizeof name, "%.*s", (int)schema.args[a].name.size, schema.args[a].name.data);
    by_name = json_object_get(named, name);
    if (a < json_array_size(list)) args[a] = read_arg(r, json_array_get(list, a));
    else if (by_name) args[a] = read_arg(r, by_name);
    else args[a] = preset_arg(&schema.args[a]);
  }
  return schema.n_args;
}

/* ---- results ---- */

static uint32_t make_results(reader_t *r, json_t *one, rk_tensor_t *results, rk_tensor_t *expected) {
  json_t *outputs = json_object_get(one, "outputs"), *metas = json_object_get(one, "out_meta");
  uint32_t n = (uint32_t)json_array_size(outputs);
  for (uint32_t k = 0; k < n && k < MAX_RESULTS; k++) {
    json_t *o = json_array_get(outputs, k), *meta = json_array_get(metas, k);
    int64_t span = 1;
    memset(&results[k], 0, sizeof results[k]);
    memset(&expected[k], 0, sizeof expected[k]);
    if (json_is_null(o)) continue;
    if (json_object_get(o, "t")) {
      expected[k] = tensor_at(r->fx, o);
      results[k].dtype = dtype_of(json_string_value(json_object_get(meta, "dtype")));
      set_dims(&results[k], json_object_get(meta, "shape"), r->spread ? NULL : json_object_get(meta, "stride"));
    } else {
      rk_arg_t v = read_arg(r, o);
      double *payload = take(r->p, sizeof *payload);
      expected[k].data = payload;
      expected[k].nbytes = sizeof *payload;
      expected[k].dtype = results[k].dtype = v.kind == AOT_ARG_FLOAT  ? AOT_F64
                                             : v.kind == AOT_ARG_BOOL ? AOT_BOOL
                                                                      : AOT_I64;
      if (v.kind == AOT_ARG_FLOAT) *payload = v.u.f;
      else memcpy(payload, &v.u.i, sizeof v.u.i);
    }
    for (int32_t d = 0; d < results[k].rank; d++)
      span += results[k].sizes[d] ? (results[k].sizes[d] - 1) * results[k].strides[d] : 0;
    results[k].nbytes = (uint64_t)span * aot_dtype_size(results[k].dtype);
    results[k].data = take(r->p, (size_t)results[k].nbytes);
    if (r->spread) results[k] = spread(r->p, &results[k]);
    memset(results[k].data, 0x7E, (size_t)results[k].nbytes);
  }
  return n;
}

/* Where the recording is further from the truth than the kernel may be. */
/* clang-format off */
static const struct { const char *name; double slack; const char *reason; } exceptions[] = {
    {"aten.polygamma.default", 4, "sin(pi x) in single precision, near a pole"},
    {"c2394", INFINITY, "matrix_exp of bfloat16 overflowed to NaN in the recording"},
};
/* clang-format on */
static double slack_of(const char *id, const char *op) {
  for (size_t k = 0; k < sizeof exceptions / sizeof exceptions[0]; k++)
    if (strcmp(exceptions[k].name, id) == 0 || strcmp(exceptions[k].name, op) == 0) return exceptions[k].slack;
  return 1;
}
/* The signs of singular vectors are anything's choice. */
static int signs_are_free(const char *op) { return strcmp(op, "aten._linalg_svd.default") == 0; }

static double value_at(const rk_tensor_t *t, const int64_t *index) {
  rk_tensor_t one = *t, to = {0};
  double v = 0;
  for (int32_t d = 0; d < t->rank; d++) one.offset += index[d] * t->strides[d];
  one.rank = 0;
  to.data = &v;
  to.nbytes = sizeof v;
  to.dtype = AOT_F64;
  rk_copy(&to, &one);
  return v;
}

/* The worst disagreement in units of the tolerance; integers: 2 for any. */
static double compare(const rk_tensor_t *got, const rk_tensor_t *want, int magnitudes) {
  int64_t index[AOT_MAX_RANK] = {0}, n = rk_numel(want);
  double worst = 0, largest = 0,
         tolerance = want->dtype == AOT_BF16  ? 2e-2
                     : want->dtype == AOT_F32 ? 1e-5
                     : want->dtype == AOT_F64 ? 1e-9
                                              : 0;
  if (got->dtype != want->dtype || got->rank != want->rank) return INFINITY;
  for (int pass = 0; pass < 2; pass++) {
    memset(index, 0, sizeof index);
    for (int64_t e = 0; e < n; e++) {
      double a = value_at(got, index), b = value_at(want, index);
      if (magnitudes) {
        a = fabs(a);
        b = fabs(b);
      }
      if (pass == 0 && isfinite(b)) largest = fmax(largest, fabs(b));
      if (pass == 1 && a != b && !(a != a && b != b)) {
        double off = tolerance == 0 || !isfinite(a - b)
                         ? INFINITY
                         : fabs(a - b) / (tolerance * (0.9 * fabs(b) + 0.1 * largest) + 1e-7);
        worst = fmax(worst, off);
      }
      for (int32_t d = want->rank - 1; d >= 0 && ++index[d] == want->sizes[d]; d--) index[d] = 0;
    }
  }
  return worst;
}

/* ---- one case ---- */

/* Does index result 1 of topk or kthvalue lead to the values of result 0? */
static int leads_to_value(reader_t *r, const char *op, const rk_arg_t *args, const rk_tensor_t *results) {
  int is_topk = strcmp(op, "aten.topk.default") == 0;
  rk_tensor_t values = results[0], indices = results[1], found;
  const rk_tensor_t *self = args[0].u.tensor;
  rk_arg_t gather[4];
  rk_call_t call = {gather, 4, &found, 1};
  rk_error_t error;
  int64_t dim = args[2].u.i < 0 ? args[2].u.i + (self->rank ? self->rank : 1) : args[2].u.i;
  if (!is_topk && strcmp(op, "aten.kthvalue.default") != 0) return 0;
  if (values.rank < self->rank) { /* the dimension was dropped: put it back */
    for (int32_t d = values.rank; d > dim; d--) {
      values.sizes[d] = values.sizes[d - 1];
      values.strides[d] = values.strides[d - 1];
      indices.sizes[d] = indices.sizes[d - 1];
      indices.strides[d] = indices.strides[d - 1];
    }
    values.rank++;
    indices.rank++;
    values.sizes[dim] = indices.sizes[dim] = 1;
  }
  found = values;
  found.data = take(r->p, (size_t)values.nbytes);
  gather[0] = args[0];
  gather[1] = rk_arg_of_int(dim);
  gather[2] = rk_arg_of_tensor(&indices);
  gather[3] = rk_arg_of_bool(0);
  return rk_run(rk_find(aot_str("aten.gather.default")), &call, &error) == AOT_OK && compare(&found, &values, 0) == 0;
}

#define PASSED 0
#define FAILED 1
#define NO_KERNEL 2
#define EXCUSED 3 /* agrees only as `exceptions` allows */

static int run_case(const fixtures_t *fx, json_t *one, int is_spread, char *why, size_t capacity) {
  const char *op = json_string_value(json_object_get(one, "op")), *id = json_string_value(json_object_get(one, "id"));
  const rk_kernel_t *k = rk_find(aot_str(op));
  pool_t *p;
  reader_t r = {fx, NULL, is_spread};
  rk_arg_t args[MAX_ARGS];
  rk_tensor_t results[MAX_RESULTS], expected[MAX_RESULTS];
  rk_call_t call = {args, 0, results, 0};
  rk_error_t error;
  int verdict = PASSED;
  if (!k) return NO_KERNEL;
  p = calloc(1, sizeof *p);
  if (!p) exit(2);
  r.p = p;
  if (rk_needs_storage(k)) r.spread = 0;
  call.n_args = read_args(&r, one, args);
  call.n_results = make_results(&r, one, results, expected);
  if (rk_run(k, &call, &error) != AOT_OK) {
    snprintf(why, capacity, "%s", error.text);
    verdict = FAILED;
  }
  for (uint32_t n = 0; n < call.n_results && verdict == PASSED; n++) {
    double off = results[n].dtype ? compare(&results[n], &expected[n], signs_are_free(op)) : 0;
    if (off <= 1 || (n == 1 && leads_to_value(&r, op, args, results))) continue;
    snprintf(why, capacity, "result %u is %.3g tolerances away", n, off);
    verdict = off <= slack_of(id, op) ? EXCUSED : FAILED;
  }
  drop(p);
  free(p);
  return verdict;
}

int main(int argc, char **argv) {
  fixtures_t fx = open_fixtures();
  size_t n = json_array_size(fx.cases);
  int verbose = 0, list = 0, chosen = 0, count[4] = {0, 0, 0, 0}, spread_failed = 0;
  const char *last_missing = "";
  for (int a = 1; a < argc; a++) {
    if (strcmp(argv[a], "-v") == 0) verbose = 1;
    else if (strcmp(argv[a], "-l") == 0) list = 1;
    else chosen++;
  }
  for (size_t i = 0; i < n; i++) {
    json_t *one = json_array_get(fx.cases, i);
    const char *op = json_string_value(json_object_get(one, "op")), *id = json_string_value(json_object_get(one, "id"));
    char why[400] = "";
    int wanted = !chosen, verdict;
    for (int a = 1; a < argc && !wanted; a++) wanted = strcmp(argv[a], op) == 0;
    if (!wanted) continue;
    verdict = run_case(&fx, one, 0, why, sizeof why);
    count[verdict]++;
    if (verdict == FAILED && verbose) printf("%s %s: %s\n", id, op, why);
    if (verdict == EXCUSED && verbose) printf("%s %s: %s (excused)\n", id, op, why);
    if (verdict == NO_KERNEL && list && strcmp(last_missing, op) != 0) printf("no kernel: %s\n", op);
    if (verdict == NO_KERNEL) last_missing = op;
    if (verdict == PASSED && run_case(&fx, one, 1, why, sizeof why) != PASSED) {
      spread_failed++;
      if (verbose) printf("%s %s (spread arguments): %s\n", id, op, why);
    }
  }
  printf(
      "%d of %zu recorded cases agree, %d are excused, %d differ, %d have no kernel; %d differ with spread arguments\n",
      count[PASSED], n, count[EXCUSED], count[FAILED], count[NO_KERNEL], spread_failed);
  json_decref(fx.cases);
  json_decref(fx.index);
  free(fx.file);
  free(fx.schemas);
  return count[FAILED] || count[NO_KERNEL] || spread_failed || (!chosen && count[PASSED] < 2900);
}
