#!/bin/sh
# check_exports.sh DIR: every plugin exports aot_plugin_entry alone and carries its note.
set -eu
n=0
for so in "$1"/*.so; do
  exported=$(nm -D --defined-only "$so" | awk '$2 ~ /[TDBRW]/ {print $3}' | grep -vE '^__(asan|ubsan|odr_asan)' || true)
  [ "$exported" = aot_plugin_entry ] || { echo "$so exports: $exported"; exit 1; }
  readelf -n "$so" 2>/dev/null | grep -q AOT || { echo "$so has no AOT note"; exit 1; }
  n=$((n + 1))
done
[ "$n" -gt 0 ] || { echo "no plugin in $1"; exit 1; }
echo "exports: $n plugins"
