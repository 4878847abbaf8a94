/* Leaves over a mapped file: read in place, copied when written, shared storages stay shared. */
#include "tiny_opset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <aot/inline.h>
#include <device/host_device.h>
#include <ir/tables.h>
#include <step/leaves.h>
#include <string.h>

static const int64_t six[1] = {6}, matrix[2] = {2, 3}, transposed[2] = {3, 2}, by_column[2] = {1, 3};

static void add_leaf(fixture_t *w, int32_t role, const char *name, const char *other, aot_type_t type, const void *data,
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
static aoth_queue_t queue;

static void set_up(fixture_t *w, aoth_leaves_t *l) {
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
  assert_int_equal(aoth_queue_init(&queue, &w->ctx, aoth_host_device()), AOT_OK);
  assert_int_equal(aoth_leaves_init(l, w->p, &queue, w->sink), AOT_OK);
  assert_int_equal(aoth_leaves_reset(l), AOT_OK);
}

static void take_down(fixture_t *w, aoth_leaves_t *l) {
  aoth_leaves_deinit(l);
  assert_int_equal(aoth_queue_deinit(&queue), AOT_OK);
  world_deinit(w);
}

static const float *read(aoth_leaves_t *l, uint32_t leaf) {
  const void *host;
  assert_int_equal(aoth_resident_read(l->leaf[leaf].tensor.resident, l->queue, &host), AOT_OK);
  return host;
}

static float *edit(aoth_leaves_t *l, uint32_t leaf) {
  void *host;
  assert_int_equal(aoth_resident_edit(l->leaf[leaf].tensor.resident, l->queue, 1, &host), AOT_OK);
  return host;
}

/* The address that programs are given. */
static const void *need(aoth_leaves_t *l, uint32_t leaf) {
  assert_int_equal(aoth_resident_need(l->leaf[leaf].tensor.resident, l->queue), AOT_OK);
  return (const void *)(uintptr_t)l->leaf[leaf].tensor.resident->buffer.address;
}

static void test_in_place_and_copied(void **state) {
  (void)state;
  fixture_t w;
  aoth_leaves_t l;
  set_up(&w, &l);
  assert_ptr_equal(need(&l, 1), file);
  assert_ptr_not_equal(need(&l, 3), file + 65); /* not aligned: copied */
  assert_int_equal((uintptr_t)need(&l, 3) % AOTH_ALIGN, 0);
  assert_memory_equal(read(&l, 3), file, 24);
  assert_true(read(&l, 4)[5] == 0);
  assert_int_equal(aoth_leaves_nbytes(&l), 48);
  assert_memory_equal(edit(&l, 1), file, 24);
  edit(&l, 1); /* once */
  assert_int_equal(aoth_leaves_nbytes(&l), 72);
  assert_ptr_equal(need(&l, 1), read(&l, 1));
  take_down(&w, &l);
}

static void test_shared_storage(void **state) {
  (void)state;
  fixture_t w;
  aoth_leaves_t l;
  set_up(&w, &l);
  edit(&l, 2)[0] = 9; /* by the second of the two */
  assert_ptr_equal(need(&l, 1), need(&l, 2));
  assert_true(read(&l, 1)[0] == 9);
  assert_true(((const float *)(const void *)file)[0] == 1);
  assert_int_equal(aoth_leaves_reset(&l), AOT_OK);
  assert_ptr_equal(need(&l, 2), file);
  take_down(&w, &l);
}

static void test_names(void **state) {
  (void)state;
  fixture_t w;
  aoth_leaves_t l;
  set_up(&w, &l);
  assert_int_equal(aoth_leaves_find(&l, AOT_ROLE_PARAMETER, "w"), 1);
  assert_int_equal(aoth_leaves_find(&l, AOT_ROLE_PARAMETER, "tied.w"), 1);
  assert_int_equal(aoth_leaves_find(&l, AOT_ROLE_PARAMETER, "w.transposed"), 2);
  assert_int_equal(aoth_leaves_find(&l, AOT_ROLE_BUFFER, "w"), 4);
  assert_int_equal(aoth_leaves_find(&l, AOT_ROLE_BUFFER, "tied.w"), AOT_NO_ID);
  assert_int_equal(aoth_leaves_find(&l, AOT_ROLE_STATE, "w"), AOT_NO_ID);
  take_down(&w, &l);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_in_place_and_copied), cmocka_unit_test(test_shared_storage),
                                     cmocka_unit_test(test_names)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
