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
  'halves that compute something else'
other='error: backward graph, gradient [0-9]+: this is not what the joint graph computes'
divide swap 3 "$other" 'node %.* = ' 'in stage divider'
divide zero 3 "$other" 'node %.* = aten.zeros_like.default' 'in stage divider'
divide turn 3 'neither half gives this output in its turn' 'in stage divider'
divide deaf 3 'neither half gives this output in its turn' 'in stage divider'
divide type 3 'in stage divider' 'misbehaving plugin arms'
misbehaves='misbehaving plugin arms .*: unit divider .* chose'
divide garbage 3 "$misbehaves to save a value that is not in the joint graph"
divide late 3 'depends on a tangent' 'node %.* = ' 'in stage divider' "$misbehaves a cut that no halves can be made of"
divide twice 3 'is named twice' 'node %.* = ' 'in stage divider' "$misbehaves a cut that no halves can be made of"
divide nothing 0
of=$root/tests/models/dropout_vit
divide nothing 3 'the backward would draw these random numbers again' 'node %.* = aten.bernoulli' 'in stage divider' \
  "$misbehaves a cut that no halves can be made of"
finish
