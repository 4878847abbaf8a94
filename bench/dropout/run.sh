#!/bin/sh
# bench/dropout: what random numbers cost inside a generated loop. Pointwise chains over f32[4096, 1024] on backend-cpu, one
# thread, each as it is and with dropout (draw, compare, multiply, scale) in the same loop, and a fill with random numbers alone;
# called in turn, median and fastest of ROUNDS calls (default 40), ratio of medians to the first row.
#   bench/dropout/run.sh [BUILD_DIR] [ROUNDS]
set -eu
cd "$(dirname "$0")/../.."
build=$(cd "${1:-build}" && pwd); rounds="${2:-40}"
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
${CC:-cc} -std=gnu11 -O2 -Ihost/include -Iplugin-api bench/dropout/time_calls.c "$build/host/libaothost.a" \
  $(pkg-config --libs yaml-0.1 jansson libxxhash) -ldl -lm -lpthread -Wl,-E -o "$work/time_calls"

# program NAME: the nodes on the standard input give %y
program() {
  { printf 'aot 1\nproperties imported\n\nleaf 0 user_input 0 "x" : f32[4096, 1024]\nleaf 1 user_input 1 "seed" : i64[]\n'
    printf 'leaf 2 user_input 2 "offset" : i64[]\n\ngraph @f forward {\nin %%x = user_input 0 : f32[4096, 1024]\n'
    printf 'in %%s = user_input 1 : i64[]\nin %%o = user_input 2 : i64[]\n'; cat; printf 'out user_output 0 = %%y\n}\n'
  } > "$work/$1.ir"
  printf 'aot: 1\nmodel: {path: %s.ir}\nstages:\n  - use: functionalize\n  - {use: backend-cpu, with: {threads: 1}}\n' "$1" \
    > "$work/$1.yaml"
}
draw='%u = aot.philox_uniform.default %s, %o, 0, [4096, 1024]
%k = aten.ge.Scalar %u, 0.1'
gelu='%b = aten.add.Tensor %x, 0.5
%g = aten.gelu.default %b'
scale='%y = aten.mul.Tensor %d, 1.1111111111111112'
echo '%y = aten.mul.Tensor %x, 1.1' | program scale
printf '%s\n%%d = aten.mul.Tensor %%x, %%k\n%s\n' "$draw" "$scale" | program scale_dropout
printf '%s\n%%y = aten.mul.Tensor %%g, 1.1\n' "$gelu" | program gelu
printf '%s\n%s\n%%d = aten.mul.Tensor %%g, %%k\n%s\n' "$gelu" "$draw" "$scale" | program gelu_dropout
echo '%y = aot.philox_uniform.default %s, %o, 0, [4096, 1024]' | program uniform
echo '%y = aot.philox_normal.default %s, %o, 0, [4096, 1024]' | program normal
echo "| loop | median ms | fastest ms | ratio |"
echo "|---|---|---|---|"
AOT_PLUGIN_PATH="$build/lib/aothost" taskset -c 0 "$work/time_calls" "$rounds" "$work/scale.yaml" "$work/scale_dropout.yaml" \
  "$work/gelu.yaml" "$work/gelu_dropout.yaml" "$work/uniform.yaml" "$work/normal.yaml"
