#!/bin/sh
# check_life.sh AOTHOST PLUGINS HERE: what a plugin does when it is opened, in a call in the host's own process, and after its calls,
# never ends the command with status 0, and is told with its name (life_faults.def).
set -u
aothost=$1; plugins=$2; here=$3
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
unset AOT_PLUGIN_PATH AOT_LOADER_DEBUG AOT_SUPERVISE
export HOME="$dir" AOT_CACHE=off AOT_LOAD_TIMEOUT=2
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:allow_user_segv_handler=1:handle_abort=0:detect_leaks=0"
bad=0 n=0 name=all
fail() { echo "FAILED: $name: $*"; cat out err; bad=1; }
says() { grep -qF -- "$1" err || fail "does not say: $1"; }
cat > p.yaml <<'END'
aot: 1
model: {path: program.ir}
stages:
  - {use: faulty-life, isolate: none}
  - use: backend-ref
END
# products that are below the normal numbers
cat > program.ir <<'END'
aot 1
properties imported functional
leaf 0 user_input 0 "x" : f32[4]
graph @main forward {
  in %x = user_input 0 : f32[4]
  %a : f32[4] = aten.mul.Scalar %x, 1e-25
  %b : f32[4] = aten.mul.Scalar %a, 1e-15
  %c : f32[4] = aten.mul.Scalar %b, 1e+20
  out user_output 0 = %c
}
END
run() { FAULTY_LIFE=$name "$aothost" run p.yaml --plugin-dir "$plugins" --inputs random --outputs "$name.st" > out 2> err < /dev/null; }
# What a sanitizer does in a plugin's place: it has exit handlers of its own, which a probe leaves out.
skipped=" "
nm "$aothost" 2>/dev/null | grep -q '[at]san' && skipped=" load-atexit load-atexit-loop load-destructor "

sed -n 's/^LIFE_FAULT("\([^"]*\)", \([0-9]\), "\(.*\)")$/\1|\2|\3/p' "$here/life_faults.def" > faults
while IFS='|' read -r name status text; do
  case "$skipped" in *" $name "*) continue ;; esac
  n=$((n + 1))
  run; got=$?
  [ $got -eq "$status" ] || fail "status $got, expected $status"
  [ -z "$text" ] || says "$text"
  [ "$name" = none ] || grep -q 'faulty_life.so\|plugin faulty-life' err || fail "names no plugin"
  [ "$status" -ne 0 ] || cmp -s none.st "$name.st" || fail "other results"
done < faults
name=all; [ $n -ge 20 ] || fail "$n faults only"

# A file that was opened once without a fault is not tried again, and another one is.
export AOT_CACHE='' AOT_CACHE_DIR="$dir/cache"
name=none; run || fail "not run"
ls cache/units | grep -q '^opened-' || fail "what was harmless is not noted"
name=load-environment; run || fail "it is tried again"
mkdir other && { cat "$plugins/faulty_life.so"; echo x; } > other/faulty_life.so
FAULTY_LIFE=$name "$aothost" run p.yaml --plugin-dir other --inputs random > out 2> err; [ $? -eq 3 ] || fail "another file is not tried"
says "it left another environment"
export AOT_CACHE=off

# None of its code runs where a lock leaves it out.
name=load-exit
echo "$(printf %064d 0)  other.so" > other.lock
FAULTY_LIFE=$name "$aothost" run p.yaml --plugin-dir "$plugins" --locked other.lock > out 2> err; [ $? -eq 3 ] || fail "it is opened"
says "is not listed in other.lock"

# Signals and statuses are as they are without a second process.
for signal in INT TERM HUP KILL; do
  name=$signal
  FAULTY_LIFE=late "$aothost" run p.yaml --plugin-dir "$plugins" --inputs random > out 2> err < /dev/null & pid=$!
  n=0; while [ ! -s started ] && [ $n -lt 100 ]; do sleep 0.05; n=$((n + 1)); done
  kill -s "$signal" $pid; wait $pid; got=$?
  case $signal in INT) want=130 ;; TERM) want=143 ;; HUP) want=129 ;; KILL) want=137 ;; esac
  [ $got -eq $want ] || fail "status $got, expected $want"
  work=$(cat started); n=0; while kill -0 "$work" 2> /dev/null && [ $n -lt 100 ]; do sleep 0.05; n=$((n + 1)); done
  kill -0 "$work" 2> /dev/null && fail "the process that works goes on"
  rm -f started
done

# Standard streams that are closed: nothing that is opened gets their numbers.
name=closed
FAULTY_LIFE=none "$aothost" run p.yaml --plugin-dir "$plugins" --inputs random --outputs closed.st 0<&- 1>&- 2>&-; got=$?
: > out; : > err
[ $got -eq 0 ] || fail "status $got"
cmp -s none.st closed.st || fail "another file"
[ $bad = 0 ] && echo "faults outside of calls: told, named"
exit $bad
