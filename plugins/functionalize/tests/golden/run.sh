#!/bin/sh
# Goldens: the first line of F.ir names a command, F.expect holds what it prints, errors included.
#
#     run.sh AOTHOST FOLDER [--save] [NAME...]
#
# In the line, `aothost` is AOTHOST and %s is the file:   ; RUN: aothost opt %s --use functionalize
# --save writes the .expect files instead of comparing.
aothost=$1; cd "$2" || exit 2; shift 2
save=0
[ "${1:-}" = --save ] && { save=1; shift; }
[ $# -gt 0 ] || set -- *.ir
got=$(mktemp)
trap 'rm -f "$got"' EXIT
n=0; failed=0
for name; do
  file=${name%.ir}.ir; expect=${name%.ir}.expect
  command=$(sed -n '1s/^; RUN: aothost //p' "$file" | sed "s|%s|$file|g")
  [ -n "$command" ] || { echo "FAILED $file: its first line is no '; RUN: aothost ...'"; failed=$((failed + 1)); continue; }
  "$aothost" $command > "$got" 2>&1
  n=$((n + 1))
  if [ $save = 1 ]; then cp "$got" "$expect"
  elif ! diff -u "$expect" "$got"; then echo "FAILED $file"; failed=$((failed + 1)); fi
done
echo "$n goldens, $failed failed"
[ $failed = 0 ] && [ $n -gt 0 ]
