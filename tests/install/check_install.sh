#!/bin/sh
# check_install.sh SOURCE BUILD CMAKE CC [FLAGS]: installs to a prefix, moves it, and builds a program against it with pkg-config and
# with CMake, the shared and the static library each, and a plugin. They see nothing but the prefix.
set -eu
source="$1"; build="$2"; cmake="$3"; cc="$4"; flags="${5:-}"
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
"$cmake" --install "$build" --prefix "$tmp/first" > "$tmp/log" || { cat "$tmp/log"; exit 1; }
mv "$tmp/first" "$tmp/prefix"
cp -r "$source/tests/install/consumer" "$tmp/consumer"
cp -r "$source/plugins/template" "$tmp/vendor"
cp -r "$source/examples/kit_backend" "$tmp/kit_backend"
sed -i 's/"dead-code"/"vendor-dead-code"/' "$tmp/vendor/plugin.c"
sed -i 's/dead-code SOURCES/vendor-dead-code SOURCES/' "$tmp/vendor/CMakeLists.txt"
pc=$(find "$tmp/prefix" -name aothost.pc)
export PKG_CONFIG_PATH="$(dirname "$pc")" HOME="$tmp/nobody" AOT_CACHE_DIR="$tmp/cache"
unset AOT_PLUGIN_PATH
libdir=$(pkg-config --variable=libdir aothost); plugins=$(pkg-config --variable=plugindir aothost)
fail() { echo "$1"; exit 1; }
run() { # PROGRAM [FOLDER OF PLUGINS]..
  program="$1"; shift
  "$program" "$tmp/consumer/consumer.yaml" "$source/tests/fixtures/models/mlp/train.pt2" "$@" > "$tmp/out" 2>&1 || { cat "$tmp/out"; fail "$program"; }
  grep -q "^loss 2\." "$tmp/out" || { cat "$tmp/out"; fail "$program tells no loss"; }
}
is_shared() { ldd "$1" | grep -q libaothost; }

$cc -std=c99 $flags $(pkg-config --cflags aothost) "$tmp/consumer/consumer.c" $(pkg-config --libs aothost) -Wl,-rpath,"$libdir" -o "$tmp/shared"
is_shared "$tmp/shared" || fail "pkg-config --libs: the program is not linked to libaothost.so"
run "$tmp/shared" # plugins are found beside the library
$cc -std=c99 $flags $(pkg-config --cflags aothost) "$tmp/consumer/consumer.c" \
  $(pkg-config --static --libs aothost | sed 's/-laothost/-l:libaothost.a/') -o "$tmp/static"
is_shared "$tmp/static" && fail "pkg-config --static: the program is linked to libaothost.so"
run "$tmp/static" "$plugins"

# Each header of the kit, by itself.
kit=$tmp/prefix/include/aothost
[ -f "$kit/kit/lowering/lower.h" ] || fail "the kit's headers are not installed"
for header in $(cd "$kit" && find kit -name '*.h'); do
  echo "#include \"$header\"" | $cc -std=c11 -Wall -Wextra -Werror $flags $(pkg-config --cflags aothost-kit) -fsyntax-only -x c - \
    > "$tmp/log" 2>&1 || { cat "$tmp/log"; fail "$header does not compile by itself"; }
done

configure() { "$cmake" -S "$1" -B "$1/build" -DCMAKE_PREFIX_PATH="$tmp/prefix" -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="$flags" "$2" &&
  "$cmake" --build "$1/build"; }
configure "$tmp/vendor" -DAOT_SANITIZE="${flags:+ON}" > "$tmp/log" 2>&1 || { cat "$tmp/log"; fail "the plugin does not build"; }
configure "$tmp/kit_backend" -DAOT_SANITIZE="${flags:+ON}" > "$tmp/log" 2>&1 || { cat "$tmp/log"; fail "the backend on the kit does not build"; }
configure "$tmp/consumer" -DWITH_STATIC=ON > "$tmp/log" 2>&1 || { cat "$tmp/log"; fail "the program does not build"; }
is_shared "$tmp/consumer/build/shared" || fail "aothost::aothost: the program is not linked to libaothost.so"
is_shared "$tmp/consumer/build/static" && fail "aothost::static: the program is linked to libaothost.so"
run "$tmp/consumer/build/shared"
run "$tmp/consumer/build/static" "$plugins" "$tmp/vendor/build"
if (run "$tmp/consumer/build/static" "$plugins" "$plugins" > "$tmp/log"); then fail "a pass is used that is not there"; fi
grep -q "unknown unit 'vendor-dead-code'" "$tmp/log" || { cat "$tmp/log"; fail "without its folder the plugin is not missed"; }
"$tmp/prefix/bin/aothost" plugins > "$tmp/out"
grep -q "autograd" "$tmp/out" || fail "the installed command finds no plugins"

# A plugin by pkg-config alone, from a template of the SDK; recorded calls of the SDK run it.
aothost=$tmp/prefix/bin/aothost
AOT_CACHE=off "$aothost" new acme.few-ops --kind backend -q -o "$tmp/few" || fail "the installed command makes no plugin"
$cc -std=c11 -O2 -Wall -Wextra -Werror $flags $(pkg-config --cflags aothost-plugin) "$tmp/few/few_ops.c" $(pkg-config --libs aothost-plugin) \
  -o "$tmp/few.so" || fail "pkg-config: the plugin does not build"
"$aothost" run "$tmp/few/train.yaml" --plugin-dir "$tmp/few.so" > "$tmp/out" 2>&1 || { cat "$tmp/out"; fail "the plugin does not train"; }
grep -q 'step 4/4  loss 4.4162' "$tmp/out" || { cat "$tmp/out"; fail "the plugin trains to another loss"; }
"$aothost" ops aten.mul.Tensor --cases "$(pkg-config --variable=casesdir aothost-plugin)/cases.json" --backend acme.few-ops \
  --plugin-dir "$tmp/few.so" --json "$tmp/ops.json" > "$tmp/out" 2>&1 || [ $? = 1 ] || { cat "$tmp/out"; fail "no recorded calls"; }
grep -q 'aten.mul.Tensor' "$tmp/out" || { cat "$tmp/out"; fail "recorded calls say nothing of the operator"; }
# A backend written with the kit, out of the tree: it needs no library of ours when it runs, its loops are generated, and models give
# what PyTorch recorded. The same files build with pkg-config.
kit_backend=$tmp/kit_backend/build/example.kit-backend.so
if readelf -d "$kit_backend" | grep NEEDED | grep -vE 'lib(c|m|dl|pthread|asan|ubsan)\.so|ld-linux'; then fail "the backend on the kit needs more than libc"; fi
"$tmp/prefix/bin/aothost" run "$tmp/kit_backend/train.yaml" --plugin-dir "$kit_backend" --verbose > "$tmp/out" 2>&1 || { cat "$tmp/out"; fail "the backend on the kit"; }
grep -q 'generated-calls: [1-9]' "$tmp/out" && grep -q 'fallback-nodes: 0 ' "$tmp/out" || { cat "$tmp/out"; fail "its loops are not generated"; }
"$tmp/prefix/bin/aothost" inspect "$tmp/kit_backend/train.yaml" --memory --plugin-dir "$kit_backend" > "$tmp/out" 2>&1 || { cat "$tmp/out"; fail "its memory plan"; }
for model in mlp gpt_tiny bert_tiny vit_tiny resnet_tiny; do
  files=$source/tests/fixtures/models/$model
  "$tmp/prefix/bin/aothost" verify "$tmp/prefix/share/aothost/pipelines/verify.yaml" --model "$files/train.pt2" \
    --expect "$files/expected.safetensors" --set vars.backend=example.kit-backend --plugin-dir "$kit_backend" > "$tmp/out" 2>&1 ||
    { cat "$tmp/out"; fail "$model on the kit's backend"; }
  grep -q 'keys agree' "$tmp/out" && grep -qE '^backends: example.kit-backend [0-9]+ nodes$' "$tmp/out" || { cat "$tmp/out"; fail "$model ran on another backend"; }
done
$cc -std=gnu11 $flags $(pkg-config --cflags aothost-kit) "$tmp"/kit_backend/*.c $(pkg-config --libs aothost-kit | sed "${flags:+s/-Wl,-z,defs//}") \
  -o "$tmp/by-pkg-config.so"
"$tmp/prefix/bin/aothost" run "$tmp/kit_backend/train.yaml" --plugin-dir "$tmp/by-pkg-config.so" > "$tmp/out" 2>&1 || { cat "$tmp/out"; fail "the backend built with aothost-kit.pc"; }

for folder in "$(pkg-config --variable=templatedir aothost-plugin)/opset" "$tmp/prefix/share/aothost/examples/custom_op" \
  "$tmp/prefix/share/aothost/pipelines" "$tmp/prefix/share/doc/aothost"; do
  [ -d "$folder" ] || fail "the SDK lacks $folder"
done
echo "installed, moved, consumed: shared and static, pkg-config and CMake; one plugin by each; a backend on the kit"
