#!/bin/sh
# A wide result that is made, read and forgotten row by row runs in chunks of rows on backend-cuda's double: the results are
# those of whole rows, and the plan is smaller by what the rows of other chunks take.
. "$(dirname "$0")/lib.sh"
# DTYPE COLUMNS [MORE]: 8,192 rows of scores, their loss and its gradient, as a training step has them; a quarter of the
# targets count for nothing, those of the first rows; MORE: lines of the graph
program() {
  awk -v dtype="$1" -v columns="$2" -v more="$3" '
function numbers(n, by,   i, text) {
  for (i = 0; i < n; i++) text = text words[int(i * by + i * i / 7) % 8 + 1]
  return text
}
function leaf(k, name, sizes, n) { printf "leaf %d parameter \"%s\" : f32%s data \"%s\"\n", k, name, sizes, numbers(n, 2 * k + 1) }
BEGIN {
  split("0000803e 0000003f 000080be 0000403e 000000bf 0000203f 000040bf 0000803f", words, " ")
  print "aot 1\nproperties imported"
  leaf(0, "x", "[8, 1024, 4]", 32768); leaf(1, "w", "[" columns ", 4]", 4 * columns); leaf(2, "v", "[" columns "]", columns)
  printf "leaf 3 parameter \"labels\" : i64[8192] data \""
  for (i = 0; i < 8192; i++) printf i < 2048 ? "9cffffffffffffff" : "0%d00000000000000", i % 7
  print "\"\ngraph @main forward {"
  print "  in %px = parameter 0 : f32[8, 1024, 4]\n  in %pw = parameter 1 : f32[" columns ", 4]\n  in %pv = parameter 2 : f32[" columns "]"
  print "  in %labels = parameter 3 : i64[8192]"
  for (i = 1; i <= 3; i++) print "  %" substr("xwv", i, 1) " = aten._to_copy.default %p" substr("xwv", i, 1) ", dtype=" dtype
  print "  %scores = aten.linear.default %x, %w, %v"
  print "  %rows = aten.view.default %scores, [-1, " columns "]"
  print "  %wide = aten._to_copy.default %rows, dtype=f32"
  print "  %loss = aten.cross_entropy_loss.default %wide, %labels, none, 1, -100, 0.0"
  print "  %one = aten.full.default [], 1.0, dtype=f32"
  print "  %dwide = aot.cross_entropy_loss_backward.default %one, %wide, %labels, none, 1, -100, 0.0"
  print "  %g = aten._to_copy.default %dwide, dtype=" dtype
  print "  %dx = aten.mm.default %g, %w"
  print "  %t = aten.t.default %g"
  print "  %flat = aten.view.default %x, [8192, 4]"
  print "  %dw = aten.mm.default %t, %flat"
  print "  %deep = aten.view.default %g, [8, 1024, " columns "]"
  print "  %dv = aten.sum.dim_IntList %deep, [0, 1], false"
  print "  out user_output 0 = %loss\n  out user_output 1 = %dx\n  out user_output 2 = %dw\n  out user_output 3 = %dv"
  print more "}"
}' > head.ir
}
cuda='--set vars.backend=backend-cuda --set run.device=cuda'
run() { # COMMAND CHUNK-BYTES ARGUMENTS..
  command=$1 bytes=$2; shift 2
  # shellcheck disable=SC2086
  status 0 "$aothost" "$command" "$root/pipelines/inference.yaml" --model head.ir $cuda --json run.json \
    --set stages.backend-cuda.chunk-bytes="$bytes" "$@"
  chunks=$(number row-chunks)
}
number() { tr -d ' \n' < run.json | sed -n "s/.*\"$1\":{\"value\":\([-0-9.e+]*\).*/\1/p" | sed 's/\.0$//'; }

# DTYPE COLUMNS BYTES-OF-A-ROW BYTES-OF-SUMS-AS-FLOATS: two chunks, by the number of rows, though bytes would be more
check() {
  program "$1" "$2" ""
  run run 0 --outputs whole.st
  [ "$chunks" = 0 ] || complain "$chunks chunks that nobody wants"
  whole=$(number arena-bytes)
  run verify 1KiB --expect whole.st
  [ "$chunks" = 2 ] || complain "$chunks chunks instead of 2 in $1"
  less=$(number arena-bytes)
  saved=$((whole - less)) half=$((4096 * $3 - $4))
  [ "$saved" -le $((half + 4096)) ] && [ "$saved" -ge $((half - 4096)) ] ||
    complain "$1: $whole bytes in one, $less in chunks, and half of the scores is $half"
}
check f32 257 1152 0
check bf16 24 48 432

# nobody but the chain reads the scores, or they stay whole; and so do those that are small
program f32 24 "  out user_output 4 = %scores
"
run run 1KiB
[ "$chunks" = 0 ] || complain "scores that the program returns are made in chunks"
program f32 24 ""
run run 768KiB
[ "$chunks" = 0 ] || complain "scores of 768 KiB are made in chunks of that size"
finish
