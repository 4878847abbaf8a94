#!/bin/sh
# check_circles.sh BUILD: files of the host, of kit and of each plugin call each other in one direction. Read off the symbols
# of their objects: who defines, who asks.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT

# Calls that are left out, CALLER CALLEE. The first is a recursion by nature: the rule of an operator that owns a graph differentiates
# that graph. The others close circles that are still to be opened: a line goes when its circle does, and none is added.
cat > "$work/left_out" << END
joint.c rules.c
gpu_conv.c gpu_target.c
END

check() { # LEAST OBJECTS..: complains of circles among them, and of fewer than LEAST calls between files
  least=$1; shift
  nm -A "$@" 2> /dev/null | awk '
    !match($0, /[A-Za-z0-9_-]+\.c\.o:/) { next }
    { file = substr($0, RSTART, RLENGTH - 3); kind = $(NF - 1); name = $NF }
    kind ~ /^[TDBR]$/ { owner[name] = file }
    kind == "U" { asks[++n] = file; asked[n] = name }
    END { for (i = 1; i <= n; i++) if (asked[i] in owner && owner[asked[i]] != asks[i]) print asks[i], owner[asked[i]] }' |
    sort -u | grep -vxF -f "$work/left_out" > "$work/calls" || true
  n=$(wc -l < "$work/calls"); n_calls=$((n_calls + n))
  [ "$n" -ge "$least" ] || { echo "circles: only $n calls between the files of $1 were found"; exit 1; }
  tsort "$work/calls" 2>&1 > /dev/null | sed -n 's|^tsort: \([A-Za-z0-9_-]*\.c\)$|  \1|p' | sort -u > "$work/loop"
  [ ! -s "$work/loop" ] || { echo "circles: these files call each other in a loop:"; cat "$work/loop"; exit 1; }
}

n_calls=0
check 100 "$1"/host/libaothost.a "$1"/trainer/libaothost_trainer.a "$1"/sdk/libaothost_conform.a "$1"/cli/libaothost_cli.a
[ ! -f "$1"/lib/libaothost-kit.a ] || check 100 "$1"/lib/libaothost-kit.a
for plugin in $(find "$1"/plugins -path '*.dir/plugin.c.o'); do # with the archives beside it, without objects whose source is gone
  of=$(dirname "$plugin"); folder=$(dirname "$(dirname "$of")"); name=$(basename "$folder"); set -- "$1"
  for object in $(find "$of" -name '*.c.o'); do
    [ ! -f "$root/plugins/$name/$(echo "${object#"$of"/}" | sed 's/\.o$//')" ] || set -- "$@" "$object"
  done
  for archive in "$folder"/*.a; do [ ! -f "$archive" ] || set -- "$@" "$archive"; done
  build=$1; shift
  check 0 "$@"
  set -- "$build"
done
echo "circles: none in $n_calls calls between files"
