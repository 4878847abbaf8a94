/* Functional forms and inverses of views, evaluated. */
#include "at_row.h"
#include "at_world.h"
#include "infer_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>

static at_world_t world;

static const int64_t sizes_2x3x4[3] = {2, 3, 4};

static aot_value_t input(int32_t dtype, const int64_t *sizes, int32_t rank, uint32_t seed) {
  rk_tensor_t t = world_random(&world, dtype, sizes, rank, seed);
  return world_input(&world, &t);
}

static void assert_type(aot_value_t v, int32_t dtype, int32_t rank) {
  aot_type_t t;
  assert_int_equal(aoth_graph_value_type(world.p, v, &t), AOT_OK);
  assert_int_equal(t.dtype, dtype);
  assert_int_equal(t.rank, rank);
}

static const char *defining_op(aot_value_t v) {
  aot_node_t n = aoth_graph_value_def(world.p, v);
  aot_node_info_t info = {.struct_size = sizeof info};
  if (n.id == AOT_NO_ID) return "";
  aoth_graph_node_info(world.p, n, &info);
  return aoth_ops_desc(world.ops, info.op)->name.data;
}

/* ---- functional forms ---- */

static aot_value_t functional(const char *op, const aot_arg_t *args, uint32_t n, aot_value_t *out_results) {
  aot_value_t written[4];
  aot_node_t node = world_node(&world, op, args, n);
  if (node.id == AOT_NO_ID) fail_msg("%s", world.why);
  if (aoth_edit_functional_form(world.p, node, out_results, written) != AOT_OK)
    fail_msg("%s: %s", op, aoth_sink_text(world.sink));
  return written[0];
}

static void writes_become_values(void **state) {
  aot_value_t x, y, result, written;
  (void)state;
  world_begin(&world);
  x = input(AOT_F32, sizes_2x3x4, 3, 1);
  y = input(AOT_F32, sizes_2x3x4 + 1, 2, 2);
  {
    const aot_arg_t args[2] = {aot_arg_value(x), aot_arg_value(y)};
    written = functional("aten.add_.Tensor", args, 2, &result);
    assert_int_equal(written.id, result.id);
    assert_string_equal(defining_op(written), "aten.add.Tensor");
    assert_type(written, AOT_F32, 3);
    written = functional("aten.copy_.default", args, 2, &result);
    assert_type(written, AOT_F32, 3);
    written = functional("aten.zero_.default", args, 1, &result);
    assert_string_equal(defining_op(written), "aten.fill.Scalar");
    written = functional("aten.fill_.Tensor", (const aot_arg_t[]){args[0], aot_arg_value(input(AOT_F32, NULL, 0, 3))},
                         2, &result);
    assert_string_equal(defining_op(written), "aten.fill.Tensor");
    assert_type(written, AOT_F32, 3);
  }
}

/* Promotion would change the dtype: the written tensor keeps its own. */
static void written_tensors_keep_their_dtype(void **state) {
  aot_value_t x, y, result, written;
  (void)state;
  world_begin(&world);
  x = input(AOT_BF16, sizes_2x3x4, 3, 1);
  y = input(AOT_F32, sizes_2x3x4, 3, 2);
  written = functional("aten.mul_.Tensor", (const aot_arg_t[]){aot_arg_value(x), aot_arg_value(y)}, 2, &result);
  assert_string_equal(defining_op(written), "aten._to_copy.default");
  assert_type(written, AOT_BF16, 3);
  written = functional("aten.copy_.default", (const aot_arg_t[]){aot_arg_value(x), aot_arg_value(y)}, 2, &result);
  assert_type(written, AOT_BF16, 3);
}

static void inplace_views_change_geometry(void **state) {
  aot_value_t x, result, written;
  aot_type_t t;
  (void)state;
  world_begin(&world);
  x = input(AOT_F32, sizes_2x3x4, 3, 1);
  written = functional("aten.transpose_.default", (const aot_arg_t[]){aot_arg_value(x), aot_arg_int(0), aot_arg_int(2)},
                       3, &result);
  assert_string_equal(defining_op(written), "aten.transpose.int");
  aoth_graph_value_type(world.p, written, &t);
  assert_int_equal(t.sizes[0], 4);
  written = functional("aten.unsqueeze_.default", (const aot_arg_t[]){aot_arg_value(x), aot_arg_int(1)}, 2, &result);
  assert_type(written, AOT_F32, 4);
}

static const int64_t batch_sizes[3] = {4, 3, 5}, channel_sizes[1] = {3};

static aot_node_t batch_norm(int training, int with_statistics) {
  aot_arg_t args[9];
  args[0] = aot_arg_value(input(AOT_F32, batch_sizes, 3, 1));
  args[1] = args[2] = aot_arg_none();
  args[3] = with_statistics ? aot_arg_value(input(AOT_F32, channel_sizes, 1, 2)) : aot_arg_none();
  args[4] = with_statistics ? aot_arg_value(input(AOT_F32, channel_sizes, 1, 3)) : aot_arg_none();
  args[5] = aot_arg_bool(training);
  args[6] = aot_arg_float(0.1);
  args[7] = aot_arg_float(1e-5);
  args[8] = aot_arg_bool(0);
  return world_node(&world, "aten.batch_norm.default", args, 9);
}

/* batch_norm writes its running statistics in training, when it has them; the schema of PyTorch does not say so. */
static void batch_norm_returns_its_statistics(void **state) {
  aot_value_t result, written[2] = {{0}, {0}};
  aot_node_t n;
  (void)state;
  world_begin(&world);
  n = batch_norm(1, 1);
  assert_int_equal(aoth_edit_functional_form(world.p, n, &result, written), AOT_OK);
  assert_string_equal(defining_op(result), "aten._native_batch_norm_legit_functional.default");
  assert_int_equal(written[0].id, result.id + 3);
  assert_int_equal(written[1].id, result.id + 4);
  n = batch_norm(0, 1);
  assert_int_equal(aoth_edit_functional_form(world.p, n, &result, written), AOT_OK);
  assert_string_equal(defining_op(result), "aten._native_batch_norm_legit_no_training.default");
  n = batch_norm(1, 0);
  assert_int_equal(aoth_edit_functional_form(world.p, n, &result, written), AOT_OK);
  assert_string_equal(defining_op(result), "aten._native_batch_norm_legit.no_stats");
}

/* ---- inverses of views ---- */

/* Views of a tensor: the calls. The inverse must satisfy  view(inverse(base, u)) = u,  and leave what the view does not
 * show: inverse(base, view(base)) = base. Both are evaluated. */
static const char *const view_calls[] = {
    "aten.view.default f32(2,3,4) [i6,i4] -> ?",
    "aten.reshape.default f32(2,3,4) [i2,i12] -> ?",
    "aten.flatten.using_ints f32(2,3,4) i1 -> ?",
    "aten.unflatten.int f32(2,6) i1 [i2,i3] -> ?",
    "aten.contiguous.default f32(2,3,4) -> ?",
    "aten.permute.default f32(2,3,4) [i2,i0,i1] -> ?",
    "aten.transpose.int f32(2,3,4) i0 i-1 -> ?",
    "aten.swapaxes.default f32(2,3,4) i0 i-1 -> ?",
    "aten.t.default f32(3,4) -> ?",
    "aten.mT.default f32(2,3,4) -> ?",
    "aten.numpy_T.default f32(2,3,4) -> ?",
    "aten.movedim.int f32(2,3,4) i0 i2 -> ?",
    "aten.movedim.intlist f32(2,3,4) [i0,i1] [i2,i0] -> ?",
    "aten.unsqueeze.default f32(2,3,4) i1 -> ?",
    "aten.squeeze.default f32(2,1,4) -> ?",
    "aten.squeeze.dim f32(2,1,4) i1 -> ?",
    "aten.squeeze.dims f32(2,1,4,1) [i1,i3] -> ?",
    "aten.select.int f32(2,3,4) i1 i-2 -> ?",
    "aten.slice.Tensor f32(2,7,4) i1 i1 i6 i2 -> ?",
    "aten.slice.Tensor f32(2,7,4) i1 i-3 i9223372036854775807 -> ?",
    "aten.narrow.default f32(2,7,4) i1 i-4 i2 -> ?",
    "aten.split.Tensor f32(2,7,4) i3 i1 -> ?",
    "aten.split_with_sizes.default f32(2,7,4) [i2,i4,i1] i1 -> ?",
    "aten.chunk.default f32(2,7,4) i3 i1 -> ?",
    "aten.unbind.int f32(2,3,4) i1 -> ?",
    "aten.split.sizes f32(2,7,4) [i2,i4,i1] i1 -> ?",
    "aten.diagonal.default f32(2,3,4) i1 i1 i2 -> ?",
    "aten.diagonal.default f32(4,3) i-1 -> ?",
    "aten.unfold.default f32(2,9) i1 i2 i3 -> ?",
    "aten.as_strided.default f32(4,6) [i2,i3] [i12,i2] i1 -> ?",
    "aten.alias.default f32(2,3) -> ?",
    "aten.detach.default f32(2,3) -> ?",
    "aten.expand.default f32(2,3) [i1,i2,i3] -> ?",
};

static aot_node_t node_of_case(const char *line, infer_case_t *c) {
  aot_arg_t args[MAX_CASE_ARGS];
  uint32_t i;
  aot_node_t n;
  assert_true(case_read(c, line));
  if (c->row == AT_N_OPS) fail_msg("unknown operator: %s", line);
  for (i = 0; i < c->n_args; i++) {
    args[i] = c->args[i];
    if (args[i].kind == AOT_ARG_VALUE) {
      const aot_type_t *t = &c->values[args[i].u.i];
      args[i].u.i = input(t->dtype, t->sizes, t->rank, 5 + i).id;
    }
  }
  n = world_node(&world, at_rows[c->row].name, args, c->n_args);
  if (n.id == AOT_NO_ID) fail_msg("%s    %s", line, world.why);
  return n;
}

static aot_value_t inverse(aot_node_t view, uint32_t index, aot_value_t base, aot_value_t updated, const char *line) {
  aot_value_t out = aot_no_value();
  if (aoth_edit_view_inverse(world.p, view, index, base, updated, aot_no_node(), &out) != AOT_OK)
    fail_msg("%s    %s", line, aoth_sink_text(world.sink));
  return out;
}

static void check_inverse(const char *line) {
  static infer_case_t c;
  uint32_t index, n_results = 1;
  for (index = 0; index < n_results; index++) {
    aot_node_info_t info = {.struct_size = sizeof info};
    aot_node_t view, again;
    aot_value_t base, shown, other, same, updated;
    aot_arg_t args[MAX_CASE_ARGS];
    aot_type_t t;
    world_begin(&world);
    view = node_of_case(line, &c);
    assert_int_equal(aoth_graph_node_info(world.p, view, &info), AOT_OK);
    n_results = info.n_results;
    base.id = info.operands[0];
    shown = world_result(&world, view, index);
    aoth_graph_value_type(world.p, shown, &t);
    other = input(t.dtype, t.sizes, t.rank, 77);
    same = inverse(view, index, base, shown, line);
    updated = inverse(view, index, base, other, line);
    memcpy(args, info.args, info.n_args * sizeof *args);
    args[0] = aot_arg_value(updated);
    again = world_node(&world, at_rows[c.row].name, args, info.n_args);
    if (again.id == AOT_NO_ID) fail_msg("%s    %s", line, world.why);
    if (!world_run(&world)) fail_msg("%s    %s", line, world.why);
    if (world_distance(world_tensor(&world, same), world_tensor(&world, base)) > 0)
      fail_msg("%s    the base changes", line);
    if (world_distance(world_tensor(&world, world_result(&world, again, index)), world_tensor(&world, other)) > 0)
      fail_msg("%s    result %u is not what was written", line, index);
  }
}

static void inverses_undo_views(void **state) {
  size_t i;
  (void)state;
  for (i = 0; i < sizeof view_calls / sizeof view_calls[0]; i++) check_inverse(view_calls[i]);
}

static void writing_repeated_elements_is_refused(void **state) {
  static infer_case_t c;
  aot_value_t out = aot_no_value(), base;
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_node_t n;
  (void)state;
  world_begin(&world);
  n = node_of_case("aten.expand.default f32(1,3) [i2,i3] -> ?", &c);
  assert_int_equal(aoth_graph_node_info(world.p, n, &info), AOT_OK);
  base.id = info.operands[0];
  assert_int_equal(aoth_edit_view_inverse(world.p, n, 0, base, world_result(&world, n, 0), aot_no_node(), &out),
                   AOT_E_UNIMPLEMENTED);
  assert_non_null(strstr(aoth_sink_text(world.sink), "several elements are one in memory"));
}

/* ---- wrong calls ---- */

static void wrong_arguments_are_told(void **state) {
  static const struct {
    const char *call, *message;
  } calls[] = {
      {"aten.mm.default f32(2,3) f32(4,5) -> ?", "the inner dimensions differ"},
      {"aten.add.Tensor f32(2,3) f32(4) -> ?", "shapes do not broadcast: [4] with [2, 3]"},
      {"aten.view.default f32(2,3) [i4,i2] -> ?", "a view of shape [4, 2] of a tensor of shape [2, 3]"},
      {"aten.sum.dim_IntList f32(2,3) [i2] -> ?", "dim 2 is out of range for a tensor of rank 2"},
      {"aten.mean.default i64(2,3) -> ?", "mean takes floating dtypes, not i64"},
      {"aten.cat.default {f32(2,3);f32(2,4)} i0 -> ?", "tensor 1 has size 4 in dim 1, the first has 3"},
      {"aten.layer_norm.default f32(2,3) [i4] -> ?", "normalized_shape [4] does not end the input's shape [2, 3]"},
      {"aten._foreach_add.List {f32(2);f32(3)} {f32(2)} -> ?", "'other' has 1 elements, the list before it 2"},
      {"aten._foreach_add.ScalarList {f32(2);f32(3)} [d1] -> ?", "'scalars' has 1 elements, the list before it 2"},
      {"aten._foreach_exp.default {} -> ?", "the lists have no tensors"},
      {"prims.add.default f32(2,3) f64(2,3) -> ?", "f32 with f64: prims do not promote"},
      {"prims.add.default f32(2,3) f32(3) -> ?", "[2, 3] with [3]: prims do not broadcast"},
      {"prims.slice_in_dim.default f32(4) i0 i5 -> ?", "slice of dimension 0 of size 4 from 0 to 5 by 1"},
      {"prims.broadcast_in_dim.default f32(3) [i2,i4] [i1] -> ?", "size 3 does not broadcast to 4"},
      {"prims.split_dim.default f32(5) i0 i2 -> ?", "split_dim of dimension 0 in 2 parts"},
      {"aten.index.Tensor f32(2,3) {bool(3)} -> ?", "the mask has size 3 at dimension 0, the tensor 2"},
      {"quantized_decomposed.choose_qparams.tensor f32(2) i0 i9223372036854775807 d1e-6 @i8 -> ?", "is no int32"},
      {"aten.narrow_copy.default f32(2,3) i0 i9223372036854775806 i2 -> ?",
       "narrow from 9223372036854775806 by 2 goes beyond dim 0 of size 2"},
      {"aten.linalg_cross.default i32(2,3) f64(2,3) -> ?", "cross product of i32 with f64"},
      {"aten.index_select.default f32() i0 i64(2) -> ?", "index_select of a single element takes one place"},
      {"aten.as_strided_scatter.default f32(3,3) f32(2,2) [i2,i2] [i2,i-9] -> ?", "stride 1 is -9"},
      {"aten.max_pool2d_with_indices_backward.default f32(3) f32(3) [i1,i1] [i1,i1] [i0,i0] [i1,i1] b0 i64(3) -> ?",
       "max_pool2d_with_indices_backward.default of a tensor of rank 1"},
      {"aten.max_pool2d_with_indices_backward.default f32(1,2,2) f32(1,4,4) [i2,i2] [i2,i2] [i0,i0] [i1,i1] b0 "
       "i64(1,2,3) -> ?",
       "indices has another shape"},
      {"aot.philox_uniform.default f32() i64() i0 [i2] -> ?", "seed is f32 of rank 0; a draw needs i64 of rank 0"},
      {"aot.philox_bits.default i64() i64(1) i0 [i2] -> ?", "offset is i64 of rank 1"},
      {"aot.philox_normal.default i64() i64() i0 [i-2] -> ?", "size -2"},
      {"aot.philox_randint.default i64() i64() i0 i3 i3 [i2] -> ?", "no integers from 3 up to, without, 3"},
      {"aot.philox_poisson.default i64() i64() i0 i64(4) -> ?", "rate has dtype i64, where a float is needed"},
      {"aot.philox_binomial.default i64() i64() i0 f32(4) f32(3) -> ?", "shapes do not broadcast: [3] with [4]"},
  };
  static infer_case_t c;
  static at_infer_t infer;
  size_t i;
  (void)state;
  for (i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    assert_true(case_read(&c, calls[i].call));
    assert_int_equal(case_run(&c, &infer), AOT_E_INVALID);
    if (strstr(infer.message, calls[i].message) == NULL) fail_msg("%s: %s", calls[i].call, infer.message);
  }
}

/* ---- symbolic sizes ---- */

static aot_value_t symbolic_input(int64_t *out_symbol) {
  const aot_symbol_info_t symbol = {
      .struct_size = sizeof symbol, .name = AOT_STR_INIT("s0"), .min = 1, .max = 64, .hint = 5};
  int64_t sizes[3] = {0, 6, 4};
  aot_type_t t = {.kind = AOT_TYPE_TENSOR, .dtype = AOT_F32, .rank = 3};
  aot_value_t v;
  assert_int_equal(aoth_edit_symbol_create(world.p, &symbol, &sizes[0]), AOT_OK);
  *out_symbol = sizes[0];
  t.sizes = sizes;
  assert_int_equal(aoth_edit_input_add(world.p, world.graph, AOT_ROLE_REGION, 0, &t, aot_str("x"), &v), AOT_OK);
  return v;
}

static aot_type_t type_of_call(const char *op, const aot_arg_t *args, uint32_t n) {
  aot_node_t node = world_node(&world, op, args, n);
  aot_type_t t;
  if (node.id == AOT_NO_ID) fail_msg("%s", world.why);
  assert_int_equal(aoth_graph_value_type(world.p, world_result(&world, node, 0), &t), AOT_OK);
  return t;
}

/* Sizes keep their symbols: what is on both sides of a view cancels, and sums of sizes are expressions. */
static void symbols_go_through_shape_rules(void **state) {
  int64_t s, sum, all;
  aot_arg_t x;
  aot_type_t t;
  uint32_t twice[2];
  (void)state;
  world_begin(&world);
  x = aot_arg_value(symbolic_input(&s));
  t = type_of_call("aten.view.default", (const aot_arg_t[]){x, aot_arg_ints((const int64_t[]){-1, 24}, 2)}, 2);
  assert_true(t.sizes[0] == s && t.sizes[1] == 24);
  t = type_of_call("aten.view.default", (const aot_arg_t[]){x, aot_arg_ints((const int64_t[]){s, -1, 8}, 3)}, 2);
  assert_true(t.sizes[0] == s && t.sizes[1] == 3 && t.strides[0] == 24);
  t = type_of_call("aten.transpose.int", (const aot_arg_t[]){x, aot_arg_int(0), aot_arg_int(2)}, 3);
  assert_true(t.sizes[2] == s && t.strides[2] == 24);
  t = type_of_call("aten.add.Tensor", (const aot_arg_t[]){x, aot_arg_float(1.0)}, 2);
  assert_true(t.sizes[0] == s && t.strides[0] == 24);
  twice[0] = twice[1] = (uint32_t)x.u.i;
  t = type_of_call("aten.cat.default", (const aot_arg_t[]){aot_arg_values(twice, 2), aot_arg_int(0)}, 2);
  assert_int_equal(aoth_edit_dim_make(world.p, AOT_EXPR_ADD, s, s, 0, &sum), AOT_OK);
  assert_true(t.sizes[0] == sum);
  t = type_of_call("aten.arange.default", (const aot_arg_t[]){aot_arg_int(s)}, 1);
  assert_true(t.sizes[0] == s && t.dtype == AOT_I64);
  t = type_of_call("aten.slice.Tensor", (const aot_arg_t[]){x, aot_arg_int(0), aot_arg_int(1), aot_arg_int(INT64_MAX)},
                   4);
  assert_int_equal(aoth_graph_dim_hint(world.p, t.sizes[0]), 4);
  /* s0 may be 1..64: the end is min(3, s0), also where the hint would have s0 above it */
  t = type_of_call("aten.slice.Tensor", (const aot_arg_t[]){x, aot_arg_int(0), aot_arg_int(0), aot_arg_int(3)}, 4);
  assert_int_equal(aoth_dim_eval(world.p, t.sizes[0], (const int64_t[]){2}, 1), 2);
  assert_int_equal(aoth_dim_eval(world.p, t.sizes[0], (const int64_t[]){5}, 1), 3);
  t = type_of_call("aten.flatten.using_ints", (const aot_arg_t[]){x}, 1);
  assert_int_equal(aoth_edit_dim_make(world.p, AOT_EXPR_MUL, s, 24, 0, &all), AOT_OK);
  assert_int_equal(aoth_graph_dim_hint(world.p, t.sizes[0]), 120);
  assert_true(AOT_DIM_IS_SYM(t.sizes[0]));
}

/* An explicit draw keeps the asked sizes, symbols included, and is on the seed's device. */
static void draws_take_symbolic_sizes(void **state) {
  const aot_type_t i64 = {.kind = AOT_TYPE_TENSOR, .dtype = AOT_I64, .device = AOT_DEVICE_CUDA, .device_index = 1};
  int64_t s, sizes[2];
  aot_value_t key[2];
  aot_type_t t;
  (void)state;
  world_begin(&world);
  symbolic_input(&s);
  sizes[0] = s;
  sizes[1] = 7;
  for (uint32_t k = 0; k < 2; k++)
    assert_int_equal(aoth_edit_input_add(world.p, world.graph, AOT_ROLE_REGION, k + 1, &i64,
                                         aot_str(k ? "offset" : "seed"), &key[k]),
                     AOT_OK);
  const aot_arg_t args[] = {aot_arg_value(key[0]), aot_arg_value(key[1]), aot_arg_int(5), aot_arg_ints(sizes, 2),
                            aot_arg_dtype(AOT_BF16)};
  t = type_of_call("aot.philox_uniform.default", args, 5);
  assert_true(t.sizes[0] == s && t.sizes[1] == 7 && t.strides[0] == 7 && t.dtype == AOT_BF16 &&
              t.device == AOT_DEVICE_CUDA && t.device_index == 1);
  t = type_of_call("aot.philox_bits.default", args, 4);
  assert_true(t.sizes[0] == s && t.dtype == AOT_I64);
  t = type_of_call("aot.philox_randint.default",
                   (const aot_arg_t[]){args[0], args[1], args[2], aot_arg_int(0), aot_arg_int(s), args[3]}, 6);
  assert_true(t.sizes[0] == s && t.dtype == AOT_I64);
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

/* ---- loops ---- */

/* A region that adds its two inputs, as many times an output. */
static aot_arg_t sum_region(uint32_t n_outputs) {
  static const int64_t two[1] = {2};
  const aot_type_t t = {.kind = AOT_TYPE_TENSOR, .dtype = AOT_F32, .rank = 1, .sizes = two};
  const aot_edit_api_t *edit = world.host->edit;
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_value_t in[2];
  aot_graph_t g;
  aot_node_t n;
  assert_int_equal(edit->graph_create(world.p, AOT_GRAPH_REGION, aot_str("sum"), &g), AOT_OK);
  for (uint32_t i = 0; i < 2; i++)
    assert_int_equal(edit->input_add(world.p, g, AOT_ROLE_REGION, i, &t, aot_str(""), &in[i]), AOT_OK);
  const aot_arg_t args[2] = {aot_arg_value(in[0]), aot_arg_value(in[1])};
  const aot_node_spec_t spec = {
      .struct_size = sizeof spec,
      .op = world.host->graph->op_find(world.p, aot_str("aten.add.Tensor")),
      .n_args = 2,
      .args = args,
      .origin = aot_no_origin(),
  };
  assert_int_equal(edit->node_create(world.p, g, &spec, aot_no_node(), &n), AOT_OK);
  assert_int_equal(world.host->graph->node_info(world.p, n, &info), AOT_OK);
  for (uint32_t k = 0; k < n_outputs; k++)
    assert_int_equal(edit->output_add(world.p, g, AOT_ROLE_REGION, k, info.first_result, aot_str("")), AOT_OK);
  return aot_arg_int_kind(AOT_ARG_GRAPH, g.id);
}

/* Every loop, unrolled: [4, 2] summed up along dimension 0, from `first` on. */
static void check_sums(uint32_t output, const rk_tensor_t *x, const rk_tensor_t *first) {
  const rk_tensor_t *y = world_output_tensor(&world, output);
  for (int64_t k = 0; k < 2; k++) {
    double sum = first ? world_element(first, &k) : 0;
    for (int64_t t = 0; t < 4; t++) {
      const int64_t at[2] = {t, k};
      sum += world_element(x, at);
      assert_true(fabs(world_element(y, at) - sum) < 1e-5);
    }
  }
}

static void loops_are_unrolled(void **state) {
  static const int64_t sizes[2] = {4, 2};
  (void)state;
  world_begin(&world);
  const rk_tensor_t x = world_random(&world, AOT_F32, sizes, 2, 1), a = world_random(&world, AOT_F32, sizes + 1, 1, 2);
  const aot_value_t rows = world_input(&world, &x), first = world_input(&world, &a);
  const aot_arg_t scan[] = {sum_region(2), aot_arg_values(&first.id, 1), aot_arg_values(&rows.id, 1),
                            aot_arg_values(NULL, 0)};
  const aot_arg_t prefix[] = {sum_region(1), aot_arg_values(&rows.id, 1), aot_arg_values(NULL, 0)};
  const aot_arg_t map[] = {sum_region(1), aot_arg_values(&rows.id, 1), aot_arg_values(&first.id, 1)};
  if (world_node(&world, "higher_order.scan", scan, 4).id == AOT_NO_ID) fail_msg("%s", world.why);
  if (world_node(&world, "higher_order.associative_scan", prefix, 3).id == AOT_NO_ID) fail_msg("%s", world.why);
  if (world_node(&world, "higher_order.map_impl", map, 3).id == AOT_NO_ID) fail_msg("%s", world.why);
  if (!world_decompose(&world) || !world_run(&world)) fail_msg("%s", world.why);
  check_sums(1, &x, &a);
  check_sums(2, &x, NULL);
  for (int64_t k = 0; k < 2; k++) {
    const int64_t last[2] = {3, k};
    assert_true(world_element(world_output_tensor(&world, 0), &k) ==
                world_element(world_output_tensor(&world, 1), last));
    assert_true(fabs(world_element(world_output_tensor(&world, 3), last) - world_element(&x, last) -
                     world_element(&a, &k)) < 1e-6);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(writes_become_values),          cmocka_unit_test(written_tensors_keep_their_dtype),
      cmocka_unit_test(inplace_views_change_geometry), cmocka_unit_test(batch_norm_returns_its_statistics),
      cmocka_unit_test(inverses_undo_views),           cmocka_unit_test(writing_repeated_elements_is_refused),
      cmocka_unit_test(wrong_arguments_are_told),      cmocka_unit_test(symbols_go_through_shape_rules),
      cmocka_unit_test(draws_take_symbolic_sizes),     cmocka_unit_test(loops_are_unrolled),
  };
  return cmocka_run_group_tests(tests, open_world, close_world);
}
