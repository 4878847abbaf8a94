#include "cudnn_plan.h"

#include <aot/base.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DESCRIPTORS = GC_DNN_MAX_TENSORS + 2 * GC_DNN_MAX_OPS + 64, MAX_CONFIGS = 24, MAX_NOTES = 32 };
enum { MODE_A = 3, MODE_FALLBACK = 2, CROSS_CORRELATION = 1 };
#define MOST_WORKSPACE (INT64_C(2) << 30)

/* What is made on the way to a plan, and the first failure: after it nothing more is done. */
typedef struct maker {
  const gc_cudnn_t *c;
  void *made[MAX_DESCRIPTORS];
  uint32_t n_made;
  int status;
  const char *what; /* that failed */
} maker_t;

static int data_type(int32_t dtype) { /* cudnnDataType_t */
  switch (dtype) {
    case AOT_F64: return 1;
    case AOT_F16: return 2;
    case AOT_I32: return 4;
    case AOT_BF16: return 9;
    case AOT_BOOL: return 11;
    default: return 0; /* AOT_F32 */
  }
}

static void *make(maker_t *m, int type, const char *what) {
  void *desc = NULL;
  if (m->status) return NULL;
  m->status = m->c->desc_create(type, &desc);
  if (m->status) m->what = what;
  else m->made[m->n_made++] = desc;
  return desc;
}

static void set(maker_t *m, void *desc, int attribute, int type, int64_t n, const void *values, const char *what) {
  if (m->status) return;
  m->status = m->c->desc_set(desc, attribute, type, n, values);
  if (m->status) m->what = what;
}

static void finalize(maker_t *m, void *desc, const char *what) {
  if (m->status) return;
  m->status = m->c->desc_finalize(desc);
  if (m->status) m->what = what;
}

/* ---- tensors and operations ---- */

static void *make_tensor(maker_t *m, const gc_dnn_tensor_t *t, int64_t id) {
  const int type = data_type(t->dtype);
  const int64_t align = GC_DNN_ALIGN;
  const bool yes = true;
  void *d = make(m, GC_DNN_TENSOR, "tensor");
  set(m, d, GC_DNN_TENSOR_TYPE, GC_DNN_T_DATA_TYPE, 1, &type, "type of a tensor");
  set(m, d, GC_DNN_TENSOR_SIZES, GC_DNN_T_INT64, t->rank, t->sizes, "sizes of a tensor");
  set(m, d, GC_DNN_TENSOR_STRIDES, GC_DNN_T_INT64, t->rank, t->strides, "strides of a tensor");
  set(m, d, GC_DNN_TENSOR_ID, GC_DNN_T_INT64, 1, &id, "number of a tensor");
  set(m, d, GC_DNN_TENSOR_ALIGNMENT, GC_DNN_T_INT64, 1, &align, "alignment of a tensor");
  if (t->kind == GC_DNN_VIRTUAL) set(m, d, GC_DNN_TENSOR_IS_VIRTUAL, GC_DNN_T_BOOLEAN, 1, &yes, "virtual tensor");
  if (t->kind == GC_DNN_NUMBER) set(m, d, GC_DNN_TENSOR_IS_BY_VALUE, GC_DNN_T_BOOLEAN, 1, &yes, "number");
  finalize(m, d, "tensor");
  return d;
}

/* Descriptor and attributes by kind of operation; 0: it has none. */
static const struct op_kind {
  int desc, x, b, t, y;  /* attributes of operands */
  int params, of_params; /* a descriptor of its own for the parameters, and the attribute that names it */
  int alpha;             /* of a convolution; beta's is the next one */
} kinds[] = {
    [GC_DNN_MATMUL] = {GC_DNN_OPERATION_MATMUL, 1520, 1521, 0, 1522, GC_DNN_MATMUL_DESC, 1523, 0},
    [GC_DNN_POINTWISE] = {GC_DNN_OPERATION_POINTWISE, 751, 752, 758, 753, GC_DNN_POINTWISE_DESC, GC_DNN_OF_POINTWISE,
                          0},
    [GC_DNN_REDUCTION] = {GC_DNN_OPERATION_REDUCTION, 1610, 0, 0, 1611, GC_DNN_REDUCTION_DESC, 1612, 0},
    [GC_DNN_RESHAPE] = {GC_DNN_OPERATION_RESHAPE, 2200, 0, 0, 2201, 0, 0, 0},
    [GC_DNN_CONV_FORWARD] = {GC_DNN_OPERATION_CONV_FORWARD, 704, 703, 0, 705, GC_DNN_CONVOLUTION_DESC, 702,
                             GC_DNN_CONV_FORWARD_ALPHA},
    [GC_DNN_CONV_DATA] = {GC_DNN_OPERATION_CONV_DATA, 711, 709, 0, 710, GC_DNN_CONVOLUTION_DESC, 708,
                          GC_DNN_CONV_DATA_ALPHA},
    [GC_DNN_CONV_WEIGHTS] = {GC_DNN_OPERATION_CONV_WEIGHTS, 716, 717, 0, 715, GC_DNN_CONVOLUTION_DESC, 714,
                             GC_DNN_CONV_WEIGHTS_ALPHA},
};

static void set_window(maker_t *m, void *d, const gc_dnn_window_t *w) {
  const int64_t rank = w->rank;
  const int mode = CROSS_CORRELATION;
  set(m, d, GC_DNN_CONV_MODE, GC_DNN_T_CONVOLUTION_MODE, 1, &mode, "mode of a convolution");
  set(m, d, GC_DNN_CONV_SPATIAL_DIMS, GC_DNN_T_INT64, 1, &rank, "dimensions of a convolution");
  set(m, d, GC_DNN_CONV_PRE_PADDINGS, GC_DNN_T_INT64, rank, w->pad, "padding of a convolution");
  set(m, d, GC_DNN_CONV_POST_PADDINGS, GC_DNN_T_INT64, rank, w->pad, "padding of a convolution");
  set(m, d, GC_DNN_CONV_STRIDES, GC_DNN_T_INT64, rank, w->stride, "strides of a convolution");
  set(m, d, GC_DNN_CONV_DILATIONS, GC_DNN_T_INT64, rank, w->dilation, "dilation of a convolution");
}

static void *make_params(maker_t *m, const gc_dnn_graph_t *g, const gc_dnn_op_t *op) {
  void *d = make(m, kinds[op->kind].params, "parameters of an operation");
  const int math = data_type(op->math);
  const int64_t axis = op->axis;
  switch (op->kind) {
    case GC_DNN_MATMUL: set(m, d, GC_DNN_MATMUL_MATH, GC_DNN_T_DATA_TYPE, 1, &math, "type of a product"); break;
    case GC_DNN_POINTWISE:
      set(m, d, GC_DNN_POINTWISE_MODE, GC_DNN_T_POINTWISE_MODE, 1, &op->mode, "mode of a pointwise operation");
      set(m, d, GC_DNN_POINTWISE_MATH, GC_DNN_T_DATA_TYPE, 1, &math, "type of a pointwise operation");
      if (axis >= 0) set(m, d, GC_DNN_POINTWISE_AXIS, GC_DNN_T_INT64, 1, &axis, "axis of a pointwise operation");
      break;
    case GC_DNN_REDUCTION:
      set(m, d, GC_DNN_REDUCTION_MODE, GC_DNN_T_REDUCTION_MODE, 1, &op->mode, "mode of a reduction");
      set(m, d, GC_DNN_REDUCTION_MATH, GC_DNN_T_DATA_TYPE, 1, &math, "type of a reduction");
      break;
    default:
      set(m, d, GC_DNN_CONV_MATH, GC_DNN_T_DATA_TYPE, 1, &math, "type of a convolution");
      set_window(m, d, &g->window);
  }
  finalize(m, d, "parameters of an operation");
  return d;
}

static void set_operand(maker_t *m, void *d, int attribute, void *const *tensors, uint32_t tensor) {
  if (attribute && tensor != GC_DNN_NONE)
    set(m, d, attribute, GC_DNN_T_DESCRIPTOR, 1, &tensors[tensor], "operand of an operation");
}

static void *make_op(maker_t *m, const gc_dnn_graph_t *g, const gc_dnn_op_t *op, void *const *tensors) {
  const struct op_kind *kind = &kinds[op->kind];
  const float one = 1, zero = 0;
  void *params = kind->params || kind->of_params ? make_params(m, g, op) : NULL;
  void *d = make(m, kind->desc, "operation");
  if (params) set(m, d, kind->of_params, GC_DNN_T_DESCRIPTOR, 1, &params, "parameters of an operation");
  set_operand(m, d, kind->x, tensors, op->x);
  set_operand(m, d, kind->b, tensors, op->b);
  set_operand(m, d, kind->t, tensors, op->t);
  set_operand(m, d, kind->y, tensors, op->y);
  if (op->kind == GC_DNN_POINTWISE) {
    set(m, d, GC_DNN_ALPHA1, GC_DNN_T_FLOAT, 1, &one, "factor of an operation");
    set(m, d, GC_DNN_ALPHA2, GC_DNN_T_FLOAT, 1, &one, "factor of an operation");
  }
  if (kind->alpha) {
    set(m, d, kind->alpha, GC_DNN_T_FLOAT, 1, &one, "factor of an operation");
    set(m, d, kind->alpha + 1, GC_DNN_T_FLOAT, 1, &zero, "factor of an operation");
  }
  finalize(m, d, "operation");
  return d;
}

static void *make_graph(maker_t *m, const gc_dnn_graph_t *g) {
  void *tensors[GC_DNN_MAX_TENSORS], *ops[GC_DNN_MAX_OPS];
  for (uint32_t k = 0; k < g->n_tensors; k++)
    tensors[k] = gc_dnn_is_used(g, k) ? make_tensor(m, &g->tensors[k], k + 1) : NULL;
  for (uint32_t i = 0; i < g->n_ops; i++) ops[i] = make_op(m, g, &g->ops[i], tensors);
  void *d = make(m, GC_DNN_OPERATION_GRAPH, "graph");
  set(m, d, GC_DNN_GRAPH_OPERATIONS, GC_DNN_T_DESCRIPTOR, g->n_ops, ops, "operations of a graph");
  if (m->c->handle) set(m, d, GC_DNN_GRAPH_HANDLE, GC_DNN_T_HANDLE, 1, &m->c->handle, "handle of a graph");
  finalize(m, d, "graph");
  return d;
}

/* ---- engines ---- */

/* Configurations of engines in the order of cuDNN's heuristic; their number. */
static int64_t ask(maker_t *m, void *graph, int mode, void **configs) {
  int64_t n = 0;
  void *d = make(m, GC_DNN_HEURISTIC, "heuristic");
  set(m, d, GC_DNN_HEURISTIC_GRAPH, GC_DNN_T_DESCRIPTOR, 1, &graph, "heuristic");
  set(m, d, GC_DNN_HEURISTIC_MODE, GC_DNN_T_HEURISTIC_MODE, 1, &mode, "heuristic");
  if (m->c->device) set(m, d, GC_DNN_HEURISTIC_DEVICE, GC_DNN_T_DESCRIPTOR, 1, &m->c->device, "heuristic");
  finalize(m, d, "heuristic");
  for (int k = 0; k < MAX_CONFIGS; k++) configs[k] = make(m, GC_DNN_ENGINE_CONFIG, "engine");
  if (m->status) return 0;
  m->status = m->c->desc_get(d, GC_DNN_HEURISTIC_RESULTS, GC_DNN_T_DESCRIPTOR, MAX_CONFIGS, &n, configs);
  m->what = "engines";
  return m->status ? 0 : n;
}

/* Bits of its notes; *out_index: the engine's number. */
static uint32_t notes_of(const gc_cudnn_t *c, void *config, int64_t *out_index) {
  int notes[MAX_NOTES];
  int64_t n = 0;
  uint32_t bits = 0;
  void *engine = NULL;
  if (c->desc_create(GC_DNN_ENGINE, &engine)) return 0;
  if (!c->desc_get(config, GC_DNN_CONFIG_ENGINE, GC_DNN_T_DESCRIPTOR, 1, &n, &engine)) {
    c->desc_get(engine, GC_DNN_ENGINE_INDEX, GC_DNN_T_INT64, 1, &n, out_index);
    n = 0;
    if (c->desc_get(engine, GC_DNN_ENGINE_NOTES, GC_DNN_T_NOTE, MAX_NOTES, &n, notes)) n = 0;
    for (int64_t k = 0; k < n && k < MAX_NOTES; k++)
      if (notes[k] >= 0 && notes[k] < 32) bits |= UINT32_C(1) << notes[k];
  }
  c->desc_destroy(engine);
  return bits;
}

/* A plan with this engine, which is the caller's. The status: why there is none. */
static int make_plan(const gc_cudnn_t *c, void *config, void **out, int64_t *out_workspace) {
  void *d = NULL;
  int64_t n = 0;
  int status = c->desc_create(GC_DNN_EXECUTION_PLAN, &d);
  if (!status) status = c->desc_set(d, GC_DNN_PLAN_CONFIG, GC_DNN_T_DESCRIPTOR, 1, &config);
  if (!status && c->handle) status = c->desc_set(d, GC_DNN_PLAN_HANDLE, GC_DNN_T_HANDLE, 1, &c->handle);
  if (!status && c->device) status = c->desc_set(d, GC_DNN_PLAN_DEVICE, GC_DNN_T_DESCRIPTOR, 1, &c->device);
  if (!status) status = c->desc_finalize(d);
  if (!status) status = c->desc_get(d, GC_DNN_PLAN_WORKSPACE, GC_DNN_T_INT64, 1, &n, out_workspace);
  if (status && d) c->desc_destroy(d);
  else *out = d;
  return status;
}

/* The first engine that the heuristic names, takes the graph, and has no note that is not wanted. */
static void choose(maker_t *m, void *graph, const gc_dnn_graph_t *g, gc_dnn_plan_t *p) {
  static const int modes[] = {MODE_A, MODE_FALLBACK};
  for (size_t k = 0; k < sizeof modes / sizeof *modes && !p->desc; k++) {
    void *configs[MAX_CONFIGS];
    const int64_t n = ask(m, graph, modes[k], configs);
    for (int64_t i = 0; i < n && !p->desc; i++) {
      int64_t workspace = 0;
      void *plan = NULL;
      if (notes_of(m->c, configs[i], &p->engine) & g->without) continue;
      m->status = make_plan(m->c, configs[i], &plan, &workspace);
      m->what = "plan";
      if (m->status) continue;
      if (workspace <= MOST_WORKSPACE) {
        p->desc = plan;
        p->workspace_nbytes = (uint64_t)workspace;
      } else {
        m->c->desc_destroy(plan);
      }
    }
    if (!p->desc && !p->why[0] && m->status) gc_cudnn_failed(m->c, m->status, m->what, p->why, sizeof p->why);
    m->status = 0;
  }
}

void gc_dnn_build(const gc_cudnn_t *c, const gc_dnn_graph_t *g, gc_dnn_plan_t *p) {
  maker_t m = {.c = c};
  void *graph = make_graph(&m, g);
  if (m.status) gc_cudnn_failed(c, m.status, m.what, p->why, sizeof p->why);
  else choose(&m, graph, g, p);
  if (!p->desc && !p->why[0]) snprintf(p->why, sizeof p->why, "cuDNN %zu has no engine for it", c->version);
  while (m.n_made) c->desc_destroy(m.made[--m.n_made]);
}

/* ---- as text ---- */

char *gc_dnn_plan_words(const gc_cudnn_t *c, const gc_dnn_plan_t *p, size_t *out_nbytes) {
  int64_t n = 0;
  if (c->desc_get(p->desc, GC_DNN_PLAN_WORDS, GC_DNN_T_CHAR, 0, &n, NULL) || n <= 0) return NULL;
  char *words = calloc(1, (size_t)n + 1);
  if (words && !c->desc_get(p->desc, GC_DNN_PLAN_WORDS, GC_DNN_T_CHAR, n, &n, words)) {
    *out_nbytes = (size_t)n;
    return words;
  }
  free(words);
  return NULL;
}

int gc_dnn_plan_from_words(const gc_cudnn_t *c, const char *words, size_t nbytes, gc_dnn_plan_t *p) {
  void *d = NULL;
  int64_t n = 0, workspace = 0;
  int status = c->desc_create(GC_DNN_EXECUTION_PLAN, &d);
  if (!status && c->handle) status = c->desc_set(d, GC_DNN_PLAN_HANDLE, GC_DNN_T_HANDLE, 1, &c->handle);
  if (!status && c->device) status = c->desc_set(d, GC_DNN_PLAN_DEVICE, GC_DNN_T_DESCRIPTOR, 1, &c->device);
  if (!status) status = c->desc_set(d, GC_DNN_PLAN_WORDS, GC_DNN_T_CHAR, (int64_t)nbytes, words);
  if (!status) status = c->desc_finalize(d);
  if (!status) status = c->desc_get(d, GC_DNN_PLAN_WORKSPACE, GC_DNN_T_INT64, 1, &n, &workspace);
  if (status && d) c->desc_destroy(d);
  if (status) return 0;
  p->desc = d;
  p->workspace_nbytes = (uint64_t)workspace;
  return 1;
}

/* ---- without a device ---- */

static uint64_t round_up(int64_t n, int64_t to) { return (uint64_t)((n + to - 1) / to * to); }

/* Gradients of each head of queries, which are summed for the one of keys that they share. */
static uint64_t shared_nbytes(const gc_dnn_tensor_t *t) {
  return t->dtype == AOT_F32 ? 0 : 2 * (uint64_t)(t->sizes[0] * t->sizes[1] * t->sizes[2] * t->sizes[3]);
}

uint64_t gc_dnn_usual_workspace(const gc_dnn_graph_t *g) {
  enum { LEAST = 256, QUERIES = 64, KEYS = 128 };
  const gc_dnn_op_t *op = &g->ops[g->n_ops - 1];
  const gc_dnn_tensor_t *x = &g->tensors[op->x];
  uint64_t n = LEAST;
  for (uint32_t i = 0; i < g->n_ops; i++)
    if (g->ops[i].kind == GC_DNN_REDUCTION) n += shared_nbytes(&g->tensors[g->ops[i].x]);
  if (op->kind == GC_DNN_MATMUL && x->dtype == AOT_F32) /* the scores' gradient, for that of the queries */
    return n + 2 * (uint64_t)(x->sizes[0] * x->sizes[1]) * round_up(x->sizes[2], QUERIES) * round_up(x->sizes[3], KEYS);
  if (op->kind < GC_DNN_CONV_FORWARD || x->dtype == AOT_F32) return n;
  for (uint32_t k = 0; k < g->n_tensors; k++) {
    uint64_t nbytes = g->tensors[k].strides[1] == 1 ? 0 : 2;
    for (int32_t d = 0; d < g->tensors[k].rank; d++) nbytes *= (uint64_t)g->tensors[k].sizes[d];
    n += nbytes;
  }
  return n;
}

/* ---- running ---- */

int gc_dnn_run(const gc_cudnn_t *c, const gc_dnn_plan_t *p, const gc_dnn_graph_t *g, const gc_address_t *addresses,
               gc_address_t workspace, gc_stream_t stream) {
  int64_t ids[GC_DNN_MAX_TENSORS], n = 0;
  const void *pointers[GC_DNN_MAX_TENSORS];
  const void *const memory = (const void *)(uintptr_t)workspace;
  void *pack = NULL;
  for (uint32_t k = 0; k < g->n_tensors; k++) {
    const gc_dnn_tensor_t *t = &g->tensors[k];
    if (t->kind == GC_DNN_VIRTUAL || !gc_dnn_is_used(g, k)) continue;
    ids[n] = k + 1;
    pointers[n++] = t->kind == GC_DNN_NUMBER ? (const void *)&t->number : (const void *)(uintptr_t)addresses[k];
  }
  int status = c->set_stream(c->handle, stream);
  if (!status) status = c->desc_create(GC_DNN_VARIANT_PACK, &pack);
  if (!status) status = c->desc_set(pack, GC_DNN_PACK_IDS, GC_DNN_T_INT64, n, ids);
  if (!status) status = c->desc_set(pack, GC_DNN_PACK_POINTERS, GC_DNN_T_POINTER, n, pointers);
  if (!status) status = c->desc_set(pack, GC_DNN_PACK_WORKSPACE, GC_DNN_T_POINTER, 1, &memory);
  if (!status) status = c->desc_finalize(pack);
  if (!status) status = c->execute(c->handle, p->desc, pack);
  if (pack) c->desc_destroy(pack);
  return status;
}
