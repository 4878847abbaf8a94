#!/bin/sh
# One call: inputs from a file, results to a file, gradients on demand; the results are those that verify finds right.
. "$(dirname "$0")/lib.sh"
m=$models/mlp
status 0 "$aothost" run "$root/pipelines/verify.yaml" --model "$m/train.pt2" --inputs "$m/expected.safetensors" --outputs out.st --grads --json r.json
says '^output.0 +f32\[\] +[0-9.]+$'
for key in '"key": "output.0"' '"key": "grad.m.0.weight"' '"outputs": "out.st"' '"train": null'; do has r.json "$key"; done
# Recorded inputs beside our results are an expectation that must hold to the last bit.
"$edit" "$m/expected.safetensors" in.st keep input.
"$edit" out.st zero.st keep output.
status 0 "$aothost" run "$root/pipelines/inference.yaml" --model "$m/train.pt2" --inputs in.st --outputs plain.st --set vars.backend=backend-ref
same plain.st zero.st
# made-up inputs: equal seeds, equal results
for i in 1 2; do status 0 "$aothost" run "$root/pipelines/inference.yaml" --model "$m/train.pt2" --inputs random --outputs r$i.st; done
same r1.st r2.st
status 0 "$aothost" run "$root/pipelines/inference.yaml" --model "$m/train.pt2" --inputs random --outputs r3.st --set run.seed=9
cmp -s r1.st r3.st && complain "another seed gave the same results"
# machine-readable on the standard output means nothing else there
"$aothost" run "$root/pipelines/inference.yaml" --model "$m/train.pt2" --inputs random --json - > j.json 2> /dev/null
head -c 1 j.json | grep -q '{' || complain "the standard output holds more than JSON"

status 2 "$aothost" run "$root/pipelines/verify.yaml" --model "$m/train.pt2"
says 'the run has no inputs'
status 2 "$aothost" run "$root/pipelines/inference.yaml" --model "$m/train.pt2" --inputs in.st --grads
says 'gradients require a backward graph'
status 2 "$aothost" run "$root/pipelines/inference.yaml" --model "$m/train.pt2" --inputs in.st --outputs no/such/folder/o.st
[ -z "$(ls | grep tmp)" ] || complain "temporary files are left: $(ls)"
finish
