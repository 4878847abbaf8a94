#!/bin/sh
# Recorded calls on backend-cuda's double: windows, places, and shapes, dtypes and numbers at the edges.
. "$(dirname "$0")/lib.sh"
cases="--cases $root/tests/fixtures/ops/cases.json --backend backend-cuda --device cuda"
# shellcheck disable=SC2086
status 0 "$aothost" ops aten.max_pool2d_with_indices_backward.default aten._adaptive_avg_pool2d.default aten.reflection_pad2d.default \
  aten.native_batch_norm.default aten.upsample_nearest1d.default $cases
says '; 0 cases fail, 0 results are excepted$'
# One has no gradients of weights, whose sums across rows share its loop.
# shellcheck disable=SC2086
status 0 "$aothost" ops aten.native_layer_norm.default $cases
# What attention saves lies as its operator says, also taken apart.
status 0 "$aothost" ops aten._efficient_attention_forward.default aten._scaled_dot_product_efficient_attention.default \
  --cases "$root/tests/fixtures/ops_composites/cases.json" --backend backend-cuda --device cuda
says '; 0 cases fail, 0 results are excepted$'
status 0 "$aothost" ops --cases "$root/tests/fixtures/ops_numbers/cases.json" --backend backend-cuda --device cuda
# Numbers that become complex on their way.
status 0 "$aothost" ops aten.cat.default --cases "$root/tests/fixtures/ops_complex/cases.json" --backend backend-cuda --device cuda
says '; 0 cases fail, 0 results are excepted$'
finish
