#!/bin/sh
# check_loader.sh AOTHOST PLUGINS HERE: files that are almost plugins are refused with file, cause and cure; the search path.
. "$(dirname "$0")/lib.sh"
echo "TOY add" > m.toy
abi=$("$aothost" --version | sed "s/.*plugin \(ABI [0-9.]*\).*/\1/")
# refused UNIT STATUS CAUSE [CURE]
refused() {
  "$aothost" opt m.toy --plugin-dir "$plugins/good" --plugin-dir "$plugins/bad" --use "$1" > out 2> err
  status=$?
  [ $status -eq "$2" ] || fail "$1: status $status, expected $2"
  grep -qF -- "$3" err || fail "$1: lacks the cause: $3"
  [ $# -lt 4 ] || grep -qF -- "hint: $4" err || fail "$1: lacks the cure: $4"
  [ "$2" -ne 3 ] || grep -q "cannot load plugin $plugins/bad/bad_.*\.so: " err || fail "$1: lacks the file"
}
refused bad-no-entry 3 "it has a note but no entry function" "export aot_plugin_entry"
refused bad-no-note 2 "bad_no_note.so: it has no AOT note"
refused bad-json 2 "bad_json.so: its note is not JSON"
refused bad-older 3 "built for ABI 1.2; this host supports 1.4 and later" "rebuild the plugin"
refused bad-newer 3 "requires ABI 1.9 or later; this host provides 1." "update aothost"
refused bad-wrong-note 3 "its note says bad-wrong-note 2" "make AOT_PLUGIN_NOTE match the descriptor"
refused bad-units 3 "2 units; its descriptor says bad-units 1, $abi, 1 units"
refused bad-long 3 "larger than this host supports and uses the additional fields"
refused bad-short 3 "smaller than in ABI 1.1"
refused bad-declines 3 "rejects $abi: the moon is in the wrong house"
refused bad-mute 3 "rejects $abi: no reason given"
for struct in unit option contract; do
  refused bad-$struct-long 3 "larger than this host supports and uses the additional fields: it requires a newer aothost" "rebuild the plugin"
  refused bad-$struct-short 3 "unit bad-$struct-short: "
  grep -q "smaller than in ABI 1.1" err || fail "bad-$struct-short: lacks the cause"
done
"$aothost" conform "$plugins/bad/bad_preset.so" --rule 102 > out 2> err; [ $? -eq 1 ] || fail "a default outside of its range passes"
grep -qF "option odd has a default outside of its own range" out || fail "bad-preset: lacks the cause"
# AddressSanitizer's own handler ends the process that tries the plugin with exit()
died="it died while it was being opened: SIGSEGV"
if nm "$aothost" 2> /dev/null | grep -q __asan_init; then died="while it was being opened: it called exit()"; fi
refused bad-entry-crash 3 "$died"
refused bad-constructor 3 "$died"
refused bad-option 3 "unit bad-option: its option 0 has a kind that this host does not support"
refused bad-property 3 "unit bad-property: its contract has the unknown property 'functionall'; did you mean 'functional'?"
refused bad-library 3 "libgone_library.so: cannot open shared object file" "install the named library"
nm -D "$aothost" 2>/dev/null | grep -q asan || refused bad-asan 3 "it was built with AddressSanitizer, this host without"

# files named outright
named() { # FILE CAUSE
  "$aothost" plugins --plugin-dir "$1" > out 2> err && fail "$1 was taken"
  grep -qF -- "$2" err || fail "$1: lacks: $2"
}
echo hello > text.so; named text.so "not an ELF file"
named nowhere.so "No such file or directory"
cp "$plugins/good/toy.so" other.so
printf '\267' | dd of=other.so bs=1 seek=18 conv=notrunc 2> /dev/null # EM_AARCH64
[ "$(uname -m)" != x86_64 ] || named other.so "it was built for AArch64 (64 bit, little-endian); this host runs on x86-64"
cp "$plugins/good/toy.so" narrow.so
printf '\001' | dd of=narrow.so bs=1 seek=4 conv=notrunc 2> /dev/null
named narrow.so "32 bit"
head -c 5000 "$plugins/good/toy.so" > cut.so; named cut.so "truncated file"
strip -o stripped.so "$plugins/good/toy.so" 2> /dev/null && {
  "$aothost" plugins --plugin-dir stripped.so > out 2> err || fail "a stripped plugin was refused"
  grep -q toy-fuse out || fail "a stripped plugin lost its note"
}

# the search path: order, hiding, nothing from the current folder, nothing relative from the environment
cp "$plugins/good/toy.so" ./here.so
"$aothost" plugins > out 2> err; grep -q toy-fuse out && fail "the current folder was searched"
AOT_PLUGIN_PATH=. "$aothost" plugins > out 2> err; grep -q toy-fuse out && fail "a relative AOT_PLUGIN_PATH was searched"
AOT_PLUGIN_PATH="/nowhere::$plugins/good" "$aothost" plugins > out 2> err; grep -q toy-fuse out || fail "AOT_PLUGIN_PATH was not searched"
mkdir -p "$dir/.local/lib/aothost"; cp "$plugins/good/toy.so" "$dir/.local/lib/aothost/"
"$aothost" plugins > out 2> err; grep -q toy-fuse out || fail "the user's folder was not searched"
"$aothost" plugins -v --plugin-dir "$plugins/good" > out 2> err
grep -q "toy-fuse.*hidden by $plugins/good/toy.so" out || fail "-v does not tell that a unit is hidden"
AOT_LOADER_DEBUG=1 "$aothost" plugins --plugin-dir "$plugins/good" > out 2> err
grep -q "aothost loader: $plugins/good (--plugin-dir): searching" err || fail "AOT_LOADER_DEBUG tells no folder"
grep -q "aothost loader: .*: unit toy-fuse is shadowed by that of $plugins/good/toy.so" err || fail "AOT_LOADER_DEBUG tells no decision"

# The same as a page: units with contracts and options, hidden ones, what was left out; one that cannot be loaded has its note.
mkdir odd && cp "$plugins/bad/bad_no_note.so" "$plugins/bad/bad_no_entry.so" odd/
"$aothost" plugins --plugin-dir "$plugins/good" --html page.html > out 2> err || fail "no page"
for text in '<a href="#u[0-9]*">toy-fuse</a>' '<dt>needs</dt><dd>imported</dd>' '<td class="t">budget</td><td>number</td><td class="t">0.5</td><td>0 to 1; fraction</td>' "<dt>hidden by</dt><dd>$plugins/good/toy.so"; do
  grep -q "$text" page.html || fail "the page lacks $text"
done
"$aothost" plugins --plugin-dir odd --html odd.html > out 2> err; [ $? -eq 3 ] || fail "a plugin without an entry is no failure of the page"
grep -q "odd/bad_no_entry.so: it has a note but no entry function" err || fail "what cannot be loaded is not told"
for text in 'bad_no_note.so</td><td>it has no AOT note' 'bad-no-entry <small>' '<dd>unknown: the plugin cannot be loaded'; do
  grep -q "$text" odd.html || fail "the page of odd plugins lacks $text"
done
for page in page odd; do
  if command -v xmllint > /dev/null; then sed 1d $page.html | xmllint --noout - > out 2> err || fail "$page.html is not well-formed"; fi
  grep -qE 'src=|href="[^#]|@import|url\(' $page.html && fail "$page.html wants other files"
done
"$aothost" plugins toy-fuse --html p.html > out 2> err; [ $? -eq 2 ] || fail "--html of one unit"
"$aothost" plugins --html no/p.html > out 2> err; [ $? -eq 2 ] || fail "a page in no folder"
"$aothost" plugins toy-fuze --plugin-dir "$plugins/good" > out 2> err; [ $? -eq 2 ] || fail "an unknown unit"
grep -q "did you mean 'toy-fuse'" err || fail "no near name"
[ $bad = 0 ] && echo "loader: every refusal with file, cause and cure"
exit $bad
