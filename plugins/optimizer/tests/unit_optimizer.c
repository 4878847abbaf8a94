/* The update rules against torch.optim: five steps on four parameters, numbers recorded from PyTorch 2.11 on the CPU
 * (foreach=False). A small host (small_host.h) evaluates the nodes as they are created. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../update.h"
#include "small_host.h"

#include <aot/inline.h>
#include <float.h>
#include <math.h>
#include <string.h>

#define N_STEPS 5
/* Of the largest value that the parameter has had: PyTorch's vector kernels fuse products and have a sqrt that is
 * off by one. */
#define TOLERATED (2 * (double)FLT_EPSILON)

static const double start[SH_N] = {0.5, -1.25, 3.0, -0.001};
static const double gradients[N_STEPS][SH_N] = {{0.1, -0.2, 0.3, 1e-3},
                                                {0.05, 0.4, -0.3, 2e-3},
                                                {-0.2, 0.1, 0.7, -5e-3},
                                                {1.5, -0.6, 0.01, 1e-4},
                                                {0.3, 0.2, 0.1, -2e-3}};
static const double rates[N_STEPS] = {0.01, 0.02, 0.015, 0.01, 0.005};

static const opt_rule_t rules[] = {
    {.kind = OPT_RULE_SGD, .id = "sgd"},
    {.kind = OPT_RULE_SGD, .id = "sgd", .sgd = {.momentum = 0.9, .dampening = 0.1, .weight_decay = 0.01}},
    {.kind = OPT_RULE_SGD, .id = "sgd", .sgd = {.momentum = 0.8, .nesterov = 1}},
    {.kind = OPT_RULE_SGD, .id = "sgd", .sgd = {.momentum = 0.5, .maximize = 1}},
    {.kind = OPT_RULE_ADAM, .id = "adam", .adam = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}},
    {
        .kind = OPT_RULE_ADAM,
        .id = "adam",
        .adam =
            {
                .beta1 = 0.9,
                .beta2 = 0.999,
                .eps = 1e-8,
                .weight_decay = 0.1,
                .amsgrad = 1,
            },
    },
    {
        .kind = OPT_RULE_ADAM,
        .id = "adamw",
        .adam =
            {
                .beta1 = 0.9,
                .beta2 = 0.999,
                .eps = 1e-8,
                .weight_decay = 0.01,
                .decoupled = 1,
            },
    },
    {
        .kind = OPT_RULE_ADAM,
        .id = "adamw",
        .adam =
            {
                .beta1 = 0.8,
                .beta2 = 0.95,
                .eps = 1e-6,
                .weight_decay = 0.2,
                .decoupled = 1,
                .amsgrad = 1,
                .maximize = 1,
            },
    },
};
#define N_RULES (sizeof rules / sizeof *rules)

static const float expected[N_RULES][N_STEPS][SH_N] = {
    /* sgd {} */
    {{0x1.fef9dcp-2f, -0x1.3f7ceep+0f, 0x1.7f9db2p+1f, -0x1.08c3f4p-10f},
     {0x1.fdf3b8p-2f, -0x1.418938p+0f, 0x1.80624ep+1f, -0x1.13404ep-10f},
     {0x1.008314p-1f, -0x1.41eb86p+0f, 0x1.7f0a3ep+1f, -0x1.ff2e48p-11f},
     {0x1.f1aap-2f, -0x1.40624ep+0f, 0x1.7f06f8p+1f, -0x1.ffb480p-11f},
     {0x1.f020c8p-2f, -0x1.40a3d8p+0f, 0x1.7ef696p+1f, -0x1.fa7652p-11f}},
    /* sgd {'momentum': 0.9, 'dampening': 0.1, 'weight_decay': 0.01} */
    {{0x1.feecc0p-2f, -0x1.3f74bcp+0f, 0x1.7f93dep+1f, -0x1.08bd3ep-10f},
     {0x1.fbf9d4p-2f, -0x1.404332p+0f, 0x1.7f7080p+1f, -0x1.16ccd8p-10f},
     {0x1.fcae7cp-2f, -0x1.411bf6p+0f, 0x1.7e15b8p+1f, -0x1.0e8f18p-10f},
     {0x1.ef3c38p-2f, -0x1.4034bap+0f, 0x1.7d39e6p+1f, -0x1.09d368p-10f},
     {0x1.e7c79ap-2f, -0x1.4003f8p+0f, 0x1.7cc3d8p+1f, -0x1.05531ap-10f}},
    /* sgd {'momentum': 0.8, 'nesterov': True} */
    {{0x1.fe2824p-2f, -0x1.3f1412p+0f, 0x1.7f4f0ep+1f, -0x1.0adcd4p-10f},
     {0x1.fb00bcp-2f, -0x1.421c04p+0f, 0x1.80331ep+1f, -0x1.2117a8p-10f},
     {0x1.ff4128p-2f, -0x1.4363f6p+0f, 0x1.7ddaaep+1f, -0x1.04bfd8p-10f},
     {0x1.e43c54p-2f, -0x1.411aa6p+0f, 0x1.7d4c0cp+1f, -0x1.00973ap-10f},
     {0x1.dcceacp-2f, -0x1.4143c6p+0f, 0x1.7cf6d0p+1f, -0x1.f43528p-11f}},
    /* sgd {'momentum': 0.5, 'maximize': True} */
    {{0x1.008312p-1f, -0x1.408312p+0f, 0x1.80624ep+1f, -0x1.0385c8p-10f},
     {0x1.018936p-1f, -0x1.3ef9dap+0f, 0x1.8000p+1f, -0x1.ecd4acp-11f},
     {0x1.00624cp-1f, -0x1.3e0418p+0f, 0x1.813334p+1f, -0x1.052936p-10f},
     {0x1.07ae12p-1f, -0x1.3f3b64p+0f, 0x1.819ce2p+1f, -0x1.09d064p-10f},
     {0x1.0a45a0p-1f, -0x1.3f47aep+0f, 0x1.81c7b0p+1f, -0x1.0d9946p-10f}},
    /* adam {} */
    {{0x1.f5c290p-2f, -0x1.3d70a4p+0f, 0x1.7eb852p+1f, -0x1.6871d8p-7f},
     {0x1.e2ab42p-2f, -0x1.3f5080p+0f, 0x1.7edad0p+1f, -0x1.f07dbep-6f},
     {0x1.e5d6b0p-2f, -0x1.40e91ap+0f, 0x1.7dd89ap+1f, -0x1.abfac0p-6f},
     {0x1.e0379ap-2f, -0x1.4041aap+0f, 0x1.7d4946p+1f, -0x1.884fa4p-6f},
     {0x1.dd583ep-2f, -0x1.402b14p+0f, 0x1.7d024cp+1f, -0x1.6ad030p-6f}},
    /* adam {'weight_decay': 0.1, 'amsgrad': True} */
    {{0x1.f5c290p-2f, -0x1.3d70a4p+0f, 0x1.7eb852p+1f, -0x1.6871c2p-7f},
     {0x1.e1e92ep-2f, -0x1.3d4ae2p+0f, 0x1.7d023ap+1f, -0x1.fbe60cp-6f},
     {0x1.df831ep-2f, -0x1.3d11ccp+0f, 0x1.7b7236p+1f, -0x1.7e45cap-6f},
     {0x1.d96e96p-2f, -0x1.3bb9d8p+0f, 0x1.7a6e76p+1f, -0x1.230cc4p-6f},
     {0x1.d651c8p-2f, -0x1.3b3956p+0f, 0x1.79ea40p+1f, -0x1.db53d6p-7f}},
    /* adamw {} */
    {{0x1.f5b574p-2f, -0x1.3d6872p+0f, 0x1.7eae7ep+1f, -0x1.6871p-7f},
     {0x1.e28476p-2f, -0x1.3f380ep+0f, 0x1.7ebd64p+1f, -0x1.f07418p-6f},
     {0x1.e59d5cp-2f, -0x1.40c466p+0f, 0x1.7dac7ap+1f, -0x1.abde08p-6f},
     {0x1.dff1d6p-2f, -0x1.4014c0p+0f, 0x1.7d1360p+1f, -0x1.8827f8p-6f},
     {0x1.dd0c56p-2f, -0x1.3ffa10p+0f, 0x1.7cc786p+1f, -0x1.6aa37ep-6f}},
    /* adamw {'betas': (0.8, 0.95), 'eps': 1e-06, 'weight_decay': 0.2, 'amsgrad': True, 'maximize': True} */
    {{0x1.049ba2p-1f, -0x1.41eb86p+0f, 0x1.808312p+1f, 0x1.26a674p-7f},
     {0x1.0cfe30p-1f, -0x1.3e7d6ep+0f, 0x1.7eb082p+1f, 0x1.d2762cp-6f},
     {0x1.09ef5ap-1f, -0x1.3bca6cp+0f, 0x1.7e9c54p+1f, 0x1.7af0ccp-6f},
     {0x1.0c89f4p-1f, -0x1.3bfc5ap+0f, 0x1.7e64b0p+1f, 0x1.50d95cp-6f},
     {0x1.0dcea8p-1f, -0x1.3bc53ep+0f, 0x1.7e45fep+1f, 0x1.2e1a70p-6f}},
};

static const opt_groups_t none = {0};

static aot_status_t step(small_host_t *h, const opt_rule_t *rule) {
  sh_begin_step(h);
  AOT_TRY(opt_add_update(&h->host, SH_CTX(h), SH_PROG(h), rule, &none));
  sh_end_step(h);
  return AOT_OK;
}

static void test_known_answers(void **state) {
  (void)state;
  for (size_t r = 0; r < N_RULES; r++) {
    static small_host_t h;
    sh_init(&h);
    uint32_t p = sh_param(&h, "fc.weight", AOT_F32, 1, start);
    double largest[SH_N] = {0};
    for (int t = 0; t < N_STEPS; t++) {
      h.lr = rates[t];
      sh_grad(&h, p, gradients[t]);
      assert_int_equal(step(&h, &rules[r]), AOT_OK);
      for (int e = 0; e < SH_N; e++) {
        double got = h.leaves[p].value.x[e], wanted = (double)expected[r][t][e];
        largest[e] = fmax(largest[e], fmax(fabs(start[e]), fabs(wanted)));
        if (fabs(got - wanted) > TOLERATED * largest[e])
          fail_msg("rule %zu (%s), step %d, element %d: %a, PyTorch has %a", r, rules[r].id, t, e, got, wanted);
      }
    }
  }
}

/* Ports, states and rules of AdamW over two parameters, one of them without a gradient. */
static void test_shape_of_update(void **state) {
  (void)state;
  static small_host_t h;
  sh_init(&h);
  h.lr = 0.1;
  uint32_t w = sh_param(&h, "w", AOT_F32, 1, start);
  sh_param(&h, "frozen", AOT_F32, 1, start);
  sh_grad(&h, w, gradients[0]);
  assert_int_equal(step(&h, &rules[6]), AOT_OK);
  assert_int_equal(h.n_leaves, 1 + 5);
  assert_string_equal(h.leaves[3].name, "adamw.step");
  assert_string_equal(h.leaves[4].name, "adamw.exp_avg.w");
  assert_string_equal(h.leaves[5].name, "adamw.exp_avg_sq.w");
  assert_int_equal(h.leaves[3].value.dtype, AOT_F64);
  assert_true(h.leaves[3].value.x[0] == 1);
  assert_int_equal(h.n_outputs, 4);
  assert_int_equal(h.n_rules, 4);
}

/* A 0-dim parameter must not become a double, nor a bfloat16 one a float. */
static void test_dtypes_survive(void **state) {
  (void)state;
  static const int32_t dtypes[] = {AOT_F32, AOT_BF16, AOT_F64};
  for (size_t d = 0; d < 3; d++)
    for (int32_t rank = 0; rank < 2; rank++)
      for (size_t r = 0; r < N_RULES; r++) {
        static small_host_t h;
        sh_init(&h);
        h.lr = 0.25;
        uint32_t p = sh_param(&h, "p", dtypes[d], rank, start);
        sh_grad(&h, p, gradients[0]);
        assert_int_equal(step(&h, &rules[r]), AOT_OK);
        assert_int_equal(h.leaves[p].value.dtype, dtypes[d]);
        assert_int_equal(h.leaves[p].value.rank, rank);
        assert_true(fabs(h.leaves[p].value.x[0] - start[0]) > 1e-3);
      }
}

/* lr 0.01, gradients 0.1, -0.2, 0.3, from 0.3 on: what PyTorch 2.11 makes of bfloat16 parameters, of rank 0 or not.
 * `1 - lr*wd` is no bfloat16. */
static void test_halves(void **state) {
  (void)state;
  static const struct {
    opt_rule_t rule;
    double wanted[3];
  } rows[] = {
      {{.kind = OPT_RULE_ADAM,
        .id = "adamw",
        .adam = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.2, .decoupled = 1}},
       {0.291015625, 0.294921875, 0.291015625}},
      {{.kind = OPT_RULE_ADAM, .id = "adam", .adam = {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}},
       {0.291015625, 0.294921875, 0.291015625}},
      {{.kind = OPT_RULE_SGD, .id = "sgd", .sgd = {.momentum = 0.9}}, {0.298828125, 0.30078125, 0.298828125}},
  };
  static const double gradient[3] = {0.1, -0.2, 0.3};
  double first[SH_N], g[SH_N];
  for (int e = 0; e < SH_N; e++) first[e] = 0.3;
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
    for (int32_t rank = 0; rank < 2; rank++) {
      static small_host_t h;
      sh_init(&h);
      h.lr = 0.01;
      const uint32_t p = sh_param(&h, "p", AOT_BF16, rank, first);
      for (int t = 0; t < 3; t++) {
        for (int e = 0; e < SH_N; e++) g[e] = gradient[t];
        sh_grad(&h, p, g);
        assert_int_equal(step(&h, &rows[r].rule), AOT_OK);
        if (h.leaves[p].value.x[0] != rows[r].wanted[t])
          fail_msg("%s, rank %d, step %d: %.9g, PyTorch %.9g", rows[r].rule.id, (int)rank, t, h.leaves[p].value.x[0],
                   rows[r].wanted[t]);
      }
    }
}

/* A group is updated as a program of its own with its options and rate; the others as without groups. */
static void test_groups(void **state) {
  (void)state;
  static const char text[] = " *.bias, no: weight-decay=0, beta1=0.8 ; head.*: lr-scale=0.5\nnothing.*:";
  static const char *const names[] = {"fc.weight", "fc.bias", "head.weight", "no"};
  static const int group[] = {0, 1, 2, 1};
  static small_host_t h, alone, session; /* a step forgets what was allocated before */
  opt_groups_t groups;
  sh_init(&h);
  sh_init(&session);
  assert_int_equal(opt_groups_parse(&session.host, SH_CTX(&session), aot_str(text), &rules[6], &groups), AOT_OK);
  assert_int_equal(groups.n, 3);
  uint32_t p[4];
  for (int k = 0; k < 4; k++) p[k] = sh_param(&h, names[k], AOT_F32, 1, start);
  for (int t = 0; t < N_STEPS; t++) {
    h.lr = rates[t];
    for (int k = 0; k < 4; k++) sh_grad(&h, p[k], gradients[t]);
    sh_begin_step(&h);
    assert_int_equal(opt_add_update(&h.host, SH_CTX(&h), SH_PROG(&h), &rules[6], &groups), AOT_OK);
    sh_end_step(&h);
  }
  for (int k = 0; k < 4; k++) {
    opt_rule_t rule = rules[6];
    if (group[k] == 1) rule.adam.weight_decay = 0, rule.adam.beta1 = 0.8;
    sh_init(&alone);
    const uint32_t q = sh_param(&alone, "q", AOT_F32, 1, start);
    for (int t = 0; t < N_STEPS; t++) {
      alone.lr = rates[t] * (group[k] == 2 ? 0.5 : 1);
      sh_grad(&alone, q, gradients[t]);
      assert_int_equal(step(&alone, &rule), AOT_OK);
    }
    assert_memory_equal(h.leaves[p[k]].value.x, alone.leaves[q].value.x, sizeof h.leaves[0].value.x);
  }
}

static void test_bad_groups(void **state) {
  (void)state;
  static const char *const texts[] = {"fc.bias",      ": beta1=0",  "a: momentum=0.9", "a: beta1=x",
                                      "a: amsgrad=1", "a: beta1=1", "a: eps=-1",       "a: lr-scale=-1"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    static small_host_t h;
    opt_groups_t groups;
    sh_init(&h);
    assert_int_equal(opt_groups_parse(&h.host, SH_CTX(&h), aot_str(texts[i]), &rules[6], &groups), AOT_E_OPTION);
    assert_string_equal(h.diag_code, "optimizer.groups");
  }
}

static void test_refusals(void **state) {
  (void)state;
  static small_host_t h;
  sh_init(&h);
  sh_begin_step(&h);
  assert_int_equal(opt_add_update(&h.host, SH_CTX(&h), SH_PROG(&h), &rules[0], &none), AOT_E_PRECONDITION);
  assert_string_equal(h.diag_code, "optimizer.backward");
  sh_param(&h, "p", AOT_F32, 1, start);
  sh_begin_step(&h);
  assert_int_equal(opt_add_update(&h.host, SH_CTX(&h), SH_PROG(&h), &rules[0], &none), AOT_E_PRECONDITION);
  assert_string_equal(h.diag_code, "optimizer.empty");
  sh_grad(&h, 1, gradients[0]);
  assert_int_equal(step(&h, &rules[0]), AOT_OK);
  assert_int_equal(opt_add_update(&h.host, SH_CTX(&h), SH_PROG(&h), &rules[0], &none), AOT_E_PRECONDITION);
  assert_string_equal(h.diag_code, "optimizer.twice");
  assert_int_equal(h.n_diags, 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_known_answers),  cmocka_unit_test(test_shape_of_update),
      cmocka_unit_test(test_dtypes_survive), cmocka_unit_test(test_halves),
      cmocka_unit_test(test_groups),         cmocka_unit_test(test_bad_groups),
      cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
