/* What puts nodes: derivatives, and nms in terms of simpler operators. */
#ifndef TV_VISION_REWRITES_H
#define TV_VISION_REWRITES_H

#include <aot/ext/derivative.h>
#include <aot/host.h>

/* Derivatives of the operators that have one, in memory of the session; each one's self is `host`. */
aot_status_t tv_make_derivatives(const aot_host_t *host, aot_ctx_t *ctx, aot_ext_derivatives_t *out);

/* torchvision.nms: the order of the scores, which of it is stored, and those numbers. AOT_E_UNIMPLEMENTED where no
 * opset has what that needs. */
aot_status_t tv_decompose_nms(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_node_t node,
                              aot_value_t *out_value);

#endif
