#!/bin/sh
# check_headers.sh DIR: each header compiles alone, as C99, C11, C++11 and C++17, pedantic, warnings as errors; without padding.
set -eu
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
cd "$1"
for h in aot/*.h aot/ext/*.h; do
  printf '#include <%s>\ntypedef int one_t; /* a header of macros alone declares nothing */\n' "$h" > "$tmp/one.c"; cp "$tmp/one.c" "$tmp/one.cc"
  for std in c99 c11; do
    gcc -std=$std -Wall -Wextra -Wpedantic -Wpadded -Wno-error=attributes -Werror -I. -fsyntax-only "$tmp/one.c"
    clang -std=$std -Wall -Wextra -Wpedantic -Werror -I. -fsyntax-only "$tmp/one.c"
  done
  if command -v g++ >/dev/null 2>&1; then
    for std in c++11 c++17; do g++ -std=$std -Wall -Wextra -Wpedantic -Werror -I. -fsyntax-only "$tmp/one.cc"; done
  fi
  for std in c++11 c++17; do clang -x c++ -nostdinc++ -std=$std -Wall -Wextra -Wpedantic -Werror -I. -fsyntax-only "$tmp/one.cc"; done
  if grep -nE '#include' "$h" | grep -vE '<(aot/[a-z_/]+|stdint|stdio|stdlib|string|fenv)\.h>'; then echo "$h includes more than libc"; exit 1; fi
done
echo "headers: $(ls aot/*.h aot/ext/*.h | wc -l) compile alone"
