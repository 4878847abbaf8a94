#!/bin/sh
# Convolutions of patches on backend-cuda's double are products, forward and backward, of one to three dimensions, whichever
# way images and weights lie: backend-ref's results, without cuDNN. What overlaps or leaves something out is none.
. "$(dirname "$0")/lib.sh"

# GRAPH: images, weights, biases as parameters; two lines a call. x: channels first; xl: last.
program() {
  cat <<END
aot 1
properties imported
leaf 0 parameter "x" : f32[2, 3, 8, 6] data "$(numbers 288)"
leaf 1 parameter "w" : f32[4, 3, 4, 2] data "$(numbers 96)"
leaf 2 parameter "b" : f32[4] data "$(numbers 4)"
graph @main forward {
  in %x = parameter 0 : f32[2, 3, 8, 6]
  in %w = parameter 1 : f32[4, 3, 4, 2]
  in %b = parameter 2 : f32[4]
  %xl = aten.clone.default %x, memory_format=channels_last
  %wl = aten.clone.default %w, memory_format=channels_last
  %x1 = aten.view.default %x, [2, 3, 48]
  %x3 = aten.view.default %x, [2, 3, 2, 4, 6]
  %w1 = aten.view.default %w, [4, 3, 8]
  %w3 = aten.view.default %w, [4, 3, 1, 4, 2]
$1
}
END
}
numbers() {
  awk -v n="$1" 'BEGIN { k = split("0000803f 00000040 0000003f 000000bf 0000803e 000080bf 0000c03f", w, " ")
    for (i = 0; i < n; i++) printf "%s", w[int(i * i / 3 + i) % k + 1] }'
}
# NAME X W STRIDE PADDING: a call and its gradients, of the output as it lies and in halves
call() {
  one=$(echo "$4" | sed 's/[0-9]/1/g') none=$(echo "$4" | sed 's/[0-9]/0/g')
  cat <<END
  %y$1 = aten.convolution.default %$2, %$3, %b, $4, $5, $one, false, $none, 1
  %g$1, %h$1, %i$1 = aten.convolution_backward.default %y$1, %$2, %$3, [4], $4, $5, $one, false, $none, 1, [true, true, true]
  %p$1 = aten._to_copy.default %$2, bf16
  %q$1 = aten._to_copy.default %$3, bf16
  %r$1 = aten._to_copy.default %y$1, bf16
  %s$1, %t$1, %u$1 = aten.convolution_backward.default %r$1, %p$1, %q$1, none, $4, $5, $one, false, $none, 1, [true, true, false]
END
}
# NAME..: what calls leave
leave() {
  n=0
  for name; do
    for value in y g h i s t; do echo "  out user_output $n = %$value$name"; n=$((n + 1)); done
  done
}
# PROGRAM PRODUCTS CALLS: counts on the GPU
agree() {
  status 0 "$aothost" run "$root/pipelines/inference.yaml" --model "$1" --outputs expected.st --set vars.backend=backend-ref
  status 0 "$aothost" verify "$root/pipelines/inference.yaml" --model "$1" --expect expected.st --json run.json \
    --set vars.backend=backend-cuda --set run.device=cuda
  tr -d ' \n' < run.json > flat.json
  has flat.json "\"products\":\{\"value\":$2[.,]"
  has flat.json "\"cudnn-calls\":\{\"value\":$3[.,]"
  has flat.json '"host-fallbacks":\{"value":0'
}

program "$(call a x w '[4, 2]' '[0, 0]'; call b xl wl '[4, 2]' '[0, 0]'; call c xl w '[4, 2]' '[0, 0]'; call d x1 w1 '[8]' '[0]'
  call e x3 w3 '[1, 4, 2]' '[0, 0, 0]'; leave a b c d e)" > patches.ir
agree patches.ir 25 0
program "$(call a x w '[4, 1]' '[0, 0]'; call b x w '[4, 3]' '[0, 0]'; call c x w '[4, 2]' '[0, 1]'; leave a b c)" > others.ir
agree others.ir 0 15
finish
