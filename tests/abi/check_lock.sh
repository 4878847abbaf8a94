#!/bin/sh
# check_lock.sh PRINTER LOCK: fails when a struct of the boundary changed. To accept an append: run the printer into the lock.
set -eu
[ "$(uname -m)" = x86_64 ] || { echo "the lock is for x86_64"; exit 0; }
"$1" | diff -u "$2" - || { echo "ABI changed: appends only, with a higher AOT_ABI_MINOR, then: $1 > $2" >&2; exit 1; }
