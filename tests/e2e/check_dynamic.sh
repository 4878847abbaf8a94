#!/bin/sh
# Results whose size depends on the data: other data than were recorded, sizes out of range, a backend that cannot.
. "$(dirname "$0")/lib.sh"
mask=$root/tests/models/dynamic_mask; rows=$root/tests/models/dynamic_rows; verify=$root/pipelines/verify.yaml
call() { model=$1; shift; "$aothost" run "$root/pipelines/inference.yaml" --model "$model/train.pt2" --outputs o.st --set vars.backend=backend-ref "$@"; }

# other rows are kept than when it was recorded: all of them, none of them
"$edit" "$mask/expected.safetensors" mask.st keep input.
"$edit" "$rows/expected.safetensors" rows.st keep input.
"$edit" mask.st all.st add input.1 1
"$edit" mask.st none.st add input.1 -100
for which in mask all none; do
  status 0 call "$mask" --inputs $which.st
  wc -c < o.st > $which.size
done
[ "$(cat none.size)" -lt "$(cat mask.size)" ] || complain "a mask that keeps nothing gives as much as one that keeps some"
[ "$(cat all.size)" -gt "$(cat mask.size)" ] || complain "a mask that keeps all gives no more than one that keeps some"

# the model's own assertions on the number that it reads: the inputs' fault, told with the message
"$edit" rows.st nothing.st add input.2 -3
"$edit" rows.st much.st add input.2 10
for which in nothing much; do
  status 2 call "$rows" --inputs $which.st
  says 'backend-ref.run'
  says 'u[0-9] in 1..4|Runtime assertion failed for expression u[0-9]'
done
"$edit" rows.st two.st add input.2 -1
status 0 call "$rows" --inputs two.st

# backend-cpu plans memory before the run
for model in "$mask" "$rows"; do
  status 3 "$aothost" verify "$verify" --model "$model/train.pt2" --expect "$model/expected.safetensors" --set vars.backend=backend-cpu
  says 'reason: the size or value of its result depends on the data'
done
finish
