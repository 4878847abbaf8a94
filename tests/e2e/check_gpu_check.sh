#!/bin/sh
# tools/gpu_check, on the driver's double: sections of many programs give a row a check, with what fails and why.
. "$(dirname "$0")/lib.sh"
gpu_check() { (cd "$root" && sh tools/gpu_check --build "$(dirname "$(dirname "$aothost")")" --log "$dir/log" --jobs 2 --limit 500 "$@"); }
status 0 gpu_check --share 4/40 models
says '^models_fixtures_[a-z_]+ +[0-9]+ s  ok$'
says '^    [1-9][0-9]* agree, 0 fail, 0 did not come to their turn$'
status 0 gpu_check --share 70/110 operators
says '^operators_[a-z_]+ +[0-9]+ s  ok$'
says '^    forward ([1-9][0-9]*) of \1, gradients ([0-9]+) of \2$'
status 0 gpu_check --share 2/4 halves
says '^    8 agree, 0 fail, 0 did not come to their turn$'
status 0 gpu_check dropout
says '^draws_are_equal.7 +[0-9]+ s  ok$'
says '^dropout_gpt_losses +[0-9]+ s  ok$'
status 0 gpu_check --share 1/10 two_gpus # a model in one mode; and one rank that is killed
says '^    1 agree, 0 fail, 0 did not come to their turn$'
status 0 gpu_check --share 10/10 two_gpus
says '^    1 agree, 0 fail, 0 did not come to their turn$'
export AOT_CUDA_DOUBLE=memory=1000 # what fails is named, with the reason
status 1 gpu_check --share 4/40 models
says '^    0 agree, [1-9][0-9]* fail, 0 did not come to their turn$'
says '^    tests/fixtures/.*has no memory for [0-9]+ bytes'
finish
