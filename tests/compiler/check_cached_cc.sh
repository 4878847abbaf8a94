#!/bin/sh
# check_cached_cc.sh CC: a library is compiled once and found afterwards; it is compiled again after any change that its bytes depend on.
set -u
cc=$1
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
unset AOT_TEST_CC_LEVEL
export AOT_TEST_CC_CACHE="$dir/cache"
failed=0
complain() { echo "FAILED: $*"; failed=1; }
compile() { "$cc" -std=gnu11 -O2 -fPIC -shared -o "$@" -lm; }
# entries N WHAT: so many libraries are stored now
entries() { n=$(find cache -name '*.so' | wc -l); [ "$n" = "$1" ] || complain "$n libraries are stored, not $1: $2"; }

echo 'double twice(double x) { return 2 * x; }' > a.c
compile a.so a.c || complain 'it does not compile'
entries 1 'the first'
cp a.c elsewhere.c; compile elsewhere.so elsewhere.c; cmp -s a.so elsewhere.so || complain 'what is found differs'
entries 1 'the same source under another name'
# What is found is what is stored: the compiler is not asked.
entry=$(find cache -name '*.so'); cp a.so other.so; echo more >> other.so; cp other.so "$entry"
compile again.so a.c; cmp -s again.so other.so || complain 'the stored library is not used'
echo '/* changed */' >> a.c; compile a.so a.c; entries 2 'another source'
compile a.so a.c -DX=1; entries 3 'another argument'
echo '#define Y 1' > y.h; compile a.so a.c -include ./y.h; entries 4 'an included header'
echo '#define Y 2' > y.h; compile a.so a.c -include ./y.h; entries 5 'a changed header'
AOT_TEST_CC_LEVEL=-O1 compile a.so a.c; entries 6 'another level'
"$cc" -std=gnu11 -O1 -fPIC -shared -o a.so a.c -lm; entries 6 'a level that was given before'
# What is before the first kernel is compiled once for all sources, which changes neither code nor lines.
heads() { n=$(find cache -name '*.h.gch' | wc -l); [ "$n" = "$1" ] || complain "$n heads are stored, not $1: $2"; }
heads 0 'sources without kernels'
kernel() { printf '#include <math.h>\nstatic inline double half(double x) { return %s; }\nvoid lp_%s(double *x) { *x = half(sqrt(*x)); }\n' "$2" "$1" > "$1.c"; }
kernel one 'x / 2'; kernel two 'x / 2'; kernel three 'x * 0.5f'
for k in one two three; do
  compile $k.so $k.c -O2 || complain "kernel $k does not compile"
  AOT_TEST_CC_CACHE= "$cc" -std=gnu11 -O2 -fPIC -shared -o real.so $k.c -lm
  objdump -d $k.so | sed -n '/<lp_/,$p' > found; objdump -d real.so | sed -n '/<lp_/,$p' > wanted
  grep -q "<lp_$k>" found || complain "kernel $k is not there"
  same_code=$(cut -f 3 found | grep -v '[<(]' | cksum); [ "$same_code" = "$(cut -f 3 wanted | grep -v '[<(]' | cksum)" ] || complain "kernel $k is other code"
done
heads 2 'two heads'
echo 'void lp_bad(void) { nothing(; }' >> two.c; compile bad.so two.c 2> err && complain 'a wrong kernel compiles'
grep -q '^two.c:4:' err || complain 'the line of an error in a kernel is lost'
[ -z "$(find . -name '*.kernels.c' -o -name '*.tmp-*')" ] || complain 'files are left'
find cache -name '*.so' -newer three.c -exec rm {} +
# What it cannot know by its bytes is not stored.
echo '#include "y.h"' > b.c; compile b.so b.c || complain 'an include of the folder fails'
compile b.so a.c -I. || complain 'a line with -I fails'
"$cc" -c -o a.o a.c || complain 'an object file fails'
entries 6 'files of other folders, objects'
# Errors stay errors.
echo 'int x = ;' > bad.c; compile bad.so bad.c 2> err && complain 'a wrong source compiles'
grep -q 'bad.c:1' err || complain 'the error of the compiler is lost'
entries 6 'a wrong source'
"$cc" --version > plain || complain '--version fails'
AOT_TEST_CC_LEVEL=-O1 "$cc" --version | grep -q -- '-O1' || complain '--version does not tell the level'
chmod 500 cache; compile c.so a.c -DZ=1 || complain 'a folder that cannot be written is an error'; chmod 700 cache
unset AOT_TEST_CC_CACHE
compile d.so a.c -DW=1 || complain 'without a folder it does not compile'
[ "$failed" = 0 ] && echo ok
exit "$failed"
