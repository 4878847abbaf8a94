/* Writing a recorded call down as a program: leaves, inputs, one node, outputs.
 *
 *     leaf 0 user_input 0 "a0" : f32[2, 3] grad
 *     graph @main forward {
 *       in %a0 = user_input 0 : f32[2, 3] grad
 *       %y0 = OPERATOR %a0, 1, dim=0
 *       out user_output 0 = %y0
 *     }
 *
 * The text form is the host's own way to make programs: defaults, keyword arguments and wrong arguments are its
 * business, and a case that fails can be looked at as a program. Linear in the case. */
#include <cli/ops/op_case_text.h>

#include <aot/inline.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct writer {
  aoth_case_program_t *out;
  const aoth_st_t *data;
  kit_text_t leaves, inputs, call;
  int with_grad;
  json_t *grads;                                  /* halves among its paths require a gradient, too */
  uint32_t written[AOTH_CASE_TENSORS], n_written; /* inputs that the operator writes */
} writer_t;

static int fail(writer_t *w, const char *path, const char *what) {
  if (!*w->out->why) snprintf(w->out->why, sizeof w->out->why, "argument %s: %s", path, what);
  return 0;
}

/* ---- what a case's JSON says ---- */

int aoth_case_tensor(const aoth_st_t *data, json_t *reference, aoth_tensor_t *out) {
  const char *key = json_string_value(json_object_get(reference, "t"));
  const aoth_st_entry_t *e = key ? aoth_st_find(data, key) : NULL;
  json_t *shape = json_object_get(reference, "shape"), *stride = json_object_get(reference, "stride");
  uint64_t nbytes;
  if (!e) return 0;
  *out = e->tensor;
  if (!shape) return 1;
  if (json_array_size(shape) > AOT_MAX_RANK || json_array_size(stride) != json_array_size(shape)) return 0;
  out->rank = (int32_t)json_array_size(shape);
  for (int32_t d = 0; d < out->rank; d++) {
    out->sizes[d] = json_integer_value(json_array_get(shape, (size_t)d));
    out->strides[d] = json_integer_value(json_array_get(stride, (size_t)d));
  }
  out->offset = json_integer_value(json_object_get(reference, "offset"));
  return aoth_tensor_extent(out, &nbytes) && nbytes <= out->nbytes;
}

int aoth_case_number(json_t *v, double *out, int32_t *out_dtype) {
  json_t *n;
  if ((n = json_object_get(v, "i")) && json_is_integer(n)) {
    *out = (double)json_integer_value(n);
    *out_dtype = AOT_I64;
  } else if ((n = json_object_get(v, "b")) && json_is_boolean(n)) {
    *out = json_is_true(n);
    *out_dtype = AOT_BOOL;
  } else if ((n = json_object_get(v, "f"))) {
    const char *text = json_string_value(n);
    if (!text && !json_is_number(n)) return 0;
    *out = !text ? json_number_value(n) : strcmp(text, "nan") == 0 ? NAN : *text == '-' ? -INFINITY : INFINITY;
    *out_dtype = AOT_F64;
  } else {
    return 0;
  }
  return 1;
}

/* ---- arguments ---- */

static void put_dims(kit_text_t *out, const int64_t *dims, int32_t rank) {
  for (int32_t d = 0; d < rank; d++) kit_text_f(out, "%s%lld", d ? ", " : "[", (long long)dims[d]);
  kit_text_z(out, rank ? "]" : "[]");
}

static int put_tensor(writer_t *w, json_t *arg, const char *path) {
  aoth_case_program_t *out = w->out;
  const uint32_t n = out->n_inputs;
  kit_text_t type = {0};
  if (n == AOTH_CASE_TENSORS) return fail(w, path, "more than 64 tensors");
  if (!aoth_case_tensor(w->data, arg, &out->inputs[n]))
    return fail(w, path, "the data file has no such tensor, or it ends outside its storage");
  const aoth_tensor_t *t = &out->inputs[n];
  kit_text_z(&type, aot_dtype_name(t->dtype));
  put_dims(&type, t->sizes, t->rank);
  if (json_object_get(arg, "stride")) {
    kit_text_z(&type, " strides ");
    put_dims(&type, t->strides, t->rank);
    if (json_integer_value(json_object_get(arg, "offset")) != 0)
      kit_text_f(&type, " offset %lld", (long long)json_integer_value(json_object_get(arg, "offset")));
  }
  if (w->with_grad && (t->dtype == AOT_F32 || t->dtype == AOT_C64 || json_object_get(w->grads, path)))
    kit_text_z(&type, " grad");
  kit_text_f(&w->leaves, "leaf %u user_input %u \"a%u\" : %s\n", n, n, n, type.data ? type.data : "");
  kit_text_f(&w->inputs, "  in %%a%u = user_input %u : %s\n", n, n, type.data ? type.data : "");
  kit_text_f(&w->call, "%%a%u", n);
  kit_text_deinit(&type);
  snprintf(out->paths[n], sizeof out->paths[n], "%s", path);
  out->n_inputs++;
  return 1;
}

static const char *dtype_word(const char *name) {
  static const struct {
    const char *name;
    int32_t dtype;
  } names[] = {{"float32", AOT_F32},    {"float64", AOT_F64}, {"float16", AOT_F16}, {"bfloat16", AOT_BF16},
               {"int64", AOT_I64},      {"int32", AOT_I32},   {"int16", AOT_I16},   {"int8", AOT_I8},
               {"uint8", AOT_U8},       {"uint64", AOT_U64},  {"bool", AOT_BOOL},   {"complex64", AOT_C64},
               {"complex128", AOT_C128}};
  for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
    if (strcmp(name, names[i].name) == 0) return aot_dtype_name(names[i].dtype);
  return NULL;
}

/* contiguous_format -> contiguous; other names are those of the text form. */
static void put_memory_format(kit_text_t *out, const char *name) {
  const char *tail = strstr(name, "_format");
  kit_text_add(out, name, tail && !tail[7] ? (size_t)(tail - name) : strlen(name));
}

static int put_word(writer_t *w, json_t *arg, const char *path) {
  json_t *v;
  const char *word;
  if ((v = json_object_get(arg, "s")) && json_is_string(v)) {
    kit_text_json(&w->call, (aot_str_t){json_string_value(v), json_string_length(v)});
  } else if ((v = json_object_get(arg, "dtype"))) {
    word = dtype_word(json_string_value(v));
    if (!word) return fail(w, path, "a dtype of an unknown name");
    kit_text_z(&w->call, word);
  } else if ((v = json_object_get(arg, "memory_format")) && json_is_string(v)) {
    put_memory_format(&w->call, json_string_value(v));
  } else if (((v = json_object_get(arg, "device")) || (v = json_object_get(arg, "layout"))) && json_is_string(v)) {
    kit_text_z(&w->call, json_string_value(v));
  } else {
    return fail(w, path, "neither tensor nor number nor word");
  }
  return 1;
}

/* Anything but a list. */
static int put_single(writer_t *w, json_t *arg, const char *path) {
  double number;
  int32_t dtype;
  if (json_is_null(arg)) {
    kit_text_z(&w->call, "none");
  } else if (json_object_get(arg, "t")) {
    return put_tensor(w, arg, path);
  } else if (!aoth_case_number(arg, &number, &dtype)) {
    return put_word(w, arg, path);
  } else if (dtype == AOT_BOOL) {
    kit_text_z(&w->call, number != 0 ? "true" : "false");
  } else if (dtype == AOT_I64) {
    kit_text_i64(&w->call, json_integer_value(json_object_get(arg, "i")));
  } else {
    char text[40];
    snprintf(text, sizeof text, "%.17g", number);
    kit_text_f(&w->call, "%s%s", text, isfinite(number) && !strpbrk(text, ".e") ? ".0" : "");
  }
  return 1;
}

static int put_arg(writer_t *w, json_t *arg, const char *path) {
  json_t *list = json_object_get(arg, "l");
  char element[24];
  if (!list) return put_single(w, arg, path);
  kit_text_z(&w->call, "[");
  for (size_t i = 0; i < json_array_size(list); i++) {
    if (i) kit_text_z(&w->call, ", ");
    snprintf(element, sizeof element, "%.12s.%u", path, (unsigned)i);
    if (!put_single(w, json_array_get(list, i), element)) return 0;
  }
  kit_text_z(&w->call, "]");
  return 1;
}

/* A number after the operator would read as a part of it (`OP -1`): such calls have their arguments by name. */
static int is_by_name(json_t *args) {
  json_t *first = json_array_get(args, 0);
  return json_object_get(first, "i") || json_object_get(first, "f");
}

/* Argument `arg` of the operator, and which inputs it writes. */
static int put_argument(writer_t *w, json_t *value, const aot_op_desc_t *op, uint32_t arg, const char *path) {
  const uint32_t before = w->out->n_inputs;
  if (!put_arg(w, value, path)) return 0;
  if (arg >= op->n_args || !(op->args[arg].flags & AOT_SARG_WRITE)) return 1;
  for (uint32_t k = before; k < w->out->n_inputs; k++) w->written[w->n_written++] = k;
  return 1;
}

static int put_arguments(writer_t *w, json_t *one, const aot_op_desc_t *op) {
  json_t *args = json_object_get(one, "args"), *kwargs = json_object_get(one, "kwargs"), *value;
  const int by_name = is_by_name(args);
  const char *key, *space = " ";
  char path[24];
  for (size_t i = 0; i < json_array_size(args); i++, space = ", ") {
    snprintf(path, sizeof path, "%u", (unsigned)i);
    kit_text_z(&w->call, space);
    if (by_name && i < op->n_args) kit_text_f(&w->call, "%.*s=", (int)op->args[i].name.size, op->args[i].name.data);
    if (!put_argument(w, json_array_get(args, i), op, (uint32_t)i, path)) return 0;
  }
  json_object_foreach(kwargs, key, value) {
    uint32_t arg = 0;
    while (arg < op->n_args && !aot_str_eq(op->args[arg].name, aot_str(key))) arg++;
    kit_text_f(&w->call, "%s%s=", space, key);
    snprintf(path, sizeof path, "%.20s", key);
    if (!put_argument(w, value, op, arg, path)) return 0;
    space = ", ";
  }
  return 1;
}

/* One output, None: what a call that gives nothing is recorded with. */
static int is_nothing(json_t *outputs) {
  return json_array_size(outputs) == 1 && json_is_null(json_array_get(outputs, 0));
}

/* The outputs are the results, or what an operator without results has written. */
static int put_call(writer_t *w, json_t *one, const aot_op_desc_t *op) {
  json_t *outputs = json_object_get(one, "outputs");
  const size_t n_out = !op->n_results && is_nothing(outputs) ? 0 : json_array_size(outputs),
               n_named = op->n_results ? n_out : 0;
  for (size_t k = 0; k < n_named; k++) kit_text_f(&w->call, "%s%%y%u", k ? ", " : "  ", (unsigned)k);
  kit_text_f(&w->call, "%s%s", n_named ? " = " : "  ", json_string_value(json_object_get(one, "op")));
  if (!put_arguments(w, one, op)) return 0;
  kit_text_z(&w->call, "\n");
  if (n_out > n_named && n_out > w->n_written) return fail(w, "list", "more outputs than the operator writes");
  for (size_t k = 0; k < n_out; k++)
    kit_text_f(&w->call, "  out user_output %u = %%%c%u\n", (unsigned)k, n_named ? 'y' : 'a',
               (unsigned)(n_named ? k : w->written[k]));
  return 1;
}

int aoth_case_write(json_t *one, const aot_op_desc_t *op, const aoth_st_t *data, int with_grad,
                    aoth_case_program_t *out) {
  writer_t w = {
      .out = out,
      .data = data,
      .with_grad = with_grad,
      .grads = json_object_get(one, "grads"),
  };
  memset(out, 0, sizeof *out);
  int ok = put_call(&w, one, op);
  if (ok)
    kit_text_f(&out->text, "aot 1\nproperties imported%s\n\n%s\ngraph @main forward {\n%s%s}\n",
               op->flags & AOT_OP_WRITES ? "" : " functional", w.leaves.data ? w.leaves.data : "",
               w.inputs.data ? w.inputs.data : "", w.call.data ? w.call.data : "");
  if (ok && (out->text.failed || w.call.failed || w.leaves.failed || w.inputs.failed))
    ok = fail(&w, "list", "no memory");
  kit_text_deinit(&w.leaves);
  kit_text_deinit(&w.inputs);
  kit_text_deinit(&w.call);
  return ok;
}
