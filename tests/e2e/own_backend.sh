#!/bin/sh
# own_backend.sh AOTHOST EDIT ROOT CC [FLAGS]: examples/backend as a vendor builds it, with nothing but the installed headers, and the
# commands of docs/BACKEND.md on it.
. "$(dirname "$0")/lib.sh"
cc=$4; flags=${5:-}
example=$root/examples/backend
mkdir -p prefix/include plugins
cp -r "$root/plugin-api/aot" prefix/include/
$cc -std=c11 -O2 -fPIC -shared -fvisibility=hidden -Wall -Wextra -Werror $flags -I prefix/include "$example/few_ops.c" -o plugins/few_ops.so || exit 1
export AOT_PLUGIN_PATH=$PWD/plugins

# The pieces of C in docs/BACKEND.md are C.
{
  echo '#include <aot/backend.h>'; echo '#include <aot/inline.h>'; echo '#include <stdio.h>'
  echo 'void snippets(const aot_snapshot_t *s, const aot_binding_t *b, uint64_t *donated);'
  echo 'void snippets(const aot_snapshot_t *s, const aot_binding_t *b, uint64_t *donated) {'
  awk '/^    (const aot_snap|for \()/ {on = 1} !/^    / {on = 0} on' "$root/docs/BACKEND.md"
  echo '}'
} > snippets.c
[ "$(grep -c ';$' snippets.c)" -gt 8 ] || complain "docs/BACKEND.md has no C"
status 0 $cc -std=c11 -Wall -Wextra -Werror -I prefix/include -c snippets.c -o snippets.o

# It trains, with backend-ref's losses, by one graph and by three, on the host's memory and on memory that the host cannot touch.
train() { # CHECKPOINT FLAGS: the parameters after four steps, in a file
  to=$1; shift
  status 0 "$aothost" run "$example/train.yaml" --no-cache --set run.train.checkpoint="$to" "$@"
  says '^step 4/4  loss 4\.4162'
}
train ref.st --set vars.backend=backend-ref
train one.st
train three.st --set run.train.step=three-graphs
train strict.st --set run.device=strict
for st in one three strict; do same ref.st $st.st; done
status 0 "$aothost" run "$example/train.yaml"
status 0 "$aothost" run "$example/train.yaml" # out of the compile cache: load is handed bytes of another process
says '^step 4/4  loss 4\.4162'

# A device that the CPU cannot compute on, and a node that is none of the eight operators, are refused with the reason.
status 2 "$aothost" run "$example/train.yaml" --set run.device=strict --set run.device-with.host-work=false
says "the CPU cannot compute on the device's memory"
sed 's/aten.mul.Tensor %d, %d/aten.atan2.default %d, %d/' "$example/line.ir" > atan2.ir
status 2 "$aothost" run "$example/train.yaml" --model atan2.ir
says 'backend example.few-ops does not support [0-9]+ nodes?, and no opset decomposes them'
says 'reason: it is none of the eight operators'

# Recorded calls: what is not refused is right.
status 1 "$aothost" ops aten.add.Tensor aten.mul.Tensor aten.sum.default --cases "$root/tests/fixtures/ops/cases.json" \
  --backend example.few-ops --json ops.json
says '^  refused by the backend forward'
status 0 "$aothost" ops aten.mul.Tensor --backend example.few-ops
says 'aten.mul.Tensor .* native '
finish
