#include <cli/ops/op_case_mutate.h>

#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_ROWS(table) (sizeof(table) / sizeof *(table))
#define LONGEST_LIST 6u

static size_t below(aoth_random_t *r, size_t n) { return (size_t)aoth_random_below(r, n); }

/* ---- numbers and words ---- */

/* clang-format off */
static const int64_t int_edges[] = {0, 1, -1, 2, -2, 3, 4, 5, 7, -3, 8, 63, 64, -64, 100, 127, 128, -128, 255, 256,
                                    65535, 65536,
                                    INT32_MAX, INT32_MIN, (int64_t)INT32_MAX + 1, (int64_t)INT32_MIN - 1,
                                    (int64_t)UINT32_MAX + 1,
                                    INT64_MAX, INT64_MIN, INT64_MAX - 1, INT64_MIN + 1, INT64_MAX / 2, INT64_C(1) << 53,
                                    INT64_C(1) << 61, INT64_C(1) << 62, (INT64_C(1) << 62) + 1};
/* clang-format on */

static json_t *mutated_int(int64_t was, aoth_random_t *r) {
  int64_t is = int_edges[below(r, N_ROWS(int_edges))];
  if (below(r, 3) == 0 && was > INT32_MIN && was < INT32_MAX) {
    const int64_t near[] = {was + 1, was - 1, -was, was * 2, was / 2, ~was};
    is = near[below(r, N_ROWS(near))];
  }
  return json_pack("{s:I}", "i", (json_int_t)is);
}

static json_t *mutated_float(aoth_random_t *r) {
  /* clang-format off */
  static const double edges[] = {0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-45, 1e38, -1e39, 1e300, 2147483648.0, -2147483649.0,
                                 9223372036854775808.0, -9223372036854775808.0, 1e19, 4294967296.0, 255.5, -0.5,
                                 65536.0};
  /* clang-format on */
  static const char *const words[] = {"nan", "inf", "-inf"};
  if (below(r, 4) == 0) return json_pack("{s:s}", "f", words[below(r, N_ROWS(words))]);
  return json_pack("{s:f}", "f", edges[below(r, N_ROWS(edges))]);
}

static json_t *other_word(const char *key, aoth_random_t *r) {
  static const char *const dtypes[] = {"float32", "float64", "float16", "bfloat16", "int64",
                                       "int32",   "int16",   "int8",    "uint8",    "bool"};
  static const char *const formats[] = {"contiguous_format", "preserve_format", "channels_last", "channels_last_3d"};
  static const char *const words[] = {"",      "mean",  "sum",      "none",    "tanh",
                                      "floor", "trunc", "constant", "reflect", "nonsense"};
  if (strcmp(key, "dtype") == 0) return json_pack("{s:s}", key, dtypes[below(r, N_ROWS(dtypes))]);
  if (strcmp(key, "memory_format") == 0) return json_pack("{s:s}", key, formats[below(r, N_ROWS(formats))]);
  return json_pack("{s:s}", key, words[below(r, N_ROWS(words))]);
}

/* ---- tensors ---- */

static void drop_dim(aoth_tensor_t *t, int32_t at) {
  t->rank--;
  for (int32_t d = at; d < t->rank; d++) {
    t->sizes[d] = t->sizes[d + 1];
    t->strides[d] = t->strides[d + 1];
  }
}

static void add_dim(aoth_tensor_t *t, int32_t at, int64_t size, int64_t stride) {
  for (int32_t d = t->rank; d > at; d--) {
    t->sizes[d] = t->sizes[d - 1];
    t->strides[d] = t->strides[d - 1];
  }
  t->rank++;
  t->sizes[at] = size;
  t->strides[at] = stride;
}

/* Another geometry within the same storage. */
static void reshape(aoth_tensor_t *t, aoth_random_t *r) {
  static const int64_t sizes[] = {0, 1, 2, 3, 5, 17};
  const int32_t at = t->rank ? (int32_t)below(r, (size_t)t->rank) : 0;
  const size_t how = below(r, 8);
  const int has_room = t->rank < AOT_MAX_RANK;
  if (how == 0 && has_room) add_dim(t, at, 1, 1);
  if (how == 1 && has_room) add_dim(t, at, sizes[below(r, N_ROWS(sizes))], 0);
  if (how == 2) t->rank = 0;
  if (t->rank == 0) return;
  if (how == 3) drop_dim(t, at);
  if (how == 4) t->sizes[at] = 0;
  if (how == 5) t->sizes[at] = t->sizes[at] > 1 ? t->sizes[at] - 1 : 1;
  if (how == 6 && t->sizes[at] > 1) {
    t->sizes[at] = t->sizes[at] / 2;
    t->strides[at] *= 2;
  }
  if (how == 7) {
    const int32_t other = (int32_t)below(r, (size_t)t->rank);
    const int64_t size = t->sizes[at], stride = t->strides[at];
    t->sizes[at] = t->sizes[other];
    t->strides[at] = t->strides[other];
    t->sizes[other] = size;
    t->strides[other] = stride;
  }
}

static json_t *mutated_tensor(json_t *was, const aoth_st_t *data, aoth_random_t *r) {
  const aoth_st_entry_t *any = &aoth_st_entries(data)[below(r, aoth_st_count(data))];
  aoth_tensor_t t;
  if (!aoth_case_tensor(data, was, &t)) return json_incref(was);
  if (below(r, 4) == 0) return json_pack("{s:s}", "t", any->name);
  reshape(&t, r);
  json_t *shape = json_array(), *stride = json_array();
  for (int32_t d = 0; d < t.rank; d++) {
    json_array_append_new(shape, json_integer(t.sizes[d]));
    json_array_append_new(stride, json_integer(t.strides[d]));
  }
  return json_pack("{s:O, s:o, s:o, s:I}", "t", json_object_get(was, "t"), "shape", shape, "stride", stride, "offset",
                   (json_int_t)t.offset);
}

/* ---- arguments ---- */

static json_t *mutated_single(json_t *was, const aoth_st_t *data, aoth_random_t *r) {
  json_t *v;
  if (below(r, 12) == 0) return json_null();
  if (json_is_null(was)) return below(r, 2) ? mutated_int(0, r) : mutated_float(r);
  if (json_object_get(was, "t")) return mutated_tensor(was, data, r);
  if ((v = json_object_get(was, "i")))
    return below(r, 10) == 0 ? mutated_float(r) : mutated_int(json_integer_value(v), r);
  if (json_object_get(was, "f")) return mutated_float(r);
  if ((v = json_object_get(was, "b"))) return json_pack("{s:b}", "b", !json_is_true(v));
  const char *key = json_object_iter_key(json_object_iter(was));
  return key ? other_word(key, r) : json_incref(was);
}

static json_t *mutated_list(json_t *list, const aoth_st_t *data, aoth_random_t *r) {
  json_t *out = json_copy(list);
  const size_t n = json_array_size(out), at = n ? below(r, n) : 0;
  const size_t how = below(r, 6);
  if (n == 0) json_array_append_new(out, mutated_int(0, r));
  else if (how == 0) json_array_remove(out, at);
  else if (how == 1 && n < LONGEST_LIST) json_array_insert(out, at, json_array_get(out, at));
  else if (how == 2) json_array_clear(out);
  else json_array_set_new(out, at, mutated_single(json_array_get(list, at), data, r));
  return json_pack("{s:o}", "l", out);
}

static json_t *mutated_arg(json_t *was, const aoth_st_t *data, aoth_random_t *r) {
  json_t *list = json_object_get(was, "l");
  return list && below(r, 12) ? mutated_list(list, data, r) : mutated_single(was, data, r);
}

static void mutate_one(json_t *args, json_t *kwargs, const aoth_st_t *data, aoth_random_t *r) {
  const size_t n = json_array_size(args), at = below(r, n + json_object_size(kwargs));
  if (at < n) {
    json_array_set_new(args, at, mutated_arg(json_array_get(args, at), data, r));
    return;
  }
  void *iter = json_object_iter(kwargs);
  for (size_t k = n; iter && k < at; k++) iter = json_object_iter_next(kwargs, iter);
  if (iter) json_object_iter_set_new(kwargs, iter, mutated_arg(json_object_iter_value(iter), data, r));
}

json_t *aoth_case_mutate(json_t *one, const aoth_st_t *data, uint64_t number, aoth_random_t *r) {
  json_t *out = json_copy(one), *args = json_deep_copy(json_object_get(one, "args"));
  json_t *kwargs = json_deep_copy(json_object_get(one, "kwargs"));
  char id[64];
  if (!kwargs) kwargs = json_object();
  snprintf(id, sizeof id, "%.40s~%llu", json_string_value(json_object_get(one, "id")), (unsigned long long)number);
  if (aoth_st_count(data) && json_array_size(args) + json_object_size(kwargs))
    for (size_t n = 1 + below(r, 3); n; n--) mutate_one(args, kwargs, data, r);
  if (json_object_set_new(out, "args", args) == 0 && json_object_set_new(out, "kwargs", kwargs) == 0 &&
      json_object_set_new(out, "id", json_string(id)) == 0)
    return out;
  json_decref(out);
  return NULL;
}

/* ---- elements ---- */

/* All bits, no bits, only the highest, all but it, or anything: the edges of integers, and NaN, zero, minus zero. */
static void mutate_element(unsigned char *at, size_t size, aoth_random_t *r) {
  const size_t how = below(r, 6);
  if (how == 5) { /* a small number, as an integer */
    memset(at, 0, size);
    at[0] = (unsigned char)below(r, 20);
    return;
  }
  memset(at, how == 0 || how == 3 ? 0xff : 0, size);
  if (how == 2) at[size - 1] = 0x80;
  if (how == 3) at[size - 1] = 0x7f;
  for (size_t i = 0; how == 4 && i < size; i++) at[i] = (unsigned char)below(r, 256);
}

static void *changed_copy(const aoth_tensor_t *t, aoth_random_t *r) {
  const size_t size = aot_dtype_size(t->dtype);
  unsigned char *copy = malloc((size_t)t->nbytes);
  if (!copy) return NULL;
  memcpy(copy, t->data, (size_t)t->nbytes);
  for (size_t n = 1 + below(r, 3); n; n--) {
    unsigned char *at = copy + below(r, (size_t)t->nbytes / size) * size;
    if (t->dtype == AOT_BOOL) *at = !*at; /* there are no others */
    else mutate_element(at, size, r);
  }
  return copy;
}

void aoth_case_mutate_elements(aoth_case_program_t *p, void *copies[AOTH_CASE_TENSORS], aoth_random_t *r) {
  for (uint32_t k = 0; k < p->n_inputs; k++) {
    aoth_tensor_t *t = &p->inputs[k];
    copies[k] = t->nbytes >= aot_dtype_size(t->dtype) && below(r, 2) ? changed_copy(t, r) : NULL;
    if (copies[k]) t->data = copies[k];
  }
}
