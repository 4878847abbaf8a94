#!/bin/sh
# operators_doc.sh AOTHOST ROOT OUT [CURRENT]: writes docs/OPERATORS.md to OUT, with the plugins beside AOTHOST and no others; with
# CURRENT, fails when that file is another.
set -eu
aothost=$1; root=$2; out=$3
unset AOT_PLUGIN_PATH
HOME=/nonexistent "$aothost" ops --cases "$root/tests/fixtures/ops/cases.json" --backend backend-ref --backend backend-cpu \
  --markdown "$out"
[ $# -gt 3 ] || exit 0
cmp -s "$out" "$4" && exit 0
diff -u "$4" "$out" | sed -n 3,40p | cut -c1-200
echo "docs/OPERATORS.md is not what the code says: cmake --build BUILD --target operators_doc"
exit 1
