/* Kernels between guards, called as a backend calls them: what faults of kernels in a program cannot show
 * (tests/faults/kernel_faults.def), for there results are dense. */
#include <aot/inline.h>
#include <sandbox/kernel_guards.h>
#include <compiler/session_lifetime.h>
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

typedef struct fixture {
  aoth_session_t *session;
  aoth_kernel_guards_t *guards;
  char message[256];
} fixture_t;

static int setup(void **state) {
  fixture_t *w = calloc(1, sizeof *w);
  const aoth_session_config_t config = {.no_cache = 1};
  w->session = aoth_session_create(&config);
  w->guards = aoth_kernel_guards_create(w->session);
  *state = w;
  return w->session && w->guards ? 0 : -1;
}

static int teardown(void **state) {
  fixture_t *w = *state;
  aoth_kernel_guards_destroy(w->guards);
  aoth_session_destroy(w->session);
  free(w);
  return 0;
}

static aot_status_t run(fixture_t *w, const aot_tensor_t *x, const aot_tensor_t *const *outs, uint32_t n_outs,
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
  fixture_t *w = *state;
  int32_t x[] = {1, 2, 3, 4}, a[] = {0, 0, -1, 0, 0};
  const aot_tensor_t tx = tensor(x, sizeof x, dense), ta = tensor(a, sizeof a, wide);
  const aot_tensor_t *const outs[] = {&ta};
  assert_int_equal(run(w, &tx, outs, 1, 2), AOT_E_CONTRACT);
  assert_non_null(strstr(w->message, "wrote to byte 8, which is in no element, of its argument 1 of 20 bytes"));
  assert_int_equal(a[2], -1); /* and it is as it was */
}

/* ---- kernels that only start ---- */

/* The work is done when it is waited for, so that what it does wrong comes late. */
static struct started {
  const int32_t *from;
  int32_t *to;
  int64_t fault;
  int n_settled;
} under_way;

static aot_status_t start(const aot_kernel_t *k, const aot_kernel_call_t *c) {
  (void)k;
  under_way = (struct started){.from = c->args[0].u.tensor->data, .to = c->results[0].data, .fault = c->args[1].u.i};
  return AOT_OK;
}

static void settle_started(const aot_kernel_t *k) {
  (void)k;
  under_way.to = NULL;
  under_way.n_settled++;
}

enum { FAULT_PAST = 1, FAULT_INPUT, FAULT_PART };

static aot_status_t wait_for(const aot_kernel_t *k, const aot_kernel_call_t *c) {
  const aot_tensor_t *x = c->args[0].u.tensor;
  (void)k;
  if (x->data != under_way.to) return AOT_E_NOT_FOUND;
  for (int i = 0; i < (under_way.fault == FAULT_PART ? 3 : 4); i++) under_way.to[i] = 2 * under_way.from[i];
  if (under_way.fault == FAULT_PAST) under_way.to[4] = 7;
  if (under_way.fault == FAULT_INPUT) ((int32_t *)(uintptr_t)under_way.from)[1] = 7;
  for (int i = 0; c->n_results && i < 4; i++) ((int32_t *)c->results[0].data)[i] = under_way.to[i];
  return AOT_OK;
}

static const aot_kernel_t starts = {.head = {.struct_size = sizeof starts, .flags = AOT_KERNEL_STARTS},
                                    .op = AOT_STR_INIT("test.start.default"),
                                    .run = start,
                                    .settle = settle_started};
static const aot_kernel_t waits = {.head = {.struct_size = sizeof waits, .flags = AOT_KERNEL_PASSES},
                                   .op = AOT_STR_INIT("test.wait.default"),
                                   .run = wait_for};
static const aot_op_desc_t start_op = {
    .struct_size = sizeof start_op, .name = AOT_STR_INIT("test.start.default"), .args = args, .n_args = 1};
static const aot_op_desc_t wait_op = {
    .struct_size = sizeof wait_op, .name = AOT_STR_INIT("test.wait.default"), .args = args, .n_args = 1};

static const aot_kernel_t *guarded(fixture_t *w, const aot_kernel_t *k) {
  static const aot_opset_t nobodys;
  const aot_kernel_t *g = aoth_kernel_guarded(w->guards, k, k == &starts ? &start_op : &wait_op, &nobodys);
  assert_ptr_not_equal(g, k);
  assert_int_equal(g->head.flags, k->head.flags);
  return g;
}

/* results: of the kernel that waits; NULL: its result is its argument */
static aot_status_t start_and_wait(fixture_t *w, int32_t *x, int32_t *y, int32_t *result, int64_t fault) {
  const aot_tensor_t tx = tensor(x, 16, dense), ty = tensor(y, 16, dense), tr = tensor(result, 16, dense);
  const aot_kernel_arg_t a[] = {{.kind = AOT_ARG_VALUE, .u.tensor = &tx}, {.kind = AOT_ARG_INT, .u.i = fault}},
                         of[] = {{.kind = AOT_ARG_VALUE, .u.tensor = &ty}};
  aot_kernel_call_t call = {.struct_size = sizeof call,
                            .n_args = 2,
                            .args = a,
                            .results = &ty,
                            .n_results = 1,
                            .message_size = sizeof w->message,
                            .message = w->message};
  assert_int_equal(guarded(w, &starts)->run(guarded(w, &starts), &call), AOT_OK);
  assert_ptr_not_equal(under_way.to, y);
  memset(y, 0, 16);
  call.n_args = 1;
  call.args = of;
  call.results = &tr;
  call.n_results = result != NULL;
  return guarded(w, &waits)->run(guarded(w, &waits), &call);
}

static void what_was_started_is_there_when_it_was_waited_for(void **state) {
  int32_t x[] = {1, 2, 3, 4}, y[4], r[4] = {0};
  assert_int_equal(start_and_wait(*state, x, y, NULL, 0), AOT_OK);
  assert_memory_equal(y, ((int32_t[]){2, 4, 6, 8}), sizeof y);
  assert_int_equal(start_and_wait(*state, y, x, r, 0), AOT_OK);
  assert_memory_equal(x, ((int32_t[]){4, 8, 12, 16}), sizeof x);
  assert_memory_equal(r, x, sizeof r);
}

static void what_a_started_kernel_did_wrong_is_its_own(void **state) {
  static const char *const texts[] = {[FAULT_PAST] = "wrote to byte 16 of its result 0 of 16 bytes",
                                      [FAULT_INPUT] = "wrote to byte 4, which it may only read, of its argument 0",
                                      [FAULT_PART] = "left 1 of the 4 elements of its result 0 unwritten"};
  fixture_t *w = *state;
  for (int64_t fault = FAULT_PAST; fault <= FAULT_PART; fault++) {
    int32_t x[] = {1, 2, 3, 4}, y[4];
    assert_int_equal(start_and_wait(w, x, y, NULL, fault), AOT_E_CONTRACT);
    assert_non_null(strstr(w->message, "its kernel of test.start.default "));
    assert_non_null(strstr(w->message, texts[fault]));
    assert_memory_equal(x, ((int32_t[]){1, 2, 3, 4}), sizeof x);
  }
}

/* A run has ended half-way: the copies of what went on go, and its memory is without an owner to wait for. */
static void what_was_started_is_settled(void **state) {
  int32_t x[] = {1, 2, 3, 4}, y[4] = {0};
  fixture_t *w = *state;
  const aot_tensor_t tx = tensor(x, sizeof x, dense), ty = tensor(y, sizeof y, dense);
  const aot_kernel_arg_t a[] = {{.kind = AOT_ARG_VALUE, .u.tensor = &tx}, {.kind = AOT_ARG_INT}};
  const aot_kernel_call_t call = {.struct_size = sizeof call, .n_args = 2, .args = a, .results = &ty, .n_results = 1};
  assert_int_equal(guarded(w, &starts)->run(guarded(w, &starts), &call), AOT_OK);
  kit_text_t where = {0};
  assert_true(aoth_kernel_guards_where(w->guards, (uintptr_t)(under_way.to + 4), &where));
  assert_non_null(strstr(where.data, "of its kernel of test.start.default"));
  kit_text_deinit(&where);
  const uint64_t was = (uintptr_t)under_way.to;
  guarded(w, &starts)->settle(guarded(w, &starts));
  assert_int_equal(under_way.n_settled, 1);
  assert_false(aoth_kernel_guards_where(w->guards, was, &where));
  assert_int_equal(start_and_wait(w, x, y, NULL, 0), AOT_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(what_is_written_comes_back, setup, teardown),
      cmocka_unit_test_setup_teardown(one_that_is_written_twice_is_one_memory, setup, teardown),
      cmocka_unit_test_setup_teardown(what_lies_between_elements_is_not_the_kernels, setup, teardown),
      cmocka_unit_test_setup_teardown(what_was_started_is_there_when_it_was_waited_for, setup, teardown),
      cmocka_unit_test_setup_teardown(what_a_started_kernel_did_wrong_is_its_own, setup, teardown),
      cmocka_unit_test_setup_teardown(what_was_started_is_settled, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
