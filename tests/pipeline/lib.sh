# Shared by check_*.sh: AOTHOST PLUGINS HERE from the arguments, a folder of their own, which is home, too, and words for expectations.
set -u
aothost=$1; plugins=$2; here=$3
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
unset AOT_PLUGIN_PATH AOT_LOADER_DEBUG
export HOME="$dir"
cd "$dir" || exit 1
bad=0

fail() { echo "FAILED: $*"; cat out err; bad=1; }
# ends STATUS ARGUMENT..: aothost with these arguments ends so; what it says goes to `out` and `err`
ends() { want=$1; shift; "$aothost" "$@" > out 2> err; got=$?; what="$*"; [ $got -eq "$want" ] || fail "$what: status $got, expected $want"; }
out() { grep -qF -- "$1" out || fail "$what: output lacks: $1"; }
err() { grep -qF -- "$1" err || fail "$what: does not say: $1"; }
