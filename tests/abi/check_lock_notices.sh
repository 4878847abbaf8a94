#!/bin/sh
# check_lock_notices.sh HEADERS PRINTER_SOURCE LIST LOCK CC: what the lock is for. In copies of the headers a constant gets another
# number, one goes, a member changes its place, and one is put in between: with each the lock differs.
set -u
headers=$1; source=$2; list=$3; lock=$4; cc=$5
[ "$(uname -m)" = x86_64 ] || { echo "the lock is for x86_64"; exit 0; }
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
bad=0
# changed NAME FILE SED: 0 when the lock notices
changed() {
  rm -rf "$dir/api"; cp -r "$headers" "$dir/api"
  sed -i -E "$3" "$dir/api/$2"
  [ "$1" = nothing ] || ! cmp -s "$headers/$2" "$dir/api/$2" || { echo "$1: nothing was changed"; bad=1; return; }
  sh "$list" "$dir/api" > "$dir/constants.inc"
  "$cc" -std=c11 -I "$dir/api" -I "$dir" "$source" -o "$dir/print" 2> "$dir/err" && "$dir/print" > "$dir/lock" || return 0 # it may not build
  ! cmp -s "$dir/lock" "$lock"
}
changed nothing aot/base.h '' && { echo "the lock is another already"; bad=1; }
changed "a constant renumbered" aot/base.h 's/^(#define AOT_F32) 7$/\1 17/' || { echo "AOT_F32 is renumbered, and the lock fits"; bad=1; }
changed "a flag of another bit" aot/opset.h 's/^(#define AOT_OP_WRITES) 2u/\1 4194304u/' || { echo "AOT_OP_WRITES is another bit, and the lock fits"; bad=1; }
changed "a status renumbered" aot/status.h 's/^(#define AOT_E_INTERNAL) 13$/\1 113/' || { echo "AOT_E_INTERNAL is renumbered, and the lock fits"; bad=1; }
changed "a constant that goes" aot/ext/kernels.h '/^#define AOT_KERNEL_PASSES/d' || { echo "AOT_KERNEL_PASSES is gone, and the lock fits"; bad=1; }
changed "a member in between" aot/ext/kernels.h 's/^(  const aot_kernel_arg_t \*args;)$/  uint64_t between;\n\1/' || { echo "a member is put in between, and the lock fits"; bad=1; }
changed "members exchanged" aot/ext/kernels.h 's/^  uint32_t struct_size, n_args;/  uint32_t n_args, struct_size;/' || { echo "members are exchanged, and the lock fits"; bad=1; }
[ $bad = 0 ] && echo "the lock notices"
exit $bad
