/* Convolutions over one or two dimensions, float32, not transposed: im2col and a BLAS. Others: the reference kernel. */
#include "conv_kernels.h"
#include "target.h"

#include <string.h>

typedef struct conv_step {
  bc_ref_t x, w, b, y, gx, gw, gb, work;
  bc_conv_t conv;
} conv_step_t;

static aot_status_t run_forward(const bc_frame_t *f, void *payload) {
  const conv_step_t *p = payload;
  bc_conv_forward(&p->conv, bc_f32(f, p->x), bc_f32(f, p->w), bc_f32_or_null(f, p->b), bc_f32(f, p->y),
                  bc_f32(f, p->work));
  return AOT_OK;
}

static aot_status_t run_backward(const bc_frame_t *f, void *payload) {
  const conv_step_t *p = payload;
  bc_conv_backward(&p->conv, bc_f32(f, p->y), bc_f32(f, p->x), bc_f32(f, p->w), bc_f32_or_null(f, p->gx),
                   bc_f32_or_null(f, p->gw), bc_f32_or_null(f, p->gb), bc_f32(f, p->work));
  return AOT_OK;
}

static int f32(const bc_tensor_t *t) { return t && t->dtype == AOT_F32; }

/* n numbers into the last places of out, which holds the presets; one number counts for all. 0: another count. */
static int spatial(const bc_build_t *b, uint32_t k, int32_t n, int64_t *out) {
  int64_t list[AOT_MAX_RANK];
  uint32_t got = bc_arg_ints(b, k, list, AOT_MAX_RANK);
  if (bc_arg(b, k)->kind == AOT_ARG_STR) return 0;
  if (got == 0) return 1;
  if (got != 1 && got != (uint32_t)n) return 0;
  for (int32_t d = 0; d < n; d++) out[2 - n + d] = list[got == 1 ? 0 : d];
  return 1;
}

/* x [n, c, (h,) w], w [c_out, c / groups, (kh,) kw]; stride, padding, dilation from argument `first` on */
static int describe(const bc_build_t *b, const bc_tensor_t *x, const bc_tensor_t *w, const bc_tensor_t *y,
                    uint32_t first, int64_t groups, bc_conv_t *c) {
  int32_t n = x->rank - 2;
  if (n < 1 || n > 2 || w->rank != x->rank || y->rank != x->rank || groups < 1) return 0;
  *c = (bc_conv_t){.n_batch = x->sizes[0], .groups = groups, .c_in = x->sizes[1], .c_out = w->sizes[0]};
  for (int d = 0; d < 2; d++) c->in[d] = c->out[d] = c->kernel[d] = c->stride[d] = c->dilation[d] = 1;
  for (int32_t d = 0; d < n; d++) {
    c->in[2 - n + d] = x->sizes[2 + d];
    c->out[2 - n + d] = y->sizes[2 + d];
    c->kernel[2 - n + d] = w->sizes[2 + d];
  }
  if (!spatial(b, first, n, c->stride) || !spatial(b, first + 1, n, c->pad) || !spatial(b, first + 2, n, c->dilation))
    return 0;
  for (int d = 0; d < 2; d++) {
    if (c->pad[d] > INT32_MAX || c->dilation[d] > INT32_MAX || c->kernel[d] > INT32_MAX) return 0;
    int64_t reach = c->in[d] + 2 * c->pad[d] - c->dilation[d] * (c->kernel[d] - 1) - 1;
    if (c->stride[d] < 1 || c->pad[d] < 0 || c->dilation[d] < 1 || reach < 0 || reach / c->stride[d] + 1 != c->out[d])
      return 0;
  }
  return c->c_in % groups == 0 && c->c_out % groups == 0 && w->sizes[1] == c->c_in / groups &&
         y->sizes[0] == c->n_batch && y->sizes[1] == c->c_out && bc_numel(x) > 0 && bc_numel(y) > 0 && bc_numel(w) > 0;
}

static aot_status_t forward(bc_build_t *b, uint32_t first, int64_t groups) {
  const bc_tensor_t *x = bc_arg_tensor(b, 0), *w = bc_arg_tensor(b, 1), *bias = bc_arg_tensor(b, 2);
  bc_tensor_t tx, tw, tb = {.storage = BC_NONE}, ty, work;
  bc_conv_t conv;
  conv_step_t *p;
  if (!f32(x) || !f32(w) || (bias && !f32(bias)) || !f32(bc_type(b, 0)) || (bias && bc_numel(bias) != w->sizes[0]) ||
      !describe(b, x, w, bc_type(b, 0), first, groups, &conv))
    return BC_DECLINED;
  AOT_TRY(bc_contiguous(b, x, &tx));
  AOT_TRY(bc_contiguous(b, w, &tw));
  if (bias) AOT_TRY(bc_contiguous(b, bias, &tb));
  AOT_TRY(bc_scratch(b, bc_conv_work(&conv) * sizeof(float), &work));
  AOT_TRY(bc_result_dense(b, 0, &ty));
  BC_STEP(b, run_forward, p);
  *p = (conv_step_t){.x = bc_use(b, &tx), .w = bc_use(b, &tw), .b = bc_use(b, &tb), .y = bc_use(b, &ty), .conv = conv};
  p->work = bc_use(b, &work);
  return AOT_OK;
}

/* conv1d, conv2d(input, weight, bias?, stride, padding, dilation, groups) */
static aot_status_t lower_conv(bc_build_t *b) { return forward(b, 3, bc_arg_int(b, 6, 1)); }

/* convolution(input, weight, bias?, stride, padding, dilation, transposed, output_padding, groups) */
static aot_status_t lower_convolution(bc_build_t *b) {
  if (bc_arg_int(b, 6, 0)) return BC_DECLINED;
  return forward(b, 3, bc_arg_int(b, 8, 1));
}

/* convolution_backward(grad, input, weight, bias_sizes?, stride, padding, dilation, transposed, output_padding, groups,
 * output_mask) */
static aot_status_t lower_backward(bc_build_t *b) {
  const bc_tensor_t *g = bc_arg_tensor(b, 0), *x = bc_arg_tensor(b, 1), *w = bc_arg_tensor(b, 2);
  bc_tensor_t tg, tx, tw, work, out[3];
  bc_conv_t conv;
  conv_step_t *p;
  if (!f32(g) || !f32(x) || !f32(w) || bc_arg_int(b, 7, 0) || b->node->n_results != 3 ||
      !describe(b, x, w, g, 4, bc_arg_int(b, 9, 1), &conv))
    return BC_DECLINED;
  for (uint32_t r = 0; r < 3; r++) {
    int64_t n = r == 0 ? bc_numel(x) : r == 1 ? bc_numel(w) : conv.c_out;
    if (bc_type(b, r)->dtype && (!f32(bc_type(b, r)) || bc_numel(bc_type(b, r)) != n)) return BC_DECLINED;
  }
  AOT_TRY(bc_contiguous(b, g, &tg));
  AOT_TRY(bc_contiguous(b, x, &tx));
  AOT_TRY(bc_contiguous(b, w, &tw));
  AOT_TRY(bc_scratch(b, bc_conv_work(&conv) * sizeof(float), &work));
  for (uint32_t r = 0; r < 3; r++) AOT_TRY(bc_result_dense(b, r, &out[r]));
  BC_STEP(b, run_backward, p);
  *p = (conv_step_t){.x = bc_use(b, &tx), .w = bc_use(b, &tw), .y = bc_use(b, &tg), .conv = conv};
  p->gx = bc_use(b, &out[0]);
  p->gw = bc_use(b, &out[1]);
  p->gb = bc_use(b, &out[2]);
  p->work = bc_use(b, &work);
  return AOT_OK;
}

static const bc_lowering_t rows[] = {
    {"aten.conv1d.default", lower_conv},
    {"aten.conv2d.default", lower_conv},
    {"aten.convolution.default", lower_convolution},
    {"aten.convolution_backward.default", lower_backward},
};
const bc_lowering_table_t bc_lowerings_conv = BC_TABLE(rows);
