/* Linear algebra. Matrices that LAPACK writes lie column by column, as PyTorch leaves them; numbers of each matrix
 * are dense. */
#include "shape_rules.h"

#include <aot/inline.h>

#include <string.h>

/* ---- matrices ---- */

static aot_type_t need_rank(at_infer_t *c, const char *name) {
  aot_type_t t = at_tensor(c, name);
  if (t.rank < 2)
    at_fail(c, "%s: '%s' must be a matrix or a batch of them, not of rank %d", c->row->name, name, (int)t.rank);
  return t;
}

/* LAPACK's dtypes; the rest is refused, as PyTorch does. */
static aot_type_t need_matrix(at_infer_t *c, const char *name) {
  aot_type_t t = at_tensor(c, name);
  if (t.dtype != AOT_F32 && t.dtype != AOT_F64)
    at_fail(c, "%s takes float32 and float64, not %s ('%s')", c->row->name, aot_dtype_name(t.dtype), name);
  return need_rank(c, name);
}

static int64_t rows_of(const aot_type_t *t) { return t->rank < 2 ? 0 : t->sizes[t->rank - 2]; }
static int64_t columns_of(const aot_type_t *t) { return t->rank < 2 ? 0 : t->sizes[t->rank - 1]; }

static aot_type_t need_square(at_infer_t *c, const char *name) {
  aot_type_t t = need_matrix(c, name);
  if (c->status == AOT_OK && at_differs(c, rows_of(&t), columns_of(&t)))
    at_fail(c, "%s: '%s' must be square, not %lld x %lld", c->row->name, name, (long long)at_hint(c, rows_of(&t)),
            (long long)at_hint(c, columns_of(&t)));
  return t;
}

static void one_dtype(at_infer_t *c, const aot_type_t *a, const aot_type_t *b) {
  if (c->status == AOT_OK && a->dtype != b->dtype)
    at_fail(c, "%s of %s with %s: both must have one dtype", c->row->name, aot_dtype_name(a->dtype),
            aot_dtype_name(b->dtype));
}

/* Strides of sizes whose last two dimensions lie column by column, `gap` >= rows apart. */
static void put_columns_apart(at_infer_t *c, int32_t dtype, const int64_t *sizes, int32_t rank, int64_t gap) {
  int64_t *turned = at_dims_copy(c, sizes, rank), *strides = at_dims(c, AOT_MAX_RANK), last;
  if (c->status != AOT_OK) return;
  turned[rank - 2] = sizes[rank - 1];
  turned[rank - 1] = gap;
  at_strides_contiguous(c, turned, rank, strides);
  last = strides[rank - 1];
  strides[rank - 1] = strides[rank - 2];
  strides[rank - 2] = last;
  at_put_strided(c, dtype, sizes, strides, rank);
}

static void put_columns(at_infer_t *c, int32_t dtype, const int64_t *sizes, int32_t rank) {
  put_columns_apart(c, dtype, sizes, rank, sizes[rank - 2]);
}

/* Matrices of rows x columns over t's leading dimensions, in columns; or row by row. */
static int64_t *with_matrix(at_infer_t *c, const aot_type_t *t, int64_t rows, int64_t columns) {
  int64_t *sizes = at_dims_copy(c, t->sizes, t->rank);
  if (c->status != AOT_OK) return sizes;
  sizes[t->rank - 2] = rows;
  sizes[t->rank - 1] = columns;
  return sizes;
}
static void put_matrix(at_infer_t *c, const aot_type_t *t, int64_t rows, int64_t columns) {
  int64_t *sizes = with_matrix(c, t, rows, columns);
  if (c->status == AOT_OK) put_columns(c, t->dtype, sizes, t->rank);
}
static void put_dense_matrix(at_infer_t *c, const aot_type_t *t, int64_t rows, int64_t columns) {
  int64_t *sizes = with_matrix(c, t, rows, columns);
  if (c->status == AOT_OK) at_put(c, t->dtype, sizes, t->rank);
}

/* One number of each matrix, or n of them. */
static void put_number(at_infer_t *c, const aot_type_t *t, int32_t dtype) {
  if (c->status == AOT_OK) at_put(c, dtype, t->sizes, t->rank - 2);
}
static void put_numbers(at_infer_t *c, const aot_type_t *t, int32_t dtype, int64_t n) {
  int64_t *sizes = at_dims_copy(c, t->sizes, t->rank);
  if (c->status != AOT_OK) return;
  sizes[t->rank - 2] = n;
  at_put(c, dtype, sizes, t->rank - 1);
}

/* What is not computed: a tensor without elements. */
static void put_nothing(at_infer_t *c, int32_t dtype) {
  int64_t *sizes = at_dims(c, 1);
  sizes[0] = 0;
  at_put(c, dtype, sizes, 1);
}

static const char *matrix_name(at_infer_t *c) { return at_has(c, "A") ? "A" : at_has(c, "input") ? "input" : "self"; }
static int64_t smaller(at_infer_t *c, const aot_type_t *t) { return at_min(c, rows_of(t), columns_of(t)); }

/* ---- one square matrix ---- */

/* inverses and Cholesky factors: (matrix[, info]) */
void at_shape_square(at_infer_t *c) {
  aot_type_t t = need_square(c, matrix_name(c));
  put_matrix(c, &t, rows_of(&t), columns_of(&t));
  if (c->desc->n_results > 1) put_number(c, &t, AOT_I32);
}

/* cholesky leaves a batch without elements row by row. */
void at_shape_cholesky(at_infer_t *c) {
  aot_type_t t = need_square(c, "self");
  if (at_same(c, at_numel(c, t.sizes, t.rank), 0)) put_dense_matrix(c, &t, rows_of(&t), columns_of(&t));
  else put_matrix(c, &t, rows_of(&t), columns_of(&t));
}

/* det, slogdet, logdet: one or two numbers[, LU, pivots] */
void at_shape_det(at_infer_t *c) {
  aot_type_t t = need_square(c, matrix_name(c));
  int numbers = strstr(c->row->name, "slogdet") ? 2 : 1;
  put_number(c, &t, t.dtype);
  if (numbers == 2) put_number(c, &t, t.dtype);
  if ((int)c->desc->n_results == numbers) return;
  put_matrix(c, &t, rows_of(&t), columns_of(&t));
  put_numbers(c, &t, AOT_I32, rows_of(&t));
}

/* Any floating dtype, row by row. */
void at_shape_matrix_exp(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  if (!aot_dtype_is_float(t.dtype))
    at_fail(c, "%s takes floating dtypes, not %s", c->row->name, aot_dtype_name(t.dtype));
  else if (t.rank < 2 || at_differs(c, rows_of(&t), columns_of(&t)))
    at_fail(c, "%s takes square matrices", c->row->name);
  at_put(c, t.dtype, t.sizes, t.rank);
}

void at_shape_matrix_power(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  if (t.rank < 2 || at_differs(c, rows_of(&t), columns_of(&t))) at_fail(c, "%s takes square matrices", c->row->name);
  at_put(c, t.dtype, t.sizes, t.rank);
}

/* _linalg_eigh: (eigenvalues, eigenvectors); eigvalsh: the first */
void at_shape_eigh(at_infer_t *c) {
  aot_type_t t = need_square(c, matrix_name(c));
  static const char *const triangles[] = {"L", "U", "l", "u"};
  int known = 0;
  for (int i = 0; i < 4; i++) known |= at_str_is(c, "UPLO", triangles[i]);
  if (!known) at_fail(c, "%s: UPLO must be 'L' or 'U'", c->row->name);
  put_numbers(c, &t, t.dtype, rows_of(&t));
  if (c->desc->n_results == 1) return;
  if (at_has(c, "compute_v") && !at_bool(c, "compute_v")) put_nothing(c, t.dtype);
  else put_matrix(c, &t, rows_of(&t), rows_of(&t));
}

/* ---- factors of one matrix ---- */

/* LU and L D L^T: (factors, pivots[, info]) */
void at_shape_factor(at_infer_t *c) {
  aot_type_t t = strstr(c->row->name, "ldl") ? need_square(c, "self") : need_matrix(c, matrix_name(c));
  if (at_has(c, "pivot") && !at_bool(c, "pivot")) at_fail(c, "%s: LU without pivoting is not supported", c->row->name);
  put_matrix(c, &t, rows_of(&t), columns_of(&t));
  put_numbers(c, &t, AOT_I32, smaller(c, &t));
  if (c->desc->n_results > 2) put_number(c, &t, AOT_I32);
}

/* linalg_lu and lu_unpack: (P, L, U), row by row. What is there is unpacked in any float. */
void at_shape_plu(at_infer_t *c) {
  int unpack = at_has(c, "LU_data");
  aot_type_t t = unpack ? need_rank(c, "LU_data") : need_matrix(c, "A");
  int64_t k = smaller(c, &t);
  if (at_has(c, "pivot") && !at_bool(c, "pivot")) at_fail(c, "%s: LU without pivoting is not supported", c->row->name);
  if (unpack && !at_bool(c, "unpack_pivots")) put_nothing(c, t.dtype);
  else put_dense_matrix(c, &t, rows_of(&t), rows_of(&t));
  if (unpack && !at_bool(c, "unpack_data")) {
    put_nothing(c, t.dtype);
    put_nothing(c, t.dtype);
    return;
  }
  put_dense_matrix(c, &t, rows_of(&t), k);
  put_dense_matrix(c, &t, k, columns_of(&t));
}

/* (a, tau) */
void at_shape_geqrf(at_infer_t *c) {
  aot_type_t t = need_matrix(c, "self");
  put_matrix(c, &t, rows_of(&t), columns_of(&t));
  put_numbers(c, &t, t.dtype, smaller(c, &t));
}

/* (Q, R): reduced, complete, r; `some` of the old spelling is reduced */
void at_shape_qr(at_infer_t *c) {
  aot_type_t t = need_matrix(c, matrix_name(c));
  int old = at_has(c, "some"), only_r = at_str_is(c, "mode", "r");
  int complete = old ? !at_bool(c, "some") : at_str_is(c, "mode", "complete");
  int64_t width;
  if (!old && !complete && !only_r && !at_str_is(c, "mode", "reduced"))
    at_fail(c, "%s: mode must be 'reduced', 'complete' or 'r'", c->row->name);
  width = complete ? rows_of(&t) : smaller(c, &t);
  if (only_r) put_nothing(c, t.dtype);
  else put_matrix(c, &t, rows_of(&t), width);
  put_matrix(c, &t, width, columns_of(&t));
}

/* The reflectors of `matrix` have factors `tau`: one list for each matrix, no more than columns. */
static void check_reflectors(at_infer_t *c, const aot_type_t *t, const char *tau_name) {
  aot_type_t tau = at_tensor(c, tau_name);
  one_dtype(c, t, &tau);
  if (c->status != AOT_OK) return;
  if (tau.rank != t->rank - 1)
    at_fail(c, "%s: '%s' must have rank %d, not %d", c->row->name, tau_name, (int)t->rank - 1, (int)tau.rank);
  for (int32_t d = 0; d + 1 < tau.rank; d++)
    if (at_differs(c, tau.sizes[d], t->sizes[d]))
      at_fail(c, "%s: '%s' has another batch than the matrices", c->row->name, tau_name);
  if (c->status == AOT_OK && at_below(c, columns_of(t), tau.sizes[tau.rank - 1]))
    at_fail(c, "%s: %lld factors for %lld columns", c->row->name, (long long)at_hint(c, tau.sizes[tau.rank - 1]),
            (long long)at_hint(c, columns_of(t)));
}

void at_shape_householder_product(at_infer_t *c) {
  int old = at_has(c, "input2"); /* orgqr(self, input2) */
  aot_type_t t = need_matrix(c, old ? "self" : "input");
  check_reflectors(c, &t, old ? "input2" : "tau");
  if (at_below(c, rows_of(&t), columns_of(&t))) at_fail(c, "%s takes no more columns than rows", c->row->name);
  put_matrix(c, &t, rows_of(&t), columns_of(&t));
}

void at_shape_ormqr(at_infer_t *c) {
  aot_type_t t = need_matrix(c, "self"), other = need_matrix(c, "input3");
  check_reflectors(c, &t, "input2");
  one_dtype(c, &t, &other);
  if (c->status != AOT_OK) return;
  if (other.rank != t.rank || at_differs(c, at_bool(c, "left") ? rows_of(&other) : columns_of(&other), rows_of(&t)))
    at_fail(c, "%s: Q is of order %lld, which does not fit 'input3'", c->row->name, (long long)at_hint(c, rows_of(&t)));
  put_matrix(c, &other, rows_of(&other), columns_of(&other));
}

/* (U, S, Vh), the old spelling (U, S, V) */
void at_shape_svd(at_infer_t *c) {
  aot_type_t t = need_matrix(c, matrix_name(c));
  int old = at_has(c, "some"), full = old ? !at_bool(c, "some") : at_bool(c, "full_matrices");
  int vectors = !at_has(c, "compute_uv") || at_bool(c, "compute_uv");
  int64_t m = rows_of(&t), n = columns_of(&t), k = smaller(c, &t);
  if (old && !vectors) { /* zeros */
    put_dense_matrix(c, &t, m, m);
    put_numbers(c, &t, t.dtype, k);
    put_dense_matrix(c, &t, n, n);
    return;
  }
  if (vectors) put_matrix(c, &t, m, full ? m : k);
  else put_nothing(c, t.dtype);
  put_numbers(c, &t, t.dtype, k);
  if (!vectors) put_nothing(c, t.dtype);
  else if (old) put_dense_matrix(c, &t, n, full ? n : k); /* Vh in columns, turned */
  else put_matrix(c, &t, full ? n : k, n);
}

void at_shape_svdvals(at_infer_t *c) {
  aot_type_t t = need_matrix(c, "A");
  put_numbers(c, &t, t.dtype, smaller(c, &t));
}

/* The pseudo-inverse lies row by row. */
void at_shape_pinv(at_infer_t *c) {
  aot_type_t t = at_bool(c, "hermitian") ? need_square(c, "self") : need_matrix(c, "self");
  put_dense_matrix(c, &t, columns_of(&t), rows_of(&t));
}

/* One number a matrix; tolerances given as tensors are broadcast against the batch. */
void at_shape_matrix_rank(at_infer_t *c) {
  static const char *const tolerances[] = {"tol", "atol", "rtol"};
  aot_type_t t = at_bool(c, "hermitian") ? need_square(c, matrix_name(c)) : need_matrix(c, matrix_name(c)),
             all[4] = {t};
  int64_t *sizes = at_dims(c, AOT_MAX_RANK);
  uint32_t n = 1;
  for (int k = 0; k < 3; k++)
    if (at_has(c, tolerances[k]) && at_arg(c, tolerances[k])->kind == AOT_ARG_VALUE)
      all[n++] = at_tensor(c, tolerances[k]);
  if (c->status != AOT_OK) return;
  all[0].rank -= 2;
  int32_t rank = at_broadcast(c, all, n, sizes);
  if (c->status == AOT_OK) at_put(c, AOT_I64, sizes, rank);
}

void at_shape_condition(at_infer_t *c) {
  aot_type_t t = need_matrix(c, "self");
  put_number(c, &t, t.dtype);
}

/* ---- a matrix and a right-hand side ---- */

/* The leading dimensions of both, broadcast; the answer has room for a matrix after them. */
static int64_t *shared_batch(at_infer_t *c, const aot_type_t *a, const aot_type_t *b, int32_t *out_rank) {
  int64_t *sizes = at_dims(c, AOT_MAX_RANK + 2);
  aot_type_t lead[2] = {*a, *b};
  lead[0].rank -= 2;
  lead[1].rank -= 2;
  *out_rank = c->status == AOT_OK ? at_broadcast(c, lead, 2, sizes) : 0;
  return sizes;
}

/* op(A) X = B or X op(A) = B: X, over the broadcast batch, in columns, or row by row. */
static void put_solution(at_infer_t *c, const aot_type_t *a, const aot_type_t *b, int left, int in_columns) {
  int32_t rank;
  int64_t *sizes = shared_batch(c, a, b, &rank), own = left ? rows_of(b) : columns_of(b);
  one_dtype(c, a, b);
  if (c->status == AOT_OK && at_differs(c, own, rows_of(a)))
    at_fail(c, "%s: a matrix of order %lld and a right-hand side of %lld x %lld do not fit", c->row->name,
            (long long)at_hint(c, rows_of(a)), (long long)at_hint(c, rows_of(b)), (long long)at_hint(c, columns_of(b)));
  if (c->status != AOT_OK) return;
  sizes[rank++] = rows_of(b);
  sizes[rank++] = columns_of(b);
  if (in_columns) put_columns(c, a->dtype, sizes, rank);
  else at_put(c, a->dtype, sizes, rank);
}

/* The matrices of a system, cloned over the broadcast batch. */
static void put_coefficients(at_infer_t *c, const aot_type_t *a, const aot_type_t *b) {
  int32_t rank;
  int64_t *sizes = shared_batch(c, a, b, &rank);
  if (c->status != AOT_OK) return;
  sizes[rank++] = rows_of(a);
  sizes[rank++] = rows_of(a);
  put_columns(c, a->dtype, sizes, rank);
}

/* Solves from factors, and with triangles: the argument names differ, the shapes do not. */
void at_shape_solve_factored(at_infer_t *c) {
  static const struct {
    const char *matrix, *right;
  } names[] = {{"LU", "B"}, {"LD", "B"}, {"LU_data", "self"}, {"input2", "self"}, {"A", "self"}, {"self", "B"}};
  size_t i = 0;
  aot_type_t a, b;
  while (i < 5 && !(at_has(c, names[i].matrix) && at_has(c, names[i].right))) i++;
  a = need_square(c, names[i].matrix);
  b = need_matrix(c, names[i].right);
  {
    int left = !at_has(c, "left") || at_bool(c, "left");
    put_solution(c, &a, &b, left, left || names[i].matrix[0] != 'L');
    if (c->desc->n_results > 1) put_coefficients(c, &a, &b); /* triangular_solve */
  }
}

/* B is a vector, or a batch of them with A's leading dimensions. */
static int is_vector(at_infer_t *c, const aot_type_t *a, const aot_type_t *b) {
  if (b->rank == 1) return 1;
  if (b->rank != a->rank - 1) return 0;
  for (int32_t d = 0; d < b->rank; d++)
    if (at_differs(c, a->sizes[d], b->sizes[d])) return 0;
  return 1;
}

/* A right-hand side; a vector becomes a matrix of one column. */
static aot_type_t need_right(at_infer_t *c, const aot_type_t *a, const char *name, int *out_vector) {
  aot_type_t b = at_tensor(c, name);
  int64_t *sizes = at_dims(c, AOT_MAX_RANK + 1);
  *out_vector = c->status == AOT_OK && is_vector(c, a, &b);
  if (c->status == AOT_OK && (b.rank < 1 || (b.rank < 2 && !*out_vector)))
    at_fail(c, "%s: '%s' must be a vector or a matrix, or a batch of them", c->row->name, name);
  if (c->status != AOT_OK || !*out_vector) return b;
  memcpy(sizes, b.sizes, (size_t)b.rank * sizeof *sizes);
  sizes[b.rank] = 1;
  b.sizes = sizes;
  b.rank++;
  return b;
}

/* _linalg_solve_ex: (result, LU, pivots, info); linalg_solve_ex: (result, info); linalg_solve: (result). The strides of
 * a batch of vectors are those of a matrix of that size. */
void at_shape_linalg_solve(at_infer_t *c) {
  aot_type_t a = need_square(c, "A"), b;
  int vector, left = at_bool(c, "left");
  if (c->status != AOT_OK) return;
  b = need_right(c, &a, "B", &vector);
  if (vector && !left) at_fail(c, "%s: a vector on the right needs left=True", c->row->name);
  if (!vector) put_solution(c, &a, &b, left, left);
  else {
    int32_t rank;
    int64_t *sizes = shared_batch(c, &a, &b, &rank);
    one_dtype(c, &a, &b);
    if (c->status == AOT_OK && at_differs(c, rows_of(&b), rows_of(&a)))
      at_fail(c, "%s: a matrix of order %lld and a vector of %lld do not fit", c->row->name,
              (long long)at_hint(c, rows_of(&a)), (long long)at_hint(c, rows_of(&b)));
    if (c->status != AOT_OK) return;
    sizes[rank++] = rows_of(&b);
    if (rank > 1) put_columns(c, a.dtype, sizes, rank);
    else at_put(c, a.dtype, sizes, rank);
  }
  if (c->desc->n_results > 2) {
    put_matrix(c, &a, rows_of(&a), rows_of(&a));
    put_numbers(c, &a, AOT_I32, rows_of(&a));
  }
  if (c->desc->n_results > 1) put_number(c, &a, AOT_I32);
}

/* The solution is the upper part of a buffer that B fitted in. What a driver does not compute has no elements; the
 * residuals of matrices without full rank are stored, where PyTorch drops them by the data. */
void at_shape_lstsq(at_infer_t *c) {
  aot_type_t a = need_matrix(c, "self"), b, x;
  int vector, by_values = at_str_is(c, "driver", "gelsd") || at_str_is(c, "driver", "gelss"),
              gels = at_str_is(c, "driver", "gels");
  int32_t rank;
  int64_t *sizes, most;
  if (at_has(c, "driver") && !by_values && !gels && !at_str_is(c, "driver", "gelsy"))
    at_fail(c, "%s: driver must be 'gels', 'gelsy', 'gelsd' or 'gelss'", c->row->name);
  if (c->status != AOT_OK) return;
  b = need_right(c, &a, "b", &vector);
  one_dtype(c, &a, &b);
  if (c->status == AOT_OK && at_differs(c, rows_of(&b), rows_of(&a)))
    at_fail(c, "%s: matrices of %lld rows and right-hand sides of %lld do not fit", c->row->name,
            (long long)at_hint(c, rows_of(&a)), (long long)at_hint(c, rows_of(&b)));
  sizes = shared_batch(c, &a, &b, &rank);
  if (c->status != AOT_OK) return;
  most = at_max(c, rows_of(&a), columns_of(&a));
  sizes[rank] = columns_of(&a);
  sizes[rank + 1] = columns_of(&b);
  x = b;
  x.sizes = sizes;
  x.rank = rank + 2;
  if (!vector) put_columns_apart(c, a.dtype, sizes, rank + 2, most);
  else {
    int64_t *strides = at_dims(c, AOT_MAX_RANK);
    sizes[rank] = most;
    at_strides_contiguous(c, sizes, rank + 1, strides);
    sizes[rank] = columns_of(&a);
    at_put_strided(c, a.dtype, sizes, strides, rank + 1);
  }
  if (!at_at_most(c, rows_of(&a), columns_of(&a)) && (gels || by_values)) put_numbers(c, &x, a.dtype, columns_of(&b));
  else put_nothing(c, a.dtype);
  if (gels) put_nothing(c, AOT_I64);
  else put_number(c, &x, AOT_I64);
  if (by_values) put_numbers(c, &x, a.dtype, smaller(c, &a));
  else put_nothing(c, a.dtype);
}

/* ---- norms, products, reshapes ---- */

/* Dimensions of a norm: the ones named, all, or the last two of a matrix norm. */
void at_shape_linalg_norm(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  const int64_t *dims;
  uint32_t n = at_ints(c, "dim", &dims), mask = n ? at_dim_mask(c, dims, n, t.rank) : ~0u;
  int64_t *sizes = at_dims(c, AOT_MAX_RANK);
  int32_t rank = 0, keep = at_bool(c, "keepdim");
  int32_t dtype = at_has(c, "dtype") ? (int32_t)at_int(c, "dtype") : t.dtype;
  if (!aot_dtype_is_float(dtype)) at_fail(c, "%s takes floating dtypes, not %s", c->row->name, aot_dtype_name(dtype));
  for (int32_t d = 0; d < t.rank; d++) {
    if (!(mask >> d & 1)) sizes[rank++] = t.sizes[d];
    else if (keep) sizes[rank++] = 1;
  }
  at_put(c, dtype, sizes, rank);
}

/* A chain: the first and the last may be vectors. chain_matmul takes a chain of one. */
void at_shape_multi_dot(at_infer_t *c) {
  const char *list = at_list_size(c, "tensors") ? "tensors" : "matrices";
  uint32_t n = at_list_size(c, list);
  int64_t *sizes = at_dims(c, 2), inner = 0;
  int32_t rank = 0, dtype = AOT_F32;
  uint32_t least = strcmp(list, "tensors") == 0 ? 2 : 1;
  if (n < least) at_fail(c, "%s takes %u tensor%s or more, not %u", c->row->name, least, least > 1 ? "s" : "", n);
  for (uint32_t i = 0; i < n && c->status == AOT_OK; i++) {
    aot_type_t t = at_list_item(c, list, i);
    int end = i == 0 || i + 1 == n;
    if (t.rank != 2 && !(end && t.rank == 1)) at_fail(c, "%s: tensor %u has rank %d", c->row->name, i, (int)t.rank);
    else if (i && at_differs(c, inner, t.sizes[0]))
      at_fail(c, "%s: tensor %u has %lld rows, not %lld", c->row->name, i, (long long)at_hint(c, t.sizes[0]),
              (long long)at_hint(c, inner));
    if (c->status != AOT_OK) return;
    dtype = t.dtype;
    if (i == 0 && t.rank == 2) sizes[rank++] = t.sizes[0];
    inner = t.sizes[t.rank - 1];
    if (i + 1 == n && t.rank == 2) sizes[rank++] = inner;
  }
  at_put(c, dtype, sizes, rank);
}

/* x^0 .. x^(N-1) along a new last dimension */
void at_shape_linalg_vander(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "x");
  int64_t *sizes = at_dims_copy(c, t.sizes, t.rank);
  if (t.rank < 1 || t.rank >= AOT_MAX_RANK) at_fail(c, "%s of a tensor of rank %d", c->row->name, (int)t.rank);
  if (c->status != AOT_OK) return;
  sizes = at_dims(c, AOT_MAX_RANK);
  memcpy(sizes, t.sizes, (size_t)t.rank * sizeof *sizes);
  sizes[t.rank] = at_has(c, "N") ? at_int(c, "N") : t.sizes[t.rank - 1];
  at_put(c, at_is_integral(t.dtype) ? AOT_I64 : t.dtype, sizes, t.rank + 1);
}

/* The first `ind` dimensions change places with the others. */
void at_shape_tensorinv(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int64_t ind = at_int(c, "ind"), *sizes = at_dims(c, AOT_MAX_RANK);
  int32_t rank = 0;
  if (ind < 1 || ind >= t.rank)
    at_fail(c, "%s: ind = %lld must be in 1 .. %d", c->row->name, (long long)ind, (int)t.rank - 1);
  if (c->status != AOT_OK) return;
  if (at_differs(c, at_numel(c, t.sizes, (int32_t)ind), at_numel(c, t.sizes + ind, t.rank - (int32_t)ind)))
    at_fail(c, "%s: the dimensions before and after %lld have different products", c->row->name, (long long)ind);
  for (int32_t d = (int32_t)ind; d < t.rank; d++) sizes[rank++] = t.sizes[d];
  for (int32_t d = 0; d < ind; d++) sizes[rank++] = t.sizes[d];
  at_put(c, t.dtype, sizes, rank);
}

/* self, its `dims` moved to the end, has other's dimensions first; the rest is the solution's. */
void at_shape_tensorsolve(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self"), b = at_tensor(c, "other");
  const int64_t *dims;
  uint32_t n = at_ints(c, "dims", &dims), mask = n ? at_dim_mask(c, dims, n, t.rank) : 0;
  int64_t *sizes = at_dims(c, 2 * AOT_MAX_RANK);
  int32_t rank = 0;
  for (int32_t d = 0; d < t.rank; d++)
    if (!(mask >> d & 1)) sizes[rank++] = t.sizes[d];
  for (uint32_t i = 0; i < n; i++) sizes[rank++] = t.sizes[at_wrap(c, dims[i], t.rank)];
  if (c->status == AOT_OK &&
      (b.rank > rank || at_differs(c, at_numel(c, sizes, b.rank), at_numel(c, b.sizes, b.rank)) ||
       at_differs(c, at_numel(c, sizes + b.rank, rank - b.rank), at_numel(c, b.sizes, b.rank))))
    at_fail(c, "%s: 'self' is no square system for 'other'", c->row->name);
  if (c->status == AOT_OK) at_put(c, t.dtype, sizes + b.rank, rank - b.rank);
}

void at_shape_vecdot(at_infer_t *c) {
  aot_type_t t[2] = {at_tensor(c, "x"), at_tensor(c, "y")};
  int64_t *sizes = at_dims(c, AOT_MAX_RANK);
  int32_t rank = at_broadcast(c, t, 2, sizes), dim = at_wrap(c, at_int(c, "dim"), rank);
  if (c->status != AOT_OK) return;
  for (int32_t d = dim; d + 1 < rank; d++) sizes[d] = sizes[d + 1];
  at_put(c, at_promote(c, t, 2), sizes, rank ? rank - 1 : 0);
}
