#!/bin/sh
# check_trust.sh AOTHOST PLUGINS HERE: which plugin files are opened: none that everybody may write, none but those that are
# pinned, locked or signed.
. "$(dirname "$0")/lib.sh"
umask 022
says() { grep -qF -- "$1" err || fail "does not say: $1"; }
ends() { expected=$1; shift; "$@" > out 2> err; [ $? -eq "$expected" ] || fail "status other than $expected: $*"; }
mkdir a b open
for d in a b open; do cp "$plugins/good/toy.so" $d; done
echo "TOY add mul" > m.toy

# what everybody may write
chmod o+w open
ends 2 "$aothost" opt m.toy --plugin-dir open --use toy-fuse
says "--plugin-dir open: writable by everyone"
ends 2 env AOT_PLUGIN_PATH="$dir/open" "$aothost" opt m.toy --use toy-fuse
says "unknown unit 'toy-fuse'"
"$aothost" plugins -v 2> err > out; AOT_PLUGIN_PATH="$dir/open" "$aothost" plugins -v > out 2> err
grep -q "open (writable by everyone)" out || fail "the list does not say why"
chmod o-w open; chmod o+w open/toy.so
ends 2 "$aothost" opt m.toy --plugin-dir open --use toy-fuse
says "open/toy.so: writable by everyone"
chmod o-w open/toy.so
ends 0 "$aothost" opt m.toy --plugin-dir open --use toy-fuse
chmod o+w open # the file is named, the folder is not: another may be put in its place, but for a folder such as /tmp
ends 2 "$aothost" opt m.toy --plugin-dir open/toy.so --use toy-fuse
says "open/toy.so: replaceable by everyone"
chmod +t open
ends 0 "$aothost" opt m.toy --plugin-dir open/toy.so --use toy-fuse
chmod o-w,-t open

# a unit that hides another
ends 0 "$aothost" opt m.toy --plugin-dir a --plugin-dir b --use toy-fuse
says "warning: unit toy-fuse of $dir/a/toy.so shadows the same unit of $dir/b/toy.so"
[ "$(grep -c 'unit toy-fuse .* shadows the same unit' err)" -eq 1 ] || fail "told more than once"
ends 0 "$aothost" opt m.toy --plugin-dir a --use toy-fuse
grep -q 'shadows the same unit' err && fail "hides nothing"

# a pin
sum=$(sha256sum a/toy.so | cut -d' ' -f1)
pin() { printf 'aot: 1\nmodel: {path: m.toy}\nstages:\n  - use: {unit: toy-fuse, sha256: "%s"}\n' "$1" > p.yaml; }
pin "$sum"
ends 0 "$aothost" check p.yaml --plugin-dir a -v
grep -qF "use: {unit: toy-fuse, sha256: \"$sum\"}" out || fail "the pin is not printed"
pin "$(echo other | sha256sum | cut -d' ' -f1)"
ends 2 "$aothost" check p.yaml --plugin-dir a
says "p.yaml:4:35: error: unit toy-fuse: SHA-256 mismatch with the pin in the pipeline; $dir/a/toy.so has $sum"
pin 12ab
ends 2 "$aothost" check p.yaml --plugin-dir a
says "p.yaml:4:35: error: a SHA-256 has 64 hexadecimal digits"

# a lock
pin "$sum"
ends 0 "$aothost" plugins --lock p.yaml --plugin-dir a
cp out p.lock
sha256sum --quiet -c p.lock 2> err || fail "sha256sum does not agree"
grep -q "$sum  $dir/a/toy.so" p.lock || fail "the lock lacks the plugin"
ends 0 "$aothost" check p.yaml --plugin-dir a --locked p.lock
grep -v "$sum" p.lock > less.lock
ends 3 "$aothost" check p.yaml --plugin-dir a --locked less.lock
says "cannot load plugin $dir/a/toy.so: SHA-256 $sum is not listed in less.lock"
echo "not a lock" > bad.lock
ends 2 "$aothost" check p.yaml --plugin-dir a --locked bad.lock
says "bad.lock:1: error: expected lines of a SHA-256 digest"
[ "$(grep -c error: err)" -eq 1 ] || fail "more than one error"
ends 2 "$aothost" check p.yaml --plugin-dir a --locked nowhere.lock

# signatures
if "$aothost" sign --new-key me > out 2> err; then
  ends 2 "$aothost" sign --new-key me # a key is never written over
  says "cannot write me: File exists"
  [ "$(stat -c %a me)" = 600 ] || fail "others may read the secret key"
  ends 0 "$aothost" sign --new-key they
  ends 0 "$aothost" sign --key me a/toy.so
  signed() { "$aothost" opt m.toy --plugin-dir a --use toy-fuse --require-signed "$1"; }
  ends 0 signed me.pub
  cat they.pub me.pub > both.pub
  ends 0 signed both.pub
  ends 3 signed they.pub
  says "cannot load plugin $dir/a/toy.so: its signature $dir/a/toy.so.sig is by a key that is not listed (they.pub)"
  ends 3 "$aothost" opt m.toy --plugin-dir b --use toy-fuse --require-signed me.pub
  says "b/toy.so: not signed: $dir/b/toy.so.sig does not exist"

  cp a/toy.so.sig whole; cp a/toy.so toy.whole
  printf 'x' >> a/toy.so
  ends 3 signed me.pub
  says "toy.so.sig does not match: the file or the signature was changed"
  cp toy.whole a/toy.so
  sed 's/0$/1/; t; s/.$/0/' whole > a/toy.so.sig # its last digit is another one
  ends 3 signed me.pub
  says "toy.so.sig does not match: the file or the signature was changed"
  for n in 200 100 20 1; do
    head -c $n whole > a/toy.so.sig
    ends 3 signed me.pub
    says "toy.so.sig is malformed or truncated (me.pub)"
  done
  : > a/toy.so.sig
  ends 3 signed me.pub
  says "toy.so.sig is empty"
  { cat whole; echo more; } > a/toy.so.sig
  ends 0 signed me.pub # one that fits is enough
  { echo more; cat whole; } > a/toy.so.sig
  ends 3 signed me.pub
  says "is malformed or truncated"
  { "$aothost" sign --key they a/toy.so; cat a/toy.so.sig whole; } > both.sig 2> err
  grep '^ed25519' both.sig > a/toy.so.sig
  ends 0 signed me.pub
  ends 0 signed they.pub

  ends 2 signed me # the secret key is no public one
  says "me:2: error: expected a public key: a line with 'ed25519' and 64 hexadecimal digits"
  ends 2 signed nowhere.pub
  ends 2 "$aothost" sign --key me.pub a/toy.so
  says "me.pub is not a secret key"
  chmod g+r me
  ends 2 "$aothost" sign --key me a/toy.so
  says "secret key me has unsafe permissions: group or others have access"
  ends 2 "$aothost" sign --key they a/nothing.so
  ends 2 "$aothost" sign a/toy.so
  says "sign takes a new key"
else
  says "this build of aothost cannot sign plugins or check signatures"
fi
[ $bad = 0 ] && echo "trust: kept"
exit $bad
