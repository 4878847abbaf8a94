#!/bin/sh
# bench/instructions: instructions that the stages of a compilation execute, counted by valgrind's callgrind and compared with record.txt.
#   bench/instructions/run.sh            builds, counts, compares: status 1 if a stage or the sum rises by more than 2 %
#   bench/instructions/run.sh BUILD      compares what is built in BUILD, as `tools/test release` builds: gcc, Release, no checks
#   bench/instructions/run.sh --update   builds, and writes the counts to record.txt instead
# Status 77: not comparable here (no valgrind, or another compiler than the record's).
set -eu
cd "$(dirname "$0")/../.."
here=bench/instructions build=build-test-release
stages="functionalize rng autograd partition-mincut sgd stitch"
command -v valgrind > /dev/null || { echo "$here: needs valgrind (Debian: apt-get install valgrind)" >&2; exit 77; }
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT

compiler="gcc $(gcc -dumpfullversion) $(uname -m)"
recorded=$(sed -n 's/^# compiler: //p' "$here/record.txt" 2> /dev/null || true)
if [ "${1:-}" != --update ] && [ "$recorded" != "$compiler" ]; then
  echo "$here: record.txt is of $recorded, this is $compiler; $here/run.sh --update records this one" >&2
  exit 77
fi
case "${1:-}" in
  '' | --update)
    cmake -G Ninja -S . -B $build -DCMAKE_C_COMPILER=gcc -DCMAKE_BUILD_TYPE=Release -DAOT_SANITIZE=OFF -DAOT_CHECK_SCHEDULES=OFF > /dev/null
    ninja -C $build --quiet aothost aot_plugins ;;
  *) build=$1 ;;
esac
gcc -std=c11 -O2 bench/scale/generate_stack.c -o "$work/generate_stack"
"$work/generate_stack" 240 dropout > "$work/stack.ir" # 12 layers

# One run: a dump before each stage, which ends the part outside of stages, and one after it, which is the stage.
uses=""
for stage in $stages; do uses="$uses --use $stage"; done
# shellcheck disable=SC2086
AOT_CACHE=off valgrind --tool=callgrind --callgrind-out-file="$work/part" --dump-before=aoth_session_run_stage \
  --dump-after=aoth_session_run_stage "$build/bin/aothost" opt "$work/stack.ir" --isolate none $uses -o /dev/null > "$work/log" 2>&1 ||
  { cat "$work/log" >&2; exit 2; }
count() { sed -n 's/^totals: //p' "$1"; }
n=0
{
  echo "# Instructions by stage; written by $here/run.sh --update, compared by $here/run.sh (README.md)."
  echo "# compiler: $compiler"
  for stage in $stages; do
    n=$((n + 2))
    grep -q '^desc: Trigger: --dump-after' "$work/part.$n" || { echo "$here: aoth_session_run_stage is no function of its own any more" >&2; exit 2; }
    echo "$stage $(count "$work/part.$n")"
  done
} > "$work/counts"
if [ "${1:-}" = --update ]; then cp "$work/counts" $here/record.txt; fi
sh $here/compare.sh $here/record.txt "$work/counts"
