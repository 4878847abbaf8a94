#!/bin/sh
# mutated_ops.sh AOTHOST FIXTURES SEED COUNT BACKEND [FOLDER..]: recorded calls with arguments changed at random run, or are
# refused with a reason; under the sanitizers, without their finding anything. tools/mutate does much more of the same.
set -u
aothost=$1; fixtures=$2; seed=$3; count=$4; backend=$5; shift 5
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0:allow_user_segv_handler=1:handle_abort=0:max_allocation_size_mb=512:allocator_may_return_null=1"
nm "$aothost" 2> /dev/null | grep -q asan || ulimit -v 8000000
[ $# -gt 0 ] || set -- ops ops_dtypes ops_families ops_composites ops_edges
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
bad=0
for folder; do
  "$aothost" ops --cases "$fixtures/$folder/cases.json" --backend "$backend" --mutate "$count" --seed "$seed" > out 2> err
  status=$?
  tail -1 out
  [ $status -eq 0 ] || { echo "FAILED: $folder: status $status"; cat out err; bad=1; }
done
exit $bad
