#!/bin/sh
# A model with operators that no opset has: one error that counts them; each with its nodes, its place in the model and the nearest
# known operator. From an archive (a custom operator, and one that the table lacks) and from text.
. "$(dirname "$0")/lib.sh"
model=$root/tests/models/missing_operators/model.pt2

status 2 "$aothost" run "$root/pipelines/inference.yaml" --model "$model" --inputs random --outputs o.st
says '^error: the model uses 2 operators that no loaded opset knows \(4 nodes\)'
[ "$(grep -c 'error:' out)" = 1 ] || complain "not one error: $(grep error: out)"
says "^make\.py:33: note: mylib\.squash\.default: 2 nodes, first 'squash'"
says "^make\.py:22: note: aten\.linalg_eig\.default: 2 nodes, first 'linalg_eig' in module first"
[ "$(grep -c 'nearest' out)" = 1 ] || complain "one of them has a neighbour"
says 'hint: the nearest known operator is aten\.linalg_eigh\.default$'
says 'while reading the model .*model\.pt2'
[ ! -e o.st ] || complain "something was written"

# an operator of the table under a wrong overload, and one that is misspelt
"$4" "$models/mlp/train.pt2" slip.pt2 models/model.json sub aten.linear.default aten.linear.defaults || complain damage_archive
status 2 "$aothost" inspect slip.pt2
says 'aten\.linear\.defaults: [0-9]+ nodes?, first .* in module '
says 'hint: the nearest known operator is aten\.linear\.default$'

cat > missing.ir <<'I'
aot 1
properties imported
leaf 0 user_input 0 "x" : f32[2]

graph @main forward {
  in %x = user_input 0 : f32[2]
  %a = aten.relu.tensor %x
  %b, %c = mylib.pair.default %x, alpha=1
  %d : f32[2] = aten.add.Tensors %a, %b
  %e = aten.add.Tensor %a, %d
  %f = mylib.pair.default %e
  %g = prims.gelu.default %f
  %h = aten.sigmiod.default %f
  out user_output 0 = %h
}
I
status 2 "$aothost" opt missing.ir --use functionalize
says '^missing\.ir:7:8: error: the program uses 5 operators that no loaded opset knows \(6 nodes\)'
[ "$(grep -c 'error:' out)" = 1 ] || complain "not one error: $(grep error: out)"
says '^missing\.ir:8:12: note: there is no operator mylib\.pair\.default: 2 nodes, the first here'
says '^missing\.ir:9:17: note: there is no operator aten\.add\.Tensors: 1 node '
grep 'hint:' out > hints
cat > wanted <<'H'
  hint: did you mean aten.relu.default?
  hint: did you mean aten.add.Tensor?
  hint: did you mean aten.gelu.default?
  hint: did you mean aten.sigmoid.default?
H
same hints wanted
finish
