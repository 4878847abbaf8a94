/* The gradients that PyTorch recorded for single operator calls (tests/fixtures/ops), for every operator that the
 * operator set knows and that can be differentiated here. All float32 tensor arguments of a case request a gradient, as
 * they did there.
 *
 * gradients_recorded FOLDER [-v] [NAME..]: the folder holds cases.json and data.safetensors; -v names what was left
 * out. */
#include <aot/inline.h>
#include <jansson.h>
#include <trainer/tensors/compare.h>
#include <trainer/tensors/safetensors.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grad_harness.h"

#define RTOL 2e-4
#define ATOL 1e-4
#define LEAST_PASSED 1130 /* fewer: cases have silently gone */
#define MAX_TENSORS 32

typedef struct recorded {
  gh_prog_t prog;
  const aoth_st_t *data;
  kit_text_t leaves, inputs, call; /* of the program's text */
  aoth_tensor_t tensors[MAX_TENSORS];
  char paths[MAX_TENSORS][16]; /* "0", "0.2", "" for keyword arguments */
  uint32_t n;
  char why[512];
} recorded_t;

/* The tensor that a reference of cases.json means; 0: there is none. Its memory is the file's. */
static int find_tensor(const aoth_st_t *data, json_t *ref, aoth_tensor_t *out) {
  const aoth_st_entry_t *e = aoth_st_find(data, json_string_value(json_object_get(ref, "t")));
  json_t *shape = json_object_get(ref, "shape"), *stride = json_object_get(ref, "stride");
  if (!e) return 0;
  *out = e->tensor;
  if (!shape) return 1;
  out->rank = (int32_t)json_array_size(shape);
  for (int32_t d = 0; d < out->rank; d++) {
    out->sizes[d] = json_integer_value(json_array_get(shape, (size_t)d));
    out->strides[d] = json_integer_value(json_array_get(stride, (size_t)d));
  }
  out->offset = json_integer_value(json_object_get(ref, "offset"));
  return 1;
}

static void put_dims(kit_text_t *out, json_t *list, const aoth_tensor_t *t) {
  size_t n = list ? json_array_size(list) : (size_t)t->rank;
  kit_text_f(out, "[");
  for (size_t d = 0; d < n; d++)
    kit_text_f(out, "%s%lld", d ? ", " : "",
               (long long)(list ? json_integer_value(json_array_get(list, d)) : t->sizes[d]));
  kit_text_f(out, "]");
}

/* A tensor argument: an input of the program. */
static int put_tensor(recorded_t *r, json_t *arg, const char *path) {
  json_t *stride = json_object_get(arg, "stride");
  kit_text_t type = {0};
  aoth_tensor_t *t = &r->tensors[r->n];
  if (r->n == MAX_TENSORS || !find_tensor(r->data, arg, t)) return 0;
  kit_text_f(&type, "%s", aot_dtype_name(t->dtype));
  put_dims(&type, NULL, t);
  if (stride) {
    kit_text_f(&type, " strides ");
    put_dims(&type, stride, t);
  }
  if (t->dtype == AOT_F32) kit_text_f(&type, " grad");
  kit_text_f(&r->leaves, "leaf %u user_input %u \"a%u\" : %s\n", r->n, r->n, r->n, type.data);
  kit_text_f(&r->inputs, "  in %%a%u = user_input %u : %s\n", r->n, r->n, type.data);
  kit_text_f(&r->call, "%%a%u", r->n);
  kit_text_deinit(&type);
  snprintf(r->paths[r->n++], sizeof *r->paths, "%s", path);
  return 1;
}

static const char *dtype_word(const char *name) {
  static const char *const words[][2] = {{"float32", "f32"}, {"float64", "f64"},  {"int64", "i64"},
                                         {"int32", "i32"},   {"bool", "bool"},    {"uint8", "u8"},
                                         {"float16", "f16"}, {"bfloat16", "bf16"}};
  const char *dot = strrchr(name, '.');
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(dot ? dot + 1 : name, words[i][0]) == 0) return words[i][1];
  return NULL;
}

static int put_arg(recorded_t *r, json_t *arg, const char *path);

static int put_list(recorded_t *r, json_t *list, const char *path) {
  char element[16];
  kit_text_f(&r->call, "[");
  for (size_t i = 0; i < json_array_size(list); i++) {
    if (i) kit_text_f(&r->call, ", ");
    snprintf(element, sizeof element, "%.8s.%u", path, (unsigned)i);
    if (!put_arg(r, json_array_get(list, i), element)) return 0;
  }
  kit_text_f(&r->call, "]");
  return 1;
}

static int put_arg(recorded_t *r, json_t *arg, const char *path) {
  json_t *v;
  if (json_is_null(arg)) kit_text_f(&r->call, "none");
  else if (json_object_get(arg, "t")) return put_tensor(r, arg, path);
  else if ((v = json_object_get(arg, "i"))) kit_text_f(&r->call, "%lld", (long long)json_integer_value(v));
  else if ((v = json_object_get(arg, "f"))) {
    if (json_is_string(v)) kit_text_f(&r->call, "%s", json_string_value(v));
    else {
      char number[40];
      snprintf(number, sizeof number, "%.17g", json_number_value(v));
      kit_text_f(&r->call, "%s%s", number, strpbrk(number, ".e") ? "" : ".0");
    }
  } else if ((v = json_object_get(arg, "b"))) kit_text_f(&r->call, "%s", json_is_true(v) ? "true" : "false");
  else if ((v = json_object_get(arg, "s"))) kit_text_f(&r->call, "\"%s\"", json_string_value(v));
  else if ((v = json_object_get(arg, "l"))) return put_list(r, v, path);
  else if ((v = json_object_get(arg, "dtype")) && dtype_word(json_string_value(v)))
    kit_text_f(&r->call, "%s", dtype_word(json_string_value(v)));
  else return 0;
  return 1;
}

/* The program's text; 0: an argument that cannot be written. */
static int put_program(recorded_t *r, json_t *c, kit_text_t *ir) {
  json_t *args = json_object_get(c, "args"), *kwargs = json_object_get(c, "kwargs"), *value;
  uint32_t n_out = (uint32_t)json_array_size(json_object_get(c, "outputs"));
  const char *key, *space = " ";
  char path[16];
  for (uint32_t k = 0; k < n_out; k++) kit_text_f(&r->call, "%s%%y%u", k ? ", " : "  ", k);
  kit_text_f(&r->call, " = %s", json_string_value(json_object_get(c, "op")));
  for (size_t i = 0; i < json_array_size(args); i++, space = ", ") {
    snprintf(path, sizeof path, "%u", (unsigned)i);
    kit_text_f(&r->call, "%s", space);
    if (!put_arg(r, json_array_get(args, i), path)) return 0;
  }
  json_object_foreach(kwargs, key, value) {
    kit_text_f(&r->call, "%s%s=", space, key);
    if (!put_arg(r, value, "")) return 0;
    space = ", ";
  }
  kit_text_f(ir, "aot 1\nproperties imported functional\n\n%s\ngraph @main forward {\n%s%s\n",
             r->leaves.data ? r->leaves.data : "", r->inputs.data ? r->inputs.data : "", r->call.data);
  for (uint32_t k = 0; k < n_out; k++) kit_text_f(ir, "  out user_output %u = %%y%u\n", k, k);
  kit_text_f(ir, "}\n");
  return 1;
}

static int compare_gradients(recorded_t *r, json_t *grads) {
  for (uint32_t i = 0; i < r->n; i++) {
    json_t *want = json_object_get(grads, r->paths[i]);
    aoth_tensor_t expected, got;
    aoth_compare_t c;
    char key[32];
    if (!*r->paths[i] || !want || json_is_null(want) || !find_tensor(r->data, want, &expected)) continue;
    snprintf(key, sizeof key, "grad.input.%u", i);
    if (!aoth_step_get(r->prog.step, key, &got)) {
      snprintf(r->why, sizeof r->why, "no gradient of argument %s", r->paths[i]);
      return 0;
    }
    c = aoth_compare_tensors(&got, &expected, RTOL, ATOL);
    if (c.ok) continue;
    snprintf(r->why, sizeof r->why,
             "gradient of argument %s: %s, %lld of %lld elements, element %lld is %.7g, recorded %.7g", r->paths[i],
             c.same_type ? "differs" : "other shape or dtype", (long long)c.n_bad,
             (long long)aoth_tensor_numel(&expected), (long long)c.first_bad, c.got, c.wanted);
    return 0;
  }
  return 1;
}

static int run(recorded_t *r, json_t *c) {
  const aoth_tensor_t *tangents[16] = {0};
  aoth_tensor_t tensors[16];
  json_t *recorded = json_object_get(c, "tangents"), *value;
  const char *key;
  uint32_t n_out = aoth_step_n_outputs(r->prog.step);
  if (aoth_step_forward(r->prog.step, r->tensors, r->n) != AOT_OK) return 0;
  json_object_foreach(recorded, key, value) {
    uint32_t k = (uint32_t)atoi(key);
    if (k < 16 && find_tensor(r->data, value, &tensors[k])) tangents[k] = &tensors[k];
    if (k < 16 && tangents[k] && !aoth_step_takes_tangent(r->prog.step, k)) {
      snprintf(r->why, sizeof r->why, "output %u takes no tangent", k);
      return 0;
    }
  }
  if (aoth_step_backward(r->prog.step, tangents, n_out) != AOT_OK) return 0;
  return compare_gradients(r, json_object_get(c, "grads"));
}

#define PASSED 0
#define FAILED 1
#define LEFT_OUT 2

/* Operators without a rule, and those that another plugin refuses, are no failures of autograd. */
static int is_foreign(const recorded_t *r) {
  return strstr(r->prog.why, "autograd.no-rule") || !strstr(r->prog.why, "stage autograd");
}

/* Where PyTorch 2.11 is wrong: as_strided_scatter gives self the gradient inside the window instead of outside. */
static int is_known_error(const char *op) { return strcmp(op, "aten.as_strided_scatter.default") == 0; }

static int check_case(json_t *c, const aoth_st_t *data, int verbose) {
  recorded_t *r = calloc(1, sizeof *r);
  kit_text_t ir = {0};
  int result = LEFT_OUT;
  r->data = data;
  if (!put_program(r, c, &ir)) snprintf(r->why, sizeof r->why, "an argument that the text form lacks");
  else {
    if (!gh_open(&r->prog, ir.data, "autograd partition-default backend-ref"))
      result = is_foreign(r) ? LEFT_OUT : FAILED;
    else result = run(r, c) ? PASSED : FAILED;
    if (result == FAILED || (result == LEFT_OUT && verbose))
      printf("%s %s %s: %s%s\n%s", result == FAILED ? "FAILED" : "left out",
             json_string_value(json_object_get(c, "id")), json_string_value(json_object_get(c, "op")), r->why,
             *r->prog.why ? r->prog.why
             : *r->why    ? ""
                          : aoth_sink_text(r->prog.sink),
             result == FAILED ? ir.data : "");
    gh_close(&r->prog);
  }
  kit_text_deinit(&ir);
  kit_text_deinit(&r->leaves);
  kit_text_deinit(&r->inputs);
  kit_text_deinit(&r->call);
  free(r);
  return result;
}

static int selected(const char *op, int argc, char **argv) {
  int any = 0;
  for (int i = 2; i < argc; i++) {
    if (*argv[i] == '-') continue;
    any = 1;
    if (strstr(op, argv[i])) return 1;
  }
  return !any;
}

/* A program of no consequence, for its session's operators. */
static int open_operators(gh_prog_t *p) {
  return gh_open(
      p,
      "aot 1\nproperties imported functional\n\nleaf 0 user_input 0 \"x\" : f32[] grad\n\ngraph @main forward {\n"
      "  in %x = user_input 0 : f32[] grad\n  out user_output 0 = %x\n}\n",
      "autograd");
}

int main(int argc, char **argv) {
  uint32_t count[3] = {0}, n_unknown = 0;
  int verbose = 0, filtered = 0;
  char path[1024];
  gh_prog_t ops;
  aoth_st_t *data = NULL;
  aoth_sink_t *sink = aoth_sink_create(stderr);
  json_error_t error;
  json_t *cases = NULL, *c;
  size_t i;
  for (int k = 2; k < argc; k++) {
    verbose |= strcmp(argv[k], "-v") == 0;
    filtered |= *argv[k] != '-';
  }
  snprintf(path, sizeof path, "%s/cases.json", argc > 1 ? argv[1] : ".");
  cases = json_load_file(path, 0, &error);
  snprintf(path, sizeof path, "%s/data.safetensors", argc > 1 ? argv[1] : ".");
  if (!cases || aoth_st_open(path, sink, &data) != AOT_OK || !open_operators(&ops)) {
    fprintf(stderr, "%s: no recorded cases, or no plugins\n", path);
    return 2;
  }
  json_array_foreach(cases, i, c) {
    const char *op = json_string_value(json_object_get(c, "op"));
    if (json_object_size(json_object_get(c, "grads")) == 0 || !selected(op, argc, argv)) continue;
    if (aoth_ops_find(aoth_session_ops(ops.session), aot_str(op)).id == AOT_NO_ID) n_unknown++;
    else if (is_known_error(op)) count[LEFT_OUT]++;
    else count[check_case(c, data, verbose)]++;
  }
  printf("%u recorded gradients agree, %u differ, %u left out, %u of operators that are not in the set\n",
         count[PASSED], count[FAILED], count[LEFT_OUT], n_unknown);
  gh_close(&ops);
  aoth_st_close(data);
  json_decref(cases);
  aoth_sink_destroy(sink);
  return count[FAILED] != 0 || (!filtered && count[PASSED] < LEAST_PASSED);
}
