#!/bin/sh
# check_compare.sh HERE: a rise of more than 2 % fails, of a stage and of the sum; less does not, nor does a fall. The record has the stages
# that run.sh counts.
set -u
here=$1
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
failed=0
expect() { # STATUS WHAT COUNTS..: of the stages a and b, recorded as 1000 and 100000
  wanted=$1 what=$2; shift 2
  printf 'a 1000\nb 100000\n' > record; printf '# compiler\n' > counts; printf '%s %s\n' "$@" >> counts
  sh "$here/compare.sh" record counts > out; got=$?
  [ $got = "$wanted" ] || { echo "FAILED: $what: status $got"; cat out; failed=1; }
}
expect 0 'equal counts' a 1000 b 100000
expect 0 'a rise of 2 %' a 1020 b 102000
expect 1 'a stage that rises by 2.1 %' a 1021 b 100000
expect 1 'the larger stage' a 1000 b 102100
grep -qE '^b +100000 +102100 +\+2\.10 % +MORE$' out || { echo 'FAILED: the row of b is not marked'; cat out; failed=1; }
expect 0 'a fall' a 500 b 90000
expect 1 'a stage that is missing' a 1000
expect 1 'a stage that is new' a 1000 b 100000 c 1
expect 1 'no counts at all'
stages=$(sed -n 's/^stages="\(.*\)"$/\1/p' "$here/run.sh")
recorded=$(grep -v '^#' "$here/record.txt" | awk '$2 > 0 { printf "%s%s", n++ ? " " : "", $1 }')
[ -n "$stages" ] && [ "$stages" = "$recorded" ] || { echo "FAILED: run.sh counts '$stages', record.txt has '$recorded'"; failed=1; }
[ "$failed" = 0 ] && echo ok
exit "$failed"
