#!/bin/sh
# Repeated regions that stay whole: differentiated and divided once for calls alike, called in forward and backward, on both
# backends, each region with a partitioner of its own choice.
. "$(dirname "$0")/lib.sh"
region=$root/tests/fixtures/regions/invoke_subgraph
kept="--use functionalize --with regions=keep --use autograd"

cat > kept.yaml <<P
aot: 1
vars: {partition: partition-default, backend: backend-ref}
stages:
  - {use: functionalize, with: {regions: keep}}
  - use: autograd
  - use: \${partition}-regions
  - use: \${partition}
  - use: \${backend}
P
for model in "$region" "$root/tests/models/repeated_regions"; do
  for backend in backend-ref backend-cpu; do
    for partition in partition-default partition-mincut; do
      status 0 "$aothost" verify kept.yaml --model "$model/train.pt2" --expect "$model/expected.safetensors" \
        --rtol 1e-4 --atol 1e-5 --set vars.backend=$backend --set vars.partition=$partition
    done
  done
done

# Not divided, the backward runs the region again: nothing of its inside is saved, the numbers are the same.
sed '/-regions$/d' kept.yaml > again.yaml
status 0 "$aothost" verify again.yaml --model "$region/train.pt2" --expect "$region/expected.safetensors" --rtol 1e-4 --atol 1e-5

# Three calls, two of them alike in what has a gradient: two joint graphs, two divisions.
status 0 "$aothost" opt "$region/train.pt2" $kept -o joint.ir
has joint.ir 'invoke_subgraph @[0-9]+, "subgraph_0:bw2"'
[ "$(grep -c '^graph.* region {' joint.ir)" = 3 ] || complain "not one body and two joint graphs"
status 0 "$aothost" opt joint.ir --use partition-default-regions -o split.ir
[ "$(grep -c '^graph.* region {' split.ir)" = 4 ] || complain "not two halves of each joint graph"

# A region names its partitioner by the stage that takes it; the next stage takes what is left.
status 0 "$aothost" opt joint.ir --use partition-mincut-regions --with only=subgraph_0 --use partition-default-regions -o both.ir
status 2 "$aothost" opt joint.ir --use partition-mincut-regions --with only=subgraph_1 -o /dev/null
says "names 'subgraph_1', which is no repeated region"
finish
