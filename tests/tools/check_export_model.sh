#!/bin/sh
# tools/export_model.py on the models of export_model_cases.py; what it exports is verified by aothost. Needs Python with PyTorch and
# safetensors (AOT_TORCH_PYTHON, else python3); without them the test is skipped: status 77.
aothost=$1; root=$2
python=${AOT_TORCH_PYTHON:-python3}
"$python" -c 'import torch, safetensors' 2> /dev/null || { echo "skipped: $python has no PyTorch; AOT_TORCH_PYTHON names one that has"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
failed=0
complain() { echo "FAILED: $*"; failed=1; }
# export_model STATUS MODEL [OPTION..]: its messages are in `out`
export_model() {
  wanted=$1; model=$2; shift 2
  "$python" "$root/tools/export_model.py" "$root/tests/tools/export_model_cases.py:$model" "$model" "$@" > out 2>&1 && got=0 || got=$?
  [ "$got" = "$wanted" ] || { complain "$model: status $got instead of $wanted"; cat out; }
}
says() { grep -qE -- "$1" out || { complain "$model does not say '$1'"; cat out; }; }
agrees() {
  "$aothost" verify "$root/pipelines/verify.yaml" --model "$model/train.pt2" --expect "$model/expected.safetensors" > verified 2>&1 ||
    { complain "$model does not agree"; cat verified; }
  grep -q '"lost": \[\]' "$model/info.json" || complain "$model: something was lost"
  "$aothost" inspect "$model/train.pt2" | grep -qE "$1" || complain "$model: the sizes are not as $1"
}

# sizes that may vary: multiples, dicts and lists, inputs by name, any number of inputs
export_model 0 halves --dynamic '0:0=2*half:2:64'; agrees '\[s[0-9]+ ?\* ?2, 4\]'
export_model 0 batch --dynamic 0.x:0=n:2:64,batch.more.0:0=n,0.more.1:0=k:1:9; agrees 'i64\[s[0-9]+\]'
export_model 0 named --dynamic x:0=n,mask:0=n; agrees 'f32\[s[0-9]+, 4\]'
export_model 0 any_number --dynamic 0:0=n:2:32,1:0=n; agrees 'f32\[s[0-9]+, 4\]'
export_model 0 first_and_any --dynamic 0:0=n:2:32,1:0=n,2:0=n,bias:0=n; agrees 'f32\[s[0-9]+, 4\]'
export_model 0 kept; agrees 'f32\[6, 4\]'
# strict mode has no place for a buffer that forward does not read
export_model 0 halves --strict; agrees 'f32\[[0-9]+, 4\]'
export_model 2 named --dynamic nothing:0=n; says 'there is no tensor input nothing'
export_model 2 named --dynamic scale:0=n; says 'there is no tensor input scale'
export_model 2 named --dynamic 0:0=2n; says 'is not INPUT:DIM=SIZE'

# what torch.export loses is told, and why
export_model 0 rounded; says 'grad.weight differs; torch.export does not keep the backward of autograd.Function Round'
grep -q 'grad.weight differs' rounded/info.json || complain "info.json does not say what was lost"
export_model 0 rounded --strict; says 'grad.weight is lost; torch.export does not keep the backward of autograd.Function Round'
export_model 0 checkpointed; says 'running_mean differs; eager PyTorch updates it again in the backward'
export_model 0 reassigned --strict; says 'buffer_after.mean differs; forward assigns another tensor to it'
[ "$failed" = 0 ] && echo ok
exit "$failed"
