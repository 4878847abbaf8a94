/* Kernels between guards, called as a backend calls them: what faults of kernels in a program cannot show
 * (tests/faults/kernel_faults.def), for there results are dense. */
#include <aot/inline.h>
#include <pipeline/kernel_guards.h>
#include <pipeline/session_lifetime.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const aot_schema_arg_t args[] = {
    {.name = AOT_STR_INIT("x"), .type = AOT_STYPE_TENSOR},
    {.name = AOT_STR_INIT("out"), .type = AOT_STYPE_TENSOR, .flags = AOT_SARG_WRITE | AOT_SARG_LIST, .alias_set = 1},
    {.name = AOT_STR_INIT("at"), .type = AOT_STYPE_INT},
};
static const aot_op_desc_t op = {
    .struct_size = sizeof op, .name = AOT_STR_INIT("test.add.default"), .args = args, .n_args = 3};
static const int64_t sizes[] = {2, 2}, wide[] = {3, 1}, dense[] = {2, 1};

/* out[k] = x + k, and a number more at element `at` of out[0]. */
static aot_status_t add(const aot_kernel_t *k, const aot_kernel_call_t *c) {
  const aot_tensor_t *x = c->args[0].u.tensor;
  (void)k;
  for (uint32_t n = 0; n < c->args[1].n; n++) {
    const aot_tensor_t *to = c->args[1].u.tensors[n];
    for (int64_t i = 0; i < 4; i++)
      ((int32_t *)to->data)[i / 2 * to->strides[0] + i % 2] =
          ((const int32_t *)x->data)[i / 2 * x->strides[0] + i % 2] + (int32_t)n;
  }
  if (c->args[2].u.i) ((int32_t *)c->args[1].u.tensors[0]->data)[c->args[2].u.i] = 7;
  return AOT_OK;
}

static aot_kernel_t kernel = {
    .head = {.struct_size = sizeof kernel}, .op = AOT_STR_INIT("test.add.default"), .run = add};

static aot_tensor_t tensor(int32_t *data, uint64_t nbytes, const int64_t *strides) {
  return (aot_tensor_t){
      .data = data, .nbytes = nbytes, .dtype = AOT_I32, .rank = 2, .sizes = sizes, .strides = strides};
}

typedef struct world {
  aoth_session_t *session;
  aoth_kernel_guards_t *guards;
  char message[256];
} world_t;

static int setup(void **state) {
  world_t *w = calloc(1, sizeof *w);
  const aoth_session_config_t config = {.no_cache = 1};
  w->session = aoth_session_create(&config);
  w->guards = aoth_kernel_guards_create(w->session);
  *state = w;
  return w->session && w->guards ? 0 : -1;
}

static int teardown(void **state) {
  world_t *w = *state;
  aoth_kernel_guards_destroy(w->guards);
  aoth_session_destroy(w->session);
  free(w);
  return 0;
}

static aot_status_t run(world_t *w, const aot_tensor_t *x, const aot_tensor_t *const *outs, uint32_t n_outs,
                        int64_t at) {
  static const aot_opset_t nobodys;
  const aot_kernel_t *guarded = aoth_kernel_guarded(w->guards, &kernel, &op, &nobodys);
  const aot_kernel_arg_t a[] = {{.kind = AOT_ARG_VALUE, .u.tensor = x},
                                {.kind = AOT_ARG_VALUES, .n = n_outs, .u.tensors = outs},
                                {.kind = AOT_ARG_INT, .u.i = at}};
  const aot_kernel_call_t call = {
      .struct_size = sizeof call, .n_args = 3, .args = a, .message_size = sizeof w->message, .message = w->message};
  assert_ptr_not_equal(guarded, &kernel);
  assert_ptr_equal(guarded, aoth_kernel_guarded(w->guards, &kernel, &op, &nobodys)); /* made once */
  return guarded->run(guarded, &call);
}

static void what_is_written_comes_back(void **state) {
  int32_t x[] = {1, 2, 3, 4}, a[] = {0, 0, -1, 0, 0}, b[4] = {0};
  const aot_tensor_t tx = tensor(x, sizeof x, dense), ta = tensor(a, sizeof a, wide), tb = tensor(b, sizeof b, dense);
  const aot_tensor_t *const outs[] = {&ta, &tb};
  assert_int_equal(run(*state, &tx, outs, 2, 0), AOT_OK);
  assert_memory_equal(a, ((int32_t[]){1, 2, -1, 3, 4}), sizeof a);
  assert_memory_equal(b, ((int32_t[]){2, 3, 4, 5}), sizeof b);
}

static void one_that_is_written_twice_is_one_memory(void **state) {
  int32_t x[] = {1, 2, 3, 4}, a[4] = {0};
  const aot_tensor_t tx = tensor(x, sizeof x, dense), ta = tensor(a, sizeof a, dense);
  const aot_tensor_t *const outs[] = {&ta, &ta};
  assert_int_equal(run(*state, &tx, outs, 2, 0), AOT_OK);
  assert_memory_equal(a, ((int32_t[]){2, 3, 4, 5}), sizeof a);
}

static void what_lies_between_elements_is_not_the_kernels(void **state) {
  world_t *w = *state;
  int32_t x[] = {1, 2, 3, 4}, a[] = {0, 0, -1, 0, 0};
  const aot_tensor_t tx = tensor(x, sizeof x, dense), ta = tensor(a, sizeof a, wide);
  const aot_tensor_t *const outs[] = {&ta};
  assert_int_equal(run(w, &tx, outs, 1, 2), AOT_E_CONTRACT);
  assert_non_null(strstr(w->message, "wrote to byte 8, which is in no element, of its argument 1 of 20 bytes"));
  assert_int_equal(a[2], -1); /* and it is as it was */
}

static void what_hands_memory_on_is_left_alone(void **state) {
  static const aot_opset_t nobodys;
  const world_t *w = *state;
  for (uint32_t flag = AOT_KERNEL_STARTS; flag <= AOT_KERNEL_PASSES; flag <<= 1) {
    const aot_kernel_t passes = {.head = {.struct_size = sizeof passes, .flags = flag}, .op = kernel.op, .run = add};
    assert_ptr_equal(aoth_kernel_guarded(w->guards, &passes, &op, &nobodys), &passes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(what_is_written_comes_back, setup, teardown),
      cmocka_unit_test_setup_teardown(one_that_is_written_twice_is_one_memory, setup, teardown),
      cmocka_unit_test_setup_teardown(what_lies_between_elements_is_not_the_kernels, setup, teardown),
      cmocka_unit_test_setup_teardown(what_hands_memory_on_is_left_alone, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
