#!/bin/sh
# own_partition.sh AOTHOST EDIT ROOT CC [FLAGS]: examples/partitioner as a user builds it, with nothing but the installed headers. It only
# chooses: the host makes the halves, and finds what is recomputed.
. "$(dirname "$0")/lib.sh"
cc=$4; flags=${5:-}
mkdir -p prefix/include plugins
cp -r "$root/plugin-api/aot" prefix/include/
$cc -std=c11 -O2 -fPIC -shared -fvisibility=hidden -Wall -Wextra -Werror $flags -I prefix/include "$root/examples/partitioner/save_heavy.c" \
  -o plugins/save_heavy.so || exit 1
export AOT_PLUGIN_PATH=$PWD/plugins

# Gradients are PyTorch's, on models with statistics that the forward updates, and with data-dependent sizes.
for model in "$models/mlp" "$models/gpt_tiny" "$models/resnet_tiny" "$root/tests/models/dynamic_rows"; do
  for backend in backend-ref backend-cpu; do
    status 0 "$aothost" verify "$root/pipelines/verify.yaml" --model "$model/train.pt2" --expect "$model/expected.safetensors" \
      --set vars.partition=example.save-heavy --set vars.backend=$backend
    says 'keys agree'
  done
done

# A step of training reaches the same loss as with the project's own partitioners.
train() { # PARTITION
  status 0 "$aothost" run "$root/pipelines/verify.yaml" --model "$models/gpt_tiny/train.pt2" --inputs random --set vars.partition=$1 \
    --outputs "$1.st" --json r.json --no-cache
}
train partition-default
train example.save-heavy
same partition-default.st example.save-heavy.st
tr -d ' \n' < r.json > flat
has flat '"recomputed-nodes":\{"value":[1-9]'
has flat '"saved-bytes":\{"value":[1-9]'
finish
