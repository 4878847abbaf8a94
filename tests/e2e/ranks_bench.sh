#!/bin/sh
# ranks_bench.sh AOTHOST - ROOT: bench/torch/ranks.py on the doubles of CUDA and NCCL: aothost's sides of a small archive, in one call, leave
# times, losses that agree, what is predicted, and a log of each rank; a side that fails is named. PyTorch's sides need PyTorch.
. "$(dirname "$0")/lib.sh"
python=$(command -v python3) || { echo "no python3"; exit 77; }
bench() { "$python" "$root/bench/torch/ranks.py" --aothost "$aothost" --work "$dir/work" --models "$models/gpt_tiny" --steps 4 --warm-up 1 --block 2 "$@"; }
status 0 bench --sides one,shard/shard-grad,replicate --dtype f32 --set stages.overlap.bucket=16KiB
for side in one shard shard-grad replicate; do says "^\| $side \| [0-9.]+ \| - \| [0-9.]+ \| [0-9.]+ \| [1-9][0-9]* \| - \| [0-9.]+ \| [0-9.]+ [0-9.]+ \|$"; done
folder=work/logs/$(echo "${models#/}/gpt_tiny" | tr / _)
for log in one.0 shard.0 shard.1 replicate.1; do [ -f "$folder/$log.log" ] || complain "no log of $log"; done
has "$folder/plan.txt" 'shard'
[ "$(jq '[.[] | select((.ms | length) == 4 and .predicted_ms > 0)] | length' work/results.json)" = 4 ] || complain "$(cat work/results.json)"
# a step beyond the first is the model's second, on what all ranks have learnt
[ "$(jq '[.[] | select(.losses[-1] < .losses[0])] | length' work/results.json)" = 4 ] || complain "$(cat work/results.json)"
# Without communication losses are others, which is no failure.
status 0 bench --sides shard,copies --dtype f32
says '^\| copies \| [0-9.]+ '
[ "$(jq '[.[] | .losses[-1]] | unique | length' work/results.json)" = 2 ] || complain "copies hands something to other ranks: $(cat work/results.json)"
AOT_NCCL_DOUBLE=fail-at=3 status 1 bench --sides one,shard --dtype f32
says 'shard: .*NCCL has failed|NCCL has failed'
says '^\| one \| [0-9.]+ '
status 2 bench --sides all
says 'no side all; there are fsdp2, ddp, one, shard'
finish
