/* Which copies of written operands are left out: a row a program, after PyTorch's tests of its reinplacing pass. The
 * operator is my.write(Tensor(a!)[] outs, Tensor? x): each program writes the values that it names as outs. */
#include "kit/custom/custom.h"
#include "kit/graph/hand_snapshot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const aot_schema_arg_t args[] = {
    {.name = AOT_STR_INIT("outs"), .type = AOT_STYPE_TENSOR, .flags = AOT_SARG_LIST | AOT_SARG_WRITE, .alias_set = 1},
    {.name = AOT_STR_INIT("x"), .type = AOT_STYPE_TENSOR, .flags = AOT_SARG_OPTIONAL}};
static const aot_op_desc_t op = {
    .struct_size = sizeof op, .flags = AOT_OP_WRITES, .name = AOT_STR_INIT("my.write"), .args = args, .n_args = 2};

static aot_status_t add_one(const aot_kernel_t *k, const aot_kernel_call_t *c) {
  (void)k;
  for (uint32_t i = 0; i < c->args[0].n; i++)
    for (int64_t e = 0; e < 4; e++) ((float *)c->args[0].u.tensors[i]->data)[e] += 1;
  return AOT_OK;
}
static const aot_kernel_t kernel = {
    .head = {.struct_size = sizeof kernel}, .op = AOT_STR_INIT("my.write"), .run = add_one};

static aot_status_t find(const aot_ext_kernel_lookup_t *x, aot_ctx_t *ctx, aot_str_t name, const aot_op_desc_t **out_op,
                         const aot_kernel_t **out_kernel) {
  (void)x, (void)ctx;
  *out_op = aot_str_eq(name, op.name) ? &op : NULL;
  *out_kernel = *out_op ? &kernel : NULL;
  return AOT_OK;
}
static const aot_ext_kernel_lookup_t lookup = {.head = {.struct_size = sizeof lookup}, .find = find};
static const custom_world_t world = {.lookup = &lookup};

#define FOUR                                                                                                           \
  (const int64_t[]) { 4 }

static uint32_t made(hs_snapshot_t *h, const char *name, uint32_t of) {
  hs_node(h, name);
  hs_arg_value(h, of);
  return hs_result(h, AOT_F32, 1, FOUR);
}

/* aot.auto_functionalized(@my.write, [a, b], x); b AOT_NO_ID: one element. The new values stand from the result on. */
static uint32_t write_them(hs_snapshot_t *h, uint32_t a, uint32_t b, uint32_t x) {
  const uint32_t outs[] = {a, b}, n = b == AOT_NO_ID ? 1 : 2;
  hs_node(h, "aot.auto_functionalized.default");
  hs_arg(h, AOT_ARG_OP, hs_op(h, "my.write"));
  hs_arg_values(h, outs, n);
  if (x == AOT_NO_ID) hs_arg_none(h);
  else hs_arg_value(h, x);
  const uint32_t first = hs_result(h, AOT_F32, 1, FOUR);
  if (n == 2) hs_result(h, AOT_F32, 1, FOUR);
  return first;
}

/* Programs: in the input, y a clone of it. */
static void fresh(hs_snapshot_t *h, uint32_t in) {
  hs_output(h, write_them(h, made(h, "aten.clone.default", in), AOT_NO_ID, in));
}
static void an_input(hs_snapshot_t *h, uint32_t in) { hs_output(h, write_them(h, in, AOT_NO_ID, AOT_NO_ID)); }
static void read_later(hs_snapshot_t *h, uint32_t in) {
  const uint32_t y = made(h, "aten.clone.default", in), z = write_them(h, y, AOT_NO_ID, AOT_NO_ID);
  hs_output(h, z);
  hs_output(h, made(h, "aten.neg.default", y));
}
static void an_output(hs_snapshot_t *h, uint32_t in) {
  const uint32_t y = made(h, "aten.clone.default", in);
  hs_output(h, write_them(h, y, AOT_NO_ID, AOT_NO_ID));
  hs_output(h, y);
}
static void view_read_later(hs_snapshot_t *h, uint32_t in) {
  const uint32_t y = made(h, "aten.clone.default", in), v = made(h, "aten.alias.default", y);
  const uint32_t z = write_them(h, y, AOT_NO_ID, AOT_NO_ID);
  hs_output(h, z);
  hs_output(h, made(h, "aten.neg.default", v));
}
static void view_of_an_input(hs_snapshot_t *h, uint32_t in) {
  hs_output(h, write_them(h, made(h, "aten.alias.default", in), AOT_NO_ID, AOT_NO_ID));
}
static void last_view(hs_snapshot_t *h, uint32_t in) {
  hs_output(h, write_them(h, made(h, "aten.alias.default", made(h, "aten.clone.default", in)), AOT_NO_ID, AOT_NO_ID));
}
static void also_read_here(hs_snapshot_t *h, uint32_t in) {
  const uint32_t y = made(h, "aten.clone.default", in);
  hs_output(h, write_them(h, y, AOT_NO_ID, y));
}
static void twice_over(hs_snapshot_t *h, uint32_t in) { /* the new value of the first is written by the second */
  hs_output(
      h, write_them(h, write_them(h, made(h, "aten.clone.default", in), AOT_NO_ID, AOT_NO_ID), AOT_NO_ID, AOT_NO_ID));
}
static void first_result_read_later(hs_snapshot_t *h, uint32_t in) {
  const uint32_t z = write_them(h, made(h, "aten.clone.default", in), AOT_NO_ID, AOT_NO_ID);
  hs_output(h, write_them(h, z, AOT_NO_ID, AOT_NO_ID));
  hs_output(h, z);
}
static void a_list(hs_snapshot_t *h, uint32_t in) {
  const uint32_t y = made(h, "aten.clone.default", in);
  hs_output(h, write_them(h, y, made(h, "aten.neg.default", in), AOT_NO_ID));
}
static void a_list_with_an_input(hs_snapshot_t *h, uint32_t in) {
  hs_output(h, write_them(h, made(h, "aten.clone.default", in), in, AOT_NO_ID));
}
static void a_list_of_one_storage(hs_snapshot_t *h, uint32_t in) {
  const uint32_t y = made(h, "aten.clone.default", in);
  hs_output(h, write_them(h, y, made(h, "aten.alias.default", y), AOT_NO_ID));
}
static void a_list_of_one_value(hs_snapshot_t *h, uint32_t in) {
  const uint32_t y = made(h, "aten.clone.default", in);
  hs_output(h, write_them(h, y, y, AOT_NO_ID));
}

static const struct {
  const char *name;
  void (*build)(hs_snapshot_t *h, uint32_t in);
  uint32_t asked, removed;
} programs[] = {{"fresh", fresh, 1, 1},
                {"an input", an_input, 1, 0},
                {"read later", read_later, 1, 0},
                {"an output", an_output, 1, 0},
                {"a view is read later", view_read_later, 1, 0},
                {"a view of an input", view_of_an_input, 1, 0},
                {"the last view", last_view, 1, 1},
                {"read by the same node", also_read_here, 1, 0},
                {"one after the other", twice_over, 2, 2},
                {"the first new value is read later", first_result_read_later, 2, 1},
                {"a list", a_list, 2, 2},
                {"a list with an input", a_list_with_an_input, 2, 1},
                {"a list of two names of one storage", a_list_of_one_storage, 2, 0},
                {"a list of one value twice", a_list_of_one_value, 1, 0}};

static void copies(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
    hs_snapshot_t *h = hs_create();
    custom_program_t p;
    custom_error_t error;
    hs_graph(h, AOT_GRAPH_FORWARD);
    programs[i].build(h, hs_input(h, AOT_F32, 1, FOUR));
    const aot_snapshot_t *s = hs_finish(h);
    if (custom_prepare(&world, s, &p, &error) != AOT_OK) fail_msg("%s: %s", programs[i].name, error.text);
    if (p.copies_asked != programs[i].asked || p.copies_removed != programs[i].removed)
      fail_msg("%s: %u copies asked, %u removed", programs[i].name, p.copies_asked, p.copies_removed);
    custom_program_deinit(&p);
    hs_destroy(h);
  }
}

/* ---- one call ---- */

static rk_tensor_t dense(float *data) {
  return (rk_tensor_t){.data = data, .nbytes = 16, .dtype = AOT_F32, .rank = 1, .sizes = {4}, .strides = {1}};
}

/* The list holds the same tensor twice: the kernel writes one memory, and both new values are what it left. */
static void one_tensor_twice(void **state) {
  hs_snapshot_t *h = hs_create();
  custom_program_t p;
  custom_error_t wrong;
  rk_error_t error;
  float y[4] = {1, 2, 3, 4}, new_y[4], other[4];
  rk_tensor_t in = dense(y), results[2] = {dense(new_y), dense(other)};
  const rk_tensor_t *list[2] = {&in, &in};
  rk_arg_t call[3] = {
      {.kind = AOT_ARG_OP}, {.kind = AOT_ARG_VALUES, .n = 2, .u.tensors = list}, {.kind = AOT_ARG_NONE}};
  (void)state;
  hs_graph(h, AOT_GRAPH_FORWARD);
  a_list_of_one_value(h, hs_input(h, AOT_F32, 1, FOUR));
  assert_int_equal(custom_prepare(&world, hs_finish(h), &p, &wrong), AOT_OK);
  assert_int_equal(custom_run(&p.nodes[0], call, 3, results, 2, &error), AOT_OK);
  for (int i = 0; i < 4; i++) {
    assert_true(y[i] == (float)i + 1); /* the operand is as it was */
    assert_true(new_y[i] == (float)i + 3 && other[i] == (float)i + 3);
  }
  custom_program_deinit(&p);
  hs_destroy(h);
}

static void no_kernel_is_told(void **state) {
  static const custom_world_t no_kernels;
  hs_snapshot_t *h = hs_create();
  custom_program_t p;
  custom_error_t error;
  (void)state;
  hs_graph(h, AOT_GRAPH_FORWARD);
  fresh(h, hs_input(h, AOT_F32, 1, FOUR));
  assert_int_equal(custom_prepare(&no_kernels, hs_finish(h), &p, &error), AOT_E_UNIMPLEMENTED);
  assert_non_null(strstr(error.text, "no kernel for my.write"));
  custom_program_deinit(&p);
  hs_destroy(h);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(copies), cmocka_unit_test(one_tensor_twice),
                                     cmocka_unit_test(no_kernel_is_told)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
