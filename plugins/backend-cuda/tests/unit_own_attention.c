/* Own attention against its definition, on whatever libcuda.so.1 and NVRTC are found: the doubles in the suite, a GPU
 * where there is one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "own_attention.h"

static int begin(void **state) {
  own_device_t *d = calloc(1, sizeof *d);
  char why[400] = "";
  if (!d || own_open(d, why, sizeof why)) {
    fprintf(stderr, "%s\n", why);
    return -1;
  }
  *state = d;
  return 0;
}
static int end(void **state) {
  own_device_t *d = *state;
  d->cu.stream_destroy(d->stream);
  d->cu.primary_ctx_release(0);
  free(d);
  return 0;
}

static void check(const own_device_t *d, const gc_own_attention_t *o) {
  static const int wanted[] = {GC_ATT_O, GC_ATT_STATS, GC_ATT_GQ, GC_ATT_GK, GC_ATT_GV};
  own_call_t c = {.o = *o};
  char why[OWN_WHY] = "";
  double worst;
  own_fault_t f;
  assert_true(gc_own_takes(&o->call));
  if (own_begin(d, &c, why)) fail_msg("%s", why);
  for (int32_t kind = 0; kind < GC_OWN_N_KINDS; kind++) assert_int_equal(own_launch(d, &c, kind), GC_SUCCESS);
  assert_int_equal(d->cu.stream_synchronize(d->stream), GC_SUCCESS);
  for (int64_t b = 0; b < o->call.n_batch; b++)
    for (int64_t h = 0; h < o->call.n_head / o->call.share; h++) {
      own_define(&c, b, h);
      if (o->call.keep_dtype && !own_compare_bits(d, &c, b, h, &f))
        fail_msg("%d bits differ, first of query %d and key %d", (int)f.n, (int)f.i, (int)f.e);
      for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++)
        if (!own_compare(d, &c, wanted[k], b, h, &worst, &f))
          fail_msg("%d x %d x %d: tensor %d: %d are off, by %g: %g for %g at %d, %d, %d, %d", (int)o->call.n_query,
                   (int)o->call.n_key, (int)o->call.width, f.what, (int)f.n, worst, f.got, f.expected, (int)f.b,
                   (int)f.h, (int)f.i, (int)f.e);
    }
  own_end(d, &c);
}

static void it_is_that_of_the_definition(void **state) {
  static const struct {
    int64_t n_batch, n_head, share, n_query, n_key, width;
    int is_causal;
    double dropout;
    int32_t dtype;
  } cases[] = {
      {1, 1, 1, 16, 16, 64, 0, 0, AOT_BF16},    {1, 2, 1, 65, 65, 64, 0, 0.1, AOT_F16},
      {2, 1, 1, 1, 20, 64, 0, 0.25, AOT_BF16},  {1, 1, 1, 130, 130, 64, 1, 0.1, AOT_BF16},
      {1, 2, 2, 17, 132, 64, 0, 0.1, AOT_BF16}, {1, 1, 1, 17, 66, 128, 1, 0.5, AOT_F16},
      {1, 1, 1, 70, 64, 128, 0, 0.1, AOT_BF16}, {1, 2, 2, 40, 9, 64, 1, 0, AOT_F16},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const gc_own_attention_t o =
        own_attention(cases[i].n_batch, cases[i].n_head, cases[i].share, cases[i].n_query, cases[i].n_key,
                      cases[i].width, cases[i].is_causal, cases[i].dropout, cases[i].dtype);
    check(*state, &o);
  }
}

static void it_does_not_depend_on_how_the_work_is_cut(void **state) {
  static const gc_own_cut_t cuts[][GC_OWN_N_KINDS] = {
      {{1, 2, 1, 64, 0, 0}, {1, 2, 1, 64, 0, 2}, {1, 4, 1, 32, 1, 1}},
      {{2, 2, 1, 64, 0, 0}, {2, 2, 1, 64, 1, 0}, {2, 4, 1, 32, 0, 0}},
  };
  for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
    gc_own_attention_t o = own_attention(1, 1, 1, 72, 72, 64, 0, 0.1, AOT_BF16);
    memcpy(o.cut, cuts[i], sizeof o.cut);
    check(*state, &o);
  }
}

static void what_it_does_not_take_is_told(void **state) {
  (void)state;
  gc_attention_t a = own_attention(1, 1, 1, 16, 16, 64, 0, 0, AOT_BF16).call;
  assert_true(gc_own_takes(&a));
  a.strides[GC_ATT_Q].position = 68;
  assert_false(gc_own_takes(&a));
  a = own_attention(1, 1, 1, 16, 16, 80, 0, 0, AOT_BF16).call;
  assert_false(gc_own_takes(&a));
  a = own_attention(1, 1, 1, 16, 16, 64, 0, 0, AOT_BF16).call;
  a.bias_dtype = AOT_F32;
  assert_false(gc_own_takes(&a));
  a.bias_dtype = 0;
  a.scale = -1;
  assert_false(gc_own_takes(&a));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_is_that_of_the_definition),
      cmocka_unit_test(it_does_not_depend_on_how_the_work_is_cut),
      cmocka_unit_test(what_it_does_not_take_is_told),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
