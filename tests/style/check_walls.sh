#!/bin/sh
# check_walls.sh ROOT: the layers of the tree, read off the include lines.
#
#   plugin-api -> libc
#   kit/base, kit/graph -> plugin-api;  kit -> plugin-api and kit
#   host -> plugin-api, kit/base, kit/graph; inside
#     base <- ir <- device <- process <- cache <- plugin <- config <- sandbox <- compiler <- step
#   sdk, trainer -> host;  sdk -> trainer/trial;  cli -> host, trainer, sdk
#   a plugin -> plugin-api, kit
#
# Includes that break a rule today are in walls_exceptions.txt, which only shrinks: a line that is no longer needed fails, too.
# Other rules: the host names no operator and no unit; file names are unique; types end in _t; nothing includes a .c file.
set -eu
cd "$1"
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
bad=$dir/bad; : > "$bad"; : > "$dir/layers"

includes() { # FOLDER: "file included-name" a line, tests left out
  find "$1" \( -name '*.c' -o -name '*.h' \) ! -path '*/tests/*' -exec grep -HE '^[[:space:]]*#[[:space:]]*include' {} + |
    sed -E 's/:[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]([^>"]*)[>"].*/ \1/'
}
complain() { # SENTENCE: every line of standard input breaks it
  sed "s|\$| ($1)|" >> "$bad"
}
breaks() { # a line "file included-name" of standard input breaks a rule of the layers
  cat >> "$dir/layers"
}

above_host=' (trainer|cli|sdk)/'
includes plugin-api | grep -vE ' (aot/[a-z_/]+|stdint|stdio|stdlib|string|fenv)\.h$' | breaks || true
for folder in kit/base kit/graph; do
  includes $folder | grep -E ' (kit/|\.\./)' | grep -vE ' kit/(base|graph)/' | breaks || true
done
inside=' (base|ir|device|process|cache|plugin|config|sandbox|compiler|step|bridge\.h)(/|$)'
includes kit | grep -E "$inside|$above_host" | breaks || true
includes host | grep -E "$above_host| (plugins|kit/[a-z]*)/" | grep -vE ' kit/(base|graph)/' | breaks || true
above=" base ir device process cache plugin config sandbox compiler step"
while [ -n "$above" ]; do
  layer=${above# }; layer=${layer%% *}; above=${above# "$layer"}
  [ -z "$above" ] || includes "host/$layer" | grep -E " ($(echo $above | tr ' ' '|'))/" | breaks || true
done
includes trainer | grep -E ' (cli|sdk)/' | breaks || true
includes sdk | grep -E ' (cli|trainer)/' | grep -v ' trainer/trial/' | breaks || true
for folder in plugins/*/; do
  name=$(basename "$folder")
  others=$(basename -a plugins/*/ | grep -vxF "$name" | paste -sd'|')
  includes "$folder" | grep -E "$inside|$above_host| \.\./| ($others)/" | breaks || true
done
LC_ALL=C sort -u "$dir/layers" > "$dir/found"
grep -vE '^(#|$)' tests/style/walls_exceptions.txt | LC_ALL=C sort > "$dir/known"
LC_ALL=C comm -23 "$dir/found" "$dir/known" | complain "breaks the layers"
LC_ALL=C comm -13 "$dir/found" "$dir/known" | complain "is no exception any more: remove the line"

find plugin-api kit host trainer cli sdk plugins -name '*.[ch]' -exec grep -nHE '^[[:space:]]*#[[:space:]]*include.*\.c[>"]' {} + |
  complain "a .c file is included" || true
code() { # FOLDER: its code without comments, "file:line: text"
  find "$1" -name '*.[ch]' -exec awk '{
    line = $0
    if (in_comment) { if (!sub(/.*\*\//, "", line)) next; in_comment = 0 }
    gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, "", line)
    if (sub(/\/\*.*/, "", line)) in_comment = 1
    sub(/\/\/.*/, "", line)
    if (line ~ /[^ \t]/) print FILENAME ":" FNR ": " line }' {} +
}
code host > "$dir/host"
grep -E '"?(aten|prims|higher_order)\.[a-z_]+' "$dir/host" | complain "the host names no operator" || true
ids=$(for folder in plugins/*/; do basename "$folder"; done | grep -vxE 'optimizer|aten|template' | paste -sd'|')
grep -E "\"($ids|sgd|adamw?)\"" "$dir/host" | sed -E 's/^([^:]*):[0-9]+:.*"('"$ids"'|sgd|adamw?)".*/\1 \2/' | LC_ALL=C sort -u > "$dir/named"
grep -vE '^(#|$)' tests/style/units_in_host.txt | LC_ALL=C sort > "$dir/known"
LC_ALL=C comm -23 "$dir/named" "$dir/known" | complain "the host names a unit"
LC_ALL=C comm -13 "$dir/named" "$dir/known" | complain "is no exception any more: remove the line"
find plugins kit -path '*/tests/*' -name '*.[ch]' -exec grep -nHE '^[[:space:]]*#[[:space:]]*include <(trainer|cli|sdk)/' {} + |
  complain "tests of a plugin or of the kit include the trainer or the command: such tests are in tests/" || true
find plugins -path '*/tests/*' -name '*.[ch]' -exec grep -nHE '^[[:space:]]*#[[:space:]]*include "\.\./\.\./' {} + |
  complain "a plugin's tests leave its folder" || true
find plugin-api kit host trainer cli sdk plugins tests tools bench -name '*.[ch]' ! -name plugin.c 2>/dev/null | sed 's|.*/||' | sort | uniq -d |
  complain "file name is not unique" || true
find kit host trainer cli sdk plugins -name '*.[ch]' -exec awk '
  /^typedef (struct|union|enum) .*\{/ { is_type = 1 }
  is_type && /^\} [a-z_]+;/ && $2 !~ /_t;$/ { print FILENAME ":" FNR ":" $2 }
  /^\}/ { is_type = 0 }' {} + | complain "a type ends in _t" || true

if [ -s "$bad" ]; then cat "$bad"; exit 1; fi
echo "walls: $(find plugin-api kit host trainer cli sdk plugins tests -name '*.[ch]' | wc -l) files keep to them," \
  "$(wc -l < "$dir/found") includes and $(wc -l < "$dir/named") unit ids excepted"
