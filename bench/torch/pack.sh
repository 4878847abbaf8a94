#!/bin/sh
# Packs what run.py needs of a build where nothing can be built: the command, the library, the plugins, and the libraries that
# they are linked with or open (OpenBLAS, oneDNN), without those of every system (libc, libgcc, libstdc++, libgomp).
#   bench/torch/pack.sh BUILD FILE.tar.gz        there: tar -C DIR -xzf FILE.tar.gz; run.py --aothost DIR/bin/aothost
set -eu
build=$1; out=$2
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/bin" "$dir/lib/aothost"
cp "$build/bin/aothost" "$dir/bin"
cp -a "$build"/lib/libaothost.so* "$dir/lib"
cp "$build"/lib/aothost/*.so "$dir/lib/aothost"
[ ! -f "$build/lib/nccl_copies.so" ] || cp "$build/lib/nccl_copies.so" "$dir/lib"
opened=$(ldconfig -p | sed -n 's/^\t\(libopenblas\.so\.0\|libdnnl\.so\.2\) .*x86-64.* => //p')
{ echo "$opened"; find "$dir" -type f -exec ldd {} \; ; for file in $opened; do ldd "$file"; done; } 2> /dev/null |
  sed 's/.*=> //; s/ (.*//' |
  grep '^/' | grep -vE '/(ld-linux.*|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|gomp|aothost)\.so.*)$' | sort -u |
  while read -r file; do cp -L "$file" "$dir/lib"; done
find "$dir" -type f -exec strip --strip-debug {} \; 2> /dev/null
tar -C "$dir" -czf "$out" bin lib
ls -l "$out" | awk '{ print $9 ": " $5 " bytes" }'
