#!/bin/sh
# check_house.sh ROOT: tools/house counts a small tree whose counts are known, fails what is missed and passes what holds.
set -u
root=$1
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
failed=0
complain() { echo "FAILED: $*"; cat out; failed=1; }
house() { python3 "$root/tools/house" "$dir" > out 2>&1; status=$?; }
says() { grep -qE -- "^$1" out || complain "no line '$1'"; }
mkdir -p host/ir kit/graph kit/loops kit/lowering kit/model kit/base host/device tests/style tests/ir docs build-x
for d in host/ir kit/graph kit/loops kit/lowering kit/model host/device; do
  echo 'one two' > $d/README.md
  { i=0; while [ $i -lt 99 ]; do echo "int x_$i;"; i=$((i + 1)); done; echo 'void f(void) { AOT_ASSERT(1); }'; } > $d/a.c
done
echo '# FILE HEADER' > tests/style/walls_exceptions.txt; cp tests/style/walls_exceptions.txt tests/style/units_in_host.txt
printf 'int x;' > build-x/no.c; awk 'BEGIN { while (n++ < 80000) print "word" }' > docs/OPERATORS.md # neither counts
echo 'realloc(' > kit/base/array.c; echo 'base' > kit/base/README.md # where arrays grow
house
[ $status = 0 ] || complain "status $status of a tree in which every count holds"
says 'lines of host/ +at most 34,000 +200$'
says 'words of pages .* +at most 70,000 +13$'
says 'asserts per 1,000 lines of kit/graph +about 10 +10.0 \(1 in 100\)$'
! grep -q MISSED out || complain 'a count that holds is missed'

long=$(awk 'BEGIN { while (n++ < 130) printf "x" }')
{ echo "/* $long */"; echo "/* clang-format off */"; echo "/* $long */"; echo "/* clang-format on */"; echo "int $long; int y;"
  echo "/* two lines"; echo "   $long */"; echo "char *s = \"// $long\";"; } > host/ir/b.c
sed -i 's/AOT_ASSERT/other/' kit/loops/a.c; echo '/* AOT_ASSERT(1) */' >> kit/loops/a.c
echo 'host/a.c b.h' >> tests/style/walls_exceptions.txt
rm kit/model/README.md
echo 'a = realloc(a, 1);' > kit/graph/b.c; echo 'a = realloc(a, 1);' > tests/ir/b.c
echo 'at = hash(name) & mask;' > kit/graph/c.c
printf 'static aot_status_t no_memory(int x) {\n' > kit/graph/d.c; echo 'x += 0x9E3779B97F4A7C15;' > kit/graph/e.c
echo 'at = ((uintptr_t)key * 3 >> 32) & last;' > kit/graph/f.c; echo 'x = (uintptr_t)p & (align - 1);' > kit/graph/g.c # no hash
echo 'while (heap[(at - 1) / 2] > x) {' > kit/graph/h.c; echo 'if (++index[d] < sizes[d]) break;' > kit/graph/i.c
house
[ $status = 1 ] || complain "status $status of a tree that misses counts"
says 'comments over 120 columns +0 +2 +MISSED$'
says 'asserts per 1,000 lines of kit/loops .* 0.0 \(0 in 101\) +MISSED$'
says 'exceptions in tests/style/walls_exceptions.txt +0 +1 +MISSED$'
says 'folders of sources without a README .* 1 +MISSED$'; says '  no README: kit/model$'
says 'hash tables outside kit/base.* 2 +MISSED$'
for what in 'growing arrays' 'random numbers' heaps 'strided iteration' 'functions no_memory'; do
  says "$what outside kit/base.* 1 +MISSED\$"
done
[ "$failed" = 0 ] && echo ok
exit "$failed"
