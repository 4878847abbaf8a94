#!/bin/sh
# Model files that are damaged, cut short, forged or no models: status 2, what is wrong, the member and the place in it, the file;
# nothing written.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/bad.sh"
damage=$4
m=$models/mlp/train.pt2
model() { "$aothost" run "$root/pipelines/inference.yaml" --model "$1" --inputs random --outputs o.st; }
# broken WHAT WHERE MEMBER DAMAGE...: the model with one damaged member
broken() {
  what=$1; where=$2; shift 2
  rm -f d.pt2; "$damage" "$m" d.pt2 "$@" || complain "damage_archive $*"
  refuse 2 "$what" "$where" model d.pt2
  says 'while reading the model d\.pt2'
}

# The harness first: a copy without damage is a good model.
"$damage" "$m" d.pt2 models/model.json sub aten aten && status 0 model d.pt2; rm -f o.st

# ---- no archives ----
head -c 10000 "$m" > d.pt2;   refuse 2 'the ZIP end record is missing' 'byte 10000' model d.pt2; says 'the model d\.pt2'
head -c 3 "$m" > d.pt2;       refuse 2 'is not a ZIP archive' 'fewer than 4 bytes' model d.pt2;  says 'the model d\.pt2'
: > d.pt2;                    refuse 2 'is not a ZIP archive' 'd.pt2' model d.pt2
echo 'no model at all' > d.pt2; refuse 2 'is not a ZIP archive' 'd.pt2' model d.pt2
tail -c 10000 "$m" > d.pt2;   refuse 2 'is not a ZIP archive' 'd.pt2' model d.pt2
refuse 2 'No such file or directory' 'cannot open missing.pt2' model missing.pt2
refuse 2 'it is a directory' 'cannot read .' model .
refuse 2 'it is a device' '/dev/null' model /dev/null
mkfifo pipe && refuse 2 'it is a named pipe' 'cannot read pipe' timeout 60 "$aothost" inspect pipe; rm -f pipe
refuse 2 'unrecognised model format' "$models/mlp/expected.safetensors" "$aothost" inspect "$models/mlp/expected.safetensors"

# ---- the archive ----
broken "member 'models/model.json'" 'is damaged: its checksum does not agree' models/model.json sum
broken "two members are named 'models/model.json'" 'byte' models/model.json twice
broken 'is no PyTorch export archive' 'archive_format' models/model.json rename ../../up.json
broken "the archive has no member 'models/NAME.json'" 'd.pt2' models/model.json drop
broken "the archive's version is ''" 'byte' archive_version cut 0
broken "the byte order of the archive is 'big'" 'byte' byteorder sub little big

# ---- the graph ----
broken "expected near end of file" 'models/model.json, line 1 column 3000' models/model.json cut 3000
broken "expected near end of file" 'models/model.json, line 1 column 0' models/model.json cut 0
broken 'schema version 99.17 is not known' 'models/model.json, line 1 column 7566 (schema_version)' models/model.json sub '"major":8' '"major":99'
broken 'an integer is expected here, this is a string' '(schema_version.major)' models/model.json sub '"major":8' '"major":"8"'
broken 'aten.rellu.default: 1 node' "first 'relu' in module m.1" models/model.json sub aten.relu.default aten.rellu.default
says 'the nearest known operator is aten.relu.default'
broken "the value 'tanh' is used before it is made" "node 'relu' (aten.relu.default) in module m.1" models/model.json \
  sub '"as_tensor":{"name":"linear"}},"kind":1}' '"as_tensor":{"name":"tanh"}},"kind":1}'
broken "the value 'nobody' is used but never made" "node 'relu' (aten.relu.default)" models/model.json \
  sub '"as_tensor":{"name":"linear"}},"kind":1}' '"as_tensor":{"name":"nobody"}},"kind":1}'
# the layout of a result is the operator's, a signature names the values of the graph, and nothing of a tensor is left out
meta='"tanh":{"dtype":7,"sizes":[{"as_int":8},{"as_int":32}],"requires_grad":false,"device":{"type":"cpu","index":null}'
broken 'result 0 is recorded with the strides [3, 1], which such a tensor cannot have' "node 'tanh' (aten.tanh.default) in module m.3" \
  models/model.json sub "$meta"',"strides":[{"as_int":32}' "$meta"',"strides":[{"as_int":3}'
broken 'result 0 is recorded with the strides [9223372036854775807, 1]' "node 'tanh' (aten.tanh.default) in module m.3" \
  models/model.json sub "$meta"',"strides":[{"as_int":32}' "$meta"',"strides":[{"as_int":9223372036854775807}'
broken 'result 0 is recorded on another device than its operands are on' "node 'tanh' (aten.tanh.default)" models/model.json \
  sub "$meta" "$(echo "$meta" | sed 's/"cpu"/"cuda"/')"
for field in '"requires_grad":false,' ',"layout":7' '"storage_offset":{"as_int":0},'; do
  name=$(echo "$field" | sed 's/^,*"\([a-z_]*\)".*/\1/')
  broken "the field '$name' is missing" '(graph_module.graph.tensor_values.' models/model.json sub "$field" ''
done
broken "output 0 of the graph is 'tanh', the signature says 'cross_entropy_loss'" 'd.pt2' models/model.json \
  sub '"outputs":[{"as_tensor":{"name":"cross_entropy_loss"}}],"nodes"' '"outputs":[{"as_tensor":{"name":"tanh"}}],"nodes"'
broken "input 6 of the graph is 'x', the signature says 'y'" 'd.pt2' models/model.json \
  sub '{"user_input":{"arg":{"as_tensor":{"name":"x"}}}}' '{"user_input":{"arg":{"as_tensor":{"name":"y"}}}}'
broken "parameter 'm.0.weight' requires no gradient by its weight's description, and one by the graph" 'd.pt2' \
  weights_config.json sub '"requires_grad": true' '"requires_grad": false'
text_too_large() { printf 'aot 1\nleaf 0 parameter "w" : f32[3, 2] strides [%s, 1]\n' "$1" > d.ir; }
text_too_large 4611686018427387000; refuse 2 'by its sizes and strides it is larger than memory can be' 'd.ir:2:8' "$aothost" opt d.ir -o o.ir
text_too_large 4; status 0 "$aothost" opt d.ir -o o.ir; rm -f o.ir
# a region reads its operands as they lie
cp "$root/tests/fixtures/history/t_unseen_leaf/train.pt2" region.pt2
meta='"xs_0": {"dtype": 7, "sizes": [{"as_int": 4}, {"as_int": 4}], "requires_grad": true, "device": {"type": "cpu", "index": null}'
m=region.pt2
broken 'input 0 of the region is recorded with another dtype, rank or strides than the operand that it is' "node 't_'" models/model.json \
  sub "$meta"', "strides": [{"as_int": 4}' "$meta"', "strides": [{"as_int": 5}'
m=$models/mlp/train.pt2
# nesting deeper than any stack
awk 'BEGIN {for (i = 0; i < 200000; i++) printf "["}' > deep
broken 'maximum parsing depth reached' 'models/model.json, line 1' models/model.json file deep

# ---- without checksums: nothing to hold the bytes against, and the compile cache goes by the bytes ----
nosum() { "$damage" "$m" a.pt2 models/model.json sub aten.relu "$1" && "$damage" a.pt2 d.pt2 models/model.json nosum || complain nosum; }
cached() { env -u AOT_CACHE AOT_CACHE_DIR="$dir/cache" "$aothost" run "$root/pipelines/inference.yaml" --model d.pt2 --inputs random -v; }
nosum aten.relu; status 0 cached; says 'cache: miss'; status 0 cached; says 'cache: hit'
nosum aten.tanh; status 0 cached; says 'cache: miss'

# ---- the importer's options ----
with() { status "$1" "$aothost" run "$root/pipelines/inference.yaml" --model "$m" --set model.import=pt2 --set "model.with.$2" --inputs random; }
with 0 model=model
with 2 model=other; says "the archive holds no model 'other'"; says 'hint: choose one, .*: model'
with 2 modle=model; says "pt2 has no option 'modle'; did you mean 'model'"

# ---- the weights ----
broken "the weight file 'data/weights/weight_2' of 'm.2.weight' is not in the archive" 'd.pt2' weights/weight_2 drop
broken "'m.2.weight' needs 1024 f32 elements, the member holds 25" "member 'data/weights/weight_2'" weights/weight_2 cut 100
broken "member 'data/weights/weight_2'" "checksum does not agree; it holds the tensor 'm.2.weight'" weights/weight_2 sum
broken 'is i32, the graph says f32' "'m.0.weight'" weights_config.json sub '"dtype": 7' '"dtype": 4'
broken 'has the dtype ? (77)' "'m.0.weight'" weights_config.json sub '"dtype": 7' '"dtype": 77'
broken 'has size 31 in dimension 0, the graph says 32' "'m.0.weight'" weights_config.json sub '"as_int": 32' '"as_int": 31'
broken 'near end of file' 'model_weights_config.json, line 1 column 1000' weights_config.json cut 1000
broken "the archive carries no data for 'm.0.weight'" 'd.pt2' weights_config.json drop

# ---- programs in text ----
text() { printf '%s\n' "$@" > d.ir; }
graph='graph @f forward {'
text 'aot 2';                                                refuse 2 'error' 'd.ir:1:5' "$aothost" opt d.ir -o o.ir
text 'aot 1' "$graph" '%a : f32[2] = aten.nope.default' '}'; refuse 2 'aten.nope.default' 'd.ir:3:15' "$aothost" opt d.ir -o o.ir
text 'aot 1' "$graph" '%a : f32[2] = aten.relu.default %b' '%b : f32[2] = aten.relu.default %a' '}'
refuse 2 '%b' 'd.ir:3:33' "$aothost" opt d.ir -o o.ir
text 'aot 1' 'leaf 0 parameter "w" : f32[4611686018427387000, 4611686018427387000]' "$graph" 'in %w = parameter 0' '}'
refuse 2 'error' 'd.ir:' "$aothost" opt d.ir -o o.ir
head -c 4096 "$m" > d.ir; refuse 2 'error' 'd.ir:1:1' "$aothost" opt d.ir -o o.ir
finish
