/* A double of cuBLASLt: libcublasLt.so.13 with the product of strided matrices by columns, summed in double, as an item
 * of the driver double's streams. A result in place of its addend has that one's layout; one in other memory whose
 * lines are less aligned fails, as on an H200. */
#include "double_api.h"
#include "kit/reference/rk_core.h"

#include <aot/inline.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
  SUCCESS = 0,
  NOT_INITIALIZED = 1,
  ALLOC_FAILED = 3,
  INVALID_VALUE = 7,
  EXECUTION_FAILED = 13,
  NOT_SUPPORTED = 15
};
enum { R_32F = 0, R_64F = 1, R_16F = 2, R_16BF = 14 };

typedef int (*enqueue_fn)(void *stream, int (*function)(void *argument), const void *argument, size_t nbytes);
typedef void (*pass_fn)(uint64_t ns);
static enqueue_fn enqueue; /* of the driver's double, both */
static pass_fn pass;

typedef struct desc {
  int32_t transpose[2]; /* of a, of b */
  int32_t epilogue;
  const char *bias;
} desc_t;
typedef struct layout {
  int type;
  uint64_t rows, columns;
  int64_t ld, stride;
  int32_t n_batch;
} layout_t;

/* Three algorithms that give the same; AOT_CUDA_DOUBLE="slow-algorithm=1" says which one takes 2 ms more; "tires=1"
 * that one takes 1 ms, until it has run 30 times, then 5, and the others 3. */
enum { WORKSPACE_ALIGN = 256 };
enum { N_ALGORITHMS = 3, DEFAULT = 1, BIAS = 4 };
#define ALGORITHM UINT64_C(0xA16000)
typedef struct candidate {
  uint64_t algorithm[8]; /* its number, the alignment that was informed of c */
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
} candidate_t;

static uint64_t setting(const char *name, uint64_t preset) {
  const char *text = getenv("AOT_CUDA_DOUBLE"), *at = text ? strstr(text, name) : NULL;
  return at ? strtoull(at + strlen(name), NULL, 10) : preset;
}

API size_t cublasLtGetVersion(void) { return setting("cublaslt-version=", 130000); }
API int cublasLtCreate(void **out) {
  static int handle;
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL),
       *symbol = driver ? dlsym(driver, "aot_double_enqueue") : NULL,
       *passes = driver ? dlsym(driver, "aot_double_pass") : NULL;
  memcpy(&enqueue, &symbol, sizeof symbol);
  memcpy(&pass, &passes, sizeof passes);
  return *out = &handle, symbol && passes ? SUCCESS : NOT_INITIALIZED;
}
API int cublasLtDestroy(void *handle) { return (void)handle, SUCCESS; }

API int cublasLtMatmulDescCreate(void **out, int compute, int scale) {
  (void)compute, (void)scale;
  desc_t *d = calloc(1, sizeof *d);
  if (d) d->epilogue = DEFAULT;
  return (*out = d) ? SUCCESS : ALLOC_FAILED;
}
API int cublasLtMatmulDescDestroy(void *desc) { return free(desc), SUCCESS; }
API int cublasLtMatmulDescSetAttribute(void *desc, int attribute, const void *value, size_t size) {
  desc_t *d = desc;
  if (attribute == 8 && size == sizeof d->bias) return memcpy(&d->bias, value, size), SUCCESS;
  if (attribute == 7 && size == sizeof d->epilogue) {
    memcpy(&d->epilogue, value, size);
    return d->epilogue == DEFAULT || d->epilogue == BIAS ? SUCCESS : NOT_SUPPORTED;
  }
  if (size != sizeof(int32_t) || attribute < 3 || attribute > 4) return NOT_SUPPORTED;
  memcpy(&d->transpose[attribute - 3], value, size);
  return SUCCESS;
}

API int cublasLtMatrixLayoutCreate(void **out, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  layout_t *l = calloc(1, sizeof *l);
  if (!l) return ALLOC_FAILED;
  if (ld < (int64_t)rows) return free(l), INVALID_VALUE;
  *l = (layout_t){type, rows, columns, ld, 0, 1};
  return *out = l, SUCCESS;
}
API int cublasLtMatrixLayoutDestroy(void *layout) { return free(layout), SUCCESS; }
API int cublasLtMatrixLayoutSetAttribute(void *layout, int attribute, const void *value, size_t size) {
  layout_t *l = layout;
  if (attribute == 5 && size == sizeof l->n_batch) return memcpy(&l->n_batch, value, size), SUCCESS;
  if (attribute == 6 && size == sizeof l->stride) return memcpy(&l->stride, value, size), SUCCESS;
  return NOT_SUPPORTED;
}

typedef struct preference {
  uint32_t align_c;
} preference_t;
API int cublasLtMatmulPreferenceCreate(void **out) {
  return (*out = calloc(1, sizeof(preference_t))) ? SUCCESS : ALLOC_FAILED;
}
API int cublasLtMatmulPreferenceDestroy(void *preference) { return free(preference), SUCCESS; }
API int cublasLtMatmulPreferenceSetAttribute(void *preference, int attribute, const void *value, size_t size) {
  preference_t *p = preference;
  if (attribute == 7 && size == sizeof p->align_c) memcpy(&p->align_c, value, size);
  return SUCCESS;
}

static int is_same(const layout_t *x, const layout_t *y) {
  return x->type == y->type && x->rows == y->rows && x->columns == y->columns && x->n_batch == y->n_batch;
}

/* Halves may be summed into floats. */
static int fits(int type, int result) { return type == result || (type != R_64F && result == R_32F); }

static int lies_alike(const layout_t *x, const layout_t *y) { return x->ld == y->ld && x->stride == y->stride; }

static int agree(const desc_t *d, const layout_t *a, const layout_t *b, const layout_t *c, const layout_t *out) {
  const uint64_t m = d->transpose[0] ? a->columns : a->rows, k = d->transpose[0] ? a->rows : a->columns;
  const uint64_t k_b = d->transpose[1] ? b->columns : b->rows, n = d->transpose[1] ? b->rows : b->columns;
  return m == out->rows && n == out->columns && k == k_b && a->type == b->type && fits(a->type, out->type) &&
         a->n_batch == out->n_batch && b->n_batch == out->n_batch && is_same(c, out);
}

API int cublasLtMatmulAlgoGetHeuristic(void *handle, void *desc, void *a, void *b, void *c, void *d, void *preference,
                                       int n, void *out, int *out_n) {
  candidate_t *candidates = out;
  (void)handle;
  *out_n = 0;
  if (!agree(desc, a, b, c, d)) return INVALID_VALUE;
  if (((const desc_t *)desc)->epilogue == BIAS && setting("no-bias=", 0)) return NOT_SUPPORTED;
  for (; *out_n < n && *out_n < N_ALGORITHMS; ++*out_n)
    candidates[*out_n] =
        (candidate_t){.algorithm = {ALGORITHM + (uint64_t)*out_n, ((const preference_t *)preference)->align_c}};
  return SUCCESS;
}

static int is_algorithm(const void *algorithm) {
  uint64_t word = 0;
  if (algorithm) memcpy(&word, algorithm, sizeof word);
  return word >= ALGORITHM && word < ALGORITHM + N_ALGORITHMS;
}

API int cublasLtMatmulAlgoCheck(void *handle, void *desc, void *a, void *b, void *c, void *d, const void *algorithm,
                                void *out) {
  (void)handle;
  if (!agree(desc, a, b, c, d)) return INVALID_VALUE;
  *(candidate_t *)out = (candidate_t){.workspace = 0};
  return is_algorithm(algorithm) ? SUCCESS : NOT_SUPPORTED;
}

static int32_t dtype_of(int type) {
  return type == R_64F ? AOT_F64 : type == R_32F ? AOT_F32 : type == R_16F ? AOT_F16 : AOT_BF16;
}

static uint64_t sleep_of(uint64_t algorithm) {
  static _Atomic uint64_t n_runs;
  enum { MS = 1000000, UNTIL = 30 };
  const uint64_t tires = setting("tires=", N_ALGORITHMS);
  if (algorithm == setting("slow-algorithm=", N_ALGORITHMS)) return 2 * MS;
  if (tires == N_ALGORITHMS) return 0;
  if (algorithm != tires) return 3 * MS;
  return atomic_fetch_add(&n_runs, 1) < UNTIL ? MS : 5 * MS;
}

typedef struct product {
  desc_t desc;
  layout_t a_layout, b_layout, c_layout, d_layout;
  const char *a, *b, *c;
  char *d;
  double alpha, beta;
  uint64_t sleep_ns;
} product_t;

static double get(const char *at, int type, int64_t i) {
  const int32_t dtype = dtype_of(type);
  return rk_load_f(at + i * (int64_t)aot_dtype_size(dtype), dtype);
}
static void put(char *at, int type, int64_t i, double v) {
  const int32_t dtype = dtype_of(type);
  rk_store_f(at + i * (int64_t)aot_dtype_size(dtype), dtype, v);
}

/* Do lines begin at multiples of so many bytes? */
static int begin_at(const layout_t *l, const char *at, uint64_t nbytes) {
  const uint64_t size = aot_dtype_size(dtype_of(l->type));
  return (uintptr_t)at % nbytes == 0 && (uint64_t)l->ld * size % nbytes == 0 &&
         (l->n_batch == 1 || (uint64_t)l->stride * size % nbytes == 0);
}

/* It stores as many bytes at a time as c allows, by what was informed of and by its lines. */
static int stores_across(const product_t *p, uint64_t told) {
  while (told > 1 && !begin_at(&p->c_layout, p->c, told)) told /= 2;
  return p->beta != 0 && told > 1 && !begin_at(&p->d_layout, p->d, told);
}

static int run(void *argument) {
  const product_t *p = argument;
  const layout_t *A = &p->a_layout, *B = &p->b_layout, *C = &p->c_layout, *D = &p->d_layout;
  const int64_t k_end = (int64_t)(p->desc.transpose[0] ? A->rows : A->columns);
  if (p->sleep_ns) pass(p->sleep_ns);
  for (int64_t batch = 0; batch < D->n_batch; batch++)
    for (int64_t n = 0; n < (int64_t)D->columns; n++)
      for (int64_t m = 0; m < (int64_t)D->rows; m++) {
        double sum = 0;
        for (int64_t k = 0; k < k_end; k++)
          sum += get(p->a, A->type, batch * A->stride + (p->desc.transpose[0] ? m * A->ld + k : k * A->ld + m)) *
                 get(p->b, B->type, batch * B->stride + (p->desc.transpose[1] ? k * B->ld + n : n * B->ld + k));
        sum *= p->alpha;
        if (p->beta != 0) sum += p->beta * get(p->c, C->type, batch * C->stride + n * C->ld + m);
        if (p->desc.epilogue == BIAS) sum += get(p->desc.bias, D->type, m);
        put(p->d, D->type, batch * D->stride + n * D->ld + m, sum);
      }
  return 0;
}

API int cublasLtMatmul(void *handle, void *desc, const void *alpha, const void *a, void *a_layout, const void *b,
                       void *b_layout, const void *beta, const void *c, void *c_layout, void *d, void *d_layout,
                       const void *algorithm, void *workspace, size_t workspace_nbytes, void *stream) {
  product_t p = {.desc = *(desc_t *)desc, .a = a, .b = b, .c = c, .d = d};
  (void)handle;
  if (c == d && !lies_alike(c_layout, d_layout)) return INVALID_VALUE;
  if (workspace_nbytes && (uintptr_t)workspace % WORKSPACE_ALIGN) return INVALID_VALUE; /* as an H200's does */
  if (!agree(desc, a_layout, b_layout, c_layout, d_layout) || !is_algorithm(algorithm)) return NOT_SUPPORTED;
  p.a_layout = *(layout_t *)a_layout, p.b_layout = *(layout_t *)b_layout;
  p.c_layout = *(layout_t *)c_layout, p.d_layout = *(layout_t *)d_layout;
  p.alpha = p.d_layout.type == R_64F ? *(const double *)alpha : (double)*(const float *)alpha;
  p.beta = p.d_layout.type == R_64F ? *(const double *)beta : (double)*(const float *)beta;
  p.sleep_ns = sleep_of(*(const uint64_t *)algorithm - ALGORITHM);
  if (p.desc.epilogue == BIAS && !p.desc.bias) return INVALID_VALUE;
  if (stores_across(&p, ((const uint64_t *)algorithm)[1])) return EXECUTION_FAILED; /* on an H200 it traps */
  return enqueue(stream, run, &p, sizeof p) ? INVALID_VALUE : SUCCESS;
}
