#!/bin/sh
# bench/partition: partition-mincut on PyTorch's own joint graphs, beside PyTorch's rows, and on generated graphs that grow.
#   bench/partition/run.sh [BUILD_DIR] [RUNS] [GRAPH.json.gz ..]      further graphs, named from the project's root: see joint_dump.h
set -eu
cd "$(dirname "$0")/../.."
build="${1:-build}"; runs="${2:-9}"
[ $# -gt 1 ] && shift 2 || shift $#
graphs=bench/partition/graphs
taskset -c 0 "$build/bin/partition_bench" --runs "$runs" --pytorch $graphs/pytorch.json --inputs $graphs/inputs.json $graphs/*.json.gz "$@"
for shape in layers random chains; do
  for nodes in 10000 100000 1000000; do
    taskset -c 0 "$build/bin/partition_bench" --runs 3 --generate $shape:$nodes | tail -n 1
  done
done
