#!/bin/sh
# check_rules.sh ROOT: the rules of conform and the sections of docs/CONFORM.md are the same, in the same order, numbers growing.
set -eu
cd "$1"
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
sed -n 's/^RULE(\([0-9]*\), \([a-z_]*\),.*/\1 \2/p' sdk/conform/conform_rules.def | tr _ - > "$dir/rules"
sed -n 's/^\*\*\([0-9]*\) \([a-z-]*\)\.\*\*.*/\1 \2/p' docs/CONFORM.md > "$dir/page"
[ "$(wc -l < "$dir/rules")" -ge 20 ] || { echo "only $(wc -l < "$dir/rules") rules are read"; exit 1; }
sort -n -u -k1,1 "$dir/rules" | cmp -s - "$dir/rules" || { echo "numbers of rules do not grow"; exit 1; }
diff "$dir/rules" "$dir/page" || { echo "docs/CONFORM.md (right) has other rules than conform_rules.def"; exit 1; }
echo "$(wc -l < "$dir/rules") rules, each with its section"
