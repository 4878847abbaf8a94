#!/bin/sh
# check_mutants.sh AOTHOST BUILD ROOT CC [--few] [NAME..]: every plugin of mutants.txt, made by one small change from one that is right, fails by
# the rule that stands beside it, whose report names a trial that does it again; the right ones pass that rule.
#
# --few: of each base and rule the first one. NAME: of a mutant, or a base.
#
# MUTANTS_RULES=all: with all the rules, and a list of those that found each; =N: which of them rule N finds.
set -u
aothost=$1; build=$2; root=$3; cc=$4; shift 4
few=0; [ "${1:-}" != --few ] || { few=1; shift; }
here=$root/tests/conform
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
unset AOT_PLUGIN_PATH AOT_LOADER_DEBUG
export HOME="$dir" AOT_CACHE_DIR="${AOT_CACHE_DIR:-$dir/cache}"
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:allow_user_segv_handler=1:handle_abort=0:detect_leaks=0"
patience=${MUTANTS_PATIENCE:-20}
flags="-std=gnu11 -O1 -fPIC -shared -fvisibility=hidden -w -I $root/plugin-api"

sources() { # BASE: its sources
  case $1 in
    npu) echo "$root/examples/vendor_backend/npu.c" ;;
    few_ops) echo "$root/examples/backend/few_ops.c" ;;
    strict) echo "$root"/plugins/device-strict/*.[ch] ;;
    comm) echo "$root/examples/communicator/shared_file.c" ;;
    gate) echo "$root/examples/vendor_op/gate.c" ;;
    partition) echo "$root/examples/partitioner/save_heavy.c" ;;
    pass) echo "$root/examples/pass/double_negation.c" ;;
    importer) echo "$root/examples/importer/layers.c" ;;
    own_device) echo "$here/right/own_device.c" "$root"/plugins/device-strict/strict_*.[ch] ;;
    *) echo "$here/right/$1.c" ;;
  esac
}
needs() { # BASE: options of conform that it needs
  case $1 in
    comm) echo "--with file=$dir/meeting" ;;
    importer) echo "--program $root/examples/importer/two_layers.txt" ;;
  esac
}
compile() { # FOLDER OUT
  $cc $flags -I "$1" -I "$root" "$1"/*.c -o "$2" -L "$build/lib" -laothost-kit -lm -lpthread 2> "$1/errors" && return
  cat "$1/errors"; return 1
}
copy() { # BASE FOLDER
  mkdir "$2" && cp $(sources "$1") "$2" || return
  [ "$1" != own_device ] || cp "$root/examples/vendor_backend/npu.c" "$2/npu.h"
}
make_right() { # BASE
  [ -d "right.$1" ] && return
  copy "$1" "right.$1" && compile "right.$1" "$dir/right.$1.so"
}
bad() { echo "FAILED: $*"; : > "$dir/bad"; }

# NAME: its sources, with the replacements of mutants.txt, each of which is found once.
change() {
  awk -v wanted="$1" -v folder="mutant.$1" '
    function apply(  i, k, at, n) {
      if (new == "" && old == "") return
      sub(/\n$/, "", old); sub(/\n$/, "", new)
      for (i = 1; i < ARGC - 1; i++) {
        at = index(text[i], old)
        if (!at) continue
        n++; k = i
        if (index(substr(text[i], at + 1), old)) n++
      }
      if (n != 1) { print wanted ": found " n + 0 " times: " old > "/dev/stderr"; failed = 1 }
      else { at = index(text[k], old); text[k] = substr(text[k], 1, at - 1) new substr(text[k], at + length(old)) }
      old = new = ""
    }
    BEGIN {
      for (i = 1; i < ARGC - 1; i++) { while ((getline line < ARGV[i]) > 0) text[i] = text[i] line "\n" }
      while ((getline line < ARGV[ARGC - 1]) > 0) {
        first = substr(line, 1, 1)
        if (first == "=") { if (on) apply(); split(line, words, " "); on = words[2] == wanted }
        else if (on && first == "-") { if (new != "" || is_new) apply(); is_new = 0; old = old substr(line, 3) "\n" }
        else if (on && first == "+") { is_new = 1; new = new substr(line, 3) "\n" }
      }
      if (on) apply()
      for (i = 1; i < ARGC - 1; i++) printf "%s", text[i] > ARGV[i]
      exit failed
    }' "mutant.$1"/* "$here/mutants.txt"
}
try() { # NAME BASE RULE
  copy "$2" "mutant.$1" && change "$1" && compile "mutant.$1" "$dir/mutant.$1.so" ||
    { bad "$1 cannot be made"; return; }
  rules=""; [ "${MUTANTS_RULES:-}" = all ] || rules="--rule ${MUTANTS_RULES:-$3}"
  timeout 500 "$aothost" conform "$dir/mutant.$1.so" $rules $(needs "$2") --timeout "$patience" --json "mutant.$1.json" > "mutant.$1.out" 2>&1
  got=$?
  if [ "${MUTANTS_RULES:-}" ]; then
    echo "$1 $2: $(jq -r '[.units[].rules[] | select(.verdict == "failed") | .rule] | join(" ")' "mutant.$1.json") (wanted $3)"
    [ -z "${MUTANTS_KEEP:-}" ] || cp "mutant.$1.out" "$MUTANTS_KEEP/"
    return
  fi
  [ $got -eq 1 ] && grep -q "^  $3 FAILED" "mutant.$1.out" && grep -q "again: aothost conform" "mutant.$1.out" ||
    { bad "$1: status $got, rule $3 does not fail it"; cat "mutant.$1.out"; }
}
right() { # BASE RULE
  "$aothost" conform "$dir/right.$1.so" --rule "$2" $(needs "$1") --timeout 60 > "right.$1.$2.out" 2>&1
  got=$?
  [ $got -eq 0 ] && ! grep -q "FAILED" "right.$1.$2.out" || { bad "$1 is right, and rule $2 fails it"; cat "right.$1.$2.out"; }
}

# The right ones pass, each the rules that its mutants fail by.
n=0
sed -n 's/^= //p' "$here/mutants.txt" > rows
while read -r name base rule; do
  case " $* " in "  "|*" $name "*|*" $base "*) ;; *) continue ;; esac
  [ $few = 0 ] || [ ! -e "few.$base.$rule" ] || continue
  : > "few.$base.$rule"
  make_right "$base" || { bad "$base cannot be made"; continue; }
  [ -n "${MUTANTS_RULES:-}" ] || [ -e "right.$base.$rule.out" ] || right "$base" "$rule" &
  try "$name" "$base" "$rule" &
  n=$((n + 1))
  [ $((n % ${MUTANTS_AT_ONCE:-2})) -ne 0 ] || wait
done < rows
wait
[ -e bad ] && exit 1
[ $# -gt 0 ] || [ $n -ge 35 ] || { echo "FAILED: $n mutants only"; exit 1; }
echo "$n mutants, each found"
