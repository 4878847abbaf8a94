#!/bin/sh
# Numbers, None and texts among a model's arguments are constants of the program: input.K counts the tensors alone. Files of before
# that counted all arguments are read, by verify and by run; so are those whose numbers have no gaps.
. "$(dirname "$0")/lib.sh"
for model in input_numbers_with_constants m_int_in; do
  folder=$root/tests/fixtures/found2/input_numbering/$model
  for backend in backend-ref backend-cpu; do
    status 0 "$aothost" verify "$root/pipelines/verify.yaml" --model "$folder/train.pt2" --expect "$folder/expected.safetensors" \
      --set "vars.backend=$backend"
    says '^3 of 3 keys agree'
  done
  status 0 "$aothost" run "$root/pipelines/verify.yaml" --model "$folder/train.pt2" --inputs "$folder/expected.safetensors" --grads
done
folder=$root/tests/fixtures/found2/input_numbering/input_numbers_with_constants
verify() { status "$1" "$aothost" verify "$root/pipelines/verify.yaml" --model "$folder/train.pt2" --expect "$2"; }
"$edit" "$folder/expected.safetensors" dense.st rename input.2 input.1
verify 0 dense.st
# the two inputs the other way round are not those that were recorded
"$edit" "$folder/expected.safetensors" swapped.st rename input.0 input.3
verify 1 swapped.st
# a gap that no constant explains
"$edit" "$folder/expected.safetensors" one.st drop input.0
verify 2 one.st
says 'missing tensor "input.0"; the model has 2 inputs'
finish
