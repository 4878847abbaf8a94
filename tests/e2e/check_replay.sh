#!/bin/sh
# check_replay.sh AOTHOST EDIT_TENSORS ROOT: the edits of every stage on every archive of the tree are undone, made again and compared, text and
# ids (`opt --check-replay`). An archive that a list of stages does not suit goes through a shorter one; a few suit none here.
set -u
aothost=$1; root=$3
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$root" || exit 1
unset AOT_PLUGIN_PATH
export HOME="$dir" AOT_CACHE_DIR="$dir/cache"
# a model's operators stand in its pipeline, or in a plugin of its own; random states that are saved
refused="examples/custom_op/train.pt2 tests/e2e/effects/custom.pt2 tests/fixtures/custom/custom_list/train.pt2
tests/fixtures/custom/custom_out/train.pt2 tests/models/missing_operators/model.pt2 tests/models/own_operator/train.pt2
tests/models/saved_random_states/model.pt2"
joint="--use functionalize --use rng --use autograd --with when-nothing=forward-only"
n=0; bad=0
replay() { # MODEL STAGES: 0: all of them ran, and again
  "$aothost" opt "$@" --check-replay -o "$dir/out.ir" > "$dir/said" 2>&1 && return 0
  grep -qE '\[(replay\.differs|ir\.[a-z-]*)\]' "$dir/said" && { echo "$*:"; cat "$dir/said"; bad=1; }
  return 1
}
for model in $(find examples tests -name '*.pt2' | sort); do
  n=$((n + 1))
  replay "$model" $joint --use partition-mincut --use adamw --use stitch --use backend-ref && continue
  replay "$model" $joint --use partition-default --use hooks --use backend-ref && continue
  replay "$model" --use rng --use partition-default --use backend-ref && continue
  replay "$model" --use functionalize --use backend-ref && continue
  case " $(echo $refused) " in *" $model "*) continue;; esac
  echo "$model: no list of stages suits it"; cat "$dir/said"; bad=1
done
[ $n -ge 250 ] || { echo "$n archives; there were 313"; bad=1; }
[ $bad = 0 ] && echo "replay: $n archives, each stage's edits made again"
exit $bad
