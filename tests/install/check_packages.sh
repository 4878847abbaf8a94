#!/bin/sh
# check_packages.sh BUILD CMAKE CPACK: the Debian packages. All that an installation has is in one of them and in no other; dpkg installs them
# into a root that has what they depend on and nothing else, refuses them without it, and removes them whole; in that root the
# command finds its plugins, trains and makes a plugin. The root is this machine's packages: it shows what is declared, not what another
# release of Debian has. Status 77: there is no dpkg to ask, or no root may be entered.
set -eu
build=$1; cmake=$2; cpack=$3
for program in dpkg dpkg-deb dpkg-shlibdeps file unshare; do command -v "$program" > /dev/null || { echo "no $program"; exit 77; }; done
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
root=$tmp/root
fail() { echo "FAILED: $1"; cat "$tmp/log"; exit 1; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else unshare -r "$@"; fi; }
PATH=$PATH:/usr/sbin:/sbin

cd "$build"
"$cpack" -G DEB -B "$tmp/deb" > "$tmp/log" 2>&1 || fail "cpack"
cd "$tmp/deb"
names=$(for deb in *.deb; do dpkg-deb -f "$deb" Package; done)
wanted="aothost-plugins-core aothost-plugins-cpu aothost-plugins-cuda aothost-plugins-mpi aothost-plugins-torchvision aothost libaothost-dev libaothost0"
[ "$(echo $names)" = "$wanted" ] || fail "the packages are: $names"

# Each file in one package.
DESTDIR=$tmp/all "$cmake" --install "$build" --prefix /usr > "$tmp/log" 2>&1 || fail "install"
(cd "$tmp/all" && find . ! -type d) | sort > "$tmp/installed"
for deb in *.deb; do dpkg-deb --fsys-tarfile "$deb" | tar -t | grep -v '/$'; done | sort > "$tmp/packed"
diff "$tmp/installed" "$tmp/packed" > "$tmp/log" || fail "what is installed (<) and what is packed (>) differ"

# A root with what the command, its core and the library depend on.
mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" "$root/tmp" "$root/proc"
: > "$root/var/lib/dpkg/status"
depends() { tr ',' '\n' | sed 's/|.*//; s/(.*//; s/:any//; s/ //g' | grep -v '^$' | sort -u; }
for deb in aothost_* aothost-plugins-core_* libaothost*; do dpkg-deb -f "$deb" Depends; done | depends | grep -v aothost > "$tmp/ask"
: > "$tmp/there"
while [ -s "$tmp/ask" ]; do
  cat "$tmp/ask" >> "$tmp/there"
  for package in $(cat "$tmp/ask"); do dpkg-query -W -f '${Depends}\n' "$package"; done | depends | grep -vxF -f "$tmp/there" > "$tmp/next" || :
  mv "$tmp/next" "$tmp/ask"
done
for package in dash libc-bin; do echo "$package" >> "$tmp/there"; done # every Debian has them: a shell, and ldconfig for the library
for package in $(sort -u "$tmp/there"); do
  { dpkg-query -s "$package"; echo; } >> "$root/var/lib/dpkg/status"
  dpkg -L "$package" | while read -r path; do [ -d "$path" ] || echo ".$path"; done | (cd / && tar -c --no-recursion -T - 2> "$tmp/log") |
    tar -x -C "$root" || fail "$package cannot be copied"
  for list in "/var/lib/dpkg/info/$package.list" "/var/lib/dpkg/info/$package":*.list; do [ ! -e "$list" ] || cp "$list" "$root/var/lib/dpkg/info/"; done
done
for name in bin sbin lib lib32 lib64 libx32; do # where the machine has merged /usr
  if [ -L "/$name" ]; then cp -a "$root/$name/." "$root/usr/$name/" 2> "$tmp/log" || :; rm -rf "${root:?}/$name"; ln -s "usr/$name" "$root/$name"; fi
done

dpkg_root() { as_root dpkg --root="$root" --force-unsafe-io --force-not-root "$@" > "$tmp/log" 2>&1; }
dpkg_root --install aothost_*.deb && fail "the command is installed without its plugins"
grep -q 'aothost depends on aothost-plugins-core' "$tmp/log" || fail "dpkg refuses it for something else"
dpkg_root --install aothost_*.deb aothost-plugins-core_*.deb libaothost0_*.deb libaothost-dev_*.deb || fail "dpkg --install"

inside() { # COMMAND: in the root, with nothing but it
  unshare -rm sh -c 'mount --rbind /proc "$1/proc" && shift && exec env -i PATH=/usr/bin:/usr/sbin HOME=/tmp AOT_CACHE=off chroot "$@"' - "$root" "$root" "$@" > "$tmp/log" 2>&1
}
unshare -rm true 2> "$tmp/log" || { echo "installed, but no root may be entered here"; exit 77; }
inside /usr/bin/aothost plugins || fail "aothost plugins"
for unit in aten autograd backend-ref partition-mincut pt2; do grep -q "^$unit " "$tmp/log" || fail "no unit $unit"; done
if grep -q '^backend-cpu ' "$tmp/log"; then fail "a backend that was not installed"; fi
inside /usr/bin/aothost run /usr/share/aothost/templates/backend/train.yaml --set vars.backend=backend-ref || fail "aothost run"
grep -q 'step 4/4  loss 4.4162' "$tmp/log" || fail "it trains to another loss"
inside /usr/bin/aothost new acme.pass --kind pass -o /tmp/acme || fail "aothost new"
inside /usr/bin/aothost opt /tmp/acme/negated_twice.ir --use functionalize || fail "the new plugin's program"

dpkg_root --purge aothost aothost-plugins-core libaothost0 libaothost-dev || fail "dpkg --purge"
find "$root" -path "$root/proc" -prune -o -path "$root/tmp" -prune -o -name '*aothost*' -print > "$tmp/log"
[ ! -s "$tmp/log" ] || fail "files are left"
echo "packages: $(echo $names), in a root of $(sort -u "$tmp/there" | wc -l) packages"
