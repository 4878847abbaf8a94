#!/bin/sh
# Inputs that share memory: what eager PyTorch gave, over both partitioners and backends; which patterns were compiled.
. "$(dirname "$0")/lib.sh"
for scenario in "$root"/tests/fixtures/aliasing/*/; do
  for expect in $(expectations "$scenario"); do
    pipelines=inference
    head -c 4096 "$expect" | grep -qa '"tangent\.' && pipelines="verify verify-mincut"
    for pipeline in $pipelines; do
      for backend in backend-ref backend-cpu; do
        status 0 "$aothost" verify "$root/pipelines/$pipeline.yaml" --model "$scenario/train.pt2" --expect "$expect" --set vars.backend=$backend
      done
    done
  done
done

# patterns PIPELINE SCENARIO "EXPECT ..." TEXT: what is compiled besides the first program, one line each
patterns() {
  expects=
  for e in $3; do expects="$expects --expect $root/tests/fixtures/aliasing/$2/$e.safetensors"; done
  status 0 "$aothost" verify "$root/pipelines/$1.yaml" --model "$root/tests/fixtures/aliasing/$2/train.pt2" $expects --json out.json
  got=$(tr '\n' ' ' < out.json | tr '{' '\n' | sed -n 's/.*"inputs": *"\([^"]*\)", *"calls": *\([0-9]*\).*/\1 x\2/p; s/.*"calls": *\([0-9]*\),.*"inputs": *"\([^"]*\)".*/\2 x\1/p')
  [ "$got" = "$4" ] || complain "patterns of $2: '$got' instead of '$4'"
}
patterns inference dup_mut expected 'input.1 = input.0 x1'
patterns inference overlap_mut expected 'base.0 f32[6]: input.0 = [4], input.1 = [4] offset 2 x1'
patterns inference interleaved_mut expected ''
patterns verify overlap_read_grad expected ''
patterns verify overlap_mut_grad expected 'base.0 f32[6]: input.0 = [4], input.1 = [4] offset 2 x1'
has out.json '"cached": true' # compiled above
patterns verify dup_symbolic 'expected expected.1' 'input.1 = input.0 x2'
patterns verify overlap_symbolic 'expected expected.1' 'base.0 f32[18]: input.0 = [4, 3], input.1 = [4, 3] offset 6 x1
base.0 f32[27]: input.0 = [7, 3], input.1 = [7, 3] offset 6 x1'
patterns verify three_ways expected 'base.0 f32[8]: input.0 = [6] offset 2, input.2 = [4]; input.1 = input.0 x1'

# No more patterns than allowed, and what is not understood in a file.
overlap=$root/tests/fixtures/aliasing/overlap_symbolic
status 2 "$aothost" verify "$root/pipelines/verify.yaml" --model "$overlap/train.pt2" --expect "$overlap/expected.safetensors" \
  --expect "$overlap/expected.1.safetensors" --set run.alias-patterns=1
says "programs for 1 other ways were compiled already"
says "raise run.alias-patterns"
refused=$root/tests/fixtures/aliasing_refused/dup_other_sizes
status 2 "$aothost" verify "$root/pipelines/inference.yaml" --model "$refused/train.pt2" --expect "$refused/expected.safetensors"
says "an input that is passed twice, and given other sizes in place"
says "while compiling for inputs that share memory: input.1 = input.0"

# A run says what it compiled.
dup=$root/tests/fixtures/aliasing/dup_mut
status 0 "$aothost" run "$root/pipelines/inference.yaml" --model "$dup/train.pt2" --inputs "$dup/expected.safetensors" -v --json run.json
says "inputs that share memory: input.1 = input.0; .* 1 call"
has run.json '"inputs": "input.1 = input.0"'

# A file whose aliases are not understood. Names of equal length keep the file's header as long as it was.
for bad in 'storage.9 [3, 4]/the file has no such tensor' 'storage.0 [3, 5]/it reaches outside' 'storage.0 [3; 4]/expected NAME'; do
  LC_ALL=C sed "s/\"alias.input.1\":\"storage.0 \[3, 4\]\"/\"alias.input.1\":\"${bad%%/*}\"/" "$dup/expected.safetensors" > bad.st
  status 2 "$aothost" verify "$root/pipelines/inference.yaml" --model "$dup/train.pt2" --expect bad.st
  says "${bad#*/}"
done
finish
