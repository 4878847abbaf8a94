#!/bin/sh
# check_vendor_guide.sh SOURCE BUILD CMAKE: the commands of docs/VENDOR.md, as they stand there, by somebody who has an installation and an
# empty folder.
set -eu
source=$1; build=$2; cmake=$3
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
"$cmake" --install "$build" --prefix "$tmp/prefix" > "$tmp/log" || { cat "$tmp/log"; exit 1; }
{ echo 'set -eux'; sed -n 's/^    //p' "$source/docs/VENDOR.md"; } > "$tmp/guide.sh"
[ "$(wc -l < "$tmp/guide.sh")" -gt 30 ] || { echo "docs/VENDOR.md has no commands"; exit 1; }
pkg=$(dirname "$(find "$tmp/prefix" -name aothost-plugin.pc)")
mkdir "$tmp/home" "$tmp/empty" && cd "$tmp/empty"
unset AOT_PLUGIN_PATH
PATH=$tmp/prefix/bin:$PATH CMAKE_PREFIX_PATH=$tmp/prefix PKG_CONFIG_PATH=$pkg HOME=$tmp/home AOT_CACHE_DIR=$tmp/cache \
  sh "$tmp/guide.sh" > "$tmp/log" 2>&1 || { tail -60 "$tmp/log"; exit 1; }
said() { grep -qE -- "$1" "$tmp/log" || { cat "$tmp/log"; echo "FAILED: it does not say '$1'"; exit 1; }; }
said '100% tests passed'
said 'keys agree'
said 'step 4/4  loss 0.127'
said 'contract violation by plugin org.acme.split'
said 'program.ir'
said 'partition/1'
said 'train.yaml: ok'
echo "docs/VENDOR.md: $(wc -l < "$tmp/guide.sh") commands"
