/* Stacks of matrices: rk_stack.h has the contract. */
#include "rk_stack.h"

#include "kit/blas/openblas.h"
#include <aot/inline.h>
#include <string.h>

aot_status_t rs_read_stack(rk_ctx_t *c, uint32_t arg, rs_stack_t *s) {
  if (bl_library()->failure[0]) return rk_fail(c, AOT_E_EXHAUSTED, "%s", bl_library()->failure);
  AOT_TRY(rk_need_f(c, arg, &s->a));
  RK_CHECK(c, s->a.rank >= 2, "argument %u has rank %d; matrices are needed", arg, s->a.rank);
  s->rows = s->a.sizes[s->a.rank - 2];
  s->columns = s->a.sizes[s->a.rank - 1];
  RK_CHECK(c, s->rows < INT32_MAX / 64 && s->columns < INT32_MAX / 64,
           "matrices of %lld x %lld are too large for LAPACK", (long long)s->rows, (long long)s->columns);
  s->n = 1;
  for (int32_t d = 0; d < s->a.rank - 2; d++) s->n *= s->a.sizes[d];
  return AOT_OK;
}

aot_status_t rs_read_square(rk_ctx_t *c, uint32_t arg, rs_stack_t *s) {
  AOT_TRY(rs_read_stack(c, arg, s));
  RK_CHECK(c, s->rows == s->columns, "argument %u has matrices of %lld x %lld, not square ones", arg,
           (long long)s->rows, (long long)s->columns);
  return AOT_OK;
}

aot_status_t rs_new_stack(rk_ctx_t *c, const rs_stack_t *like, int64_t rows, int64_t columns, rs_stack_t *out) {
  int64_t sizes[AOT_MAX_RANK];
  memcpy(sizes, like->a.sizes, sizeof sizes);
  sizes[like->a.rank - 2] = rows;
  sizes[like->a.rank - 1] = columns;
  out->n = like->n;
  out->rows = rows;
  out->columns = columns;
  return rk_new_f(c, like->a.rank, sizes, &out->a);
}

aot_status_t rs_new_numbers(rk_ctx_t *c, const rs_stack_t *like, int64_t per, int keep, int is_float, rk_array_t *out) {
  int64_t sizes[AOT_MAX_RANK];
  memcpy(sizes, like->a.sizes, sizeof sizes);
  sizes[like->a.rank - 2] = per;
  return is_float ? rk_new_f(c, like->a.rank - 2 + keep, sizes, out) : rk_new_i(c, like->a.rank - 2 + keep, sizes, out);
}

aot_status_t rs_transpose_all(rk_ctx_t *c, const rs_stack_t *s, rs_stack_t *out) {
  AOT_TRY(rs_new_stack(c, s, s->columns, s->rows, out));
  for (int64_t i = 0; i < s->n; i++) rm_transpose(rs_matrix(s, i), s->rows, s->columns, rs_matrix(out, i));
  return AOT_OK;
}

/* ---- what LAPACK says of a matrix ---- */

/* `number` is where it went wrong. */
static const struct {
  const char *part, *text; /* of the function's name */
} complaints[] = {{"cholesky", "is not positive definite, at the leading minor of order"},
                  {"ldl", "is singular, at diagonal block"},
                  {"svd", "has no singular values that the algorithm converges to (is it finite?); code"},
                  {"eigh", "has no eigenvalues that the algorithm converges to (is it finite?); code"},
                  {"lstsq", "has no least squares solution that the algorithm finds (is it of full rank?); code"},
                  {"", "is singular, at pivot"}};

static aot_status_t complain(rk_ctx_t *c, const char *function, int64_t i, int64_t info) {
  size_t k = 0;
  if (info == RM_NO_MEMORY) return rk_fail(c, AOT_E_EXHAUSTED, "no memory for a matrix");
  while (!strstr(function, complaints[k].part)) k++;
  return rk_fail(c, AOT_E_INVALID, "%s: matrix %lld %s %lld", function, (long long)i, complaints[k].text,
                 (long long)info);
}
aot_status_t rs_converged(rk_ctx_t *c, const char *function, int64_t i, int64_t info) {
  return info ? complain(c, function, i, info) : AOT_OK;
}
aot_status_t rs_enough_memory(rk_ctx_t *c, int64_t info) {
  return info == RM_NO_MEMORY ? complain(c, "", 0, info) : AOT_OK;
}

aot_status_t rs_check_all(rk_ctx_t *c, const char *function, const rk_array_t *info) {
  for (int64_t i = 0; i < info->numel; i++)
    if (info->i[i]) return complain(c, function, i, info->i[i]);
  return AOT_OK;
}

/* ---- right-hand sides ---- */

aot_status_t rs_read_right(rk_ctx_t *c, const rs_stack_t *a, uint32_t arg, int vector_allowed, rs_right_t *r) {
  const rk_tensor_t *t;
  rk_tensor_t column;
  int64_t sizes[AOT_MAX_RANK], at[AOT_MAX_RANK] = {0};
  int32_t rank, lead_a = a->a.rank - 2;
  AOT_TRY(rk_need_tensor(c, arg, &t));
  r->is_vector =
      vector_allowed && (t->rank == 1 || (t->rank == a->a.rank - 1 &&
                                          memcmp(t->sizes, a->a.sizes, (size_t)t->rank * sizeof t->sizes[0]) == 0));
  column = *t;
  if (r->is_vector) {
    RK_CHECK(c, t->rank < AOT_MAX_RANK, "too many dimensions");
    column.sizes[column.rank] = 1;
    column.strides[column.rank++] = 0;
  }
  RK_CHECK(c, column.rank >= 2, "the right-hand side has rank %d", t->rank);
  rank = (column.rank > a->a.rank ? column.rank : a->a.rank);
  for (int32_t d = 0; d < rank - 2; d++) {
    int64_t sa = d < rank - a->a.rank ? 1 : a->a.sizes[d - (rank - a->a.rank)],
            sb = d < rank - column.rank ? 1 : column.sizes[d - (rank - column.rank)];
    RK_CHECK(c, sa == sb || sa == 1 || sb == 1, "leading sizes %lld and %lld do not broadcast", (long long)sa,
             (long long)sb);
    sizes[d] = sa == 1 ? sb : sa;
  }
  sizes[rank - 2] = column.sizes[column.rank - 2];
  sizes[rank - 1] = column.sizes[column.rank - 1];
  AOT_TRY(rk_dense_expanded(c, &column, rank, sizes, &r->b.a));
  RK_CHECK(c, r->b.a.f, "the right-hand side is no float tensor");
  r->b.rows = sizes[rank - 2];
  r->b.columns = sizes[rank - 1];
  r->b.n = 1;
  for (int32_t d = 0; d < rank - 2; d++) r->b.n *= sizes[d];
  RK_SCRATCH(c, r->b.n, r->which);
  for (int64_t i = 0; i < r->b.n; i++, rk_advance(at, rank - 2, sizes))
    for (int32_t d = 0; d < lead_a; d++)
      r->which[i] = r->which[i] * a->a.sizes[d] + (a->a.sizes[d] == 1 ? 0 : at[d + rank - 2 - lead_a]);
  return AOT_OK;
}

aot_status_t rs_put_right(rk_ctx_t *c, uint32_t result, rs_right_t *r) {
  if (r->is_vector) r->b.a.rank--;
  return rk_put_f(c, result, &r->b.a);
}
