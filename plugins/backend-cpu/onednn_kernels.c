#include "onednn_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CALLS = 4, MAX_PLACES = 12, MAX_ARGS = 6 };

typedef struct memory_view {
  int32_t operand; /* BC_DNN_WORK: none */
  uint64_t at;     /* in the work space */
  dnnl_memory_desc_t shape;
} memory_view_t;

struct bc_dnn {
  bc_dnn_call_t calls[MAX_CALLS];
  memory_view_t places[MAX_PLACES];
  int32_t n_calls, n_places, n_lanes;
  uint64_t work;
  dnnl_memory_t *memories; /* n_places a lane */
  dnnl_stream_t *streams;  /* one a lane */
};

/* ---- making kernels ---- */

bc_dnn_t *bc_dnn_new(int32_t n_lanes) {
  bc_dnn_t *k = lib()->failure[0] ? NULL : calloc(1, sizeof *k);
  if (k) k->n_lanes = n_lanes;
  return k;
}

int bc_dnn_place(bc_dnn_t *k, const dnnl_memory_desc_t *shape, int32_t operand) {
  memory_view_t *p = &k->places[k->n_places];
  *p = (memory_view_t){.operand = operand, .at = k->work, .shape = *shape};
  if (operand == BC_DNN_WORK) k->work += (lib()->dnnl_memory_desc_get_size(shape) + 63) / 64 * 64;
  return k->n_places++;
}

void bc_dnn_arg(bc_dnn_call_t *c, int arg, int place) {
  c->args[c->n_args].arg = arg;
  c->args[c->n_args++].place = place;
}

bc_dnn_call_t *bc_dnn_call(bc_dnn_t *k, const_dnnl_primitive_desc_t made) {
  bc_dnn_call_t *c = &k->calls[k->n_calls];
  if (lib()->dnnl_primitive_create(&c->primitive, made) != dnnl_success) return NULL;
  k->n_calls++;
  const dnnl_memory_desc_t *own = lib()->dnnl_primitive_desc_query_md(made, dnnl_query_scratchpad_md, 0);
  if (own && lib()->dnnl_memory_desc_get_size(own))
    bc_dnn_arg(c, DNNL_ARG_SCRATCHPAD, bc_dnn_place(k, own, BC_DNN_WORK));
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

bc_dnn_t *bc_dnn_finish(bc_dnn_t *k, int ok) {
  if (ok && finish(k)) return k;
  bc_dnn_destroy(k);
  return NULL;
}

const char *bc_dnn_implementation(const_dnnl_primitive_desc_t made) {
  const char *name = NULL;
  if (lib()->dnnl_primitive_desc_query(made, dnnl_query_impl_info_str, 0, (void *)&name) != dnnl_success) return "ref";
  return name;
}

dnnl_primitive_attr_t bc_dnn_attributes(void) {
  dnnl_primitive_attr_t a = NULL;
  if (lib()->dnnl_primitive_attr_create(&a) == dnnl_success)
    lib()->dnnl_primitive_attr_set_scratchpad_mode(a, dnnl_scratchpad_mode_user);
  return a;
}

int bc_dnn_copy(bc_dnn_t *k, int from, int to) {
  dnnl_primitive_desc_t made = NULL;
  dnnl_primitive_attr_t attributes = bc_dnn_attributes();
  bc_dnn_call_t *call = NULL;
  if (attributes &&
      lib()->dnnl_reorder_primitive_desc_create(&made, &k->places[from].shape, lib()->engine, &k->places[to].shape,
                                                lib()->engine, attributes) == dnnl_success)
    call = bc_dnn_call(k, made);
  if (call) {
    bc_dnn_arg(call, DNNL_ARG_FROM, from);
    bc_dnn_arg(call, DNNL_ARG_TO, to);
  }
  if (made) lib()->dnnl_primitive_desc_destroy(made);
  if (attributes) lib()->dnnl_primitive_attr_destroy(attributes);
  return call != NULL;
}

int bc_dnn_read_as(bc_dnn_t *k, int place, const dnnl_memory_desc_t *shape) {
  if (lib()->dnnl_memory_desc_equal(&k->places[place].shape, shape)) return place;
  const int copy = bc_dnn_place(k, shape, BC_DNN_WORK);
  return bc_dnn_copy(k, place, copy) ? copy : -1;
}

/* ---- running ---- */

uint64_t bc_dnn_work(const bc_dnn_t *k) { return k->work; }

static int run(const bc_dnn_t *k, int32_t lane, void *const *operands, char *work) {
  dnnl_memory_t *memories = k->memories + lane * k->n_places;
  dnnl_exec_arg_t args[MAX_ARGS];
  for (int32_t p = 0; p < k->n_places; p++) {
    const memory_view_t *place = &k->places[p];
    void *at = place->operand == BC_DNN_WORK ? work + place->at : operands[place->operand];
    if (lib()->dnnl_memory_set_data_handle(memories[p], at) != dnnl_success) return 1;
  }
  for (int32_t c = 0; c < k->n_calls; c++) {
    const bc_dnn_call_t *call = &k->calls[c];
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
