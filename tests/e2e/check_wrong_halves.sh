#!/bin/sh
# A partitioner whose forward and backward are well formed and compute something else than the joint graph is refused, with the stage,
# the port and the node at fault.
# So is a choice of what to save, left to the host, of which no halves can be made: at the value.
. "$(dirname "$0")/lib.sh"
plugins=$5
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:allow_user_segv_handler=1:handle_abort=0:detect_leaks=0"
# divide HOW STATUS TEXT..
divide() {
  how=$1; wanted_status=$2; shift 2
  for model in $of; do
    status "$wanted_status" "$aothost" opt "$model/train.pt2" --plugin-dir "$plugins/arms" --use functionalize --use autograd \
      --use divider --with "how=$how" -o "$how.ir"
    for text in "$@"; do says "$text"; done
  done
}
of="$models/mlp $models/resnet_tiny"
divide well 0
divide drop 3 'error: joint graph, gradient [0-9]+: neither half gives this output in its turn' 'in stage divider' \
  'graphs that compute different results'
other='error: backward graph, gradient [0-9]+: this is not what the joint graph computes'
divide swap 3 "$other" 'node %.* = ' 'in stage divider'
divide zero 3 "$other" 'node %.* = aten.zeros_like.default' 'in stage divider'
divide turn 3 'neither half gives this output in its turn' 'in stage divider'
divide deaf 3 'neither half gives this output in its turn' 'in stage divider'
divide type 3 'in stage divider' 'contract violation by plugin arms'
misbehaves='contract violation by plugin arms .*: unit divider .* chose'
divide garbage 3 "$misbehaves to save a value that is not in the joint graph"
divide late 3 'depends on a tangent' 'node %.* = ' 'in stage divider' "$misbehaves a cut from which no forward and backward graph can be built"
divide twice 3 'is named twice' 'node %.* = ' 'in stage divider' "$misbehaves a cut from which no forward and backward graph can be built"
divide nothing 0
of=$root/tests/models/dropout_vit
divide nothing 3 'the backward would draw these random numbers again' 'node %.* = aten.bernoulli' 'in stage divider' \
  "$misbehaves a cut from which no forward and backward graph can be built"

# A draw in a region of a region that is called in the forward.
cat > drawing.ir <<'I'
aot 1
properties imported functional joint
leaf 0 user_input 0 "x" : f32[4] grad
graph @joint joint {
  in %x = user_input 0 : f32[4] grad
  in %t = tangent 0 : f32[4]
  %a : f32[4] = higher_order.invoke_subgraph @outer, "outer", %x
  %y : f32[4] = aten.mul.Tensor %x, %a
  %g : f32[4] = aten.mul.Tensor %t, %a {backward}
  out user_output 0 = %y
  out gradient 0 = %g
}
graph @outer region {
  in %x = region 0 : f32[4]
  %a : f32[4] = higher_order.invoke_subgraph @inner, "inner", %x
  out region 0 = %a
}
graph @inner region {
  in %x = region 0 : f32[4]
  %a = aten.rand_like.default %x
  out region 0 = %a
}
I
draw() { status "$1" "$aothost" opt drawing.ir --plugin-dir "$plugins/arms" --use divider --with "how=$2"; }
draw 0 well
draw 3 nothing
says 'the backward would draw these random numbers again'
says 'node %a .* = higher_order.invoke_subgraph @outer'
finish
