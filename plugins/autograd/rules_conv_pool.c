/* Convolutions of every rank: all of them are convolution_backward once the arguments are spelled out. */
#include "rules.h"

/* An int[n] argument that may be written as one number, or be missing. */
static ag_val_t per_axis(ag_t *a, const char *name, uint32_t n, int64_t otherwise) {
  int64_t out[AOT_MAX_RANK];
  uint32_t index = ag_index(a, name, strlen(name)), i;
  ag_val_t v = index == AG_NO_ARG ? ag_none() : a->info.args[index];
  for (i = 0; i < n && i < AOT_MAX_RANK; i++) {
    if (v.kind == AOT_ARG_INTS && v.n > 0) out[i] = v.u.ints[v.n == 1 ? 0 : i];
    else out[i] = v.kind == AOT_ARG_INT ? v.u.i : otherwise;
  }
  return ag_list(a, out, n);
}

/* conv1d, conv2d, conv3d, their transposed forms, and convolution itself. An input without batch gets one of 1. */
void ag_rule_convolution(ag_t *a) {
  static const char *const NAMES[] = {"input", "weight", "bias"};
  ag_val_t x = ag_arg(a, "input"), w = ag_arg(a, "weight"), bias = ag_arg(a, "bias"), g = ag_g(a, 0), out[3], mask;
  int32_t rank = ag_type(a, w).rank;
  uint32_t n = rank > 2 ? (uint32_t)rank - 2 : 0, i, at = ag_index(a, "transposed", strlen("transposed"));
  int transposed = at != AG_NO_ARG ? a->info.args[at].u.i != 0
                                   : ag_index(a, "output_padding", strlen("output_padding")) != AG_NO_ARG;
  int64_t wanted[3];
  for (i = 0; i < 3; i++) wanted[i] = ag_needs(a, NAMES[i]);
  mask = ag_list(a, wanted, 3);
  mask.kind = AOT_ARG_BOOLS;
  if (ag_type(a, x).rank == rank - 1) {
    x = AG_OP(a, "unsqueeze", x, ag_i(0));
    g = AG_OP(a, "unsqueeze", g, ag_i(0));
  }
  {
    const ag_val_t args[] = {g,
                             x,
                             w,
                             ag_is_tensor(bias) ? ag_sizes(a, bias) : ag_none(),
                             per_axis(a, "stride", n, 1),
                             per_axis(a, "padding", n, 0),
                             per_axis(a, "dilation", n, 1),
                             ag_b(transposed),
                             per_axis(a, "output_padding", n, 0),
                             ag_arg(a, "groups"),
                             mask};
    ag_call_n(a, "convolution_backward", 11, args, 3, out);
  }
  if (wanted[0]) ag_set(a, "input", ag_reshape_like(a, out[0], ag_arg(a, "input")));
  if (wanted[1]) ag_set(a, "weight", out[1]);
  if (wanted[2]) ag_set(a, "bias", out[2]);
}
