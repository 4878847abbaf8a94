# For check_*.sh here: AOTHOST EDIT ROOT PLUGINS ARMS FAULTS from the arguments, and words for what several of them find.
. "$(dirname "$0")/../e2e/lib.sh"
plugins=$4; arms=$5; faults=$6
unset AOT_PLUGIN_PATH AOT_LOADER_DEBUG
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:allow_user_segv_handler=1:handle_abort=0:detect_leaks=0" TMPDIR="$dir"
# json FILTER: jq's answer over j.json is true
json() { jq -e "$1" j.json > /dev/null || { complain "not so: $1"; jq -c "$1" j.json 2>&1 | head -3; }; }
# wrong_index: i.yaml, which runs m.ir of the standard input (its input: three indices) on an index that is out of range
wrong_index() {
  cat > m.ir
  printf '\110\0\0\0\0\0\0\0{"input.0":{"dtype":"I64","shape":[3],"data_offsets":[0,24]}}           ' > i.safetensors
  printf '\1\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0' >> i.safetensors
  printf 'aot: 1\nmodel: {import: ir, path: m.ir}\nvars: {backend: backend-ref}\nstages:\n  - use: ${backend}\nrun: {inputs: i.safetensors}\n' > i.yaml
}
