#!/bin/sh
# Outputs that look at the bytes of a tensor as another dtype: the rules of the boundary carry it, also through text, the cache,
# inspect and an exported archive.
. "$(dirname "$0")/lib.sh"
pipeline=$root/pipelines/inference.yaml
export AOT_CACHE_DIR="$dir/cache"
for program in "$root"/tests/fixtures/dtype_views/*/; do
  expect=$program/expected.safetensors
  for backend in backend-ref backend-cpu; do
    status 0 "$aothost" verify "$pipeline" --model "$program/train.pt2" --expect "$expect" --set vars.backend=$backend
    status 0 "$aothost" verify "$pipeline" --model "$program/train.pt2" --expect "$expect" --set vars.backend=$backend --json again.json
    has again.json '"cached": true'
  done
  status 0 "$aothost" export "$program/train.pt2" -o functional.pt2
  status 0 "$aothost" verify "$pipeline" --model functional.pt2 --expect "$expect"
done

several=$root/tests/fixtures/dtype_views/several
"$aothost" opt "$several/train.pt2" --use functionalize > once.ir || complain "opt fails"
has once.ir '^rule view_input 0 5 i32 \[5, 4\]$'
has once.ir '^rule view_output 3 2 i32 \[5, 4\]$'
"$aothost" opt once.ir > twice.ir || complain "opt does not read what it wrote"
same once.ir twice.ir
status 0 "$aothost" inspect once.ir
says 'view_input +0 5 as i32 sizes \[5, 4\]'
status 0 "$aothost" inspect once.ir --json rules.json
has rules.json '"dtype": "i32"'

printf 'aot 1\nleaf 0 user_input 0 "x" : f32[4]\nrule restride 0 i32 [4]\n' > bad.ir
status 2 "$aothost" opt bad.ir
says 'bad.ir:3:.*rule restride cannot have dtype'
finish
