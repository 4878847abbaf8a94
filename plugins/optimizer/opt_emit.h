/* Writing nodes: the thin layer through which the update rules see the program. The first failure is kept, later calls do
 * nothing, so that a rule reads like its formula and is checked once at its end. */
#ifndef OPT_EMIT_H
#define OPT_EMIT_H

#include <aot/host.h>

typedef struct opt_emit {
  const aot_host_t *host;
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  aot_graph_t graph; /* the UPDATE graph */
  aot_status_t status;
} opt_emit_t;

typedef aot_value_t opt_v;

opt_v opt_add(opt_emit_t *e, opt_v a, opt_v b);                     /* a + b */
opt_v opt_add_scaled(opt_emit_t *e, opt_v a, opt_v b, double alpha); /* a + alpha*b */
opt_v opt_mul(opt_emit_t *e, opt_v a, opt_v b);
opt_v opt_div(opt_emit_t *e, opt_v a, opt_v b);
opt_v opt_max(opt_emit_t *e, opt_v a, opt_v b);
opt_v opt_neg(opt_emit_t *e, opt_v a);
opt_v opt_sqrt(opt_emit_t *e, opt_v a);
opt_v opt_as_real(opt_emit_t *e, opt_v a);    /* [..] complex as [.., 2] real */
opt_v opt_as_complex(opt_emit_t *e, opt_v a); /* and back */
opt_v opt_add_number(opt_emit_t *e, opt_v a, double number); /* a + number */
opt_v opt_mul_number(opt_emit_t *e, opt_v a, double number); /* a * number */
opt_v opt_number_minus(opt_emit_t *e, double number, opt_v a); /* number - a */
opt_v opt_number_power(opt_emit_t *e, double number, opt_v a); /* number ^ a */
opt_v opt_at_most(opt_emit_t *e, opt_v a, double number);      /* min(a, number) */
opt_v opt_lerp(opt_emit_t *e, opt_v a, opt_v b, double weight); /* a + weight*(b - a) */
opt_v opt_addcmul(opt_emit_t *e, opt_v a, opt_v b, opt_v c, double value); /* a + value*b*c */
opt_v opt_cast(opt_emit_t *e, opt_v a, int32_t dtype);

/* Report once, with a value to point at (or AOT_NO_ID), and keep the status. */
void opt_fail(opt_emit_t *e, aot_status_t status, const char *code, const char *message, const char *hint, opt_v at);

#endif
