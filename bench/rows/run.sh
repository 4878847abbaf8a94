#!/bin/sh
# bench/rows: operators that reduce rows, or read by places, as generated loops. f32[4096, 1024], one thread, called in turn, median and fastest of
# ROUNDS calls (default 40); the ratio is to the median of the first, which reads and writes every element once and computes nothing.
#   bench/rows/run.sh [BUILD_DIR] [ROUNDS]
set -eu
cd "$(dirname "$0")/../.."
build=$(cd "${1:-build}" && pwd); rounds="${2:-40}"
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
${CC:-cc} -std=gnu11 -O2 -Ihost/include -Iplugin-api bench/dropout/time_calls.c "$build/host/libaothost.a" \
  $(pkg-config --libs yaml-0.1 jansson libxxhash) -ldl -lm -lpthread -Wl,-E -o "$work/time_calls"

# program NAME [OUTPUT..]: the nodes on the standard input give %y, and these
program() {
  { printf 'aot 1\nproperties imported\n\nleaf 0 user_input 0 "x" : f32[4096, 1024]\n\ngraph @f forward {\n'
    printf 'in %%x = user_input 0 : f32[4096, 1024]\n'; cat; printf 'out user_output 0 = %%y\n'
    k=0; for name in "$@"; do [ $k = 0 ] || printf 'out user_output %d = %%%s\n' $k "$name"; k=$((k + 1)); done; printf '}\n'
  } > "$work/$1.ir"
  printf 'aot: 1\nmodel: {path: %s.ir}\nstages:\n  - use: functionalize\n  - {use: backend-cpu, with: {threads: 1}}\n' "$1" \
    > "$work/$1.yaml"
}
echo '%y = aten.mul.Tensor %x, 1.1' | program copy
echo '%y = aten._softmax.default %x, -1, false' | program softmax
echo '%y = aten._log_softmax.default %x, -1, false' | program log_softmax
echo '%y = aten._softmax_backward_data.default %x, %x, -1, f32' | program softmax_backward
echo '%y = aten.layer_norm.default %x, [1024]' | program layer_norm
printf '%%a = aten.mul.Tensor %%x, 0.5\n%%b = aten.add.Tensor %%a, %%x\n%%n = aten.layer_norm.default %%b, [1024]\n%s\n' \
  '%y = aten.gelu.default %n' | program residual_norm_gelu
echo '%y = aten.sum.dim_IntList %x, [1]' | program sum_of_rows
echo '%y = aten.sum.dim_IntList %x, [0]' | program sum_of_columns
echo '%y = aten.argmax.default %x, 1' | program argmax
printf '%%b = aten.gt.Scalar %%x, 0.89\n%%y = aten.any.dim %%b, 1\n' | program any
echo '%y = aten.cumsum.default %x, 1' | program cumsum
echo '%y = aten.cumsum.default %x, 0' | program cumsum_of_columns
# numbers of rows, or of columns, out of what is in x
index='%%s = aten.select.int %%x, %s, 0\n%%m = aten.mul.Tensor %%s, 1100.0\n%%t = aten._to_copy.default %%m, dtype=i64\n%%i = aten.clamp.default %%t, 0, 900\n'
{ printf "$index" 1; echo '%y = aten.embedding.default %x, %i'; } | program embedding
{ printf "$index" 1; echo '%z = aten.embedding.default %x, %i'; echo '%y = aten.add.Tensor %z, %x'; } | program embedding_add
{ printf "$index" 0; printf '%%e = aten.expand.default %%i, [4096, 1024]\n%%y = aten.gather.default %%x, 1, %%e\n'; } | program gather
{ printf "$index" 1; echo '%y = aten.embedding_dense_backward.default %x, %i, 1000, -1, false'; } | program embedding_backward
{ printf "$index" 0; printf '%%e = aten.expand.default %%i, [4096, 1024]\n%%y = aten.scatter_add.default %%x, 1, %%e, %%x\n'; } \
  | program scatter_add
echo '%y = aten.constant_pad_nd.default %x, [3, 5, 1, 1], 0.5' | program pad
{ echo '%s = aten.slice.Tensor %x, 1, 100, 900'; echo '%z = aten.slice_backward.default %s, [4096, 1024], 1, 100, 900, 1'
  echo '%y = aten.mul.Tensor %z, %x'; } | program slice_backward_mul
{ echo '%s = aten.slice.Tensor %x, 0, 100, 3900'; echo '%y = aten.slice_backward.default %s, [4096, 1024], 0, 100, 3900, 1'; } \
  | program slice_backward
printf '%%w = aten.select.int %%x, 0, 0\n%s\n' '%y, %v, %b = aot.layer_norm_backward.default %x, %x, [1024], %w, %w, 1e-05' \
  | program layer_norm_backward v b
printf '%%t = aten.full.default [4096], 5\n%%g = aten.full.default [], 1.0\n%%l = aten.cross_entropy_loss.default %%x, %%t\n%s\n' \
  '%y = aot.cross_entropy_loss_backward.default %g, %x, %t, none, 1, -100, 0.0' | program cross_entropy_and_backward l
echo "| loop | median ms | fastest ms | ratio |"
echo "|---|---|---|---|"
AOT_PLUGIN_PATH="$build/lib/aothost" taskset -c 0 "$work/time_calls" "$rounds" "$work/copy.yaml" "$work/softmax.yaml" \
  "$work/log_softmax.yaml" "$work/softmax_backward.yaml" "$work/layer_norm.yaml" "$work/residual_norm_gelu.yaml" \
  "$work/sum_of_rows.yaml" "$work/sum_of_columns.yaml" "$work/layer_norm_backward.yaml" "$work/cross_entropy_and_backward.yaml" "$work/argmax.yaml" "$work/any.yaml" "$work/cumsum.yaml" "$work/cumsum_of_columns.yaml" \
  "$work/embedding.yaml" "$work/embedding_add.yaml" "$work/gather.yaml" "$work/embedding_backward.yaml" "$work/scatter_add.yaml" \
  "$work/pad.yaml" "$work/slice_backward_mul.yaml" "$work/slice_backward.yaml"
