#!/bin/sh
# list_constants.sh DIR: one line CONSTANT(NAME) for each number that the headers of the boundary define: values of enumerations,
# flags, limits. What abi_print.c makes its table of. assert.h, inline.h and float_env.h are no part of the boundary; the minor is the lock's first line.
set -eu
cd "$1"
export LC_ALL=C
for header in aot/*.h aot/ext/*.h; do
  case $header in aot/inline.h | aot/float_env.h | aot/assert.h) continue ;; esac
  sed -nE 's/^#define (AOT_[A-Z0-9_]+) +[-(0-9IU].*/CONSTANT(\1)/p' "$header"
done | grep -v -x 'CONSTANT(AOT_ABI_MINOR)'
