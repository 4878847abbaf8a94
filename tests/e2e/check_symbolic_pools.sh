#!/bin/sh
# Pooling with ceil_mode over a symbolic size: a last window that would begin past the input is not counted, at the traced size and at
# others. Of ones, each window's mean and maximum is 1: the sum is the number of windows, as of PyTorch's avg_pool2d and max_pool2d.
. "$(dirname "$0")/lib.sh"
program() { # OPERATOR ARGUMENTS
  cat <<IR
aot 1
properties imported
symbol s0 in [2, 64] hint 7
leaf 0 user_input 0 "x" : f32[1, 1, 1, s0]
graph @forward forward {
  in %x = user_input 0 : f32[1, 1, 1, s0]
  $1 %x, $2
  %sum = aten.sum.default %y
  out user_output 0 = %y
  out user_output 1 = %sum
}
IR
}
program '%y = aten.avg_pool2d.default' '[1, 2], [1, 3], [0, 0], true' > avg.ir
program '%y, %i = aten.max_pool2d_with_indices.default' '[1, 2], [1, 3], [0, 0], [1, 1], true' > max.ir
printf 'aot: 1\nstages: [{use: functionalize}, {use: "${backend}"}]\nvars: {backend: backend-ref}\n' > p.yaml
for n in 5:2 6:2 7:3 8:3 9:3 10:4; do
  size=${n%:*}
  header="{\"input.0\":{\"dtype\":\"F32\",\"shape\":[1,1,1,$size],\"data_offsets\":[0,$((4 * size))]}}"
  { printf "\\$(printf %o ${#header})\\0\\0\\0\\0\\0\\0\\0%s" "$header"; i=0; while [ $i -lt $size ]; do printf '\000\000\200\077'; i=$((i + 1)); done; } > in.st
  for backend in ref cpu; do
    for pool in avg max; do
      status 0 "$aothost" run p.yaml --model $pool.ir --inputs in.st --set vars.backend=backend-$backend
      says "^output.0 +f32\[1, 1, 1, ${n#*:}\]"
      says "^output.1 +f32\[\] +${n#*:}$"
    done
  done
done
finish
