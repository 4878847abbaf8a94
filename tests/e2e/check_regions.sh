#!/bin/sh
# Symbolic sizes at several values, repeated bodies, branches, autocast, attention and loss variants, half precision: under both
# partitioners and both backends.
. "$(dirname "$0")/lib.sh"
for region in "$root"/tests/fixtures/regions/*/; do
  expects=""
  for e in $(expectations "$region"); do expects="$expects --expect $e"; done
  tolerance="--rtol 1e-5 --atol 1e-5"
  case "$region" in */half_precision/ | */autocast_region/ | */autocast_writes/) tolerance="--rtol 2e-2 --atol 2e-2" ;; esac
  for backend in backend-ref backend-cpu; do
    for partition in partition-default partition-mincut; do
      status 0 "$aothost" verify "$root/pipelines/verify.yaml" --model "$region/train.pt2" $expects $tolerance \
        --set vars.backend=$backend --set vars.partition=$partition
    done
  done
done
finish
