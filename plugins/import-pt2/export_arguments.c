/* export_arguments.c - an argument of a node as the union Argument of the archive's schema. */
#include "export_program.h"
#include <aot/inline.h>
#include <math.h>
#include <string.h>

/* ---- defaults ---- */

int p2_is_preset(const aot_schema_arg_t *slot, const aot_arg_t *a) {
  const aot_arg_t *p = &slot->preset;
  if (!(slot->flags & AOT_SARG_HAS_DEFAULT)) return a->kind == AOT_ARG_NONE && slot->flags & AOT_SARG_KWONLY;
  if (a->kind != p->kind || a->n != p->n) return 0;
  switch (a->kind) {
    case AOT_ARG_NONE: return 1;
    case AOT_ARG_VALUE:
    case AOT_ARG_GRAPH: return 0;
    case AOT_ARG_FLOAT: return memcmp(&a->u.f, &p->u.f, sizeof a->u.f) == 0;
    case AOT_ARG_VALUES: return a->n == 0;
    case AOT_ARG_INTS:
    case AOT_ARG_BOOLS: return a->n == 0 || memcmp(a->u.ints, p->u.ints, a->n * sizeof *a->u.ints) == 0;
    case AOT_ARG_FLOATS: return a->n == 0 || memcmp(a->u.floats, p->u.floats, a->n * sizeof *a->u.floats) == 0;
    case AOT_ARG_STR: return a->n == 0 || memcmp(a->u.chars, p->u.chars, a->n) == 0;
    default: return a->u.i == p->u.i;
  }
}

/* ---- numbers ---- */

static json_t *number(double f) {
  if (isnan(f)) return json_string("NaN");
  if (isinf(f)) return json_string(f > 0 ? "Infinity" : "-Infinity");
  return json_real(f);
}

static json_t *size_name(p2_writer_t *w, p2_page_t *page, int64_t dim) {
  aot_str_t name;
  if (p2_dim_node(w, page, dim, &name) != AOT_OK) return NULL;
  return json_pack("{s:o}", "as_name", p2_text_json(name));
}

static json_t *int_json(p2_writer_t *w, p2_page_t *page, int64_t i) {
  if (AOT_DIM_IS_SYM(i)) return json_pack("{s:o}", "as_sym_int", size_name(w, page, i));
  return json_pack("{s:I}", "as_int", (json_int_t)i);
}

/* A list with a size in it is one of SymIntArguments. */
static json_t *ints_json(p2_writer_t *w, p2_page_t *page, const aot_arg_t *a) {
  int symbolic = 0;
  json_t *list = json_array();
  for (uint32_t i = 0; i < a->n; i++) symbolic |= AOT_DIM_IS_SYM(a->u.ints[i]);
  for (uint32_t i = 0; i < a->n; i++) {
    const int64_t x = a->u.ints[i];
    json_t *element = !symbolic           ? json_integer(x)
                      : AOT_DIM_IS_SYM(x) ? size_name(w, page, x)
                                          : json_pack("{s:I}", "as_int", (json_int_t)x);
    if (json_array_append_new(list, element) != 0) {
      json_decref(list);
      return NULL;
    }
  }
  return json_pack("{s:o}", symbolic ? "as_sym_ints" : "as_ints", list);
}

static json_t *bools_json(const aot_arg_t *a) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < a->n; i++) json_array_append_new(list, json_boolean(a->u.ints[i]));
  return json_pack("{s:o}", "as_bools", list);
}

static json_t *floats_json(const aot_arg_t *a) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < a->n; i++) json_array_append_new(list, number(a->u.floats[i]));
  return json_pack("{s:o}", "as_floats", list);
}

/* ---- values ---- */

static int32_t kind_of(p2_writer_t *w, uint32_t id) {
  aot_type_t t = {0};
  return w->host->graph->value_type(w->prog, (aot_value_t){id}, &t) == AOT_OK ? t.kind : AOT_TYPE_NONE;
}

static json_t *value_json(p2_writer_t *w, uint32_t id) {
  const aot_str_t name = w->value_names[id];
  switch (kind_of(w, id)) {
    case AOT_TYPE_TENSOR: return p2_as_tensor(name);
    case AOT_TYPE_SYMINT: return json_pack("{s:{s:o}}", "as_sym_int", "as_name", p2_text_json(name));
    case AOT_TYPE_SYMBOOL: return json_pack("{s:{s:o}}", "as_sym_bool", "as_name", p2_text_json(name));
    case AOT_TYPE_NONE: return json_pack("{s:b}", "as_none", 1);
    default:
      return p2_cannot(w, "export-pt2.value",
                       "an argument is a symbolic float or a token, which an archive cannot hold");
  }
}

static json_t *sizes_json(p2_writer_t *w, const aot_arg_t *a) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < a->n; i++)
    json_array_append_new(list, json_pack("{s:o}", "as_name", p2_text_json(w->value_names[a->u.ids[i]])));
  return json_pack("{s:o}", "as_sym_ints", list);
}

/* Tensors; with absent ones, OptionalTensorArguments. */
static json_t *values_json(p2_writer_t *w, const aot_arg_t *a) {
  int absent = 0;
  json_t *list;
  for (uint32_t i = 0; i < a->n; i++) absent |= a->u.ids[i] == AOT_NO_ID;
  if (a->n && !absent && kind_of(w, a->u.ids[0]) == AOT_TYPE_SYMINT) return sizes_json(w, a);
  list = json_array();
  for (uint32_t i = 0; i < a->n; i++) {
    const uint32_t id = a->u.ids[i];
    json_t *element = id == AOT_NO_ID ? json_pack("{s:b}", "as_none", 1)
                      : absent        ? p2_as_tensor(w->value_names[id])
                                      : p2_tensor_argument(w->value_names[id]);
    if (json_array_append_new(list, element) != 0) {
      json_decref(list);
      return NULL;
    }
  }
  return json_pack("{s:o}", absent ? "as_optional_tensors" : "as_tensors", list);
}

/* ---- the rest ---- */

static json_t *device_json(p2_writer_t *w, int64_t code) {
  const char *type = p2_device_name(aot_device_of(code));
  const int32_t index = aot_device_index_of(code);
  if (!type) return p2_cannot(w, "export-pt2.device", "device %d has no name", (int)aot_device_of(code));
  return json_pack("{s:{s:s, s:o}}", "as_device", "type", type, "index", index ? json_integer(index - 1) : json_null());
}

static json_t *dtype_json(p2_writer_t *w, int64_t dtype) {
  if (dtype == AOT_U32 || dtype == AOT_U64)
    return p2_cannot(w, "export-pt2.dtype", "%s has no number in archives of schema 8.17",
                     aot_dtype_name((int32_t)dtype));
  return json_pack("{s:I}", "as_scalar_type", (json_int_t)dtype);
}

static json_t *region_json(p2_writer_t *w, uint32_t graph) {
  return json_pack("{s:{s:o, s:O}}", "as_graph", "name", p2_text_json(w->graph_names[graph]), "graph",
                   w->graphs[graph]);
}

static json_t *operator_json(p2_writer_t *w, uint32_t op) {
  aot_str_t name;
  const aot_op_desc_t *d = w->host->graph->op_desc(w->prog, (aot_op_t){op});
  if (!d || p2_join(w->env, p2_str("torch.ops."), d->name, "", &name) != AOT_OK) return NULL;
  return json_pack("{s:o}", "as_operator", p2_text_json(name));
}

json_t *p2_argument_json(p2_writer_t *w, p2_page_t *page, const aot_schema_arg_t *slot, const aot_arg_t *a) {
  switch (a->kind) {
    case AOT_ARG_NONE: return json_pack("{s:b}", "as_none", 1);
    case AOT_ARG_VALUE: return value_json(w, (uint32_t)a->u.i);
    case AOT_ARG_VALUES: return values_json(w, a);
    case AOT_ARG_INT: return int_json(w, page, a->u.i);
    case AOT_ARG_INTS:
      if (!a->n && (slot->type == AOT_STYPE_TENSOR || slot->type == AOT_STYPE_ANY))
        return json_pack("{s:[]}", "as_tensors");
      return ints_json(w, page, a);
    case AOT_ARG_FLOAT: return json_pack("{s:o}", "as_float", number(a->u.f));
    case AOT_ARG_FLOATS: return floats_json(a);
    case AOT_ARG_BOOL: return json_pack("{s:b}", "as_bool", a->u.i != 0);
    case AOT_ARG_BOOLS: return bools_json(a);
    case AOT_ARG_STR: return json_pack("{s:o}", "as_string", p2_text_json((aot_str_t){a->u.chars, a->n}));
    case AOT_ARG_DTYPE: return dtype_json(w, a->u.i);
    case AOT_ARG_LAYOUT: return json_pack("{s:I}", "as_layout", (json_int_t)a->u.i);
    case AOT_ARG_DEVICE: return device_json(w, a->u.i);
    case AOT_ARG_MEMORY_FORMAT: return json_pack("{s:I}", "as_memory_format", (json_int_t)a->u.i);
    case AOT_ARG_GRAPH: return region_json(w, (uint32_t)a->u.i);
    case AOT_ARG_OP: return operator_json(w, (uint32_t)a->u.i);
    default:
      return p2_cannot(w, "export-pt2.argument", "an argument is of kind %d, which an archive cannot hold",
                       (int)a->kind);
  }
}
