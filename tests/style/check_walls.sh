#!/bin/sh
# check_walls.sh ROOT: the layers of the house, read off the include lines.
#
#   plugin-api -> libc; joint -> plugin-api; host -> plugin-api and joint, and inside base <- ir <- device <- pipeline <- step <- train <- tools <- commands;
#   a plugin -> plugin-api, joint and plugins/common. File names are unique (the few that every folder has aside), nothing includes a
#   .c file, the host names no operator, types end in _t. A plugin's tests may look into its folder, those of tests/ at anything.
set -eu
cd "$1"
bad=$(mktemp); trap 'rm -f "$bad"' EXIT

includes() { # FOLDER: file:line:included name, tests aside
  find "$1" \( -name '*.c' -o -name '*.h' \) ! -path '*/tests/*' -exec grep -nHE '^[[:space:]]*#[[:space:]]*include' {} + |
    sed -E 's/[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]([^>"]*)[>"].*/\1/'
}
complain() { # SENTENCE: every line of standard input breaks it
  sed "s|\$| ($1)|" >> "$bad"
}

includes plugin-api | grep -vE ':(aot/[a-z_/]+|stdint|string|fenv)\.h$' | complain "plugin-api includes libc only" || true

includes joint | grep -vE ':(aot/[a-z_/]+|joint/[a-z_]+|std[a-z]+|string)\.h$' | complain "joint includes plugin-api only" || true

includes host | grep -E ':(plugins|common)/|\.c$' | complain "the host includes no plugin" || true
layers="base ir device pipeline step train tools commands"
below=""
for layer in $layers; do
  below="$below $layer"
  for other in $layers; do
    case " $below " in *" $other "*) continue ;; esac
    [ -d "host/$layer" ] && includes "host/$layer" | grep -E ":$other/" | complain "$layer stands below $other" || true
  done
done
find host -name '*.[ch]' -exec grep -nHE '"?(aten|prims|higher_order)\.[a-z_]+' {} + |
  grep -vE '^[^:]*:[0-9]+:[[:space:]]*(/\*|\*)' | complain "the host knows no operator" || true

find plugins -path '*/tests/*' -name '*.[ch]' -exec grep -nHE '^[[:space:]]*#[[:space:]]*include "\.\./\.\./' {} + |
  complain "a plugin's tests leave its folder" || true
for folder in plugins/*/; do
  name=$(basename "$folder")
  includes "$folder" | grep -E ':(base|ir|device|pipeline|step|train|tools|commands|host)/|:\.\./|\.c$' | complain "not for a plugin" || true
  for other in plugins/*/; do
    o=$(basename "$other")
    [ "$o" = "$name" ] || [ "$o" = common ] || includes "$folder" | grep -E ":$o/" | complain "another plugin" || true
  done
done

find plugin-api joint host plugins tests tools bench -name '*.[ch]' ! -name plugin.c 2>/dev/null | sed 's|.*/||' | sort | uniq -d |
  complain "file name is not unique" || true

find host plugins joint -name '*.[ch]' -exec awk '
  /^typedef (struct|union|enum) .*\{/ { is_type = 1 }
  is_type && /^\} [a-z_]+;/ && $2 !~ /_t;$/ { print FILENAME ":" FNR ":" $2 }
  /^\}/ { is_type = 0 }' {} + | complain "a type ends in _t" || true

if [ -s "$bad" ]; then cat "$bad"; exit 1; fi
echo "walls: $(find plugin-api joint host plugins tests -name '*.[ch]' | wc -l) files keep to them"
