#!/bin/sh
# No operator of the kinds of networks that bench/torch measures runs in a reference kernel of backend-cpu, in float32 and bfloat16, nor
# does what stands in tests/fixtures/kinds/others.ir. The graphs are those of kind_models.py, small; an optimizer's step is part.
. "$(dirname "$0")/lib.sh"
cat > p.yaml <<'END'
aot: 1
vars: {model: none.ir}
model: {path: "${model}"}
stages: [{use: functionalize}, {use: rng}, {use: autograd}, {use: partition-mincut}, {use: backend-cpu}]
run: {train: {steps: 1, lr: 1e-3, optimizer: adamw, log-every: 0, data: random}}
END
fallbacks() { sed -n '/"fallback-nodes"/{n;s/.*: \([0-9]*\).*/\1/p;}' run.json; }
run() { # MODEL PRECISION
  status 0 "$aothost" run p.yaml --set "vars.model=$1" --set "run.train.precision=$2" --profile --json run.json
}
for model in "$root"/tests/fixtures/kinds/*.ir; do
  for precision in f32 bf16; do
    run "$model" $precision
    [ "$(fallbacks)" = 0 ] || complain "$(basename "$model") in $precision: $(fallbacks) reference kernels: $(grep ' run  ' out)"
  done
done

# one is told where it runs
cat > one.ir <<'END'
aot 1
properties imported
leaf 0 parameter "x" : f32[6] grad data "0000803f0000803f0000803f0000803f0000803f0000803f"
graph @forward forward {
  in %x = parameter 0 : f32[6] grad
  %y = aten.nextafter.default %x, %x
  %z = aten.add.Tensor %x, %y
  %loss = aten.sum.default %z
  out loss 0 = %loss
}
END
run one.ir f32
[ "$(fallbacks)" = 1 ] || complain "a reference kernel is not told: $(fallbacks)"
finish
