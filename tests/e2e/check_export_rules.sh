#!/bin/sh
# What aothost export refuses, a program for each: every restriction of PyTorch's aot_export_module, by its code.
. "$(dirname "$0")/lib.sh"

# refused CODE FLAGS..: the program on the standard input
refused() {
  code=$1; shift
  cat > program.ir
  status 2 "$aothost" export program.ir -o out.pt2 "$@"
  says "\[$code\]"
  [ ! -e out.pt2 ] || complain "a refused program was written ($code)"
}

refused export.metadata-mutation <<'P'
aot 1
properties imported functional
leaf 0 user_input 0 "x" : f32[2, 3]
rule restride 0 [3, 2] strides [1, 3]
graph @forward forward {
  in %x = user_input 0 : f32[2, 3]
  %y : f32[2, 3] = aten.relu.default %x
  out user_output 0 = %y
}
P
refused export.mutated-input-requires-grad --joint <<'P'
aot 1
properties imported functional
leaf 0 user_input 0 "x" : f32[3] grad
rule copy_back 0
graph @forward forward {
  in %x = user_input 0 : f32[3] grad
  %y = aten.mul.Tensor %x, 2
  %loss = aten.sum.default %y
  out user_output 0 = %loss
  out update 0 = %y
}
P
refused export.parameter-mutated --joint <<'P'
aot 1
properties imported functional
leaf 0 parameter "w" : f32[3] grad
leaf 1 parameter "mean" : f32[3]
rule copy_back 1
graph @forward forward {
  in %w = parameter 0 : f32[3] grad
  in %mean = parameter 1 : f32[3]
  %new = aten.mul.Tensor %mean, 2
  %y = aten.mul.Tensor %w, %mean
  %loss = aten.sum.default %y
  out user_output 0 = %loss
  out update 1 = %new
}
P
refused export.duplicate-mutated-inputs <<'P'
aot 1
properties imported functional
leaf 0 buffer "a" "b" : f32[3] {persistent}
rule copy_back 0
graph @forward forward {
  in %a = buffer 0 : f32[3]
  %new = aten.mul.Tensor %a, 2
  out user_output 0 = %new
  out update 0 = %new
}
P
shared=$root/plugins/import-pt2/tests/data/shared_buffers.pt2 # two buffers that overlap in one storage
status 2 "$aothost" export "$shared" -o out.pt2
says 'buffer "a" and buffer "b" share memory .*\[export.aliased-mutated-inputs\]'
refused export.joint-needs-loss-index --joint <<'P'
aot 1
properties imported functional
leaf 0 parameter "w" : f32[3] grad
graph @forward forward {
  in %w = parameter 0 : f32[3] grad
  %loss = aten.sum.default %w
  %other = aten.mean.default %w
  out user_output 0 = %loss
  out user_output 1 = %other
}
P
status 2 "$aothost" export program.ir --joint --loss 2 -o out.pt2
says "\[export.joint-needs-loss-index\]"
status 2 "$aothost" export program.ir --joint --loss 0 -o out.pt2
says "output 1 requires a gradient and is not the loss .*\[export.output-requires-grad\]"
sed 's/aten.mean.default %w/aten.detach.default %loss/' program.ir > detached.ir
status 0 "$aothost" export detached.ir --joint --loss 0 -o out.pt2
rm out.pt2
refused export.loss-not-scalar --joint <<'P'
aot 1
properties imported functional
leaf 0 parameter "w" : f32[3] grad
graph @forward forward {
  in %w = parameter 0 : f32[3] grad
  %y = aten.mul.Tensor %w, 2
  out user_output 0 = %y
}
P
refused export.loss-without-grad --joint <<'P'
aot 1
properties imported functional
leaf 0 user_input 0 "x" : f32[3]
graph @forward forward {
  in %x = user_input 0 : f32[3]
  %loss = aten.sum.default %x
  out user_output 0 = %loss
}
P
refused export.loss-without-grad --joint --loss 0 <<'P'
aot 1
properties imported functional
leaf 0 parameter "w" : f32[3] grad
leaf 1 user_input 0 "x" : f32[3]
graph @forward forward {
  in %w = parameter 0 : f32[3] grad
  in %x = user_input 1 : f32[3]
  %loss = aten.sum.default %x
  %other = aten.sum.default %w
  out user_output 0 = %loss
  out user_output 1 = %other
}
P
refused export.parameter-without-gradient --joint <<'P'
aot 1
properties imported functional
leaf 0 parameter "w" : f32[3] grad
leaf 1 parameter "unused" : f32[3] grad
graph @forward forward {
  in %w = parameter 0 : f32[3] grad
  in %unused = parameter 1 : f32[3] grad
  %loss = aten.sum.default %w
  out user_output 0 = %loss
}
P
refused export.random <<'P'
aot 1
properties imported functional
leaf 0 user_input 0 "x" : f32[3]
graph @forward forward {
  in %x = user_input 0 : f32[3]
  in %seed = seed 0 : i64[]
  %y = aten.relu.default %x
  out user_output 0 = %y
}
P
refused export.too-late <<'P'
aot 1
properties imported functional partitioned
leaf 0 parameter "w" : f32[3] grad
graph @forward forward {
  in %w = parameter 0 : f32[3] grad
  %loss = aten.sum.default %w
  out loss 0 = %loss
}
graph @backward backward {
  in %t = tangent 0 : f32[]
  %g : f32[3] strides [0] = aten.expand.default %t, [3]
  out gradient 0 = %g
}
P
refused export.is-joint <<'P'
aot 1
properties imported functional joint
leaf 0 parameter "w" : f32[3] grad
graph @joint joint {
  in %w = parameter 0 : f32[3] grad
  in %t = tangent 0 : f32[]
  %loss = aten.sum.default %w
  %g : f32[3] strides [0] = aten.expand.default %t, [3]
  out loss 0 = %loss
  out gradient 0 = %g
}
P
status 0 "$aothost" export program.ir --joint -o out.pt2

# Bad flags.
status 2 "$aothost" export program.ir --loss 0
says "\[export.loss\]"
status 2 "$aothost" export program.ir --joint --loss x
says "counted from 0"
status 2 "$aothost" export program.ir --joint --use functionalize --pipeline p.yaml
says "\[export.stages\]"
finish
