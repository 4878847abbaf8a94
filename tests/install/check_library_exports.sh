#!/bin/sh
# check_library_exports.sh LIBRARY HEADERS: libaothost.so exports the functions of its headers and no others, and names its major version.
set -eu
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
nm -D --defined-only "$1" | awk '$2 != "A" {print $3}' | sed 's/@.*//' | grep -vE '^__(asan|ubsan|odr_asan)' | sort > "$tmp/exported"
grep -ohE '\baothost_[a-z_]+\(' "$2"/*.h | tr -d '(' | sort -u > "$tmp/mentioned"
if ! diff "$tmp/mentioned" "$tmp/exported"; then echo "the headers (<) and the library (>) differ"; exit 1; fi
readelf -d "$1" | grep -q 'SONAME.*\[libaothost\.so\.[0-9]*\]' || { echo "no SONAME"; exit 1; }
echo "exports: $(wc -l < "$tmp/exported") functions"
