/* Leaves over a mapped file: read in place, copied when written, shared storages stay shared. */
#include "tiny_opset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <aot/inline.h>
#include <ir/tables.h>
#include <step/leaves.h>
#include <string.h>

static const int64_t six[1] = {6}, matrix[2] = {2, 3}, transposed[2] = {3, 2}, by_column[2] = {1, 3};

static void add_leaf(world_t *w, int32_t role, const char *name, const char *other, aot_type_t type, const void *data,
                     uint64_t nbytes) {
  aot_str_t names[2] = {aot_str(name), aot_str(other ? other : "")};
  aot_leaf_info_t info = {.struct_size = sizeof info,
                          .role = role,
                          .n_names = other ? 2 : 1,
                          .names = names,
                          .type = type,
                          .data = data,
                          .nbytes = nbytes};
  aot_leaf_t leaf;
  aoth_journal_begin(w->p);
  assert_int_equal(aoth_edit_leaf_create(w->p, &info, &leaf), AOT_OK);
  aoth_journal_commit(w->p);
}

/* The file: 64 bytes aligned, six floats, then one byte further the same again. */
static _Alignas(64) unsigned char file[128];

static void set_up(world_t *w, aoth_leaves_t *l) {
  const float numbers[6] = {1, 2, 3, 4, 5, 6};
  memcpy(file, numbers, sizeof numbers);
  memcpy(file + 65, numbers, sizeof numbers);
  world_init(w);
  aot_type_t t = f32_type(2, transposed);
  t.strides = by_column;
  add_leaf(w, AOT_ROLE_PARAMETER, "w", "tied.w", f32_type(2, matrix), file, 24);
  add_leaf(w, AOT_ROLE_PARAMETER, "w.transposed", NULL, t, file, 24); /* the same bytes */
  add_leaf(w, AOT_ROLE_CONSTANT, "odd", NULL, f32_type(1, six), file + 65, 24);
  add_leaf(w, AOT_ROLE_BUFFER, "w", NULL, f32_type(1, six), NULL, 0); /* zeros; same name, other role */
  assert_int_equal(aoth_leaves_init(l, w->p, w->sink), AOT_OK);
}

static void test_in_place_and_copied(void **state) {
  (void)state;
  world_t w;
  aoth_leaves_t l;
  set_up(&w, &l);
  assert_ptr_equal(l.leaf[1].tensor.data, file);
  assert_ptr_not_equal(l.leaf[3].tensor.data, file + 65); /* not aligned: copied at once */
  assert_int_equal((uintptr_t)l.leaf[3].tensor.data % AOTH_ALIGN, 0);
  assert_memory_equal(l.leaf[3].tensor.data, file, 24);
  assert_true(((const float *)l.leaf[4].tensor.data)[5] == 0);
  assert_int_equal(l.nbytes_owned, 48);
  assert_int_equal(aoth_leaves_writable(&l, 1), AOT_OK);
  assert_int_equal(aoth_leaves_writable(&l, 1), AOT_OK); /* once */
  assert_int_equal(l.nbytes_owned, 72);
  aoth_leaves_deinit(&l);
  world_deinit(&w);
}

static void test_shared_storage(void **state) {
  (void)state;
  world_t w;
  aoth_leaves_t l;
  set_up(&w, &l);
  assert_int_equal(aoth_leaves_writable(&l, 2), AOT_OK); /* by the second of the two */
  assert_ptr_equal(l.leaf[1].tensor.data, l.leaf[2].tensor.data);
  ((float *)l.leaf[2].tensor.data)[0] = 9;
  assert_true(((const float *)l.leaf[1].tensor.data)[0] == 9);
  assert_true(((const float *)(const void *)file)[0] == 1);
  assert_int_equal(aoth_leaves_reset(&l), AOT_OK);
  assert_ptr_equal(l.leaf[2].tensor.data, file);
  aoth_leaves_deinit(&l);
  world_deinit(&w);
}

static void test_names(void **state) {
  (void)state;
  world_t w;
  aoth_leaves_t l;
  set_up(&w, &l);
  assert_int_equal(aoth_leaves_find(&l, AOT_ROLE_PARAMETER, "w"), 1);
  assert_int_equal(aoth_leaves_find(&l, AOT_ROLE_PARAMETER, "tied.w"), 1);
  assert_int_equal(aoth_leaves_find(&l, AOT_ROLE_PARAMETER, "w.transposed"), 2);
  assert_int_equal(aoth_leaves_find(&l, AOT_ROLE_BUFFER, "w"), 4);
  assert_int_equal(aoth_leaves_find(&l, AOT_ROLE_BUFFER, "tied.w"), AOT_NO_ID);
  assert_int_equal(aoth_leaves_find(&l, AOT_ROLE_STATE, "w"), AOT_NO_ID);
  aoth_leaves_deinit(&l);
  world_deinit(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_in_place_and_copied), cmocka_unit_test(test_shared_storage),
                                     cmocka_unit_test(test_names)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
