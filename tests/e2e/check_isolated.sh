#!/bin/sh
# A stage in a process of its own makes the very same program as one in this process, node for node: types that are new to the other
# process, dimensions that are, leaves, joint graphs and their halves.
. "$(dirname "$0")/lib.sh"
stages="--use functionalize --use rng --use autograd --use partition-mincut --use adamw --use stitch"
for model in "$models/gpt_tiny" "$models/resnet_tiny" "$models/bert_tiny" "$root/tests/models/dynamic_mask" "$root/tests/models/dropout_gpt"; do
  case $model in *dynamic*) use="--use functionalize" ;; *) use=$stages ;; esac
  for where in none worker; do
    # shellcheck disable=SC2086
    status 0 "$aothost" opt "$model/train.pt2" $use --isolate $where -o $where.ir
  done
  cmp -s none.ir worker.ir || complain "another program: $model"
  [ "$(wc -l < worker.ir)" -gt 20 ] || complain "no program: $model"
done
