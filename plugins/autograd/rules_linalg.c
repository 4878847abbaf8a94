/* Factorizations, solves, inverses. Derivatives by the differential of the defining equation, real matrices: Giles
 * 2008, An extended collection of matrix derivative results; Murray 2016 for Cholesky; Walter and Lehmann 2012 for QR;
 * Golub and Pereyra 1973 for the pseudo-inverse; Higham 2008, Functions of Matrices, 3.2 for the exponential. What is
 * differentiable, and what counts as a constant: PyTorch 2.11, FunctionsManual.cpp.
 *
 * S+ below is a matrix with its transpose; tril and triu keep the diagonal unless an offset is given. */
#include "rules_linalg.h"

/* ---- matrices; NONE is zero ---- */

em_x_t ag_product_of(em_t *a, em_x_t x, em_x_t y) {
  return em_is_value(x) && em_is_value(y) ? AG_OP(a, "matmul", x, y) : em_none();
}
em_x_t ag_turned(em_t *a, em_x_t x) { return em_is_value(x) ? ag_transpose(a, x) : em_none(); }
static em_x_t lower(em_t *a, em_x_t x, int offset) { return AG_OP(a, "tril", x, em_i(offset)); }
static em_x_t upper(em_t *a, em_x_t x, int offset) { return AG_OP(a, "triu", x, em_i(offset)); }
em_x_t ag_unit(em_t *a, int64_t rows, int64_t columns, em_x_t like) {
  ag_type_t t = ag_type(a, like);
  return AG_OP(a, "eye.m", em_i(rows), em_i(columns), aot_arg_dtype(t.dtype), em_none(), ag_device(&t));
}
static em_x_t diagonal(em_t *a, em_x_t x) { return AG_OP(a, "diagonal", x, em_i(0), em_i(-2), em_i(-1)); }
static em_x_t row(em_t *a, em_x_t x) { return AG_OP(a, "unsqueeze", x, em_i(-2)); }
static em_x_t column(em_t *a, em_x_t x) { return AG_OP(a, "unsqueeze", x, em_i(-1)); }
static em_x_t first(em_t *a, em_x_t x, int dim, int64_t n) {
  return AG_OP(a, "slice.Tensor", x, em_i(dim), em_i(0), em_i(n), em_i(1));
}
static em_x_t rest(em_t *a, em_x_t x, int dim, int64_t from) {
  return AG_OP(a, "slice.Tensor", x, em_i(dim), em_i(from), em_i(INT64_MAX), em_i(1));
}
static em_x_t solve_triangle(em_t *a, em_x_t t, em_x_t b, int is_upper, int left, int unit) {
  if (!em_is_value(b)) return b;
  return AG_OP(a, "linalg_solve_triangular", t, b, em_b(is_upper), em_b(left), em_b(unit));
}
static int64_t size_at(em_t *a, em_x_t x, int from_end) {
  ag_type_t t = ag_type(a, x);
  return t.rank < from_end ? 1 : t.sizes[t.rank - from_end];
}
static int64_t rows_of(em_t *a, em_x_t x) { return size_at(a, x, 2); }
static int64_t columns_of(em_t *a, em_x_t x) { return size_at(a, x, 1); }

/* -1, 0, 1: fewer rows than columns, as many, more. Must be known. */
static int shape_of(em_t *a, em_x_t x) {
  int64_t m = rows_of(a, x), n = columns_of(a, x);
  if (m == n) return 0;
  if (AOT_DIM_IS_SYM(m) || AOT_DIM_IS_SYM(n))
    em_fail(a, AOT_E_INVALID, "specialise the size when exporting",
            "the derivative for a matrix of different symbolic sizes is not supported");
  return m < n ? -1 : 1;
}

/* ---- Cholesky ---- */

/* A = L L^T: dA = L^-T S L^-1 with S the mean of tril(L^T dL), its diagonal halved, and its transpose. */
void ag_rule_cholesky(em_t *a) {
  int is_upper = ag_is_set(a, "upper", 0);
  em_x_t l = is_upper ? ag_turned(a, ag_y(a, 0)) : ag_y(a, 0), g = is_upper ? ag_turned(a, ag_g(a, 0)) : ag_g(a, 0), s;
  if (!em_is_value(g)) return;
  s = ag_product_of(a, ag_turned(a, l), g);
  s = ag_add(a, lower(a, s, 0), lower(a, s, -1));
  s = ag_mul(a, ag_add(a, s, ag_turned(a, s)), em_f(0.25));
  s = solve_triangle(a, l, solve_triangle(a, ag_turned(a, l), s, 1, 1, 0), 0, 0, 0);
  ag_set(a, "self", s);
}

/* X = A^-1 B: dB = A^-1 g, dA = -dB X^T, and A = L L^T or U^T U. */
void ag_rule_cholesky_solve(em_t *a) {
  em_x_t l = ag_arg(a, "input2"), is_upper = ag_arg(a, "upper"), d, s;
  d = AG_OP(a, "cholesky_solve", ag_g(a, 0), l, is_upper);
  ag_set(a, "self", d);
  if (!ag_needs(a, "input2")) return;
  s = ag_product_of(a, d, ag_turned(a, ag_y(a, 0)));
  s = ag_neg(a, ag_add(a, s, ag_turned(a, s)));
  ag_set(a, "input2", ag_is_set(a, "upper", 0) ? ag_product_of(a, l, s) : ag_product_of(a, s, l));
}

void ag_rule_cholesky_inverse(em_t *a) {
  em_x_t l = ag_arg(a, "self"), y = ag_y(a, 0), g = ag_g(a, 0), s;
  s = ag_product_of(a, y, ag_product_of(a, ag_add(a, g, ag_turned(a, g)), y));
  ag_set(a, "self", ag_neg(a, ag_is_set(a, "upper", 0) ? ag_product_of(a, l, s) : ag_product_of(a, s, l)));
}

/* ---- inverse and determinant ---- */

void ag_rule_inverse(em_t *a) {
  em_x_t t = ag_turned(a, ag_y(a, 0));
  ag_set(a, "A", ag_neg(a, ag_product_of(a, t, ag_product_of(a, ag_g(a, 0), t))));
}

/* A^-T diag(x, .., x) for the numbers x of each matrix; the factors are those of the transpose (kernels_linalg.c). */
static em_x_t through_inverse(em_t *a, em_x_t lu, em_x_t pivots, em_x_t x) {
  ag_type_t t = ag_type(a, pivots);
  x = AG_OP(a, "diag_embed", ag_expand(a, column(a, x), t.sizes, t.rank));
  return AG_OP(a, "linalg_lu_solve", lu, pivots, x, em_b(1), em_b(0));
}

/* det(A) A^-T. A zero pivot is replaced by a small one in the factors and in the determinant, which gives the cofactors
 * of a singular matrix as well. */
void ag_rule_det(em_t *a) {
  em_x_t lu = ag_y(a, 1), pivots = ag_y(a, 2), g = ag_g(a, 0), d = diagonal(a, lu), fixed, odd, det, order;
  ag_type_t t = ag_type(a, pivots), tl = ag_type(a, lu);
  double eps = tl.dtype == AOT_F64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
  int64_t last = -1;
  if (!em_is_value(g)) return;
  fixed = ag_where(a, ag_compare(a, "eq", d, em_i(0)), em_f(eps), d);
  lu = ag_add(a, lu, AG_OP(a, "diag_embed", ag_sub(a, fixed, d)));
  order = AG_OP(a, "arange.start_step", em_i(1), em_i(ag_dim_op(a, AOT_EXPR_ADD, t.sizes[t.rank - 1], 1)), em_i(1),
                aot_arg_dtype(AOT_I64), em_none(), ag_device(&t));
  odd = ag_cast(a, ag_compare(a, "ne", pivots, order), tl.dtype);
  odd = AG_OP(a, "remainder.Scalar", AG_OP(a, "sum.dim_IntList", odd, em_list(a, &last, 1)), em_i(2));
  det = ag_mul(a, AG_OP(a, "prod.dim_int", fixed, em_i(-1)), ag_sub(a, em_i(1), ag_mul(a, odd, em_i(2))));
  ag_set(a, "A", through_inverse(a, lu, pivots, ag_mul(a, g, det)));
}

/* The sign is a constant. */
void ag_rule_slogdet(em_t *a) {
  em_x_t g = ag_g(a, 1);
  if (em_is_value(g)) ag_set(a, "A", through_inverse(a, ag_y(a, 2), ag_y(a, 3), g));
}

/* ---- solves ---- */

/* The gradient of A for op(A) X = B or X op(A) = B, from X and the gradient of B. */
static em_x_t matrix_gradient(em_t *a, em_x_t d, em_x_t x, int left, int transposed) {
  em_x_t p;
  if (left) p = transposed ? ag_product_of(a, x, ag_turned(a, d)) : ag_product_of(a, d, ag_turned(a, x));
  else p = transposed ? ag_product_of(a, ag_turned(a, d), x) : ag_product_of(a, ag_turned(a, x), d);
  return ag_neg(a, p);
}

/* The right-hand side is a vector, or a batch of them. */
static int is_vector(em_t *a, em_x_t matrix, em_x_t b) {
  ag_type_t tm = ag_type(a, matrix), tb = ag_type(a, b);
  int32_t d;
  if (tb.rank == 1) return 1;
  if (tb.rank != tm.rank - 1) return 0;
  for (d = 0; d < tb.rank && tb.sizes[d] == tm.sizes[d]; d++) continue;
  return d == tb.rank;
}

void ag_rule_solve(em_t *a) {
  em_x_t x = ag_y(a, 0), g = ag_g(a, 0), d;
  int left = ag_is_set(a, "left", 1), vector = is_vector(a, ag_arg(a, "A"), ag_arg(a, "B"));
  if (!em_is_value(g)) return;
  if (vector) {
    x = column(a, x);
    g = column(a, g);
  }
  d = AG_OP(a, "linalg_lu_solve", ag_y(a, 1), ag_y(a, 2), g, em_b(left), em_b(1));
  if (ag_needs(a, "A")) ag_set(a, "A", matrix_gradient(a, d, x, left, 0));
  ag_set(a, "B", vector ? AG_OP(a, "squeeze.dim", d, em_i(-1)) : d);
}

void ag_rule_solve_triangular(em_t *a) {
  em_x_t t = ag_arg(a, "self"), d;
  int is_upper = ag_is_set(a, "upper", 0), left = ag_is_set(a, "left", 1), unit = ag_is_set(a, "unitriangular", 0);
  d = solve_triangle(a, ag_turned(a, t), ag_g(a, 0), !is_upper, left, unit);
  ag_set(a, "B", d);
  if (!em_is_value(d) || !ag_needs(a, "self")) return;
  d = matrix_gradient(a, d, ag_y(a, 0), left, 0);
  ag_set(a, "self", is_upper ? upper(a, d, unit) : lower(a, d, -unit));
}

/* (solution, the coefficients as they are) */
void ag_rule_triangular_solve(em_t *a) {
  em_x_t t = ag_arg(a, "A"), g = ag_g(a, 0), d = em_none();
  int is_upper = ag_is_set(a, "upper", 1), transposed = ag_is_set(a, "transpose", 0),
      unit = ag_is_set(a, "unitriangular", 0);
  if (em_is_value(g)) {
    d = solve_triangle(a, transposed ? t : ag_turned(a, t), g, is_upper == transposed, 1, unit);
    ag_set(a, "self", d);
    d = matrix_gradient(a, d, ag_y(a, 0), 1, transposed);
    d = is_upper ? upper(a, d, unit) : lower(a, d, -unit);
  }
  if (ag_needs(a, "A")) ag_set(a, "A", ag_add(a, d, ag_g(a, 1)));
}

/* ---- LU ---- */

typedef struct plu {
  em_x_t p, l, u;
} plu_t;

static plu_t unpacked(em_t *a, em_x_t lu, em_x_t pivots) {
  const em_x_t args[] = {lu, pivots, em_b(1), em_b(1)};
  em_x_t out[3];
  plu_t f;
  ag_call_n(a, "lu_unpack", 4, args, 3, out);
  f.p = out[0];
  f.l = out[1];
  f.u = out[2];
  return f;
}

/* Square A = P L U: dA = P L^-T [tril(L^T dL, -1) + triu(dU U^T)] U^-T; x and y are L^T dL and dU U^T. */
static em_x_t through_square(em_t *a, const plu_t *f, em_x_t x, em_x_t y) {
  em_x_t s = ag_add(a, em_is_value(x) ? lower(a, x, -1) : x, em_is_value(y) ? upper(a, y, 0) : y);
  s = solve_triangle(a, ag_turned(a, f->l), s, 1, 1, 1);
  return solve_triangle(a, ag_turned(a, f->u), s, 0, 0, 0);
}

static em_x_t both(em_t *a, em_x_t x, em_x_t y, int dim) {
  uint32_t ids[2];
  if (!em_is_value(x) || !em_is_value(y)) return em_none();
  ids[0] = (uint32_t)x.u.i;
  ids[1] = (uint32_t)y.u.i;
  return AG_OP(a, "cat", aot_arg_values(ids, 2), em_i(dim));
}

/* Columns beyond the square: U2 = L^-1 (P^T A)2, which makes L's gradient lose dU2 U2^T. Rows beyond it: L2 = (P^T A)2
 * U^-1, which makes U's lose L2^T dL2. */
static em_x_t through_plu(em_t *a, plu_t f, em_x_t gl, em_x_t gu) {
  int shape = shape_of(a, ag_arg(a, "A"));
  em_x_t x = ag_product_of(a, ag_turned(a, f.l), gl), y = ag_product_of(a, gu, ag_turned(a, f.u)), more, d;
  int64_t k = columns_of(a, f.l);
  if (shape == 0 || a->status != AOT_OK) return ag_product_of(a, f.p, through_square(a, &f, x, y));
  if (shape < 0) {
    plu_t square = {f.p, f.l, first(a, f.u, -1, k)};
    em_x_t gu1 = em_is_value(gu) ? first(a, gu, -1, k) : gu, gu2 = em_is_value(gu) ? rest(a, gu, -1, k) : gu;
    y = ag_product_of(a, gu1, ag_turned(a, square.u));
    x = ag_sub(a, x, ag_product_of(a, gu2, ag_turned(a, rest(a, f.u, -1, k))));
    more =
        em_is_value(gu2) ? solve_triangle(a, ag_turned(a, f.l), gu2, 1, 1, 1) : ag_zeros_like(a, rest(a, f.u, -1, k));
    d = both(a, through_square(a, &square, x, y), more, -1);
  } else {
    plu_t square = {f.p, first(a, f.l, -2, k), f.u};
    em_x_t gl1 = em_is_value(gl) ? first(a, gl, -2, k) : gl, gl2 = em_is_value(gl) ? rest(a, gl, -2, k) : gl;
    x = ag_product_of(a, ag_turned(a, square.l), gl1);
    y = ag_sub(a, y, ag_product_of(a, ag_turned(a, rest(a, f.l, -2, k)), gl2));
    more =
        em_is_value(gl2) ? solve_triangle(a, ag_turned(a, f.u), gl2, 0, 0, 0) : ag_zeros_like(a, rest(a, f.l, -2, k));
    d = both(a, through_square(a, &square, x, y), more, -2);
  }
  return ag_product_of(a, f.p, d);
}

/* linalg_lu -> (P, L, U): P is a constant */
void ag_rule_lu(em_t *a) {
  plu_t f = {ag_y(a, 0), ag_y(a, 1), ag_y(a, 2)};
  em_x_t gl = ag_g(a, 1), gu = ag_g(a, 2);
  if (em_is_value(gl) || em_is_value(gu)) ag_set(a, "A", through_plu(a, f, gl, gu));
}

void ag_rule_lu_factor(em_t *a) {
  em_x_t lu = ag_y(a, 0), g = ag_g(a, 0);
  int64_t k;
  int shape;
  if (!em_is_value(g)) return;
  shape = shape_of(a, lu);
  k = shape < 0 ? rows_of(a, lu) : columns_of(a, lu);
  ag_set(a, "A",
         through_plu(a, unpacked(a, lu, ag_y(a, 1)), shape < 0 ? first(a, g, -1, k) : g,
                     shape > 0 ? first(a, g, -2, k) : g));
}

/* n zeros after x along the last dimension, or the one before it */
static em_x_t padded(em_t *a, em_x_t x, int dim, int64_t n) {
  int64_t pad[4] = {0, dim == -1 ? n : 0, 0, dim == -2 ? n : 0};
  return n == 0 ? x : AG_OP(a, "constant_pad_nd", x, em_list(a, pad, 4), em_i(0));
}

/* The factors share a matrix: L below its diagonal, U from it on. */
void ag_rule_lu_unpack(em_t *a) {
  em_x_t lu = ag_arg(a, "LU_data"), gl = ag_g(a, 1), gu = ag_g(a, 2);
  int shape = shape_of(a, lu);
  int64_t more = ag_dim_op(a, AOT_EXPR_SUB, rows_of(a, lu), columns_of(a, lu));
  if (em_is_value(gl)) gl = lower(a, shape < 0 ? padded(a, gl, -1, -more) : gl, -1);
  if (em_is_value(gu)) gu = upper(a, shape > 0 ? padded(a, gu, -2, more) : gu, 0);
  ag_set(a, "LU_data", ag_add(a, gl, gu));
}

/* From the gradient of A = P L U to its factors: dL = tril(P^T dA U^T, -1), dU = triu(L^T P^T dA). */
void ag_rule_lu_solve(em_t *a) {
  em_x_t lu = ag_arg(a, "LU"), pivots = ag_arg(a, "pivots"), d;
  int left = ag_is_set(a, "left", 1), transposed = ag_is_set(a, "adjoint", 0);
  plu_t f;
  if (!em_is_value(ag_g(a, 0))) return;
  d = AG_OP(a, "linalg_lu_solve", lu, pivots, ag_g(a, 0), em_b(left), em_b(!transposed));
  ag_set(a, "B", d);
  if (!ag_needs(a, "LU")) return;
  f = unpacked(a, lu, pivots);
  d = ag_product_of(a, ag_turned(a, f.p), matrix_gradient(a, d, ag_y(a, 0), left, transposed));
  ag_set(a, "LU",
         ag_add(a, lower(a, ag_product_of(a, d, ag_turned(a, f.u)), -1),
                upper(a, ag_product_of(a, ag_turned(a, f.l), d), 0)));
}

/* ---- QR ---- */

/* No more columns than rows: dA = [dQ + Q (S+ with its diagonal once)] R^-T, S = triu(dR R^T - Q^T dQ). */
static em_x_t through_qr(em_t *a, em_x_t q, em_x_t r, em_x_t gq, em_x_t gr) {
  em_x_t s = ag_sub(a, ag_product_of(a, gr, ag_turned(a, r)), ag_product_of(a, ag_turned(a, q), gq));
  s = ag_add(a, upper(a, s, 0), ag_turned(a, upper(a, s, 1)));
  return solve_triangle(a, ag_turned(a, r), ag_add(a, gq, ag_product_of(a, q, s)), 0, 0, 0);
}

/* Wide A = [X Y]: X = Q U and V = Q^T Y, so that V's gradient flows to Q and Y. */
void ag_rule_qr(em_t *a) {
  em_x_t x = ag_arg(a, "A"), q = ag_y(a, 0), r = ag_y(a, 1), gq = ag_g(a, 0), gr = ag_g(a, 1), mode = ag_arg(a, "mode"),
         gv, d;
  int64_t m = rows_of(a, x);
  int shape = shape_of(a, x);
  if (mode.kind == AOT_ARG_STR && mode.n == 1) {
    em_fail(a, AOT_E_INVALID, "use mode='reduced'",
            "the derivative of linalg_qr needs Q, which mode='r' does not compute");
    return;
  }
  if (mode.kind == AOT_ARG_STR && mode.n == 8 && mode.u.chars[0] == 'c' && shape > 0) {
    em_fail(a, AOT_E_INVALID, "use mode='reduced'",
            "linalg_qr with mode='complete' has no derivative for more rows than columns");
    return;
  }
  if (!em_is_value(gq) && !em_is_value(gr)) return;
  if (shape >= 0) {
    ag_set(a, "A", through_qr(a, q, r, gq, gr));
    return;
  }
  gv = em_is_value(gr) ? rest(a, gr, -1, m) : gr;
  if (em_is_value(gr)) gr = first(a, gr, -1, m);
  gq = ag_add(a, gq, ag_product_of(a, rest(a, x, -1, m), ag_turned(a, gv)));
  d = through_qr(a, q, first(a, r, -1, m), gq, gr);
  ag_set(a, "A", both(a, d, em_is_value(gv) ? ag_product_of(a, q, gv) : ag_zeros_like(a, rest(a, x, -1, m)), -1));
}

/* ---- singular values and eigenvalues ---- */

/* x_k - x_j, 1 on the diagonal */
static em_x_t differences(em_t *a, em_x_t x) {
  int64_t n = columns_of(a, x);
  return ag_add(a, ag_sub(a, row(a, x), column(a, x)), ag_unit(a, n, n, x));
}

static em_x_t skew(em_t *a, em_x_t x) { return ag_sub(a, x, ag_turned(a, x)); }

/* The part of the gradient of U beyond U's own span, U' = dU / S - U U^T dU / S; for V in its columns. */
static em_x_t outside(em_t *a, em_x_t u, em_x_t gu, em_x_t s) {
  em_x_t d = ag_div(a, gu, row(a, s));
  return ag_sub(a, d, ag_product_of(a, u, ag_product_of(a, ag_turned(a, u), d)));
}

/* dA = U [(skew(U^T dU) / E) S + S (skew(V^T dV) / E) + dS] V^T, E_jk = S_k^2 - S_j^2, and what is outside of the
 * bases. */
static em_x_t through_svd(em_t *a, em_x_t u, em_x_t s, em_x_t v, em_x_t gu, em_x_t gs, em_x_t gv, int shape) {
  em_x_t inner = em_is_value(gs) ? AG_OP(a, "diag_embed", gs) : gs, d, e;
  if (em_is_value(gu) || em_is_value(gv)) {
    e = differences(a, ag_mul(a, s, s));
    if (em_is_value(gu))
      inner = ag_add(a, inner, ag_mul(a, ag_div(a, skew(a, ag_product_of(a, ag_turned(a, u), gu)), e), row(a, s)));
    if (em_is_value(gv))
      inner = ag_add(a, inner, ag_mul(a, column(a, s), ag_div(a, skew(a, ag_product_of(a, ag_turned(a, v), gv)), e)));
  }
  d = ag_product_of(a, u, inner);
  if (shape > 0 && em_is_value(gu)) d = ag_add(a, d, outside(a, u, gu, s));
  d = ag_product_of(a, d, ag_turned(a, v));
  if (shape < 0 && em_is_value(gv)) d = ag_add(a, d, ag_product_of(a, u, ag_turned(a, outside(a, v, gv, s))));
  return d;
}

/* Vectors beyond the square part are constants. Without vectors the factorization is made again, with them. */
void ag_rule_svd(em_t *a) {
  em_x_t x = ag_arg(a, "A"), y[3] = {ag_y(a, 0), ag_y(a, 1), ag_y(a, 2)}, gu = ag_g(a, 0), gs = ag_g(a, 1),
         gv = ag_g(a, 2);
  int shape = shape_of(a, x);
  int64_t k = shape < 0 ? rows_of(a, x) : columns_of(a, x);
  if (!ag_is_set(a, "compute_uv", 1)) {
    const em_x_t args[] = {x, em_b(0), em_b(1)};
    gu = gv = em_none();
    ag_call_n(a, "_linalg_svd", 3, args, 3, y);
  } else if (ag_is_set(a, "full_matrices", 0)) {
    y[0] = first(a, y[0], -1, k);
    y[2] = first(a, y[2], -2, k);
    if (em_is_value(gu)) gu = first(a, gu, -1, k);
    if (em_is_value(gv)) gv = first(a, gv, -2, k);
  }
  if (!em_is_value(gu) && !em_is_value(gs) && !em_is_value(gv)) return;
  ag_set(a, "A", through_svd(a, y[0], y[1], ag_turned(a, y[2]), gu, gs, ag_turned(a, gv), shape));
}

/* dA = V [skew(V^T dV) / 2 / (w_j - w_i) + diag(dw)] V^T */
void ag_rule_eigh(em_t *a) {
  em_x_t y[2] = {ag_y(a, 0), ag_y(a, 1)}, gw = ag_g(a, 0), gv = ag_g(a, 1), d;
  if (!ag_is_set(a, "compute_v", 1)) {
    const em_x_t args[] = {ag_arg(a, "A"), ag_arg(a, "UPLO"), em_b(1)};
    gv = em_none();
    ag_call_n(a, "_linalg_eigh", 3, args, 2, y);
  }
  if (!em_is_value(gw) && !em_is_value(gv)) return;
  d = em_is_value(gw) ? AG_OP(a, "diag_embed", gw) : gw;
  if (em_is_value(gv))
    d = ag_add(
        a, d, ag_div(a, ag_mul(a, skew(a, ag_product_of(a, ag_turned(a, y[1]), gv)), em_f(0.5)), differences(a, y[0])));
  ag_set(a, "A", ag_product_of(a, y[1], ag_product_of(a, d, ag_turned(a, y[1]))));
}

/* ---- pseudo-inverse, least squares, exponential ---- */

/* x minus its projection: (I - A P) x */
static em_x_t without(em_t *a, em_x_t x, em_x_t first_factor, em_x_t second_factor) {
  return ag_sub(a, x, ag_product_of(a, first_factor, ag_product_of(a, second_factor, x)));
}

/* P = A^+: dA = -P^T g P^T + (I - A P) g^T P P^T + P^T P g^T (I - P A) */
static em_x_t through_pinv(em_t *a, em_x_t x, em_x_t p, em_x_t g) {
  em_x_t pt = ag_turned(a, p), gt = ag_turned(a, g), one, two, three;
  one = ag_product_of(a, pt, ag_product_of(a, g, pt));
  two = without(a, ag_product_of(a, gt, ag_product_of(a, p, pt)), x, p);
  three = without(a, ag_product_of(a, g, ag_product_of(a, pt, p)), ag_turned(a, x), pt);
  return ag_sub(a, ag_add(a, two, ag_turned(a, three)), one);
}

/* The tolerances decide, they do not take part: zero gradients. */
void ag_rule_pinv(em_t *a) {
  if (em_is_value(ag_g(a, 0))) ag_set(a, "self", through_pinv(a, ag_arg(a, "self"), ag_y(a, 0), ag_g(a, 0)));
}

/* X = A^+ B. The residuals are |A X - B|^2, whose derivative by X is 0. */
void ag_rule_lstsq(em_t *a) {
  em_x_t x = ag_arg(a, "self"), b = ag_arg(a, "b"), y = ag_y(a, 0), g = ag_g(a, 0), gl = ag_g(a, 1), da = em_none(),
         db = em_none(), p;
  int vector = is_vector(a, x, b);
  if (vector) {
    b = column(a, b);
    y = column(a, y);
    if (em_is_value(g)) g = column(a, g);
  }
  if (em_is_value(g)) {
    p = AG_OP(a, "linalg_pinv.atol_rtol_tensor", x);
    db = ag_product_of(a, ag_turned(a, p), g);
    if (ag_needs(a, "self")) da = through_pinv(a, x, p, ag_product_of(a, g, ag_turned(a, b)));
  }
  if (em_is_value(gl) && columns_of(a, gl) == columns_of(a, b)) {
    p = ag_mul(a, ag_mul(a, row(a, gl), em_i(2)), ag_sub(a, ag_product_of(a, x, y), b));
    da = ag_add(a, da, ag_product_of(a, p, ag_turned(a, y)));
    db = ag_sub(a, db, p);
  }
  if (ag_needs(a, "self")) ag_set(a, "self", da);
  if (ag_needs(a, "b")) ag_set(a, "b", vector && em_is_value(db) ? AG_OP(a, "squeeze.dim", db, em_i(-1)) : db);
}

/* exp [A^T g; 0 A^T] has the gradient in its corner. */
void ag_rule_matrix_exp(em_t *a) {
  em_x_t t = ag_turned(a, ag_arg(a, "self")), g = ag_g(a, 0), y;
  int64_t n = rows_of(a, t);
  if (!em_is_value(g)) return;
  y = both(a, both(a, t, g, -1), both(a, ag_zeros_like(a, t), t, -1), -2);
  ag_set(a, "self", rest(a, first(a, AG_OP(a, "linalg_matrix_exp", y), -2, n), -1, n));
}
