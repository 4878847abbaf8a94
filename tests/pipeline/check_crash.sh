#!/bin/sh
# check_crash.sh AOTHOST PLUGINS HERE: whatever a plugin does, the host names it, puts the program back, leaves a bundle that
# does it again, and ends with status 3.
. "$(dirname "$0")/lib.sh"
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:allow_user_segv_handler=1:handle_abort=0:detect_leaks=0"
P="--plugin-dir $plugins/good --plugin-dir $plugins/hostile --isolate none" # tests/faults has workers
says() { [ -z "$1" ] || grep -qF -- "$1" err || fail "$what: does not say: $1"; }
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
  says "contract violation by plugin hostile 6.6.6: unit hostile 6.6.6 $2"
  cmp -s b/program.ir before.ir || fail "$1: the program was not put back"
  [ -s b/journal.txt ] || fail "$1: no journal"
  grep -q "how: $1" b/pipeline.yaml || fail "$1: the pipeline lacks the option"
  grep -q '"build_id": "beast"' b/info.json || fail "$1: info.json"
  sed -n 's/^  replay: aothost //p' err > replay
  [ -s replay ] || fail "$1: no replay line"
  sh -c "'$aothost' $(cat replay) --bundle-dir again" > out 2> err
  [ $? -eq 3 ] || fail "$1: the bundle does not replay"
  says "contract violation by plugin hostile 6.6.6: unit hostile 6.6.6 $2"
  cmp -s again/program.ir b/program.ir && cmp -s again/journal.txt b/journal.txt || fail "$1: the replay was another one"
}
crash segv "died of SIGSEGV during run"
says "at address 0x40"; says "last node accessed"; says "node %3 : f32[2, 3] = toy.add %x, %w"; says "toy.py"
grep -q '"signal": "SIGSEGV"' b/info.json || fail "no signal in info.json"
crash abort "died of SIGABRT during run"
crash fpe "died of SIGFPE during run"
crash ill "died of SIGILL during run"
crash bus "died of SIGBUS during run"
crash exit "ended the process during run: it called exit()"
grep -q '"signal": null' b/info.json || fail "exit has no signal"
crash _exit "ended the process during run: it called exit()"
nm "$aothost" 2>/dev/null | grep -q asan || { # ASan ends the process itself
  crash stack "died of SIGSEGV during run"
  crash heap "died of SIGABRT during run"
}
crash silent "returned status 13 (internal error) from run without a diagnostic"

# in a pipeline: the line of the stage
what=line
cp m.toy here.toy
"$aothost" run p.yaml $P --set vars.how=segv > out 2> err; [ $? -eq 3 ] || fail "run"
says "p.yaml:5:10: error: contract violation by plugin hostile"
ls -d *bundle* > out 2> /dev/null && fail "a bundle nobody asked for"
"$aothost" run p.yaml $P --set vars.how=segv --bundle-dir b > out 2> err; [ $? -eq 3 ] || fail "run"
grep -q '"pipeline": "p.yaml"' b/info.json && grep -q '"line": 5' b/info.json || fail "info.json lacks the line"

# other ends: FLAGS.. STATUS TEXT
other() { # UNIT HOW STATUS TEXT
  what="$1 $2"; rm -rf b
  "$aothost" opt m.toy $P --use "$1" --with "how=$2" --bundle-dir b > out 2> err
  status=$?
  [ $status -eq "$3" ] || fail "$what: status $status, expected $3"
  says "$4"
}
other hostile told 2 "this node is too beautiful"
says "in stage hostile"; says "from module toy.block"; says "hint: make it plainer"
other hostile alloc 2 "the alignment is not a power of two"
other hostile create 3 "died of SIGSEGV during create"
other hostile '"null"' 3 "returned no table"
other hostile no-run 3 "returned a table that lacks a function"
other hostile refuse 2 "not on a Sunday"
other hostile destroy 3 "died of SIGSEGV during destroy"
other hostile thread 3 "aothost: SIGSEGV in a thread of $plugins/hostile/hostile.so during run of unit hostile"
other hostile exit-thread 3 "aothost: exit in a thread of $plugins/hostile/hostile.so during run of unit hostile"
place="another port stands in its place"
for change in type:"it is of another type than before" gone:"it is gone" role:"$place" index:"$place"; do
  other hostile "port-${change%%:*}" 3 "unit hostile 6.6.6 changed ports that its contract does not list"
  says "forward graph, output user_output 0: ${change#*:}"; says "in stage hostile"
done
for change in dtype:"declared f64[2, 3], its operator gives f32[2, 3]" size:"declared f32[3, 4], its operator gives f32[2, 3]"; do
  other hostile "type-${change%%:*}" 3 "unit hostile 6.6.6 set types that its operators do not infer"
  says "result 0 is ${change#*:}"; says "in stage hostile"
done
other hostile-liar nothing 3 "unit hostile-liar 6.6.6 left an invalid program"
other hostile-maker nothing 3 "unit hostile-maker 6.6.6 broke its contract"
says "operator toy.add was created, which the contract does not allow"
"$aothost" opt m.toy $P --use hostile --with how=nothing > out 2> err || fail "the pass when it behaves"

# partitions, backends and importers that break the rules of their kind
cat > joint.ir <<'END'
aot 1
properties imported functional joint
leaf 0 parameter "w" : f32[2, 3] grad
leaf 1 user_input 0 "x" : f32[2, 3]
graph @main joint {
  in %w = parameter 0 : f32[2, 3]
  in %x = user_input 1 : f32[2, 3]
  in %t = tangent 0 : f32[2, 3]
  %y : f32[2, 3] = toy.mul %x, %w
  %g : f32[2, 3] = toy.mul %t, %x
  out user_output 0 "y" = %y
  out gradient 0 "w" = %g
}
END
wreck() { # FILE UNIT HOW STATUS TEXT
  what="$2 $3"; rm -rf b
  "$aothost" opt "$1" $P --use "$2" --with "how=$3" --bundle-dir b -o after.ir > out 2> err
  status=$?
  [ $status -eq "$4" ] || fail "$what: status $status, expected $4"
  says "$5"
}
wreck joint.ir wrecker-partition no-cut 3 "chose 0 cuts instead of one"
wreck joint.ir wrecker-partition two-cuts 3 "chose 2 cuts instead of one"
wreck joint.ir wrecker-partition bad-value 3 "chose to save a value that is not in the joint graph"
wreck joint.ir wrecker-partition bad-node 3 "chose to recompute a node that is not in the joint graph"
wreck joint.ir wrecker-partition edits 3 "edited the program during choose"
wreck joint.ir wrecker-partition crash 3 "died of SIGSEGV during choose"
wreck joint.ir wrecker-partition fine 3 "left an invalid program"
"$aothost" opt joint.ir $P > before-joint.ir 2> err; cmp -s b/program.ir before-joint.ir || fail "the joint program was not put back"
wreck m.toy wrecker-backend no-reasons 2 "does not support 3 nodes"; says "reason: none given by the backend"
wreck m.toy wrecker-backend no-verdicts 2 "does not support 3 nodes"; says "the backend did not report one"
wreck m.toy wrecker-backend query-edits 3 "edited the program during a query"
wreck m.toy wrecker-backend bad-verdict 0 ""
wreck m.toy wrecker-backend compile-crash 3 "died of SIGBUS during compile"
wreck m.toy wrecker-backend compile-silent 3 "returned status 2 (unknown error) from compile without a diagnostic"
wreck m.toy wrecker-backend load-null 3 "loaded its artifact to nothing"
wreck m.toy wrecker-backend load-no-run 3 "made an executable that this host cannot use"
# An error diagnostic of a run whose work succeeds contradicts it; one of work that fails is the reason, and the backend's right.
for how in fine:0 run-contradicts:3 run-fails:2; do
  what="wrecker-backend ${how%:*}"
  printf 'aot: 1\nmodel: {path: m.toy}\nstages: [{use: toy-functional}, {use: wrecker-backend, with: {how: %s}}]\nrun: {inputs: random}\n' "${how%:*}" > w.yaml
  "$aothost" run w.yaml $P --no-cache > out 2> err; status=$?
  [ $status -eq "${how#*:}" ] || { cat err; fail "$what: status $status"; }
  case $how in
    run-*) says "the kernel failed" ;;
  esac
  contradiction="reported an error during run but returned success"
  if [ "$what" = "wrecker-backend run-contradicts" ]; then says "$contradiction"
  else grep -qF "$contradiction" err && fail "$what: $contradiction"; fi
done
grep -q lowered b/program.ir && fail "a program whose artifact was not loaded counts as lowered"
echo "WRECK quietly" > q.wreck; what=import; "$aothost" opt q.wreck $P > out 2> err; [ $? -eq 3 ] || fail "a broken import"
says "unit wrecker-import 1 produced an invalid program"; says "the program has no forward graph"
echo "WRECK crash" > c.wreck; "$aothost" opt c.wreck $P --bundle-dir b2 > out 2> err; [ $? -eq 3 ] || fail "a crashing import"
says "unit wrecker-import 1 died of SIGSEGV during read"; grep -q '"replay": null' b2/info.json || fail "an importer cannot be replayed"

# an error that a unit tells about is no failure of the unit
what=told; "$aothost" opt m.toy $P --use hostile --with how=told > out 2> err; [ $? -eq 2 ] || fail told
says "stage hostile failed"; says -- "--bundle-dir"
ls -d *bundle* > out 2> /dev/null && fail "a bundle nobody asked for"
# a bundle that cannot be written is a warning, not another end
what=unwritable; "$aothost" opt m.toy $P --use hostile --with how=segv --bundle-dir /proc/nowhere/b > out 2> err; [ $? -eq 3 ] || fail unwritable
says "cannot write the bundle /proc/nowhere/b"
[ $bad = 0 ] && echo "crashes: contained, named, replayed"
exit $bad
