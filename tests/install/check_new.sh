#!/bin/sh
# check_new.sh AOTHOST PREFIX CMAKE CC [FLAGS]: `aothost new` of every kind builds and does what its README says, against PREFIX (the build
# folder is one) and nothing else; names, folders and kinds that are wrong are refused, and leave nothing behind.
set -eu
aothost=$1; prefix=$2; cmake=$3; cc=$4; flags=${5:-}
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
unset AOT_PLUGIN_PATH
fail() { echo "FAILED: $1"; cat out; exit 1; }
refused() { # SENTENCE ARGUMENTS..
  sentence=$1; shift
  "$aothost" new "$@" > out 2>&1 && fail "accepted: $*"
  [ "$?" != 3 ] && grep -qE -- "$sentence" out || fail "does not say '$sentence': $*"
}

"$aothost" new > out
kinds=$(sed -n 's/^  \([a-z-]*\) .*/\1/p' out)
[ "$(echo $kinds)" = "backend backend-kit communicator device importer opset partition pass" ] || fail "the kinds are: $kinds"
{
  echo "cmake_minimum_required(VERSION 3.22)"; echo "project(all LANGUAGES C)"; echo "enable_testing()"
  for kind in $kinds; do echo "add_subdirectory(org.acme.my-$kind)"; done
} > CMakeLists.txt
for kind in $kinds; do
  "$aothost" new "org.acme.my-$kind" --kind "$kind" > out || fail "no $kind"
  grep -q "cmake --build org.acme.my-$kind/build" out || fail "it does not say what is next"
  for file in CMakeLists.txt README.md; do [ -s "org.acme.my-$kind/$file" ] || fail "$kind has no $file"; done
done
if grep -rnE 'example[._]' org.acme.*; then fail "the template's name has stayed"; fi
"$cmake" -S . -B build -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="-Wall -Wextra -Werror $flags" \
  -DAOT_SANITIZE="${flags:+ON}" > out 2>&1 || fail "cmake"
"$cmake" --build build > out 2>&1 || fail "it does not build"
(cd build && ctest --output-on-failure) > out 2>&1 || fail "the tests of the new plugins fail"
for kind in $kinds; do grep -q "org.acme.my-${kind}_.*Passed" out || fail "$kind has no test"; done
"$aothost" plugins org.acme.my-pass --plugin-dir build/org.acme.my-pass > out || fail "the new pass is not found"

refused "org.acme.my-pass is there already; nothing is written" org.acme.my-pass --kind pass
refused "cannot make the folder no/such: No such file" a --kind pass -o no/such
refused "no template of kind 'partitions'; did you mean 'partition'" a --kind partitions
refused "'7up' is no name of a plugin" 7up --kind pass
refused "'a/b' is no name of a plugin" a/b --kind pass
refused "'test' is a word of CMake" test --kind pass
refused "takes a name and a kind" a
for name in a no 7up test; do [ ! -e "$name" ] || fail "$name was left behind"; done
mkdir -p elsewhere/bin && cp "$aothost" elsewhere/bin/
aothost=$tmp/elsewhere/bin/aothost
refused "there are no templates in $tmp/elsewhere/share/aothost/templates" a --kind pass
mkdir -p elsewhere/share/aothost/templates/pass && echo "project(a)" > elsewhere/share/aothost/templates/pass/CMakeLists.txt
refused "templates/pass/CMakeLists.txt adds no plugin" a --kind pass
[ ! -e a ] || fail "a was left behind"
echo "new: $(echo $kinds)"
