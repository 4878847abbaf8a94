#include "dump_row.h"

#include "partition-mincut/op_lists.h"
#include <aot/graph.h>
#include <aot/opset.h>
#include <string.h>

typedef struct word {
  const char *text;
  uint32_t value;
} word_t;

static const word_t kinds[] = {
    {"placeholder", JD_INPUT}, {"get_attr", JD_INPUT}, {"call_function", JD_CALL}, {"output", JD_OUTPUT}};

static const word_t dtypes[] = {
    {"float32", 4},       {"float64", 8},       {"float16", 2},     {"bfloat16", 2},        {"int64", 8},
    {"int32", 4},         {"int16", 2},         {"int8", 1},        {"uint8", 1},           {"uint16", 2},
    {"uint32", 4},        {"uint64", 8},        {"bool", 1},        {"complex32", 4},       {"complex64", 8},
    {"complex128", 16},   {"float8_e4m3fn", 1}, {"float8_e5m2", 1}, {"float8_e4m3fnuz", 1}, {"float8_e5m2fnuz", 1},
    {"float8_e8m0fnu", 1}};

/* In the order of PyTorch's CheckpointPolicy. prefer-save has no effect on its min-cut. */
static const word_t tags[] = {{"MUST_SAVE", AOT_NODE_MUST_SAVE},
                              {"PREFER_SAVE", 0},
                              {"MUST_RECOMPUTE", AOT_NODE_MUST_RECOMPUTE},
                              {"PREFER_RECOMPUTE", AOT_NODE_PREFER_RECOMPUTE}};

#define FIND(table, text, out) find(table, sizeof(table) / sizeof *(table), text, out)
static int find(const word_t *table, size_t n, const char *text, uint32_t *out) {
  for (size_t i = 0; text && i < n; i++)
    if (strcmp(table[i].text, text) == 0) {
      *out = table[i].value;
      return 0;
    }
  return -1;
}

/* "torch.float32" and "CheckpointPolicy.MUST_SAVE" are called by their last word. */
static const char *last_word(const char *text) {
  const char *dot = text ? strrchr(text, '.') : NULL;
  return dot ? dot + 1 : text;
}

static int read_value(const json_t *json, jd_row_t *out, const char **out_what) {
  const json_t *shape = json_array_get(json, 1);
  uint32_t item = 0;
  if (json_is_null(json)) return 0;
  *out_what = "the value is neither null nor [dtype, shape, strides]";
  if (!json_is_array(json) || json_array_size(json) < 2 || !json_is_array(shape)) return -1;
  *out_what = "no dtype is called so";
  if (FIND(dtypes, last_word(json_string_value(json_array_get(json, 0))), &item) != 0) return -1;
  double total = item;
  out->nbytes = item;
  for (size_t d = 0; d < json_array_size(shape); d++) {
    const json_t *size = json_array_get(shape, d);
    *out_what = "a size is not a whole number of 0 or more";
    if (!json_is_integer(size) || json_integer_value(size) < 0) return -1;
    *out_what = "the value takes more than 10^15 bytes";
    total *= (double)json_integer_value(size);
    if (total > 1e15) return -1;
    out->nbytes *= (uint64_t)json_integer_value(size);
  }
  out->has_value = 1;
  return 0;
}

static int read_inputs(const json_t *json, uint32_t i, jd_row_t *out, const char **out_what) {
  *out_what = "the inputs are not a list";
  if (!json_is_array(json) || json_array_size(json) > INT32_MAX / 8) return -1;
  out->inputs = json;
  out->n_inputs = (uint32_t)json_array_size(json);
  *out_what = "an input is not the number of an earlier row";
  for (uint32_t k = 0; k < out->n_inputs; k++) {
    const json_t *from = json_array_get(json, k);
    if (!json_is_integer(from) || json_integer_value(from) < 0 || json_integer_value(from) >= (json_int_t)i) return -1;
  }
  return 0;
}

static int read_tag(const json_t *json, jd_row_t *out, const char **out_what) {
  *out_what = "the recompute tag is none of null, MUST_SAVE, PREFER_SAVE, MUST_RECOMPUTE, PREFER_RECOMPUTE, 0 to 3";
  if (!json || json_is_null(json)) return 0;
  if (json_is_string(json)) return FIND(tags, last_word(json_string_value(json)), &out->tag);
  if (!json_is_integer(json) || json_integer_value(json) < 0 || json_integer_value(json) > 3) return -1;
  out->tag = tags[json_integer_value(json)].value;
  return 0;
}

/* What comes with the backward, and what is no parameter: PyTorch tells them by their names, too. */
static void look_at_input(jd_row_t *row) {
  row->is_late = strstr(row->target, "tangents") != NULL || strstr(row->target, "bwd_seed") != NULL ||
                 strstr(row->target, "bwd_base_offset") != NULL || strstr(row->target, "bwd_rng_state") != NULL;
  row->is_seed = strstr(row->target, "fwd_seed") != NULL || strstr(row->target, "fwd_base_offset") != NULL ||
                 strstr(row->target, "fwd_rng_state") != NULL;
}

int jd_read_row(const json_t *json, uint32_t i, jd_row_t *out, const char **out_what) {
  uint32_t kind = 0;
  *out_what = "a row is a list of name, kind, target, inputs, value, recompute";
  if (!json_is_array(json) || json_array_size(json) < 5 || json_array_size(json) > 6) return -1;
  out->name = json_string_value(json_array_get(json, 0));
  out->target = json_string_value(json_array_get(json, 2));
  if (!out->name || !out->target) return -1;
  *out_what = "the kind is none of placeholder, get_attr, call_function, output";
  if (FIND(kinds, json_string_value(json_array_get(json, 1)), &kind) != 0) return -1;
  out->kind = (int32_t)kind;
  if (read_inputs(json_array_get(json, 3), i, out, out_what) != 0) return -1;
  *out_what = "an input of the graph reads nothing";
  if (kind == JD_INPUT && out->n_inputs > 0) return -1;
  if (read_value(json_array_get(json, 4), out, out_what) != 0 || read_tag(json_array_get(json, 5), out, out_what) != 0)
    return -1;
  if (kind == JD_INPUT) look_at_input(out);
  out->is_getitem = kind == JD_CALL && strcmp(out->target, "<built-in function getitem>") == 0;
  return 0;
}

uint32_t jd_flags(aot_str_t name) {
  static const char collective[] = "_c10d_functional.", effect[] = "with_effects";
  const uint32_t listed = mc_listed(name);
  uint32_t flags = 0;
  if (listed & OL_VIEW) flags |= AOT_OP_VIEW;
  else if (listed & OL_CHEAP) flags |= AOT_OP_POINTWISE;
  if (listed & OL_HEAVY) flags |= AOT_OP_HEAVY;
  if (listed & OL_RANDOM) flags |= AOT_OP_RANDOM;
  if (listed & OL_JOINS) flags |= AOT_OP_MOVEMENT;
  if (strncmp(name.data, collective, sizeof collective - 1) == 0) flags |= AOT_OP_COLLECTIVE;
  if (strstr(name.data, effect)) flags |= AOT_OP_EFFECT;
  return flags;
}
