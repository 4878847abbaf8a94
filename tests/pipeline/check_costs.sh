#!/bin/sh
# check_costs.sh AOTHOST PLUGINS HERE: the pipeline's backend tells what nodes cost (aot.cost/1), and the same partition-mincut
# simulates, saves and refuses otherwise: loops of everything, work space for everything, nothing, rows of nodes that are not there.
. "$(dirname "$0")/lib.sh"
export AOT_CACHE_DIR="$dir/cache"
fail() { echo "FAILED: $*"; cat out; bad=1; }

cat > in.ir <<'END_OF_PROGRAM'
aot 1
properties imported functional

leaf 0 parameter "w" : f32[256, 256] grad
leaf 1 user_input 0 "x" : f32[256, 256]

graph @forward forward {
  in %w = parameter 0 : f32[256, 256] grad
  in %x = user_input 1 : f32[256, 256]
  %a : f32[256, 256] = aten.mm.default %x, %w !0
  %b : f32[256, 256] = aten.tanh.default %a !0
  %c : f32[256, 256] = aten.sigmoid.default %b !0
  %d : f32[256, 256] = aten.exp.default %c !0
  %e : f32[256, 256] = aten.tanh.default %d !0
  %y : f32[] = aten.sum.default %e !0
  out loss 0 = %y
}

origin 0 module "m" node "m"
END_OF_PROGRAM

# divide STATUS BUDGET [OPTIONS OF A BACKEND]
divide() {
  want=$1 budget=$2; shift 2
  what="budget $budget $*"
  "$aothost" opt in.ir --plugin-dir "$plugins/good" --use autograd --use partition-mincut --with objective=memory --with "budget=$budget" \
    "$@" -o out.ir --json json > out 2>&1
  got=$?
  [ $got = "$want" ] || fail "$what: status $got, expected $want"
}
number() { tr -d " \n" < json | sed -n "s/.*\"$1\":{\"value\":\([0-9.]*\).*/\1/p" | sed "s/\.0$//"; }
is() { [ "$(number "$1")" = "$2" ] || fail "$what: $1 is $(number "$1"), not $2"; }

block=262144 # bytes of a tensor; the loss takes 64 more

# The neutral model: nothing fuses, no work space. It is the same where there is no backend, where it is silent, and where what it
# says is of another program.
for how in none silent lost; do
  set --
  [ $how = none ] || set -- --use teller --with how=$how
  divide 0 1.0 "$@"
  is costs-told 0; is peak-bytes $((8 * block + 128)); is saved-values 4
  divide 0 $((6 * block + 128)) "$@"
  is saved-values 1; is recomputed-nodes 4
  divide 2 $((5 * block)) "$@"
done

# What runs as one loop is not in memory between: more can be kept within the same bytes, and less bytes will do.
set -- --use teller --with how=fuses
divide 0 1.0 "$@"
is costs-told 1; is peak-bytes $((6 * block + 128))
divide 0 $((6 * block + 128)) "$@"
is saved-values 4; is recomputed-nodes 0
divide 0 $((3 * block + 128)) "$@"

# Work space is held while a node runs: one at a time.
set -- --use teller --with how=works
divide 0 1.0 "$@"
is costs-told 1; is peak-bytes $((8 * block + 128 + 1048576))
divide 2 $((6 * block + 128)) "$@"

# A millisecond each, four of them again: what the backend says of times is what running again costs.
set -- --use teller --with how=slow
divide 0 $((6 * block + 128)) "$@"
is recomputed-nodes 4
case $(number recompute-cost) in 0.004 | 0.0040*) ;; *) fail "$what: recompute-cost is $(number recompute-cost), not 0.004" ;; esac

[ $bad = 0 ] && echo ok
exit $bad
