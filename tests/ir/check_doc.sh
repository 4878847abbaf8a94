#!/bin/sh
# check_doc.sh AOTHOST PAGE: every ```aot block of the page is a program that parses, verifies and prints as it stands.
set -eu
host=$1; page=$2
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
awk -v dir="$work" '/^```aot$/ { n++; on = 1; next } /^```$/ { on = 0 } on { print > (dir "/" n ".ir") }' "$page"
count=0
for program in "$work"/*.ir; do
  "$host" opt "$program" > "$program.out"
  cmp "$program" "$program.out" || { diff "$program" "$program.out"; exit 1; }
  count=$((count + 1))
done
[ "$count" -gt 0 ] || { echo "no programs in $page"; exit 1; }
echo "$count programs print as they stand"
