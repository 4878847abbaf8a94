#!/bin/sh
# check_embed.sh ROOT: what cmake/embed_text.awk makes of a kernel, and that it refuses what would be embedded wrongly.
set -u
embed=$1/cmake/embed_text.awk
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
failed=0
complain() { echo "FAILED: $*"; failed=1; }
text() { # FILE: its embedded text
  LC_ALL=C awk -f "$embed" "$1" 2> why | tr -d '\n' | awk '{ n = split($0, at, ","); for (i = 1; i < n; i++) printf "%c", at[i] + 0
    if (at[n] != "0") print "no final 0" }'
}
printf '/* two\n * lines */\nint a; /* b */ int c; /* d */\n\n#include <math.h>\nconst char *s = "\\"%%d\\\\n";\n' > part.cuh
printf '%s\n' '/* head */' '#include "part.cuh"' '' 'LP_KERNEL(name, 3, THREADS) {' '  f();' '#include "part.cuh"' '}' > kernel.cu
printf '%s\n' '  f();' 'int a;  int c;' '#include <math.h>' 'const char *s = "\"%d\\n";' '}' > wanted
text kernel.cu > found; cmp -s wanted found || { complain 'a kernel'; diff wanted found; }
refuses() { # FILE WHAT
  if LC_ALL=C awk -f "$embed" "$1" > /dev/null 2> why; then complain "no error: $2"; elif ! grep -q "$2" why; then complain "$2:"; cat why; fi
}
printf 'LP_KERNEL(a, 1, 2) {\n}\nLP_RESIDENT(b, 1, 2, 3) {\n}\n' > two.cu; refuses two.cu 'holds two kernels'
printf 'int \303\244;\n' > accent.cuh; refuses accent.cuh 'only ASCII can be embedded'
printf '/* open\n' > open.cuh; refuses open.cuh 'a comment does not end'
printf '#include "absent.cuh"\n' > includes.cuh; refuses includes.cuh 'cannot read absent.cuh'
printf '#include "circle.cuh"\n' > circle.cuh; refuses circle.cuh 'includes itself'
[ "$failed" = 0 ] && echo ok
exit "$failed"
