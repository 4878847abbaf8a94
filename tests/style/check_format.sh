#!/bin/sh
# check_format.sh ROOT: every source is as clang-format 14 writes it (.clang-format); tables between clang-format off and on are kept.
# No line of embedded texts is wider than 120 columns: the formatter does not break comments.
# Another version writes some lines in another way: the test is skipped then.
cd "$1" || exit 1
wide=$(grep -nE '^.{121,}' kit/loops/prelude/*.*h plugins/*/kernels/*.cu* | cut -d: -f1,2)
[ -z "$wide" ] || { echo "format: wider than 120 columns: $wide"; exit 1; }
version=$(clang-format --version 2> /dev/null | sed -E 's/.*version ([0-9]+)\..*/\1/')
[ "$version" = 14 ] || { echo "format: clang-format 14 is not here (found: ${version:-none})"; exit 77; }
find plugin-api kit host trainer cli sdk plugins tests bench examples tools \( -name '*.[ch]' -o -name '*.cuh' -o -path '*/kernels/*.cu' \) -print0 | xargs -0 -n 60 clang-format --dry-run -Werror
