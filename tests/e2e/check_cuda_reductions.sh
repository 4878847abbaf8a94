#!/bin/sh
# Reductions of tensors that lie in any order, over any dimensions, on backend-cuda's double: backend-ref's results, and
# none of them runs on the host. Each program permutes, widens or cuts one parameter, and reduces what that gives.
. "$(dirname "$0")/lib.sh"
awk '
# The kth permutation of n dimensions.
function permutation(k, n,   list, left, i, j, at) {
  for (i = 0; i < n; i++) left[i] = i
  for (i = n; i > 0; i--) {
    at = k % i; k = int(k / i)
    list = list (i < n ? ", " : "") left[at]
    for (j = at; j + 1 < i; j++) left[j] = left[j + 1]
  }
  return "[" list "]"
}
function node(text) { printf "  %%n%d = %s\n", ++n, text; return "%n" n }
function result(name) { outputs = outputs sprintf("  out user_output %d = %s\n", n_outputs++, name) }
function reduce(x, dims, k,   sum) {
  if (k % 6 == 0) result(node("aten.sum.dim_IntList " x ", " dims))
  else if (k % 6 == 1) result(node("aten.mean.dim " x ", " dims ", true"))
  else if (k % 6 == 2) result(node("aten.amax.default " x ", " dims))
  else if (k % 6 == 3) result(node("aten.var.correction " x ", " dims))
  else if (k % 6 == 4) { sum = node("aten.sum.dim_IntList " x ", " dims ", true"); result(node("aten.div.Tensor " x ", " sum)) }
  else result(node("aten.logsumexp.default " x ", " dims))
}
BEGIN {
  split("0000803f 00000040 0000003f 00004040 0000a03f 0000803e 0000c03f 00008040", words, " ")
  for (i = 0; i < 3 * 4 * 6 * 16; i++) data = data words[int((i * i + 3 * i) / 7 + i) % 8 + 1]
  print "aot 1\nproperties imported"
  print "leaf 0 parameter \"x\" : f32[3, 4, 6, 16] data \"" data "\""
  print "graph @main forward {\n  in %x = parameter 0 : f32[3, 4, 6, 16]"
  half = node("aten._to_copy.default %x, bf16")
  wide = node("aten.unsqueeze.default %x, 2")
  wide = node("aten.expand.default " wide ", [3, 4, 5, 6, 16]")
  cut = node("aten.slice.Tensor %x, 3, 1, 14, 3")
  for (set = 1; set < 16; set++) {
    dims = ""
    for (d = 0; d < 4; d++) if (int(set / 2 ^ d) % 2) dims = dims (dims == "" ? "" : ", ") d
    for (k = 0; k < 3; k++) {
      x = set % 5 == 3 ? cut : set % 3 == 1 ? half : "%x"
      x = node("aten.permute.default " x ", " permutation(set * 7 + k * 11, 4))
      reduce(x, "[" dims "]", set * 5 + k * 2 + int(set / 4))
    }
    x = node("aten.permute.default " wide ", " permutation(set * 37, 5))
    reduce(x, "[" dims (set % 2 ? ", 4" : "") "]", set)
  }
  x = node("aten.permute.default %x, [2, 0, 3, 1]")
  result(node("aten.sum.default " x)); result(node("aten.argmax.default " x)); result(node("aten.prod.default " x))
  printf "%s}\n", outputs
}' > reductions.ir
status 0 "$aothost" run "$root/pipelines/inference.yaml" --model reductions.ir --outputs expected.st --set vars.backend=backend-ref
for target in "backend-cpu" "backend-cuda --set run.device=cuda"; do
  # shellcheck disable=SC2086
  status 0 "$aothost" verify "$root/pipelines/inference.yaml" --model reductions.ir --expect expected.st --json run.json \
    --set vars.backend=$target
done
grep -A1 '"host-fallbacks"' run.json | grep -q '"value": 0' || { complain "reductions run on the host"; cat out; }

# Sums of columns that share a loop with what they are sums of, and that a cat wants side by side.
awk 'BEGIN {
  split("0000803f 00000040 0000003f 00004040 0000a03f 0000803e 0000c03f 00008040", words, " ")
  for (i = 0; i < 48 * 32; i++) data = data words[int((i * i + 3 * i) / 7 + i) % 8 + 1]
  print "aot 1\nproperties imported\nleaf 0 parameter \"x\" : f32[48, 32] data \"" data "\""
}' > columns.ir
cat >> columns.ir <<'END'
graph @main forward {
  in %x = parameter 0 : f32[48, 32]
  %a : f32[48, 32] = aten.neg.default %x
  %b : f32[48, 32] = aten.mul.Tensor %a, %x
  %one : f32[32] = aten.sum.dim_IntList %a, [0]
  %two : f32[32] = aten.sum.dim_IntList %b, [0]
  %both : f32[64] = aten.cat.default [%one, %two], 0
  out user_output 0 = %a
  out user_output 1 = %b
  out user_output 2 = %both
}
END
status 0 "$aothost" run "$root/pipelines/inference.yaml" --model columns.ir --outputs expected.st --set vars.backend=backend-ref
status 0 "$aothost" verify "$root/pipelines/inference.yaml" --model columns.ir --expect expected.st --json run.json \
  --set vars.backend=backend-cuda --set run.device=cuda
# Rows of 16 KB, of which three are on their way to a block: 48 KB of shared memory, beside what its reductions take.
{ printf 'aot 1\nproperties imported\n'; leaf 0 u '[600]' 600; leaf 1 v '[2048]' 2048; leaf 2 w '[2048]' 2048; } > staged.ir
cat >> staged.ir <<'END'
graph @main forward {
  in %pu = parameter 0 : f32[600]
  in %pv = parameter 1 : f32[2048]
  in %pw = parameter 2 : f32[2048]
  %u = aten.view.default %pu, [600, 1]
  %v = aten.view.default %pv, [1, 2048]
  %w = aten.view.default %pw, [1, 2048]
  %bu = aten._to_copy.default %u, dtype=bf16
  %bv = aten._to_copy.default %v, dtype=bf16
  %bw = aten._to_copy.default %w, dtype=bf16
  %x = aten.mm.default %u, %v
  %g = aten.mm.default %bu, %bv
  %h = aten.mm.default %bu, %bw
  %xh = aten.mul.Tensor %x, %h
  %xhu = aten.mul.Tensor %xh, %u
  %p = aten.mul.Tensor %g, %xhu
  %columns = aten.sum.dim_IntList %p, [0]
  %gv = aten.mul.Tensor %g, %pv
  %gvu = aten.mul.Tensor %gv, %u
  %q = aten.mul.Tensor %gv, %xh
  %rows = aten.sum.dim_IntList %q, [1]
  %xu = aten.mul.Tensor %x, %u
  %xuw = aten.mul.Tensor %xu, %pw
  %half = aten._to_copy.default %xuw, dtype=bf16
  out user_output 0 = %rows
  out user_output 1 = %columns
  out user_output 2 = %gvu
  out user_output 3 = %half
}
END
status 0 "$aothost" run "$root/pipelines/inference.yaml" --model staged.ir --outputs expected.st --set vars.backend=backend-ref
status 0 "$aothost" verify "$root/pipelines/inference.yaml" --model staged.ir --expect expected.st --set vars.backend=backend-cuda \
  --set run.device=cuda --atol 1e-3
finish
