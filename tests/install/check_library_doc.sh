#!/bin/sh
# check_library_doc.sh LIBRARY ROOT CC [FLAGS]: the program of docs/LIBRARY.md builds, as it stands there, and trains.
set -eu
library="$1"; root="$2"; cc="$3"; flags="${4:-}"
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
awk '/^    #include <aothost.h>/ {on = 1} on && !/^(    |$)/ {exit} on {print substr($0, 5)}' "$root/docs/LIBRARY.md" > "$tmp/trainer.c"
$cc -std=c99 -Wall -Wextra -Werror -pedantic $flags -I "$root/host/include" -I "$root/plugin-api" "$tmp/trainer.c" "$library" -o "$tmp/trainer"
LD_LIBRARY_PATH=$(dirname "$library") "$tmp/trainer" "$root/tests/e2e/api.yaml" "$root/tests/fixtures/models/mlp/train.pt2" > "$tmp/out"
awk '/^step 0:/ {first = $4} /^step 19:/ {last = $4} END {exit !(last + 0 < first - 0.5)}' "$tmp/out" || { cat "$tmp/out"; exit 1; }
grep -q '^bias' "$tmp/out" || { cat "$tmp/out"; exit 1; }
for language in "c -std=c99" "c++ -std=c++11"; do # both headers alone
  echo '#include <aothost_dlpack.h>' | $cc -x $language -Wall -Wextra -Werror -pedantic -fsyntax-only -I "$root/host/include" -I "$root/plugin-api" -
done
echo "the program of docs/LIBRARY.md trains"
