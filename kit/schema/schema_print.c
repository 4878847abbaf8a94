/* Schemas back to text, in one canonical spelling: int for every integer, None for absent defaults, lists in
 * brackets. */
#include "schema.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct out_text {
  char *data;
  size_t capacity, size;
} out_text_t;

static void add(out_text_t *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(out_text_t *o, const char *format, ...) {
  va_list list;
  size_t left = o->size < o->capacity ? o->capacity - o->size : 0;
  int n;
  va_start(list, format);
  n = vsnprintf(left ? o->data + o->size : NULL, left, format, list);
  va_end(list);
  if (n > 0) o->size += (size_t)n;
}

static void add_bytes(out_text_t *o, const char *bytes, size_t n) {
  if (o->size < o->capacity) {
    const size_t left = o->capacity - o->size, fits = n < left ? n : left - 1;
    memcpy(o->data + o->size, bytes, fits);
    o->data[o->size + fits] = 0;
  }
  o->size += n;
}

static void add_word(out_text_t *o, const char *word) { add_bytes(o, word, strlen(word)); }

static const char *type_name(int32_t type) {
  switch (type) {
    case AOT_STYPE_TENSOR: return "Tensor";
    case AOT_STYPE_SCALAR: return "Scalar";
    case AOT_STYPE_INT: return "int";
    case AOT_STYPE_FLOAT: return "float";
    case AOT_STYPE_BOOL: return "bool";
    case AOT_STYPE_STR: return "str";
    case AOT_STYPE_DTYPE: return "ScalarType";
    case AOT_STYPE_LAYOUT: return "Layout";
    case AOT_STYPE_DEVICE: return "Device";
    case AOT_STYPE_MEMORY_FORMAT: return "MemoryFormat";
    case AOT_STYPE_GENERATOR: return "Generator";
    case AOT_STYPE_GRAPH: return "Graph";
    case AOT_STYPE_OP: return "Op";
    default: return "Any";
  }
}

static void print_type(out_text_t *o, const aot_schema_arg_t *a) {
  int write = (a->flags & AOT_SARG_WRITE) != 0;
  add_word(o, type_name(a->type));
  if (a->alias_set == AOT_ALIAS_ANY) add(o, "(*%s)", write ? "!" : "");
  else if (a->alias_set) {
    const char mark[] = {'(', (char)('a' + a->alias_set - 1)};
    add_bytes(o, mark, sizeof mark);
    add_word(o, write ? "!)" : ")");
  } else if (write) add_word(o, "!");
  if (a->flags & AOT_SARG_OPTIONAL_ELEM) add_word(o, "?");
  if (a->flags & AOT_SARG_LIST) {
    if (a->list_size) add(o, "[%d]", (int)a->list_size);
    else add_word(o, "[]");
  }
  if (a->flags & AOT_SARG_OPTIONAL) add_word(o, "?");
}

/* Shortest decimal that reads back to the same double, always with a mark of a float. */
static void print_double(out_text_t *o, double d) {
  char text[40];
  int precision;
  for (precision = 6; precision <= 17; precision++) {
    snprintf(text, sizeof text, "%.*g", precision, d);
    if (strtod(text, NULL) == d) break;
  }
  add(o, "%s%s", text, strpbrk(text, ".einf") ? "" : ".0");
}

static void print_string(out_text_t *o, const char *s, uint32_t n) {
  uint32_t i;
  add_word(o, "\"");
  for (i = 0; i < n; i++) {
    if (s[i] == '\n') add_word(o, "\\n");
    else if (s[i] == '\t') add_word(o, "\\t");
    else if (s[i] == '"' || s[i] == '\\') add(o, "\\%c", s[i]);
    else add(o, "%c", s[i]);
  }
  add_word(o, "\"");
}

typedef struct value_name {
  int32_t kind;
  int64_t value;
  const char *name;
} value_name_t;
static const value_name_t value_names[] = {
    {AOT_ARG_MEMORY_FORMAT, AOT_MEMORY_CONTIGUOUS, "contiguous_format"},
    {AOT_ARG_MEMORY_FORMAT, AOT_MEMORY_CHANNELS_LAST, "channels_last"},
    {AOT_ARG_MEMORY_FORMAT, AOT_MEMORY_CHANNELS_LAST_3D, "channels_last_3d"},
    {AOT_ARG_MEMORY_FORMAT, AOT_MEMORY_PRESERVE, "preserve_format"},
    {AOT_ARG_LAYOUT, AOT_LAYOUT_STRIDED, "strided"},
    {AOT_ARG_DTYPE, AOT_I64, "long"},
    {AOT_ARG_DTYPE, AOT_I32, "int"},
    {AOT_ARG_DTYPE, AOT_F32, "float"},
    {AOT_ARG_DTYPE, AOT_F64, "double"},
    {AOT_ARG_DTYPE, AOT_F16, "half"},
    {AOT_ARG_DTYPE, AOT_BOOL, "bool"},
    {AOT_ARG_DTYPE, AOT_C64, "complex"},
    {AOT_ARG_DEVICE, AOT_DEVICE_CPU, "cpu"},
};

static void print_named(out_text_t *o, const aot_arg_t *a) {
  size_t i;
  for (i = 0; i < sizeof value_names / sizeof value_names[0]; i++)
    if (value_names[i].kind == a->kind && value_names[i].value == a->u.i) {
      add_word(o, value_names[i].name);
      return;
    }
  add(o, "%lld", (long long)a->u.i);
}

static void print_default(out_text_t *o, const aot_schema_arg_t *arg) {
  const aot_arg_t *a = &arg->preset;
  int raw = arg->type == AOT_STYPE_ANY || ((arg->flags & AOT_SARG_LIST) && arg->type == AOT_STYPE_STR);
  uint32_t i;
  switch (a->kind) {
    case AOT_ARG_NONE: add_word(o, "None"); break;
    case AOT_ARG_BOOL: add_word(o, a->u.i ? "True" : "False"); break;
    case AOT_ARG_INT: add(o, "%lld", (long long)a->u.i); break;
    case AOT_ARG_FLOAT: print_double(o, a->u.f); break;
    case AOT_ARG_STR:
      if (raw) add_bytes(o, a->u.chars, a->n);
      else print_string(o, a->u.chars, a->n);
      break;
    case AOT_ARG_INTS:
    case AOT_ARG_BOOLS:
    case AOT_ARG_FLOATS:
      add_word(o, "[");
      for (i = 0; i < a->n; i++) {
        if (i) add_word(o, ", ");
        if (a->kind == AOT_ARG_FLOATS) print_double(o, a->u.floats[i]);
        else if (a->kind == AOT_ARG_BOOLS) add_word(o, a->u.ints[i] ? "True" : "False");
        else add(o, "%lld", (long long)a->u.ints[i]);
      }
      add_word(o, "]");
      break;
    default: print_named(o, a); break;
  }
}

static void print_args(out_text_t *o, const aot_schema_arg_t *args, uint32_t n) {
  uint32_t i;
  int kwonly = 0;
  for (i = 0; i < n; i++) {
    if (i) add_word(o, ", ");
    if (args[i].flags & AOT_SARG_VARIADIC) {
      add_word(o, "...");
      continue;
    }
    if ((args[i].flags & AOT_SARG_KWONLY) && !kwonly) {
      kwonly = 1;
      add_word(o, "*, ");
    }
    print_type(o, &args[i]);
    if (args[i].name.size) {
      add_word(o, " ");
      add_bytes(o, args[i].name.data, (size_t)args[i].name.size);
    }
    if (args[i].flags & AOT_SARG_HAS_DEFAULT) {
      add_word(o, "=");
      print_default(o, &args[i]);
    }
  }
}

size_t sch_print(const sch_schema_t *s, char *buffer, size_t capacity) {
  out_text_t o = {buffer, capacity, 0};
  int single = s->n_results == 1;
  if (s->name.size) add_bytes(&o, s->name.data, (size_t)s->name.size);
  if (s->overload.size) add(&o, ".%.*s", (int)s->overload.size, s->overload.data);
  add_word(&o, "(");
  print_args(&o, s->args, s->n_args);
  add_word(&o, ") -> ");
  if (!single) add_word(&o, "(");
  print_args(&o, s->results, s->n_results);
  if (!single) add_word(&o, ")");
  return o.size;
}
