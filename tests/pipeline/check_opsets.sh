#!/bin/sh
# check_opsets.sh AOTHOST PLUGINS HERE: only the opsets that a program needs are opened. Those here end the process, fail, or bring
# operators that are not theirs; some claim the namespace `stray`, some say nothing.
. "$(dirname "$0")/lib.sh"
export AOT_CACHE_DIR="$dir/cache"
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:allow_user_segv_handler=1:handle_abort=0:detect_leaks=0"
quiet() { [ ! -s err ] || fail "$what: is not silent"; }

program() { # OPERATOR FILE
  cat > "$2" <<END
aot 1
properties imported

leaf 0 user_input 0 "x" : f32[4]

graph @main forward {
  in %x = user_input 0 : f32[4]
  %y : f32[4] = $1 %x
  out user_output 0 = %y
}
END
}
program aten.relu.default plain.ir
program stray.f.default stray.ir
program nobodys.f.default nobodys.ir
cat > plain.yaml <<'END'
aot: 1
model: {path: plain.ir}
stages: [{use: functionalize}, {use: backend-ref}]
END
ends 0 opt plain.ir -o want.ir

# Not needed: as if they were not there, by every command that reads a program.
for name in stray_exit stray_crash stray_loading stray_fail stray_liar silent_exit silent_crash silent_loading silent_fail silent_liar silent_twice; do
  P="--plugin-dir $plugins/$name"
  ends 0 opt plain.ir $P -o got.ir; quiet
  cmp -s want.ir got.ir || fail "$name: another program"
  ends 0 inspect plain.ir $P; quiet
  ends 0 inspect "$here/../fixtures/models/mlp/core.pt2" $P; quiet
  ends 0 run plain.yaml --inputs random $P; quiet # the second time out of the cache
done

# The compile cache: a program's key has no opset that it does not need, and a hit opens those that it needs.
tv=$here/../../plugins/torchvision-ops/tests/models/align
cat > vision.yaml <<'END'
aot: 1
stages: [{use: functionalize}, {use: autograd}, {use: partition-default}, {use: backend-ref}]
END
vision() { ends 0 verify vision.yaml --model "$tv/train.pt2" --expect "$tv/expected.safetensors" -v "$@"; }
vision; out "cache: miss"
vision --plugin-dir "$plugins/stray_exit" --plugin-dir "$plugins/silent_exit"; out "cache: hit"

# Needed: the plugin's own failure, by its name. A list opens what it names, and no more.
ends 3 opt stray.ir --plugin-dir "$plugins/stray_exit"; err "unit stray-exit 1.0 ended the process during create"
ends 3 opt stray.ir --plugin-dir "$plugins/stray_crash"; err "unit stray-crash 1.0 died of SIGSEGV during create"
ends 3 opt stray.ir --plugin-dir "$plugins/stray_fail"; err "unit stray-fail 1.0 returned status"
ends 3 opt stray.ir --plugin-dir "$plugins/stray_liar"; err "opset stray-liar declares operator elsewhere.f.default, but its note does not claim that namespace"
ends 3 run plain.yaml --inputs random --plugin-dir "$plugins/stray_fail" --set 'opsets=[aten,stray-fail]'; err "unit stray-fail 1.0 returned status"
sed 's/^stages/operators: ["stray::g(Tensor x) -> Tensor"]\n&/' plain.yaml > declares.yaml
ends 3 run declares.yaml --inputs random --plugin-dir "$plugins/stray_fail"; err "unit stray-fail 1.0 returned status"

# Perhaps needed: an opset that claims nothing in so many words is tried where nobody claims a namespace, and may fail.
ends 2 opt nobodys.ir --plugin-dir "$plugins/silent_fail"
err "skipping opset silent-fail of $plugins/silent_fail/silent_fail.so"; err "there is no operator nobodys.f.default"
ends 2 opt nobodys.ir --plugin-dir "$plugins/silent_twice"; err "operator aten.relu.default is defined twice, by opset aten and by opset silent-twice"; err "opset silent-twice of"
ends 3 opt nobodys.ir --plugin-dir "$plugins/silent_exit"; err "unit silent-exit 1.0 ended the process during create"
ends 3 opt stray.ir --plugin-dir "$plugins/stray_plain" --plugin-dir "$plugins/stray_again"
err "operator stray.f.default is defined twice, by opset stray-plain and by opset stray-again"
program elsewhere.f.default elsewhere.ir
ends 0 inspect elsewhere.ir --plugin-dir "$plugins/silent_liar"; quiet

# A schema whose text contradicts its rows is told, and the rows count; one that says nothing of it is silent.
ends 0 opt stray.ir --plugin-dir "$plugins/stray_plain"; quiet
n=0
while read -r text; do
  n=$((n + 1))
  ends 0 opt stray.ir --plugin-dir "$plugins/stray_text_$n"
  err "warning: opset stray-text, operator stray.f.default: $text; the row counts"
done <<END
argument 0 is called 'y' in its schema's text, 'x' in its row
it has 2 arguments in its schema's text, 1 in its rows
it has 2 results in its schema's text, 1 in its rows
argument 0 is written: so in its schema's text, not so in its row
argument 0 has a default: so in its schema's text, not so in its row
argument 0 goes by name alone: so in its schema's text, not so in its row
argument 0 is a list: so in its schema's text, not so in its row
result 0 shares memory: so in its schema's text, not so in its row
its schema's text is none: 'Tensor x -> Tensor'
END
[ $n = 9 ] || fail "$n texts of schemas"

# A functional form that says it is there, and fills nothing in.
ends 3 opt stray.ir --use functionalize --plugin-dir "$plugins/stray_form"
err "functional_form of stray.f.default (node 1) left out_written[0] unfilled; opset stray-form is at fault"

# Lists of what there is open all of them; one that fails is left out, and so is one that ends the process, which is told once.
for name in stray_fail stray_liar silent_twice; do
  ends 0 ops aten.relu.default --plugin-dir "$plugins/$name"; err "skipping opset $(echo $name | tr _ -) of $plugins/$name/$name.so"
done
for name in stray_exit silent_exit stray_crash silent_crash; do
  id=$(echo $name | tr _ -)
  ends 0 ops --plugin-dir "$plugins/$name"; err "skipping opset $id of $plugins/$name/$name.so: its probe process ended unexpectedly"
  out "aten.relu.default "
  [ "$(grep -c '^error' err)" = 1 ] || fail "$what: not told once"
done
ends 0 ops --plugin-dir "$plugins/silent_loading"; out "aten.relu.default "
died="it died" # AddressSanitizer's own handler ends the process with exit()
if nm "$aothost" 2> /dev/null | grep -q __asan_init; then died="it ended the process"; fi
err "skipping opset silent-loading: cannot load $plugins/silent_loading/silent_loading.so: $died while it was being opened"
ends 0 ops aten.relu.default --plugin-dir "$plugins/stray_crash" --plugin-dir "$plugins/silent_exit"
err "unit stray-crash 1.0 died of SIGSEGV during create"; err "unit silent-exit 1.0 ended the process during create"
[ $bad = 0 ] && echo "opsets: what nobody needs is not opened; what is needed is"
exit $bad
