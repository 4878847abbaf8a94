#!/bin/sh
# check_docs.sh ROOT BUILD: what the pages name is there. README.md, docs/ and the READMEs of kit, host, trainer, cli, sdk, plugins, examples and tests are read; what
# stands in backticks or in an indented block counts:
#   paths     `host/step/step.c`, `aot/ext/cost.h`: from the root, the page's folder or plugin-api/. `step.c`: a file of that name anywhere
#   extensions  `aot.cost/1`: a header has it; and docs/PLUGINS.md names all that the headers have
#   commands  `aothost SUB --flag ..`: SUB is a command, and its help tells of --flag
#   tests     `ctest -R regex`: each branch of the regex names a test
# Prose is at most 130 columns wide; tables and indented blocks are as wide as they are.
# docs/OPERATORS.md is generated and left out. Paths of other projects have to begin with a folder that the root does not have.
set -eu
cd "$1"
aothost=$2/bin/aothost
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT

find . \( -path ./.git -o -path './build*' \) -prune -o -print | sed 's|^\./||' > "$dir/files"
ctest -N --test-dir "$2" 2> /dev/null | sed -n 's/^ *Test *#[0-9]*: //p' > "$dir/tests"
for command in $("$aothost" --help | sed -nE 's/^  ([a-z]+)  .*/\1/p'); do
  "$aothost" "$command" --help | grep -oE -- '(--[a-z][a-z0-9-]*|-[a-z]\b)' | sort -u | sed "s/^/$command /"
done > "$dir/flags"
sed -nE 's|^#define AOT_EXT_.* "(aot\.[a-z-]+/[0-9]+)"$|\1|p' plugin-api/aot/*.h plugin-api/aot/ext/*.h > "$dir/extensions"
for list in files tests flags extensions; do # an empty list would let everything pass
  [ "$(wc -l < "$dir/$list")" -gt 15 ] || { echo "docs: only $(wc -l < "$dir/$list") $list"; exit 1; }
done

find README.md docs kit host trainer cli sdk plugins examples tests/README.md -name '*.md' ! -name OPERATORS.md ! -path '*/tests/*' | sort > "$dir/pages"
awk '
  function glob(pattern) { # `ab*.c`, `exec.[ch]`
    gsub(/[.+]/, "[&]", pattern); gsub(/[*]/, "[^/]*", pattern)
    for (f in is_file) if (f ~ "^(.*/)?" pattern "$") return 1
    return 0
  }
  function complain(what) { print FILENAME ":" FNR ": " what; failed = 1 }

  function check_path(word,   folder, first) {
    sub(/^[(]*([.]\/)?/, "", word); sub(/:[0-9:]*$/, "", word); sub(/[),.;:\/]+$/, "", word)
    if (word ~ /^aot[.][a-z_-]+\/[0-9]+$/ && !(word in is_extension)) complain("no header has the extension " word)
    if (word !~ /^[A-Za-z0-9_.*\/\[\]-]+$/ || word ~ /\/[0-9]+$/) return # .. /1: a kind
    if (word !~ /\//) {
      if (in_block || word !~ /.\.(c|h|\[ch\]|def|sh|py|md)$/) return
      if (!(word in is_name) && !(word ~ /[*\[]/ && glob(word))) complain("no file of the tree is called " word)
      return
    }
    folder = FILENAME; sub(/[^\/]*$/, "", folder)
    first = word; sub(/\/.*/, "", first)
    if (!(first in is_root) && first != "aot" && (in_block || !((folder first) in is_file))) return
    if (word in is_file || (folder word) in is_file || ("plugin-api/" word) in is_file) return
    if (word ~ /[*\[]/ && glob(word)) return
    complain("there is no " word)
  }

  function check_command(text,   n, word, i, command) {
    if (!match(text, /(^|[ \/])aothost [a-z]+/)) return
    text = substr(text, RSTART); sub(/^[ \/]/, "", text); sub(/ [|#>] .*/, "", text)
    n = split(text, word, / +/)
    command = word[2]; sub(/[^a-z].*/, "", command)
    if (!(command in is_command)) { complain("aothost has no command " command); return }
    for (i = 3; i <= n; i++)
      if (match(word[i], /^--?[a-z][a-z0-9-]*/) && !((command " " substr(word[i], 1, RLENGTH)) in is_flag))
        complain("aothost " command " has no flag " substr(word[i], 1, RLENGTH))
  }

  function check_branch(regex,   t) {
    for (t in is_test) if (t ~ regex) return
    complain("ctest -R " regex " names no test")
  }
  function check_tests(text,   i, depth, c, from, quote) { # the branches between parentheses stay together
    if (!match(text, /ctest .*-R /)) return
    text = substr(text, RSTART + RLENGTH)
    quote = substr(text, 1, 1)
    if (quote == "\047" || quote == "\"") { text = substr(text, 2); sub(quote ".*", "", text) } else sub(/[ `].*/, "", text)
    for (from = i = 1; i <= length(text) + 1; i++) {
      c = substr(text, i, 1)
      depth += (c == "(") - (c == ")")
      if ((c == "|" && depth == 0) || c == "") { check_branch(substr(text, from, i - from)); from = i + 1 }
    }
  }

  function check(text,   n, word, i) {
    n = split(text, word, / +/)
    for (i = 1; i <= n; i++) check_path(word[i])
    check_command(text)
    check_tests(text)
  }

  FILENAME ~ /\/files$/ && !pages {
    is_file[$0]
    n = split($0, part, "/")
    is_name[part[n]]
    if (n == 1) is_root[$0]
    next
  }
  FILENAME ~ /\/tests$/ && !pages { is_test[$0]; next }
  FILENAME ~ /\/extensions$/ && !pages { is_extension[$0]; next }
  FILENAME ~ /\/flags$/ && !pages { is_flag[$0]; is_command[$1]; next }
  { pages = 1 }
  /^    / { in_block = 1; check(substr($0, 5)); next }
  {
    in_block = 0
    n = split($0, piece, "`")
    for (k = 2; k <= n; k += 2) check(piece[k])
  }
  END { exit failed }
' "$dir/files" "$dir/tests" "$dir/flags" "$dir/extensions" $(cat "$dir/pages") || exit 1
wide=$(awk 'length > 130 && !/^(\||    |```)/ { print FILENAME ":" FNR }' $(cat "$dir/pages"))
[ -z "$wide" ] || { echo "docs: wider than 130 columns: $wide"; exit 1; }
while read -r id; do
  grep -qF "\`$id\`" docs/PLUGINS.md || { echo "docs/PLUGINS.md: does not name $id"; exit 1; }
done < "$dir/extensions"
echo "docs: $(wc -l < "$dir/pages") pages name what is there"
