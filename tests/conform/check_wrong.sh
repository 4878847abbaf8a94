#!/bin/sh
# check_wrong.sh AOTHOST PLUGINS HERE: every unit of wrong_units.def fails by its rule, the first of each kind by no other; one that is
# right by none.
set -u
aothost=$1; plugins=$2; here=$3
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
unset AOT_PLUGIN_PATH AOT_LOADER_DEBUG
export HOME="$dir" AOT_CACHE_DIR="$dir/cache"
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:allow_user_segv_handler=1:handle_abort=0:detect_leaks=0"
bad=0 n=0
skipped=" " patience=10
nm "$aothost" 2> /dev/null | grep -q asan && # which is slow, and malloc is not asked what it holds there
  skipped=" leaks device_leaks ranks_leak " patience=20
wrong() { echo "FAILED: $*"; cat out; : > "$dir/bad"; }
fails() { # UNIT FILE RULE [only]: exactly this, in a folder of its own; only: the other rules are not tried
  mkdir "$dir/$1"
  cd "$dir/$1" || exit 1
  rules=""; [ "${4:-}" != only ] || rules="--rule $3"
  timeout 150 "$aothost" conform "$plugins/$2" --unit "$1" $rules --timeout $patience --json r.json > out 2>&1
  got=$?
  [ "$3" -eq 0 ] && want=0 || want=1
  [ $got -eq $want ] || { wrong "$1: status $got, expected $want"; return; }
  failed=$(jq -r '[.units[].rules[] | select(.verdict == "failed") | .rule] | join(" ")' r.json)
  [ "$3" -eq 0 ] && expected="" || expected=$3
  [ "$failed" = "$expected" ] || { wrong "$1 fails by rules '$failed', not '$expected'"; return; }
  [ "$3" -eq 0 ] && return
  # the line that repeats it does, by the same trial, and no trial fails without a reason
  again=$(jq -r '[.units[].rules[] | select(.verdict == "failed")][0] | select(.why != "") | .again' r.json)
  timeout 150 sh -c "$(echo "$again" | sed "s|^aothost|$aothost|") --timeout $patience" > out 2>&1
  [ $? -eq 1 ] || wrong "$1: '$again' does not fail again"
  about=$(jq -r '[.units[].rules[] | select(.verdict == "failed")][0].trial_about // ""' r.json)
  grep -qF -- "$about" out || wrong "$1: '$again' does not try '$about'"
}
# Half of their time they wait, for a time-out or for each other: several at once.
beside() {
  fails "$@" &
  n=$((n + 1))
  [ $((n % 4)) -ne 0 ] || wait
}
sed -n 's/^WRONG(\([a-z_]*\), "\([^"]*\)", \([0-9]*\))$/\1|\2|\3/p' "$here/wrong_units.def" > units
kinds=" "
while IFS='|' read -r name kind rule; do
  case "$skipped" in *" $name "*) continue ;; esac
  how=only
  case "$kinds" in *" $kind "*) ;; *) how=whole kinds="$kinds$kind " ;; esac
  beside "wrong.$name" wrong.so "$rule" $how
done < units
beside wrong.right wrong.so 0
beside wrong.entry wrong-entry.so 101
beside kernel_writes wrong-opsets.so 503
beside form_differs wrong-opsets.so 504
beside derivative_differs wrong-opsets.so 505
wait
[ ! -e bad ] || bad=1
[ $n -ge 25 ] || { echo "FAILED: $n units only"; bad=1; }

# ---- the line
ends() { want=$1; shift; "$aothost" conform "$@" > out 2>&1; got=$?; [ $got -eq "$want" ] || { echo "FAILED: conform $*: status $got, expected $want"; cat out; bad=1; }; }
says() { grep -qF -- "$1" out || { echo "FAILED: lacks: $1"; cat out; bad=1; }; }
ends 2 nothing-of-this-name; says "neither a plugin's file nor the id of a unit"
ends 2 "$plugins/wrong.so" --rule 999; says "there is no such rule"
ends 2 "$plugins/wrong.so" --trial 3; says "give --rule, too"
ends 2 "$plugins/wrong.so" --unit none; says "has no such unit"
ends 2 "$plugins/wrong-entry.so" --kind communicator; says "has no such unit"
ends 0 "$plugins/wrong.so" --unit wrong.right --rule 103; says "103 passed"
ends 1 "$plugins/wrong.so" --unit wrong.silent --rule 201; says "without a diagnostic"; says "again: aothost conform"
[ $bad = 0 ] && echo "$n units, each as it ought to be"
exit $bad
