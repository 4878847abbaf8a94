#!/bin/sh
# Whole models in bfloat16: loss and gradients are as near to float64 as those of PyTorch 2.11 under torch.autocast
# (tests/fixtures/autocast, by autocast_models.py, with PyTorch's float64 results). Relative Euclidean distances; a loss may be right by luck to 2e-5.
. "$(dirname "$0")/lib.sh"
for expected in "$root"/tests/fixtures/autocast/*.safetensors; do
  case $expected in *.f64.safetensors) continue ;; esac
  name=$(basename "$expected" .safetensors)
  model=$root/tests/models/$name/train.pt2
  [ -e "$model" ] || model=$models/$name/train.pt2
  for backend in backend-ref backend-cpu; do
    # its own verdict allows more: 4 times
    status 0 "$aothost" verify "$root/tests/e2e/autocast.yaml" --model "$model" --expect "$expected" --set "vars.backend=$backend" \
      --against f64 --rtol 0 --atol 0 --json v.json
    awk -v name="$name on $backend" '
      function number(line) { sub(/.*: /, "", line); sub(/,$/, "", line); return line == "null" ? line : line + 0 }
      /"key":/ { key = $2 }
      /"f64_off":/ && !/expected/ { off = number($0) }
      /"expected_f64_off":/ { theirs = number($0); if (off == "null") next
        n++; if (theirs < 1 && off > 1.5 * theirs + 2e-5) print name ": " key " is " off " off float64, PyTorch " theirs }
      END { if (n < 2) print name ": only " n " results are compared" }' v.json > far.txt
    if [ -s far.txt ]; then complain "$(cat far.txt)"; fi
  done
done
finish
