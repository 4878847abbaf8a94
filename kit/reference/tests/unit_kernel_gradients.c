/* Every backward kernel against central differences of its forward kernel, in double.
 *
 * A row names the forward operator and writes its arguments as text, in schema order and separated by semicolons:
 *   f[2,3] random in -1..1   p[2,3] random in 0.2..0.9   i4[2,3] random integers 0..3   b[2,3] booleans   n None
 *   (1,2) a list   3 an int   0.5 a float   true   'text'
 * In the arguments of the backward operator aK is the forward's argument K, aK* all from K on, oK its result K, gK the
 * cotangent of result K. `grads` says whose gradient each backward result is; '-' is a result nothing checks, 'n' one
 * that is not requested. read_row fills in what a row leaves out. */
#include "kit/reference/rk.h"
#include <aot/inline.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define MAX_ARGS 16
#define MAX_RESULTS 8

typedef struct row {
  const char *forward; /* without ".default"; NULL: all but args and results as in the row above */
  const char *args, *results;
  const char *back_args; /* NULL: "g0; a0*" */
  const char *grads;     /* NULL: "0" */
  const char *backward;  /* NULL: the forward's name with _backward */
} row_t;

static const row_t table[] = {
    {"aten.linear", "f[2,5,3]; f[4,3]; f[4]", .results = "f[2,5,4]", .back_args = "a0; g0; a1; n", .grads = "0,1,2"},
    /* norms */
    {"aten.native_layer_norm", "f[2,3,4]; (3,4); f[3,4]; f[3,4]; 0.001", .results = "f[2,3,4]; f[2,1,1]; f[2,1,1]",
     .back_args = "g0; a0; a1; o1; o2; a2; a3; (true,true,true)", .grads = "0,2,3"},
    {"aten.native_layer_norm", "f[2,3,4]; (4); n; n; 0.001", .results = "f[2,3,4]; f[2,3,1]; f[2,3,1]",
     .back_args = "g0; a0; a1; o1; o2; n; n; (true,false,false)", .grads = "0,n,n"},
    {"aten.layer_norm", "f[5,4]; (4); f[4]; f[4]; 0.001; true", .results = "f[5,4]",
     .back_args = "g0; a0; a1; a2; a3; a4", .grads = "0,2,3", .backward = "aot.layer_norm_backward"},
    {"aten.rms_norm", "f[5,4]; (4); f[4]; 0.01", .results = "f[5,4]", .grads = "0,2",
     .backward = "aot.rms_norm_backward"},
    {"aten.rms_norm", "f[5,4]; (4); n; n", .results = "f[5,4]", .grads = "0,n", .backward = "aot.rms_norm_backward"},
    {"aten._fused_rms_norm", "f[5,2,2]; (2,2); f[2,2]; 0.01", .results = "f[5,2,2]; f[5,1,1]",
     .back_args = "g0; a0; a1; o1; a2; (true,true)", .grads = "0,2"},
    {"aten.native_group_norm", "f[2,4,3]; f[4]; f[4]; 2; 4; 3; 2; 0.001", .results = "f[2,4,3]; f[2,2]; f[2,2]",
     .back_args = "g0; a0; o1; o2; a1; 2; 4; 3; 2; (true,true,true)", .grads = "0,1,2"},
    {"aten.native_batch_norm", "f[3,2,4]; f[2]; f[2]; f[2]; p[2]; true; 0.1; 0.001", .results = "f[3,2,4]; f[2]; f[2]",
     .back_args = "g0; a0; a1; a3; a4; o1; o2; true; 0.001; (true,true,true)", .grads = "0,1,2"},
    {"aten.native_batch_norm", "f[3,2,4]; f[2]; f[2]; f[2]; p[2]; false; 0.1; 0.001", .results = "f[3,2,4]; f[0]; f[0]",
     .back_args = "g0; a0; a1; a3; a4; n; n; false; 0.001; (true,true,true)", .grads = "0,1,2"},
    {"aten._native_batch_norm_legit_functional", "f[3,2,4]; f[2]; f[2]; f[2]; p[2]; true; 0.1; 0.001",
     .results = "f[3,2,4]; f[2]; f[2]; n; n", .back_args = "g0; a0; a1; o1; o2; true; n; n; 0.001", .grads = "0,1,2",
     .backward = "aot.batch_norm_backward"},
    {"aten.batch_norm", "f[3,2,4]; f[2]; f[2]; f[2]; p[2]; false; 0.1; 0.001; true", .results = "f[3,2,4]",
     .back_args = "g0; a0; a1; a3; a4; false; a3; a4; 0.001", .grads = "0,1,2", .backward = "aot.batch_norm_backward"},
    /* convolution */
    {"aten.convolution", "f[2,4,5,6]; f[6,2,3,2]; f[6]; (2,1); (1,0); (1,2); false; (0,0); 2", .results = "f[2,6,3,4]",
     .back_args = "g0; a0; a1; (6); a3*; (true,true,true)", .grads = "0,1,2"},
    {.args = "f[2,4,3,4]; f[4,3,3,2]; f[6]; (2,1); (1,0); (1,2); true; (1,0); 2", .results = "f[2,6,6,6]"},
    {"aten.convolution", "f[3,5]; f[2,3,2]; n; (1); (1); (1); false; (0); 1", .results = "f[2,6]",
     .back_args = "g0; a0*; (true,true,false)", .grads = "0,1,n"},
    {.args = "f[1,2,3,3,3]; f[2,2,2,2,2]; n; (1,1,1); (0,0,0); (1,1,1); false; (0,0,0); 1", .results = "f[1,2,2,2,2]"},
    /* grid sampling: every mode, padding and alignment that has a kernel */
    {"aten.grid_sampler_2d", "f[2,3,4,5]; f[2,3,2,2]; 0; 0; false", .results = "f[2,3,3,2]",
     .back_args = "g0; a0*; (true,true)", .grads = "0,1"},
    {.args = "f[2,3,4,5]; f[2,3,2,2]; 0; 1; true", .results = "f[2,3,3,2]"},
    {.args = "f[2,3,4,5]; f[2,3,2,2]; 0; 2; false", .results = "f[2,3,3,2]"},
    {.args = "f[2,3,4,5]; f[2,3,2,2]; 1; 0; true", .results = "f[2,3,3,2]"},
    {.args = "f[2,3,4,5]; f[2,3,2,2]; 1; 1; false", .results = "f[2,3,3,2]"},
    {.args = "f[2,3,4,5]; f[2,3,2,2]; 1; 2; true", .results = "f[2,3,3,2]"},
    {.args = "f[2,3,4,5]; f[2,3,2,2]; 2; 0; false", .results = "f[2,3,3,2]"},
    {.args = "f[2,3,4,5]; f[2,3,2,2]; 2; 1; true", .results = "f[2,3,3,2]"},
    {.args = "f[2,3,4,5]; f[2,3,2,2]; 2; 2; false", .results = "f[2,3,3,2]"},
    {"aten.grid_sampler_3d", "f[1,2,3,4,2]; f[1,2,1,3,3]; 0; 2; false", .results = "f[1,2,2,1,3]",
     .back_args = "g0; a0*; (true,true)", .grads = "0,1"},
    {.args = "f[1,2,3,4,2]; f[1,2,1,3,3]; 1; 1; false", .results = "f[1,2,2,1,3]"},
    /* distances of rows */
    {"aten._pdist_forward", "f[4,3]; 0.5", .results = "f[6]", .back_args = "g0; a0*; o0",
     .backward = "aten._pdist_backward"},
    {.args = "f[4,3]; 1.0", .results = "f[6]"},
    {.args = "f[4,3]; 1.5", .results = "f[6]"},
    {.args = "f[4,3]; 2.0", .results = "f[6]"},
    {.args = "f[4,3]; 3.0", .results = "f[6]"},
    /* attention */
    {"aten.scaled_dot_product_attention", "f[2,3,4,5]; f[2,3,6,5]; f[2,3,6,2]; n; 0.0; true; n; false",
     .results = "f[2,3,4,2]", .grads = "0,1,2", .backward = "aot.scaled_dot_product_attention_backward"},
    {.args = "f[2,4,3,5]; f[2,2,6,5]; f[2,2,6,5]; f[3,6]; 0.0; false; 0.7; true", .results = "f[2,4,3,5]"},
    {.args = "f[3,4,5]; f[3,6,5]; f[3,6,2]; b[3,4,6]; 0.0; false; n; false", .results = "f[3,4,2]"},
    {"aot.dropout_attention", "f[2,4,3,5]; f[2,2,6,5]; f[2,2,6,4]; n; b[2,4,3,6]; 0.3; true; n; true",
     .results = "f[2,4,3,4]", .grads = "0,1,2", .backward = "aot.dropout_attention_backward"},
    {"aten._scaled_dot_product_flash_attention_for_cpu", "f[1,2,4,3]; f[1,2,5,3]; f[1,2,5,3]; 0.0; false; f[4,5]; 0.4",
     .results = "f[1,2,4,3]; f[1,2,4]", .back_args = "g0; a0; a1; a2; o0; o1; a3*", .grads = "0,1,2"},
    /* losses */
    {"aten.cross_entropy_loss", "f[4,5]; i5[4]; p[5]; 1; 2; 0.1", .results = "f[]",
     .backward = "aot.cross_entropy_loss_backward"},
    {.args = "f[3,5,2]; i5[3,2]; n; 0; 1; 0.3", .results = "f[3,2]"},
    {.args = "f[4,5]; i5[4]; n; 2; -100; 0.0", .results = "f[]"},
    {.args = "f[3,5,2]; p[3,5,2]; p[5]; 1; -100; 0.2", .results = "f[]"},
    {.args = "f[5]; i5[]; n; 1; -100; 0.0", .results = "f[]"},
    {"aten.nll_loss_forward", "f[4,5]; i5[4]; p[5]; 1; 2", .results = "f[]; f[]", .back_args = "g0; a0*; o1",
     .backward = "aten.nll_loss_backward"},
    {"aten.nll_loss2d_forward", "f[2,3,2,2]; i3[2,2,2]; n; 0; -100", .results = "f[2,2,2]; f[]",
     .back_args = "g0; a0*; o1", .backward = "aten.nll_loss2d_backward"},
    {"aten.mse_loss", "f[3,4]; f[3,4]; 1", .results = "f[]"},
    {"aten.smooth_l1_loss", "f[3,4]; f[3,4]; 2; 0.7", .results = "f[]"},
    {"aten.huber_loss", "f[3,4]; f[3,4]; 0; 0.7", .results = "f[3,4]"},
    {"aten.binary_cross_entropy", "p[3,4]; p[3,4]; p[3,4]; 1", .results = "f[]"},
    {"aten.soft_margin_loss", "f[3,4]; f[3,4]; 1", .results = "f[]"},
    /* softmax */
    {"aten._softmax", "f[3,4,2]; 1; false", .results = "f[3,4,2]", .back_args = "g0; o0; 1; n",
     .backward = "aten._softmax_backward_data"},
    {"aten._log_softmax", "f[3,4]; -1; false", .results = "f[3,4]", .back_args = "g0; o0; -1; n",
     .backward = "aten._log_softmax_backward_data"},
    /* pools */
    {"aten.max_pool2d_with_indices", "f[2,3,7,6]; (3,2); (2,2); (1,1); (1,2); true",
     .results = "f[2,3,4,4]; i1[2,3,4,4]", .back_args = "g0; a0*; o1"},
    {"aten.max_pool2d", "f[3,7,6]; (3,2); (2,1); (1,0); (1,1); false", .results = "f[3,4,5]",
     .backward = "aot.max_pool2d_backward"},
    {"aten.avg_pool2d", "f[2,3,7,6]; (3,2); (2,2); (1,1); true; true; n", .results = "f[2,3,4,4]"},
    {.args = "f[3,7,6]; (3); (2); (1); false; false; n", .results = "f[3,4,3]"},
    {"aten.avg_pool3d", "f[1,2,4,4,4]; (2); (2); (0); false; true; 3", .results = "f[1,2,2,2,2]"},
    {"aten._adaptive_avg_pool2d", "f[2,3,7,6]; (3,4)", .results = "f[2,3,3,4]", .back_args = "g0; a0"},
    {"aten._adaptive_avg_pool3d", "f[2,3,4,5,3]; (3,2,2)", .results = "f[2,3,3,2,2]", .back_args = "g0; a0"},
    {"aten.adaptive_max_pool2d", "f[2,3,7,6]; (3,4)", .results = "f[2,3,3,4]; i1[2,3,3,4]", .back_args = "g0; a0; o1"},
    /* embedding */
    {"aten.embedding", "f[5,3]; i5[2,4]; -1; false; false", .results = "f[2,4,3]", .back_args = "g0; a1; 5; -1; false",
     .backward = "aten.embedding_dense_backward"},
    /* activations */
    {"aten.gelu", "f[9]; 'none'", .results = "f[9]"},
    {.args = "f[9]; 'tanh'", .results = "f[9]"},
    {"aten.relu", "f[9]", .results = "f[9]", .back_args = "g0; o0; 0", .backward = "aten.threshold_backward"},
    {"aten.tanh", "f[9]", .results = "f[9]", .back_args = "g0; o0"},
    {"aten.sigmoid", "f[9]", .results = "f[9]", .back_args = "g0; o0"},
    {"aten.silu", "f[9]", .results = "f[9]"},
    {"aten.mish", "f[9]", .results = "f[9]"},
    {"aten.hardswish", "f[9]", .results = "f[9]"},
    {"aten.hardsigmoid", "f[9]", .results = "f[9]"},
    {"aten.hardtanh", "f[9]; -0.5; 0.5", .results = "f[9]"},
    {"aten.leaky_relu", "f[9]; 0.2", .results = "f[9]", .back_args = "g0; a0*; false"},
    {"aten.elu", "f[9]; 1.5; 1.1; 0.9", .results = "f[9]", .back_args = "g0; a1*; false; a0"},
    {"aten.elu", "f[9]; 1.5; 1.1; 0.9", .results = "f[9]", .back_args = "g0; a1*; true; o0"},
    {"aten.softplus", "f[9]; 2; 20", .results = "f[9]"},
    {"aten.hardshrink", "f[9]; 0.3", .results = "f[9]"},
    {"aten.softshrink", "f[9]; 0.3", .results = "f[9]"},
    {"aten.log_sigmoid_forward", "f[9]", .results = "f[9]; f[9]", .back_args = "g0; a0*; o1",
     .backward = "aten.log_sigmoid_backward"},
    {"aten.logit", "p[9]; n", .results = "f[9]"},
    {"aten.glu", "f[2,6]; -1", .results = "f[2,3]"},
    {"aten._prelu_kernel", "f[2,6]; f[2,6]", .results = "f[2,6]", .grads = "0,1"},
    /* resizing */
    {"aten.upsample_nearest2d", "f[2,1,3,4]; (5,6); n; n", .results = "f[2,1,5,6]",
     .back_args = "g0; (5,6); (2,1,3,4); a2*"},
    {"aten.upsample_bilinear2d", "f[2,1,3,4]; (5,6); true; n; n", .results = "f[2,1,5,6]",
     .back_args = "g0; (5,6); (2,1,3,4); a2*"},
    {"aten.upsample_bilinear2d", "f[1,2,5,4]; (3,7); false; n; n", .results = "f[1,2,3,7]",
     .back_args = "g0; (3,7); (1,2,5,4); a2*"},
    {"aten.upsample_bicubic2d", "f[1,2,5,4]; (3,7); false; n; n", .results = "f[1,2,3,7]",
     .back_args = "g0; (3,7); (1,2,5,4); a2*"},
    /* views and padding */
    {"aten.slice.Tensor", "f[5,6]; 1; 1; 6; 2", .results = "f[5,3]", .back_args = "g0; (5,6); a1*"},
    {"aten.select.int", "f[5,6]; 1; -2", .results = "f[5]", .back_args = "g0; (5,6); a1*"},
    {"aten.diagonal", "f[5,6]; 1; 0; 1", .results = "f[5]", .back_args = "g0; (5,6); a1*"},
    {"aten.unfold", "f[2,7]; 1; 3; 2", .results = "f[2,3,3]", .back_args = "g0; (2,7); a1*"},
    {"aten.reflection_pad2d", "f[2,3,4]; (1,2,2,1)", .results = "f[2,6,7]"},
    {"aten.replication_pad1d", "f[2,3]; (1,2)", .results = "f[2,6]"},
};

/* ---- arguments from text ---- */

typedef struct bench {
  char forward[80], backward[80]; /* the operators' full names */
  rk_arg_t args[MAX_ARGS], back[MAX_ARGS];
  rk_tensor_t results[MAX_RESULTS], cotangents[MAX_RESULTS], grads[MAX_RESULTS];
  uint32_t n_args, n_results, n_back;
  uint64_t seed;
  void *blocks[256];
  int n_blocks;
} bench_t;

static void *take(bench_t *b, size_t n) {
  void *m = calloc(1, n ? n : 1);
  assert_non_null(m);
  assert_true(b->n_blocks < 256);
  return b->blocks[b->n_blocks++] = m;
}

static double random_unit(bench_t *b) {
  b->seed = b->seed * 6364136223846793005u + 1442695040888963407u;
  return (double)(b->seed >> 33) / 2147483648.0;
}

static const char *blanks(const char *s) {
  while (*s == ' ') s++;
  return s;
}

/* "2,3]" into sizes; returns what follows. */
static const char *read_sizes(const char *s, char end, int64_t *out, uint32_t *n) {
  *n = 0;
  for (s = blanks(s); *s != end; s = blanks(*s == ',' ? s + 1 : s)) {
    char *after;
    if (*s == 't' || *s == 'f') {
      out[(*n)++] = *s == 't';
      s += *s == 't' ? 4 : 5;
    } else {
      out[(*n)++] = strtoll(s, &after, 10);
      s = after;
    }
    s = blanks(s);
  }
  return s + 1;
}

static rk_tensor_t make(bench_t *b, int32_t dtype, uint32_t rank, const int64_t *sizes) {
  rk_tensor_t t = {0};
  int64_t stride = 1;
  t.dtype = dtype;
  t.rank = (int32_t)rank;
  for (uint32_t d = rank; d-- > 0;) {
    t.sizes[d] = sizes[d];
    t.strides[d] = stride;
    stride *= sizes[d];
  }
  t.nbytes = (uint64_t)stride * aot_dtype_size(dtype);
  t.data = take(b, (size_t)t.nbytes);
  return t;
}

static const char *read_tensor(bench_t *b, const char *s, rk_tensor_t *out) {
  char kind = *s++;
  int64_t sizes[8], limit = kind == 'i' ? *s++ - '0' : 2;
  uint32_t rank;
  s = read_sizes(s + 1, ']', sizes, &rank);
  *out = make(b, kind == 'i' ? AOT_I64 : kind == 'b' ? AOT_BOOL : AOT_F64, rank, sizes);
  for (int64_t e = 0; e < rk_numel(out); e++) {
    double u = random_unit(b);
    if (kind == 'f') ((double *)out->data)[e] = 2 * u - 1;
    else if (kind == 'p') ((double *)out->data)[e] = 0.2 + 0.7 * u;
    else if (kind == 'i') ((int64_t *)out->data)[e] = (int64_t)(u * (double)limit);
    else ((uint8_t *)out->data)[e] = u < 0.7;
  }
  return s;
}

static const char *read_one(bench_t *b, const char *s, rk_arg_t *out) {
  rk_arg_t none = {AOT_ARG_NONE, 0, {0}};
  char *after;
  *out = none;
  if (*s == 'n') return s + 1;
  if (*s == 'a') {
    *out = b->args[strtol(s + 1, &after, 10)];
    return after;
  }
  if (*s == 'o' || *s == 'g') {
    long k = strtol(s + 1, &after, 10);
    *out = rk_arg_of_tensor(*s == 'o' ? &b->results[k] : &b->cotangents[k]);
    return after;
  }
  if (*s == '\'') {
    out->kind = AOT_ARG_STR;
    out->u.chars = s + 1;
    out->n = (uint32_t)strcspn(s + 1, "'");
    return s + out->n + 2;
  }
  if (*s == '(') {
    int64_t *list = take(b, 16 * sizeof *list);
    s = read_sizes(s + 1, ')', list, &out->n);
    out->kind = AOT_ARG_INTS;
    out->u.ints = list;
    return s;
  }
  if (strncmp(s, "true", 4) == 0 || strncmp(s, "false", 5) == 0) {
    *out = rk_arg_of_bool(*s == 't');
    return s + (*s == 't' ? 4 : 5);
  }
  if (strchr("fpib", *s)) {
    rk_tensor_t *t = take(b, sizeof *t);
    s = read_tensor(b, s, t);
    *out = rk_arg_of_tensor(t);
    return s;
  }
  *out = rk_arg_of_int(strtoll(s, &after, 10));
  if (*after == '.') *out = rk_arg_of_float(strtod(s, &after));
  return after;
}

static uint32_t read_args(bench_t *b, const char *text, rk_arg_t *args) {
  uint32_t n = 0;
  for (const char *s = blanks(text); *s; s = blanks(*s == ';' ? s + 1 : s)) {
    const char *one = s;
    s = blanks(read_one(b, s, &args[n++]));
    if (*s != '*') continue;
    for (uint32_t k = (uint32_t)strtoul(one + 1, NULL, 10) + 1; k < b->n_args; k++) args[n++] = b->args[k];
    s = blanks(s + 1);
  }
  return n;
}

static void read_results(bench_t *b, const char *text) {
  b->n_results = 0;
  for (const char *s = blanks(text); *s; s = blanks(*s == ';' ? s + 1 : s)) {
    if (*s == 'n') {
      memset(&b->results[b->n_results++], 0, sizeof b->results[0]);
      s++;
      continue;
    }
    s = read_tensor(b, s, &b->results[b->n_results++]);
  }
}

/* ---- rows ---- */

/* "aten.slice.Tensor" has its overload, "aten.gelu" and what is made of either the default one. */
static void read_names(bench_t *b, const row_t *r) {
  const char *overload = strchr(strchr(r->forward, '.') + 1, '.');
  const int n = overload ? (int)(overload - r->forward) : (int)strlen(r->forward);
  snprintf(b->forward, sizeof b->forward, "%s%s", r->forward, overload ? "" : ".default");
  if (r->backward) snprintf(b->backward, sizeof b->backward, "%s.default", r->backward);
  else snprintf(b->backward, sizeof b->backward, "%.*s_backward.default", n, r->forward);
}

/* The whole row k of the table. */
static row_t read_row(size_t k) {
  row_t r = table[k];
  while (!table[k].forward) k--;
  const row_t *above = &table[k];
  return (row_t){
      .forward = above->forward,
      .args = r.args,
      .results = r.results,
      .back_args = above->back_args ? above->back_args : "g0; a0*",
      .grads = above->grads ? above->grads : "0",
      .backward = above->backward,
  };
}

/* ---- the comparison ---- */

static void run(const char *name, rk_arg_t *args, uint32_t n_args, rk_tensor_t *results, uint32_t n_results) {
  const rk_kernel_t *k = rk_find(aot_str(name));
  rk_call_t call = {args, n_args, results, n_results};
  rk_error_t error;
  if (!k) fail_msg("no kernel %s", name);
  if (rk_run(k, &call, &error) != AOT_OK) fail_msg("%s", error.text);
}

/* <cotangents, forward(args)>; only result 0 has a cotangent */
static double loss(bench_t *b) {
  double sum = 0;
  run(b->forward, b->args, b->n_args, b->results, b->n_results);
  for (int64_t e = 0; e < rk_numel(&b->results[0]); e++)
    sum += ((double *)b->results[0].data)[e] * ((double *)b->cotangents[0].data)[e];
  return sum;
}

static void check_gradient(bench_t *b, const rk_tensor_t *grad, uint32_t arg) {
  const rk_tensor_t *x = b->args[arg].u.tensor;
  double step = 1e-6;
  for (int64_t e = 0; e < rk_numel(x); e++) {
    double *at = (double *)x->data + e, old = *at, above, below, expected, got = ((double *)grad->data)[e];
    *at = old + step;
    above = loss(b);
    *at = old - step;
    below = loss(b);
    *at = old;
    expected = (above - below) / (2 * step);
    if (fabs(expected - got) > 1e-6 * (1 + fabs(expected)))
      fail_msg("%s: gradient of argument %u, element %lld is %.9g, differences give %.9g", b->backward, arg,
               (long long)e, got, expected);
  }
}

static void check_row(const row_t *r) {
  bench_t *b = calloc(1, sizeof *b);
  uint32_t n_grads = 0;
  int target[MAX_RESULTS];
  assert_non_null(b);
  b->seed = 12345;
  read_names(b, r);
  b->n_args = read_args(b, r->args, b->args);
  read_results(b, r->results);
  for (uint32_t k = 0; k < b->n_results; k++) {
    if (b->results[k].dtype != AOT_F64) continue;
    b->cotangents[k] = make(b, AOT_F64, (uint32_t)b->results[k].rank, b->results[k].sizes);
    for (int64_t e = 0; e < rk_numel(&b->cotangents[k]); e++)
      ((double *)b->cotangents[k].data)[e] = random_unit(b) - 0.3;
  }
  loss(b);
  for (const char *s = r->grads; *s; s++) {
    if (*s == ',') continue;
    target[n_grads] = *s >= '0' && *s <= '9' ? *s - '0' : -1;
    memset(&b->grads[n_grads], 0, sizeof b->grads[0]);
    if (target[n_grads] >= 0)
      b->grads[n_grads] =
          make(b, AOT_F64, (uint32_t)b->args[target[n_grads]].u.tensor->rank, b->args[target[n_grads]].u.tensor->sizes);
    n_grads++;
  }
  b->n_back = read_args(b, r->back_args, b->back);
  run(b->backward, b->back, b->n_back, b->grads, n_grads);
  for (uint32_t k = 0; k < n_grads; k++)
    if (target[k] >= 0) check_gradient(b, &b->grads[k], (uint32_t)target[k]);
  while (b->n_blocks) free(b->blocks[--b->n_blocks]);
  free(b);
}

static void test_gradients(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof table / sizeof table[0]; k++) {
    const row_t r = read_row(k);
    check_row(&r);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradients)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
