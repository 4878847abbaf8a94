#!/bin/sh
# Plugins that are none or that misbehave, between the real ones, on a real model: status 3 (a file that cannot be taken: 2 or 3), the
# plugin, the unit, the pipeline's line, the last node; nothing written but a bundle that does it again.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/bad.sh"
plugins=$5; m=$models/mlp/train.pt2
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:allow_user_segv_handler=1:handle_abort=0:detect_leaks=0"
unset AOT_PLUGIN_PATH AOT_LOADER_DEBUG

# ---- files that are almost plugins ----
with() { "$aothost" opt "$m" -o o.ir --use functionalize --plugin-dir "$1" --use "$2"; }
echo 'not a plugin' > text.so; head -c 5000 "$plugins/hostile/hostile.so" > cut.so; : > empty.so
refuse 2 'No such file or directory' 'nowhere.so' with nowhere.so hostile
refuse 2 'not an ELF file' '/text.so' with text.so hostile
refuse 2 'not an ELF file' '/empty.so' with empty.so hostile
refuse 2 'truncated file' '/cut.so' with cut.so hostile
refuse 2 'it has no AOT note' "$plugins/bad/bad_no_note.so" with "$plugins/bad/bad_no_note.so" bad-no-note
refuse 3 'it has a note but no entry function' "$plugins/bad/bad_no_entry.so" with "$plugins/bad/bad_no_entry.so" bad-no-entry
refuse 3 'requires ABI 1.9 or later' "$plugins/bad/bad_newer.so" with "$plugins/bad/bad_newer.so" bad-newer

# ---- a stage that misbehaves ----
cat > p.yaml <<'YAML'
aot: 1
vars: {use: hostile, how: nothing}
stages:
  - use: functionalize
  - use: ${use}
    with: {how: "${how}"}
  - use: backend-ref
run: {inputs: random, outputs: o.st}
YAML
bad() { "$aothost" run p.yaml --model "$m" --plugin-dir "$plugins/hostile" "$@"; }
status 0 bad; rm -f o.st
# misbehaves UNIT HOW END TEXT: told, undone, kept; and the same again from the bundle
misbehaves() {
  rm -rf b again; ls -A > before
  status 3 bad --set "vars.use=$1" --set "vars.how=$2" --bundle-dir b
  no_report "$1 $2"
  says "^p\.yaml:5:10: error: contract violation by plugin hostile 6\.6\.6: unit $1 6\.6\.6 $4"
  ls -A | grep -vx b > after; cmp -s before after || { complain "$1 $2 left behind:"; diff before after; }
  has b/info.json "\"end\": \"$3\""; has b/info.json "\"unit\": \"$1\""; has b/info.json '"line": 5'
  cmp -s b/program.ir whole.ir || complain "$1 $2: the program was not put back"
  sed -n 's/^  replay: aothost //p' out > replay
  [ -s replay ] || complain "$1 $2: no replay line"
  says "last node accessed"
  status 3 sh -c "'$aothost' $(cat replay) --bundle-dir again"
  says "unit $1 6\.6\.6 $4"
  for f in program.ir journal.txt; do same b/$f again/$f; done
}
status 0 "$aothost" opt "$m" --use functionalize -o whole.ir
misbehaves hostile segv crashed 'died of SIGSEGV during run'
"$aothost" run p.yaml --model "$m" --plugin-dir "$plugins/hostile" --set vars.how=segv --bundle-dir b > out 2>&1
says 'last node accessed'; says 'node %linear : f32\[8, 32\] = aten\.linear\.default %x, '; says 'from module m\.0'
has b/info.json '"signal": "SIGSEGV"'; has b/info.json '"last_node": [0-9]'
misbehaves hostile abort crashed 'died of SIGABRT during run'
misbehaves hostile fpe crashed 'died of SIGFPE during run'
misbehaves hostile silent silent 'returned status 13 \(internal error\) from run without a diagnostic'
misbehaves hostile-liar nothing broken 'left an invalid program'
rm -rf b again

# without --bundle-dir nothing is left behind
ls -A | grep -vx out > before
status 3 bad --set vars.how=segv
says 'rerun with --bundle-dir DIR to save a reproduction'
ls -A | grep -vx out > after; same before after
# a unit that explains its failure is no misbehaviour: its words, its node, its line
refuse 2 'this node is too beautiful' 'in stage hostile (p.yaml:5)' bad --set vars.how=told
says 'from module m\.0, node linear'
refuse 2 'not on a Sunday' 'p.yaml' bad --set vars.how=refuse
finish
