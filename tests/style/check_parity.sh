#!/bin/sh
# docs/PARITY.md: each feature once, the numbers at the top right, every test that it names in ctest's list, and one named by each
# row that says "same" or "different". check_parity.sh ROOT BUILD
page=$1/docs/PARITY.md
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
complain() { echo "docs/PARITY.md: $*"; failed=1; }

ctest -N --test-dir "$2" 2> /dev/null | sed -n 's/^ *Test *#[0-9]*: //p' | LC_ALL=C sort > "$dir/tests"
[ "$(wc -l < "$dir/tests")" -gt 100 ] || complain "ctest lists only $(wc -l < "$dir/tests") tests"
grep -oE '`[a-z0-9]+_[a-z0-9_]+`' "$page" | tr -d '`' | LC_ALL=C sort -u > "$dir/named"
unknown=$(LC_ALL=C comm -23 "$dir/named" "$dir/tests" | grep -vx set_)
[ -z "$unknown" ] || complain "names tests that are not there: $(echo $unknown)"

grep -E '^\| F[0-9]+ \|' "$page" > "$dir/rows"
seq 60 > "$dir/wanted"
sed -E 's/^\| F([0-9]+) \|.*/\1/' "$dir/rows" | cmp -s - "$dir/wanted" || complain "the rows are not F1 to F60, in order"
bare=$(awk -F' [|] ' '($3 == "same" || $3 == "different") && $4 !~ /`[a-z0-9]+_[a-z0-9_]+`/ {print $1}' "$dir/rows" | tr -d '| ')
[ -z "$bare" ] || complain "no test named by $(echo $bare)"
said=$(grep -oE '^\*\*60 features: .*\.\*\*$' "$page" | tr -d '*.' | sed 's/60 features: //')
counted=$(awk -F' [|] ' '{n[$3]++} END {
  printf "%d same, %d different, %d cannot arise, %d refused, %d missing", n["same"], n["different"], n["cannot arise"], n["refused"], n["missing"]}' "$dir/rows")
[ "$said" = "$counted" ] || complain "says \"$said\", but the rows are $counted"
exit $failed
