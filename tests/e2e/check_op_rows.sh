#!/bin/sh
# No operator is half there: each has a shape rule; a kernel of the reference backend, a decomposition or a line in
# ops_without_kernel.txt; a derivative rule, a decomposition or a reason in plugins/autograd/no_rule.def. A line that has become
# untrue fails, too. What draws from a hidden generator has a rule of stage rng instead of a kernel. (plugins/aten's unit_table
# checks rows alone: doc, schema, twin, inverse.)
. "$(dirname "$0")/lib.sh"
status 0 "$aothost" ops --backend backend-ref
# name, group, shape rule, decomposes, gradient, backend
awk 'NR > 1 && $1 ~ /\./ {print $1, $3, $5, $6}' out > rows
[ "$(wc -l < rows)" -gt 700 ] || complain "only $(wc -l < rows) operators"

awk '$2 == "-" {print $1}' rows > bare
[ ! -s bare ] || complain "no shape rule: $(tr '\n' ' ' < bare)"

status 0 "$aothost" ops -v --backend backend-ref
# operators that draw, each with what stage rng has to know: itself, or what it becomes without its write
awk '/^[a-z_0-9]+\./ {sub(/\(.*/, ""); op = form = $0} /^  without the write: / {form = $4} /^  marks .*random/ {print op, form}' out |
  LC_ALL=C sort > random
sed -n 's/^RULE("\([^"]*\)".*/\1/p' "$root/plugins/rng/random_rules.def" | LC_ALL=C sort > explicit
awk 'NR == FNR {knows[$1] = 1; next} knows[$2] {print $1}' explicit random > drawn
awk 'NR > 1 {print $1}' rows | LC_ALL=C sort > names
LC_ALL=C comm -23 explicit names > strange
[ ! -s strange ] || complain "in random_rules.def, but no operator: $(tr '\n' ' ' < strange)"
awk '$4 == "no" {print $1}' rows | LC_ALL=C sort | LC_ALL=C comm -23 - drawn > refused
sed -e 's/ *#.*//' -e '/^$/d' "$root/tests/e2e/ops_without_kernel.txt" | awk '{print $1}' | LC_ALL=C sort > listed
awk 'NF && $1 !~ /^#/ && NF < 2' "$root/tests/e2e/ops_without_kernel.txt" > unexplained
[ ! -s unexplained ] || complain "ops_without_kernel.txt gives no reason for $(tr '\n' ' ' < unexplained)"
LC_ALL=C comm -23 refused listed > missing
[ ! -s missing ] || complain "neither a reference kernel, nor a decomposition, nor a line in ops_without_kernel.txt: $(tr '\n' ' ' < missing)"
LC_ALL=C comm -13 refused listed > stale
[ ! -s stale ] || complain "in ops_without_kernel.txt, but supported or unknown: $(tr '\n' ' ' < stale)"

awk '/^[a-z_0-9]+\./ {sub(/\(.*/, ""); op = $0} /^  gradient by autograd: no:/ {sub(/.*: no: /, ""); print op ": " $0}' out > no
grep ': no rule$' no > unruled && complain "neither a derivative rule, nor a decomposition, nor a row in no_rule.def: $(tr '\n' ' ' < unruled)"
sed -n 's/^NO_RULE("\([^"]*\)".*/\1/p' "$root/plugins/autograd/no_rule.def" | LC_ALL=C sort > left
awk -F': ' '{print $1}' no | LC_ALL=C sort > said
LC_ALL=C comm -23 left said > untrue
[ ! -s untrue ] || complain "in no_rule.def, but with a rule, without need of one, or unknown: $(tr '\n' ' ' < untrue)"
finish
