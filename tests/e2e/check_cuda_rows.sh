#!/bin/sh
# Rows of products that are no multiple of 16 bytes, on backend-cuda's double: backend-ref's results, in memory whose rows
# begin at multiples of 128 bytes; what is a result of the program has them side by side.
. "$(dirname "$0")/lib.sh"
program() {
  awk -v dtype="$1" '
function numbers(n, by,   i, text) {
  for (i = 0; i < n; i++) text = text words[int(i * by + i * i / 7) % 8 + 1]
  return text
}
function leaf(k, name, type, n) { printf "leaf %d parameter \"%s\" : f32%s data \"%s\"\n", k, name, type, numbers(n, 2 * k + 1) }
BEGIN {
  split("0000803d 0000003e 000080bd 0000403d 000000bd 0000203e 000040be 0000803e", words, " ")
  print "aot 1\nproperties imported"
  leaf(0, "x", "[64, 40]", 2560); leaf(1, "w", "[523, 40]", 20920); leaf(2, "v", "[523]", 523)
  print "graph @main forward {"
  print "  in %px = parameter 0 : f32[64, 40]\n  in %pw = parameter 1 : f32[523, 40]\n  in %pv = parameter 2 : f32[523]"
  for (i = 1; i <= 3; i++) print "  %" substr("xwv", i, 1) " = aten._to_copy.default %p" substr("xwv", i, 1) ", dtype=" dtype
  print "  %own = aten.linear.default %x, %w, none"
  print "  %deep = aten.view.default %x, [8, 8, 40]"
  print "  %scores = aten.linear.default %deep, %w, %v"
  print "  %rows = aten.view.default %scores, [64, 523]"
  print "  %g = aten._softmax.default %rows, -1, false"
  print "  %t = aten.t.default %g"
  print "  %dw = aten.mm.default %t, %x"
  print "  %dx = aten.mm.default %g, %w"
  print "  %read = aten.mm.default %own, %w"
  print "  out user_output 0 = %dw\n  out user_output 1 = %dx\n  out user_output 2 = %own\n  out user_output 3 = %read\n}"
}' > rows.ir
}
# DTYPE BYTES of the rows apart, and side by side
check() {
  program "$1"
  status 0 "$aothost" run "$root/pipelines/inference.yaml" --model rows.ir --outputs expected.st --set vars.backend=backend-ref
  status 0 "$aothost" verify "$root/pipelines/inference.yaml" --model rows.ir --expect expected.st --json run.json \
    --set vars.backend=backend-cuda --set run.device=cuda
  grep -A1 '"host-fallbacks"' run.json | grep -q '"value": 0' || { complain "products run on the host"; cat out; }
  status 0 "$aothost" inspect "$root/pipelines/inference.yaml" --model rows.ir --memory --top 40 --json plan.json \
    --set vars.backend=backend-cuda --set run.device=cuda
  grep -A2 '"%g"' plan.json | grep -q "\"bytes\": $2" || complain "rows do not lie apart in $1"
  grep -A2 '"%own"' plan.json | grep -q "\"bytes\": $3" || complain "rows of a result lie apart in $1"
}
check f32 139200 133888
check bf16 73664 66944
finish
