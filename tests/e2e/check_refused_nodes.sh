#!/bin/sh
# A node that a pass cannot make, because the shape rule of its operator refuses it: the error names operator and arguments, the node of
# the model that it comes from, and the line of the model's source.
. "$(dirname "$0")/lib.sh"
cat > m.ir <<'IR'
aot 1
properties imported
leaf 0 user_input 0 "x" : f32[3]
leaf 1 user_input 1 "y" : f32[4]
graph @forward forward {
  in %x = user_input 0 : f32[3]
  in %y = user_input 1 : f32[4]
  %c : f32[3] = aten.clone.default %x
  %z : f32[3] = aten.add_.Tensor %c, %y !0
  out user_output 0 = %z
}
origin 0 "model.py":41 module "block.0" node "add_7"
IR
status 2 "$aothost" opt m.ir --use functionalize
says '^model.py:41: error: .*(3|4)'
says '^  node aten\.add\.Tensor %c, %y'
says '^  from module block\.0, node add_7'
says '^  in stage functionalize'
finish
