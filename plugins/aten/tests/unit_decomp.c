/* Decompositions, evaluated: every recorded call of PyTorch whose operator has one, and calls of operators that were
 * not recorded (decomp_cases.txt: backward operators, attention, the private fused forms) against the reference kernel
 * of the operator itself. Each is decomposed until nothing more can be, so that this also determines which operators
 * are left. */
#include "at_world.h"
#include "at_row.h"
#include "infer_case.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static at_world_t world;

typedef struct tally {
  unsigned passed, failed, skipped;
  unsigned char covered[AT_N_OPS];
} tally_t;

static tally_t tally;

/* Decomposes the program of one node, runs it, compares with what is expected. */
static void check(uint32_t row, const rk_tensor_t *expected, const int *present, uint32_t n_expected,
                  const char *name) {
  uint32_t i;
  double worst = 0;
  int ok = world_decompose(&world) && (n_expected == 0 || world_run(&world));
  for (i = 0; ok && i < n_expected; i++) {
    const rk_tensor_t *got = world_output_tensor(&world, i);
    double off;
    if (!present[i] || got == NULL) continue;
    off = world_distance(got, &expected[i]);
    if (off > worst) worst = off;
  }
  if (ok && worst <= 1.0) {
    tally.passed++;
    tally.covered[row] = 1;
    return;
  }
  tally.failed++;
  print_message("%s: %s", name, ok ? "" : world.why);
  if (ok) print_message("%g tolerances away\n", worst);
  else print_message("\n");
  if (getenv("AT_SHOW")) world_show(&world);
}

/* ---- recorded calls ---- */

typedef struct fixtures {
  json_t *cases, *index;
  char *file, *bytes;
} fixtures_t;

static int32_t dtype_of(const char *name) {
  static const struct {
    const char *name;
    int32_t dtype;
  } names[] = {{"F32", AOT_F32},      {"F64", AOT_F64},   {"BF16", AOT_BF16},   {"F16", AOT_F16},
               {"I64", AOT_I64},      {"I32", AOT_I32},   {"I16", AOT_I16},     {"I8", AOT_I8},
               {"U8", AOT_U8},        {"BOOL", AOT_BOOL}, {"float32", AOT_F32}, {"bfloat16", AOT_BF16},
               {"int64", AOT_I64},    {"int32", AOT_I32}, {"bool", AOT_BOOL},   {"float64", AOT_F64},
               {"int8", AOT_I8},      {"uint8", AOT_U8},  {"U64", AOT_U64},     {"C64", AOT_C64},
               {"complex64", AOT_C64}};
  size_t i;
  for (i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strcmp(names[i].name, name) == 0) return names[i].dtype;
  return 0;
}

static int open_fixtures(fixtures_t *f, const char *folder) {
  char path[400];
  FILE *file;
  json_error_t error;
  uint64_t header;
  long size;
  memset(f, 0, sizeof *f);
  snprintf(path, sizeof path, "%s/data.safetensors", folder);
  file = fopen(path, "rb");
  if (file == NULL) return 0;
  fseek(file, 0, SEEK_END);
  size = ftell(file);
  rewind(file);
  f->file = malloc((size_t)size);
  if (f->file == NULL || fread(f->file, 1, (size_t)size, file) != (size_t)size) return 0;
  fclose(file);
  memcpy(&header, f->file, sizeof header);
  f->index = json_loadb(f->file + 8, (size_t)header, 0, &error);
  f->bytes = f->file + 8 + header;
  snprintf(path, sizeof path, "%s/cases.json", folder);
  f->cases = json_load_file(path, 0, &error);
  return f->cases != NULL && f->index != NULL;
}

static void set_dims(rk_tensor_t *t, json_t *sizes, json_t *strides) {
  int64_t step = 1;
  int32_t d;
  t->rank = (int32_t)json_array_size(sizes);
  for (d = t->rank - 1; d >= 0; d--) {
    t->sizes[d] = json_integer_value(json_array_get(sizes, (size_t)d));
    t->strides[d] = strides ? json_integer_value(json_array_get(strides, (size_t)d)) : step;
    step *= t->sizes[d] > 1 ? t->sizes[d] : 1;
  }
}

static rk_tensor_t tensor_at(const fixtures_t *f, json_t *node) {
  json_t *row = json_object_get(f->index, json_string_value(json_object_get(node, "t")));
  json_t *range = json_object_get(row, "data_offsets");
  int64_t begin = json_integer_value(json_array_get(range, 0));
  rk_tensor_t t;
  memset(&t, 0, sizeof t);
  t.data = f->bytes + begin;
  t.nbytes = (uint64_t)(json_integer_value(json_array_get(range, 1)) - begin);
  t.dtype = dtype_of(json_string_value(json_object_get(row, "dtype")));
  set_dims(&t, json_object_get(row, "shape"), NULL);
  if (json_object_get(node, "stride")) {
    set_dims(&t, json_object_get(node, "shape"), json_object_get(node, "stride"));
    t.offset = json_integer_value(json_object_get(node, "offset"));
  }
  return t;
}

static double number(json_t *v) {
  return json_is_string(v) ? strtod(json_string_value(v), NULL) : json_number_value(v);
}

static aot_arg_t read_list(const fixtures_t *f, json_t *list) {
  uint32_t n = (uint32_t)json_array_size(list), i;
  int64_t *ints = kit_arena_alloc(world.values, 8, (n + 1) * sizeof *ints);
  double *floats = kit_arena_alloc(world.values, 8, (n + 1) * sizeof *floats);
  uint32_t *ids = kit_arena_alloc(world.values, 8, (n + 1) * sizeof *ids);
  int kind = AOT_ARG_INTS;
  for (i = 0; i < n; i++) {
    json_t *e = json_array_get(list, i), *v;
    ids[i] = AOT_NO_ID;
    if (json_object_get(e, "t") || json_is_null(e)) {
      rk_tensor_t t;
      kind = AOT_ARG_VALUES;
      if (json_is_null(e)) continue;
      t = tensor_at(f, e);
      ids[i] = world_input(&world, &t).id;
    } else if ((v = json_object_get(e, "f"))) {
      kind = AOT_ARG_FLOATS;
      floats[i] = number(v);
    } else if ((v = json_object_get(e, "b"))) {
      kind = AOT_ARG_BOOLS;
      ints[i] = json_is_true(v);
    } else {
      ints[i] = json_integer_value(json_object_get(e, "i"));
      floats[i] = (double)ints[i];
    }
  }
  if (kind == AOT_ARG_VALUES) return aot_arg_values(ids, n);
  if (kind == AOT_ARG_FLOATS) {
    aot_arg_t a = aot_arg_none();
    a.kind = kind;
    a.n = n;
    a.u.floats = floats;
    return a;
  }
  {
    aot_arg_t a = aot_arg_ints(ints, n);
    a.kind = kind;
    return a;
  }
}

static aot_arg_t read_arg(const fixtures_t *f, json_t *node) {
  json_t *v;
  if (node == NULL || json_is_null(node)) return aot_arg_none();
  if (json_object_get(node, "t")) {
    rk_tensor_t t = tensor_at(f, node);
    return aot_arg_value(world_input(&world, &t));
  }
  if ((v = json_object_get(node, "i"))) return aot_arg_int(json_integer_value(v));
  if ((v = json_object_get(node, "f"))) return aot_arg_float(number(v));
  if ((v = json_object_get(node, "b"))) return aot_arg_bool(json_is_true(v));
  if ((v = json_object_get(node, "l"))) return read_list(f, v);
  if ((v = json_object_get(node, "s"))) return aot_arg_str(aot_str(json_string_value(v)));
  if ((v = json_object_get(node, "dtype"))) return aot_arg_dtype(dtype_of(json_string_value(v)));
  if ((v = json_object_get(node, "memory_format")))
    return aot_arg_int_kind(AOT_ARG_MEMORY_FORMAT, strstr(json_string_value(v), "channels_last") ? 2
                                                   : strstr(json_string_value(v), "preserve")    ? 4
                                                                                                 : 1);
  if (json_object_get(node, "device")) return aot_arg_device(AOT_DEVICE_CPU, 0);
  return aot_arg_none(); /* layout: always the same */
}

static uint32_t row_of(const char *name) {
  uint32_t i;
  for (i = 0; i < AT_N_OPS && strcmp(at_rows[i].name, name) != 0; i++) continue;
  return i;
}

/* Calls whose decomposition cannot be compared by value; the last has a size that only a run reports
 * (tests/models/dynamic_rows). */
static const char *const by_chance[] = {"aten.empty",
                                        "aten.new_empty",
                                        "aten.rand",
                                        "aten.native_dropout",
                                        "aten.empty_like",
                                        "prims.empty",
                                        "aten.repeat_interleave.self_Tensor",
                                        NULL};

static int is_by_chance(const char *name) {
  size_t i;
  for (i = 0; by_chance[i]; i++)
    if (strncmp(name, by_chance[i], strlen(by_chance[i])) == 0 && strstr(name, "backward") == NULL) return 1;
  return 0;
}

/* Numbers, tokens, graphs or sizes that a run reports, which the interpreter here does not make: gradcheck,
 * e2e_ops_composites, e2e_ops_numerics, e2e_effects, e2e_loops and e2e_regions_kept evaluate them. */
static int gives_more(const char *name) {
  static const char *const list[] = {"aten._scaled_dot_product_flash_attention.default",
                                     "aten._scaled_dot_product_cudnn_attention.default",
                                     "aten._scaled_dot_product_fused_attention_overrideable.default",
                                     "aten._efficient_attention_forward.default",
                                     "aten.where.default",
                                     "aten.nonzero_numpy.default",
                                     "higher_order.with_effects",
                                     "higher_order.invoke_subgraph",
                                     "higher_order.scan",
                                     "higher_order.map_impl",
                                     "higher_order.associative_scan"};
  size_t i;
  for (i = 0; i < sizeof list / sizeof list[0]; i++)
    if (strcmp(list[i], name) == 0) return 1;
  return 0;
}

static void recorded_case(const fixtures_t *f, json_t *one) {
  const char *op = json_string_value(json_object_get(one, "op"));
  uint32_t row = row_of(op), i, n;
  const aot_op_desc_t *d;
  aot_arg_t args[32];
  rk_tensor_t expected[WORLD_MAX_RESULTS];
  int present[WORLD_MAX_RESULTS];
  json_t *outputs = json_object_get(one, "outputs"), *list = json_object_get(one, "args"),
         *named = json_object_get(one, "kwargs");
  char name[128];
  if (row == AT_N_OPS || at_rows[row].decompose == NULL || is_by_chance(op) || gives_more(op)) return;
  d = case_desc(row);
  world_begin(&world);
  for (i = 0; i < d->n_args; i++) {
    json_t *by_name;
    snprintf(name, sizeof name, "%.*s", (int)d->args[i].name.size, d->args[i].name.data);
    by_name = json_object_get(named, name);
    if (i < json_array_size(list)) args[i] = read_arg(f, json_array_get(list, i));
    else args[i] = by_name ? read_arg(f, by_name) : d->args[i].preset;
  }
  n = (uint32_t)json_array_size(outputs);
  for (i = 0; i < n && i < WORLD_MAX_RESULTS; i++) {
    json_t *o = json_array_get(outputs, i);
    present[i] = json_object_get(o, "t") != NULL;
    if (present[i]) expected[i] = tensor_at(f, o);
  }
  snprintf(name, sizeof name, "%s %s", op, json_string_value(json_object_get(one, "id")));
  if (world_node(&world, op, args, d->n_args).id == AOT_NO_ID) {
    print_message("%s: %s\n", name, world.why);
    tally.failed++;
    return;
  }
  check(row, expected, present, n, name);
}

static void calls_of(const char *folder) {
  fixtures_t f;
  size_t i;
  assert_true(open_fixtures(&f, folder));
  for (i = 0; i < json_array_size(f.cases); i++) recorded_case(&f, json_array_get(f.cases, i));
  json_decref(f.cases);
  json_decref(f.index);
  free(f.file);
}

static void recorded_calls(void **state) {
  (void)state;
  memset(&tally, 0, sizeof tally);
  calls_of(AT_FIXTURES "/ops");
  calls_of(AT_FIXTURES "/ops_families");
  calls_of(AT_FIXTURES "/ops_composites");
  calls_of(AT_FIXTURES "/ops_libraries");
  calls_of(AT_FIXTURES "/ops_complex");
  calls_of(AT_FIXTURES "/ops_numerics");
  print_message("recorded calls: %u agree, %u differ\n", tally.passed, tally.failed);
  assert_int_equal(tally.failed, 0);
  assert_true(tally.passed > 600);
}

/* ---- calls against the reference kernel; where there is none the decomposition must at least be well typed ---- */

static void kernel_case(const char *line, uint32_t seed) {
  static infer_case_t c;
  static aot_arg_t args[MAX_CASE_ARGS];
  rk_tensor_t inputs[MAX_CASE_VALUES], expected[WORLD_MAX_RESULTS];
  int present[WORLD_MAX_RESULTS];
  uint32_t i, k, pass, n = 0;
  assert_true(case_read(&c, line));
  if (c.row == AT_N_OPS) fail_msg("unknown operator: %s", line);
  for (pass = 0; pass < 2; pass++) { /* 0: as it is, for the expected values; 1: decomposed */
    uint32_t ids[MAX_CASE_VALUES] = {AOT_NO_ID};
    world_begin(&world);
    for (i = 1; i < c.n_values; i++) {
      inputs[i] = world_random(&world, c.values[i].dtype, c.values[i].sizes, c.values[i].rank, seed + i - 1);
      ids[i] = world_input(&world, &inputs[i]).id;
    }
    for (i = 0; i < c.n_args; i++) {
      args[i] = c.args[i];
      if (args[i].kind == AOT_ARG_VALUE) args[i].u.i = ids[args[i].u.i];
      if (args[i].kind == AOT_ARG_VALUES) {
        uint32_t *list = kit_arena_alloc(world.values, 8, (args[i].n + 1) * sizeof *list);
        for (k = 0; k < args[i].n; k++) list[k] = ids[args[i].u.ids[k]];
        args[i].u.ids = list;
      }
    }
    if (world_node(&world, at_rows[c.row].name, args, c.n_args).id == AOT_NO_ID) {
      print_message("%s    %s\n", line, world.why);
      tally.failed++;
      return;
    }
    if (pass == 1) break;
    if (rk_find(aot_str(at_rows[c.row].name)) == NULL) continue;
    if (!world_run(&world)) {
      print_message("%s    %s\n", line, world.why);
      tally.failed++;
      return;
    }
    n = aoth_graph_n_outputs(world.p, world.graph);
    for (i = 0; i < n; i++) { /* stored beyond the program */
      const rk_tensor_t *t = world_output_tensor(&world, i);
      present[i] = t != NULL;
      if (!present[i]) continue;
      expected[i] = *t;
      expected[i].data = malloc((size_t)t->nbytes + 1);
      memcpy(expected[i].data, t->data, (size_t)t->nbytes);
    }
  }
  check(c.row, expected, present, n, line);
  for (i = 0; i < n; i++)
    if (present[i]) free(expected[i].data);
}

static void calls_against_kernels(void **state) {
  static char line[1 << 14];
  FILE *f = fopen(AT_TEST_DIR "/decomp_cases.txt", "r");
  unsigned char before[AT_N_OPS];
  uint32_t seed = 1, i, n_without = 0;
  (void)state;
  assert_non_null(f);
  memcpy(before, tally.covered, sizeof before);
  memset(&tally, 0, sizeof tally);
  memcpy(tally.covered, before, sizeof before);
  while (fgets(line, sizeof line, f) != NULL)
    if (line[0] != '\n' && strncmp(line, "// ", 3) != 0) kernel_case(line, seed += 97);
  fclose(f);
  print_message("calls against kernels: %u agree, %u differ\n", tally.passed, tally.failed);
  assert_int_equal(tally.failed, 0);
  for (i = 0; i < AT_N_OPS; i++)
    if (at_rows[i].decompose && !tally.covered[i] && !is_by_chance(at_rows[i].name) && !gives_more(at_rows[i].name)) {
      print_message("no evaluated call: %s\n", at_rows[i].name);
      n_without++;
    }
  assert_int_equal(n_without, 0);
}

/* The fused attention's backward reads the result and the log sum exp of its forward; the private one computes them
 * again. */
static void attention_backwards_agree(void **state) {
  static const int64_t sizes[4] = {2, 3, 5, 4}, mask_sizes[2] = {5, 5};
  rk_tensor_t t[5];
  aot_arg_t forward[7], backward[10], fused[9];
  aot_node_t y, a, b;
  uint32_t i;
  (void)state;
  world_begin(&world);
  for (i = 0; i < 4; i++) t[i] = world_random(&world, AOT_F32, sizes, 4, 7 + i);
  t[4] = world_random(&world, AOT_F32, mask_sizes, 2, 11);
  fused[0] = aot_arg_value(world_input(&world, &t[0])); /* gradient */
  for (i = 0; i < 3; i++) forward[i] = backward[1 + i] = fused[1 + i] = aot_arg_value(world_input(&world, &t[1 + i]));
  forward[3] = backward[6] = fused[5] = aot_arg_float(0.0);
  forward[4] = backward[7] = fused[6] = aot_arg_bool(0);
  forward[5] = backward[8] = fused[4] = aot_arg_value(world_input(&world, &t[4]));
  forward[6] = backward[9] = fused[7] = aot_arg_float(0.4);
  fused[8] = aot_arg_bool(0);
  y = world_node(&world, "aten._scaled_dot_product_flash_attention_for_cpu.default", forward, 7);
  backward[0] = fused[0];
  backward[4] = aot_arg_value(world_result(&world, y, 0));
  backward[5] = aot_arg_value(world_result(&world, y, 1));
  a = world_node(&world, "aten._scaled_dot_product_flash_attention_for_cpu_backward.default", backward, 10);
  b = world_node(&world, "aot.scaled_dot_product_attention_backward.default", fused, 9);
  assert_true(a.id != AOT_NO_ID && b.id != AOT_NO_ID);
  assert_true(world_decompose(&world) && world_run(&world));
  for (i = 0; i < 3; i++)
    assert_true(world_distance(world_output_tensor(&world, 2 + i), world_output_tensor(&world, 5 + i)) <= 1.0);
  tally.covered[row_of("aten._scaled_dot_product_flash_attention_for_cpu_backward.default")] = 1;
}

static int open_world(void **state) {
  (void)state;
  world_open(&world);
  return 0;
}

static int close_world(void **state) {
  (void)state;
  world_close(&world);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(recorded_calls), cmocka_unit_test(attention_backwards_agree),
                                     cmocka_unit_test(calls_against_kernels)};
  return cmocka_run_group_tests(tests, open_world, close_world);
}
