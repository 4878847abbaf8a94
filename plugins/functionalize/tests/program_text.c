#include "program_text.h"

const char *const eg_names[EG_N_OPS] = {
    [EG_ADD] = "aten.add.Tensor", [EG_SUB] = "aten.sub.Tensor", [EG_MUL] = "aten.mul.Tensor",
    [EG_MUL_SCALAR] = "aten.mul.Scalar", [EG_RELU] = "aten.relu.default", [EG_TANH] = "aten.tanh.default",
    [EG_CLONE] = "aten.clone.default", [EG_SUM] = "aten.sum.dim_IntList", [EG_INDEX] = "aten.index.Tensor",
    [EG_VIEW] = "aten.view.default", [EG_RESHAPE] = "aten.reshape.default", [EG_FLATTEN] = "aten.flatten.using_ints",
    [EG_CONTIGUOUS] = "aten.contiguous.default", [EG_TRANSPOSE] = "aten.transpose.int", [EG_SWAPAXES] = "aten.swapaxes.default",
    [EG_T] = "aten.t.default", [EG_PERMUTE] = "aten.permute.default", [EG_SELECT] = "aten.select.int",
    [EG_SLICE] = "aten.slice.Tensor", [EG_NARROW] = "aten.narrow.default", [EG_SPLIT] = "aten.split.Tensor",
    [EG_UNBIND] = "aten.unbind.int", [EG_CHUNK] = "aten.chunk.default", [EG_EXPAND] = "aten.expand.default",
    [EG_UNSQUEEZE] = "aten.unsqueeze.default", [EG_SQUEEZE] = "aten.squeeze.dim", [EG_DIAGONAL] = "aten.diagonal.default",
    [EG_AS_STRIDED] = "aten.as_strided.default", [EG_ALIAS] = "aten.alias.default", [EG_DETACH] = "aten.detach.default",
    [EG_ADD_] = "aten.add_.Tensor", [EG_MUL_] = "aten.mul_.Tensor", [EG_MUL_SCALAR_] = "aten.mul_.Scalar",
    [EG_COPY_] = "aten.copy_.default", [EG_FILL_] = "aten.fill_.Scalar", [EG_ZERO_] = "aten.zero_.default",
    [EG_RELU_] = "aten.relu_.default", [EG_TANH_] = "aten.tanh_.default", [EG_INDEX_PUT_] = "aten.index_put_.default",
    [EG_T_] = "aten.t_.default", [EG_TRANSPOSE_] = "aten.transpose_.default", [EG_UNSQUEEZE_] = "aten.unsqueeze_.default",
    [EG_SQUEEZE_] = "aten.squeeze_.dim", [EG_DETACH_] = "aten.detach_.default",
};

static void put_size(int64_t size, int symbolic, aoth_text_t *out) {
  if (symbolic && size == EG_SYMBOL) aoth_text_z(out, "s0");
  else aoth_text_i64(out, size);
}

static void put_type(const eg_shape_t *t, int symbolic, aoth_text_t *out) {
  aoth_text_z(out, "f64[");
  for (int d = 0; d < t->rank; d++) {
    if (d) aoth_text_z(out, ", ");
    put_size(t->size[d], symbolic, out);
  }
  aoth_text_z(out, "]");
  if (symbolic) return; /* contiguous */
  aoth_text_z(out, " strides [");
  for (int d = 0; d < t->rank; d++) aoth_text_f(out, d ? ", %lld" : "%lld", (long long)t->stride[d]);
  aoth_text_f(out, "] offset %lld", (long long)t->offset);
}

static void put_list(const int64_t *p, int64_t n, aoth_text_t *out) {
  aoth_text_z(out, ", [");
  for (int64_t i = 0; i < n; i++) aoth_text_f(out, i ? ", %lld" : "%lld", (long long)p[i]);
  aoth_text_z(out, "]");
}

/* Where types are inferred, a tensor goes by the last value that it has: the first may have had another shape. */
static int name_of(const eg_world_t *w, int value, int before, int symbolic) {
  for (int v = before - 1; symbolic && v > value; v--)
    if (w->tensor_of[v] == w->tensor_of[value]) return v;
  return value;
}

static void put_args(const eg_step_t *s, int b, aoth_text_t *out) {
  const long long p0 = s->p[0], p1 = s->p[1], p2 = s->p[2], p3 = s->p[3];
  if (s->op == EG_INDEX || s->op == EG_INDEX_PUT_) aoth_text_z(out, ", [%index]");
  if (b >= 0) aoth_text_f(out, ", %%v%d", b);
  switch (s->op) {
    case EG_MUL_SCALAR: case EG_MUL_SCALAR_: case EG_FILL_: aoth_text_f(out, ", %.6f", s->number); break;
    case EG_SUM: aoth_text_f(out, ", [%lld]", p0); break;
    case EG_VIEW: case EG_RESHAPE: case EG_EXPAND: put_list(s->p + 1, p0, out); break;
    case EG_PERMUTE: put_list(s->p + 1, p0, out); break;
    case EG_TRANSPOSE: case EG_TRANSPOSE_: case EG_SWAPAXES: case EG_SELECT: aoth_text_f(out, ", %lld, %lld", p0, p1); break;
    case EG_SLICE: aoth_text_f(out, ", %lld, %lld, %lld, %lld", p0, p1, p1 + (p2 - 1) * p3 + 1, p3); break;
    case EG_NARROW: aoth_text_f(out, ", %lld, %lld, %lld", p0, p1, p2); break;
    case EG_SPLIT: case EG_CHUNK: aoth_text_f(out, ", %lld, %lld", p1, p0); break;
    case EG_UNBIND: case EG_UNSQUEEZE: case EG_UNSQUEEZE_: case EG_SQUEEZE: case EG_SQUEEZE_: aoth_text_f(out, ", %lld", p0); break;
    case EG_AS_STRIDED: aoth_text_f(out, ", [%lld], [%lld], %lld", p0, p1, p2); break;
    default: break;
  }
}

static void put_step(const eg_step_t *s, const eg_world_t *w, int symbolic, aoth_text_t *out) {
  aoth_text_z(out, "  ");
  for (int r = 0; r < s->n_results; r++) {
    aoth_text_f(out, r ? ", %%v%d" : "%%v%d", s->first + r);
    if (symbolic) continue;
    aoth_text_z(out, " : ");
    put_type(&w->made[s->first + r], 0, out);
  }
  aoth_text_f(out, " = %s %%v%d", eg_names[s->op], name_of(w, s->a, s->first, symbolic));
  put_args(s, s->b < 0 ? -1 : name_of(w, s->b, s->first, symbolic), out);
  aoth_text_z(out, s->no_grad ? " {no_grad}\n" : "\n");
}

static void put_inputs(const eg_program_t *p, int symbolic, const char *before, aoth_text_t *out, int in_graph) {
  for (int i = 0; i < p->n_inputs; i++) {
    if (in_graph) aoth_text_f(out, "  in %%v%d = user_input %d : ", i, i);
    else aoth_text_f(out, "%sleaf %d user_input %d \"x%d\" : ", before, i, i, i);
    put_type(&p->input[i].at, symbolic, out);
    aoth_text_z(out, p->input[i].requires_grad ? " grad\n" : "\n");
  }
}

void eg_print(const eg_program_t *p, const eg_world_t *w, int symbolic, aoth_text_t *out) {
  aoth_text_z(out, "aot 1\nproperties imported\n");
  if (symbolic) aoth_text_f(out, "symbol s0 in [2, 64] hint %d\n", EG_SYMBOL);
  put_inputs(p, symbolic, "", out, 0);
  aoth_text_f(out, "leaf %d user_input %d \"index\" : i64[2]\n", p->n_inputs, p->n_inputs);
  aoth_text_z(out, "graph @main forward {\n");
  put_inputs(p, symbolic, "", out, 1);
  aoth_text_f(out, "  in %%index = user_input %d : i64[2]\n", p->n_inputs);
  for (int i = 0; i < p->n_steps; i++) put_step(&p->step[i], w, symbolic, out);
  for (int i = 0; i < p->n_outputs; i++) aoth_text_f(out, "  out user_output %d = %%v%d\n", i, p->output[i]);
  aoth_text_z(out, "}\n");
}
