/* Small programs in text form, run by backend-cpu and by backend-ref on the same inputs: results must agree. Each
 * program aims at one decision of the schedule: a view without a step, a copy, a group, a transposed operand, an output
 * that becomes memory of the caller. With `compiler: none-such` the same programs run without generated code. */
#include "naive.h"

#include <aot/inline.h>
#include <include/aothost.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_INPUTS = 4, MAX_OUTPUTS = 4, MAX_NUMEL = 4096 };

typedef struct input { /* f32, contiguous, unless n_classes: i64 in [0, n_classes) */
  int32_t rank;
  int64_t sizes[4], n_classes;
} input_t;

typedef struct program {
  const char *name;
  input_t inputs[MAX_INPUTS];
  const char *types; /* of the inputs, in text, one a line */
  const char *body;
} program_t;

/* clang-format off */
static const program_t programs[] = {
    {"a group over transposed and broadcast operands",
     {{2, {3, 4}, 0}, {1, {3}, 0}},
     "f32[3, 4]\nf32[3]\n",
     "%t = aten.transpose.int %a0, 0, 1\n%s = aten.add.Tensor %t, %a1\n%r = aten.relu.default %s\n%y = aten.mul.Tensor %r, 0.5\n"
     "out user_output 0 = %y\nout user_output 1 = %s\n"},
    {"views alone: outputs are copied",
     {{3, {2, 3, 4}, 0}},
     "f32[2, 3, 4]\n",
     "%p = aten.permute.default %a0, [2, 0, 1]\n%s = aten.select.int %p, 0, 1\n%v = aten.view.default %a0, [6, 4]\n"
     "out user_output 0 = %p\nout user_output 1 = %s\nout user_output 2 = %v\nout user_output 3 = %v\n"},
    {"a list that begins with [0], as that of a cache that holds nothing yet does",
     {{3, {2, 3, 4}, 0}, {1, {5}, 0}},
     "f32[2, 3, 4]\nf32[5]\n",
     "%e = aten.slice.Tensor %a1, 0, 0, 0\n%x = aten.mul.Tensor %a0, 2.0\n%y = aten.cat.default [%e, %a0, %e, %x], -2\n"
     "out user_output 0 = %y\n"},
    {"a reshape that no strides can express",
     {{2, {3, 4}, 0}},
     "f32[3, 4]\n",
     "%t = aten.transpose.int %a0, 0, 1\n%r = aten.reshape.default %t, [2, 6]\n%y = aten.sub.Tensor %r, 1\nout user_output 0 = %y\n"},
    {"a view of a fresh result is the output itself",
     {{2, {3, 4}, 0}, {2, {5, 4}, 0}},
     "f32[3, 4]\nf32[5, 4]\n",
     "%t = aten.t.default %a1\n%m = aten.mm.default %a0, %t\n%u = aten.t.default %m\nout user_output 0 = %u\n"},
    {"linear over a permuted input, with bias",
     {{3, {4, 2, 3}, 0}, {2, {5, 3}, 0}, {1, {5}, 0}},
     "f32[4, 2, 3]\nf32[5, 3]\nf32[5]\n",
     "%p = aten.permute.default %a0, [1, 0, 2]\n%y = aten.linear.default %p, %a1, %a2\nout user_output 0 = %y\n"},
    {"addmm with scaled parts, a batch against a matrix",
     {{2, {3, 4}, 0}, {2, {4, 5}, 0}, {1, {5}, 0}, {3, {2, 5, 3}, 0}},
     "f32[3, 4]\nf32[4, 5]\nf32[5]\nf32[2, 5, 3]\n",
     "%s = aten.addmm.default %a2, %a0, %a1, beta=0.5, alpha=2.0\n%m = aten.matmul.default %a3, %s\n"
     "out user_output 0 = %s\nout user_output 1 = %m\n"},
    {"products of halves: plain, transposed, with addends, in batches, of nothing",
     {{2, {70, 33}, 0}, {2, {40, 33}, 0}, {1, {40}, 0}, {3, {5, 33, 9}, 0}},
     "f32[70, 33]\nf32[40, 33]\nf32[40]\nf32[5, 33, 9]\n",
     "%x = aten._to_copy.default %a0, dtype=bf16\n%w = aten._to_copy.default %a1, dtype=bf16\n%c = aten._to_copy.default %a2, dtype=bf16\n"
     "%s = aten._to_copy.default %a3, dtype=bf16\n%t = aten.t.default %w\n%m = aten.mm.default %x, %t\n%l = aten.linear.default %x, %w, %c\n"
     "%p = aten.addmm.default %c, %x, %t, beta=0.5, alpha=2.0\n%n = aten.linear.default %x, %w\n%e = aten.expand.default %w, [5, 40, 33]\n"
     "%b = aten.bmm.default %e, %s\n%u = aten.slice.Tensor %c, 0, 0, 9\n%d = aten.baddbmm.default %u, %e, %s, beta=-1.0\n"
     "%q = aten.slice.Tensor %x, 1, 0, 33, 2\n%v = aten.slice.Tensor %t, 0, 0, 33, 2\n%g = aten.mm.default %q, %v\n"
     "%o = aten.slice.Tensor %x, 1, 0, 0\n%k = aten.slice.Tensor %t, 0, 0, 0\n%i = aten.addmm.default %c, %o, %k\n"
     "%y0 = aten._to_copy.default %m, dtype=f32\n%y1 = aten._to_copy.default %l, dtype=f32\n%y2 = aten._to_copy.default %p, dtype=f32\n"
     "%y3 = aten._to_copy.default %n, dtype=f32\n%y4 = aten._to_copy.default %b, dtype=f32\n%y5 = aten._to_copy.default %d, dtype=f32\n"
     "%y6 = aten._to_copy.default %g, dtype=f32\n%y7 = aten._to_copy.default %i, dtype=f32\n"
     "%z0 = aten.sum.dim_IntList %y0, [1]\n%z1 = aten.cat.default [%y1, %y2, %y3, %y6, %y7], 1\n%z2 = aten.reshape.default %y4, [200, 9]\n%z3 = aten.reshape.default %y5, [200, 9]\n"
     "out user_output 0 = %z0\nout user_output 1 = %z1\nout user_output 2 = %z2\nout user_output 3 = %z3\n"},
    {"products of few rows, whose columns a team divides",
     {{2, {20, 60}, 0}, {2, {60, 60}, 0}},
     "f32[20, 60]\nf32[60, 60]\n",
     "%x = aten.cat.default [%a0, %a0, %a0, %a0], 1\n%w = aten.cat.default [%a1, %a1, %a1, %a1, %a1, %a1, %a1, %a1, %a1, %a1], 1\n"
     "%y = aten.cat.default [%w, %w, %w, %w], 0\n%m = aten.mm.default %x, %y\n%xd = aten._to_copy.default %x, dtype=f64\n"
     "%yd = aten._to_copy.default %y, dtype=f64\n%n = aten.mm.default %xd, %yd\n%s = aten.amax.default %m, [0]\n"
     "%sd = aten.amax.default %n, [0]\n%o = aten._to_copy.default %sd, dtype=f32\n"
     "out user_output 0 = %s\nout user_output 1 = %o\n"},
    {"copies and zeros that a team divides",
     {{2, {60, 64}, 0}},
     "f32[60, 64]\n",
     "%x = aten.cat.default [%a0, %a0, %a0, %a0, %a0, %a0, %a0, %a0, %a0, %a0], 1\n%y = aten.cat.default [%x, %x], 0\n"
     "%z = aten.cat.default [%y, %y], 1\n%w = aten.cat.default [%z, %z], 0\n"
     "%p = aten.slice_backward.default %a0, [2700, 64], 0, 0, 60, 1\n%q = aten.slice_backward.default %a0, [2700, 64], 0, 2640, 2700, 1\n"
     "%r = aten.add.Tensor %p, %q\nout user_output 0 = %w\nout user_output 1 = %r\n"},
    {"products of doubles that a team divides, and sums of nothing",
     {{2, {60, 64}, 0}, {2, {60, 64}, 0}},
     "f32[60, 64]\nf32[60, 64]\n",
     "%x = aten._to_copy.default %a0, dtype=f64\n%y = aten._to_copy.default %a1, dtype=f64\n%l = aten.cat.default [%x, %x, %x], 1\n"
     "%r = aten.cat.default [%y, %x, %y], 1\n%t = aten.t.default %l\n%m = aten.mm.default %t, %r\n%s = aten.sum.dim_IntList %m, [1]\n"
     "%u = aten.slice.Tensor %t, 1, 0, 0\n%v = aten.slice.Tensor %r, 0, 0, 0\n%n = aten.addmm.default %s, %u, %v\n%w = aten.slice.Tensor %n, 0, 0, 3\n"
     "%o = aten._to_copy.default %s, dtype=f32\n%p = aten._to_copy.default %w, dtype=f32\n"
     "out user_output 0 = %o\nout user_output 1 = %p\n"},
    {"products of halves that no vector unit multiplies",
     {{3, {2, 7, 33}, 0}, {2, {40, 33}, 0}, {1, {40}, 0}},
     "f32[2, 7, 33]\nf32[40, 33]\nf32[40]\n",
     "%x = aten._to_copy.default %a0, dtype=f16\n%w = aten._to_copy.default %a1, dtype=f16\n%c = aten._to_copy.default %a2, dtype=f16\n"
     "%l = aten.linear.default %x, %w, %c\n%t = aten.t.default %w\n%m = aten.matmul.default %x, %t\n%r = aten.reshape.default %x, [14, 33]\n"
     "%p = aten.addmm.default %c, %r, %t, beta=0.5, alpha=2.0\n%y0 = aten._to_copy.default %l, dtype=f32\n"
     "%y1 = aten._to_copy.default %m, dtype=f32\n%y2 = aten._to_copy.default %p, dtype=f32\n"
     "out user_output 0 = %y0\nout user_output 1 = %y1\nout user_output 2 = %y2\n"},
    {"convolutions and products that a team divides, their gradients, channels last, transposed, in halves",
     {{4, {4, 16, 8, 8}, 0}, {4, {1, 16, 3, 3}, 0}, {1, {64}, 0}},
     "f32[4, 16, 8, 8]\nf32[1, 16, 3, 3]\nf32[64]\n",
     "%s = aten.reshape.default %a2, [64, 1, 1, 1]\n%v = aten.mul.Tensor %s, 0.05\n%w = aten.mul.Tensor %a1, %v\n"
     "%x = aten.cat.default [%a0, %a0, %a0], 0\n%y = aten.convolution.default %x, %w, %a2, [1, 1], [1, 1], [1, 1], false, [0, 0], 1\n"
     "%g = aten.mul.Tensor %y, 0.01\n%gx, %gw, %gb = aten.convolution_backward.default %g, %x, %w, [64], [1, 1], [1, 1], [1, 1], false, [0, 0], 1, [true, true, true]\n"
     "%t = aten.convolution.default %g, %w, none, [2, 2], [1, 1], [1, 1], true, [1, 1], 1\n"
     "%d, %e, %f = aten.convolution_backward.default %t, %g, %w, [16], [2, 2], [1, 1], [1, 1], true, [1, 1], 1, [true, true, true]\n"
     "%hx = aten._to_copy.default %x, dtype=bf16\n%hw = aten._to_copy.default %w, dtype=bf16\n%hb = aten._to_copy.default %a2, dtype=bf16\n"
     "%hy = aten.convolution.default %hx, %hw, %hb, [2, 2], [1, 1], [1, 1], false, [0, 0], 1\n%yh = aten._to_copy.default %hy, dtype=f32\n"
     "%r = aten.reshape.default %y, [64, 768]\n%q = aten.mul.Tensor %r, 0.01\n%hr = aten._to_copy.default %q, dtype=bf16\n%ht = aten.t.default %hr\n"
     "%hm = aten.mm.default %ht, %hr\n%mh = aten._to_copy.default %hm, dtype=f32\n%m0 = aten.slice.Tensor %mh, 1, 0, 4\n"
     "%y0 = aten.slice.Tensor %y, 0, 10, 11\n%x0 = aten.slice.Tensor %gx, 0, 9, 11\n%w0 = aten.slice.Tensor %gw, 0, 40, 64\n"
     "%t0 = aten.slice.Tensor %t, 0, 10, 11\n%d0 = aten.slice.Tensor %d, 0, 11, 12\n%e0 = aten.slice.Tensor %e, 0, 30, 50\n%h0 = aten.slice.Tensor %yh, 0, 9, 12\n"
     "%j0 = aten.flatten.using_ints %y0\n%j1 = aten.flatten.using_ints %x0\n%k0 = aten.flatten.using_ints %w0\n%k1 = aten.flatten.using_ints %t0\n"
     "%i0 = aten.flatten.using_ints %d0\n%i1 = aten.flatten.using_ints %e0\n%i2 = aten.flatten.using_ints %h0\n%i3 = aten.flatten.using_ints %m0\n"
     "%a = aten.cat.default [%j0, %j1, %gb], 0\n%b = aten.cat.default [%k0, %k1], 0\n%c = aten.cat.default [%i0, %i1, %f], 0\n%p = aten.cat.default [%i2, %i3], 0\n"
     "out user_output 0 = %a\nout user_output 1 = %b\nout user_output 2 = %c\nout user_output 3 = %p\n"},
    {"many short products of halves, plain, transposed, in a broadcast batch",
     {{3, {40, 7, 5}, 0}, {3, {40, 5, 9}, 0}, {2, {5, 9}, 0}},
     "f32[40, 7, 5]\nf32[40, 5, 9]\nf32[5, 9]\n",
     "%x = aten._to_copy.default %a0, dtype=bf16\n%y = aten._to_copy.default %a1, dtype=bf16\n%z = aten._to_copy.default %a2, dtype=bf16\n"
     "%m = aten.bmm.default %x, %y\n%t = aten.transpose.int %x, 1, 2\n%u = aten.transpose.int %y, 1, 2\n%n = aten.bmm.default %u, %t\n"
     "%e = aten.expand.default %z, [40, 5, 9]\n%p = aten.bmm.default %x, %e\n%y0 = aten._to_copy.default %m, dtype=f32\n"
     "%y1 = aten._to_copy.default %n, dtype=f32\n%y2 = aten._to_copy.default %p, dtype=f32\n"
     "out user_output 0 = %y0\nout user_output 1 = %y1\nout user_output 2 = %y2\n"},
    {"convolutions over three dimensions, their gradients, transposed, in halves",
     {{4, {2, 3, 24, 10}, 0}, {4, {8, 3, 9, 3}, 0}, {1, {8}, 0}},
     "f32[2, 3, 24, 10]\nf32[8, 3, 9, 3]\nf32[8]\n",
     "%x = aten.reshape.default %a0, [2, 3, 4, 6, 10]\n%w = aten.reshape.default %a1, [8, 3, 3, 3, 3]\n%c = aten.slice.Tensor %a2, 0, 0, 3\n"
     "%y = aten.conv3d.default %x, %w, %a2, [1, 2, 1], [1, 0, 1]\n%g = aten.mul.Tensor %y, 0.05\n"
     "%gx, %gw, %gb = aten.convolution_backward.default %g, %x, %w, [8], [1, 2, 1], [1, 0, 1], [1, 1, 1], false, [0, 0, 0], 1, [true, true, true]\n"
     "%t = aten.conv_transpose3d.input %g, %w, %c, [2, 1, 1], [1, 1, 1], [1, 0, 0]\n%u = aten.mul.Tensor %t, 0.1\n"
     "%d, %e, %f = aten.convolution_backward.default %u, %g, %w, [3], [2, 1, 1], [1, 1, 1], [1, 1, 1], true, [1, 0, 0], 1, [true, true, true]\n"
     "%hx = aten._to_copy.default %x, dtype=bf16\n%hw = aten._to_copy.default %w, dtype=bf16\n%hb = aten._to_copy.default %a2, dtype=bf16\n"
     "%hy = aten.conv3d.default %hx, %hw, %hb, [1, 2, 1], [1, 0, 1]\n%h = aten._to_copy.default %hy, dtype=f32\n"
     "%i0 = aten.flatten.using_ints %gx\n%i1 = aten.flatten.using_ints %gw\n%i2 = aten.flatten.using_ints %d\n%i3 = aten.flatten.using_ints %e\n"
     "%i4 = aten.flatten.using_ints %t\n%a = aten.cat.default [%i0, %i1, %gb], 0\n%b = aten.cat.default [%i2, %i3, %f], 0\n"
     "out user_output 0 = %h\nout user_output 1 = %a\nout user_output 2 = %b\nout user_output 3 = %i4\n"},
    {"convolutions of float64, their gradients, grouped, transposed, over three dimensions",
     {{4, {2, 4, 12, 10}, 0}, {4, {8, 2, 9, 3}, 0}, {1, {8}, 0}},
     "f32[2, 4, 12, 10]\nf32[8, 2, 9, 3]\nf32[8]\n",
     "%x = aten._to_copy.default %a0, dtype=f64\n%v = aten._to_copy.default %a1, dtype=f64\n%b = aten._to_copy.default %a2, dtype=f64\n"
     "%w = aten.slice.Tensor %v, 2, 0, 3\n%y = aten.conv2d.default %x, %w, %b, [2, 1], [1, 1], [1, 2], 2\n%g = aten.mul.Tensor %y, 0.05\n"
     "%gx, %gw, %gb = aten.convolution_backward.default %g, %x, %w, [8], [2, 1], [1, 1], [1, 2], false, [0, 0], 2, [true, true, true]\n"
     "%c = aten.slice.Tensor %b, 0, 0, 4\n%t = aten.convolution.default %g, %w, %c, [2, 1], [1, 1], [1, 2], true, [1, 0], 2\n"
     "%x3 = aten.reshape.default %x, [2, 4, 3, 4, 10]\n%v3 = aten.reshape.default %v, [8, 2, 3, 3, 3]\n"
     "%z = aten.conv3d.default %x3, %v3, %b, [1, 1, 2], [1, 1, 1], [1, 1, 1], 2\n%p = aten.mul.Tensor %z, 0.05\n"
     "%px, %pw, %n = aten.convolution_backward.default %p, %x3, %v3, none, [1, 1, 2], [1, 1, 1], [1, 1, 1], false, [0, 0, 0], 2, [true, true, false]\n"
     "%i0 = aten.flatten.using_ints %gx\n%i1 = aten.flatten.using_ints %gw\n%i2 = aten.flatten.using_ints %t\n%i3 = aten.flatten.using_ints %px\n"
     "%i4 = aten.flatten.using_ints %pw\n%i5 = aten.flatten.using_ints %z\n%j0 = aten.cat.default [%i0, %i1, %gb, %i2], 0\n%j1 = aten.cat.default [%i3, %i4], 0\n"
     "%o0 = aten._to_copy.default %j0, dtype=f32\n%o1 = aten._to_copy.default %j1, dtype=f32\n%o2 = aten._to_copy.default %i5, dtype=f32\n"
     "out user_output 0 = %o0\nout user_output 1 = %o1\nout user_output 2 = %o2\n"},
    {"gradients of depthwise convolutions, channels last and not",
     {{4, {2, 9, 8, 21}, 0}, {4, {21, 1, 5, 3}, 0}, {4, {2, 9, 8, 21}, 0}},
     "f32[2, 9, 8, 21]\nf32[21, 1, 5, 3]\nf32[2, 9, 8, 21]\n",
     "%x = aten.permute.default %a0, [0, 3, 1, 2]\n%g = aten.permute.default %a2, [0, 3, 1, 2]\n"
     "%gx, %gw, %n0 = aten.convolution_backward.default %g, %x, %a1, none, [1, 1], [2, 1], [1, 1], false, [0, 0], 21, [true, true, false]\n"
     "%u = aten.mul.Tensor %g, 0.5\n%p = aten.clone.default %u, memory_format=memory_format(0)\n"
     "%n1, %pw, %n2 = aten.convolution_backward.default %p, %x, %a1, none, [1, 1], [2, 1], [1, 1], false, [0, 0], 21, [false, true, false]\n"
     "out user_output 0 = %gx\nout user_output 1 = %gw\nout user_output 2 = %pw\n"},
    {"convolutions of one element on large images, and their gradients, which are products",
     {{4, {2, 3, 20, 21}, 0}, {4, {5, 3, 1, 1}, 0}},
     "f32[2, 3, 20, 21]\nf32[5, 3, 1, 1]\n",
     "%y = aten.convolution.default %a0, %a1, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1\n"
     "%gx, %gw, %gb = aten.convolution_backward.default %y, %a0, %a1, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1, [true, true, false]\n"
     "%u = aten.convolution.default %y, %a1, none, [1, 1], [0, 0], [1, 1], true, [0, 0], 1\n%s = aten.mul.Tensor %gw, 0.01\n"
     "%x = aten._to_copy.default %a0, dtype=bf16\n%w = aten._to_copy.default %a1, dtype=bf16\n"
     "%h = aten.convolution.default %x, %w, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1\n%f = aten._to_copy.default %h, dtype=f32\n"
     "%z = aten.sub.Tensor %gx, %u\n%v = aten.cat.default [%gx, %z], 3\nout user_output 0 = %y\nout user_output 1 = %s\n"
     "out user_output 2 = %f\nout user_output 3 = %v\n"},
    {"batch norm and pooling of halves, as floats and back",
     {{4, {4, 6, 9, 8}, 0}, {1, {6}, 0}},
     "f32[4, 6, 9, 8]\nf32[6]\n",
     "%x = aten._to_copy.default %a0, dtype=bf16\n%h = aten._to_copy.default %a0, dtype=f16\n"
     "%n, %m, %v = aten._native_batch_norm_legit.no_stats %x, %a1, %a1, true, 0.1, 1e-05\n"
     "%gx, %gw, %gb = aten.native_batch_norm_backward.default %n, %x, %a1, none, none, %m, %v, true, 1e-05, [true, true, true]\n"
     "%p, %i = aten.max_pool2d_with_indices.default %x, [3, 3], [2, 2], [1, 1]\n"
     "%g = aten.max_pool2d_with_indices_backward.default %p, %x, [3, 3], [2, 2], [1, 1], [1, 1], false, %i\n"
     "%q = aten.avg_pool2d.default %h, [3, 2], [2, 2], [1, 0], true, false\n"
     "%r = aten.avg_pool2d_backward.default %q, %h, [3, 2], [2, 2], [1, 0], true, false, none\n"
     "%s = aten._adaptive_avg_pool2d.default %h, [4, 1]\n%t = aten._adaptive_avg_pool2d_backward.default %s, %h\n"
     "%b0 = aten._to_copy.default %n, dtype=f32\n%b1 = aten._to_copy.default %gx, dtype=f32\n%b2 = aten._to_copy.default %g, dtype=f32\n"
     "%b3 = aten._to_copy.default %r, dtype=f32\n%b4 = aten._to_copy.default %t, dtype=f32\n%c = aten.add.Tensor %b3, %b4\n"
     "out user_output 0 = %b0\nout user_output 1 = %b1\nout user_output 2 = %b2\nout user_output 3 = %c\n"},
    {"a chain that is read in its middle",
     {{2, {6, 7}, 0}},
     "f32[6, 7]\n",
     "%e = aten.sigmoid.default %a0\n%s = aten.sum.dim_IntList %e, [1], true\n%d = aten.div.Tensor %e, %s\n%l = aten.log.default %d\n"
     "%z = aten.mul.Tensor %l, %d\n%t = aten.sum.default %z\nout user_output 0 = %t\nout user_output 1 = %d\n"},
    {"comparisons, casts, where, integers",
     {{2, {4, 5}, 0}, {1, {5}, 9}},
     "f32[4, 5]\ni64[5]\n",
     "%g = aten.gt.Scalar %a0, 0.25\n%w = aten.where.self %g, %a0, %a1\n%k = aten.mul.Tensor %a1, 3\n%o = aten.eq.Scalar %k, 6\n"
     "%n = aten.logical_not.default %o\n%f = aten._to_copy.default %n, dtype=f32\n%y = aten.add.Tensor %w, %f\nout user_output 0 = %y\n"
     "out user_output 1 = %k\nout user_output 2 = %g\n"},
    {"sums over leading, trailing, middle and alternating dimensions",
     {{4, {2, 3, 4, 5}, 0}},
     "f32[2, 3, 4, 5]\n",
     "%a = aten.sum.dim_IntList %a0, [0, 1]\n%b = aten.mean.dim %a0, [-1], true\n%c = aten.sum.dim_IntList %a0, [1, 2]\n"
     "%d = aten.sum.dim_IntList %a0, [0, 2]\nout user_output 0 = %a\nout user_output 1 = %b\nout user_output 2 = %c\nout user_output 3 = %d\n"},
    {"rows: softmax between pointwise nodes, its input read by others, and its derivative",
     {{3, {2, 3, 600}, 0}, {3, {2, 3, 600}, 0}, {1, {600}, 0}},
     "f32[2, 3, 600]\nf32[2, 3, 600]\nf32[600]\n",
     "%a = aten.mul.Tensor %a0, 3.0\n%b = aten.add.Tensor %a, %a2\n%s = aten._softmax.default %b, -1, false\n"
     "%d = aten.mul.Tensor %s, %a1\n%g = aten._softmax_backward_data.default %d, %s, -1, f32\n%h = aten.add.Tensor %g, %a\n"
     "%l = aten._log_softmax.default %h, 2, false\n%e = aten._log_softmax_backward_data.default %a1, %l, 2, f32\n"
     "%z = aten.add.Tensor %e, %h\nout user_output 0 = %z\nout user_output 1 = %s\nout user_output 2 = %b\n"},
    {"rows: over a middle dimension, a transposed input, of one element, by themselves",
     {{3, {4, 40, 5}, 0}, {2, {50, 33}, 0}, {2, {6, 1}, 0}, {2, {3, 7}, 0}},
     "f32[4, 40, 5]\nf32[50, 33]\nf32[6, 1]\nf32[3, 7]\n",
     "%a = aten.exp.default %a0\n%s = aten._softmax.default %a, 1, false\n%t = aten.t.default %a1\n%u = aten.neg.default %t\n"
     "%v = aten._log_softmax.default %u, 1, false\n%o = aten._softmax.default %a2, 1, false\n%p = aten.softmax.int %a3, -1\n"
     "out user_output 0 = %s\nout user_output 1 = %v\nout user_output 2 = %o\nout user_output 3 = %p\n"},
    {"rows: layer norm with statistics that others read, sums and means with what follows from them",
     {{3, {3, 4, 48}, 0}, {1, {48}, 0}, {1, {48}, 0}, {3, {3, 4, 48}, 0}},
     "f32[3, 4, 48]\nf32[48]\nf32[48]\nf32[3, 4, 48]\n",
     "%r = aten.add.Tensor %a0, %a3\n%y, %m, %d = aten.native_layer_norm.default %r, [48], %a1, none, 1e-05\n"
     "%g = aten.gelu.default %y\n%c = aten.sub.Tensor %r, %m\n%n = aten.layer_norm.default %c, [48], %a1, %a2\n"
     "%q = aten.square.default %n\n%v = aten.mean.dim %q, [-1], true\n%e = aten.add.Tensor %v, 1e-05\n%i = aten.rsqrt.default %e\n"
     "%w = aten.mul.Tensor %n, %i\n%x = aten.mul.Tensor %w, %d\n%k = aten.sum.dim_IntList %x, [1, 2]\n"
     "out user_output 0 = %g\nout user_output 1 = %x\nout user_output 2 = %k\nout user_output 3 = %i\n"},
    {"halves: pointwise, compared with numbers, rows",
     {{3, {2, 3, 70}, 0}, {1, {70}, 0}},
     "f32[2, 3, 70]\nf32[70]\n",
     "%h = aten._to_copy.default %a0, dtype=bf16\n%w = aten._to_copy.default %a1, dtype=bf16\n%m = aten.mul.Tensor %h, %w\n"
     "%c = aten.add.Tensor %m, %h, alpha=0.3\n%s = aten._softmax.default %c, -1, false\n%g = aten.gt.Scalar %s, 0.0111\n"
     "%z = aten.where.self %g, %s, %w\n%n = aten.layer_norm.default %z, [70], %w\n%t = aten.sum.dim_IntList %n, [2], true\n"
     "%f = aten._to_copy.default %n, dtype=f16\n%q = aten.silu.default %f\n%y = aten._to_copy.default %q, dtype=f32\n"
     "%v = aten._to_copy.default %t, dtype=f32\n%x = aten._to_copy.default %s, dtype=f32\n"
     "out user_output 0 = %y\nout user_output 1 = %v\nout user_output 2 = %x\nout user_output 3 = %g\n"},
    {"columns: sums over leading dimensions with what is summed, by themselves, of a transposed tensor, of halves",
     {{3, {3, 20, 37}, 0}, {2, {40, 33}, 0}, {1, {37}, 0}},
     "f32[3, 20, 37]\nf32[40, 33]\nf32[37]\n",
     "%a = aten.mul.Tensor %a0, %a2\n%g = aten.tanh.default %a\n%s = aten.sum.dim_IntList %g, [0, 1]\n%q = aten.mul.Tensor %s, %a2\n"
     "%m = aten.mean.dim %a0, [1], true\n%c = aten.sub.Tensor %a0, %m\n%t = aten.t.default %a1\n%u = aten.exp.default %t\n"
     "%v = aten.sum.dim_IntList %u, [1]\n%h = aten._to_copy.default %a1, dtype=bf16\n%i = aten.sum.dim_IntList %h, [0]\n"
     "%j = aten._to_copy.default %i, dtype=f32\n%k = aten.sum.dim_IntList %a1, [0], true\n%l = aten.div.Tensor %a1, %k\n"
     "%w = aten.sum.dim_IntList %l, [0]\n%z = aten.add.Tensor %j, %w\n%x = aten.add.Tensor %c, %g\n"
     "out user_output 0 = %q\nout user_output 1 = %x\nout user_output 2 = %z\nout user_output 3 = %v\n"},
    {"rows: largest, least, products, log of a sum of exponentials, whole tensors",
     {{3, {3, 4, 60}, 0}, {2, {4, 5}, 0}},
     "f32[3, 4, 60]\nf32[4, 5]\n",
     "%a = aten.amax.default %a0, [-1], true\n%b = aten.amin.default %a0, [2], true\n%c = aten.sub.Tensor %a, %b\n"
     "%d = aten.div.Tensor %a0, %c\n%e = aten.logsumexp.default %d, [2], true\n%f = aten.sub.Tensor %d, %e\n"
     "%p = aten.prod.dim_int %a1, 1\n%q = aten.prod.default %a1\n%m = aten.max.default %a0\n%n = aten.min.default %a0\n"
     "%r = aten.add.Tensor %m, %n\n%s = aten.add.Tensor %r, %q\n%t = aten.amax.default %a0, [0]\n"
     "out user_output 0 = %f\nout user_output 1 = %p\nout user_output 2 = %s\nout user_output 3 = %t\n"},
    {"rows: extrema where some elements are not numbers",
     {{2, {40, 37}, 0}},
     "f32[40, 37]\n",
     "%l = aten.log.default %a0\n%p = aten.lt.Scalar %a0, -1.9\n%n = aten.where.ScalarOther %p, %l, 0.5\n%m = aten.add.Tensor %n, %a0\n"
     "%a = aten.amax.default %m, [1]\n%b = aten.amin.default %m, [1]\n%c = aten.amax.default %m, [0]\nout user_output 0 = %a\n"
     "out user_output 1 = %b\nout user_output 2 = %c\n"},
    {"rows: places of extrema, the first of equal ones, of numbers that are none, across memory, of everything",
     {{2, {40, 70}, 0}, {3, {2, 30, 40}, 7}, {2, {3, 600}, 0}},
     "f32[40, 70]\ni64[2, 30, 40]\nf32[3, 600]\n",
     "%l = aten.log.default %a0\n%p = aten.lt.Scalar %a0, -1.96\n%n = aten.where.ScalarOther %p, %l, 0.5\n%m = aten.add.Tensor %n, %a0\n"
     "%v, %i = aten.max.dim %m, 1\n%w, %j = aten.min.dim %m, 0, true\n%u, %k = aten.max.dim %a1, 2, true\n"
     "%e = aten.argmax.default %a1, 1\n%f = aten.argmin.default %a1\n%g = aten.argmax.default %a2\n%h = aten.add.Tensor %g, %f\n"
     "%q, %r = aten.aminmax.default %a2, dim=1\n%s = aten.sub.Tensor %r, %q\n%t = aten.argmin.default %a2, 1, true\n"
     "%a = aten.gather.default %a2, 1, %t\n%b = aten.add.Tensor %a, %s\n%c = aten.sum.default %b\n%d = aten.sum.default %w\n"
     "%x = aten.sum.dim_IntList %e, [1]\n%y = aten.amax.default %x, [0]\n%z = aten.add.Tensor %h, %y\n%u1 = aten.add.Tensor %k, %u\n"
     "%u2 = aten.sum.dim_IntList %u1, [1, 2]\n%z1 = aten.add.Tensor %u2, %z\n%j1 = aten.sum.default %j\n%z2 = aten.add.Tensor %z1, %j1\n"
     "%i1 = aten.add.Tensor %i, 0\nout user_output 0 = %v\nout user_output 1 = %i1\nout user_output 2 = %z2\nout user_output 3 = %w\n"},
    {"places written by index tensors: sums of rows that meet, with padding, a factor, along other dimensions, of integers",
     {{3, {6, 4, 10}, 0}, {2, {6, 4}, 7}, {2, {7, 10}, 0}, {3, {6, 4, 10}, 4}},
     "f32[6, 4, 10]\ni64[6, 4]\nf32[7, 10]\ni64[6, 4, 10]\n",
     "%e = aten.embedding_dense_backward.default %a0, %a1, 7, 2, false\n%f = aten.embedding_dense_backward.default %a0, %a1, 9, -1, false\n"
     "%i = aten.view.default %a1, [24]\n%g = aten.view.default %a0, [24, 10]\n%h = aten.index_add.default %a2, 0, %i, %g, alpha=0.5\n"
     "%s = aten.scatter_add.default %a0, 1, %a3, %a0\n%t = aten.transpose.int %a0, 0, 2\n%k = aten.slice.Tensor %a3, 0, 0, 5\n"
     "%u = aten.scatter_add.default %a0, 0, %k, %a0\n%v = aten.scatter_add.default %a3, 2, %a3, %a3\n%l = aten.add.Tensor %v, %a3\n"
     "%m = aten.transpose.int %t, 0, 2\n%n = aten.add.Tensor %s, %u\n%o = aten.mul.Tensor %n, %m\n%p = aten.mul.Tensor %o, %l\n"
     "%d = aten.add.Tensor %e, %h\n%q = aten.slice.Tensor %i, 0, 0, 10\n%w = aten.exp.default %p\n"
     "%j = aten.index_add.default %p, 2, %q, %w\nout user_output 0 = %d\nout user_output 1 = %f\n"
     "out user_output 2 = %j\n"},
    {"places written by index tensors: several of them, added and put, numbers, broadcast values, single places",
     {{3, {5, 4, 6}, 0}, {1, {8}, 4}, {2, {3, 8}, 4}, {1, {6}, 0}},
     "f32[5, 4, 6]\ni64[8]\ni64[3, 8]\nf32[6]\n",
     "%a = aten.index_put.default %a0, [%a1, %a1], %a3, true\n%n = aten.sub.Tensor %a1, 4\n%o = aten.unsqueeze.default %a3, 1\n"
     "%r = aten.expand.default %o, [6, 3]\n%c = aten.slice.Tensor %a3, 0, 0, 1\n%b = aten.index_put.default %a, [none, %n, %a2], %c, true\n"
     "%d = aten.exp.default %b\n%x = aten.slice.Tensor %a2, 1, 0, 4\n%h = aten.unsqueeze.default %x, 2\n"
     "%s = aten.scatter.value %d, 1, %h, 3.0\n%k = aten.arange.start_step 4, 0, -1\n%z = aten.sin.default %d\n%w = aten.slice.Tensor %z, 0, 1, 5\n"
     "%y = aten.index_put.default %s, [%k], %w, false\n%u = aten.scatter.src %y, 2, %h, %z\n%j = aten.index_copy.default %u, 0, %k, %w\n"
     "out user_output 0 = %b\nout user_output 1 = %y\nout user_output 2 = %j\n"},
    {"scans: along rows and across memory, with what is worth vectors before and after, of whole numbers, of halves",
     {{2, {5, 700}, 0}, {3, {2, 50, 40}, 9}, {2, {50, 33}, 0}},
     "f32[5, 700]\ni64[2, 50, 40]\nf32[50, 33]\n",
     "%a = aten.exp.default %a0\n%b = aten.cumsum.default %a, 1\n%s = aten.sum.dim_IntList %a, [1], true\n%c = aten.div.Tensor %b, %s\n"
     "%d = aten.log.default %c\n%e = aten.add.Tensor %d, %a\n%f = aten.cumsum.default %a1, -1\n%g = aten.mul.Tensor %f, %a1\n"
     "%h = aten.cumsum.default %g, 1\n%i = aten.sin.default %a2\n%j = aten.cumprod.default %i, 0\n%k = aten.add.Tensor %j, %i\n"
     "%l = aten.logcumsumexp.default %a2, 1\n%m = aten.logcumsumexp.default %k, 0\n%n = aten.mul.Tensor %l, %m\n"
     "%o = aten._to_copy.default %n, dtype=bf16\n%p = aten.cumsum.default %o, 1\n%q = aten._to_copy.default %p, dtype=f32\n"
     "%r = aten.sum.dim_IntList %e, [1]\nout user_output 0 = %e\nout user_output 1 = %h\nout user_output 2 = %q\nout user_output 3 = %r\n"},
    {"scans: running extrema and their places, of equal ones and of numbers that are none; infinities",
     {{2, {40, 37}, 0}, {2, {40, 37}, 5}},
     "f32[40, 37]\ni64[40, 37]\n",
     "%l = aten.log.default %a0\n%p = aten.lt.Scalar %a0, -1.8\n%n = aten.where.ScalarOther %p, %l, 0.5\n%m = aten.add.Tensor %n, %a0\n"
     "%a, %b = aten.cummax.default %m, 1\n%c, %d = aten.cummin.default %a1, 1\n%e, %f = aten.cummin.default %m, 0\n"
     "%g, %h = aten.cummax.default %a1, 0\n%i = aten.add.Tensor %b, %d\n%j = aten.add.Tensor %c, %f\n%k = aten.add.Tensor %g, %h\n"
     "%q = aten.mul.Tensor %i, %j\n%r = aten.sub.Tensor %q, %k\n%t = aten.gt.Scalar %a0, 0.0\n%u = aten.mul.Tensor %a0, 1000.0\n"
     "%v = aten.masked_fill.Scalar %u, %t, -inf\n%w = aten.logcumsumexp.default %v, 1\n%x = aten.gt.Scalar %a0, 1.95\n"
     "%y = aten.masked_fill.Scalar %w, %x, inf\n%z = aten.logcumsumexp.default %y, 1\n"
     "out user_output 0 = %a\nout user_output 1 = %r\nout user_output 2 = %e\nout user_output 3 = %z\n"},
    {"rows: any, all, counts and sums of truth values and of whole numbers",
     {{2, {40, 50}, 0}, {2, {40, 50}, 2}, {2, {40, 50}, 9}},
     "f32[40, 50]\ni64[40, 50]\ni64[40, 50]\n",
     "%g = aten.gt.Scalar %a0, 1.9\n%a = aten.any.dim %g, 1\n%b = aten.all.dim %a1, 1, true\n%c = aten.any.default %g\n"
     "%d = aten.all.dims %a0, [0, 1]\n%e = aten.count_nonzero.dim_IntList %g, [1]\n%f = aten.sum.dim_IntList %g, [1]\n"
     "%h = aten.count_nonzero.default %a1\n%i = aten._to_copy.default %a2, dtype=i32\n%j = aten.sum.dim_IntList %i, [1], true\n"
     "%k = aten.amax.default %i, [1], true\n%l = aten.sub.Tensor %i, %k\n%m = aten.mul.Tensor %l, %j\n%n = aten.add.Tensor %e, %f\n"
     "%o = aten.add.Tensor %n, %h\n%p = aten.min.default %a2\n%q = aten.add.Tensor %o, %p\n%r = aten.logical_or.default %c, %d\n"
     "%s = aten.logical_xor.default %b, %r\n%t = aten.mul.Tensor %m, %s\n%u = aten.prod.dim_int %a2, 1\n%v = aten.add.Tensor %q, %u\n"
     "%x = aten.nansum.default %a0, [0]\nout user_output 0 = %a\nout user_output 1 = %t\nout user_output 2 = %v\n"
     "out user_output 3 = %x\n"},
    {"rows: variance and deviation, along and across memory; root mean squares",
     {{3, {3, 4, 60}, 0}, {1, {60}, 0}},
     "f32[3, 4, 60]\nf32[60]\n",
     "%v, %m = aten.var_mean.correction %a0, [2], correction=0, keepdim=true\n%c = aten.sub.Tensor %a0, %m\n"
     "%s = aten.std.correction %c, [-1], keepdim=true\n%d = aten.div.Tensor %c, %s\n%w = aten.var.correction %a0, [0, 1], correction=2\n"
     "%r = aten.rms_norm.default %d, [60], %a1, 0.001\n%y, %k = aten._fused_rms_norm.default %r, [60], none, 0.01\n"
     "out user_output 0 = %y\nout user_output 1 = %w\nout user_output 2 = %v\nout user_output 3 = %k\n"},
    {"rows of large numbers, with -inf, of -inf alone, with inf and NaN",
     {{2, {6, 40}, 0}, {2, {6, 1}, 0}},
     "f32[6, 40]\nf32[6, 1]\n",
     "%l = aten.mul.Tensor %a0, 1000.0\n%g = aten.lt.Scalar %a0, 0.5\n%i = aten.masked_fill.Scalar %l, %g, -inf\n%z = aten.lt.Scalar %a1, 0.0\n"
     "%j = aten.masked_fill.Scalar %i, %z, -inf\n%s = aten._safe_softmax.default %j, -1\n%t = aten._softmax.default %j, 1, false\n"
     "%u = aten._log_softmax.default %i, 1, false\n%e = aten.logsumexp.default %j, [1]\n%n = aten.neg.default %i\n"
     "%v = aten.layer_norm.default %n, [40]\n%w = aten._softmax.default %n, 1, false\n%m = aten.mul.Tensor %w, %v\n%x = aten.add.Tensor %t, %m\n"
     "out user_output 0 = %s\nout user_output 1 = %x\nout user_output 2 = %u\nout user_output 3 = %e\n"},
    {"pointwise with a sum that its broadcast terms do not let a loop have",
     {{3, {5, 6, 40}, 0}, {3, {1, 6, 1}, 0}},
     "f32[5, 6, 40]\nf32[1, 6, 1]\n",
     "%a = aten.mul.Tensor %a0, %a1\n%g = aten.silu.default %a\n%s = aten.sum.dim_IntList %g, [0, 1]\n%n = aten.sum.dim_IntList %g, [0, 2]\n"
     "out user_output 0 = %s\nout user_output 1 = %n\nout user_output 2 = %g\n"},
    {"attention over split heads",
     {{3, {2, 5, 24}, 0}},
     "f32[2, 5, 24]\n",
     "%q, %k, %v = aten.split.Tensor %a0, 8, 2\n%q1 = aten.view.default %q, [2, 5, 2, 4]\n%k1 = aten.view.default %k, [2, 5, 2, 4]\n"
     "%v1 = aten.view.default %v, [2, 5, 2, 4]\n%q2 = aten.transpose.int %q1, 1, 2\n%k2 = aten.transpose.int %k1, 1, 2\n"
     "%v2 = aten.transpose.int %v1, 1, 2\n%o = aten.scaled_dot_product_attention.default %q2, %k2, %v2, none, 0.0, true\n"
     "%o1 = aten.transpose.int %o, 1, 2\n%y = aten.reshape.default %o1, [2, 5, 8]\nout user_output 0 = %y\n"},
    {"attention whose heads share keys, with masks and with a fifth dimension; rows that see nothing",
     {{4, {3, 4, 6, 8}, 0}, {4, {3, 2, 9, 8}, 0}, {2, {6, 9}, 0}, {3, {3, 1, 9}, 0}},
     "f32[3, 4, 6, 8]\nf32[3, 2, 9, 8]\nf32[6, 9]\nf32[3, 1, 9]\n",
     "%m = aten.gt.Scalar %a2, 0.5\n%r = aten.select.int %a2, 1, 0\n%c = aten.gt.Scalar %r, -1.0\n%d = aten.unsqueeze.default %c, 1\n"
     "%e = aten.logical_and.default %m, %d\n%n = aten.unsqueeze.default %a3, 1\n"
     "%x = aten.scaled_dot_product_attention.default %a0, %a1, %a1, %e, 0.0, false, scale=0.3, enable_gqa=true\n"
     "%y = aten.scaled_dot_product_attention.default %a0, %a1, %a1, %n, 0.0, false, scale=0.3, enable_gqa=true\n"
     "%q = aten.unsqueeze.default %a0, 1\n%k = aten.select.int %a1, 2, 1\n%h = aten.stack.default [%k, %k, %k, %k], 1\n"
     "%i = aten.view.default %h, [3, 1, 4, 2, 8]\n%z = aten.scaled_dot_product_attention.default %q, %i, %i, none, 0.0, true\n"
     "out user_output 0 = %x\nout user_output 1 = %y\nout user_output 2 = %z\n"},
    {"attention whose masks are ranges compared: the causal one, and others that are nearly that",
     {{4, {2, 2, 9, 8}, 0}, {4, {2, 2, 9, 8}, 0}, {2, {9, 9}, 0}},
     "f32[2, 2, 9, 8]\nf32[2, 2, 9, 8]\nf32[9, 9]\n",
     "%r = aten.arange.default 9\n%i = aten.view.default %r, [9, 1]\n%j = aten.view.default %r, [1, 9]\n%i2 = aten.mul.Tensor %i, 2\n"
     "%j2 = aten.mul.Tensor %j, 2\n%i3 = aten.add.Tensor %i2, 1\n%m0 = aten.le.Tensor %j2, %i3\n%m1 = aten.lt.Tensor %j, %i\n"
     "%m2 = aten.ge.Tensor %j, %i\n%i4 = aten.add.Tensor %i, 1\n%m3 = aten.le.Tensor %j, %i4\n%m4 = aten.le.Tensor %j2, %i\n"
     "%m5 = aten.gt.Tensor %i4, %j\n%m6 = aten.ne.Tensor %i, %j\n%n = aten.neg.default %r\n%s = aten.view.default %n, [1, 9]\n"
     "%t = aten.add.Tensor %i, %s\n%m7 = aten.ge.Scalar %t, 0\n%q = aten.permute.default %m7, [1, 0]\n"
     "%f = aten.where.ScalarSelf %m5, 0.0, %a2\n%g = aten.where.Scalar %m3, 0.0, -1000.0\n%h = aten.where.Scalar %m5, -inf, 0.0\n"
     "%o = aten.ones.default [9, 9], dtype=bool\n%l = aten.tril.default %o, -1\n%u = aten.triu.default %o, 2\n%v = aten.logical_not.default %u\n"
     "%w = aten.slice.Tensor %r, 0, 0, 9, 2\n%k = aten.index.Tensor %r, [%w]\n%y = aten.view.default %k, [1, 5]\n%m8 = aten.le.Tensor %y, %i\n"
     "%kk = aten.slice.Tensor %a1, 2, 0, 5\n%c = aten.cat.default [%w, %r], 0\n%cc = aten.slice.Tensor %c, 0, 5, 14\n"
     "%d = aten.cumsum.default %r, 0\n%e = aten.view.default %d, [1, 9]\n%m9 = aten.le.Tensor %e, %i\n%b = aten.view.default %cc, [1, 9]\n"
     "%z = aten.le.Tensor %b, %i\n"
     "%x0 = aten.scaled_dot_product_attention.default %a0, %a1, %a1, %m0\n%x1 = aten.scaled_dot_product_attention.default %x0, %a1, %x0, %m1\n"
     "%x2 = aten.scaled_dot_product_attention.default %x1, %a1, %x1, %m2\n%x3 = aten.scaled_dot_product_attention.default %x2, %a1, %x2, %m3\n"
     "%x4 = aten.scaled_dot_product_attention.default %x3, %a1, %x3, %m4\n%x5 = aten.scaled_dot_product_attention.default %x4, %a1, %x4, %m5\n"
     "%x6 = aten.scaled_dot_product_attention.default %x5, %a1, %x5, %m6\n%x7 = aten.scaled_dot_product_attention.default %x6, %a1, %x6, %m7\n"
     "%x8 = aten.scaled_dot_product_attention.default %x7, %kk, %kk, %m8\n%x9 = aten.scaled_dot_product_attention.default %x8, %a1, %x8, %m9\n"
     "%y0 = aten.scaled_dot_product_attention.default %a0, %a1, %a1, %q\n%y1 = aten.scaled_dot_product_attention.default %y0, %a1, %y0, %f\n"
     "%y2 = aten.scaled_dot_product_attention.default %y1, %a1, %y1, %g\n%y3 = aten.scaled_dot_product_attention.default %y2, %a1, %y2, %h\n"
     "%y4 = aten.scaled_dot_product_attention.default %y3, %a1, %y3, %l\n%y5 = aten.scaled_dot_product_attention.default %y4, %a1, %y4, %v\n"
     "%y6 = aten.scaled_dot_product_attention.default %y5, %a1, %y5, %z\n"
     "out user_output 0 = %x5\nout user_output 1 = %x9\nout user_output 2 = %y3\nout user_output 3 = %y6\n"},
    {"attention that drops probabilities, and its gradients",
     {{4, {1, 4, 70, 8}, 0}, {4, {1, 2, 130, 8}, 0}, {4, {1, 4, 70, 8}, 0}, {0, {0}, 900}},
     "f32[1, 4, 70, 8]\nf32[1, 2, 130, 8]\nf32[1, 4, 70, 8]\ni64[]\n",
     "%u = aot.philox_uniform.default %a3, %a3, 3, [1, 4, 70, 130]\n%k = aten.lt.Scalar %u, 0.7\n%c = aten._to_copy.default %k, dtype=f32\n"
     "%o = aot.dropout_attention.default %a0, %a1, %a1, none, %c, 0.3, true, none, true\n"
     "%x, %y, %z = aot.dropout_attention_backward.default %a2, %a0, %a1, %a1, none, %c, 0.3, true, none, true\n"
     "%q = aten._to_copy.default %a0, dtype=bf16\n%p = aten._to_copy.default %a1, dtype=bf16\n%d = aten._to_copy.default %k, dtype=bf16\n"
     "%r = aot.dropout_attention.default %q, %p, %p, none, %d, 0.3, false, 0.4, true\n%s = aten._to_copy.default %r, dtype=f32\n"
     "%w = aten.add.Tensor %y, %z\n%v = aten.add.Tensor %x, %o\n"
     "out user_output 0 = %o\nout user_output 1 = %v\nout user_output 2 = %w\nout user_output 3 = %s\n"},
    {"attention that gives the sums of its exponentials, and the backward that takes them",
     {{4, {1, 2, 70, 5}, 0}, {4, {1, 2, 130, 5}, 0}, {4, {1, 2, 70, 5}, 0}, {2, {70, 1}, 0}},
     "f32[1, 2, 70, 5]\nf32[1, 2, 130, 5]\nf32[1, 2, 70, 5]\nf32[70, 1]\n",
     "%o, %l = aten._scaled_dot_product_flash_attention_for_cpu.default %a0, %a1, %a1, 0.0, true\n"
     "%q, %k, %v = aten._scaled_dot_product_flash_attention_for_cpu_backward.default %a2, %a0, %a1, %a1, %o, %l, 0.0, true\n"
     "%g = aten.add.Tensor %k, %v\nout user_output 0 = %o\nout user_output 1 = %l\nout user_output 2 = %q\nout user_output 3 = %g\n"},
    {"attention of halves and its gradients",
     {{4, {1, 2, 66, 8}, 0}, {4, {1, 1, 40, 8}, 0}, {4, {1, 2, 66, 8}, 0}, {2, {66, 40}, 0}},
     "f32[1, 2, 66, 8]\nf32[1, 1, 40, 8]\nf32[1, 2, 66, 8]\nf32[66, 40]\n",
     "%q = aten._to_copy.default %a0, dtype=bf16\n%k = aten._to_copy.default %a1, dtype=bf16\n%g = aten._to_copy.default %a2, dtype=bf16\n"
     "%m = aten._to_copy.default %a3, dtype=bf16\n"
     "%o = aten.scaled_dot_product_attention.default %q, %k, %k, %m, 0.0, false, enable_gqa=true\n"
     "%x, %y, %z = aot.scaled_dot_product_attention_backward.default %g, %q, %k, %k, %m, 0.0, false, none, true\n"
     "%r = aten._to_copy.default %o, dtype=f32\n%s = aten._to_copy.default %x, dtype=f32\n%t = aten._to_copy.default %y, dtype=f32\n"
     "%u = aten._to_copy.default %z, dtype=f32\n"
     "out user_output 0 = %r\nout user_output 1 = %s\nout user_output 2 = %t\nout user_output 3 = %u\n"},
    {"embedding, layer norm, softmax, cross entropy",
     {{2, {11, 6}, 0}, {1, {4}, 11}, {1, {4}, 6}},
     "f32[11, 6]\ni64[4]\ni64[4]\n",
     "%e = aten.embedding.default %a0, %a1\n%n = aten.layer_norm.default %e, [6], none, none, 1e-05\n%s = aten.softmax.int %n, -1\n"
     "%l = aten.cross_entropy_loss.default %n, %a2\nout user_output 0 = %l\nout user_output 1 = %s\n"},
    {"sums across rows: derivatives of norms, with and without weights, of halves, what follows from them",
     {{3, {3, 20, 48}, 0}, {3, {3, 20, 48}, 0}, {1, {48}, 0}},
     "f32[3, 20, 48]\nf32[3, 20, 48]\nf32[48]\n",
     "%y, %m, %d = aten.native_layer_norm.default %a0, [48], %a2, %a2, 1e-05\n%g = aten.mul.Tensor %a1, 0.5\n"
     "%i, %w, %b = aten.native_layer_norm_backward.default %g, %a0, [48], %m, %d, %a2, %a2, [true, true, true]\n"
     "%j = aten.add.Tensor %i, %g\n%k, %v, %n = aot.layer_norm_backward.default %j, %y, [48], none, none, 1e-05\n"
     "%l, %u = aot.rms_norm_backward.default %k, %a0, [48], %a2, 1e-05\n%z, %r = aten._fused_rms_norm.default %l, [48], %a2, 0.01\n"
     "%o, %t = aten._fused_rms_norm_backward.default %z, %l, [48], %r, none, [true, false]\n"
     "%h = aten._to_copy.default %o, dtype=bf16\n%f = aten._to_copy.default %a2, dtype=bf16\n"
     "%p, %q, %c = aot.layer_norm_backward.default %h, %h, [48], %f, %f, 1e-05\n%s = aten._to_copy.default %q, dtype=f32\n"
     "%e = aten._to_copy.default %c, dtype=f32\n%x = aten.add.Tensor %u, %w\n%a = aten.mul.Tensor %s, %e\n"
     "out user_output 0 = %o\nout user_output 1 = %x\nout user_output 2 = %b\nout user_output 3 = %a\n"},
    {"losses of classes and their derivatives, rows that count for nothing",
     {{2, {40, 60}, 0}, {1, {40}, 60}, {0, {0}, 0}},
     "f32[40, 60]\ni64[40]\nf32[]\n",
     "%p = aten.mul.Tensor %a0, 3.0\n%l = aten.cross_entropy_loss.default %p, %a1\n"
     "%s = aten.cross_entropy_loss.default %p, %a1, none, 2, 7\n"
     "%d = aot.cross_entropy_loss_backward.default %a2, %p, %a1, none, 1, 7, 0.0\n%i = aten.mul.Tensor %d, 2.0\n"
     "%e = aot.cross_entropy_loss_backward.default %a2, %p, %a1, none, 2, -100, 0.0\n%m = aten.sub.Tensor %e, %i\n"
     "%q = aten._log_softmax.default %p, 1, false\n%n, %w = aten.nll_loss_forward.default %q, %a1, none, 1, 7\n"
     "%x = aten.add.Tensor %n, %w\n%y = aten.add.Tensor %l, %x\n"
     "out user_output 0 = %m\nout user_output 1 = %s\nout user_output 2 = %y\nout user_output 3 = %i\n"},
    {"images resized: up and down, aligned and not, by factors, cubic, nearest, one dimension, a transposed image, gradients",
     {{4, {2, 3, 7, 5}, 0}, {4, {2, 3, 11, 4}, 0}, {3, {2, 6, 9}, 0}},
     "f32[2, 3, 7, 5]\nf32[2, 3, 11, 4]\nf32[2, 6, 9]\n",
     "%t = aten.transpose.int %a0, 2, 3\n%p = aten.upsample_bilinear2d.default %a0, [11, 4], false, none, none\n"
     "%q = aten.upsample_bilinear2d.default %t, [11, 4], true, none, none\n%r = aten.upsample_bicubic2d.default %a0, [11, 4], false, 1.6, 0.9\n"
     "%u = aten.upsample_nearest2d.default %a0, [11, 4], none, 0.8\n%v = aten._upsample_nearest_exact2d.default %a0, [11, 4], none, none\n"
     "%b = aten.upsample_bilinear2d_backward.default %a1, [11, 4], [2, 3, 7, 5], false, none, none\n"
     "%c = aten.upsample_bicubic2d_backward.default %a1, [11, 4], [2, 3, 7, 5], true, none, none\n"
     "%d = aten.upsample_nearest2d_backward.default %a1, [11, 4], [2, 3, 7, 5], none, none\n"
     "%e = aten.upsample_linear1d.default %a2, [4], false, none\n%f = aten.upsample_nearest1d.default %a2, [20], none\n"
     "%g = aten._upsample_nearest_exact1d.default %a2, [5], none\n"
     "%w = aten.cat.default [%p, %q, %r, %u, %v]\n%x = aten.cat.default [%b, %c, %d]\n%y = aten.cat.default [%e, %f, %g], 2\n"
     "out user_output 0 = %w\nout user_output 1 = %x\nout user_output 2 = %y\n"},
    {"sums of regions of halves: rows of any width, columns",
     {{2, {5, 300}, 0}, {2, {4, 7}, 0}, {1, {300}, 0}},
     "f32[5, 300]\nf32[4, 7]\nf32[300]\n",
     "%x = aten._to_copy.default %a0, dtype=bf16\n%y = aten._to_copy.default %a1, dtype=f16\n%z = aten._to_copy.default %a2, dtype=bf16\n"
     "%p = aten.slice_backward.default %x, [9, 300], 0, 0, 5, 1\n%q = aten.slice_backward.default %x, [9, 300], 0, 3, 8, 1\n"
     "%r = aten.select_backward.default %z, [9, 300], 0, 4\n%s = aten.add.Tensor %p, %q\n%t = aten.add.Tensor %s, %r\n"
     "%u = aten.slice_backward.default %y, [4, 15], 1, 0, 14, 2\n%v = aten.slice_backward.default %y, [4, 15], 1, 5, 12, 1\n"
     "%w = aten.add.Tensor %u, %v\n%g = aten._to_copy.default %t, dtype=f32\n%h = aten._to_copy.default %w, dtype=f32\n"
     "out user_output 0 = %g\nout user_output 1 = %h\n"},
    {"bags of embeddings: an empty one, padding, means, weights, an end among the offsets, gradients with and without bags given",
     {{2, {11, 6}, 0}, {1, {9}, 11}, {2, {4, 6}, 0}, {1, {9}, 0}},
     "f32[11, 6]\ni64[9]\nf32[4, 6]\nf32[9]\n",
     "%n = aten.arange.default 4\n%m = aten.mul.Tensor %n, 4\n%o = aten.clamp.default %m, none, 8\n%e = aten.arange.default 5\n"
     "%d = aten.mul.Tensor %e, 3\n%l = aten.clamp.default %d, none, 9\n"
     "%p, %p1, %p2, %p3 = aten._embedding_bag.default %a0, %a1, %o, false, 0, false, %a3, false, 2\n"
     "%q, %q1, %q2, %q3 = aten._embedding_bag.default %a0, %a1, %l, false, 1, false, none, true, 3\n"
     "%g = aten._embedding_bag_backward.default %a2, %a1, %o, %p1, %p2, %p3, 11, false, 0, false, %a3, 2\n"
     "%h = aten._embedding_bag_backward.default %a2, %a1, %l, %q1, %q2, %q3, 11, false, 1, false, none, 3\n"
     "%u = aten.cat.default [%p, %q]\n%b = aten.slice.Tensor %p1, 0, 0, 0\n"
     "%v = aten._embedding_bag_backward.default %a2, %a1, %o, %b, %p2, %p3, 11, false, 0, false, none, -1\n"
     "out user_output 0 = %u\nout user_output 1 = %g\nout user_output 2 = %h\nout user_output 3 = %v\n"},
    {"places by index tensors: what follows in the same loop, a table that the same sum reads, indices made before",
     {{3, {7, 5, 3}, 0}, {2, {2, 4}, 5}, {2, {4, 3}, 0}, {3, {6, 5, 3}, 5}},
     "f32[7, 5, 3]\ni64[2, 4]\nf32[4, 3]\ni64[6, 5, 3]\n",
     "%t = aten.mul.Tensor %a0, 2.0\n%i = aten.index.Tensor %t, [none, %a1]\n%n = aten.gelu.default %i\n"
     "%p = aten.add.Tensor %n, %a2\n%m = aten.sub.Tensor %a1, 5\n%k = aten.select.int %t, 0, 3\n"
     "%e = aten.embedding.default %k, %a1\n%f = aten.add.Tensor %e, %a2\n%v = aten.layer_norm.default %f, [3]\n"
     "%g = aten.gather.default %t, 0, %a3\n%h = aten.slice.Tensor %t, 0, 0, 6\n%c = aten.exp.default %h\n"
     "%q = aten.gather.default %c, 1, %a3\n%r = aten.mul.Tensor %c, %q\n%s = aten.add.Tensor %r, %g\n"
     "%o = aten.clamp.default %a1, none, 2\n%w = aten.index.Tensor %s, [%m, none, %o]\n"
     "%x = aten.index.Tensor %s, [%m, %a1, %o]\n%d = aten.index.Tensor %s, [%o, %m]\n%y = aten.sum.dim_IntList %w, [2]\n"
     "%b = aten.mul.Tensor %x, %y\n%z = aten.sum.dim_IntList %d, [2]\n%j = aten.sub.Tensor %b, %z\n"
     "out user_output 0 = %p\nout user_output 1 = %v\nout user_output 2 = %s\nout user_output 3 = %j\n"},
    {"places by index tensors: whole numbers, truth values, rows that are summed, an index without dimensions",
     {{2, {40, 60}, 0}, {1, {50}, 40}, {0, {0}, 40}, {2, {40, 60}, 60}},
     "f32[40, 60]\ni64[50]\ni64[]\ni64[40, 60]\n",
     "%s = aten.index_select.default %a0, 0, %a1\n%x = aten._softmax.default %s, 1, false\n"
     "%t = aten.t.default %a0\n%u = aten.index_select.default %t, 1, %a1\n%c = aten.sum.dim_IntList %u, [0]\n"
     "%g = aten.gather.default %a0, 1, %a3\n%h = aten.gt.Scalar %g, 0.0\n%k = aten.index.Tensor %h, [%a2]\n"
     "%l = aten.gather.default %a3, 1, %a3\n%m = aten.add.Tensor %l, 1\n%d = aten.sum.dim_IntList %g, [1], true\n"
     "%e = aten.div.Tensor %g, %d\n%z = aten.embedding.default %a0, %a2\n%y = aten.where.ScalarOther %k, %z, 0.5\n"
     "%b = aten.add.Tensor %e, %y\nout user_output 0 = %x\nout user_output 1 = %c\nout user_output 2 = %m\n"
     "out user_output 3 = %b\n"},
    {"bounds: padding, cut at the same time, of whole numbers and of halves; parts of zeros and of other tensors; backwards",
     {{3, {4, 5, 6}, 0}, {2, {4, 6}, 9}, {3, {2, 5, 6}, 0}, {2, {3, 4}, 9}},
     "f32[4, 5, 6]\ni64[4, 6]\nf32[2, 5, 6]\ni64[3, 4]\n",
     "%p = aten.constant_pad_nd.default %a0, [-1, 2, 1, -2, 0, 3], 0.5\n%q = aten.tanh.default %p\n"
     "%b = aten.gt.Scalar %a0, 0.0\n%c = aten.constant_pad_nd.default %b, [1, 0], 2\n%i = aten.constant_pad_nd.default %a1, [2, -3, 1, 1]\n"
     "%j = aten.mul.Tensor %i, 3\n%h = aten._to_copy.default %a0, dtype=bf16\n%k = aten.constant_pad_nd.default %h, [1, 1], 0.3\n"
     "%l = aten._to_copy.default %k, dtype=f32\n%m = aten.mul.Tensor %l, 2.0\n%t = aten.sum.dim_IntList %m, [2]\n"
     "%s = aten.slice_backward.default %a2, [4, 5, 6], 0, 1, 3, 1\n%e = aten.mul.Tensor %s, %a0\n"
     "%u = aten.select.int %a2, 0, 1\n%v = aten.select_backward.default %u, [5, 6, 4], 2, -3\n%w = aten.permute.default %v, [2, 0, 1]\n"
     "%f = aten.slice_scatter.default %e, %a2, 0, -3, 3, 1\n%g = aten.select_scatter.default %f, %u, 0, 3\n"
     "%n = aten.flip.default %g, [0, -1]\n%o = aten.sub.Tensor %n, %e\n%r = aten.slice_backward.default %a2, [4, 5, 6], 0, 0, 4, 2\n"
     "%x = aten.add.Tensor %o, %r\n%y = aten.sum.dim_IntList %x, [2]\n%z = aten.sub.Tensor %y, %t\n"
     "%c1 = aten._to_copy.default %c, dtype=f32\n%c2 = aten.sum.dim_IntList %c1, [2]\n%z1 = aten.add.Tensor %z, %c2\n"
     "%d = aten.sum.dim_IntList %s, [0], true\n%a = aten.add.Tensor %x, %d\n"
     "out user_output 0 = %q\nout user_output 1 = %z1\nout user_output 2 = %j\nout user_output 3 = %a\n"},
    {"convolution, pooling, batch statistics",
     {{4, {2, 3, 8, 8}, 0}, {4, {4, 3, 3, 3}, 0}, {1, {4}, 0}},
     "f32[2, 3, 8, 8]\nf32[4, 3, 3, 3]\nf32[4]\n",
     "%c = aten.convolution.default %a0, %a1, %a2, [2, 2], [1, 1], [1, 1], false, [0, 0], 1\n%p = aten.max_pool2d.default %c, [2, 2]\n"
     "%n, %m, %r = aten._native_batch_norm_legit.no_stats %p, %a2, none, true, 0.1, 1e-05\nout user_output 0 = %n\nout user_output 1 = %m\n"},
    {"halves where lowerings know floats alone: batch statistics, maxima of windows, and what goes back through them",
     {{4, {2, 4, 8, 8}, 0}, {1, {4}, 0}, {4, {2, 4, 4, 4}, 0}},
     "f32[2, 4, 8, 8]\nf32[4]\nf32[2, 4, 4, 4]\n",
     "%x = aten._to_copy.default %a0, dtype=bf16\n%g = aten._to_copy.default %a2, dtype=bf16\n"
     "%n, %m, %r = aten._native_batch_norm_legit.no_stats %x, %a1, none, true, 0.1, 1e-05\n"
     "%p = aten.max_pool2d.default %n, [2, 2]\n%h = aot.max_pool2d_backward.default %g, %n, [2, 2], [2, 2], [0, 0], [1, 1], false\n"
     "%i, %w, %v = aten.native_batch_norm_backward.default %h, %x, %a1, none, none, %m, %r, true, 1e-05, [true, true, true]\n"
     "%q = aten._to_copy.default %p, dtype=f32\n%j = aten._to_copy.default %i, dtype=f32\n"
     "out user_output 0 = %q\nout user_output 1 = %j\nout user_output 2 = %w\nout user_output 3 = %v\n"},
    {"parts joined along a dimension, and along a new one",
     {{2, {3, 4}, 0}, {2, {3, 2}, 0}},
     "f32[3, 4]\nf32[3, 2]\n",
     "%c = aten.cat.default [%a0, %a1], 1\n%t = aten.t.default %a0\n%u = aten.neg.default %t\n%s = aten.stack.default [%t, %u], 1\n"
     "out user_output 0 = %c\nout user_output 1 = %s\n"},
    {"what only a reference kernel does, between groups",
     {{2, {4, 6}, 0}},
     "f32[4, 6]\n",
     "%a = aten.exp.default %a0\n%c = aten.cumsum.default %a, 1\n%f = aten.flip.default %c, [0]\n%y = aten.mul.Tensor %f, %a\n"
     "%s = aten.as_strided.default %y, [3, 2], [6, 2], 1\nout user_output 0 = %y\nout user_output 1 = %s\n"},
    {"branches: both ways, nested, over views, an operand returned, an empty operand",
     {{2, {4, 5}, 0}, {1, {5}, 9}, {2, {0, 4}, 0}},
     "f32[4, 5]\ni64[5]\nf32[0, 4]\n",
     "%z = aten.mul.Tensor %a1, 0\n%o = aten.eq.Scalar %z, 0\n%p = aten.all.default %o\n%n = aten.logical_not.default %p\n"
     "%t = aten.t.default %a0\n%y : f32[5, 4], %k : i64[5], %e : f32[0, 4] = higher_order.cond %p, @yes, @no, [%t, %a1, %n, %a2]\n"
     "%u : f32[5, 4], %j : i64[5], %d : f32[0, 4] = higher_order.cond %n, @yes, @no, [%y, %k, %p, %e]\n%r = aten.sub.Tensor %y, %u\n"
     "out user_output 0 = %r\nout user_output 1 = %k\nout user_output 2 = %j\nout user_output 3 = %d\n}\n"
     "graph @yes region {\nin %x = region 0 : f32[5, 4]\nin %i = region 1 : i64[5]\nin %q = region 2 : bool[]\nin %w = region 3 : f32[0, 4]\n"
     "%s = aten.sigmoid.default %x\n%c : f32[5, 4] = higher_order.cond %q, @twice, @rows, [%s]\n%m = aten.mul.Tensor %c, %x\n"
     "out region 0 = %m\nout region 1 = %i\nout region 2 = %w\n}\n"
     "graph @no region {\nin %x = region 0 : f32[5, 4]\nin %i = region 1 : i64[5]\nin %q = region 2 : bool[]\nin %w = region 3 : f32[0, 4]\n"
     "%c : f32[5, 4] = higher_order.cond %q, @twice, @rows, [%x]\n%m = aten.mul.Tensor %i, 2\n%v = aten.neg.default %w\n"
     "out region 0 = %c\nout region 1 = %m\nout region 2 = %v\n}\n"
     "graph @twice region {\nin %x = region 0 : f32[5, 4]\n%m = aten.mul.Tensor %x, 2\nout region 0 = %m\n}\n"
     "graph @rows region {\nin %x = region 0 : f32[5, 4]\n%s = aten.sum.dim_IntList %x, [1], true\n%m = aten.add.Tensor %x, %s\n"
     "out region 0 = %m\n"},
    {"loops: carries that change places, rows of a view, no step at all, a loop in a loop",
     {{2, {4, 5}, 0}, {0, {0}, 9}},
     "f32[4, 5]\ni64[]\n",
     "%t = aten.t.default %a0\n%s = aten.select.int %a0, 1, 0\n%u = aten.select.int %a0, 1, 2\n"
     "%p : f32[4], %q : f32[4], %y : f32[5, 4] = higher_order.scan @swap, [%s, %u], [%t], []\n%z = aten.slice.Tensor %t, 0, 0, 0\n"
     "%e : f32[4], %f : f32[4], %g : f32[0, 4] = higher_order.scan @swap, [%p, %u], [%z], []\n"
     "%i : i64[], %w : f32[4] = higher_order.while_loop @less, @again, [%a1, %e], [%t]\n"
     "out user_output 0 = %y\nout user_output 1 = %g\nout user_output 2 = %i\nout user_output 3 = %w\nout user_output 4 = %f\n}\n"
     "graph @swap region {\nin %p = region 0 : f32[4]\nin %q = region 1 : f32[4]\nin %x = region 2 : f32[4]\n"
     "%n = aten.add.Tensor %p, %x\n%y = aten.mul.Tensor %p, %q\nout region 0 = %q\nout region 1 = %n\nout region 2 = %y\n}\n"
     "graph @less region {\nin %i = region 0 : i64[]\nin %w = region 1 : f32[4]\nin %t = region 2 : f32[5, 4]\n"
     "%l = aten.lt.Scalar %i, 12\nout region 0 = %l\n}\n"
     "graph @again region {\nin %i = region 0 : i64[]\nin %w = region 1 : f32[4]\nin %t = region 2 : f32[5, 4]\n"
     "%n = aten.add.Tensor %i, 1\n%v = aten.sin.default %w\n"
     "%p : f32[4], %q : f32[4], %y : f32[5, 4] = higher_order.scan @swap, [%v, %w], [%t], []\n%m = aten.mul.Tensor %p, 0.5\n"
     "out region 0 = %n\nout region 1 = %m\n"},
    {"draws from seed and offset, in groups, through views and on their own",
     {{3, {5, 4, 33}, 0}, {0, {0}, 900}, {0, {0}, 900}, {1, {9}, 9}},
     "f32[5, 4, 33]\ni64[]\ni64[]\ni64[9]\n",
     "%u = aot.philox_uniform.default %a1, %a2, 3, [5, 4, 33]\n%k = aten.ge.Scalar %u, 0.25\n%m = aten.mul.Tensor %a0, %k\n"
     "%d = aten.mul.Tensor %m, 1.3333333333333333\n%n = aot.philox_normal.default %a1, %a2, 4, [33, 4, 5]\n"
     "%p = aten.permute.default %d, [2, 1, 0]\n%s = aten.add.Tensor %p, %n\n"
     "%i = aot.philox_randint.default %a1, %a2, 5, -3, 90, [9]\n%b = aot.philox_bits.default %a1, %a2, 6, [9]\n"
     "%q = aten.eq.Tensor %b, %b\n%j = aten.mul.Tensor %i, %q\n%r = aten._to_copy.default %a3, dtype=f32\n"
     "%z = aot.philox_poisson.default %a1, %a2, 7, %r\n"
     "out user_output 0 = %d\nout user_output 1 = %s\nout user_output 2 = %j\nout user_output 3 = %z\n"},
    {"what is made from a number in a tensor, and from sizes alone",
     {{0, {0}, 0}, {2, {3, 4}, 0}},
     "f32[]\nf32[3, 4]\n",
     "%l = aten.linspace.Tensor_Scalar %a0, 5.0, 4\n%o = aten.new_ones.default %a1, [3, 4]\n%y = aten.add.Tensor %o, %l\n"
     "out user_output 0 = %y\n"},
    {"nothing to do: empty tensors and an input returned",
     {{2, {0, 4}, 0}, {1, {3}, 0}},
     "f32[0, 4]\nf32[3]\n",
     "%a = aten.mul.Tensor %a0, 2\n%s = aten.sum.dim_IntList %a, [0]\nout user_output 0 = %s\nout user_output 1 = %a1\nout user_output 2 = %a\n"},
};
/* clang-format on */

static void write_model(const char *path, const program_t *p) {
  char types[256], *line, *rest = types;
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  assert_true(strlen(p->types) < sizeof types);
  fputs("aot 1\nproperties imported\n\n", f);
  strcpy(types, p->types);
  for (int k = 0; (line = strtok_r(rest, "\n", &rest)); k++)
    fprintf(f, "leaf %d user_input %d \"a%d\" : %s\n", k, k, k, line);
  fputs("\ngraph @f forward {\n", f);
  strcpy(types, p->types);
  rest = types;
  for (int k = 0; (line = strtok_r(rest, "\n", &rest)); k++) fprintf(f, "in %%a%d = user_input %d : %s\n", k, k, line);
  fputs(p->body, f);
  fputs("}\n", f);
  fclose(f);
}

typedef struct tensor {
  aot_tensor_t t;
  int64_t strides[4];
  float f32[MAX_NUMEL];
  int64_t i64[MAX_NUMEL];
} tensor_t;

static void make_input(const input_t *in, uint32_t seed, tensor_t *out) {
  int64_t n = 1;
  for (int32_t d = in->rank - 1; d >= 0; d--) {
    out->strides[d] = n ? n : 1;
    n *= in->sizes[d];
  }
  assert_true(n <= MAX_NUMEL);
  naive_random(out->f32, n, seed);
  for (int64_t i = 0; i < n; i++) out->i64[i] = in->n_classes ? (int64_t)((out->f32[i] + 2) * 1000) % in->n_classes : 0;
  out->t = (aot_tensor_t){
      .data = in->n_classes ? (void *)out->i64 : (void *)out->f32,
      .nbytes = (uint64_t)n * (in->n_classes ? 8 : 4),
      .dtype = in->n_classes ? AOT_I64 : AOT_F32,
      .rank = in->rank,
      .sizes = in->sizes,
      .strides = out->strides,
  };
}

static aothost_t *open_program(const char *folder, const program_t *p, const char *backend) {
  char pipeline[128], model[128];
  aothost_t *h = NULL;
  aothost_config_t config = {.struct_size = sizeof config};
  snprintf(pipeline, sizeof pipeline, "%s/p.yaml", folder);
  snprintf(model, sizeof model, "%s/m.ir", folder);
  write_model(model, p);
  FILE *f = fopen(pipeline, "w");
  assert_non_null(f);
  fprintf(f, "aot: 1\nmodel: {path: m.ir}\nstages:\n  - use: functionalize\n  - %s\n", backend);
  fclose(f);
  if (aothost_open(pipeline, &config, &h) != AOT_OK || aothost_compile(h, 0) != AOT_OK)
    fail_msg("%s, %s: %s", p->name, backend, aothost_messages(h));
  unlink(pipeline);
  unlink(model);
  return h;
}

static void run(aothost_t *h, const program_t *p) {
  tensor_t *inputs = calloc(MAX_INPUTS, sizeof *inputs);
  aot_tensor_t views[MAX_INPUTS];
  uint32_t n = aothost_n_inputs(h);
  assert_true(n <= MAX_INPUTS);
  for (uint32_t k = 0; k < n; k++) {
    make_input(&p->inputs[k], k + 1, &inputs[k]);
    views[k] = inputs[k].t;
  }
  if (aothost_forward(h, views, n) != AOT_OK) fail_msg("%s: %s", p->name, aothost_messages(h));
  free(inputs);
}

static int64_t numel(const aot_tensor_t *t) {
  int64_t n = 1;
  for (int32_t d = 0; d < t->rank; d++) n *= t->sizes[d];
  return n;
}

/* Element number i in row-major order. */
static double element(const aot_tensor_t *t, int64_t i) {
  int64_t at = t->offset;
  for (int32_t d = t->rank - 1; d >= 0; i /= t->sizes[d], d--) at += i % t->sizes[d] * t->strides[d];
  if (t->dtype == AOT_F32) return (double)((const float *)t->data)[at];
  return t->dtype == AOT_I64 ? (double)((const int64_t *)t->data)[at] : (double)((const uint8_t *)t->data)[at];
}

static void compare(const program_t *p, aothost_t *cpu, aothost_t *ref) {
  const double most = strstr(p->body, "=bf16") || strstr(p->body, "=f16")
                          ? 1e-2
                          : 1e-5; /* the reference rounds to f16 or bf16 from double */
  for (uint32_t k = 0; k < aothost_n_outputs(ref); k++) {
    char key[24];
    aot_tensor_t got, expected;
    snprintf(key, sizeof key, "output.%u", k);
    assert_int_equal(aothost_get(ref, key, &expected), AOT_OK);
    assert_int_equal(aothost_get(cpu, key, &got), AOT_OK);
    assert_int_equal(got.dtype, expected.dtype);
    assert_int_equal(got.rank, expected.rank);
    for (int32_t d = 0; d < got.rank; d++) assert_int_equal(got.sizes[d], expected.sizes[d]);
    for (int64_t i = 0; i < numel(&expected); i++) {
      double a = element(&got, i), b = element(&expected, i);
      if (a != b && !(isnan(a) && isnan(b)) && !(fabs(a - b) <= most * (1 + fabs(b))))
        fail_msg("%s, %s[%lld]: %.9g, reference %.9g", p->name, key, (long long)i, a, b);
    }
  }
}

/* only: of the programs with that word in their name; NULL: of all */
static void check_all(const char *backend, int is_generated, const char *only) {
  char folder[] = "/tmp/unit-differential-XXXXXX";
  assert_non_null(mkdtemp(folder));
  for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
    if (only && !strstr(programs[i].name, only)) continue;
    aothost_t *cpu = open_program(folder, &programs[i], backend),
              *ref = open_program(folder, &programs[i], "use: backend-ref");
    if (is_generated && strstr(aothost_messages(cpu), "warning")) /* of a compiler that fails */
      fail_msg("%s: %s", programs[i].name, aothost_messages(cpu));
    for (int k = 0; k < 2; k++) run(cpu, &programs[i]); /* twice: nothing is left over from a run */
    run(ref, &programs[i]);
    compare(&programs[i], cpu, ref);
    aothost_close(cpu);
    aothost_close(ref);
  }
  rmdir(folder);
}

static void generated_code_agrees_with_the_interpreter(void **state) {
  (void)state;
  check_all("use: backend-cpu", 1, NULL);
}
/* An index that is out of range, wherever its loop is: the node is named, and where the index is. */
static void a_wrong_index_is_told(void **state) {
  static const program_t wrong = {
      "a wrong index",
      {{2, {7, 3}, 0}, {1, {1300}, 8}, {2, {1300, 3}, 3}},
      "f32[7, 3]\ni64[1300]\ni64[1300, 3]\n",
      "%m = aten.mul.Tensor %a0, 2.0\n%e = aten.embedding.default %m, %a1\n%g = aten.gather.default %e, 1, %a2\n"
      "%x = aten.exp.default %g\nout user_output 0 = %x\n"};
  char folder[] = "/tmp/unit-differential-XXXXXX";
  tensor_t *inputs = calloc(MAX_INPUTS, sizeof *inputs);
  aot_tensor_t views[3];
  (void)state;
  assert_non_null(mkdtemp(folder));
  aothost_t *h = open_program(folder, &wrong, "use: backend-cpu");
  for (uint32_t k = 0; k < 3; k++) {
    make_input(&wrong.inputs[k], k + 1, &inputs[k]);
    views[k] = inputs[k].t;
  }
  for (int i = 0; i < 1300; i++) inputs[1].i64[i] = i % 7;
  assert_int_equal(aothost_forward(h, views, 3), AOT_OK);
  inputs[1].i64[1234] = 7;
  inputs[1].i64[1299] = -1;
  assert_int_equal(aothost_forward(h, views, 3), AOT_E_RANGE);
  assert_non_null(strstr(aothost_messages(h), "index 7 at position 1234 is out of range for a dimension of size 7"));
  assert_non_null(strstr(aothost_messages(h), "node %e"));
  inputs[1].i64[1234] = inputs[1].i64[1299] = 0;
  inputs[2].i64[5] = INT64_MIN;
  assert_int_equal(aothost_forward(h, views, 3), AOT_E_RANGE);
  assert_non_null(strstr(aothost_messages(h), "at position 5 is out of range for a dimension of size 3"));
  assert_non_null(strstr(aothost_messages(h), "node %g"));
  inputs[2].i64[5] = 2;
  assert_int_equal(aothost_forward(h, views, 3), AOT_OK);
  aothost_close(h);
  rmdir(folder);
  free(inputs);
}

static void without_a_compiler_results_are_the_same(void **state) {
  (void)state;
  check_all("{use: backend-cpu, with: {compiler: none-such, threads: 1}}", 0, NULL);
}

static void three_threads_divide_it_as_one_does_it(void **state) {
  (void)state;
  check_all("{use: backend-cpu, with: {threads: 3}}", 1, "team divides");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(generated_code_agrees_with_the_interpreter),
                                     cmocka_unit_test(a_wrong_index_is_told),
                                     cmocka_unit_test(without_a_compiler_results_are_the_same),
                                     cmocka_unit_test(three_threads_divide_it_as_one_does_it)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
