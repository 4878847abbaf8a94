#!/bin/sh
# aothost ab: arms that do well, and arms that crash, hang, choose garbage or give wrong results, beside each other.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/bad.sh"
plugins=$5; gpt=$models/gpt_tiny/train.pt2; mlp=$models/mlp/train.pt2
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:allow_user_segv_handler=1:handle_abort=0:detect_leaks=0"
unset AOT_PLUGIN_PATH AOT_LOADER_DEBUG
cat > p.yaml <<'YAML'
aot: 1
vars: {backend: backend-ref, model: none.pt2}
model: {path: "${model}"}
stages:
  - use: functionalize
  - use: autograd
  - use: partition-mincut
    as: part
  - use: ${backend}
YAML
ab() { "$aothost" ab p.yaml --model "$gpt" --plugin-dir "$plugins/arms" --processes 1 --steps 2 --warmup 1 "$@"; }
# json FILTER: jq's answer over j.json is true
json() { jq -e "$1" j.json > /dev/null || { complain "not so: $1"; jq -c "$1" j.json 2>&1 | head -3; }; }
clean() { ls -d "$dir"/aothost-ab-* 2> /dev/null && complain "left a folder behind"; }
export TMPDIR="$dir"

# ---- arms that do well ----
status 0 ab --stage part --with partition-default --with partition-mincut --with 'mine=divider' --json j.json --html h.html
says '^p\.yaml, stage part, model .*gpt_tiny'
says '^inputs: made up: random, seed 0; tangents: 1 for the loss$'
says '^1 process an arm, in each 2 rounds in turn after 1 to warm up$'
says '^ +partition-default +partition-mincut +mine$'
says '^gradients +reference +bit for bit +bit for bit$'
says '^chosen differently: [0-9]+ values?'
says 'saved by partition-default, mine; recomputed by partition-mincut$'
says '^partition-mincut: no verdict on speed, it takes 4 processes'
json '.command == "ab" and .ok and .stage == "part" and .made_up and .inputs == "random" and .seed == 0 and .tangents == "1 for the loss"'
json '.processes == 1 and .steps == 2 and .warmup == 1 and .interrupted == false and .rtol == 1e-4 and .atol == 1e-5'
json '.baseline == "partition-default" and .reference == "partition-default"'
json '[.arms[] | .name] == ["partition-default", "partition-mincut", "mine"]'
json '[.arms[] | .unit, .kind] == ["partition-default", "partition/1", "partition-mincut", "partition/1", "divider", "partition/1"]'
json '.arms[2].options == {"how": "well"} and .arms[2].with == "mine=divider" and .arms[2].plugin == "arms" and .arms[2].version == "1.0.0"'
json 'all(.arms[]; .outcome == "ok" and .during == null and .why == null and .stage_ms > 0 and .compile_ms >= .stage_ms)'
# compiled three times at least, though one process runs steps; the plugin of the third arm is isolated, so all arms are
json 'all(.arms[]; .compiles == 3 and (.stage_interval_ms, .compile_interval_ms | .low <= .value and .value <= .high and .low > 0))'
json 'all(.arms[]; .stage_interval_ms.value == .stage_ms and .compile_interval_ms.value == .compile_ms) and .isolate == "worker"'
says '^compile, all, cold +[0-9.]+ ms +[0-9.]+ ms +[0-9.]+ ms$'
json 'all(.arms[]; .saved.bytes >= .saved.held_bytes and .saved.values > 0 and .memory.saved_bytes > 0 and .memory.peak_rss_bytes > 0)'
json 'all(.arms[]; .memory | has("arena_bytes") and has("peak_intermediate_bytes") and has("boundary_bytes") and has("kernels"))'
json 'all(.arms[].planned; .unit == "backend-ref" and .peak_bytes > 0 and .forward_steps < .steps and .peak_step < .steps and has("arena_bytes"))'
json '.arms[0].planned.peak_bytes > .arms[1].planned.peak_bytes and .arms[2].simulated == null'
json '.arms[0].recomputed == {"nodes": 0, "heavy": 0, "bytes": 0, "flops": 0, "cost": null} and (.arms[1].recomputed | .nodes > 0 and .flops > 0 and .bytes > 0)'
json '.arms[0].saved.bytes > .arms[1].saved.bytes and .arms[0].saved.bytes == .arms[2].saved.bytes'
json 'all(.arms[]; (.times.steps_ms | length) == 1 and (.times.steps_ms[0] | length) == 2)'
json 'all(.arms[] | .times.step_ms, .times.forward_ms, .times.backward_ms; .low <= .value and .value <= .high)'
json '.arms[0].times.ratio == null and .arms[0].times.verdict == null and .arms[1].times.verdict == "none"'
json 'all(.arms[].results; .agree and .outputs.keys == .outputs.bit_equal and .gradients.keys == .gradients.bit_equal and .gradients.max_abs == 0)'
json '.differences | length > 0 and all(.[]; has("id") and has("value") and has("op") and has("type") and has("module") and has("source") and .bytes > 0)'
json 'all(.differences[]; (.saved_by | length) < 3 and (.saved_by | length) > 0)'
json '[.differences[].bytes] | . == (sort | reverse)'
json '.arms[0].stages | map(.unit) == ["pt2", "functionalize", "autograd", "partition-default", "backend-ref"]'

# every key is on the page that documents them
for key in $(jq -r 'del(.arms[].options, .arms[].stages) | [.. | objects | keys[]] | unique[]' j.json); do
  grep -qE "\`$key\`" "$root/docs/AB.md" "$root/docs/RUN.md" || complain "the key $key is not documented"
done

# the page: well-formed, whole, nothing from outside
sed 1d h.html > h.xml; xmllint --noout h.xml || complain "the page is not well-formed"
grep -oE '(https?:)?//[a-z0-9.]+' h.html | grep -vx 'http://www.w3.org' && complain "the page refers to something outside"
grep -qiE '<script[^>]*src|<link|@import|url\(' h.html && complain "the page loads something"
has h.html 'recomputed by'; has h.html 'bit for bit'; has h.html '<svg'; has h.html 'planned by backend-ref'; has h.html 'alive at step'; has h.html 'partition-mincut'
clean

# ---- names, options, places ----
status 0 ab --stage 3 --with . --with . --with 'n<b>&"=divider:how=well' --json j.json --html h.html
json '[.arms[].name] == [".", ". (2)", "n<b>&\""]'
sed 1d h.html > h.xml; xmllint --noout h.xml || complain "names are not escaped"
has h.html 'n&lt;b&gt;&amp;&quot;'
status 0 ab --stage partition-mincut --with divider --with '.' --seed 7 -q --json - ; cp out j.json
json '.seed == 7 and .stage == "part"'
# an option over the file's own, a pass, a backend: any stage
cat > q.yaml <<'YAML'
aot: 1
stages:
  - use: functionalize
  - use: autograd
  - use: divider
    with: {how: crash}
  - use: backend-cpu
run: {inputs: random, seed: 3}
YAML
status 0 "$aothost" ab q.yaml --model "$mlp" --plugin-dir "$plugins/arms" --stage divider --with '.:how=well' --with partition-default --processes 1 --steps 1 --json j.json
json '.seed == 3 and .arms[0].options.how == "well"'
status 0 ab --stage backend-ref --with backend-ref --with backend-cpu --json j.json
json '.arms[1].outcome == "ok" and .arms[1].results.agree and .arms[1].memory.arena_bytes > 0 and .differences == []'
# nothing to run without a backend; the choices are compared all the same
grep -v backend p.yaml > no.yaml; sed -i 's/^vars.*/vars: {model: none.pt2}/' no.yaml
status 0 "$aothost" ab no.yaml --model "$gpt" --stage part --with partition-default --with partition-mincut --json j.json
says '^nothing was run'
json '.steps == 10 and .processes == 0 and .baseline == null and .reference == null and .arms[0].results == null and .arms[0].times == null'
json '.arms[0].saved.bytes > .arms[1].saved.bytes and (.differences | length) > 0'
json '.isolate == "none" and all(.arms[]; .compiles == 3)'
# inputs and tangents of a file; a model that has no loss gets made-up tangents
status 0 "$aothost" ab p.yaml --model "$mlp" --inputs "$models/mlp/expected.safetensors" --stage part --with partition-default --with . --processes 1 --steps 2 --json j.json
json '.made_up == false and (.inputs | endswith("expected.safetensors")) and .arms[1].results.agree'

# ---- arms that lose, each by name; the others report ----
status 3 ab --stage part --timeout 20 --bundle-dir b --json j.json --html h.html --with partition-mincut --with 'crash=divider:how=crash' --with 'exit=divider:how=exit' \
  --with 'garbage=divider:how=garbage' --with 'wrong=divider:how=swap' --with divider
says '^crash crashed during compile: .*unit divider 1\.0\.0 died of SIGSEGV during choose'
says '^exit crashed during compile: .*unit divider 1\.0\.0 ended the process during choose: it called exit\(\)'
says '^garbage failed during compile: .*chose to save a value that is not in the joint graph'
says '^wrong failed during compile: .*this is not what the joint graph computes'
says '^divider: no verdict'
json '[.arms[].outcome] == ["ok", "crashed", "crashed", "failed", "failed", "ok"] and .ok == false'
json '[.arms[].during] == [null, "compile", "compile", "compile", "compile", null] and .arms[1].why != null'
json '.arms[1].times == null and .arms[1].results == null and .arms[1].saved == null and .arms[1].stage_ms == null'
json '.arms[5].times.step_ms.value > 0 and .arms[5].results.agree'
sed 1d h.html > h.xml; xmllint --noout h.xml || complain "the page of losers is not well-formed"
has h.html 'died of SIGSEGV'
[ -s b/arm-2/program.ir ] && [ -s b/arm-4/program.ir ] || complain "no bundles of the losers"
clean

# one that hangs is ended in time
begin=$(date +%s)
status 3 ab --stage part --timeout 1 --with 'hang=divider:how=hang' --with divider --json j.json
[ $(($(date +%s) - begin)) -lt 30 ] || complain "waited too long for the arm that hangs"
says '^hang hung during compile: no answer in 1 seconds'
json '.arms[0].outcome == "hung" and .baseline == "divider" and .reference == "divider" and .arms[1].outcome == "ok"'
# while it runs: the third step
status 3 ab --stage backend-ref --timeout 2 --bundle-dir b2 --json j.json --with backend-ref --with 'crash=zeros:how=crash' --with 'hang=zeros:how=hang' --with 'exit=zeros:how=exit' --with zeros
json '[.arms[].outcome] == ["ok", "crashed", "hung", "crashed", "differs"] and [.arms[].during] == [null, "run", "run", "run", null]'
says '^crash crashed during run: .*died of SIGSEGV during run'
json '.arms[0].times.step_ms.value > 0 and (.arms[4].results.gradients.within == 0 or .arms[4].results.gradients.max_abs > 0)'
# of three the odd one out is named, also when it stands first
status 1 ab --stage backend-ref --with 'wrong=zeros' --with backend-ref --with backend-cpu --json j.json
says '^wrong differs from backend-ref: largest difference [0-9.e-]+ in '
json '.reference == "backend-ref" and [.arms[].outcome] == ["differs", "ok", "ok"]'
# what is far for one is near for another
status 0 ab --stage backend-ref --with 'wrong=zeros' --with backend-ref --atol 1000
clean

# ---- Ctrl-C: the rounds end and are reported; before them there is nothing to report ----
# interrupted SECONDS STATUS PROGRAM...: SIGINT once after so long
interrupted() {
  after=$1; wanted=$2; shift 2
  "$@" > out 2>&1 & pid=$!
  sleep "$after"; kill -INT "$pid"
  wait "$pid" && got=0 || got=$?
  [ "$got" = "$wanted" ] || { complain "status $got instead of $wanted when interrupted"; tail -5 out; }
}
interrupted 4 0 "$aothost" ab p.yaml --model "$mlp" --stage part --with partition-default --with . --processes 1 --steps 100000 --json j.json
says '; interrupted$'
json '.interrupted and .processes == 1 and .steps > 0 and .steps < 100000 and (.arms[1].times.steps_ms[0] | length) == .steps'
interrupted 2 2 "$aothost" ab p.yaml --model "$mlp" --plugin-dir "$plugins/arms" --stage part --with 'divider:how=hang' --with divider
says 'interrupted before anything was measured'
clean

# ---- bad usage: told, before anything runs ----
refuse 2 'ab compares two arms or more' '--with A --with B' ab --stage part --with partition-default
refuse 2 '--stage S' 'functionalize, autograd, part, backend-ref' ab --with partition-default --with divider
refuse 2 '--stage prat: there is no such stage' 'part' ab --stage prat --with partition-default --with divider
refuse 2 "unknown unit 'partition-defualt'" 'partition-default' ab --stage part --with partition-default --with partition-defualt
refuse 2 "divider has no option 'hwo'" 'did you mean' ab --stage part --with divider --with 'divider:hwo=well'
refuse 2 "invalid value 'badly'" 'crash' ab --stage part --with divider --with 'divider:how=badly'
refuse 2 'after' "--with 'divider:'" ab --stage part --with divider --with divider:
refuse 2 'OPTION=VALUE' "--with 'divider:well'" ab --stage part --with divider --with divider:well
refuse 2 'the last comma' "--with 'divider:how=well,'" ab --stage part --with divider --with divider:how=well,
refuse 2 'the name before' "--with '=divider'" ab --stage part --with divider --with =divider
refuse 2 'the unit is missing' "--with 'a='" ab --stage part --with divider --with a=
refuse 2 "there is an arm 'a' already" "--with 'a=partition-default'" ab --stage part --with a=divider --with a=partition-default
refuse 2 '--steps takes an integer from 1' '"0"' ab --stage part --with divider --with . --steps 0
refuse 2 '--processes takes an integer from 1 to 64' '"x"' ab --stage part --with divider --with . --processes x
refuse 2 '--rtol takes a number' '"-1"' ab --stage part --with divider --with . --rtol=-1
refuse 2 '--timeout takes a number' '"0"' ab --stage part --with divider --with . --timeout 0
refuse 2 'second partition stage' 'p.yaml:7' ab --stage functionalize --with divider --with .
refuse 2 'No such file' 'gone.yaml' "$aothost" ab gone.yaml --stage a --with a --with b
refuse 2 'gone.pt2' 'No such file' "$aothost" ab p.yaml --model gone.pt2 --stage part --with . --with partition-default
refuse 2 'gone.safetensors' 'No such file' ab --inputs gone.safetensors --stage part --with . --with partition-default
refuse 2 'the results cannot be written to no' 'No such file' ab --stage part --with . --with divider --json no/j.json
refuse 2 'the page cannot be written to no' 'No such file' ab --stage part --with . --with divider --html no/h.html
finish
