#!/bin/sh
# check_completion.sh AOTHOST ROOT MANPAGES: what shells offer, asked of the shells that are here, and manual pages that say all options.
set -eu
aothost=$1; root=$2; pages=$3
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
failed=0
PATH=$(dirname "$aothost"):$PATH; export PATH
offers() { # LINE WORDS..: exactly these
  line=$1; shift
  echo "$*" | tr ' ' '\n' | sort > wanted
  set -f; set -- $line; set +f
  case "$line" in *' ') set -- "$@" "" ;; esac
  "$aothost" complete "$@" > out 2>&1 || { echo "FAILED: complete $line"; failed=1; }
  cut -f1 out | sort > got
  cmp -s wanted got || { echo "FAILED: '$line' offers"; cat got; failed=1; }
  if grep -vqE '^[^	]+	.+' out; then echo "FAILED: '$line': a line says not what it is"; failed=1; fi
}
offers "ver" verify
offers "--v" --version
offers "run --ch" --check-nan --check-stages
offers "run x.yaml --trace t --ver" --verbose
offers "plugins backend-r" backend-ref
offers "opt a.ir --use functio" functionalize
offers "new x --kind pa" partition pass
offers "help sch" schema
offers "opt a.ir --import pt" pt2
for line in "run x" "run --model " "nothing x" "run --trace -"; do # files
  set -- $line
  "$aothost" complete "$@" $(case "$line" in *' ') echo '' ;; esac) | grep -v '^-' > out || :
  [ ! -s out ] || { echo "FAILED: '$line' offers"; cat out; failed=1; }
done

asked() { grep -qxE -- "$2" out || { echo "FAILED: $1 offers"; cat out; failed=1; }; }
bash -c '. "$1/tools/completion/aothost.bash"; COMP_WORDS=(aothost run --ch); COMP_CWORD=2; _aothost aothost; printf "%s\n" "${COMPREPLY[@]}"' \
  - "$root" > out && asked bash --check-stages
if command -v zsh > /dev/null; then
  zsh -f -c '_describe() { print -l -- $found }; _files() { print files }; words=(aothost run --ch); CURRENT=3; . $1/tools/completion/_aothost' \
    - "$root" > out && asked zsh '--check-stages:.+'
  zsh -f -c '_describe() { print -l -- $found }; _files() { print files }; words=(aothost run x); CURRENT=3; . $1/tools/completion/_aothost' \
    - "$root" > out && asked zsh files
fi
if command -v fish > /dev/null; then
  fish --no-config -c 'source $argv[1]/tools/completion/aothost.fish; complete -C "aothost run --ch"' "$root" > out && asked fish '--check-stages	.+'
fi

# A page for each command, with each of its options, and nothing that groff complains of.
for command in $("$aothost" --help | sed -nE 's/^  ([a-z]+)  .*/\1/p'); do
  page=$pages/aothost-$command.1
  [ -s "$page" ] || { echo "FAILED: no page of $command"; failed=1; continue; }
  sed 's/\\-/-/g' "$page" > page
  "$aothost" complete "$command" -- > flags
  [ "$(wc -l < flags)" -ge 10 ] || { echo "FAILED: $command has $(wc -l < flags) options"; failed=1; }
  while IFS='	' read -r flag _; do
    grep -qE -- "^\.B (-[a-zA-Z], )?$flag( |\$)" page || { echo "FAILED: $page lacks $flag"; failed=1; }
  done < flags
done
if command -v groff > /dev/null; then
  for page in "$pages"/*.1; do groff -man -ww -Tutf8 "$page" 2>&1 > /dev/null | grep -v "can't break line\|cannot adjust" > out || :
    [ ! -s out ] || { echo "FAILED: $page"; cat out; failed=1; }
  done
fi
[ "$failed" = 0 ] && echo "completion, and $(ls "$pages" | wc -l) pages"
exit "$failed"
