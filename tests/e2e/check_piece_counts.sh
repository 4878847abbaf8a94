#!/bin/sh
# split, chunk and unbind of a symbolic size have as many results as at the traced size. At a size with another number of pieces, where
# PyTorch's program would fail to unpack them, the run is refused with the operator and its line; at the others it is right.
. "$(dirname "$0")/lib.sh"
program() { # HINT PIECES LAST OPERATOR ARGUMENTS
  cat <<IR
aot 1
properties imported
symbol s0 in [0, 64] hint $1
leaf 0 user_input 0 "x" : f32[s0, 2]
graph @forward forward {
  in %x = user_input 0 : f32[s0, 2]
  $2 = $4 %x$5 !0
  %o = aten.clone.default $3
  %sum = aten.sum.default $3
  out user_output 0 = %o
  out user_output 1 = %sum
}
origin 0 "model.py":12 module "m" node "pieces"
IR
}
program 7 '%a, %b, %c, %d' %d aten.split.Tensor ', 2' > split.ir
program 7 '%a, %b, %c, %d' %d aten.chunk.default ', 4' > chunk.ir
program 3 '%a, %b, %c' %c aten.unbind.int '' > unbind.ir
printf 'aot: 1\nstages: [{use: functionalize}, {use: "${backend}"}]\nvars: {backend: backend-ref}\n' > p.yaml
# PROGRAM SIZE RESULT: the sum of the last piece of ones, or "refused"
while read -r name size result; do
  header="{\"input.0\":{\"dtype\":\"F32\",\"shape\":[$size,2],\"data_offsets\":[0,$((8 * size))]}}"
  { printf "\\$(printf %o ${#header})\\0\\0\\0\\0\\0\\0\\0%s" "$header"; i=0; while [ $i -lt $((2 * size)) ]; do printf '\000\000\200\077'; i=$((i + 1)); done; } > in.st
  for backend in ref cpu; do
    run() { "$aothost" run p.yaml --model $name.ir --inputs in.st --set vars.backend=backend-$backend; }
    if [ "$result" = refused ]; then
      status 2 run
      says '^model.py:12: error: '
      says "^  node %a.*aten\.$name\."
    else
      status 0 run
      says "^output.1 +f32\[\] +$result$"
    fi
  done
done <<END
split 7 2
split 8 4
split 5 refused
split 6 refused
split 9 refused
chunk 7 2
chunk 8 4
chunk 4 2
chunk 5 refused
chunk 6 refused
unbind 3 2
unbind 4 refused
END
finish
