#!/bin/sh
# check_circles.sh BUILD: files of the host call each other in one direction. Read off the symbols of its objects: who defines, who asks.
set -eu
pairs=$(mktemp); trap 'rm -f "$pairs"' EXIT
nm -A "$1"/host/libaothost.a "$1"/host/libaothost_tools.a 2> /dev/null | awk '
  NF < 2 { next }
  { split($1, at, ":"); file = at[2]; kind = $(NF - 1); name = $NF }
  kind ~ /^[TDBR]$/ { owner[name] = file }
  kind == "U" { asks[++n] = file; asked[n] = name }
  END { for (i = 1; i <= n; i++) if (asked[i] in owner && owner[asked[i]] != asks[i]) print asks[i], owner[asked[i]] }' |
  sort -u > "$pairs"
[ "$(wc -l < "$pairs")" -gt 100 ] || { echo "circles: only $(wc -l < "$pairs") calls between files were found"; exit 1; }
if ! loops=$(tsort "$pairs" 2>&1 > /dev/null); then
  echo "circles: these files call each other in a loop:"
  echo "$loops" | sed -n 's|^tsort: \([a-z_]*\)\.c\.o$|  \1.c|p' | sort -u
  exit 1
fi
echo "circles: none in $(wc -l < "$pairs") calls between files"
