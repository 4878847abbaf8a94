#!/bin/sh
# check_crash.sh AOTHOST PLUGINS HERE: whatever a plugin does, the host names it, puts the program back, leaves a bundle that
# does it again, and ends with status 3.
set -u
aothost=$1; plugins=$2
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
unset AOT_PLUGIN_PATH AOT_LOADER_DEBUG
export HOME="$dir"
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:allow_user_segv_handler=1:handle_abort=0:detect_leaks=0"
P="--plugin-dir $plugins/good --plugin-dir $plugins/hostile"
bad=0
fail() { echo "FAILED: $*"; cat out err; bad=1; }
says() { grep -qF -- "$1" err || fail "$what: does not say: $1"; }
echo "TOY add mul add" > m.toy
"$aothost" opt m.toy $P -o before.ir 2> err > out || fail "the toy model"
cat > p.yaml <<'END'
aot: 1
model: {path: m.toy}
stages:
  - use: toy-fuse
  - use: hostile
    with: {how: "${how}"}
END

# crash HOW TEXT: by pipeline, then again from the bundle
crash() {
  what=$1; rm -rf b again
  "$aothost" opt m.toy $P --use hostile --with "how=$1" --bundle-dir b > out 2> err
  status=$?
  [ $status -eq 3 ] || fail "$1: status $status"
  says "misbehaving plugin hostile 6.6.6: unit hostile 6.6.6 $2"
  cmp -s b/program.ir before.ir || fail "$1: the program was not put back"
  [ -s b/journal.txt ] || fail "$1: no journal"
  grep -q "how: $1" b/pipeline.yaml || fail "$1: the pipeline lacks the option"
  grep -q '"build_id": "beast"' b/info.json || fail "$1: info.json"
  sed -n 's/^  replay: aothost //p' err > replay
  [ -s replay ] || fail "$1: no replay line"
  sh -c "'$aothost' $(cat replay) --bundle-dir again" > out 2> err
  [ $? -eq 3 ] || fail "$1: the bundle does not replay"
  says "misbehaving plugin hostile 6.6.6: unit hostile 6.6.6 $2"
  cmp -s again/program.ir b/program.ir && cmp -s again/journal.txt b/journal.txt || fail "$1: the replay was another one"
}
crash segv "died of SIGSEGV during run"
says "at address 0x40"; says "the last node that it touched"; says "node %2 : f32[2, 3] = toy.add %x, %w"; says "toy.py"
grep -q '"signal": "SIGSEGV"' b/info.json || fail "no signal in info.json"
crash abort "died of SIGABRT during run"
crash fpe "died of SIGFPE during run"
crash ill "died of SIGILL during run"
crash bus "died of SIGBUS during run"
nm "$aothost" 2>/dev/null | grep -q asan || crash stack "died of SIGSEGV during run" # ASan ends the process itself
crash silent "answered status 13 (internal error) to run and did not say why"

# in a pipeline: the line of the stage
what=line
cp m.toy here.toy
"$aothost" run p.yaml $P --set vars.how=segv > out 2> err; [ $? -eq 3 ] || fail "run"
says "p.yaml:5:10: error: misbehaving plugin hostile"
ls -d aothost-bundle-hostile-* > out || fail "no bundle in the current folder"
grep -q '"pipeline": "p.yaml"' aothost-bundle-hostile-*/info.json && grep -q '"line": 5' aothost-bundle-hostile-*/info.json || fail "info.json lacks the line"
rm -rf aothost-bundle-*

# other ends: FLAGS.. STATUS TEXT
other() { # UNIT HOW STATUS TEXT
  what="$1 $2"; rm -rf b
  "$aothost" opt m.toy $P --use "$1" --with "how=$2" --bundle-dir b > out 2> err
  status=$?
  [ $status -eq "$3" ] || fail "$what: status $status, expected $3"
  says "$4"
}
other hostile told 3 "this node is too beautiful"
says "in stage hostile"; says "from module toy.block"; says "hint: make it plainer"
other hostile alloc 3 "the alignment is not a power of two"
other hostile create 3 "died of SIGSEGV during create"
other hostile '"null"' 3 "made no table"
other hostile no-run 3 "made a table that lacks a function"
other hostile refuse 2 "not on a Sunday"
other hostile destroy 3 "died of SIGSEGV during destroy"
other hostile thread 3 "aothost: SIGSEGV in another thread during run of unit hostile"
other hostile-liar nothing 3 "unit hostile-liar 6.6.6 left a broken program behind"
other hostile-maker nothing 3 "unit hostile-maker 6.6.6 broke its contract"
says "operator toy.add was created, which the contract does not allow"
"$aothost" opt m.toy $P --use hostile --with how=nothing > out 2> err || fail "the pass when it behaves"

# an error that a unit tells about leaves a bundle only where one was asked for
what=told; "$aothost" opt m.toy $P --use hostile --with how=told > out 2> err; [ $? -eq 3 ] || fail told
says "stage hostile failed"; says -- "--bundle-dir"
ls -d aothost-bundle-* > out 2> /dev/null && fail "a bundle nobody asked for"
# a bundle that cannot be written is a warning, not another end
what=unwritable; "$aothost" opt m.toy $P --use hostile --with how=segv --bundle-dir /proc/nowhere/b > out 2> err; [ $? -eq 3 ] || fail unwritable
says "cannot make the bundle /proc/nowhere/b"
[ $bad = 0 ] && echo "crashes: contained, named, replayed"
exit $bad
