#!/bin/sh
# Loops as torch.export writes them, with counts that hang on the numbers: under both partitioners and both backends.
. "$(dirname "$0")/lib.sh"
for loop in "$root"/tests/fixtures/loops/*/; do
  expects=""
  for e in $(expectations "$loop"); do expects="$expects --expect $e"; done
  for backend in backend-ref backend-cpu; do
    for partition in partition-default partition-mincut; do
      status 0 "$aothost" verify "$root/pipelines/verify.yaml" --model "$loop/train.pt2" $expects --rtol 1e-5 --atol 1e-5 \
        --set vars.backend=$backend --set vars.partition=$partition
    done
  done
done
# PyTorch stops a gradient between steps where the loop begins with a constant; that is said.
status 0 "$aothost" opt "$root/tests/fixtures/loops/hop_scan_rnn/train.pt2" --use functionalize --use autograd
says 'autograd.carry-without-gradient'
# Every step would draw the same numbers.
cat > draws.ir <<'END'
aot 1
properties imported
leaf 0 user_input 0 "x" : f32[4, 3]
leaf 1 user_input 1 "h" : f32[3]
graph @step region {
  in %h = region 0 : f32[3]
  in %x = region 1 : f32[3]
  %d = aten.dropout.default %x, 0.5, true
  %n = aten.add.Tensor %h, %d
  out region 0 = %n
  out region 1 = %d
}
graph @main forward {
  in %x = user_input 0 : f32[4, 3]
  in %h = user_input 1 : f32[3]
  %c : f32[3], %y : f32[4, 3] = higher_order.scan @step, [%h], [%x], []
  out user_output 0 = %y
}
END
status 2 "$aothost" opt draws.ir --use functionalize --use rng
says 'the body of a higher_order.scan draws random numbers'
finish
