# Shared by ranks.sh and rank_models.sh: one rank that takes the batches of N as micro steps, and N ranks (comm-local). train.yaml is the
# caller's; jq reads the one rank's losses.
local_ranks=$edit
# alone N SET..: losses of one rank whose steps are N micro steps, to `one`
alone() {
  n=$1; shift
  "$aothost" run train.yaml --no-cache --json one.json --set run.train.accumulate="$n" "$@" > out 2>&1 || { complain "alone $n $*"; cat out; }
  jq -r '.train.log[] | "\(.step) \(.loss)"' one.json > one
}
# together N SET..: those of N ranks to `all`, one line a rank and step; what each held to `held`
together() {
  n=$1; shift
  "$local_ranks" "$n" train.yaml "$@" > out 2>&1 || { complain "together $n $*"; head -20 out; }
  sed -n 's/^rank [0-9]* step \([0-9]*\) loss /\1 /p' out > all
  sed -n 's/^rank [0-9]* leaves \([0-9]*\) .*/\1/p' out > held
}
# equal N WHAT: every rank has told every loss of the one, to 1e-6
equal() {
  awk -v n="$1" 'FNR == NR { one[$1] = $2; steps++; next }
    { rows++; d = $2 - one[$1]; if (d < 0) d = -d; if (!($1 in one) || d > 1e-6 * one[$1]) { print "step " $1 ": " $2 " and " one[$1]; bad = 1 } }
    END { exit bad || rows != n * steps || steps == 0 }' one all > differ || { complain "$2: losses differ"; cat differ; }
}
