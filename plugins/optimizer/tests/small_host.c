#include "small_host.h"

#include <aot/inline.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static small_host_t *of(aot_prog_t *p) { return (small_host_t *)(void *)p; }

/* ---- numbers ---- */

static double rounded(int32_t dtype, double x) {
  if (dtype == AOT_F32) return (double)(float)x;
  if (dtype == AOT_BF16) {
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    bits = (bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
  }
  return x;
}

/* clang-format off */
static const char *const ops[] = {NULL, /* the operator of no id */
                                  "aten.add.Tensor",  "aten.add.Scalar",   "aten.mul.Tensor",      "aten.mul.Scalar",
                                  "aten.div.Tensor",  "aten.rsub.Scalar",  "aten.pow.Scalar",      "aten.sqrt.default",
                                  "aten.neg.default", "aten.lerp.Scalar",  "aten.addcmul.default",
                                  "aten.maximum.default",
                                  "aten.clamp.default", "aten._to_copy.default"};
/* clang-format on */

/* PyTorch's promotion among floats: a 0-dim tensor does not widen one with dimensions; numbers widen nothing. */
static int32_t promote(const sh_value_t *const *v, uint32_t n) {
  int32_t best = 0, rank = 0;
  for (uint32_t i = 0; i < n; i++) rank = v[i]->rank > rank ? v[i]->rank : rank;
  for (uint32_t i = 0; i < n; i++)
    if (v[i]->rank == rank && (!best || aot_dtype_size(v[i]->dtype) > aot_dtype_size(best))) best = v[i]->dtype;
  return best;
}

/* Fused where PyTorch's vector kernels fuse (add with alpha, lerp); in float for float and 16-bit types. */
static double fused(int32_t dtype, double a, double b, double c) {
  return dtype == AOT_F64 ? fma(a, b, c) : (double)fmaf((float)a, (float)b, (float)c);
}

static double number(const aot_arg_t *a, double preset) {
  return a->kind == AOT_ARG_FLOAT ? a->u.f : a->kind == AOT_ARG_INT ? (double)a->u.i : preset;
}

static double element(const char *op, int32_t dtype, const double *x, const double *k) {
#define R(e) rounded(dtype == AOT_F64 ? AOT_F64 : AOT_F32, e)
  if (strcmp(op, "aten.add.Tensor") == 0) return k[0] == 1 ? R(x[0] + x[1]) : fused(dtype, x[1], R(k[0]), x[0]);
  if (strcmp(op, "aten.add.Scalar") == 0) return R(x[0] + R(k[0]));
  if (strcmp(op, "aten.mul.Tensor") == 0) return R(x[0] * x[1]);
  if (strcmp(op, "aten.mul.Scalar") == 0) return R(x[0] * R(k[0]));
  if (strcmp(op, "aten.div.Tensor") == 0) return R(x[0] / x[1]);
  if (strcmp(op, "aten.rsub.Scalar") == 0) return R(R(k[0]) - x[0]);
  if (strcmp(op, "aten.pow.Scalar") == 0) return R(pow(k[0], x[0]));
  if (strcmp(op, "aten.sqrt.default") == 0) return R(sqrt(x[0]));
  if (strcmp(op, "aten.neg.default") == 0) return -x[0];
  if (strcmp(op, "aten.maximum.default") == 0) return x[0] > x[1] ? x[0] : x[1];
  if (strcmp(op, "aten.clamp.default") == 0) return x[0] < k[1] ? x[0] : k[1];
  if (strcmp(op, "aten.addcmul.default") == 0) return R(x[0] + R(R(R(k[0]) * x[1]) * x[2]));
  if (strcmp(op, "aten.lerp.Scalar") == 0) {
    double w = R(k[0]), d = R(x[1] - x[0]);
    return w < 0.5 ? fused(dtype, w, d, x[0]) : fused(dtype, d, R(w - 1), x[1]);
  }
  return x[0]; /* _to_copy: the caller rounds */
#undef R
}

static void evaluate(small_host_t *h, const aot_node_spec_t *s, sh_value_t *out) {
  const char *op = ops[s->op.id];
  const sh_value_t *in[3] = {NULL, NULL, NULL};
  double k[3] = {1, 1, 1}; /* numbers among the arguments; an absent alpha or value is 1 */
  uint32_t n_in = 0, n_k = 0;
  for (uint32_t i = 0; i < s->n_args; i++) {
    if (s->args[i].kind == AOT_ARG_VALUE) in[n_in++] = &h->values[s->args[i].u.i];
    else k[n_k++] = number(&s->args[i], 0);
  }
  out->dtype = strcmp(op, "aten._to_copy.default") == 0 ? (int32_t)s->args[1].u.i : promote(in, n_in);
  out->rank = 0;
  for (uint32_t i = 0; i < n_in; i++) out->rank = in[i]->rank > out->rank ? in[i]->rank : out->rank;
  for (int e = 0; e < SH_N; e++) {
    double x[3] = {0, 0, 0};
    for (uint32_t i = 0; i < n_in; i++) x[i] = in[i]->x[in[i]->rank ? e : 0];
    out->x[e] = rounded(out->dtype, element(op, out->dtype, x, k));
  }
}

/* ---- graph table ---- */

static const int64_t vector_sizes[1] = {SH_N}, vector_strides[1] = {1};
static aot_type_t type_of(const sh_value_t *v) {
  return (aot_type_t){
      .kind = AOT_TYPE_TENSOR, .dtype = v->dtype, .rank = v->rank, .sizes = vector_sizes, .strides = vector_strides};
}

static uint32_t n_leaves(aot_prog_t *p) { return of(p)->n_leaves; }
static uint32_t n_rules(aot_prog_t *p) { return of(p)->n_rules; }
static aot_status_t leaf_info(aot_prog_t *p, aot_leaf_t l, aot_leaf_info_t *out) {
  static aot_str_t name; /* read at once by the caller */
  name = aot_str(of(p)->leaves[l.id].name);
  *out = (aot_leaf_info_t){
      .struct_size = sizeof *out,
      .role = of(p)->leaves[l.id].role,
      .n_names = 1,
      .names = &name,
      .type = type_of(&of(p)->leaves[l.id].value),
  };
  return AOT_OK;
}
static aot_status_t rule(aot_prog_t *p, uint32_t i, aot_rule_t *out) {
  (void)p;
  *out = (aot_rule_t){.kind = AOT_RULE_COPY_BACK, .a = 1000 + i};
  return AOT_OK;
}
static aot_graph_t graph_find(aot_prog_t *p, int32_t kind) {
  if (kind == AOT_GRAPH_BACKWARD && of(p)->n_backward) return (aot_graph_t){1};
  return (aot_graph_t){kind == AOT_GRAPH_UPDATE && of(p)->has_update ? 2 : AOT_NO_ID};
}
static uint32_t n_outputs(aot_prog_t *p, aot_graph_t g) { return g.id == 1 ? of(p)->n_backward : of(p)->n_outputs; }
static const aot_port_t *outputs(aot_prog_t *p, aot_graph_t g) { return g.id == 1 ? of(p)->backward : of(p)->outputs; }
static aot_status_t value_type(aot_prog_t *p, aot_value_t v, aot_type_t *out) {
  *out = type_of(&of(p)->values[v.id]);
  return AOT_OK;
}
static aot_op_t op_find(aot_prog_t *p, aot_str_t name) {
  (void)p;
  for (uint32_t i = 1; i < sizeof ops / sizeof *ops; i++)
    if (aot_str_eq(name, aot_str(ops[i]))) return (aot_op_t){i};
  return (aot_op_t){AOT_NO_ID};
}
static aot_status_t node_info(aot_prog_t *p, aot_node_t n, aot_node_info_t *out) {
  (void)p;
  out->first_result = (aot_value_t){n.id}; /* a node is called by its value */
  return AOT_OK;
}

/* ---- edit table ---- */

static aot_status_t graph_create(aot_prog_t *p, int32_t kind, aot_str_t name, aot_graph_t *out) {
  (void)name;
  of(p)->has_update = kind == AOT_GRAPH_UPDATE;
  out->id = 2;
  return AOT_OK;
}
static aot_status_t input_add(aot_prog_t *p, aot_graph_t g, int32_t role, uint32_t index, const aot_type_t *t,
                              aot_str_t name, aot_value_t *out) {
  small_host_t *h = of(p);
  (void)g, (void)t, (void)name;
  out->id = h->n_values++;
  if (role == AOT_ROLE_HYPER) h->values[out->id] = (sh_value_t){AOT_F64, 0, {h->lr, 0, 0, 0}};
  else if (role == AOT_ROLE_GRADIENT) h->values[out->id] = h->grad[index];
  else h->values[out->id] = h->leaves[index].value;
  return AOT_OK;
}
static aot_status_t output_add(aot_prog_t *p, aot_graph_t g, int32_t role, uint32_t index, aot_value_t v,
                               aot_str_t name) {
  (void)g;
  of(p)->outputs[of(p)->n_outputs++] = (aot_port_t){.role = role, .index = index, .value = v, .name = name};
  return AOT_OK;
}
static aot_status_t node_create(aot_prog_t *p, aot_graph_t g, const aot_node_spec_t *s, aot_node_t before,
                                aot_node_t *out) {
  small_host_t *h = of(p);
  (void)g, (void)before;
  out->id = h->n_values++;
  evaluate(h, s, &h->values[out->id]);
  return AOT_OK;
}
static aot_status_t leaf_create(aot_prog_t *p, const aot_leaf_info_t *leaf, aot_leaf_t *out) {
  small_host_t *h = of(p);
  sh_leaf_t *l = &h->leaves[out->id = h->n_leaves++];
  if (out->id < h->n_made) return AOT_OK; /* from an earlier step */
  h->n_made = h->n_leaves;
  *l = (sh_leaf_t){.role = leaf->role, .value = {.dtype = leaf->type.dtype, .rank = leaf->type.rank}};
  snprintf(l->name, sizeof l->name, "%.*s", (int)leaf->names[0].size, leaf->names[0].data);
  if (leaf->data) memcpy(l->value.x, leaf->data, (size_t)leaf->nbytes); /* one f64 */
  return AOT_OK;
}
static aot_status_t rule_add(aot_prog_t *p, const aot_rule_t *r) {
  (void)r;
  of(p)->n_rules++;
  return AOT_OK;
}

/* ---- host ---- */

static aot_status_t diag(const aot_host_t *host, aot_ctx_t *ctx, const aot_diag_t *d) {
  (void)host;
  small_host_t *h = (small_host_t *)(void *)ctx;
  h->n_diags++;
  snprintf(h->diag_code, sizeof h->diag_code, "%.*s", (int)d->code.size, d->code.data);
  return AOT_OK;
}
static void *alloc(const aot_host_t *host, aot_ctx_t *ctx, uint32_t arena, uint32_t align, uint64_t size) {
  small_host_t *h = (small_host_t *)(void *)ctx;
  (void)host, (void)arena;
  h->used = (h->used + align - 1) / align * align;
  if (h->used > sizeof h->memory || size > sizeof h->memory - h->used) return NULL;
  void *at = h->memory + h->used;
  h->used += (size_t)size;
  return memset(at, 0, (size_t)size);
}

void sh_init(small_host_t *h) {
  memset(h, 0, sizeof *h);
  h->n_leaves = 1; /* ids count from 1 */
  h->graph = (aot_graph_api_t){
      .head = {.struct_size = sizeof h->graph},
      .n_leaves = n_leaves,
      .leaf_info = leaf_info,
      .n_rules = n_rules,
      .rule = rule,
      .graph_find = graph_find,
      .n_outputs = n_outputs,
      .outputs = outputs,
      .value_type = value_type,
      .op_find = op_find,
      .node_info = node_info,
  };
  h->edit = (aot_edit_api_t){
      .head = {.struct_size = sizeof h->edit},
      .graph_create = graph_create,
      .input_add = input_add,
      .output_add = output_add,
      .node_create = node_create,
      .leaf_create = leaf_create,
      .rule_add = rule_add,
  };
  h->host = (aot_host_t){
      .head = {.struct_size = sizeof h->host},
      .graph = &h->graph,
      .edit = &h->edit,
      .diag = diag,
      .alloc = alloc,
  };
}

uint32_t sh_param(small_host_t *h, const char *name, int32_t dtype, int32_t rank, const double *x) {
  uint32_t id = h->n_leaves++;
  sh_leaf_t *l = &h->leaves[id];
  h->n_made = h->n_leaves;
  *l = (sh_leaf_t){.role = AOT_ROLE_PARAMETER, .value = {.dtype = dtype, .rank = rank}};
  snprintf(l->name, sizeof l->name, "%s", name);
  for (int e = 0; e < (rank ? SH_N : 1); e++) l->value.x[e] = rounded(dtype, x[e]);
  return id;
}

void sh_grad(small_host_t *h, uint32_t leaf, const double *x) {
  h->grad[leaf] = h->leaves[leaf].value;
  for (int e = 0; e < SH_N; e++) h->grad[leaf].x[e] = rounded(h->grad[leaf].dtype, x[e]);
}

/* The BACKWARD graph again: its gradients are values of their own. */
void sh_begin_step(small_host_t *h) {
  uint32_t n_params = 1;
  while (n_params < h->n_made && h->leaves[n_params].role == AOT_ROLE_PARAMETER) n_params++;
  h->n_leaves = n_params;
  h->n_values = 1;
  h->n_outputs = h->n_rules = h->n_backward = 0;
  h->has_update = 0;
  h->used = 0;
  for (uint32_t i = 1; i < n_params; i++) {
    aot_value_t v = {AOT_NO_ID};
    if (h->grad[i].dtype) {
      v.id = h->n_values++;
      h->values[v.id] = h->grad[i];
    }
    h->backward[h->n_backward++] = (aot_port_t){.role = AOT_ROLE_GRADIENT, .index = i, .value = v};
  }
}

void sh_end_step(small_host_t *h) {
  for (uint32_t i = 0; i < h->n_outputs; i++) h->leaves[h->outputs[i].index].value = h->values[h->outputs[i].value.id];
}
