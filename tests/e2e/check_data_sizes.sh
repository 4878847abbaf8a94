#!/bin/sh
# Slices, selects, narrows, splits, concatenations, products and masked writes of sizes that depend on data, trained on
# both backends: what PyTorch gave, at all sizes that were recorded, 0 and 1 among them. Sizes that do not fit are refused
# when the program runs, with the operator and its line.
. "$(dirname "$0")/lib.sh"
programs=$root/tests/fixtures/found2
for backend in backend-ref backend-cpu; do
  for folder in "$programs"/data_sizes/* "$programs"/mask_index_put/* "$programs"/symbolic_split/* \
    "$programs"/prod_dynamic/*; do
    for expected in $(expectations "$folder"); do
      status 0 "$aothost" verify "$root/pipelines/verify.yaml" --model "$folder/train.pt2" --expect "$expected" \
        --set vars.backend=$backend
    done
  done

  call() { "$aothost" run "$root/pipelines/inference.yaml" --model "$1/train.pt2" --inputs "$2" --outputs o.st --set vars.backend=$backend; }
  # x[n] of 6 rows with n = 7 and n = -7; x split in 3, 4 and 6 of 12 rows
  "$edit" "$programs/data_sizes/sel_item_g/expected.safetensors" in.st keep input.
  "$edit" in.st after.st add input.1 5
  "$edit" in.st before.st add input.1 -9
  for inputs in after before; do
    status 2 call "$programs/data_sizes/sel_item_g" $inputs.st
    says 'node .*select'
  done
  "$edit" "$programs/data_sizes/split3/expected.safetensors" in.st keep input.
  "$edit" in.st more.st add input.1 1
  status 2 call "$programs/data_sizes/split3" more.st
  says 'node .*split'
done
finish
