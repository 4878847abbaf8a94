/* build_recorded.c - where the types that an archive records are not what its operators give.
 *
 * PyTorch records what its tracing rules say, and a few of these are wrong; running the archive gives what the kernels
 * give. The table lists them. From such a result on, the types of the operators that read it are inferred, and the
 * recorded ones ignored. */
#include "builder.h"

#include <string.h>

/* Of the results first .. first + n - 1, either one more dimension of size 1 is recorded, at `dim`, or another dtype
 * than `dtype`; with weights, argument number `weights` if it is not 0, float32 or float64 as theirs. */
static const struct {
  const char *op;
  uint32_t first, n;
  int32_t dim, dtype;
  uint32_t weights;
} mistakes[] = {
    /* torch/_decomp/decompositions.py, one_layer_lstm: hx.squeeze(1) takes the batch for the time */
    {"aten.lstm.input", 1, 2, 1, 0, 0},
    /* torch/_subclasses/fake_impls.py, _unique: these get the dtype of the elements */
    {"aten._unique2.default", 1, 2, 0, AOT_I64, 0},
    {"aten.unique_dim.default", 1, 2, 0, AOT_I64, 0},
    {"aten.unique_consecutive.default", 1, 2, 0, AOT_I64, 0},
    /* torch/_subclasses/fake_impls.py, bincount: it gets the dtype of the numbers, whatever it sums */
    {"aten.bincount.default", 0, 1, 0, AOT_I64, 1},
};

static int has_one_more(p2_builder_t *b, const aot_type_t *recorded, const aot_type_t *real, int32_t dim) {
  int32_t i;
  if (recorded->kind != AOT_TYPE_TENSOR || real->kind != AOT_TYPE_TENSOR) return 0;
  if (recorded->dtype != real->dtype || recorded->rank != real->rank + 1 || dim >= recorded->rank) return 0;
  for (i = 0; i < real->rank; i++)
    if (!p2_dims_agree(b, recorded->sizes[i + (i >= dim)], real->sizes[i])) return 0;
  return recorded->sizes[dim] == 1;
}

static int is_of(const p2_node_t *n, uint32_t result, size_t mistake) {
  return p2_str_is(p2_op_name(n), mistakes[mistake].op) && result >= mistakes[mistake].first &&
         result < mistakes[mistake].first + mistakes[mistake].n;
}

static int has_wrong_shape(p2_builder_t *b, const p2_node_t *n, uint32_t result, const aot_type_t *recorded,
                           const aot_type_t *real) {
  size_t i;
  for (i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
    if (!mistakes[i].dtype && is_of(n, result, i) && has_one_more(b, recorded, real, mistakes[i].dim)) return 1;
  return 0;
}

static int32_t dtype_of_sums(p2_builder_t *b, const aot_arg_t *weights) {
  aot_type_t t;
  memset(&t, 0, sizeof t);
  if (weights->kind != AOT_ARG_VALUE) return AOT_I64;
  if (b->host->graph->value_type(b->prog, (aot_value_t){(uint32_t)weights->u.i}, &t) != AOT_OK) return 0;
  return t.dtype == AOT_F32 ? AOT_F32 : AOT_F64;
}

/* The dtype that the result has; 0: the recorded one. */
static int32_t real_dtype(p2_builder_t *b, const p2_node_t *n, const aot_arg_t *args, uint32_t result,
                          const aot_type_t *recorded) {
  size_t i;
  if (recorded->kind != AOT_TYPE_TENSOR) return 0;
  for (i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
    if (!mistakes[i].dtype || !is_of(n, result, i)) continue;
    const int32_t dtype = mistakes[i].weights ? dtype_of_sums(b, &args[mistakes[i].weights]) : mistakes[i].dtype;
    if (recorded->dtype != dtype) return dtype;
  }
  return 0;
}

static int is_listed(const p2_builder_t *b, uint32_t value) {
  uint32_t low = 0, high = b->n_mistaken; /* ascending: values are made in the order of their ids */
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (b->mistaken[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low < b->n_mistaken && b->mistaken[low] == value;
}

static int reads_mistaken(const p2_builder_t *b, const aot_arg_t *args, uint32_t n) {
  uint32_t i, k;
  if (b->n_mistaken == 0) return 0;
  for (i = 0; i < n; i++) {
    if (args[i].kind == AOT_ARG_VALUE && is_listed(b, (uint32_t)args[i].u.i)) return 1;
    for (k = 0; args[i].kind == AOT_ARG_VALUES && k < args[i].n; k++)
      if (is_listed(b, args[i].u.ids[k])) return 1;
  }
  return 0;
}

aot_status_t p2_correct_types(p2_builder_t *b, const p2_node_t *n, const aot_arg_t *args, uint32_t n_args,
                              const p2_types_t *inferred, p2_types_t *types) {
  uint32_t i;
  int follows = reads_mistaken(b, args, n_args);
  for (i = 0; i < types->n; i++) {
    int32_t dtype = real_dtype(b, n, args, i, &types->at[i]);
    if (dtype) types->at[i].dtype = dtype;
    if (i < inferred->n && !p2_types_agree(b, &types->at[i], &inferred->at[i])) {
      if (!follows && !has_wrong_shape(b, n, i, &types->at[i], &inferred->at[i])) continue;
      types->at[i] = inferred->at[i];
    } else if (!dtype) {
      continue;
    }
    AOT_TRY(p2_grow(b->env, (void **)&b->mistaken, b->n_mistaken, &b->mistaken_capacity, sizeof *b->mistaken));
    b->mistaken[b->n_mistaken++] = i;
  }
  return AOT_OK;
}

void p2_number_mistaken(p2_builder_t *b, uint32_t from, aot_value_t first) {
  for (; from < b->n_mistaken; from++) b->mistaken[from] += first.id;
}
