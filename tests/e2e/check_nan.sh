#!/bin/sh
# --check-nan: the node that makes a NaN is named by every backend, and masks of -inf are left alone.
. "$(dirname "$0")/lib.sh"
graph() { # LINES: between the input and the output
  { printf 'aot 1\nproperties imported functional\nleaf 0 parameter "w" : f32[8] grad\nleaf 1 user_input 0 "x" : f32[8]\n'
    printf 'graph @main forward {\n  in %%w = parameter 0 : f32[8] grad\n  in %%x = user_input 1 : f32[8]\n'
    cat; printf '  out user_output 0 "loss" = %%loss\n}\n'; } > nan.ir
}
on() { # BACKEND: trains a step
  cat > nan.yaml <<END
aot: 1
model: {path: nan.ir}
stages: [{use: functionalize}, {use: autograd}, {use: partition-default}, {use: $1}]
run: {train: {steps: 2, data: random, log-every: 1}}
END
  # shellcheck disable=SC2086
  "$aothost" run nan.yaml --check-nan $device
}
for backend in backend-ref backend-cpu backend-cuda; do
  device=; [ $backend = backend-cuda ] && device='--set run.device=cuda'
  # a logarithm of what is below 0, in the middle of what would be one loop
  graph <<'END'
  %a : f32[8] = aten.mul.Tensor %x, %w
  %b : f32[8] = aten.abs.default %a
  %c : f32[8] = aten.sub.Tensor %b, 100
  %d : f32[8] = aten.log.default %c
  %e : f32[8] = aten.sigmoid.default %d
  %loss : f32[] = aten.sum.default %e
END
  status 2 on $backend
  says 'aten.log.default has made NaN, and nothing that it reads holds one'
  # behind a mask of -inf, whose rows are finite again
  graph <<'END'
  %a : f32[8] = aten.mul.Tensor %x, %w
  %m : bool[8] = aten.gt.Scalar %x, 0
  %n : f32[8] = aten.masked_fill.Scalar %a, %m, -inf
  %e : f32[8] = aten.exp.default %n
  %loss : f32[] = aten.sum.default %e
END
  status 0 on $backend
  # in the backward alone: the root of zero, whose derivative has no end
  graph <<'END'
  %a : f32[8] = aten.sub.Tensor %w, %w
  %b : f32[8] = aten.sqrt.default %a
  %c : f32[8] = aten.mul.Tensor %b, %x
  %loss : f32[] = aten.sum.default %c
END
  status 2 on $backend
  says 'has made an infinity'
  # inside a branch, which is the one that is taken
  { printf 'aot 1\nproperties imported functional\nleaf 0 user_input 0 "x" : f32[8]\n'
    printf 'graph @low region {\n  in %%x = region 0 : f32[8]\n  %%y : f32[8] = aten.sub.Tensor %%x, 100\n'
    printf '  %%z : f32[8] = aten.sqrt.default %%y\n  out region 0 = %%z\n}\n'
    printf 'graph @high region {\n  in %%x = region 0 : f32[8]\n  %%y : f32[8] = aten.abs.default %%x\n  out region 0 = %%y\n}\n'
    printf 'graph @main forward {\n  in %%x = user_input 0 : f32[8]\n  %%s : f32[] = aten.sum.default %%x\n'
    printf '  %%p : bool[] = aten.lt.Scalar %%s, 1000\n  %%r : f32[8] = higher_order.cond %%p, @low, @high, [%%x]\n'
    printf '  out user_output 0 "r" = %%r\n}\n'; } > branch.ir
  # shellcheck disable=SC2086
  status 2 "$aothost" run "$root/pipelines/inference.yaml" --model branch.ir --inputs random --set vars.backend=$backend $device --check-nan
  says 'aten.sqrt.default has made NaN'
  sed -e 's/1000$/-1000/' branch.ir > other.ir
  # shellcheck disable=SC2086
  status 0 "$aothost" run "$root/pipelines/inference.yaml" --model other.ir --inputs random --set vars.backend=$backend $device --check-nan
done
finish
