#include "cublaslt.h"

#include "kit/cuda/symbols.h"
#include <aot/base.h>
#include <aot/inline.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* cublasLtMatmulDescAttributes_t, cublasLtMatrixLayoutAttribute_t, cublasLtMatmulPreferenceAttributes_t */
enum { DESC_TRANSA = 3, DESC_TRANSB = 4, DESC_EPILOGUE = 7, DESC_BIAS_POINTER = 8 };
enum { LAYOUT_BATCH_COUNT = 5, LAYOUT_BATCH_STRIDE = 6 };
enum { EPILOGUE_BIAS = 4 }; /* cublasLtEpilogue_t */
enum { PREFERENCE_WORKSPACE = 1, PREFERENCE_ALIGN_A = 5 /* then B, C, D */ };
enum { NO_ALGORITHM = 15 }; /* CUBLAS_STATUS_NOT_SUPPORTED */
enum { OLDEST = 120000 };   /* cublasLtGetVersion: CUDA 12.0 */

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
      {"cublasLtMatmulAlgoCheck", &out->check},
      {"cublasLtMatmul", &out->matmul},
  };
  if (!nv_find_symbols(out->library, symbols, sizeof symbols / sizeof *symbols, why, size)) return -1;
  if (out->version() < OLDEST) {
    snprintf(why, size, "cuBLASLt is release %zu; %d or later is needed", out->version(), OLDEST);
    return -1;
  }
  return 0;
}

int gc_cublaslt_start(gc_cublaslt_t *l, char *why, size_t size) {
  const int status = l->create(&l->handle);
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

/* cuBLASLt's matrices are by columns: by rows they are the transposes, so d' = b' a' + c' is what it is requested: its
 * A is b, its B is a. */
static const int in_its_order[GC_N_MATRICES] = {GC_B, GC_A, GC_C, GC_D};

static int64_t rows_of(const gc_product_t *p, int i) { return i == GC_B ? p->k : p->m; }
static int64_t columns_of(const gc_product_t *p, int i) { return i == GC_A ? p->k : p->n; }

/* What is not read lies as the result does, whose address it gets. */
static int make_layout(const gc_cublaslt_t *l, const gc_product_t *p, int type, int i, void **out) {
  const gc_matrix_t *matrix = &p->matrices[i == GC_C && p->beta == 0 ? GC_D : i];
  const int64_t rows = matrix->transposed ? columns_of(p, i) : rows_of(p, i);
  const int64_t columns = matrix->transposed ? rows_of(p, i) : columns_of(p, i);
  const int32_t n_batch = (int32_t)p->n_batch;
  int failed = l->layout_create(out, type, (uint64_t)columns, (uint64_t)rows, matrix->leading);
  if (!failed && n_batch > 1) failed = l->layout_set(*out, LAYOUT_BATCH_COUNT, &n_batch, sizeof n_batch);
  if (!failed && n_batch > 1)
    failed = l->layout_set(*out, LAYOUT_BATCH_STRIDE, &matrix->batch_stride, sizeof matrix->batch_stride);
  return failed;
}

static size_t type_of(int32_t dtype) {
  size_t t = 0;
  while (types[t].dtype != dtype) t++;
  return t;
}

int gc_product_init(const gc_cublaslt_t *l, gc_product_t *p) {
  const int epilogue = EPILOGUE_BIAS;
  const size_t t = type_of(p->dtype), result = type_of(p->result);
  int failed = l->desc_create(&p->desc, types[t].compute, types[t].scale);
  if (!failed) failed = l->desc_set(p->desc, DESC_TRANSA, &p->matrices[GC_B].transposed, sizeof(int));
  if (!failed) failed = l->desc_set(p->desc, DESC_TRANSB, &p->matrices[GC_A].transposed, sizeof(int));
  if (!failed && p->has_bias) failed = l->desc_set(p->desc, DESC_EPILOGUE, &epilogue, sizeof epilogue);
  for (int i = 0; i < GC_N_MATRICES && !failed; i++)
    failed = make_layout(l, p, types[i < GC_C ? t : result].type, in_its_order[i], &p->layouts[i]);
  if (failed) gc_product_deinit(l, p);
  return failed;
}

void gc_product_deinit(const gc_cublaslt_t *l, gc_product_t *p) {
  if (p->desc) l->desc_destroy(p->desc);
  p->desc = NULL;
  for (int i = 0; i < GC_N_MATRICES; i++) {
    if (p->layouts[i]) l->layout_destroy(p->layouts[i]);
    p->layouts[i] = NULL;
  }
}

/* Bytes, at most those of the matrix, at whose multiples all its lines begin. */
static uint32_t line_alignment(const gc_product_t *p, int i) {
  const int64_t nbytes = (int64_t)aot_dtype_size(i < GC_C ? p->dtype : p->result);
  const gc_matrix_t *m = &p->matrices[i];
  uint32_t align = p->align[i];
  while (m->leading * nbytes % align || (p->n_batch > 1 && m->batch_stride * nbytes % align)) align /= 2;
  return align;
}

/* How wide it stores d's lines cuBLASLt 13.1 reads off c's: where d's begin less evenly, an H200 traps at a misaligned
 * address. So both are reported to lie as d does. */
static uint32_t told_alignment(const gc_product_t *p, int i) {
  const int is_worse = p->beta != 0 && i >= GC_C && line_alignment(p, GC_D) < line_alignment(p, GC_C);
  return is_worse ? line_alignment(p, GC_D) : p->align[i];
}

int gc_product_candidates(const gc_cublaslt_t *l, const gc_product_t *p, gc_candidate_t *out, int n, int *out_n) {
  void *preference = NULL;
  int failed = l->preference_create(&preference);
  *out_n = 0;
  if (!failed)
    failed = l->preference_set(preference, PREFERENCE_WORKSPACE, &p->workspace_nbytes, sizeof p->workspace_nbytes);
  for (int i = 0; i < GC_N_MATRICES && !failed; i++) {
    const uint32_t align = told_alignment(p, in_its_order[i]);
    failed = l->preference_set(preference, PREFERENCE_ALIGN_A + i, &align, sizeof align);
  }
  if (!failed)
    failed = l->heuristic(l->handle, p->desc, p->layouts[0], p->layouts[1], p->layouts[2], p->layouts[3], preference, n,
                          out, out_n);
  if (preference) l->preference_destroy(preference);
  return failed ? failed : *out_n > 0 ? 0 : NO_ALGORITHM;
}

int gc_product_check(const gc_cublaslt_t *l, const gc_product_t *p) {
  gc_candidate_t needs;
  const int failed =
      l->check(l->handle, p->desc, p->layouts[0], p->layouts[1], p->layouts[2], p->layouts[3], p->algo, &needs);
  return failed ? failed : needs.workspace <= p->workspace_nbytes ? 0 : NO_ALGORITHM;
}

int gc_product_run(const gc_cublaslt_t *l, const gc_product_t *p, const gc_address_t *at, gc_stream_t stream) {
  const float alpha = (float)p->alpha, beta = (float)p->beta;
  const int is_double = p->dtype == AOT_F64;
  const void *matrices[GC_N_MATRICES];
  for (int i = 0; i < GC_N_MATRICES; i++) matrices[i] = (const void *)(uintptr_t)at[in_its_order[i]];
  if (p->beta == 0) matrices[GC_C] = matrices[GC_D];
  if (p->has_bias) {
    const void *bias = (const void *)(uintptr_t)at[GC_BIAS];
    const int failed = l->desc_set(p->desc, DESC_BIAS_POINTER, &bias, sizeof bias);
    if (failed) return failed;
  }
  return l->matmul(l->handle, p->desc, is_double ? (const void *)&p->alpha : &alpha, matrices[0], p->layouts[0],
                   matrices[1], p->layouts[1], is_double ? (const void *)&p->beta : &beta, matrices[2], p->layouts[2],
                   (void *)(uintptr_t)at[GC_D], p->layouts[3], p->algo, (void *)(uintptr_t)at[GC_WORKSPACE],
                   p->workspace_nbytes, stream);
}
