#!/bin/sh
# plan.sh AOTHOST - ROOT: what `aothost plan` predicts: one rank has nothing to communicate, n hold an n-th each, links that take longer expose
# more; as a table, as JSON and as a picture.
. "$(dirname "$0")/lib.sh"
cat > train.yaml <<END
aot: 1
model: {path: $models/gpt_tiny/train.pt2}
stages: [{use: functionalize}, {use: fsdp, with: {replicate-under: 0}}, {use: autograd}, {use: partition-mincut}, {use: overlap}, {use: backend-cpu}]
run:
  train: {steps: 2, optimizer: adamw, lr: 0.01, seed: 4}
END
cat > fast.yaml <<END
name: links that cost nothing
flops: 10
memory: 400KiB
links: "10000: 0=0 1GiB=1"
END
sed 's/0=0 1GiB=1/0=100 1GiB=1e8/; s/name.*/name: slow links/' fast.yaml > slow.yaml

status 0 "$aothost" plan train.yaml --world 8 --machine fast.yaml --json fast.json --plot plan.svg
has out '^links that cost nothing'
[ "$(grep -c '^- .*%$' out)" = 4 ] || complain "of 1, 2, 4 and 8 ranks: $(cat out)"
has out '^- +1 .*too much'
has out '^- +8 .* [0-9.]+$'
has out '^- +8 gather +world +[0-9]+ +[0-9.]+$'
has plan.svg '<svg .*viewBox'
status 0 "$aothost" plan train.yaml --world 8 --machine slow.yaml --json slow.json
awk_json() { jq -r '.plans[] | "\(.ranks) \(.step_s) \(.communication_s) \(.exposed_s) \(.leaf_bytes) \(.arena_bytes)"' "$1"; }
awk_json fast.json > fast
awk_json slow.json > slow
awk '{ if ($1 == 1) { one = $2; whole = $5; if ($3 != 0 || $4 != 0) print "one rank communicates" }
  if ($2 > one * 1.001) print $1 " ranks take longer over links that cost nothing"
  if ($5 < whole / $1 || $5 > whole / $1 + 3000) print $1 " ranks hold " $5 " of " whole }' fast > wrong
awk 'FNR == NR { fast[$1] = $2; next } $1 > 1 && ($2 <= fast[$1] || $4 <= 0 || $4 > $3 * 1.001) { print "slow links: " $0 }' fast slow >> wrong
[ -s wrong ] && complain "$(cat wrong)"

# A list of numbers, up to as many as anyone has; a mesh whose rows are near.
status 0 "$aothost" plan train.yaml --world 3,10000 -q --json far.json
[ "$(jq -c '[.plans[].ranks]' far.json)" = '[3,10000]' ] || complain "$(cat far.json)"
printf 'links: "4: 0=1 1GiB=10; 10000: 0=100 1GiB=1e8"\n' > near.yaml
status 0 "$aothost" plan train.yaml --world 8 -q --machine near.yaml --json row.json
status 0 "$aothost" plan train.yaml --world 4,8 -q --machine near.yaml --json mesh.json --set stages.fsdp.mode=hybrid --set stages.fsdp.columns=4
[ "$(jq -s '.[0].plans[3].step_s > .[1].plans[1].step_s' row.json mesh.json)" = true ] || complain "a mesh whose rows are near is no faster"

# Modes side by side: sums to be held by a rank, by mode; a mesh of those numbers alone that its columns divide.
status 0 "$aothost" plan train.yaml --world 4 --modes shard,shard-grad,replicate,hybrid:2 --json modes.json --plot modes.svg
has modes.svg 'hybrid:2'
[ "$(jq -c '[.plans[] | select(.ranks == 4) | .mode]' modes.json)" = '["shard","shard-grad","replicate","hybrid:2"]' ] ||
  complain "$(cat modes.json)"
[ "$(jq -c '[.plans[] | select(.mode == "hybrid:2") | .ranks]' modes.json)" = '[2,4]' ] || complain "a mesh of 2 columns: $(cat modes.json)"
jq -e 'def gathers: [.collectives[] | select(.by == "gather") | .bytes] | add;
  (.plans | map(select(.ranks == 4)) | map({(.mode): .}) | add) as $of | .plans[0] as $one |
  $of.replicate.parameter_bytes == $one.parameter_bytes and $of.replicate.state_bytes == $one.state_bytes and
  $of.shard.parameter_bytes * 3 < $one.parameter_bytes and $of["hybrid:2"].parameter_bytes * 3 > $one.parameter_bytes and
  $of.shard.leaf_bytes == $of.shard.parameter_bytes + $of.shard.state_bytes + $of.shard.buffer_bytes and
  ($of.shard | gathers) > ($of["shard-grad"] | gathers) and ($of.replicate | gathers) == null and
  $of.shard.gathered_bytes > 0 and $of.shard.gradient_bytes > 0 and $of.shard.activation_bytes > 0 and
  all($of[]; .arena_bytes >= .gathered_bytes and .arena_bytes >= .gradient_bytes and .arena_bytes >= .activation_bytes)' modes.json > verdict ||
  complain "modes: $(cat modes.json)"

# What is wrong is said.
status 2 "$aothost" plan train.yaml --world 4 --modes shard,
says "\-\-modes at '': expected"
status 2 "$aothost" plan train.yaml --world 4 --modes hybrid:x
says "\-\-modes at 'hybrid:x': expected"
status 2 "$aothost" plan train.yaml --world 4 --modes hybrid:3
says 'the columns of no mesh divide'
status 2 "$aothost" plan train.yaml --world 4 --modes sharded
says 'sharded'
status 2 "$aothost" plan train.yaml
says 'expected a number of ranks'
status 2 "$aothost" plan train.yaml --world 4,x
says '\-\-world 4,x: expected a number of ranks'
echo 'fops: 3' > wrong.yaml
status 2 "$aothost" plan train.yaml --world 2 --machine wrong.yaml
says 'fops'
echo 'links: "8: 5"' > wrong.yaml
status 2 "$aothost" plan train.yaml --world 2 --machine wrong.yaml
says "'links' does not say how long messages take: a row is"
echo '- 3' > wrong.yaml
status 2 "$aothost" plan train.yaml --world 2 --machine wrong.yaml
says 'says nothing of a machine'
sed 's/{use: overlap}, //' train.yaml > no_stage.yaml
status 2 "$aothost" plan no_stage.yaml --world 2
says 'overlap'
finish
