#!/bin/sh
# table.sh NODES RUN.json...: rows of bench/scale's table: the median over the runs of each stage's milliseconds, and its highest
# peak memory. Reads the stage records that `aothost opt --json` prints.
set -eu
n="$1"; shift
for f in "$@"; do
  tr -d ' \n' < "$f" | sed 's/{"unit":/\n&/g' |
    sed -nE 's/.*"unit":"([^"]*)","name".*"ms":([0-9.e+-]+),.*"nodes_after":([0-9]+).*"peak_bytes":([0-9]+).*/\1 \2 \3 \4/p'
done | sort -k1,1 -k2,2g | awk -v n="$n" '
  { if ($1 != unit) { flush(); unit = $1; count = 0; peak = 0 } ms[count++] = $2; after = $3; if ($4 > peak) peak = $4 }
  function flush() {
    if (unit == "") return
    m = ms[int((count - 1) / 2)]
    total += m; if (peak > most) most = peak
    row[unit] = sprintf("| %d | %s | %.2f | %.0f | %d | %.0f |", n, unit == "ir" ? "read text" : unit == "pt2" ? "import" : unit, m, n / m * 1000, after, peak / 1048576)
  }
  END {
    flush()
    k = split("ir pt2 functionalize autograd partition-mincut sgd stitch", order, " ")
    for (i = 1; i <= k; i++) if (order[i] in row) print row[order[i]]
    printf "| %d | **all** | %.2f | %.0f | | %.0f |\n", n, total, n / total * 1000, most / 1048576
  }'
