/* Generated C against the reference kernels: every operator of the table in float, double and int64, and loops over
 * strided, broadcast and permuted memory. One compiler run for all functions of a test. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "kit/reference/rk_core.h"
#include "kit/loops/loop.h"
#include <aot/inline.h>
#include "loop_library.h"
#include "loop_operators.h"
#include <math.h>
#include <stdlib.h>

enum { N = N_ELEMENTS };

static void run_one(void *handle, const one_t *one, char *const *pointers) {
  const int64_t sizes[1] = {N}, strides[5] = {1, 1, 1, 1, 1};
  find(handle, one->name)(pointers, sizes, strides, 0, N);
}

static void every_operator_agrees_with_its_reference_kernel(void **state) {
  one_t *ones;
  operands_t o;
  lp_text_t source = {0};
  const int n = make_all(&ones);
  (void)state;
  randomize(&o);
  lp_prelude_add(&source);
  for (int k = 0; k < n; k++) {
    lp_schedule(&ones[k].loop);
    lp_gen_c(&ones[k].loop, ones[k].name, &source);
  }
  void *handle = build(&source);
  for (int k = 0; k < n; k++) compare_one(&ones[k], run_one, handle, &o);
  dlclose(handle);
  lp_text_deinit(&source);
  free(ones);
}

/* x ** number, as PyTorch's kernel computes it: products and roots, no call of pow, bit for bit. */
static double power_of(float x, double n) {
  const float half = sqrtf(x), square = x * x, cube = square * x;
  return n == 0.5 ? half : n == -0.5 ? 1 / half : n == 2 ? square : n == 3 ? cube : n == -1 ? 1 / x : 1 / square;
}

static void small_exponents_are_products_and_roots(void **state) {
  static const double exponents[] = {0.5, -0.5, 2, 3, -1, -2};
  static const float special[] = {0, -0.0f, INFINITY, -INFINITY, NAN, 1e-30f, 1e30f, -3.7f, 1.0000001f};
  enum { MANY = 6, SPECIAL = 9 };
  operands_t o;
  lp_text_t source = {0};
  char name[16];
  (void)state;
  randomize(&o);
  memcpy(o.f32[0], special, sizeof special);
  lp_prelude_add(&source);
  for (int k = 0; k < MANY; k++) {
    const lp_operand_t operands[2] = {{LP_LOAD, AOT_F32, 1, 0}, {LP_FLOAT, 0, 0, 0}};
    lp_inst_t inst = {.dtype = AOT_F32, .n_args = 2, .args = {{LP_LOAD, 0, 0, 0}, {LP_FLOAT, 0, exponents[k], 0}}};
    lp_access_t accesses[2] = {{.dtype = AOT_F32, .strides = {1}}, {.dtype = AOT_F32, .strides = {1}}};
    lp_loop_t loop = {
        .rank = 1, .sizes = {N}, .accesses = accesses, .n_loads = 1, .n_stores = 1, .insts = &inst, .n_insts = 1};
    inst.text =
        lp_choose(lp_op_find(aot_str("aten.pow.Tensor_Scalar")), operands, 2, aot_str(""), AOT_F32, 0, &inst.compute);
    assert_non_null(inst.text);
    snprintf(name, sizeof name, "f%d", k);
    lp_schedule(&loop);
    lp_gen_c(&loop, name, &source);
  }
  void *handle = build(&source);
  for (int k = 0; k < MANY; k++) {
    float got[N];
    char *pointers[2] = {(char *)o.f32[0], (char *)got};
    const int64_t sizes[1] = {N}, strides[2] = {1, 1};
    snprintf(name, sizeof name, "f%d", k);
    find(handle, name)(pointers, sizes, strides, 0, N);
    for (int i = 0; i < N; i++) {
      const float expected = (float)power_of(o.f32[0][i], exponents[k]);
      if (memcmp(&got[i], &expected, sizeof expected) != 0 && !(isnan(got[i]) && isnan(expected)))
        fail_msg("%g ** %g is %.9g, not %.9g", (double)o.f32[0][i], exponents[k], (double)got[i], (double)expected);
    }
  }
  dlclose(handle);
  lp_text_deinit(&source);
}

/* out[i][j] = relu(a[j][i] + row[j]) * 0.5, a transposed, row broadcast; the sum is stored too */
static void strides_and_broadcasts_are_followed(void **state) {
  enum { H = 3, W = 5 };
  float a[W][H], b[W], out[H][W], sum[H][W], number = 0;
  /* clang-format off */
  lp_inst_t insts[2] = {{.text = "a + b", .compute = AOT_F32, .dtype = AOT_F32, .n_args = 2,
                         .args = {{LP_LOAD, 0, 0, 0}, {LP_LOAD, 1, 0, 0}}},
                        {.text = "a > 0 ? a * b : T(0)", .compute = AOT_F32, .dtype = AOT_F32, .n_args = 2,
                         .args = {{LP_INST, 0, 0, 0}, {LP_FLOAT, 0, 0.5, 0}}}};
  lp_access_t accesses[4] = {{.dtype = AOT_F32, .strides = {1, H}}, {.dtype = AOT_F32, .strides = {0, 1}},
                             {.dtype = AOT_F32, .inst = 1, .strides = {W, 1}}, {.dtype = AOT_F32, .strides = {W, 1}}};
  /* clang-format on */
  lp_loop_t loop = {
      .rank = 2, .sizes = {H, W}, .accesses = accesses, .n_loads = 2, .n_stores = 2, .insts = insts, .n_insts = 2};
  lp_text_t source = {0};
  char *pointers[4] = {(char *)a, (char *)b, (char *)out, (char *)sum};
  int64_t strides[8];
  (void)state;
  for (int j = 0; j < W; j++) {
    b[j] = (float)(j - 2);
    for (int i = 0; i < H; i++) a[j][i] = number += 0.25f, a[j][i] -= 2;
  }
  lp_simplify(&loop);
  lp_schedule(&loop);
  assert_int_equal(loop.rank, 2);
  for (int k = 0; k < 4; k++) memcpy(strides + 2 * k, accesses[k].strides, 2 * sizeof *strides);
  lp_prelude_add(&source);
  lp_gen_c(&loop, "f", &source);
  void *handle = build(&source);
  find(handle, "f")(pointers, loop.sizes, strides, 0, 2); /* in two parts, as threads would */
  find(handle, "f")(pointers, loop.sizes, strides, 2, loop.sizes[0]);
  for (int i = 0; i < H; i++)
    for (int j = 0; j < W; j++) {
      float s = a[j][i] + b[j];
      assert_true(sum[i][j] == s);
      assert_true(out[i][j] == (s > 0 ? 0.5f * s : 0));
    }
  dlclose(handle);
  lp_text_deinit(&source);
}

/* out = draw(seed, offset), of every kind and dtype, the result's memory permuted; rows of 700 elements take two
 * pieces. Run in two parts as threads would, it has to be the reference kernel's result bit for bit. */
typedef struct drawn {
  const char *op, *name;
  int32_t dtype;
  int transposed;
} drawn_t;

enum { ROWS = 5, COLUMNS = 701 };

static void generate_draw(const drawn_t *one, lp_loop_t *loop, lp_draw_t *draw, lp_text_t *out) {
  const lp_op_t *op = lp_op_find(aot_str(one->op));
  const lp_operand_t operands[7] = {
      {LP_LOAD, AOT_I64, 0, 0}, {LP_LOAD, AOT_I64, 0, 0}, {LP_INT, 0, 0, 0}, {LP_INT, 0, 0, 0}, {LP_INT, 0, 0, 0}};
  int ranged = strstr(one->op, "randint") != NULL;
  lp_inst_t *inst = loop->insts;
  lp_access_t *a = loop->accesses;
  *inst = (lp_inst_t){.n_args = 6, .dtype = one->dtype};
  inst->text = lp_choose(op, operands, ranged ? 7 : 5, aot_str(""), one->dtype, 0, &inst->compute);
  inst->args[3] = ranged ? (lp_arg_t){.kind = LP_INT, .i = -5} : (lp_arg_t){.kind = LP_DRAWN, .index = 2};
  inst->args[4] = (lp_arg_t){.kind = LP_INT, .i = INT64_MAX - 7};
  inst->args[5] = (lp_arg_t){.kind = LP_DRAWN, .index = 2};
  draw->draw = 4;
  a[0] = a[1] = (lp_access_t){.dtype = AOT_I64};
  a[2] = (lp_access_t){
      .dtype = lp_op_draws(op, one->dtype, draw), .draws = 1, .seed = 0, .offset = 1, .strides = {COLUMNS, 1}};
  a[3] = (lp_access_t){.dtype = one->dtype, .strides = {one->transposed ? 1 : COLUMNS, one->transposed ? ROWS : 1}};
  lp_simplify(loop);
  lp_schedule(loop);
  lp_gen_c(loop, one->name, out);
}

static void compare_draw(const drawn_t *one, const lp_loop_t *loop, lp_draw_t *draw, void *handle) {
  static uint64_t got[ROWS * COLUMNS], expected[ROWS * COLUMNS];
  int64_t seed = -77, offset = INT64_MAX - 1, strides[8], sizes[2] = {ROWS, COLUMNS}, middle = loop->sizes[0] / 2;
  char *pointers[4] = {(char *)&seed, (char *)&offset, (char *)draw, (char *)got};
  rk_tensor_t key[2] = {{.data = &seed, .nbytes = 8, .dtype = AOT_I64},
                        {.data = &offset, .nbytes = 8, .dtype = AOT_I64}};
  rk_tensor_t result = {
      .data = expected,
      .nbytes = sizeof expected,
      .dtype = one->dtype,
      .rank = 2,
      .sizes = {ROWS, COLUMNS},
      .strides = {one->transposed ? 1 : COLUMNS, one->transposed ? ROWS : 1},
  };
  rk_arg_t args[7] = {rk_arg_of_tensor(&key[0]), rk_arg_of_tensor(&key[1]), rk_arg_of_int(4), rk_arg_of_ints(sizes, 2)};
  rk_call_t call = {args, 4, &result, 1};
  rk_error_t error;
  if (strstr(one->op, "randint")) {
    args[3] = rk_arg_of_int(-5);
    args[4] = rk_arg_of_int(INT64_MAX - 7);
    args[5] = rk_arg_of_ints(sizes, 2);
    call.n_args = 6;
  }
  if (rk_run(rk_find(aot_str(one->op)), &call, &error) != AOT_OK) fail_msg("%s", error.text);
  for (int k = 0; k < 4; k++)
    memcpy(strides + k * loop->rank, loop->accesses[k].strides, (size_t)loop->rank * sizeof *strides);
  find(handle, one->name)(pointers, loop->sizes, strides, 0, middle);
  find(handle, one->name)(pointers, loop->sizes, strides, middle, loop->sizes[0]);
  if (memcmp(got, expected, (size_t)(ROWS * COLUMNS) * aot_dtype_size(one->dtype)) != 0)
    fail_msg("%s, %s%s", one->op, aot_dtype_name(one->dtype), one->transposed ? ", transposed" : "");
}

static void draws_are_those_of_the_reference_kernels(void **state) {
  static const drawn_t table[] = {
      {"aot.philox_uniform.default", "f0", AOT_F32, 0}, {"aot.philox_uniform.default", "f1", AOT_F32, 1},
      {"aot.philox_uniform.default", "f2", AOT_F64, 0}, {"aot.philox_uniform.default", "f3", AOT_F64, 1},
      {"aot.philox_normal.default", "f4", AOT_F32, 0},  {"aot.philox_normal.default", "f5", AOT_F64, 1},
      {"aot.philox_randint.default", "f6", AOT_I64, 0}, {"aot.philox_randint.default", "f7", AOT_I64, 1},
      {"aot.philox_bits.default", "f8", AOT_I64, 0},    {"aot.philox_randint.default", "f9", AOT_I32, 0},
  };
  enum { MANY = sizeof table / sizeof table[0] };
  lp_inst_t insts[MANY];
  lp_access_t accesses[MANY][4];
  lp_loop_t loops[MANY];
  lp_draw_t draws[MANY];
  lp_text_t source = {0};
  (void)state;
  lp_prelude_add(&source);
  for (int k = 0; k < MANY; k++) {
    loops[k] = (lp_loop_t){.rank = 2,
                           .sizes = {ROWS, COLUMNS},
                           .accesses = accesses[k],
                           .n_loads = 3,
                           .n_stores = 1,
                           .insts = &insts[k],
                           .n_insts = 1};
    generate_draw(&table[k], &loops[k], &draws[k], &source);
  }
  void *handle = build(&source);
  for (int k = 0; k < MANY; k++) compare_draw(&table[k], &loops[k], &draws[k], handle);
  dlclose(handle);
  lp_text_deinit(&source);
}

/* Every half as a float and back, and floats to f16 or bf16, around all that a half can hold: bit for bit. */
static void halves_are_rounded_as_the_reference_kernels_round(void **state) {
  static uint16_t all[65536], back[65536];
  static float floats[65536];
  static const int32_t dtypes[2] = {AOT_F16, AOT_BF16};
  lp_text_t source = {0};
  char name[16];
  (void)state;
  lp_prelude_add(&source);
  for (int k = 0; k < 4; k++) { /* to float, and back */
    const int32_t half = dtypes[k / 2], from = k % 2 ? AOT_F32 : half, to = k % 2 ? half : AOT_F32;
    lp_inst_t inst = {.text = "a", .compute = AOT_F32, .dtype = to, .n_args = 1, .args = {{LP_LOAD, 0, 0, 0}}};
    lp_access_t a[2] = {{.dtype = from, .strides = {1}}, {.dtype = to, .strides = {1}}};
    lp_loop_t l = {
        .rank = 1, .sizes = {65536}, .accesses = a, .n_loads = 1, .n_stores = 1, .insts = &inst, .n_insts = 1};
    lp_schedule(&l);
    snprintf(name, sizeof name, "f%d", k);
    lp_gen_c(&l, name, &source);
  }
  void *handle = build(&source);
  for (int i = 0; i < 65536; i++) all[i] = (uint16_t)i;
  for (int d = 0; d < 2; d++) {
    const int64_t size = 65536, strides[2] = {1, 1};
    snprintf(name, sizeof name, "f%d", 2 * d);
    find(handle, name)((char *[]){(char *)all, (char *)floats}, &size, strides, 0, size);
    for (int i = 0; i < 65536; i++) {
      const double expected = rk_load_f(&all[i], dtypes[d]);
      assert_true((double)floats[i] == expected || (isnan(expected) && isnan(floats[i])));
    }
    for (int shift = 0; shift < 5; shift++) { /* the halves themselves, and what is between them and their neighbours */
      static float x[65536];
      for (int i = 0; i < 65536; i++) {
        uint32_t bits;
        memcpy(&bits, &floats[i], sizeof bits);
        const uint32_t ulp = dtypes[d] == AOT_F16 ? 0x2000u : 0x10000u;
        if (!isnan(floats[i]) && !isinf(floats[i])) bits += shift == 4 ? ulp - 1 : (uint32_t)shift * (ulp / 4);
        memcpy(&x[i], &bits, sizeof bits);
      }
      snprintf(name, sizeof name, "f%d", 2 * d + 1);
      find(handle, name)((char *[]){(char *)x, (char *)back}, &size, strides, 0, size);
      for (int i = 0; i < 65536; i++) {
        uint16_t expected;
        rk_store_f(&expected, dtypes[d], (double)x[i]);
        if (back[i] != expected && !isnan(x[i]))
          fail_msg("%s of %.9g is %04x, not %04x", aot_dtype_name(dtypes[d]), (double)x[i], back[i], expected);
        if (isnan(x[i])) assert_true(isnan(rk_load_f(&back[i], dtypes[d])));
      }
    }
  }
  dlclose(handle);
  lp_text_deinit(&source);
}

static lp_loop_t copy_loop(lp_inst_t *inst, lp_access_t *accesses, int32_t rank, const int64_t *sizes) {
  lp_loop_t loop = {.rank = rank, .accesses = accesses, .n_loads = 1, .n_stores = 1, .insts = inst, .n_insts = 1};
  int64_t stride = 1;
  *inst = (lp_inst_t){.text = "a", .compute = AOT_F32, .dtype = AOT_F32, .n_args = 1, .args = {{LP_LOAD, 0, 0, 0}}};
  accesses[0] = accesses[1] = (lp_access_t){.dtype = AOT_F32};
  for (int32_t d = rank - 1; d >= 0; d--) {
    loop.sizes[d] = sizes[d];
    accesses[0].strides[d] = accesses[1].strides[d] = stride;
    stride *= sizes[d];
  }
  return loop;
}

static void contiguous_dimensions_merge(void **state) {
  lp_inst_t inst;
  lp_access_t accesses[2];
  lp_loop_t loop = copy_loop(&inst, accesses, 4, (const int64_t[]){2, 1, 3, 4});
  (void)state;
  lp_simplify(&loop);
  assert_int_equal(loop.rank, 1);
  assert_int_equal(loop.sizes[0], 24);
  assert_int_equal(accesses[0].strides[0], 1);
}

static void a_scalar_becomes_one_element(void **state) {
  lp_inst_t inst;
  lp_access_t accesses[2];
  lp_loop_t loop = copy_loop(&inst, accesses, 0, NULL);
  (void)state;
  lp_simplify(&loop);
  assert_int_equal(loop.rank, 1);
  assert_int_equal(loop.sizes[0], 1);
}

static void the_store_decides_which_dimension_is_innermost(void **state) {
  lp_inst_t inst;
  lp_access_t accesses[2];
  lp_loop_t loop = copy_loop(&inst, accesses, 2, (const int64_t[]){6, 7});
  (void)state;
  accesses[1].strides[0] = 1; /* the result lies transposed */
  accesses[1].strides[1] = 6;
  lp_simplify(&loop);
  assert_int_equal(loop.rank, 2);
  assert_int_equal(loop.sizes[1], 6);
  assert_int_equal(accesses[1].strides[1], 1);
  assert_int_equal(accesses[0].strides[1], 7);
}

static void equal_loops_of_other_sizes_have_equal_text(void **state) {
  lp_inst_t inst[2];
  lp_access_t a[2], b[2];
  lp_loop_t small = copy_loop(&inst[0], a, 2, (const int64_t[]){2, 3}),
            large = copy_loop(&inst[1], b, 3, (const int64_t[]){8, 8, 9});
  lp_text_t x = {0}, y = {0};
  (void)state;
  lp_simplify(&small);
  lp_simplify(&large);
  lp_schedule(&small);
  lp_schedule(&large);
  lp_gen_c(&small, "f", &x);
  lp_gen_c(&large, "f", &y);
  assert_string_equal(x.data, y.data);
  lp_text_deinit(&x);
  lp_text_deinit(&y);
}

static void promotion_follows_pytorch(void **state) {
  const lp_op_t *lt = lp_op_find(aot_str("aten.lt.Scalar")), *add = lp_op_find(aot_str("aten.add.Tensor"));
  lp_operand_t ints[3] = {{LP_LOAD, AOT_I64, 1, 0}, {LP_FLOAT, 0, 0, 0}, {LP_ABSENT, 0, 0, 0}};
  lp_operand_t mixed[2] = {{LP_LOAD, AOT_F32, 1, 0}, {LP_LOAD, AOT_F64, 0, 0}};
  const lp_operand_t halves[2] = {{LP_LOAD, AOT_BF16, 1, 0}, {LP_LOAD, AOT_BF16, 1, 0}};
  int32_t compute = 0;
  aot_str_t none = {"", 0};
  (void)state;
  assert_non_null(lp_choose(lt, ints, 2, none, AOT_BOOL, 0, &compute));
  assert_int_equal(compute, AOT_F32); /* int64 < 2.5 is compared in float */
  assert_non_null(lp_choose(lp_op_find(aot_str("aten.lt.Tensor")), mixed, 2, none, AOT_BOOL, 0, &compute));
  assert_int_equal(compute, AOT_F32); /* a 0-dim double does not widen a float tensor */
  assert_non_null(lp_choose(add, halves, 2, none, AOT_BF16, 0, &compute));
  assert_int_equal(compute, AOT_F32); /* arithmetic of f16 or bf16 is that of float */
  assert_non_null(lp_choose(lt, halves, 2, none, AOT_BOOL, 0, &compute));
  assert_int_equal(compute, AOT_BF16); /* a number is compared as a half */
  assert_null(lp_choose(add, (lp_operand_t[]){{LP_LOAD, AOT_C64, 1, 0}, {LP_LOAD, AOT_C64, 1, 0}}, 2, none, AOT_C64, 0,
                        &compute));
  assert_null(lp_op_find(aot_str("aten.add")));
  assert_null(lp_op_find(aot_str("aten.mm.default")));
}

/* What PyTorch 2.11 rounds of a wider operand next to bfloat16, on a CPU and on an H100: AOT_BF16, all of it; AOT_F32,
 * nothing; 0: left to the reference kernel. */
static void wider_operands_of_halves_are_rounded_as_on_the_device(void **state) {
  static const lp_operand_t half = {LP_LOAD, AOT_BF16, 1, 0}, single = {LP_LOAD, AOT_F32, 0, 0},
                            number = {LP_FLOAT, 0, 0, 0.337}, exact = {LP_FLOAT, 0, 0, 0.5}, one = {LP_INT, 0, 0, 1};
  const struct {
    const char *op;
    lp_operand_t operands[3];
    int32_t cpu, gpu;
  } rows[] = {
      {"aten.add.Tensor", {half, half, number}, AOT_BF16, AOT_F32},
      {"aten.add.Tensor", {half, single, one}, AOT_BF16, AOT_BF16},
      {"aten.add.Scalar", {half, number, one}, AOT_BF16, AOT_F32},
      {"aten.add.Scalar", {half, exact, one}, AOT_F32, AOT_F32},
      {"aten.mul.Scalar", {half, number}, AOT_F32, AOT_F32},
      {"aten.mul.Tensor", {half, single}, AOT_F32, AOT_BF16},
      {"aten.mul.Tensor", {single, half}, AOT_BF16, AOT_BF16},
      {"aten.div.Tensor", {half, single}, AOT_F32, AOT_BF16},
      {"aten.pow.Tensor_Scalar", {half, number}, AOT_BF16, AOT_BF16},
      {"aten.atan2.default", {half, single}, AOT_BF16, AOT_BF16},
      {"aten.hardshrink.default", {half, number}, AOT_BF16, AOT_BF16},
      {"aten.softshrink.default", {half, number}, AOT_F32, AOT_BF16},
      {"aten.threshold.default", {half, number, one}, AOT_F32, AOT_BF16},
      {"aten.leaky_relu.default", {half, number}, AOT_F32, AOT_F32},
      {"aten.xlogy.Tensor", {half, half}, 0, AOT_F32},
      {"aten.xlogy.Tensor", {half, single}, 0, AOT_BF16},
  };
  (void)state;
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
    for (int on_gpu = 0; on_gpu < 2; on_gpu++) {
      int32_t compute = 0;
      const char *text =
          lp_choose(lp_op_find(aot_str(rows[k].op)), rows[k].operands, 3, aot_str(""), AOT_BF16, on_gpu, &compute);
      const int32_t wanted = on_gpu ? rows[k].gpu : rows[k].cpu;
      if ((text ? compute : 0) != wanted) fail_msg("row %d, %s, on_gpu %d: %d", (int)k, rows[k].op, on_gpu, compute);
    }
}

static void every_function_has_a_cost(void **state) {
  one_t *ones;
  (void)state;
  const int n = make_all(&ones);
  for (int k = 0; k < n; k++) {
    const char *text = ones[k].inst.text;
    lp_token_t t;
    while (lp_token(&text, &t))
      if (t.kind == LP_TK_CALL && !lp_function_cost(t.text, t.size))
        fail_msg("scalar.def has no cost of %.*s", (int)t.size, t.text);
  }
  free(ones);
  assert_int_equal(lp_function_cost("exp", 3), 4);
  assert_int_equal(lp_function_cost("exp2", 4), 36);
  assert_int_equal(lp_function_cost("ex", 2), 0);
  assert_int_equal(lp_text_cost("a + b"), 1);
  assert_int_equal(lp_text_cost("fabs(a) / b"), 4);
  assert_int_equal(lp_text_cost("a * sigmoid(a)"), 6);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_function_has_a_cost),
      cmocka_unit_test(wider_operands_of_halves_are_rounded_as_on_the_device),
      cmocka_unit_test(every_operator_agrees_with_its_reference_kernel),
      cmocka_unit_test(small_exponents_are_products_and_roots),
      cmocka_unit_test(strides_and_broadcasts_are_followed),
      cmocka_unit_test(draws_are_those_of_the_reference_kernels),
      cmocka_unit_test(halves_are_rounded_as_the_reference_kernels_round),
      cmocka_unit_test(contiguous_dimensions_merge),
      cmocka_unit_test(a_scalar_becomes_one_element),
      cmocka_unit_test(the_store_decides_which_dimension_is_innermost),
      cmocka_unit_test(equal_loops_of_other_sizes_have_equal_text),
      cmocka_unit_test(promotion_follows_pytorch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
