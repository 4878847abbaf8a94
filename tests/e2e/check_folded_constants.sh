#!/bin/sh
# A pass folds two constants into a third: a leaf and an input that it adds, and inputs that it erases. Loss and gradients are those of
# mathematics, in inference and training, on both CPU backends and out of the compile cache; a pass that reorders constants is refused.
. "$(dirname "$0")/lib.sh"
plugins=$5/fold
export AOT_CACHE_DIR="$dir/cache"
# loss = sum(x * (a * b) * w), x = 1, a * b = 2 4 6 8, w = 0.5: the loss is 10, the gradient 2 4 6 8; SGD of rate 0.25 goes to -20, then -50.
cat > m.ir <<'IR'
aot 1
properties imported
leaf 0 parameter "w" : f32[4] grad data "0000003f0000003f0000003f0000003f"
leaf 1 constant "a" : f32[4] data "0000803f000000400000404000008040"
leaf 2 constant "b" : f32[4] data "00000040000000400000004000000040"
leaf 3 user_input 0 "x" : f32[4]
graph @forward forward {
  in %w = parameter 0 : f32[4] grad
  in %a = constant 1 : f32[4]
  in %b = constant 2 : f32[4]
  in %x = user_input 3 : f32[4]
  %c = aten.mul.Tensor %a, %b
  %y = aten.mul.Tensor %x, %c
  %z = aten.mul.Tensor %y, %w
  %sum = aten.sum.default %z
  out loss 0 = %sum
}
IR
header='{"input.0":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}'
{ printf "\\$(printf %o ${#header})\\0\\0\\0\\0\\0\\0\\0%s" "$header"; for i in 1 2 3 4; do printf '\000\000\200\077'; done; } > in.st
gradient='\000\000\000\100\000\000\200\100\000\000\300\100\000\000\000\101' # 2 4 6 8
printf "$gradient" > gradient.bin

pipeline() { # BACKEND GRAPH
  fold="  - use: fold-constants
    with: {graph: $2}"
  echo "aot: 1
stages:
  - use: functionalize"
  [ "$2" = joint ] || echo "$fold"
  echo "  - use: autograd"
  [ "$2" = forward ] || echo "$fold"
  echo "  - use: partition-default
  - use: backend-$1
run:
  inputs: in.st"
}

for backend in ref cpu; do
  for graph in forward joint; do
    pipeline $backend $graph > p.yaml
    { cat p.yaml; echo "  train: {steps: 3, optimizer: sgd, lr: 0.25, log-every: 1}"; } > t.yaml
    for outcome in miss hit; do
      status 0 "$aothost" run p.yaml --plugin-dir "$plugins" --model m.ir --grads --outputs out.st --check-stages -v
      says "^output.0 +f32\[\] +10\b"
      tail -c 16 out.st > last.bin; tail -c 20 out.st | head -c 16 > first.bin
      cmp -s last.bin gradient.bin || cmp -s first.bin gradient.bin || complain "the gradient of w is not 2 4 6 8 ($backend, $graph)"
      status 0 "$aothost" run p.yaml --plugin-dir "$plugins" --model m.ir -v; says "cache: $outcome"
      status 0 "$aothost" run t.yaml --plugin-dir "$plugins" --model m.ir -v; says "cache: $outcome"
      says '^step 1/3  loss 10\b'; says '^step 2/3  loss -20\b'; says '^step 3/3  loss -50\b'
    done
  done
  # forward only, each stage in a process of its own: the new leaf's contents are sent
  printf 'aot: 1\nstages: [{use: functionalize}, {use: fold-constants}, {use: backend-%s}]\nrun: {inputs: in.st}\n' $backend > i.yaml
  for isolation in none worker; do
    status 0 "$aothost" run i.yaml --model m.ir --plugin-dir "$plugins" --isolate $isolation --no-cache
    says "^output.0 +f32\[\] +10\b"
  done
done

# the node and both inputs are gone, the new input is there
status 0 "$aothost" opt m.ir --plugin-dir "$plugins" --use functionalize --use fold-constants --check-replay --check-stages -o folded.ir
has folded.ir 'leaf 4 constant "folded" : f32\[4\] data "0000004000008040'
has folded.ir 'in %folded = constant 4 : f32\[4\]'
grep -qE 'constant [12] :' folded.ir && complain "the inputs of unread constants are still there"
status 3 "$aothost" opt m.ir --plugin-dir "$plugins" --use functionalize --use fold-constants --with how=foreign
says 'forward graph, input constant 1: it was not there before'
finish
