#!/bin/sh
# check_template.sh SOURCE BUILD AOTHOST CC [FLAGS]: a vendor's way. Installs the headers alone, copies the template out of the
# tree, builds it with them, and uses it through AOT_PLUGIN_PATH in `aothost opt`.
set -eu
source="$1"; build="$2"; aothost="$3"; cc="$4"; flags="${5:-}"
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/prefix/include" "$tmp/plugins"
cp -r "$source/plugin-api/aot" "$tmp/prefix/include/"
cp -r "$source/plugins/template" "$tmp/vendor"
sed -i 's/"dead-code"/"vendor-dead-code"/' "$tmp/vendor/plugin.c"
$cc -std=c11 -O2 -fPIC -shared -fvisibility=hidden -Wall -Wextra -Werror $flags -I "$tmp/prefix/include" "$tmp/vendor/plugin.c" "$tmp/vendor/dead_code.c" \
  -o "$tmp/plugins/vendor-dead-code.so"
exported=$(nm -D --defined-only "$tmp/plugins/vendor-dead-code.so" | awk '$2 == "T" {print $3}')
[ "$exported" = aot_plugin_entry ] || { echo "the plugin exports: $exported"; exit 1; }
export AOT_PLUGIN_PATH="$tmp/plugins"
"$aothost" plugins vendor-dead-code | grep -q "removes nodes"
cat > "$tmp/in.ir" <<'IR'
aot 1
properties imported
leaf 0 user_input 0 "x" : f32[4]
graph @forward forward {
  in %0 = user_input 0 : f32[4]
  %1 = aten.relu.default %0
  %2 = aten.neg.default %1
  %3 = aten.tanh.default %0
  out user_output 0 = %3
}
IR
"$aothost" opt "$tmp/in.ir" --use vendor-dead-code > "$tmp/out.ir"
grep -q aten.tanh.default "$tmp/out.ir"
if grep -q aten.relu.default "$tmp/out.ir"; then echo "dead nodes are still there"; cat "$tmp/out.ir"; exit 1; fi
echo "template: built out of tree, loaded, used"
