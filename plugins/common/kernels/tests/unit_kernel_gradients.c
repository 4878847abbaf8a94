/* Every backward kernel against central differences of its forward kernel, in double.
 *
 * A row names both operators and writes their arguments as text, in schema order and separated by semicolons:
 *   f[2,3] random in -1..1   p[2,3] random in 0.2..0.9   i4[2,3] random integers 0..3   b[2,3] booleans   n None
 *   (1,2) a list   3 an int   0.5 a float   true   'text'
 * In a backward row aK is the forward's argument K, oK its result K, gK the cotangent of result K. `grads` says whose
 * gradient each backward result is; '-' is a result nobody checks, 'n' one that is not asked for. */
#include "common/kernels/rk.h"
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
  const char *forward, *args, *results, *backward, *back_args, *grads;
} row;

static const row table[] = {
    {"aten.linear.default", "f[2,5,3]; f[4,3]; f[4]", "f[2,5,4]", "aten.linear_backward.default", "a0; g0; a1; n", "0,1,2"},
    /* norms */
    {"aten.native_layer_norm.default", "f[2,3,4]; (3,4); f[3,4]; f[3,4]; 0.001", "f[2,3,4]; f[2,1,1]; f[2,1,1]",
     "aten.native_layer_norm_backward.default", "g0; a0; a1; o1; o2; a2; a3; (true,true,true)", "0,2,3"},
    {"aten.native_layer_norm.default", "f[2,3,4]; (4); n; n; 0.001", "f[2,3,4]; f[2,3,1]; f[2,3,1]",
     "aten.native_layer_norm_backward.default", "g0; a0; a1; o1; o2; n; n; (true,false,false)", "0,n,n"},
    {"aten.layer_norm.default", "f[5,4]; (4); f[4]; f[4]; 0.001; true", "f[5,4]", "aot.layer_norm_backward.default",
     "g0; a0; a1; a2; a3; a4", "0,2,3"},
    {"aten.rms_norm.default", "f[5,4]; (4); f[4]; 0.01", "f[5,4]", "aot.rms_norm_backward.default", "g0; a0; a1; a2; a3", "0,2"},
    {"aten.rms_norm.default", "f[5,4]; (4); n; n", "f[5,4]", "aot.rms_norm_backward.default", "g0; a0; a1; n; n", "0,n"},
    {"aten._fused_rms_norm.default", "f[5,2,2]; (2,2); f[2,2]; 0.01", "f[5,2,2]; f[5,1,1]", "aten._fused_rms_norm_backward.default",
     "g0; a0; a1; o1; a2; (true,true)", "0,2"},
    {"aten.native_group_norm.default", "f[2,4,3]; f[4]; f[4]; 2; 4; 3; 2; 0.001", "f[2,4,3]; f[2,2]; f[2,2]",
     "aten.native_group_norm_backward.default", "g0; a0; o1; o2; a1; 2; 4; 3; 2; (true,true,true)", "0,1,2"},
    {"aten.native_batch_norm.default", "f[3,2,4]; f[2]; f[2]; f[2]; p[2]; true; 0.1; 0.001", "f[3,2,4]; f[2]; f[2]",
     "aten.native_batch_norm_backward.default", "g0; a0; a1; a3; a4; o1; o2; true; 0.001; (true,true,true)", "0,1,2"},
    {"aten.native_batch_norm.default", "f[3,2,4]; f[2]; f[2]; f[2]; p[2]; false; 0.1; 0.001", "f[3,2,4]; f[0]; f[0]",
     "aten.native_batch_norm_backward.default", "g0; a0; a1; a3; a4; n; n; false; 0.001; (true,true,true)", "0,1,2"},
    {"aten._native_batch_norm_legit_functional.default", "f[3,2,4]; f[2]; f[2]; f[2]; p[2]; true; 0.1; 0.001",
     "f[3,2,4]; f[2]; f[2]; n; n", "aot.batch_norm_backward.default", "g0; a0; a1; o1; o2; true; n; n; 0.001", "0,1,2"},
    {"aten.batch_norm.default", "f[3,2,4]; f[2]; f[2]; f[2]; p[2]; false; 0.1; 0.001; true", "f[3,2,4]", "aot.batch_norm_backward.default",
     "g0; a0; a1; a3; a4; false; a3; a4; 0.001", "0,1,2"},
    /* convolution */
    {"aten.convolution.default", "f[2,4,5,6]; f[6,2,3,2]; f[6]; (2,1); (1,0); (1,2); false; (0,0); 2", "f[2,6,3,4]",
     "aten.convolution_backward.default", "g0; a0; a1; (6); (2,1); (1,0); (1,2); false; (0,0); 2; (true,true,true)", "0,1,2"},
    {"aten.convolution.default", "f[2,4,3,4]; f[4,3,3,2]; f[6]; (2,1); (1,0); (1,2); true; (1,0); 2", "f[2,6,6,6]",
     "aten.convolution_backward.default", "g0; a0; a1; (6); (2,1); (1,0); (1,2); true; (1,0); 2; (true,true,true)", "0,1,2"},
    {"aten.convolution.default", "f[3,5]; f[2,3,2]; n; (1); (1); (1); false; (0); 1", "f[2,6]", "aten.convolution_backward.default",
     "g0; a0; a1; n; (1); (1); (1); false; (0); 1; (true,true,false)", "0,1,n"},
    {"aten.convolution.default", "f[1,2,3,3,3]; f[2,2,2,2,2]; n; (1,1,1); (0,0,0); (1,1,1); false; (0,0,0); 1", "f[1,2,2,2,2]",
     "aten.convolution_backward.default", "g0; a0; a1; n; (1,1,1); (0,0,0); (1,1,1); false; (0,0,0); 1; (true,true,false)", "0,1,n"},
    /* grid sampling: every mode, padding and alignment that has a kernel */
    {"aten.grid_sampler_2d.default", "f[2,3,4,5]; f[2,3,2,2]; 0; 0; false", "f[2,3,3,2]", "aten.grid_sampler_2d_backward.default",
     "g0; a0; a1; 0; 0; false; (true,true)", "0,1"},
    {"aten.grid_sampler_2d.default", "f[2,3,4,5]; f[2,3,2,2]; 0; 1; true", "f[2,3,3,2]", "aten.grid_sampler_2d_backward.default",
     "g0; a0; a1; 0; 1; true; (true,true)", "0,1"},
    {"aten.grid_sampler_2d.default", "f[2,3,4,5]; f[2,3,2,2]; 0; 2; false", "f[2,3,3,2]", "aten.grid_sampler_2d_backward.default",
     "g0; a0; a1; 0; 2; false; (true,true)", "0,1"},
    {"aten.grid_sampler_2d.default", "f[2,3,4,5]; f[2,3,2,2]; 1; 0; true", "f[2,3,3,2]", "aten.grid_sampler_2d_backward.default",
     "g0; a0; a1; 1; 0; true; (true,true)", "0,1"},
    {"aten.grid_sampler_2d.default", "f[2,3,4,5]; f[2,3,2,2]; 1; 1; false", "f[2,3,3,2]", "aten.grid_sampler_2d_backward.default",
     "g0; a0; a1; 1; 1; false; (true,true)", "0,1"},
    {"aten.grid_sampler_2d.default", "f[2,3,4,5]; f[2,3,2,2]; 1; 2; true", "f[2,3,3,2]", "aten.grid_sampler_2d_backward.default",
     "g0; a0; a1; 1; 2; true; (true,true)", "0,1"},
    {"aten.grid_sampler_2d.default", "f[2,3,4,5]; f[2,3,2,2]; 2; 0; false", "f[2,3,3,2]", "aten.grid_sampler_2d_backward.default",
     "g0; a0; a1; 2; 0; false; (true,true)", "0,1"},
    {"aten.grid_sampler_2d.default", "f[2,3,4,5]; f[2,3,2,2]; 2; 1; true", "f[2,3,3,2]", "aten.grid_sampler_2d_backward.default",
     "g0; a0; a1; 2; 1; true; (true,true)", "0,1"},
    {"aten.grid_sampler_2d.default", "f[2,3,4,5]; f[2,3,2,2]; 2; 2; false", "f[2,3,3,2]", "aten.grid_sampler_2d_backward.default",
     "g0; a0; a1; 2; 2; false; (true,true)", "0,1"},
    {"aten.grid_sampler_3d.default", "f[1,2,3,4,2]; f[1,2,1,3,3]; 0; 2; false", "f[1,2,2,1,3]", "aten.grid_sampler_3d_backward.default",
     "g0; a0; a1; 0; 2; false; (true,true)", "0,1"},
    {"aten.grid_sampler_3d.default", "f[1,2,3,4,2]; f[1,2,1,3,3]; 1; 1; false", "f[1,2,2,1,3]", "aten.grid_sampler_3d_backward.default",
     "g0; a0; a1; 1; 1; false; (true,true)", "0,1"},
    /* distances of rows */
    {"aten._pdist_forward.default", "f[4,3]; 0.5", "f[6]", "aten._pdist_backward.default", "g0; a0; a1; o0", "0"},
    {"aten._pdist_forward.default", "f[4,3]; 1.0", "f[6]", "aten._pdist_backward.default", "g0; a0; a1; o0", "0"},
    {"aten._pdist_forward.default", "f[4,3]; 1.5", "f[6]", "aten._pdist_backward.default", "g0; a0; a1; o0", "0"},
    {"aten._pdist_forward.default", "f[4,3]; 2.0", "f[6]", "aten._pdist_backward.default", "g0; a0; a1; o0", "0"},
    {"aten._pdist_forward.default", "f[4,3]; 3.0", "f[6]", "aten._pdist_backward.default", "g0; a0; a1; o0", "0"},
    /* attention */
    {"aten.scaled_dot_product_attention.default", "f[2,3,4,5]; f[2,3,6,5]; f[2,3,6,2]; n; 0.0; true; n; false", "f[2,3,4,2]",
     "aot.scaled_dot_product_attention_backward.default", "g0; a0; a1; a2; n; 0.0; true; n; false", "0,1,2"},
    {"aten.scaled_dot_product_attention.default", "f[2,4,3,5]; f[2,2,6,5]; f[2,2,6,5]; f[3,6]; 0.0; false; 0.7; true", "f[2,4,3,5]",
     "aot.scaled_dot_product_attention_backward.default", "g0; a0; a1; a2; a3; 0.0; false; 0.7; true", "0,1,2"},
    {"aten.scaled_dot_product_attention.default", "f[3,4,5]; f[3,6,5]; f[3,6,2]; b[3,4,6]; 0.0; false; n; false", "f[3,4,2]",
     "aot.scaled_dot_product_attention_backward.default", "g0; a0; a1; a2; a3; 0.0; false; n; false", "0,1,2"},
    {"aten._scaled_dot_product_flash_attention_for_cpu.default", "f[1,2,4,3]; f[1,2,5,3]; f[1,2,5,3]; 0.0; false; f[4,5]; 0.4",
     "f[1,2,4,3]; f[1,2,4]", "aten._scaled_dot_product_flash_attention_for_cpu_backward.default", "g0; a0; a1; a2; o0; o1; 0.0; false; a5; 0.4",
     "0,1,2"},
    /* losses */
    {"aten.cross_entropy_loss.default", "f[4,5]; i5[4]; p[5]; 1; 2; 0.1", "f[]", "aot.cross_entropy_loss_backward.default",
     "g0; a0; a1; a2; 1; 2; 0.1", "0"},
    {"aten.cross_entropy_loss.default", "f[3,5,2]; i5[3,2]; n; 0; 1; 0.3", "f[3,2]", "aot.cross_entropy_loss_backward.default",
     "g0; a0; a1; n; 0; 1; 0.3", "0"},
    {"aten.cross_entropy_loss.default", "f[4,5]; i5[4]; n; 2; -100; 0.0", "f[]", "aot.cross_entropy_loss_backward.default",
     "g0; a0; a1; n; 2; -100; 0.0", "0"},
    {"aten.cross_entropy_loss.default", "f[3,5,2]; p[3,5,2]; p[5]; 1; -100; 0.2", "f[]", "aot.cross_entropy_loss_backward.default",
     "g0; a0; a1; a2; 1; -100; 0.2", "0"},
    {"aten.cross_entropy_loss.default", "f[5]; i5[]; n; 1; -100; 0.0", "f[]", "aot.cross_entropy_loss_backward.default",
     "g0; a0; a1; n; 1; -100; 0.0", "0"},
    {"aten.nll_loss_forward.default", "f[4,5]; i5[4]; p[5]; 1; 2", "f[]; f[]", "aten.nll_loss_backward.default", "g0; a0; a1; a2; 1; 2; o1", "0"},
    {"aten.nll_loss2d_forward.default", "f[2,3,2,2]; i3[2,2,2]; n; 0; -100", "f[2,2,2]; f[]", "aten.nll_loss2d_backward.default",
     "g0; a0; a1; n; 0; -100; o1", "0"},
    {"aten.mse_loss.default", "f[3,4]; f[3,4]; 1", "f[]", "aten.mse_loss_backward.default", "g0; a0; a1; 1", "0"},
    {"aten.smooth_l1_loss.default", "f[3,4]; f[3,4]; 2; 0.7", "f[]", "aten.smooth_l1_loss_backward.default", "g0; a0; a1; 2; 0.7", "0"},
    {"aten.huber_loss.default", "f[3,4]; f[3,4]; 0; 0.7", "f[3,4]", "aten.huber_loss_backward.default", "g0; a0; a1; 0; 0.7", "0"},
    {"aten.binary_cross_entropy.default", "p[3,4]; p[3,4]; p[3,4]; 1", "f[]", "aten.binary_cross_entropy_backward.default",
     "g0; a0; a1; a2; 1", "0"},
    {"aten.soft_margin_loss.default", "f[3,4]; f[3,4]; 1", "f[]", "aten.soft_margin_loss_backward.default", "g0; a0; a1; 1", "0"},
    /* softmax */
    {"aten._softmax.default", "f[3,4,2]; 1; false", "f[3,4,2]", "aten._softmax_backward_data.default", "g0; o0; 1; n", "0"},
    {"aten._log_softmax.default", "f[3,4]; -1; false", "f[3,4]", "aten._log_softmax_backward_data.default", "g0; o0; -1; n", "0"},
    /* pools */
    {"aten.max_pool2d_with_indices.default", "f[2,3,7,6]; (3,2); (2,2); (1,1); (1,2); true", "f[2,3,4,4]; i1[2,3,4,4]",
     "aten.max_pool2d_with_indices_backward.default", "g0; a0; (3,2); (2,2); (1,1); (1,2); true; o1", "0"},
    {"aten.max_pool2d.default", "f[3,7,6]; (3,2); (2,1); (1,0); (1,1); false", "f[3,4,5]", "aot.max_pool2d_backward.default",
     "g0; a0; (3,2); (2,1); (1,0); (1,1); false", "0"},
    {"aten.avg_pool2d.default", "f[2,3,7,6]; (3,2); (2,2); (1,1); true; true; n", "f[2,3,4,4]", "aten.avg_pool2d_backward.default",
     "g0; a0; (3,2); (2,2); (1,1); true; true; n", "0"},
    {"aten.avg_pool2d.default", "f[3,7,6]; (3); (2); (1); false; false; n", "f[3,4,3]", "aten.avg_pool2d_backward.default",
     "g0; a0; (3); (2); (1); false; false; n", "0"},
    {"aten.avg_pool3d.default", "f[1,2,4,4,4]; (2); (2); (0); false; true; 3", "f[1,2,2,2,2]", "aten.avg_pool3d_backward.default",
     "g0; a0; (2); (2); (0); false; true; 3", "0"},
    {"aten._adaptive_avg_pool2d.default", "f[2,3,7,6]; (3,4)", "f[2,3,3,4]", "aten._adaptive_avg_pool2d_backward.default", "g0; a0", "0"},
    {"aten._adaptive_avg_pool3d.default", "f[2,3,4,5,3]; (3,2,2)", "f[2,3,3,2,2]", "aten._adaptive_avg_pool3d_backward.default", "g0; a0", "0"},
    {"aten.adaptive_max_pool2d.default", "f[2,3,7,6]; (3,4)", "f[2,3,3,4]; i1[2,3,3,4]", "aten.adaptive_max_pool2d_backward.default",
     "g0; a0; o1", "0"},
    /* embedding */
    {"aten.embedding.default", "f[5,3]; i5[2,4]; -1; false; false", "f[2,4,3]", "aten.embedding_dense_backward.default",
     "g0; a1; 5; -1; false", "0"},
    /* activations */
    {"aten.gelu.default", "f[9]; 'none'", "f[9]", "aten.gelu_backward.default", "g0; a0; 'none'", "0"},
    {"aten.gelu.default", "f[9]; 'tanh'", "f[9]", "aten.gelu_backward.default", "g0; a0; 'tanh'", "0"},
    {"aten.relu.default", "f[9]", "f[9]", "aten.threshold_backward.default", "g0; o0; 0", "0"},
    {"aten.tanh.default", "f[9]", "f[9]", "aten.tanh_backward.default", "g0; o0", "0"},
    {"aten.sigmoid.default", "f[9]", "f[9]", "aten.sigmoid_backward.default", "g0; o0", "0"},
    {"aten.silu.default", "f[9]", "f[9]", "aten.silu_backward.default", "g0; a0", "0"},
    {"aten.mish.default", "f[9]", "f[9]", "aten.mish_backward.default", "g0; a0", "0"},
    {"aten.hardswish.default", "f[9]", "f[9]", "aten.hardswish_backward.default", "g0; a0", "0"},
    {"aten.hardsigmoid.default", "f[9]", "f[9]", "aten.hardsigmoid_backward.default", "g0; a0", "0"},
    {"aten.hardtanh.default", "f[9]; -0.5; 0.5", "f[9]", "aten.hardtanh_backward.default", "g0; a0; -0.5; 0.5", "0"},
    {"aten.leaky_relu.default", "f[9]; 0.2", "f[9]", "aten.leaky_relu_backward.default", "g0; a0; 0.2; false", "0"},
    {"aten.elu.default", "f[9]; 1.5; 1.1; 0.9", "f[9]", "aten.elu_backward.default", "g0; 1.5; 1.1; 0.9; false; a0", "0"},
    {"aten.elu.default", "f[9]; 1.5; 1.1; 0.9", "f[9]", "aten.elu_backward.default", "g0; 1.5; 1.1; 0.9; true; o0", "0"},
    {"aten.softplus.default", "f[9]; 2; 20", "f[9]", "aten.softplus_backward.default", "g0; a0; 2; 20", "0"},
    {"aten.hardshrink.default", "f[9]; 0.3", "f[9]", "aten.hardshrink_backward.default", "g0; a0; 0.3", "0"},
    {"aten.softshrink.default", "f[9]; 0.3", "f[9]", "aten.softshrink_backward.default", "g0; a0; 0.3", "0"},
    {"aten.log_sigmoid_forward.default", "f[9]", "f[9]; f[9]", "aten.log_sigmoid_backward.default", "g0; a0; o1", "0"},
    {"aten.logit.default", "p[9]; n", "f[9]", "aten.logit_backward.default", "g0; a0; n", "0"},
    {"aten.glu.default", "f[2,6]; -1", "f[2,3]", "aten.glu_backward.default", "g0; a0; -1", "0"},
    {"aten._prelu_kernel.default", "f[2,6]; f[2,6]", "f[2,6]", "aten._prelu_kernel_backward.default", "g0; a0; a1", "0,1"},
    /* resizing */
    {"aten.upsample_nearest2d.default", "f[2,1,3,4]; (5,6); n; n", "f[2,1,5,6]", "aten.upsample_nearest2d_backward.default",
     "g0; (5,6); (2,1,3,4); n; n", "0"},
    {"aten.upsample_bilinear2d.default", "f[2,1,3,4]; (5,6); true; n; n", "f[2,1,5,6]", "aten.upsample_bilinear2d_backward.default",
     "g0; (5,6); (2,1,3,4); true; n; n", "0"},
    {"aten.upsample_bilinear2d.default", "f[1,2,5,4]; (3,7); false; n; n", "f[1,2,3,7]", "aten.upsample_bilinear2d_backward.default",
     "g0; (3,7); (1,2,5,4); false; n; n", "0"},
    {"aten.upsample_bicubic2d.default", "f[1,2,5,4]; (3,7); false; n; n", "f[1,2,3,7]", "aten.upsample_bicubic2d_backward.default",
     "g0; (3,7); (1,2,5,4); false; n; n", "0"},
    /* views and padding */
    {"aten.slice.Tensor", "f[5,6]; 1; 1; 6; 2", "f[5,3]", "aten.slice_backward.default", "g0; (5,6); 1; 1; 6; 2", "0"},
    {"aten.select.int", "f[5,6]; 1; -2", "f[5]", "aten.select_backward.default", "g0; (5,6); 1; -2", "0"},
    {"aten.diagonal.default", "f[5,6]; 1; 0; 1", "f[5]", "aten.diagonal_backward.default", "g0; (5,6); 1; 0; 1", "0"},
    {"aten.unfold.default", "f[2,7]; 1; 3; 2", "f[2,3,3]", "aten.unfold_backward.default", "g0; (2,7); 1; 3; 2", "0"},
    {"aten.reflection_pad2d.default", "f[2,3,4]; (1,2,2,1)", "f[2,6,7]", "aten.reflection_pad2d_backward.default", "g0; a0; (1,2,2,1)", "0"},
    {"aten.replication_pad1d.default", "f[2,3]; (1,2)", "f[2,6]", "aten.replication_pad1d_backward.default", "g0; a0; (1,2)", "0"},
};

/* ---- arguments from text ---- */

typedef struct bench {
  rk_arg args[MAX_ARGS], back[MAX_ARGS];
  rk_tensor results[MAX_RESULTS], cotangents[MAX_RESULTS], grads[MAX_RESULTS];
  uint32_t n_args, n_results, n_back;
  uint64_t seed;
  void *blocks[256];
  int n_blocks;
} bench;

static void *take(bench *b, size_t n) {
  void *m = calloc(1, n ? n : 1);
  assert_non_null(m);
  assert_true(b->n_blocks < 256);
  return b->blocks[b->n_blocks++] = m;
}

static double random_unit(bench *b) {
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

static rk_tensor make(bench *b, int32_t dtype, uint32_t rank, const int64_t *sizes) {
  rk_tensor t = {0};
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

static const char *read_tensor(bench *b, const char *s, rk_tensor *out) {
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

static const char *read_one(bench *b, const char *s, rk_arg *out) {
  rk_arg none = {AOT_ARG_NONE, 0, {0}};
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
    rk_tensor *t = take(b, sizeof *t);
    s = read_tensor(b, s, t);
    *out = rk_arg_of_tensor(t);
    return s;
  }
  *out = rk_arg_of_int(strtoll(s, &after, 10));
  if (*after == '.') *out = rk_arg_of_float(strtod(s, &after));
  return after;
}

static uint32_t read_args(bench *b, const char *text, rk_arg *args) {
  uint32_t n = 0;
  for (const char *s = blanks(text); *s; s = blanks(*s == ';' ? s + 1 : s)) s = blanks(read_one(b, s, &args[n++]));
  return n;
}

static void read_results(bench *b, const char *text) {
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

/* ---- the comparison ---- */

static void run(const char *name, rk_arg *args, uint32_t n_args, rk_tensor *results, uint32_t n_results) {
  const rk_kernel *k = rk_find(aot_str(name));
  rk_call call = {args, n_args, results, n_results};
  rk_error error;
  if (!k) fail_msg("no kernel %s", name);
  if (rk_run(k, &call, &error) != AOT_OK) fail_msg("%s", error.text);
}

/* <cotangents, forward(args)>; only result 0 has a cotangent */
static double loss(const row *r, bench *b) {
  double sum = 0;
  run(r->forward, b->args, b->n_args, b->results, b->n_results);
  for (int64_t e = 0; e < rk_numel(&b->results[0]); e++) sum += ((double *)b->results[0].data)[e] * ((double *)b->cotangents[0].data)[e];
  return sum;
}

static void check_gradient(const row *r, bench *b, const rk_tensor *grad, uint32_t arg) {
  const rk_tensor *x = b->args[arg].u.tensor;
  double step = 1e-6;
  for (int64_t e = 0; e < rk_numel(x); e++) {
    double *at = (double *)x->data + e, old = *at, above, below, expected, got = ((double *)grad->data)[e];
    *at = old + step;
    above = loss(r, b);
    *at = old - step;
    below = loss(r, b);
    *at = old;
    expected = (above - below) / (2 * step);
    if (fabs(expected - got) > 1e-6 * (1 + fabs(expected)))
      fail_msg("%s: gradient of argument %u, element %lld is %.9g, differences give %.9g", r->backward, arg, (long long)e, got, expected);
  }
}

static void check_row(const row *r) {
  bench *b = calloc(1, sizeof *b);
  uint32_t n_grads = 0;
  int target[MAX_RESULTS];
  assert_non_null(b);
  b->seed = 12345;
  b->n_args = read_args(b, r->args, b->args);
  read_results(b, r->results);
  for (uint32_t k = 0; k < b->n_results; k++) {
    if (b->results[k].dtype != AOT_F64) continue;
    b->cotangents[k] = make(b, AOT_F64, (uint32_t)b->results[k].rank, b->results[k].sizes);
    for (int64_t e = 0; e < rk_numel(&b->cotangents[k]); e++) ((double *)b->cotangents[k].data)[e] = random_unit(b) - 0.3;
  }
  loss(r, b);
  for (const char *s = r->grads; *s; s++) {
    if (*s == ',') continue;
    target[n_grads] = *s >= '0' && *s <= '9' ? *s - '0' : -1;
    memset(&b->grads[n_grads], 0, sizeof b->grads[0]);
    if (target[n_grads] >= 0) b->grads[n_grads] = make(b, AOT_F64, (uint32_t)b->args[target[n_grads]].u.tensor->rank, b->args[target[n_grads]].u.tensor->sizes);
    n_grads++;
  }
  b->n_back = read_args(b, r->back_args, b->back);
  run(r->backward, b->back, b->n_back, b->grads, n_grads);
  for (uint32_t k = 0; k < n_grads; k++)
    if (target[k] >= 0) check_gradient(r, b, &b->grads[k], (uint32_t)target[k]);
  while (b->n_blocks) free(b->blocks[--b->n_blocks]);
  free(b);
}

static void test_gradients(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof table / sizeof table[0]; k++) check_row(&table[k]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_gradients)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
