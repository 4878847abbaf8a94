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
# float64 results beside them judge what differs; both backends
judged() {
  for backend in backend-ref backend-cpu; do
    "$aothost" verify "$root/pipelines/verify.yaml" --model "$model/train.pt2" --expect "$model/expected.safetensors" --against f64 \
      --rtol 0 --atol 0 --set "vars.backend=$backend" > verified 2>&1 || { complain "$model is not judged to agree"; cat verified; }
  done
}
quiet() { ! grep -q . out || ! grep -qE 'export_model: (warning|note)' out || { complain "$model: a warning"; cat out; }; }
# the mode is what it was, and said where it matters
export_model 0 evaluated; says 'warning: 2 of 2 modules that depend on the mode .* evaluation mode, as the factory returned them: norm, drop; --train'
judged; grep -q '"mode": "eval"' evaluated/info.json || complain "info.json does not say the mode"
"$aothost" inspect evaluated/train.pt2 > out; says 'aten.batch_norm.default'
export_model 1 evaluated --train; says 'note: --train changes the mode of 2 modules'; says 'draws random numbers .*--eval'
export_model 1 regularised; says 'draws random numbers'
export_model 0 regularised --eval; says 'note: --eval changes the mode of 2 modules'; judged
export_model 0 evaluated --eval; quiet
export_model 2 evaluated --eval --train
# gradients that PyTorch has sparse are recorded dense
export_model 0 sparse; quiet; judged
# checkpoints that strict mode or the backward of torch.export cannot keep
export_model 0 reentrant; says 'note: regions of torch.utils.checkpoint with use_reentrant=True'; agrees 'f32\[6, 4\]'; judged
export_model 0 reentrant --strict; says 'warning: strict mode cannot trace the model, so it is exported without'; agrees 'f32\[6, 4\]'
# inputs are numbered as the program has them, outputs as the model returns them
export_model 0 constants; quiet; judged
keys=$("$python" -c 'import sys, safetensors; print(*sorted(safetensors.safe_open(sys.argv[1], "pt").keys()))' constants/expected.safetensors)
[ "$keys" = "buffer_after.mean grad.input.1 grad.weight input.0 input.1 input.2 input_after.0 input_after.1 input_after.2 output.1 output.3 tangent.1" ] ||
  complain "constants: the keys are $keys"
for case in dataclass named_tuple tied single; do export_model 0 $case; quiet; judged; done
# what makes another choice in float64 is not judged by it
export_model 0 chosen; says 'warning: no expected.f64.safetensors: Float64Error: output.1, which is torch.int64, is another one in float64'
[ ! -e chosen/expected.f64.safetensors ] || complain "chosen: a float64 file of another step"
export_model 0 sparse --no-float64; [ ! -e sparse/expected.f64.safetensors ] || complain "--no-float64 wrote a file, or left an old one"
# for an archive that exists, from the archive alone
"$python" "$root/tools/float64_records.py" sparse 2> out || { complain "float64_records.py"; cat out; }
model=sparse; judged
[ "$failed" = 0 ] && echo ok
exit "$failed"
