#include "cublaslt.h"

#include "common/cuda/symbols.h"
#include <aot/base.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* cublasLtMatmulDescAttributes_t, cublasLtMatrixLayoutAttribute_t, cublasLtMatmulPreferenceAttributes_t */
enum { DESC_TRANSA = 3, DESC_TRANSB = 4, LAYOUT_BATCH_COUNT = 5, LAYOUT_BATCH_STRIDE = 6 };
enum { PREFERENCE_WORKSPACE = 1, PREFERENCE_ALIGN_A = 5, PREFERENCE_ALIGN_B, PREFERENCE_ALIGN_C, PREFERENCE_ALIGN_D };
enum { NO_ALGORITHM = 15 }; /* CUBLAS_STATUS_NOT_SUPPORTED */

int gc_cublaslt_open(gc_cublaslt_t *out, char *why, size_t size) {
  static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so"};
  memset(out, 0, sizeof *out);
  for (size_t i = 0; i < sizeof names / sizeof *names && !out->library; i++)
    out->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  if (!out->library) {
    snprintf(why, size, "cuBLASLt is not there (libcublasLt.so.13 or .12): %s", dlerror());
    return -1;
  }
  const nv_symbol_t symbols[] = {
      {"cublasLtCreate", &out->create},
      {"cublasLtDestroy", &out->destroy},
      {"cublasLtGetVersion", &out->version},
      {"cublasLtMatmulDescCreate", &out->desc_create},
      {"cublasLtMatmulDescDestroy", &out->desc_destroy},
      {"cublasLtMatmulDescSetAttribute", &out->desc_set},
      {"cublasLtMatrixLayoutCreate", &out->layout_create},
      {"cublasLtMatrixLayoutDestroy", &out->layout_destroy},
      {"cublasLtMatrixLayoutSetAttribute", &out->layout_set},
      {"cublasLtMatmulPreferenceCreate", &out->preference_create},
      {"cublasLtMatmulPreferenceDestroy", &out->preference_destroy},
      {"cublasLtMatmulPreferenceSetAttribute", &out->preference_set},
      {"cublasLtMatmulAlgoGetHeuristic", &out->heuristic},
      {"cublasLtMatmul", &out->matmul},
  };
  if (!nv_find_symbols(out->library, symbols, sizeof symbols / sizeof *symbols, why, size)) return -1;
  const int status = out->create(&out->handle);
  if (status) snprintf(why, size, "cuBLASLt does not start: status %d", status);
  return status ? -1 : 0;
}

void gc_cublaslt_close(gc_cublaslt_t *l) {
  if (l->handle) l->destroy(l->handle);
  l->handle = NULL;
}

/* cudaDataType_t; cublasComputeType_t: halves are summed in float. No TF32: float32 products are those of float32. */
static const struct {
  int32_t dtype;
  int type, compute, scale;
} types[] = {{AOT_F32, 0, 68, 0}, {AOT_F64, 1, 70, 1}, {AOT_F16, 2, 68, 0}, {AOT_BF16, 14, 68, 0}};

/* cuBLASLt's matrices are by columns: by rows they are the transposes, so c' = b' a' is what it is asked for. */
static int describe(const gc_cublaslt_t *l, gc_product_t *p, int type, int compute, int scale) {
  const int transpose_b = p->b.transposed, transpose_a = p->a.transposed;
  const struct {
    const gc_matrix_t *matrix;
    int64_t rows, columns; /* by rows, as it lies */
  } lies[3] = {
      {&p->b, transpose_b ? p->n : p->k, transpose_b ? p->k : p->n},
      {&p->a, transpose_a ? p->k : p->m, transpose_a ? p->m : p->k},
      {&p->c, p->m, p->n},
  };
  int failed = l->desc_create(&p->desc, compute, scale);
  if (!failed) failed = l->desc_set(p->desc, DESC_TRANSA, &transpose_b, sizeof transpose_b);
  if (!failed) failed = l->desc_set(p->desc, DESC_TRANSB, &transpose_a, sizeof transpose_a);
  for (int i = 0; i < 3 && !failed; i++) {
    const int32_t n_batch = (int32_t)p->n_batch;
    failed = l->layout_create(&p->layouts[i], type, (uint64_t)lies[i].columns, (uint64_t)lies[i].rows,
                              lies[i].matrix->leading);
    if (!failed && n_batch > 1) failed = l->layout_set(p->layouts[i], LAYOUT_BATCH_COUNT, &n_batch, sizeof n_batch);
    if (!failed && n_batch > 1)
      failed = l->layout_set(p->layouts[i], LAYOUT_BATCH_STRIDE, &lies[i].matrix->batch_stride, sizeof(int64_t));
  }
  return failed;
}

static uint32_t alignment_of(gc_address_t address) {
  uint32_t n = 256;
  while (address % n) n /= 2;
  return n;
}

/* The first that the heuristic names. */
static int choose(const gc_cublaslt_t *l, gc_product_t *p, gc_address_t a, gc_address_t b, gc_address_t c) {
  const uint64_t workspace = p->workspace_nbytes;
  const struct {
    int attribute;
    uint32_t bytes;
  } aligned[] = {{PREFERENCE_ALIGN_A, alignment_of(b)},
                 {PREFERENCE_ALIGN_B, alignment_of(a)},
                 {PREFERENCE_ALIGN_C, alignment_of(c)},
                 {PREFERENCE_ALIGN_D, alignment_of(c)}};
  void *preference = NULL;
  int n = 0, failed = l->preference_create(&preference);
  if (!failed) failed = l->preference_set(preference, PREFERENCE_WORKSPACE, &workspace, sizeof workspace);
  for (size_t i = 0; i < sizeof aligned / sizeof *aligned && !failed; i++)
    failed = l->preference_set(preference, aligned[i].attribute, &aligned[i].bytes, sizeof aligned[i].bytes);
  if (!failed)
    failed = l->heuristic(l->handle, p->desc, p->layouts[0], p->layouts[1], p->layouts[2], p->layouts[2], preference, 1,
                          &p->algo, &n);
  if (preference) l->preference_destroy(preference);
  return failed ? failed : n ? 0 : NO_ALGORITHM;
}

int gc_product_run(const gc_cublaslt_t *l, gc_product_t *p, gc_address_t a, gc_address_t b, gc_address_t c,
                   gc_address_t workspace, gc_stream_t stream) {
  const float alpha = (float)p->alpha, beta = (float)p->beta;
  const int is_double = p->dtype == AOT_F64;
  int failed = 0;
  if (!p->desc) {
    size_t t = 0;
    while (types[t].dtype != p->dtype) t++;
    failed = describe(l, p, types[t].type, types[t].compute, types[t].scale);
    if (!failed) failed = choose(l, p, a, b, c);
    if (failed) gc_product_deinit(l, p);
  }
  if (failed) return failed;
  return l->matmul(l->handle, p->desc, is_double ? (const void *)&p->alpha : &alpha, (const void *)(uintptr_t)b,
                   p->layouts[0], (const void *)(uintptr_t)a, p->layouts[1], is_double ? (const void *)&p->beta : &beta,
                   (const void *)(uintptr_t)c, p->layouts[2], (void *)(uintptr_t)c, p->layouts[2], p->algo.algo,
                   (void *)(uintptr_t)workspace, p->workspace_nbytes, stream);
}

void gc_product_deinit(const gc_cublaslt_t *l, gc_product_t *p) {
  if (p->desc) l->desc_destroy(p->desc);
  p->desc = NULL;
  for (int i = 0; i < 3; i++) {
    if (p->layouts[i]) l->layout_destroy(p->layouts[i]);
    p->layouts[i] = NULL;
  }
}
