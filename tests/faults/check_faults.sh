#!/bin/sh
# check_faults.sh AOTHOST PLUGINS HERE: every fault of faults.def costs one clear error, with plugin, unit and line, status 3 and
# a bundle; those that only change results are edits among edits.
set -u
aothost=$1; plugins=$2; here=$3
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
unset AOT_PLUGIN_PATH AOT_LOADER_DEBUG
export HOME="$dir"
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:allow_user_segv_handler=1:handle_abort=0:detect_leaks=0"
P="--plugin-dir $plugins"
bad=0 n=0
fail() { echo "FAILED: $name: $*"; cat err; bad=1; }
says() { grep -qF -- "$1" err || fail "does not say: $1"; }
cp "$here/program.ir" .
cat > p.yaml <<'END'
aot: 1
model: {path: program.ir}
stages:
  - use: faulty
    with: {fault: "${fault}"}
    timeout: ${seconds}
  - use: backend-ref
END
"$aothost" opt program.ir > before.ir || exit 1
# What a sanitizer does in a plugin's place: it ends the process itself, or never runs out.
skipped=" "
nm "$aothost" 2>/dev/null | grep -q asan && skipped=" stack heap freed-twice leak "

sed -n 's/^FAULT([a-z_]*, "\([^"]*\)", \([0-9]\), "\(.*\)")$/\1|\2|\3/p' "$here/faults.def" > faults
while IFS='|' read -r name status text; do
  case "$skipped" in *" $name "*) continue ;; esac
  n=$((n + 1)); rm -rf b; seconds=100
  case $text in *"exceeded its timeout"*) seconds=0.5 ;; esac
  "$aothost" run p.yaml $P --set "vars.fault=$name" --set "vars.seconds=$seconds" --inputs random --bundle-dir b > out 2> err < /dev/null
  got=$?
  [ $got -eq "$status" ] || fail "status $got, expected $status"
  [ "$status" -eq 0 ] && { [ -d b ] && fail "a bundle of what did not fail"; continue; }
  says "p.yaml:4:10: error: contract violation by plugin faulty 0.1: unit faulty 0.1 $text"
  says "from $plugins/faulty.so"
  says "reproduction bundle: b"
  [ "$(grep -c 'error:' err)" -le 3 ] || fail "more than one error"
  cmp -s b/program.ir before.ir || fail "the bundle has another program"
  grep -q "fault: $name" b/pipeline.yaml && grep -q "isolate: worker" b/pipeline.yaml || fail "the bundle has another stage"
  grep -q '"line": 4' b/info.json || fail "info.json lacks the line"
  case $name in
    escapes) # shown, not obeyed
      says '\x1b]0;title\x07\x1b[2J\xe2\x80\xaeback\xff'; says "  | p.yaml:1:1: error: forged"
      [ -z "$(tr -d '\n\t\040-\176' < err)" ] || fail "control characters reach the terminal" ;;
    chatter)
      says "bytes more)"; says "more diagnostics ("
      [ "$(wc -c < err)" -lt 3000000 ] || fail "$(wc -c < err) bytes of diagnostics" ;;
  esac
done < faults
name=all; [ $n -ge 40 ] || fail "$n faults only"
[ $bad = 0 ] && echo "$n faults: contained, named"
exit $bad
