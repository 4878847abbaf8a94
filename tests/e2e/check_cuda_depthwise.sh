#!/bin/sh
# Depthwise convolutions channels last on backend-cuda's double, forward and backward, run by kernels of their own:
# backend-ref's results. Images that lie otherwise, windows that step further and channels that are no pairs are cuDNN's.
. "$(dirname "$0")/lib.sh"

numbers() {
  awk -v n="$1" 'BEGIN { k = split("0000803f 00000040 0000003f 000000bf 0000803e 000080bf 0000c03f", w, " ")
    for (i = 0; i < n; i++) printf "%s", w[int(i * i / 3 + i) % k + 1] }'
}
# NAME CHANNELS HEIGHT WIDTH WINDOW PADDING STRIDE LAYOUT: three numbers a leaf are enough for all that follow
call() {
  name=$1 image="[2, $2, $3, $4]" window="[$2, 1, ${5%x*}, ${5#*x}]" convolution="[$7, $7], [${6%x*}, ${6#*x}], [1, 1], false, [0, 0], $2"
  for dtype in f32 bf16; do
    cat <<END
  %x$name = aten.as_strided.default %numbers, $image, [$(($2 * $3 * $4 / 7)), 5, 3, 1]
  %w$name = aten.as_strided.default %numbers, $window, [49, 49, 7, 1], 11
  %b$name = aten.as_strided.default %numbers, [$2], [2], 5
  %i$name = aten._to_copy.default %x$name, $dtype, memory_format=$8
  %v$name = aten._to_copy.default %w$name, $dtype, memory_format=contiguous
  %c$name = aten._to_copy.default %b$name, $dtype
  %y$name = aten.convolution.default %i$name, %v$name, %c$name, $convolution
  %g$name, %h$name, %o$name = aten.convolution_backward.default %y$name, %i$name, %v$name, [$2], $convolution, [true, true, true]
END
    for value in y g h o; do echo "  out user_output $((n_outputs)) = %$value$name" >> outputs; n_outputs=$((n_outputs + 1)); done
    name=$name.
  done
}
# CUDNN-CALLS: reads calls, a line each
agree() {
  : > outputs; : > calls; n_outputs=0
  while read -r line; do
    # shellcheck disable=SC2086
    call $line >> calls
  done
  {
    echo 'aot 1'
    echo 'properties imported'
    echo "leaf 0 parameter \"numbers\" : f32[9000] data \"$(numbers 9000)\""
    echo 'graph @main forward {'
    echo '  in %numbers = parameter 0 : f32[9000]'
    cat calls outputs
    echo '}'
  } > depthwise.ir
  status 0 "$aothost" run "$root/pipelines/inference.yaml" --model depthwise.ir --outputs expected.st --set vars.backend=backend-ref
  status 0 "$aothost" verify "$root/pipelines/inference.yaml" --model depthwise.ir --expect expected.st --json run.json \
    --set vars.backend=backend-cuda --set run.device=cuda
  tr -d ' \n' < run.json > flat.json
  has flat.json "\"cudnn-calls\":\{\"value\":$1[.,]"
  has flat.json '"host-fallbacks":\{"value":0'
}

agree 0 <<END
a 8 7 7 7x7 3x3 1 channels_last
b 16 5 8 3x3 1x1 1 channels_last
c 32 6 5 3x5 0x2 1 channels_last
d 24 9 17 2x3 0x1 1 channels_last
e 128 3 4 3x3 1x1 1 channels_last
END
agree 24 <<END
a 8 7 7 3x3 1x1 1 contiguous
b 8 7 7 3x3 1x1 2 channels_last
c 6 7 7 3x3 1x1 1 channels_last
d 8 12 9 9x3 4x1 1 channels_last
END
finish
