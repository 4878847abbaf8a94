#include "program_text.h"

#include <string.h>

/* clang-format off */
const char *const eg_names[EG_N_OPS] = {
    [EG_ADD] = "aten.add.Tensor", [EG_SUB] = "aten.sub.Tensor", [EG_MUL] = "aten.mul.Tensor",
    [EG_MUL_SCALAR] = "aten.mul.Scalar", [EG_RELU] = "aten.relu.default", [EG_TANH] = "aten.tanh.default",
    [EG_CLONE] = "aten.clone.default", [EG_GT] = "aten.gt.Scalar", [EG_TO_COPY] = "aten._to_copy.default",
    [EG_SUM] = "aten.sum.dim_IntList", [EG_INDEX] = "aten.index.Tensor",
    [EG_VIEW] = "aten.view.default", [EG_RESHAPE] = "aten.reshape.default", [EG_FLATTEN] = "aten.flatten.using_ints",
    [EG_RAVEL] = "aten.ravel.default", [EG_CONTIGUOUS] = "aten.contiguous.default", [EG_TO] = "aten.to.dtype",
    [EG_TRANSPOSE] = "aten.transpose.int", [EG_SWAPAXES] = "aten.swapaxes.default",
    [EG_T] = "aten.t.default", [EG_MT] = "aten.mT.default", [EG_PERMUTE] = "aten.permute.default",
    [EG_MOVEDIM] = "aten.movedim.int",
    [EG_SELECT] = "aten.select.int", [EG_SLICE] = "aten.slice.Tensor", [EG_NARROW] = "aten.narrow.default",
    [EG_SPLIT] = "aten.split.Tensor", [EG_SPLIT_SIZES] = "aten.split_with_sizes.default",
    [EG_TENSOR_SPLIT] = "aten.tensor_split.sections", [EG_UNBIND] = "aten.unbind.int",
    [EG_CHUNK] = "aten.chunk.default",
    [EG_EXPAND] = "aten.expand.default", [EG_UNSQUEEZE] = "aten.unsqueeze.default", [EG_SQUEEZE] = "aten.squeeze.dim",
    [EG_SQUEEZE_ALL] = "aten.squeeze.default", [EG_UNFLATTEN] = "aten.unflatten.int",
    [EG_UNFOLD] = "aten.unfold.default",
    [EG_DIAGONAL] = "aten.diagonal.default", [EG_AS_STRIDED] = "aten.as_strided.default",
    [EG_ALIAS] = "aten.alias.default",
    [EG_DETACH] = "aten.detach.default",
    [EG_ADD_] = "aten.add_.Tensor", [EG_SUB_] = "aten.sub_.Tensor", [EG_MUL_] = "aten.mul_.Tensor",
    [EG_ADDCMUL_] = "aten.addcmul_.default", [EG_LERP_] = "aten.lerp_.Scalar", [EG_MUL_SCALAR_] = "aten.mul_.Scalar",
    [EG_COPY_] = "aten.copy_.default", [EG_FILL_] = "aten.fill_.Scalar", [EG_ZERO_] = "aten.zero_.default",
    [EG_RELU_] = "aten.relu_.default", [EG_TANH_] = "aten.tanh_.default", [EG_NEG_] = "aten.neg_.default",
    [EG_SIN_] = "aten.sin_.default",
    [EG_MASKED_FILL_] = "aten.masked_fill_.Scalar", [EG_TRIU_] = "aten.triu_.default",
    [EG_TRIL_] = "aten.tril_.default",
    [EG_CUMSUM_] = "aten.cumsum_.default", [EG_INDEX_PUT_] = "aten.index_put_.default",
    [EG_INDEX_PUT_ADD_] = "aten.index_put_.default",
    [EG_INDEX_ADD_] = "aten.index_add_.default", [EG_INDEX_COPY_] = "aten.index_copy_.default",
    [EG_INDEX_FILL_] = "aten.index_fill_.int_Scalar",
    [EG_T_] = "aten.t_.default", [EG_TRANSPOSE_] = "aten.transpose_.default", [EG_SWAPAXES_] = "aten.swapaxes_.default",
    [EG_UNSQUEEZE_] = "aten.unsqueeze_.default", [EG_SQUEEZE_] = "aten.squeeze_.dim",
    [EG_SQUEEZE_ALL_] = "aten.squeeze_.default",
    [EG_DETACH_] = "aten.detach_.default",
    [EG_ADD_OUT] = "aten.add.out", [EG_MUL_OUT] = "aten.mul.out", [EG_NEG_OUT] = "aten.neg.out",
    [EG_TANH_OUT] = "aten.tanh.out",
};
/* clang-format on */
static const char *const dtypes[] = {[EG_F64] = "f64", [EG_I64] = "i64", [EG_BOOL] = "bool"};

static void put_size(int64_t size, int symbolic, kit_text_t *out) {
  if (symbolic && size == EG_SYMBOL) kit_text_z(out, "s0");
  else kit_text_i64(out, size);
}

static void put_type(const eg_shape_t *t, int symbolic, kit_text_t *out) {
  kit_text_f(out, "%s[", dtypes[t->dtype]);
  for (int d = 0; d < t->rank; d++) {
    if (d) kit_text_z(out, ", ");
    put_size(t->size[d], symbolic, out);
  }
  kit_text_z(out, "]");
  if (symbolic) return; /* contiguous */
  kit_text_z(out, " strides [");
  for (int d = 0; d < t->rank; d++) kit_text_f(out, d ? ", %lld" : "%lld", (long long)t->stride[d]);
  kit_text_f(out, "] offset %lld", (long long)t->offset);
}

static void put_list(const int64_t *p, int64_t n, kit_text_t *out) {
  kit_text_z(out, ", [");
  for (int64_t i = 0; i < n; i++) kit_text_f(out, i ? ", %lld" : "%lld", (long long)p[i]);
  kit_text_z(out, "]");
}

/* Where types are inferred, a tensor goes by the last value that it has: the first may have had another shape. */
static int name_of(const eg_world_t *w, int value, int before, int symbolic) {
  for (int v = before - 1; symbolic && v > value; v--)
    if (w->tensor_of[v] == w->tensor_of[value]) return v;
  return value;
}

static int is_by_index(eg_op_t op) { return op == EG_INDEX_ADD_ || op == EG_INDEX_COPY_ || op == EG_INDEX_FILL_; }

static void put_args(const eg_step_t *s, int b, int c, kit_text_t *out) {
  const long long p0 = s->p[0], p1 = s->p[1], p2 = s->p[2], p3 = s->p[3];
  if (s->op == EG_INDEX || s->op == EG_INDEX_PUT_ || s->op == EG_INDEX_PUT_ADD_) kit_text_z(out, ", [%index]");
  if (is_by_index(s->op)) kit_text_z(out, ", 0, %index");
  if (b >= 0) kit_text_f(out, ", %%v%d", b);
  switch (s->op) {
    /* clang-format off */
    case EG_MUL_SCALAR: case EG_MUL_SCALAR_: case EG_FILL_: case EG_GT: case EG_LERP_: case EG_MASKED_FILL_: case EG_INDEX_FILL_:
      /* clang-format on */
      kit_text_f(out, ", %.6f", s->number);
      break;
    case EG_ADDCMUL_: kit_text_f(out, ", %%v%d, value=%.6f", b, s->number); break;
    case EG_TO: kit_text_f(out, ", %s", dtypes[p0]); break;
    case EG_TO_COPY: kit_text_f(out, ", dtype=%s", dtypes[p0]); break;
    case EG_INDEX_PUT_ADD_: kit_text_z(out, ", true"); break;
    case EG_SUM: kit_text_f(out, ", [%lld]", p0); break;
    /* clang-format off */
    case EG_VIEW: case EG_RESHAPE: case EG_EXPAND: put_list(s->p + 1, p0, out); break;
    case EG_PERMUTE: put_list(s->p + 1, p0, out); break;
    case EG_TRANSPOSE: case EG_TRANSPOSE_: case EG_SWAPAXES: case EG_SWAPAXES_: case EG_SELECT: case EG_MOVEDIM:
      /* clang-format on */
      kit_text_f(out, ", %lld, %lld", p0, p1);
      break;
    case EG_SLICE: kit_text_f(out, ", %lld, %lld, %lld, %lld", p0, p1, p1 + (p2 - 1) * p3 + 1, p3); break;
    /* clang-format off */
    case EG_NARROW: case EG_UNFOLD: kit_text_f(out, ", %lld, %lld, %lld", p0, p1, p2); break;
    case EG_UNFLATTEN: kit_text_f(out, ", %lld, [%lld, -1]", p0, p1); break;
    case EG_DIAGONAL: kit_text_f(out, ", %lld, %lld, %lld", p2 - 1, p0, p1); break;
    case EG_SPLIT: case EG_CHUNK: case EG_TENSOR_SPLIT: kit_text_f(out, ", %lld, %lld", p1, p0); break;
    case EG_SPLIT_SIZES: kit_text_f(out, ", [%lld, %lld], %lld", p1, p2, p0); break;
    case EG_TRIU_: case EG_TRIL_: kit_text_f(out, ", %lld", p1); break;
    case EG_UNBIND: case EG_UNSQUEEZE: case EG_UNSQUEEZE_: case EG_SQUEEZE: case EG_SQUEEZE_: case EG_CUMSUM_:
      /* clang-format on */
      kit_text_f(out, ", %lld", p0);
      break;
    case EG_AS_STRIDED: kit_text_f(out, ", [%lld], [%lld], %lld", p0, p1, p2); break;
    default: break;
  }
  if (c >= 0) kit_text_f(out, ", out=%%v%d", c);
}

static void put_step(const eg_step_t *s, const eg_world_t *w, int symbolic, kit_text_t *out) {
  kit_text_z(out, "  ");
  for (int r = 0; r < s->n_results; r++) {
    kit_text_f(out, r ? ", %%v%d" : "%%v%d", s->first + r);
    if (symbolic) continue;
    kit_text_z(out, " : ");
    put_type(&w->made[s->first + r], 0, out);
  }
  kit_text_f(out, " = %s %%v%d", eg_names[s->op], name_of(w, s->a, s->first, symbolic));
  put_args(s, s->b < 0 ? -1 : name_of(w, s->b, s->first, symbolic),
           s->c < 0 ? -1 : name_of(w, s->c, s->first, symbolic), out);
  kit_text_z(out, s->no_grad ? " {no_grad}\n" : "\n");
}

/* Bytes of a contiguous buffer, in hexadecimal. */
static void put_data(const eg_input_t *in, kit_text_t *out) {
  kit_text_z(out, " data \"");
  for (int i = 0; i < in->numel; i++) {
    int64_t bits = (int64_t)in->data[i];
    if (in->at.dtype == EG_F64) memcpy(&bits, &in->data[i], sizeof bits);
    for (int byte = 0; byte < 8; byte++) kit_text_f(out, "%02x", (unsigned)((uint64_t)bits >> 8 * byte & 0xff));
  }
  kit_text_z(out, "\"");
}

static void put_inputs(const eg_program_t *p, int symbolic, kit_text_t *out, int in_graph) {
  int n = 0;
  for (int i = 0; i < p->n_inputs; i++) {
    const eg_input_t *in = &p->input[i];
    if (in_graph) kit_text_f(out, "  in %%v%d = %s %d : ", i, in->is_buffer ? "buffer" : "user_input", i);
    else if (in->is_buffer) kit_text_f(out, "leaf %d buffer \"x%d\" : ", i, i);
    else kit_text_f(out, "leaf %d user_input %d \"x%d\" : ", i, n++, i);
    put_type(&in->at, symbolic, out);
    kit_text_z(out, in->requires_grad ? " grad" : "");
    if (in->is_buffer && !in_graph) put_data(in, out);
    kit_text_z(out, "\n");
  }
  if (in_graph) kit_text_f(out, "  in %%index = user_input %d : i64[2]\n", p->n_inputs);
  else kit_text_f(out, "leaf %d user_input %d \"index\" : i64[2]\n", p->n_inputs, n);
}

void eg_print(const eg_program_t *p, const eg_world_t *w, int symbolic, kit_text_t *out) {
  kit_text_z(out, "aot 1\nproperties imported\n");
  if (symbolic) kit_text_f(out, "symbol s0 in [2, 64] hint %d\n", EG_SYMBOL);
  put_inputs(p, symbolic, out, 0);
  kit_text_z(out, "graph @main forward {\n");
  put_inputs(p, symbolic, out, 1);
  for (int i = 0; i < p->n_steps; i++) put_step(&p->step[i], w, symbolic, out);
  for (int i = 0; i < p->n_outputs; i++) kit_text_f(out, "  out user_output %d = %%v%d\n", i, p->output[i]);
  kit_text_z(out, "}\n");
}
