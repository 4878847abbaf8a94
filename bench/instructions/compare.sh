#!/bin/sh
# compare.sh RECORD COUNTS: a table of the counts of both files ("STAGE COUNT" a line); status 1 if a stage or the sum is more than
# 2 % above the record, or if the files have different stages.
awk '
  /^#/ { next }
  FNR == NR { old[$1] = $2; n_old++; sum_old += $2; next }
  { n_new++; new_sum += $2; row($1, old[$1], $2) }
  function row(stage, before, now,   change) {
    change = before > 0 ? 100 * (now - before) / before : 999
    printf "%-20s %12d %12d %+7.2f %%%s\n", stage, before, now, change, (change > 2) ? "   MORE" : ""
    bad += (change > 2)
    fell += (change < -2)
  }
  END {
    row("sum", sum_old, new_sum)
    if (n_old != n_new || n_new == 0) { print "the record has other stages"; bad++ }
    if (bad) print "more instructions than recorded: find the cause, or record them with bench/instructions/run.sh --update"
    else if (fell) print "fewer instructions than recorded: bench/instructions/run.sh --update keeps the gain"
    exit (bad > 0)
  }' "$1" "$2"
