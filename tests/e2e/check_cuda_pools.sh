#!/bin/sh
# Gradients of pools on backend-cuda's double: windows that overlap, are dilated, padded, cut off and apart, images that lie
# in both orders and hold NaN, infinities and equal numbers. Backend-ref's results, none of them on the host; the order in
# which an image lies costs no copies.
. "$(dirname "$0")/lib.sh"

# N numbers, the Kth of WORDS at most
numbers() {
  awk -v n="$1" -v words="$2" 'BEGIN { k = split(words, w, " "); for (i = 0; i < n; i++) printf "%s", w[int(i * i / 5 + i / 3) % k + 1] }'
}
plain='0000803f 00000040 0000003f 00004040 0000803e'
least=000080ff most=0000807f nan=0000c07f
n=0
node() { n=$((n + 1)); echo "  %n$n = $1" >> nodes; }
result() { node "$1"; echo "  out user_output $((n_outputs)) = %n$n" >> outputs; n_outputs=$((n_outputs + 1)); }

# LAYOUT HEIGHT WIDTH of the pooled image, KERNEL STRIDE PADDING, DILATION, CEIL_MODE
pools() {
  node "aten.slice.Tensor %g, 2, 0, $2"
  node "aten.slice.Tensor %n$n, 3, 0, $3"
  node "aten.clone.default %n$n, memory_format=$1"
  of="%n$n"
  for image in x l; do
    node "aten.clone.default %$image, memory_format=$1"
    in="%n$n"
    result "aot.max_pool2d_backward.default $of, $in, $4, $5, $6"
    node "aten.max_pool2d_with_indices.default $in, $4, $5, $6"
    sed -i "s/^  %n$n = /  %v$n, %n$n = /" nodes
    result "aten.max_pool2d_with_indices_backward.default $of, $in, $4, $5, $6, %n$n"
  done
  [ "$5" = '[1, 1]' ] || return 0
  result "aten.avg_pool2d_backward.default $of, $in, $4, $6, true, none"
  result "aten.avg_pool2d_backward.default $of, $in, $4, $6, false, none"
}
program() {
  {
    echo 'aot 1'
    echo 'properties imported'
    echo "leaf 0 parameter \"x\" : f32[2, 3, 11, 9] data \"$(numbers 594 "$plain $least $plain $most $nan")\""
    echo "leaf 1 parameter \"l\" : f32[2, 3, 11, 9] data \"$(numbers 297 "$plain")$(numbers 297 $least)\""
    echo "leaf 2 parameter \"g\" : f32[2, 3, 11, 9] data \"$(numbers 594 "$plain")\""
    echo 'graph @main forward {'
    for leaf in 0x 1l 2g; do echo "  in %${leaf#?} = parameter ${leaf%?} : f32[2, 3, 11, 9]"; done
    cat nodes outputs
    echo '}'
  } > "$1"
}

for layout in contiguous channels_last; do
  : > nodes; : > outputs; n_outputs=0
  while IFS=';' read -r height width window dilation ceil; do
    pools $layout "$height" "$width" "$window" "$dilation" "$ceil"
  done <<END
6;5;[3, 3], [2, 2], [1, 1];[1, 1];false
5;4;[3, 3], [2, 2], [0, 0];[1, 1];false
6;5;[2, 2], [2, 2], [0, 0];[1, 1];true
11;9;[3, 3], [1, 1], [1, 1];[1, 1];false
4;9;[2, 3], [3, 1], [0, 1];[1, 1];false
5;4;[3, 2], [2, 2], [1, 0];[2, 2];false
4;3;[3, 5], [3, 5], [1, 2];[1, 1];true
END
  program pools.ir
  status 0 "$aothost" run "$root/pipelines/inference.yaml" --model pools.ir --outputs expected.st --set vars.backend=backend-ref
  for target in "backend-cpu" "backend-cuda --set run.device=cuda"; do
    # shellcheck disable=SC2086
    status 0 "$aothost" verify "$root/pipelines/inference.yaml" --model pools.ir --expect expected.st --json $layout.json \
      --set vars.backend=$target
  done
  grep -A1 '"host-fallbacks"' $layout.json | grep -q '"value": 0' || { complain "pools run on the host"; cat out; }
done
loop_bytes() { grep -A1 '"loop-bytes"' "$1" | sed -n 's/.*"value": \([0-9]*\).*/\1/p'; }
awk "BEGIN { exit !($(loop_bytes channels_last.json) < 1.1 * $(loop_bytes contiguous.json)) }" ||
  complain "channels last, loops move $(loop_bytes channels_last.json) bytes, else $(loop_bytes contiguous.json)"
finish
