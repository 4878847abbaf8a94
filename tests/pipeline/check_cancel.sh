#!/bin/sh
# check_cancel.sh AOTHOST PLUGINS HERE: Ctrl-C while a stage runs, in this process and in one of its own: once asks it to stop,
# twice ends the command.
. "$(dirname "$0")/lib.sh"
P="--plugin-dir $plugins/good"
fail() { echo "FAILED: $what: $*"; cat out err; bad=1; }
says() { grep -qF -- "$1" err || fail "does not say: $1"; }
echo "TOY add mul add" > m.toy
cat > p.yaml <<'EOF'
aot: 1
model: {path: m.toy}
stages:
  - use: toy-fuse
  - use: patient
    with: {how: HOW}
    isolate: WHERE
    LIMIT
  - use: toy-functional
  - use: toy-backend
EOF
# until TEST..: a minute at most
until_true() { n=0; until "$@" 2> /dev/null; do n=$((n + 1)); [ $n -lt 1200 ] || { fail "never: $*"; return; }; sleep 0.05; done; }
gone() { ! kill -0 "$1" 2> /dev/null; }

group() { cut -d " " -f 5 "/proc/$stage/stat"; } # a worker has one of its own

# begin HOW WHERE [SECONDS]: the stage runs when this returns
begin() {
  what="$1, $2"; rm -rf running enough b done
  limit=; [ "$2" = worker ] && limit="timeout: ${3:-100}"
  sed "s/HOW/$1/; s/WHERE/$2/; s/LIMIT/$limit/" p.yaml > q.yaml
  "$aothost" run q.yaml $P --no-cache --bundle-dir b --dump-dir done > out 2> err < /dev/null & pid=$!
  until_true test -f running
  stage=$(cat running)
  if [ "$2" = worker ]; then [ "$(group)" = "$stage" ] || fail "no worker"; else [ "$(group)" != "$stage" ] || fail "a worker"; fi
}
# ends STATUS: and the stage's process with it
ends() {
  wait $pid; got=$?
  [ $got = "$1" ] || fail "status $got, expected $1"
  until_true gone "$stage"
}

for where in none worker; do
  begin asks $where
  kill -INT $pid; ends 130
  says "q.yaml:5:10: error: stage patient cancelled during run"
  [ "$(grep -c error: err)" = 1 ] || fail "more than one error"
  [ -d b ] && fail "a bundle of what did as it was asked to"
  ls done | grep -q fuse || fail "the stage before was not run"
  ls done | grep -q functional && fail "the stage behind was run"

  begin deaf $where
  kill -INT $pid; sleep 0.3; gone $pid && fail "the first one ended it"
  kill -INT $pid; ends 130

  begin late $where
  kill -INT $pid; sleep 0.3; gone $pid && fail "the first one ended it"
  : > enough; ends 130
  says "error: cancelled after stage patient; later stages were skipped"
  [ "$(grep -c error: err)" = 1 ] || fail "more than one error"
  ls done | grep -q functional && fail "the stage behind was run"

  begin deaf $where # who does not speak of Ctrl-C ends it at once
  kill -TERM $pid; ends 143
done

# the time that a stage may take goes on
begin deaf worker 1
kill -INT $pid; ends 3
says "exceeded its timeout of 1 seconds"

# Ctrl-C of a terminal comes to every process of the command, a worker left out: it has a group of its own
begin asks worker
[ "$(group)" = "$stage" ] || fail "the worker is in the command's group"
kill -INT "$stage"; sleep 0.3; gone "$stage" && fail "the worker died of a Ctrl-C"
kill -INT $pid; ends 130

exit $bad
