#!/bin/sh
# follow_guide.sh PACKAGES [MIRROR]: the commands of docs/VENDOR.md as they stand, by somebody with a bare Debian of the release that
# built the packages in folder PACKAGES, a compiler, and these packages alone: apt finds what they depend on. Root is needed, and a
# mirror (default deb.debian.org), so tools/nightly runs it and tools/test does not. Status 77: no debootstrap, or not root.
set -eu
packages=$1; mirror=${2:-http://deb.debian.org/debian}
guide=$(cd "$(dirname "$0")/../../docs" && pwd)/VENDOR.md
if [ "$(id -u)" != 0 ] || ! command -v debootstrap > /dev/null; then echo "skipped: root and debootstrap are needed"; exit 77; fi
tmp=$(mktemp -d); root=$tmp/root
trap 'umount "$root/proc" 2> /dev/null || :; rm -rf "$tmp"' EXIT
run() { "$@" > "$tmp/log" 2>&1 || { tail -40 "$tmp/log"; echo "FAILED: $*"; exit 1; }; }

run debootstrap --variant=minbase --include=gcc,libc6-dev,cmake,make,pkg-config "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root" "$mirror"
mkdir "$root/packages" "$root/empty"
cp "$packages"/aothost_*.deb "$packages"/aothost-plugins-core_*.deb "$packages"/aothost-plugins-cpu_*.deb \
  "$packages"/libaothost*.deb "$root/packages/"
cp /etc/resolv.conf "$root/etc/"
{ echo 'set -ex'; sed -n 's/^    //p' "$guide"; } > "$root/guide.sh"
mount --bind /proc "$root/proc"
run chroot "$root" sh -c 'apt-get install -y --no-install-recommends /packages/*.deb'
began=$(date +%s)
run chroot "$root" env -i PATH=/usr/bin:/usr/sbin HOME=/root sh -c "cd /empty && sh /guide.sh"
echo "docs/VENDOR.md in a bare Debian: $(wc -l < "$root/guide.sh") lines in $(($(date +%s) - began)) s; the partitioner has $(wc -l < "$root/empty/split/save_heavy.c")"
