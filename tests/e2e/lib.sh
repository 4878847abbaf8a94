# Shared by check_*.sh: AOTHOST EDIT ROOT from the arguments, a folder of their own, and words for expectations.
aothost=$1; edit=$2; root=$3
models=$root/tests/fixtures/models
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
failed=0

complain() { echo "FAILED: $*"; failed=1; }
# status N COMMAND...: the command's output goes to `out`, its exit status must be N
status() {
  wanted=$1; shift
  "$@" > out 2>&1 && got=0 || got=$?
  [ "$got" = "$wanted" ] || { complain "status $got instead of $wanted: $*"; tail -5 out; }
}
says() { grep -qE -- "$1" out || { complain "does not say '$1'"; tail -5 out; }; }
same() { cmp -s "$1" "$2" || complain "$1 and $2 differ"; }
# Expectation files of a folder, one for each recorded size; the float64 results next to them are the judge's (docs/RUN.md).
expectations() { for e in "$1"/expected*.safetensors; do case $e in *.f64.safetensors) ;; *) echo "$e" ;; esac; done; }
has() { grep -qE -- "$2" "$1" || complain "$1 lacks $2"; }
# Open MPI as root, with more ranks than cores, which yield while they wait, and with a folder of the test's own for what an mpirun leaves while it runs.
set_up_mpi() {
  mkdir -p "$dir/mpi"
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_orte_tmpdir_base="$dir/mpi"
}
# NUMBER NAME SIZES COUNT: a float parameter of a program in text, of so many small numbers, eight of them different
leaf() {
  awk -v k="$1" -v name="$2" -v sizes="$3" -v n="$4" 'BEGIN {
    split("0000803d 0000003e 000080bd 0000403d 000000bd 0000203e 000040be 0000803e", words, " ")
    printf "leaf %d parameter \"%s\" : f32%s data \"", k, name, sizes
    for (i = 0; i < n; i++) printf "%s", words[int(i * (2 * k + 1) + i * i / 7) % 8 + 1]
    print "\"" }'
}
finish() { [ "$failed" = 0 ] && echo ok; exit "$failed"; }
