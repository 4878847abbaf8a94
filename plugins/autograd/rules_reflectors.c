/* Products of Householder reflectors H_i = I - tau_i v_i v_i^T, v_i the columns below the diagonal with a one on it:
 * householder_product and ormqr. Reverse of a chain of products: with X_i before H_i and G after it, dtau = -(G^T
 * v)(X^T v), dv = -tau (G X^T v + X G^T v), and G continues as H_i G. No reflector is inverted, so any tau is valid.
 * O(k) nodes for k reflectors; k must be constant. */
#include "rules_linalg.h"

#include <stdlib.h>

typedef struct reflectors {
  em_x_t v, tau; /* [.., m, k], [.., k] */
  int64_t k;
  int from_first; /* H_1 is applied first: Q^T x; otherwise Q x */
} reflectors_t;

static em_x_t piece(em_t *a, em_x_t x, int64_t i) {
  return AG_OP(a, "slice.Tensor", x, em_i(-1), em_i(i), em_i(i + 1), em_i(1));
}
static em_x_t column_of(em_t *a, const reflectors_t *r, int64_t i) { return piece(a, r->v, i); }
static em_x_t factor_of(em_t *a, const reflectors_t *r, int64_t i) {
  return AG_OP(a, "unsqueeze", piece(a, r->tau, i), em_i(-1));
}

static em_x_t reflect(em_t *a, em_x_t v, em_x_t tau, em_x_t x) {
  return ag_sub(a, x, ag_mul(a, tau, ag_product_of(a, v, ag_product_of(a, ag_turned(a, v), x))));
}

/* The i-th one to be applied. */
static int64_t turn(const reflectors_t *r, int64_t i) { return r->from_first ? i : r->k - 1 - i; }

/* The cotangent of C in *g on the way out; the gradients of v's columns and of tau, n of them, as value ids. */
static void walk_back(em_t *a, const reflectors_t *r, const em_x_t *x, em_x_t *g, uint32_t *dv, uint32_t *dtau) {
  for (int64_t i = r->k - 1; i >= 0 && a->status == AOT_OK; i--) {
    int64_t at = turn(r, i);
    em_x_t v = column_of(a, r, at), tau = factor_of(a, r, at), p, q, d;
    p = ag_product_of(a, ag_turned(a, *g), v);
    q = ag_product_of(a, ag_turned(a, x[i]), v);
    d = ag_add(a, ag_product_of(a, *g, q), ag_product_of(a, x[i], p));
    dv[at] = (uint32_t)ag_neg(a, ag_mul(a, tau, d)).u.i;
    d = ag_neg(a, ag_product_of(a, ag_turned(a, p), q));
    dtau[at] = (uint32_t)AG_OP(a, "squeeze.dim", d, em_i(-1)).u.i;
    *g = reflect(a, v, tau, *g);
  }
}

typedef struct gradients {
  em_x_t v, tau, c; /* c: of what the reflectors were applied to */
} gradients_t;

static gradients_t through(em_t *a, const reflectors_t *r, em_x_t c, em_x_t g) {
  gradients_t d = {em_none(), em_none(), g};
  em_x_t *x = calloc((size_t)r->k + 1, sizeof *x);
  uint32_t *ids = calloc(2 * (size_t)r->k + 2, sizeof *ids);
  if (!x || !ids) a->status = AOT_E_EXHAUSTED;
  else if (r->k > 0) {
    x[0] = c;
    for (int64_t i = 0; i + 1 < r->k; i++)
      x[i + 1] = reflect(a, column_of(a, r, turn(r, i)), factor_of(a, r, turn(r, i)), x[i]);
    walk_back(a, r, x, &d.c, ids, ids + r->k);
    d.v = AG_OP(a, "cat", aot_arg_values(ids, (uint32_t)r->k), em_i(-1));
    d.tau = AG_OP(a, "cat", aot_arg_values(ids + r->k, (uint32_t)r->k), em_i(-1));
  }
  free(x);
  free(ids);
  return d;
}

/* v and tau of packed reflectors */
static reflectors_t read_reflectors(em_t *a, em_x_t packed, em_x_t tau) {
  ag_type_t t = ag_type(a, packed), tt = ag_type(a, tau);
  reflectors_t r = {packed, tau, tt.rank ? tt.sizes[tt.rank - 1] : 0, 0};
  if (AOT_DIM_IS_SYM(r.k)) {
    em_fail(a, AOT_E_INVALID, "specialise the size when exporting",
            "the derivative of a symbolic number of reflectors is not supported");
    r.k = 0;
  }
  if (a->status != AOT_OK || r.k == 0) return r;
  r.v = AG_OP(a, "slice.Tensor", packed, em_i(-1), em_i(0), em_i(r.k), em_i(1));
  r.v = ag_add(a, AG_OP(a, "tril", r.v, em_i(-1)), ag_unit(a, t.sizes[t.rank - 2], r.k, packed));
  return r;
}

/* Only what is below the diagonal is part of the reflectors; further columns are not either. */
static void set_packed(em_t *a, const char *name, em_x_t dv, int64_t k) {
  ag_type_t t = ag_type(a, ag_arg(a, name));
  int64_t pad[2] = {0, ag_dim_op(a, AOT_EXPR_SUB, t.sizes[t.rank - 1], k)};
  if (!em_is_value(dv)) return;
  dv = AG_OP(a, "tril", dv, em_i(-1));
  if (pad[1] != 0) dv = AG_OP(a, "constant_pad_nd", dv, em_list(a, pad, 2), em_i(0));
  ag_set(a, name, dv);
}

void ag_rule_householder_product(em_t *a) {
  em_x_t packed = ag_arg(a, "input"), g = ag_g(a, 0);
  ag_type_t t = ag_type(a, packed);
  reflectors_t r;
  gradients_t d;
  if (!em_is_value(g)) return;
  r = read_reflectors(a, packed, ag_arg(a, "tau"));
  d = through(a, &r, ag_expand(a, ag_unit(a, t.sizes[t.rank - 2], t.sizes[t.rank - 1], packed), t.sizes, t.rank), g);
  if (ag_needs(a, "input")) set_packed(a, "input", d.v, r.k);
  if (ag_needs(a, "tau")) ag_set(a, "tau", d.tau);
}

/* C Q is (Q^T C^T)^T. */
void ag_rule_ormqr(em_t *a) {
  em_x_t c = ag_arg(a, "input3"), g = ag_g(a, 0);
  int left = ag_is_set(a, "left", 1), transposed = ag_is_set(a, "transpose", 0);
  reflectors_t r;
  gradients_t d;
  if (!em_is_value(g)) return;
  r = read_reflectors(a, ag_arg(a, "self"), ag_arg(a, "input2"));
  r.from_first = left ? transposed : !transposed;
  d = through(a, &r, left ? c : ag_turned(a, c), left ? g : ag_turned(a, g));
  if (ag_needs(a, "self")) set_packed(a, "self", d.v, r.k);
  if (ag_needs(a, "input2")) ag_set(a, "input2", d.tau);
  if (ag_needs(a, "input3")) ag_set(a, "input3", left ? d.c : ag_turned(a, d.c));
}
