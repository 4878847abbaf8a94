#!/bin/sh
# aothost ops: the list and its filters; recorded calls through a backend, passing ones and every kind of failure by name.
. "$(dirname "$0")/lib.sh"
fixtures=$root/tests/fixtures/ops

status 0 "$aothost" ops 'aten.add.*'
says '^aten.add.Tensor +pointwise +promote +- +yes +native +native '
says '^aten.add.Scalar '
says '^aten.add.out '
says '^4 operators; '
status 0 "$aothost" ops 'aten.add_.Tensor' --backend backend-ref --json -
says '"writes"'
says '"backend-ref": "functional"'
grep -q backend-cpu out && complain "--backend did not limit the list"
status 0 "$aothost" ops aten.linear.default -v
says 'takes +bias +Tensor\?, has a default'
says 'decomposes: composite'
# where it is defined: each place is a line of that file that has the operator, or the function
sources() { "$aothost" ops "$1" -v > out; sed -n "s/^  $2 of $3: //p" out | head -n 1; }
names() { [ -n "$1" ] && sed -n "${1##*:}p" "$root/${1%:*}" | grep -qF "$2" || complain "$2 is not at '$1'"; }
names "$(sources aten.relu6.default schema aten)" '"aten.relu6.default"'
names "$(sources aten.relu6.default 'shape rule' aten)" at_shape_promote
names "$(sources aten.relu6.default decomposition aten)" at_dc_hardtanh
names "$(sources aten.relu6.default formula backend-ref)" '"aten.relu6.default"'
names "$(sources aten.relu.default 'derivative rule' autograd)" '"aten.relu.default"'
names "$(sources aten.relu.default kernel backend-ref)" '"relu.default"'
names "$(sources aten.relu.default 'loop row' backend-cpu)" '"relu.default"'
names "$(sources aten.div.Tensor_mode 'derivative function' autograd)" ag_rule_div_mode
names "$(sources torchvision.roi_align.default 'derivative rule' torchvision-ops)" '"torchvision.roi_align.default"'
status 0 "$aothost" ops aten.relu6.default --json - -q
says '"what": "schema"'
# reasons: of marks, of the unit's own list, of what a writing operator becomes
status 0 "$aothost" ops aten.argmax.default _c10d_functional.broadcast.default aten.relu_.default aten.rand.default aten.arange.default -v
says '^  gradient by autograd: none: its result carries no gradient'
says '^  gradient by autograd: no: PyTorch has none'
says '^  gradient by autograd: none: takes no tensor'
says '^  without the write: aten\.relu\.default'
says '^  backend-ref: functional: aten\.relu\.default'
says '^  backend-ref: no: draws random numbers'
says 'shape rule [a-z_0-9]+; decomposes: -'
status 0 "$aothost" ops aten.relu6.default aten.gelu.default aten.add.Tensor --json words.json -q
has words.json '"decomposition": "composite"'
has words.json '"decomposition": "on-request"'
has words.json '"decomposition": null'
has words.json '"shape_rule": "promote"'
status 0 "$aothost" plugins autograd -v
says '^  aten\.add\.Tensor$'
says '^  _c10d_functional\.broadcast\.default +PyTorch has none$'
status 0 "$aothost" plugins aten -v
says '^  aten\.add_\.Tensor$'

# a page of some operators; failures do not make its writing fail, an unwritable place does
status 0 "$aothost" ops 'aten.mul.*' --cases "$fixtures/cases.json" --backend backend-ref --markdown page.md
has page.md '^\| `aten\.mul\.Tensor` \| `\(Tensor self, Tensor other\) -> Tensor` \| promote \| - \| yes \| native \| 8/8 \|'
has page.md '^None\.$'
status 0 "$aothost" ops aten.mul.Tensor --markdown page.md
grep -q 'do not pass' page.md && complain "cases were told that did not run"
status 2 "$aothost" ops aten.mul.Tensor --markdown nowhere/page.md
says 'cannot write nowhere/page\.md: No such file'
status 2 "$aothost" ops --cases "$fixtures/cases.json" --backend backend-ref --backend backend-cpu
says 'runs through one backend'

status 2 "$aothost" ops aten.ad.Tensor
says "did you mean 'aten.add.Tensor'"
status 2 "$aothost" ops 'nothing.*'
status 2 "$aothost" ops --backend backend-rif
says "did you mean 'backend-ref'"

# all of some operators, gradients too
status 0 "$aothost" ops 'aten.mul.*' aten.cat.default aten.arange.start_step aten.linspace.default --cases "$fixtures/cases.json" \
  --backend backend-ref --json report.json
says '^aten.mul.Tensor +8/8 +[1-8]/[1-8] '
says '; 0 cases fail, 0 results are excepted$'
has report.json '"ok": true'
status 2 "$aothost" ops --cases "$fixtures/cases.json"
says 'needs a backend'

# on a device, whose memory the host may not touch; in which way what ran
status 0 "$aothost" ops 'aten.mul.*' aten.mm.default --cases "$fixtures/cases.json" --backend backend-cpu --device strict --json device.json
says '^operator .* generated-calls fallback-nodes  first case'
says '^  generated-calls [1-9][0-9]*, fallback-nodes [0-9]+$'
has device.json '"device": "strict"'
has device.json '"ran": \{'
has device.json '"generated-calls": [1-9]'
status 2 "$aothost" ops --device strict
says '\-\-device belongs to --cases'
status 2 "$aothost" ops --cases "$fixtures/cases.json" --backend backend-cpu --device backend-ref
says "unit 'backend-ref' has kind backend/2, which is not allowed here"
status 2 "$aothost" ops --data x.safetensors
status 1 "$aothost" ops aten.mul.Tensor --cases "$fixtures/cases.json" --backend backend-ref --stages autograd
says 'gradients 0 of'
status 2 "$aothost" ops --cases nowhere.json --backend backend-ref
status 2 "$aothost" ops nothing --cases "$fixtures/cases.json" --backend backend-ref

# every recorded case: as many must pass as have passed, and failures are counted, not hidden
status 0 "$aothost" ops --cases "$fixtures/cases.json" --backend backend-ref --json all.json
sed -nE 's/^([0-9]+) cases of .*: forward ([0-9]+) of ([0-9]+), gradients ([0-9]+) of ([0-9]+); .*/\1 \2 \3 \4 \5/p' out > totals
read -r cases forward n_forward gradients n_gradients < totals || complain "no totals"
[ "$cases" = 2940 ] && [ "$n_forward" = 2940 ] && [ "$n_gradients" = 1304 ] || complain "cases were lost: $(cat totals)"
[ "$forward" = 2934 ] && [ "$gradients" = 1299 ] || complain "fewer pass than before: $(cat totals)"

# operators that those calls leave out, recorded by record.py beside the cases
status 0 "$aothost" ops --cases "$root/tests/fixtures/more_ops/cases.json" --backend backend-ref
says '^208 cases of 40 operators .*: forward 208 of 208, gradients 80 of 88; 0 cases fail, 8 results are excepted$'
status 0 "$aothost" ops --cases "$root/tests/fixtures/more_ops/cases.json" --backend backend-cpu

# failures by name: a wrong number, a missing tensor, an operator nobody has, an argument of the wrong kind
cat > wrong.json <<'J'
[{"id": "w0", "op": "aten.mul.Scalar", "args": [{"t": "x"}, {"f": 3.0}], "kwargs": {}, "outputs": [{"t": "twice"}]},
 {"id": "w1", "op": "aten.mul.Scalar", "args": [{"t": "x"}, {"f": 2.0}], "kwargs": {}, "outputs": [{"t": "twice"}],
  "tangents": {"0": {"t": "x"}}, "grads": {"0": {"t": "x"}}},
 {"id": "w2", "op": "aten.neg.default", "args": [{"t": "absent"}], "kwargs": {}, "outputs": [{"t": "x"}]},
 {"id": "w3", "op": "aten.nobody.default", "args": [], "kwargs": {}, "outputs": []},
 {"id": "w4", "op": "aten.neg.default", "args": [{"s": "text"}], "kwargs": {}, "outputs": [{"t": "x"}]},
 {"id": "w5", "op": "aten.sum.default", "args": [{"t": "x"}], "kwargs": {}, "outputs": [{"t": "x"}]},
 {"id": "w6", "op": "aten.mul_.Scalar", "args": [{"t": "x"}, {"i": 2}], "kwargs": {}, "outputs": [{"t": "twice"}]}]
J
header='{"twice":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}'
printf "\\$(printf %o ${#header})\\0\\0\\0\\0\\0\\0\\0%s\\0\\0\\0\\100\\0\\0\\200\\077" "$header" > wrong.safetensors
status 1 "$aothost" ops --cases wrong.json --data wrong.safetensors --backend backend-ref --json wrong-report.json
says '^7 cases of 5 operators on backend-ref: forward 2 of 7, gradients 0 of 1; 6 cases fail'
says 'unknown operator +forward 1, gradients 0'
says 'malformed case +forward 1, gradients 0'
says 'arguments refused +forward 1, gradients 0'
says 'another type +forward 1, gradients 0'
says 'differs +forward 1, gradients 1'
has wrong-report.json '"id": "w2"'
status 0 "$aothost" ops --cases wrong.json --data wrong.safetensors --backend backend-ref --markdown wrong.md
has wrong.md '^\| `aten\.mul\.Scalar` \| forward \| differs \| w0 \|$'
has wrong.md '^\| `aten\.nobody\.default` \| forward \| unknown operator \| w3 \|$'

# results that need not agree: listed by name with a reason, counted apart; what is asked of them still counts
status 0 "$aothost" ops 'aten.topk*' aten.kthvalue.default --cases "$fixtures/cases.json" --backend backend-ref --json picks.json
says '; 0 cases fail, 5 results are excepted$'
says '^aten.topk.default +5/7 .* listed exception: output.1: which of equal'
has picks.json '"reason": "listed exception"'
echo 'w0 output.0 any : the recorded number is another' > exceptions.txt
status 1 "$aothost" ops --cases wrong.json --data wrong.safetensors --backend backend-ref
says '; 5 cases fail, 1 results are excepted$'
echo 'w5 output.0 any : sizes still count' > exceptions.txt
echo 'aten.mul.Scalar output.0 picks 0 along 5=0 gives 0 : 3 is no place in one element' >> exceptions.txt
status 1 "$aothost" ops --cases wrong.json --data wrong.safetensors --backend backend-ref
says '; 6 cases fail, 0 results are excepted$'
printf '# comment\nw0 output.0 sometimes : no such way\n' > exceptions.txt
status 2 "$aothost" ops --cases wrong.json --data wrong.safetensors --backend backend-ref
says 'exceptions.txt:2'
says "'any' or 'picks A along D=P gives K'"

# in parts: together they are the whole, none twice
for part in 1/3 2/3 3/3; do
  status 0 "$aothost" ops aten.add.Tensor aten.mul.Tensor --cases "$fixtures/cases.json" --backend backend-ref --part $part
  sed -nE 's/^([0-9]+) cases of .*/\1/p' out
done > parts
status 0 "$aothost" ops aten.add.Tensor aten.mul.Tensor --cases "$fixtures/cases.json" --backend backend-ref
says "^$(awk '{ n += $1 } END { print n }' parts) cases of 2 operators"
[ "$(sort -u parts | wc -l)" -le 2 ] || complain "parts are not alike"
status 2 "$aothost" ops aten.add.Tensor --cases "$fixtures/cases.json" --backend backend-ref --part 4/3
says "--part takes one of so many, as 3/12, not '4/3'"
status 2 "$aothost" ops --part 1/3
says '--part belongs to --cases'
finish
