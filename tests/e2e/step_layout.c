/* How results are in memory, against what PyTorch's did: strides, offsets, which is a view of whom.
 *
 * step_layout PIPELINE MODEL EXPECT INFO [PATH=VALUE ..]: one step on the inputs of the expectation file. INFO is a
 * scenario's info.json: for each input its sizes and strides after the call, for each output its sizes, strides,
 * offset, the input (alias_of_input) or earlier output (same_storage_as_output) in whose storage it lies. A line and
 * status 1 where they differ. */
#include <base/sink.h>
#include <jansson.h>
#include <step/api.h>
#include <cli/verify/expect.h>
#include <stdio.h>
#include <string.h>

typedef struct layout {
  const aoth_step_t *step;
  int n_bad;
} layout_t;

static void complain(layout_t *l, const char *key, const char *what) {
  printf("%s: %s\n", key, what);
  l->n_bad++;
}

static int get(layout_t *l, const char *prefix, size_t k, char *key, aoth_tensor_t *out) {
  sprintf(key, "%s.%zu", prefix, k);
  if (aoth_step_get(l->step, key, out)) return 1;
  complain(l, key, "there is no such result");
  return 0;
}

/* Strides of dimensions of one element, and of tensors without elements, mean nothing. */
static void compare_geometry(layout_t *l, const char *key, const aoth_tensor_t *t, const json_t *want) {
  const json_t *shape = json_object_get(want, "shape"), *stride = json_object_get(want, "stride");
  if (json_array_size(shape) != (size_t)t->rank) {
    complain(l, key, "another rank");
    return;
  }
  for (int32_t d = 0; d < t->rank; d++) {
    if (json_integer_value(json_array_get(shape, (size_t)d)) != t->sizes[d]) complain(l, key, "other sizes");
    if (t->sizes[d] > 1 && aoth_tensor_numel(t) > 0 &&
        json_integer_value(json_array_get(stride, (size_t)d)) != t->strides[d])
      complain(l, key, "other strides");
  }
}

static void compare_sharing(layout_t *l, const char *key, const char *kind, const aoth_tensor_t *t,
                            const aoth_tensor_t *other, int wanted) {
  if ((t->data == other->data) == wanted || aoth_tensor_numel(t) == 0 || aoth_tensor_numel(other) == 0) return;
  printf("%s: %s storage of %s\n", key, wanted ? "not in the" : "in the", kind);
  l->n_bad++;
}

static int names(const json_t *output, const char *field, size_t k) {
  const json_t *v = json_object_get(output, field);
  return json_is_integer(v) && (size_t)json_integer_value(v) == k;
}

/* Inputs share no storage with one another here: an output that is in one is in no other. */
static void compare_output(layout_t *l, const json_t *info, size_t k) {
  const json_t *inputs = json_object_get(info, "inputs"), *outputs = json_object_get(info, "outputs"),
               *want = json_array_get(outputs, k);
  char key[40], other_key[40];
  aoth_tensor_t t, other;
  if (!json_is_object(want) || !get(l, "output", k, key, &t)) return;
  compare_geometry(l, key, &t, want);
  int lies_elsewhere = json_is_integer(json_object_get(want, "alias_of_input"));
  if (lies_elsewhere && json_integer_value(json_object_get(want, "offset")) != t.offset)
    complain(l, key, "another offset");
  for (size_t i = 0; i < json_array_size(inputs); i++)
    if (get(l, "input_after", i, other_key, &other))
      compare_sharing(l, key, other_key, &t, &other, names(want, "alias_of_input", i));
  for (size_t i = 0; i < k; i++)
    if (names(want, "same_storage_as_output", i) && get(l, "output", i, other_key, &other))
      compare_sharing(l, key, other_key, &t, &other, 1);
  for (size_t i = 0; i < k && json_is_null(json_object_get(want, "same_storage_as_output")); i++)
    if (get(l, "output", i, other_key, &other)) compare_sharing(l, key, other_key, &t, &other, 0);
}

static int compare(const aoth_step_t *step, const json_t *info) {
  layout_t l = {step, 0};
  const json_t *inputs = json_object_get(info, "inputs");
  for (size_t i = 0; i < json_array_size(inputs); i++) {
    char key[40];
    aoth_tensor_t t;
    if (get(&l, "input_after", i, key, &t)) compare_geometry(&l, key, &t, json_array_get(inputs, i));
  }
  size_t n = json_array_size(json_object_get(info, "outputs"));
  for (size_t k = 0; k < n; k++) compare_output(&l, info, k);
  if (n == 0) complain(&l, "outputs", "the description has none");
  return l.n_bad;
}

static int step_and_compare(aothost_t *h, aoth_sink_t *sink, const char *expect_path, const json_t *info) {
  aoth_st_t *file;
  aoth_expect_t e = {0};
  int bad = aoth_st_open(expect_path, sink, &file) != AOT_OK;
  if (bad) return 1;
  bad = aoth_expect_run(aoth_api_step(h), file, 1e-5, 1e-6, sink, &e) != AOT_OK;
  if (!bad && e.n_ok != e.n) bad = printf("%u of %u results differ\n", e.n - e.n_ok, e.n) > 0;
  if (!bad) bad = compare(aoth_api_step(h), info) > 0;
  aoth_expect_deinit(&e);
  aoth_st_close(file);
  return bad;
}

int main(int argc, char **argv) {
  json_error_t where;
  if (argc < 5) return puts("usage: step_layout PIPELINE MODEL EXPECT INFO [PATH=VALUE ..]"), 2;
  json_t *info = json_load_file(argv[4], 0, &where);
  aoth_sink_t *sink = aoth_sink_create(stderr);
  const aothost_config_t config = {
      .struct_size = sizeof config,
      .model = argv[2],
      .sets = (const char *const *)argv + 5,
      .n_sets = (uint32_t)argc - 5,
  };
  aothost_t *h = NULL;
  if (!info) printf("%s: %s\n", argv[4], where.text);
  int bad = !info || aothost_open(argv[1], &config, &h) != AOT_OK || aothost_compile(h, 0) != AOT_OK;
  bad = bad || step_and_compare(h, sink, argv[3], info);
  if (bad && h) printf("%s", aothost_messages(h));
  aothost_close(h);
  aoth_sink_destroy(sink);
  json_decref(info);
  return bad;
}
