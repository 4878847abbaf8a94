#!/bin/sh
# gradients.sh AOTHOST ROOT MODEL PARTITION BACKEND: hooks that change nothing change no gradient.
#
# identity.hook, twice.hook and offload keep every bit: outputs and gradients are those without hooks, with every filter.
set -eu
aothost=$1 root=$2 model=$3 partition=partition-$4 backend=backend-$5
dir=$root/tests/fixtures/models/$model
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
sets="--set vars.partition=$partition --set vars.backend=$backend"
here=$root/plugins/hooks/tests

step() { # OUT PIPELINE [OPTIONS]: one step's outputs and gradients
  out=$1 pipeline=$2; shift 2
  "$aothost" run "$pipeline" --model "$dir/core.pt2" --inputs "$work/inputs.safetensors" --grads --outputs "$out" -q $sets "$@"
}
same() { # FILE WHAT
  cmp "$work/plain" "$1" || { echo "FAILED: $2 changes gradients of $model ($partition, $backend)"; exit 1; }
}

cp "$dir/expected.safetensors" "$work/inputs.safetensors"
step "$work/plain" "$root/pipelines/verify.yaml"
for filter in donated no_static all; do
  for hook in identity twice; do
    sed "s|codec: \"\${codec}\"|program: $here/$hook.hook|" "$root/pipelines/hooks.yaml" > "$work/hooks.yaml"
    step "$work/$hook" "$work/hooks.yaml" --set vars.filter=$filter
    same "$work/$hook" "$hook.hook with $filter"
  done
  step "$work/offload" "$root/pipelines/hooks.yaml" --set vars.filter=$filter --set vars.codec=offload
  same "$work/offload" "offload with $filter"
done
echo "$model, $partition, $backend: hooks that keep every bit keep every gradient"
