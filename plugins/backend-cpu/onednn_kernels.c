#include "onednn_kernels.h"

#include "common/blas/onednn.h"
#include <aot/base.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CALLS = 4, MAX_PLACES = 12, MAX_ARGS = 6, WORK = -1 };

/* Memory that calls read or write: the caller's operand, or a part of the work space. */
typedef struct place {
  int32_t operand; /* WORK: none */
  uint64_t at;     /* in the work space */
  dnnl_memory_desc_t shape;
} place_t;

typedef struct call {
  dnnl_primitive_t primitive;
  int32_t n_args;
  struct {
    int arg, place;
  } args[MAX_ARGS];
} call_t;

struct bc_dnn {
  call_t calls[MAX_CALLS];
  place_t places[MAX_PLACES];
  int32_t n_calls, n_places, n_lanes;
  uint64_t work;
  dnnl_memory_t *memories; /* n_places a lane */
  dnnl_stream_t *streams;  /* one a lane */
};

static const dn_library_t *lib(void) { return dn_library(); }

/* ---- making kernels ---- */

static bc_dnn_t *new_kernel(int32_t n_lanes) {
  bc_dnn_t *k = lib()->failure[0] ? NULL : calloc(1, sizeof *k);
  if (k) k->n_lanes = n_lanes;
  return k;
}

static int add_place(bc_dnn_t *k, const dnnl_memory_desc_t *shape, int32_t operand) {
  place_t *p = &k->places[k->n_places];
  *p = (place_t){.operand = operand, .at = k->work, .shape = *shape};
  if (operand == WORK) k->work += (lib()->dnnl_memory_desc_get_size(shape) + 63) / 64 * 64;
  return k->n_places++;
}

static void add_arg(call_t *c, int arg, int place) {
  c->args[c->n_args].arg = arg;
  c->args[c->n_args++].place = place;
}

/* A call of what `made` describes, with its work space as an argument; the caller adds the others. */
static call_t *add_call(bc_dnn_t *k, const_dnnl_primitive_desc_t made) {
  call_t *c = &k->calls[k->n_calls];
  if (lib()->dnnl_primitive_create(&c->primitive, made) != dnnl_success) return NULL;
  k->n_calls++;
  const dnnl_memory_desc_t *own = lib()->dnnl_primitive_desc_query_md(made, dnnl_query_scratchpad_md, 0);
  if (own && lib()->dnnl_memory_desc_get_size(own)) add_arg(c, DNNL_ARG_SCRATCHPAD, add_place(k, own, WORK));
  return c;
}

/* Memories and streams of all lanes; then it can run. */
static int finish(bc_dnn_t *k) {
  k->memories = calloc((size_t)(k->n_lanes * k->n_places) + 1, sizeof *k->memories);
  k->streams = calloc((size_t)k->n_lanes + 1, sizeof *k->streams);
  int ok = k->memories && k->streams;
  for (int32_t l = 0; l < k->n_lanes && ok; l++) {
    ok = lib()->dnnl_stream_create(&k->streams[l], lib()->engine, dnnl_stream_default_flags) == dnnl_success;
    for (int32_t p = 0; p < k->n_places && ok; p++)
      ok = lib()->dnnl_memory_create(&k->memories[l * k->n_places + p], &k->places[p].shape, lib()->engine,
                                     DNNL_MEMORY_NONE) == dnnl_success;
  }
  return ok;
}

static bc_dnn_t *finished(bc_dnn_t *k, int ok) {
  if (ok && finish(k)) return k;
  bc_dnn_destroy(k);
  return NULL;
}

static int is_fast(const_dnnl_primitive_desc_t made) {
  const char *name = NULL;
  return lib()->dnnl_primitive_desc_query(made, dnnl_query_impl_info_str, 0, (void *)&name) == dnnl_success &&
         strncmp(name, "ref", 3) != 0 && strstr(name, "gemm") == NULL;
}

static dnnl_data_type_t data_type(int32_t dtype) { return dtype == AOT_BF16 ? dnnl_bf16 : dnnl_f32; }

/* Work space comes from the caller: the library's own belongs to the thread that made a primitive. */
static dnnl_primitive_attr_t new_attributes(void) {
  dnnl_primitive_attr_t a = NULL;
  if (lib()->dnnl_primitive_attr_create(&a) == dnnl_success)
    lib()->dnnl_primitive_attr_set_scratchpad_mode(a, dnnl_scratchpad_mode_user);
  return a;
}

/* ---- products ---- */

static int matrix_shape(const bc_matrix_t *m, dnnl_data_type_t type, dnnl_memory_desc_t *out) {
  const dnnl_dims_t sizes = {m->rows, m->columns};
  const dnnl_dims_t strides = {m->transposed ? 1 : m->ld, m->transposed ? m->ld : 1};
  return lib()->dnnl_memory_desc_init_by_strides(out, 2, sizes, type, strides) == dnnl_success;
}

static dnnl_primitive_attr_t product_attributes(const bc_product_t *p) {
  const float alpha = (float)p->alpha;
  dnnl_primitive_attr_t a = new_attributes();
  dnnl_post_ops_t after = NULL;
  if (!a || lib()->dnnl_post_ops_create(&after) != dnnl_success) return a;
  if (alpha != 1) lib()->dnnl_primitive_attr_set_output_scales(a, 1, 0, &alpha);
  if (p->beta != 0) lib()->dnnl_post_ops_append_sum(after, (float)p->beta);
  lib()->dnnl_primitive_attr_set_post_ops(a, after);
  lib()->dnnl_post_ops_destroy(after);
  return a;
}

static int make_product(bc_dnn_t *k, const bc_product_t *p) {
  const dnnl_data_type_t type = data_type(p->dtype);
  dnnl_memory_desc_t a, b, c;
  dnnl_matmul_desc_t d;
  dnnl_primitive_desc_t made = NULL;
  dnnl_primitive_attr_t attributes = product_attributes(p);
  int ok = attributes && matrix_shape(&p->a, type, &a) && matrix_shape(&p->b, type, &b) &&
           matrix_shape(&p->c, type, &c) && lib()->dnnl_matmul_desc_init(&d, &a, &b, NULL, &c) == dnnl_success &&
           lib()->dnnl_primitive_desc_create(&made, &d, attributes, lib()->engine, NULL) == dnnl_success &&
           is_fast(made);
  call_t *call = ok ? add_call(k, made) : NULL;
  if (call) {
    add_arg(call, DNNL_ARG_SRC, add_place(k, &a, 0));
    add_arg(call, DNNL_ARG_WEIGHTS, add_place(k, &b, 1));
    add_arg(call, DNNL_ARG_DST, add_place(k, &c, 2));
  }
  if (made) lib()->dnnl_primitive_desc_destroy(made);
  if (attributes) lib()->dnnl_primitive_attr_destroy(attributes);
  return call != NULL;
}

bc_dnn_t *bc_dnn_product(const bc_product_t *p, int32_t n_lanes) {
  bc_dnn_t *k = new_kernel(n_lanes);
  if (!k) return NULL;
  const int before = dn_begin();
  k = finished(k, make_product(k, p));
  dn_end(before);
  return k;
}

/* ---- running ---- */

uint64_t bc_dnn_work(const bc_dnn_t *k) { return k->work; }

static int run(const bc_dnn_t *k, int32_t lane, void *const *operands, char *work) {
  dnnl_memory_t *memories = k->memories + lane * k->n_places;
  dnnl_exec_arg_t args[MAX_ARGS];
  for (int32_t p = 0; p < k->n_places; p++) {
    const place_t *place = &k->places[p];
    void *at = place->operand == WORK ? work + place->at : operands[place->operand];
    if (lib()->dnnl_memory_set_data_handle(memories[p], at) != dnnl_success) return 1;
  }
  for (int32_t c = 0; c < k->n_calls; c++) {
    const call_t *call = &k->calls[c];
    for (int32_t i = 0; i < call->n_args; i++)
      args[i] = (dnnl_exec_arg_t){call->args[i].arg, memories[call->args[i].place]};
    if (lib()->dnnl_primitive_execute(call->primitive, k->streams[lane], call->n_args, args) != dnnl_success) return 1;
  }
  return 0;
}

int bc_dnn_run(const bc_dnn_t *k, int32_t lane, void *const *operands, void *work) {
  const int before = dn_begin();
  const int failed = run(k, lane, operands, work);
  dn_end(before);
  return failed;
}

void bc_dnn_destroy(void *kernel) {
  bc_dnn_t *k = kernel;
  if (!k) return;
  for (int32_t m = 0; k->memories && m < k->n_lanes * k->n_places; m++)
    if (k->memories[m]) lib()->dnnl_memory_destroy(k->memories[m]);
  for (int32_t l = 0; k->streams && l < k->n_lanes; l++)
    if (k->streams[l]) lib()->dnnl_stream_destroy(k->streams[l]);
  for (int32_t c = 0; c < k->n_calls; c++) lib()->dnnl_primitive_destroy(k->calls[c].primitive);
  free(k->memories);
  free(k->streams);
  free(k);
}

static const char *vectors(void) {
  static const struct {
    int isa;
    const char *name;
  } known[] = {{dnnl_cpu_isa_avx512_core_amx, "amx"},
               {dnnl_cpu_isa_avx512_core_bf16, "avx512_bf16"},
               {dnnl_cpu_isa_avx512_core_vnni, "avx512_vnni"},
               {dnnl_cpu_isa_avx512_core, "avx512"},
               {dnnl_cpu_isa_avx2, "avx2"},
               {dnnl_cpu_isa_avx, "avx"}};
  const int isa = (int)lib()->dnnl_get_effective_cpu_isa();
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if ((isa & known[i].isa) == known[i].isa) return known[i].name;
  return "sse4.1";
}

void bc_dnn_describe(char *out, size_t size) {
  if (lib()->failure[0]) snprintf(out, size, "none: %s", lib()->failure);
  else
    snprintf(out, size, "%d.%d.%d %s", lib()->dnnl_version()->major, lib()->dnnl_version()->minor,
             lib()->dnnl_version()->patch, vectors());
}
