/* Factorisations of small dense matrices. Sources: Golub and Van Loan, Matrix Computations, 4th edition: LU 3.4, Cholesky 4.2,
 * Householder QR 5.2, one-sided Jacobi SVD 8.6, cyclic Jacobi 8.5; Bunch and Kaufman 1977 for L D L^T; Higham 2005 for exp. */
#include "common/kernels/rk_matrix.h"
#include <math.h>
#include <string.h>

#define AT(a, i, j) (a)[(i) * n + (j)]

static void swap_rows(double *a, int64_t n, int64_t i, int64_t j) {
  for (int64_t k = 0; i != j && k < n; k++) {
    double t = a[i * n + k];
    a[i * n + k] = a[j * n + k];
    a[j * n + k] = t;
  }
}

int64_t rm_lu(double *a, int64_t m, int64_t n, int64_t *pivots, int pivoting) {
  int64_t info = 0;
  for (int64_t k = 0; k < m && k < n; k++) {
    int64_t best = k;
    for (int64_t i = k + 1; pivoting && i < m; i++)
      if (fabs(AT(a, i, k)) > fabs(AT(a, best, k))) best = i;
    pivots[k] = best + 1;
    swap_rows(a, n, k, best);
    if (AT(a, k, k) == 0) {
      if (!info) info = k + 1;
      continue;
    }
    for (int64_t i = k + 1; i < m; i++) {
      double f = AT(a, i, k) /= AT(a, k, k);
      for (int64_t j = k + 1; j < n; j++) AT(a, i, j) -= f * AT(a, k, j);
    }
  }
  return info;
}

void rm_permute(double *b, int64_t k, const int64_t *pivots, int64_t n_pivots, int back) {
  for (int64_t s = 0; s < n_pivots; s++) {
    int64_t i = back ? n_pivots - 1 - s : s;
    swap_rows(b, k, i, pivots[i] - 1);
  }
}

void rm_solve_triangular(const double *t, int64_t n, double *b, int64_t k, int upper, int transposed, int unit) {
  int from_top = transposed ? upper : !upper; /* a lower triangle is solved from the first row on */
  for (int64_t s = 0; s < n; s++) {
    int64_t i = from_top ? s : n - 1 - s;
    for (int64_t r = 0; r < s; r++) {
      int64_t j = from_top ? r : n - 1 - r;
      double f = transposed ? AT(t, j, i) : AT(t, i, j);
      for (int64_t c = 0; c < k; c++) b[i * k + c] -= f * b[j * k + c];
    }
    for (int64_t c = 0; c < k && !unit; c++) b[i * k + c] /= AT(t, i, i);
  }
}

void rm_lu_solve(const double *lu, int64_t n, const int64_t *pivots, double *b, int64_t k, int transposed) {
  if (!transposed) {
    rm_permute(b, k, pivots, n, 0);
    rm_solve_triangular(lu, n, b, k, 0, 0, 1);
    rm_solve_triangular(lu, n, b, k, 1, 0, 0);
  } else {
    rm_solve_triangular(lu, n, b, k, 1, 1, 0);
    rm_solve_triangular(lu, n, b, k, 0, 1, 1);
    rm_permute(b, k, pivots, n, 1);
  }
}

int64_t rm_cholesky(double *a, int64_t n) {
  for (int64_t j = 0; j < n; j++) {
    double d = AT(a, j, j);
    for (int64_t k = 0; k < j; k++) d -= AT(a, j, k) * AT(a, j, k);
    if (!(d > 0)) return j + 1;
    AT(a, j, j) = d = sqrt(d);
    for (int64_t i = j + 1; i < n; i++) {
      double v = AT(a, i, j);
      for (int64_t k = 0; k < j; k++) v -= AT(a, i, k) * AT(a, j, k);
      AT(a, i, j) = v / d;
      AT(a, j, i) = 0;
    }
  }
  return 0;
}

/* Reflector H = I - tau v v^T with v[0] = 1 that maps column k below the diagonal to (beta, 0, ..): LAPACK's larfg. */
static double reflector(double *a, int64_t m, int64_t n, int64_t k) {
  double norm = 0, alpha = AT(a, k, k), beta;
  for (int64_t i = k + 1; i < m; i++) norm = hypot(norm, AT(a, i, k));
  if (norm == 0) return 0;
  beta = -copysign(hypot(alpha, norm), alpha);
  for (int64_t i = k + 1; i < m; i++) AT(a, i, k) /= alpha - beta;
  AT(a, k, k) = beta;
  return (beta - alpha) / beta;
}

/* c = H c for the reflector in column `at` of a; columns `from`.. of c (m x n_c) */
static void reflect(const double *a, int64_t n_a, int64_t at, double tau, double *c, int64_t m, int64_t n_c, int64_t from) {
  for (int64_t j = from; j < n_c; j++) {
    double dot = c[at * n_c + j];
    for (int64_t i = at + 1; i < m; i++) dot += a[i * n_a + at] * c[i * n_c + j];
    dot *= tau;
    c[at * n_c + j] -= dot;
    for (int64_t i = at + 1; i < m; i++) c[i * n_c + j] -= a[i * n_a + at] * dot;
  }
}

void rm_qr(double *a, int64_t m, int64_t n, double *tau) {
  for (int64_t k = 0; k < m && k < n; k++) {
    tau[k] = reflector(a, m, n, k);
    reflect(a, n, k, tau[k], a, m, n, k + 1);
  }
}

void rm_apply_q(const double *a, int64_t n_a, const double *tau, int64_t k, double *c, int64_t m, int64_t n_c, int transposed) {
  for (int64_t s = 0; s < k; s++) {
    int64_t at = transposed ? s : k - 1 - s;
    reflect(a, n_a, at, tau[at], c, m, n_c, 0);
  }
}

/* ---- Jacobi ---- */

/* Rotate columns p, q of a (rows x n). */
static void rotate(double *a, int64_t rows, int64_t n, int64_t p, int64_t q, double c, double s) {
  for (int64_t i = 0; i < rows; i++) {
    double x = AT(a, i, p), y = AT(a, i, q);
    AT(a, i, p) = c * x - s * y;
    AT(a, i, q) = s * x + c * y;
  }
}

static void swap_columns(double *a, int64_t rows, int64_t n, int64_t p, int64_t q) {
  for (int64_t i = 0; p != q && i < rows; i++) {
    double t = AT(a, i, p);
    AT(a, i, p) = AT(a, i, q);
    AT(a, i, q) = t;
  }
}

void rm_svd(double *a, int64_t m, int64_t n, double *u, double *s, double *v) {
  int moved = 1;
  for (int64_t i = 0; i < n * n; i++) v[i] = i % (n + 1) == 0;
  for (int sweep = 0; moved && sweep < 60; sweep++) {
    moved = 0;
    for (int64_t p = 0; p < n; p++)
      for (int64_t q = p + 1; q < n; q++) {
        double pp = 0, qq = 0, pq = 0, zeta, t, c;
        for (int64_t i = 0; i < m; i++) {
          pp += AT(a, i, p) * AT(a, i, p);
          qq += AT(a, i, q) * AT(a, i, q);
          pq += AT(a, i, p) * AT(a, i, q);
        }
        if (fabs(pq) <= 1e-16 * sqrt(pp * qq)) continue;
        moved = 1;
        zeta = (qq - pp) / (2 * pq);
        t = copysign(1, zeta) / (fabs(zeta) + sqrt(1 + zeta * zeta));
        c = 1 / sqrt(1 + t * t);
        rotate(a, m, n, p, q, c, c * t);
        rotate(v, n, n, p, q, c, c * t);
      }
  }
  for (int64_t j = 0; j < n; j++) {
    s[j] = 0;
    for (int64_t i = 0; i < m; i++) s[j] = hypot(s[j], AT(a, i, j));
  }
  for (int64_t j = 0; j < n; j++) { /* descending, by selection */
    int64_t best = j;
    double t;
    for (int64_t k = j + 1; k < n; k++)
      if (s[k] > s[best]) best = k;
    t = s[j];
    s[j] = s[best];
    s[best] = t;
    swap_columns(a, m, n, j, best);
    swap_columns(v, n, n, j, best);
  }
  {
    int64_t rank = 0;
    while (rank < n && s[rank] > 1e-300 && s[rank] > s[0] * 1e-17) rank++;
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) AT(u, i, j) = j < rank ? AT(a, i, j) / s[j] : 0;
    rm_complete_basis(u, m, n, rank);
  }
}

void rm_complete_basis(double *q, int64_t m, int64_t n, int64_t n_have) {
  int64_t unit = 0;
  for (int64_t j = n_have; j < n; j++)
    for (; unit < m; unit++) { /* the next unit vector with something new in it */
      double norm = 0;
      for (int64_t i = 0; i < m; i++) AT(q, i, j) = i == unit;
      for (int pass = 0; pass < 2; pass++)
        for (int64_t k = 0; k < j; k++) {
          double dot = 0;
          for (int64_t i = 0; i < m; i++) dot += AT(q, i, k) * AT(q, i, j);
          for (int64_t i = 0; i < m; i++) AT(q, i, j) -= dot * AT(q, i, k);
        }
      for (int64_t i = 0; i < m; i++) norm = hypot(norm, AT(q, i, j));
      if (norm < 1e-8) continue;
      for (int64_t i = 0; i < m; i++) AT(q, i, j) /= norm;
      unit++;
      break;
    }
}

void rm_eigh(double *a, int64_t n, double *w, double *v) {
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = i + 1; j < n; j++) AT(a, i, j) = AT(a, j, i);
  for (int64_t i = 0; i < n * n; i++) v[i] = i % (n + 1) == 0;
  for (int sweep = 0; sweep < 100; sweep++) {
    double off = 0, all = 0;
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < n; j++) {
        all += AT(a, i, j) * AT(a, i, j);
        off += i == j ? 0 : AT(a, i, j) * AT(a, i, j);
      }
    if (off <= 1e-32 * all) break;
    for (int64_t p = 0; p < n; p++)
      for (int64_t q = p + 1; q < n; q++) {
        double theta, t, c, s;
        if (AT(a, p, q) == 0) continue;
        theta = (AT(a, q, q) - AT(a, p, p)) / (2 * AT(a, p, q));
        t = copysign(1, theta) / (fabs(theta) + sqrt(1 + theta * theta));
        c = 1 / sqrt(1 + t * t);
        s = c * t;
        rotate(a, n, n, p, q, c, s);
        for (int64_t j = 0; j < n; j++) { /* rows */
          double x = AT(a, p, j), y = AT(a, q, j);
          AT(a, p, j) = c * x - s * y;
          AT(a, q, j) = s * x + c * y;
        }
        rotate(v, n, n, p, q, c, s);
      }
  }
  for (int64_t i = 0; i < n; i++) w[i] = AT(a, i, i);
  for (int64_t j = 0; j < n; j++) {
    int64_t best = j;
    double t;
    for (int64_t k = j + 1; k < n; k++)
      if (w[k] < w[best]) best = k;
    t = w[j];
    w[j] = w[best];
    w[best] = t;
    swap_columns(v, n, n, j, best);
  }
}

/* ---- symmetric indefinite ---- */

/* Exchange rows and columns k and p of the trailing matrix, of which only the lower triangle is kept. */
static void swap_symmetric(double *a, int64_t n, int64_t k, int64_t p, int64_t first_row_of_k) {
  double t;
  if (k == p) return;
  for (int64_t i = p + 1; i < n; i++) {
    t = AT(a, i, k);
    AT(a, i, k) = AT(a, i, p);
    AT(a, i, p) = t;
  }
  for (int64_t j = first_row_of_k; j < p; j++) {
    t = AT(a, j, k);
    AT(a, j, k) = AT(a, p, j);
    AT(a, p, j) = t;
  }
  t = AT(a, k, k);
  AT(a, k, k) = AT(a, p, p);
  AT(a, p, p) = t;
}

static void eliminate_one(double *a, int64_t n, int64_t k) {
  double d = 1 / AT(a, k, k);
  for (int64_t j = k + 1; j < n; j++)
    for (int64_t i = j; i < n; i++) AT(a, i, j) -= d * AT(a, i, k) * AT(a, j, k);
  for (int64_t i = k + 1; i < n; i++) AT(a, i, k) *= d;
}

static void eliminate_two(double *a, int64_t n, int64_t k) {
  double d = AT(a, k + 1, k), d11 = AT(a, k + 1, k + 1) / d, d22 = AT(a, k, k) / d, t = 1 / (d11 * d22 - 1) / d;
  for (int64_t j = k + 2; j < n; j++) {
    double x = t * (d11 * AT(a, j, k) - AT(a, j, k + 1)), y = t * (d22 * AT(a, j, k + 1) - AT(a, j, k));
    for (int64_t i = j; i < n; i++) AT(a, i, j) -= AT(a, i, k) * x + AT(a, i, k + 1) * y;
    AT(a, j, k) = x;
    AT(a, j, k + 1) = y;
  }
}

int64_t rm_ldl(double *a, int64_t n, int64_t *pivots) {
  const double alpha = (1 + sqrt(17)) / 8;
  int64_t info = 0, step;
  for (int64_t k = 0; k < n; k += step) {
    double own = fabs(AT(a, k, k)), column = 0, row = 0;
    int64_t far = k, pivot = k;
    step = 1;
    for (int64_t i = k + 1; i < n; i++)
      if (fabs(AT(a, i, k)) > column) {
        column = fabs(AT(a, i, k));
        far = i;
      }
    if (fmax(own, column) == 0) {
      if (!info) info = k + 1;
      pivots[k] = k + 1;
      continue;
    }
    if (own < alpha * column) {
      for (int64_t j = k; j < far; j++) row = fmax(row, fabs(AT(a, far, j)));
      for (int64_t i = far + 1; i < n; i++) row = fmax(row, fabs(AT(a, i, far)));
      if (own >= alpha * column * (column / row)) pivot = k;
      else if (fabs(AT(a, far, far)) >= alpha * row) pivot = far;
      else {
        pivot = far;
        step = 2;
      }
    }
    if (step == 1) {
      swap_symmetric(a, n, k, pivot, k + 1);
      eliminate_one(a, n, k);
      pivots[k] = pivot + 1;
    } else {
      if (pivot != k + 1) { /* the row joins as row k + 1; the entry below the diagonal moves along */
        double t = AT(a, k + 1, k);
        swap_symmetric(a, n, k + 1, pivot, k + 2);
        AT(a, k + 1, k) = AT(a, pivot, k);
        AT(a, pivot, k) = t;
      }
      eliminate_two(a, n, k);
      pivots[k] = pivots[k + 1] = -(pivot + 1);
    }
  }
  return info;
}

void rm_ldl_solve(const double *a, int64_t n, const int64_t *pivots, double *b, int64_t k) {
  for (int64_t i = 0; i < n;) { /* L D first, with the exchanges on the way */
    if (pivots[i] > 0) {
      swap_rows(b, k, i, pivots[i] - 1);
      for (int64_t r = i + 1; r < n; r++)
        for (int64_t c = 0; c < k; c++) b[r * k + c] -= AT(a, r, i) * b[i * k + c];
      for (int64_t c = 0; c < k; c++) b[i * k + c] /= AT(a, i, i);
      i++;
    } else {
      double off = AT(a, i + 1, i), x = AT(a, i, i) / off, y = AT(a, i + 1, i + 1) / off, scale = x * y - 1;
      swap_rows(b, k, i + 1, -pivots[i] - 1);
      for (int64_t r = i + 2; r < n; r++)
        for (int64_t c = 0; c < k; c++) b[r * k + c] -= AT(a, r, i) * b[i * k + c] + AT(a, r, i + 1) * b[(i + 1) * k + c];
      for (int64_t c = 0; c < k; c++) {
        double p = b[i * k + c] / off, q = b[(i + 1) * k + c] / off;
        b[i * k + c] = (y * p - q) / scale;
        b[(i + 1) * k + c] = (x * q - p) / scale;
      }
      i += 2;
    }
  }
  for (int64_t i = n - 1; i >= 0;) { /* then L^T, exchanges in reverse */
    int64_t first = pivots[i] > 0 ? i : i - 1;
    for (int64_t s = first; s <= i; s++)
      for (int64_t r = i + 1; r < n; r++)
        for (int64_t c = 0; c < k; c++) b[s * k + c] -= AT(a, r, s) * b[r * k + c];
    swap_rows(b, k, i, pivots[i] > 0 ? pivots[i] - 1 : -pivots[i] - 1);
    i = first - 1;
  }
}

/* ---- products ---- */

void rm_multiply(const double *a, const double *b, double *out, int64_t m, int64_t k, int64_t n) {
  memset(out, 0, (size_t)(m * n) * sizeof *out);
  for (int64_t i = 0; i < m; i++)
    for (int64_t l = 0; l < k; l++)
      for (int64_t j = 0; j < n; j++) out[i * n + j] += a[i * k + l] * b[l * n + j];
}

void rm_transpose(const double *a, int64_t m, int64_t n, double *out) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) out[j * m + i] = a[i * n + j];
}

void rm_exp(const double *a, int64_t n, double *out, double *work) {
  double *scaled = work, *term = work + n * n, *next = work + 2 * n * n, norm = 0, factor;
  int squarings = 0;
  for (int64_t i = 0; i < n; i++) {
    double row = 0;
    for (int64_t j = 0; j < n; j++) row += fabs(AT(a, i, j));
    norm = fmax(norm, row);
  }
  while (norm > 0.5 && squarings < 1000) {
    norm /= 2;
    squarings++;
  }
  factor = ldexp(1, -squarings);
  for (int64_t i = 0; i < n * n; i++) {
    scaled[i] = a[i] * factor;
    out[i] = term[i] = i % (n + 1) == 0;
  }
  for (int64_t k = 1; k < 20; k++) {
    rm_multiply(term, scaled, next, n, n, n);
    for (int64_t i = 0; i < n * n; i++) {
      term[i] = next[i] / (double)k;
      out[i] += term[i];
    }
  }
  for (; squarings; squarings--) {
    rm_multiply(out, out, next, n, n, n);
    memcpy(out, next, (size_t)(n * n) * sizeof *out);
  }
}
