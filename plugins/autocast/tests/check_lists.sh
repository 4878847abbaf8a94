#!/bin/sh
# check_lists.sh AOTHOST FILE.ir OPTIONS..: under the stage every node's results have the dtypes that FILE's comments say
# (make_lists.py).
aothost=$1; file=$2; shift 2
got=$(mktemp)
trap 'rm -f "$got"' EXIT
"$aothost" opt "$file" --use autocast "$@" > "$got" || exit 1
awk -v file="$file" '
  FNR == NR { # results of the stage
    line = $0; sub(/ = .*/, "", line); n = split(line, parts, ", *%| *%")
    for (i = 2; i <= n; i++) if (match(parts[i], /^n[0-9]+_[0-9]+ : [a-z0-9]+/)) {
      split(substr(parts[i], RSTART, RLENGTH), word, " : "); dtype[word[1]] = word[2]
    }
    next
  }
  /^; %/ {
    for (i = 2; i <= NF; i++) {
      split(substr($i, 2), word, ":"); n_told++
      if (dtype[word[1]] == word[2]) continue
      print file ":" FNR ": " word[1] " is " dtype[word[1]] ", in PyTorch " word[2]; n_bad++
    }
  }
  END { print n_told " results, " n_bad + 0 " of another dtype"; exit !(n_told > 100 && !n_bad) }' "$got" "$file"
