/* exported_arguments.c - the Argument union: what a node gets and gives. See exported_program.h. */
#include "exported_fields.h"
#include <string.h>

static aot_status_t new_list(p2_decoder_t *d, const p2_at_t *at, json_t *j, uint64_t size, void **out,
                             uint32_t *out_n) {
  AOT_TRY(p2_want_array(d, at, j, out_n));
  return p2_alloc(d->e, P2_SCRATCH, (uint32_t) _Alignof(max_align_t), *out_n, size, out);
}

static aot_status_t named(p2_decoder_t *d, const p2_at_t *at, json_t *j, p2_argument_t *out) {
  return p2_field_string(d, at, j, "name", &out->u.s);
}

/* {"as_name": x} or {"as_int": n} (as_bool, as_float for their kinds). */
static aot_status_t decode_sym(p2_decoder_t *d, const p2_at_t *at, json_t *j, p2_sym_t *out, double *out_float) {
  const char *key = NULL;
  json_t *value = NULL;
  p2_at_t here;
  memset(out, 0, sizeof *out);
  AOT_TRY(p2_union(d, at, j, &key, &value));
  here = p2_at_key(at, key);
  if (strcmp(key, "as_name") == 0) {
    AOT_TRY(p2_want_string(d, &here, value, &out->name));
    return out->name.size ? AOT_OK : p2_bad(d->e, d->doc, &here, "import-pt2.bad-field", "the name is empty");
  }
  if (strcmp(key, "as_int") == 0) return p2_want_int(d, &here, value, &out->value);
  if (strcmp(key, "as_bool") == 0) return p2_want_bool(d, &here, value, &out->value);
  if (strcmp(key, "as_float") == 0 && out_float) return p2_want_float(d, &here, value, out_float);
  return p2_unknown_key(d, at, "symbolic argument", key);
}

static aot_status_t scalar_sym(p2_decoder_t *d, const p2_at_t *at, json_t *j, int32_t named_kind, p2_argument_t *out) {
  p2_sym_t sym;
  double number = 0;
  AOT_TRY(decode_sym(d, at, j, &sym, &number));
  out->kind = named_kind;
  if (sym.name.size) {
    out->u.s = sym.name;
    return AOT_OK;
  }
  out->kind = named_kind == P2_ARG_SYM_INT ? P2_ARG_INT : named_kind == P2_ARG_SYM_BOOL ? P2_ARG_BOOL : P2_ARG_FLOAT;
  if (out->kind == P2_ARG_FLOAT) out->u.f = number;
  else out->u.i = sym.value;
  return AOT_OK;
}

static aot_status_t tensors(p2_decoder_t *d, const p2_at_t *at, json_t *j, p2_argument_t *out) {
  aot_str_t *names = NULL;
  uint32_t i;
  AOT_TRY(new_list(d, at, j, sizeof *names, (void **)&names, &out->n));
  for (i = 0; i < out->n; i++) {
    p2_at_t here = p2_at_index(at, i);
    AOT_TRY(p2_field_string(d, &here, json_array_get(j, i), "name", &names[i]));
  }
  out->u.names = names;
  return AOT_OK;
}

/* One OptionalTensorArgument: {"as_tensor": {"name": x}} or {"as_none": true}. An empty name means None. */
static aot_status_t optional_tensor(p2_decoder_t *d, const p2_at_t *at, json_t *j, aot_str_t *out) {
  const char *key = NULL;
  json_t *value = NULL;
  p2_at_t here;
  AOT_TRY(p2_union(d, at, j, &key, &value));
  here = p2_at_key(at, key);
  out->size = 0;
  if (strcmp(key, "as_none") == 0) return AOT_OK;
  if (strcmp(key, "as_tensor") == 0) return p2_field_string(d, &here, value, "name", out);
  return p2_unknown_key(d, at, "OptionalTensorArgument", key);
}

static aot_status_t optional_tensors(p2_decoder_t *d, const p2_at_t *at, json_t *j, p2_argument_t *out) {
  aot_str_t *names = NULL;
  uint32_t i;
  AOT_TRY(new_list(d, at, j, sizeof *names, (void **)&names, &out->n));
  for (i = 0; i < out->n; i++) {
    p2_at_t here = p2_at_index(at, i);
    AOT_TRY(optional_tensor(d, &here, json_array_get(j, i), &names[i]));
  }
  out->u.names = names;
  return AOT_OK;
}

static aot_status_t sym_ints(p2_decoder_t *d, const p2_at_t *at, json_t *j, p2_argument_t *out) {
  p2_sym_t *syms = NULL;
  uint32_t i;
  AOT_TRY(new_list(d, at, j, sizeof *syms, (void **)&syms, &out->n));
  for (i = 0; i < out->n; i++) {
    p2_at_t here = p2_at_index(at, i);
    AOT_TRY(decode_sym(d, &here, json_array_get(j, i), &syms[i], NULL));
  }
  out->u.syms = syms;
  return AOT_OK;
}

static aot_status_t ints(p2_decoder_t *d, const p2_at_t *at, json_t *j, int bools, p2_argument_t *out) {
  int64_t *list = NULL;
  uint32_t i;
  AOT_TRY(new_list(d, at, j, sizeof *list, (void **)&list, &out->n));
  for (i = 0; i < out->n; i++) {
    p2_at_t here = p2_at_index(at, i);
    json_t *element = json_array_get(j, i);
    AOT_TRY(bools ? p2_want_bool(d, &here, element, &list[i]) : p2_want_int(d, &here, element, &list[i]));
  }
  out->u.ints = list;
  return AOT_OK;
}

static aot_status_t floats(p2_decoder_t *d, const p2_at_t *at, json_t *j, p2_argument_t *out) {
  double *list = NULL;
  uint32_t i;
  AOT_TRY(new_list(d, at, j, sizeof *list, (void **)&list, &out->n));
  for (i = 0; i < out->n; i++) {
    p2_at_t here = p2_at_index(at, i);
    AOT_TRY(p2_want_float(d, &here, json_array_get(j, i), &list[i]));
  }
  out->u.floats = list;
  return AOT_OK;
}

/* The nested graph is decoded later, by the loop over all graphs; the argument holds its number. */
static aot_status_t graph(p2_decoder_t *d, const p2_at_t *at, json_t *j, p2_argument_t *out) {
  p2_pending_t *item;
  AOT_TRY(p2_want_object(d, at, j));
  AOT_TRY(p2_grow(d->e, (void **)&d->pending, d->n_pending, &d->pending_capacity, sizeof *d->pending));
  item = &d->pending[d->n_pending];
  item->json = j;
  AOT_TRY(p2_at_keep(d->e, at, &item->at));
  out->u.i = d->n_pending++;
  return AOT_OK;
}

static aot_status_t complex_number(p2_decoder_t *d, const p2_at_t *at, json_t *j, p2_argument_t *out) {
  static const char *const keys[2] = {"real", "imag"};
  double *parts;
  AOT_TRY(p2_want_object(d, at, j));
  AOT_TRY(P2_NEW(d->e, P2_SCRATCH, 2, &parts));
  for (int k = 0; k < 2; k++) {
    p2_at_t here = p2_at_key(at, keys[k]);
    json_t *part;
    AOT_TRY(p2_field(d, at, j, keys[k], &part));
    AOT_TRY(p2_want_float(d, &here, part, &parts[k]));
  }
  out->n = 2;
  out->u.floats = parts;
  return AOT_OK;
}

typedef struct kind_row {
  const char *key;
  int32_t kind;
} kind_row_t;

static const kind_row_t kinds[] = {
    {"as_none", P2_ARG_NONE},
    {"as_tensor", P2_ARG_TENSOR},
    {"as_tensors", P2_ARG_TENSORS},
    {"as_optional_tensors", P2_ARG_OPTIONAL_TENSORS},
    {"as_int", P2_ARG_INT},
    {"as_ints", P2_ARG_INTS},
    {"as_float", P2_ARG_FLOAT},
    {"as_floats", P2_ARG_FLOATS},
    {"as_bool", P2_ARG_BOOL},
    {"as_bools", P2_ARG_BOOLS},
    {"as_string", P2_ARG_STRING},
    {"as_sym_int", P2_ARG_SYM_INT},
    {"as_sym_ints", P2_ARG_SYM_INTS},
    {"as_sym_bool", P2_ARG_SYM_BOOL},
    {"as_sym_float", P2_ARG_SYM_FLOAT},
    {"as_scalar_type", P2_ARG_DTYPE},
    {"as_layout", P2_ARG_LAYOUT},
    {"as_memory_format", P2_ARG_MEMORY_FORMAT},
    {"as_device", P2_ARG_DEVICE},
    {"as_graph", P2_ARG_GRAPH},
    {"as_operator", P2_ARG_OPERATOR},
    {"as_strings", P2_ARG_OTHER},
    {"as_sym_bools", P2_ARG_OTHER},
    {"as_sym_floats", P2_ARG_OTHER},
    {"as_custom_obj", P2_ARG_OTHER},
    {"as_complex", P2_ARG_COMPLEX},
    {"as_nested_tensors", P2_ARG_OTHER},
    {"as_int_lists", P2_ARG_OTHER},
    {"as_float_lists", P2_ARG_OTHER},
    {"as_string_to_argument", P2_ARG_OTHER},
};

aot_status_t p2_decode_argument(p2_decoder_t *d, const p2_at_t *at, json_t *j, p2_argument_t *out) {
  const char *key = NULL;
  json_t *value = NULL;
  p2_at_t here;
  size_t i;
  memset(out, 0, sizeof *out);
  AOT_TRY(p2_union(d, at, j, &key, &value));
  here = p2_at_key(at, key);
  if (strcmp(key, "as_optional_tensor") == 0) {
    AOT_TRY(optional_tensor(d, &here, value, &out->u.s));
    out->kind = out->u.s.size ? P2_ARG_TENSOR : P2_ARG_NONE;
    return AOT_OK;
  }
  for (i = 0; i < sizeof kinds / sizeof *kinds && strcmp(key, kinds[i].key) != 0; i++) {}
  if (i == sizeof kinds / sizeof *kinds) return p2_unknown_key(d, at, "argument", key);
  out->kind = kinds[i].kind;
  switch (out->kind) {
    case P2_ARG_NONE: return AOT_OK;
    case P2_ARG_TENSOR: return named(d, &here, value, out);
    case P2_ARG_TENSORS: return tensors(d, &here, value, out);
    case P2_ARG_OPTIONAL_TENSORS: return optional_tensors(d, &here, value, out);
    case P2_ARG_INTS: return ints(d, &here, value, 0, out);
    case P2_ARG_BOOLS: return ints(d, &here, value, 1, out);
    case P2_ARG_FLOAT: return p2_want_float(d, &here, value, &out->u.f);
    case P2_ARG_FLOATS: return floats(d, &here, value, out);
    case P2_ARG_COMPLEX: return complex_number(d, &here, value, out);
    case P2_ARG_BOOL: return p2_want_bool(d, &here, value, &out->u.i);
    case P2_ARG_STRING:
    case P2_ARG_OPERATOR: return p2_want_string(d, &here, value, &out->u.s);
    case P2_ARG_SYM_INT:
    case P2_ARG_SYM_BOOL:
    case P2_ARG_SYM_FLOAT: return scalar_sym(d, &here, value, out->kind, out);
    case P2_ARG_SYM_INTS: return sym_ints(d, &here, value, out);
    case P2_ARG_DEVICE: return p2_decode_device(d, &here, value, &out->u.device);
    case P2_ARG_GRAPH: return graph(d, &here, value, out);
    case P2_ARG_OTHER: out->u.s = p2_str(kinds[i].key); return AOT_OK;
    default: return p2_want_int(d, &here, value, &out->u.i); /* INT and the enumerations */
  }
}
