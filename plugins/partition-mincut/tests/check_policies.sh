#!/bin/sh
# The option policies on a model: it changes what is saved and not one bit of a gradient; a malformed rule is an error with its place, a
# rule that decides on nothing is told. check_policies.sh AOTHOST MODEL.pt2
aothost=$1; model=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export AOT_CACHE=off # what a choice tells is not told again by an entry of the cache
failed=0
complain() { echo "FAILED: $*"; failed=1; }

run() { # NAME POLICIES
  cat > p.yaml <<P
aot: 1
stages:
  - use: functionalize
  - use: autograd
  - {use: partition-mincut, with: {policies: "$2"}}
  - use: backend-ref
run: {inputs: random}
P
  "$aothost" run p.yaml --model "$model" --grads --outputs "$1.safetensors" --json "$1.json" > out 2>&1 || { complain "$2"; tail -5 out; }
  sed -n '/"saved-bytes"/{n;s/[^0-9]*\([0-9]*\).*/\1/p;}' "$1.json" > "$1.bytes"
  [ "$1" = plain ] || cmp -s plain.safetensors "$1.safetensors" || complain "$2: other bits"
}
less() { [ "$(cat "$1.bytes")" -lt "$(cat "$2.bytes")" ] || complain "$1 saves $(cat "$1.bytes"), $2 saves $(cat "$2.bytes")"; }

run plain ""
run saved "save op aten.*"
run light "recompute module blocks.*"
run layers "recompute module blocks.* allow-heavy"
run all "recompute op * allow-heavy"
less plain saved; less light plain; less layers light; less all layers
run mixed "save module blocks.0; recompute module blocks.* allow-heavy"
less layers mixed; less mixed plain
run idle "save op aten.nothing"
grep -q 'rule 1, "save op aten.nothing", decides on no node' out || complain "an idle rule is not told"
cmp -s plain.bytes idle.bytes || complain "an idle rule changes what is saved"

sed -i 's/policies: .*"/policies: "save op a; recompute modul b"/' p.yaml
"$aothost" run p.yaml --model "$model" > out 2>&1 && complain "a malformed rule is taken"
grep -q 'rule 2, "recompute modul b": after save or recompute comes op, module or region' out || complain "a malformed rule is not named"
grep -q '^p.yaml:5:' out || complain "its place is not told"
[ "$failed" = 0 ] && echo "saved bytes: plain $(cat plain.bytes), layers $(cat layers.bytes), all $(cat all.bytes)"
exit $failed
