#!/bin/sh
# custom_op.sh AOTHOST EDIT ROOT CC [FLAGS]: examples/custom_op as a user builds it, with nothing but the installed headers; and what is
# said when a part of it is missing.
. "$(dirname "$0")/lib.sh"
cc=$4; flags=${5:-}
example=$root/examples/custom_op
mkdir -p prefix/include plugins
cp -r "$root/plugin-api/aot" prefix/include/
$cc -std=c11 -O2 -fPIC -shared -fvisibility=hidden -Wall -Wextra -Werror $flags -I prefix/include "$example/mylib.c" -o plugins/mylib.so || exit 1
export AOT_PLUGIN_PATH=$PWD/plugins

verify() { # FOLDER BACKEND PARTITION
  status 0 "$aothost" verify "$example/pipeline.yaml" --model "$1/train.pt2" --expect "$1/expected.safetensors" --set vars.backend=$2 \
    --set vars.partition=$3
}
for backend in backend-ref backend-cpu; do
  for partition in partition-default partition-mincut; do
    for folder in "$example" "$root"/tests/fixtures/custom/*; do verify "$folder" $backend $partition; done
  done
done

# A model that brings its operators' schemas (tests/models/own_operator.py): no `operators:` is needed, and without a kernel it is
# read, shown, differentiated, and refused by name where it would have to run.
own=$root/tests/models/own_operator
for backend in backend-ref backend-cpu; do
  status 0 "$aothost" verify "$root/pipelines/verify.yaml" --model "$own/train.pt2" --expect "$own/expected.safetensors" --set vars.backend=$backend
  AOT_PLUGIN_PATH= status 2 "$aothost" verify "$root/pipelines/verify.yaml" --model "$own/train.pt2" --expect "$own/expected.safetensors" \
    --set vars.backend=$backend --no-cache
  says "no kernel for mylib.add_one_out.default"
done
AOT_PLUGIN_PATH= status 0 "$aothost" inspect "$own/train.pt2"
says "1  mylib.add_one_out.default"

# Copies: asked for and left out, as the backend reports them. The example writes through a view of a tensor that is read later, and a
# buffer: these two are copied.
copies() { # FOLDER ASKED REMOVED
  for backend in backend-ref backend-cpu; do
    status 0 "$aothost" run "$example/pipeline.yaml" --model "$1/train.pt2" --inputs random --no-cache --json r.json --set vars.backend=$backend
    tr -d ' \n' < r.json > flat
    has flat "\"copies-asked\":\{\"value\":$2\.0,"
    has flat "\"copies-removed\":\{\"value\":$3\.0,"
  done
}
copies "$example" 4 2
copies "$root/tests/fixtures/custom/custom_out" 1 1
copies "$root/tests/fixtures/custom/custom_list" 2 2

# Nobody declares the operators; nobody has kernels; a text that is none; another schema than the one that is known.
status 2 "$aothost" verify "$root/pipelines/verify.yaml" --model "$example/train.pt2" --expect "$example/expected.safetensors"
says "mylib.add_one_out.default"
says "operators:"
AOT_PLUGIN_PATH= status 2 "$aothost" verify "$example/pipeline.yaml" --model "$example/train.pt2" --expect "$example/expected.safetensors"
says "no kernel for mylib.clip.default"
says "aot.kernels/1"
edited() { sed "s|$1|$2|" "$example/pipeline.yaml" > edited.yaml; }
edited 'Tensor x, Tensor(a!) out' 'Tesnor x, Tensor(a!) out'
status 2 "$aothost" verify edited.yaml --model "$example/train.pt2" --expect "$example/expected.safetensors"
says "edited.yaml:7:25: error: unknown type 'Tesnor'"
edited 'mylib::scale(Tensor x, float by=2.0) -> Tensor' 'aten::relu(Tensor self, int n) -> Tensor'
status 2 "$aothost" verify edited.yaml --model "$example/train.pt2" --expect "$example/expected.safetensors"
says "edited.yaml:9:5: error: operator aten.relu.default is there already, with another schema"
edited 'mylib::scale(Tensor x, float by=2.0) -> Tensor' 'aten::relu(Tensor self) -> Tensor'
status 2 "$aothost" verify edited.yaml --model "$example/train.pt2" --expect "$example/expected.safetensors"
says "mylib.scale.default: 1 node"
edited 'float by=2.0' 'float factor=2.0'
status 2 "$aothost" verify edited.yaml --model "$example/train.pt2" --expect "$example/expected.safetensors"
says "mylib.scale.default.* has no argument 'by'|has no argument 'by'"

# Programs in text, under both backends: parts of one tensor that do not touch, parts that do, a kernel that refuses, an argument too
# few, a write that must not be seen by what was computed before it.
cat > text.yaml <<'Y'
aot: 1
vars: {backend: backend-ref}
operators:
  - "mylib::split_copy(Tensor x, SymInt[] sizes, Tensor(a!)[] outs) -> ()"
  - "mylib::add_one_out(Tensor x, Tensor(a!) out) -> ()"
stages:
  - use: functionalize
  - use: ${backend}
Y
program() { # LINES: a program of x, f32[4, 3], that returns %r
  { echo 'aot 1'; echo 'properties imported'; echo 'leaf 0 user_input 0 "x" : f32[4, 3]'
    echo 'graph @main forward {'; echo '  in %x = user_input 0 : f32[4, 3]'; echo "$1"; echo '  out user_output 0 = %r'; echo '}'; } > text.ir
}
run_text() { # STATUS: under both backends, results as a.st and b.st
  status "$1" "$aothost" run text.yaml --model text.ir --inputs random --outputs a.st
  status "$1" "$aothost" run text.yaml --model text.ir --inputs random --outputs b.st --set vars.backend=backend-cpu
}
columns() { # FROM TO of the second part; two copies of x go into parts of %r
  program "  %r : f32[4, 6] = aten.zeros.default [4, 6]
  %a : f32[4, 3] strides [6, 1] = aten.slice.Tensor %r, 1, 0, 3
  %b : f32[4, 3] strides [6, 1] offset $1 = aten.slice.Tensor %r, 1, $1, $2
  %xx : f32[8, 3] = aten.cat.default [%x, %x]
  mylib.split_copy.default %xx, [4, 4], [%a, %b]"
}
columns 3 6; run_text 0; same a.st b.st
columns 2 5; run_text 2; says 'mylib.split_copy.default writes two arguments that overlap in memory'
program '  %r : f32[4, 6] = aten.zeros.default [4, 6]
  mylib.add_one_out.default %x, %r'
run_text 2; says 'mylib.add_one_out.default: takes tensors of one shape'
program '  %r : f32[4, 3] = aten.zeros_like.default %x
  mylib.add_one_out.default %x'
run_text 2; says 'argument 1 \(out\) of mylib.add_one_out.default is missing'
program '  %y : f32[4, 3] = aten.flip.default %x, [0]
  %before : f32[4, 3] = aten.neg.default %y
  mylib.add_one_out.default %x, %y
  %r : f32[4, 3] = aten.add.Tensor %before, %y'
run_text 0; same a.st b.st

# Declaration and kernel in one plugin, and a pipeline that knows of neither.
mkdir own
$cc -std=c11 -O2 -fPIC -shared -fvisibility=hidden -Wall -Wextra -Werror $flags -I prefix/include "$root/tests/e2e/own_ops.c" -o own/own_ops.so || exit 1
folder=$root/tests/fixtures/custom/custom_out
for backend in backend-ref backend-cpu; do
  AOT_PLUGIN_PATH=$PWD/own status 0 "$aothost" verify "$root/pipelines/verify.yaml" --model "$folder/train.pt2" \
    --expect "$folder/expected.safetensors" --set vars.backend=$backend --rtol 1e-5
  says '3 of 3 keys agree'
done
AOT_PLUGIN_PATH=$PWD/own status 0 "$aothost" ops mylib.add_one_out.default; says 'custom'
finish
