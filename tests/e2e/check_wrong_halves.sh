#!/bin/sh
# A partitioner whose forward and backward are well formed and compute something else than the joint graph is refused, with the stage,
# the port and the node at fault.
. "$(dirname "$0")/lib.sh"
plugins=$5
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:allow_user_segv_handler=1:handle_abort=0:detect_leaks=0"
# divide HOW STATUS TEXT..
divide() {
  how=$1; wanted_status=$2; shift 2
  for model in mlp resnet_tiny; do
    status "$wanted_status" "$aothost" opt "$models/$model/train.pt2" --plugin-dir "$plugins/arms" --use functionalize --use autograd \
      --use divider --with "how=$how" -o "$how.ir"
    for text in "$@"; do says "$text"; done
  done
}
divide well 0
divide drop 3 'error: joint graph, gradient [0-9]+: neither half gives this output in its turn' 'in stage divider' \
  'halves that compute something else'
other='error: backward graph, gradient [0-9]+: this is not what the joint graph computes'
divide swap 3 "$other" 'node %.* = ' 'in stage divider'
divide zero 3 "$other" 'node %.* = aten.zeros_like.default' 'in stage divider'
divide turn 3 'neither half gives this output in its turn' 'in stage divider'
divide deaf 3 'neither half gives this output in its turn' 'in stage divider'
divide type 3 'in stage divider' 'misbehaving plugin arms'
finish
