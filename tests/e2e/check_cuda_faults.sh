#!/bin/sh
# What can be wrong with a GPU and its libraries: each is told once, in words, and nothing hangs.
. "$(dirname "$0")/lib.sh"
cat > train.yaml <<END
aot: 1
model: {path: $models/mlp/train.pt2}
stages: [{use: functionalize}, {use: autograd}, {use: partition-mincut}, {use: backend-cuda}]
run: {device: cuda, train: {steps: 4, log-every: 1, data: random, checkpoint: last.st}}
END
train() { # SETTINGS-OF-THE-DOUBLE [OPTIONS]
  settings=$1; shift
  AOT_CUDA_DOUBLE=$settings timeout 100 "$aothost" run train.yaml "$@"
}
once() { [ "$(grep -c '^error: ' out)" = 1 ] || complain "$(grep -c '^error: ' out) errors instead of one: $*"; }

# ---- what is not there, or too old ----
status 2 train devices=0; says 'the CUDA driver does not start: CUDA_ERROR_NO_DEVICE, 100'; once
status 2 train no-context=1; says 'device cuda 0 \(a double of a GPU\): no context can be made: CUDA_ERROR_OUT_OF_MEMORY'; once
status 2 train driver-version=11080; says 'the driver is for CUDA 11\.8; 12\.0 or later is needed'; once
status 2 train "" --set run.device=cuda:3; says 'there is no device cuda 3: the driver has 1, counted from 0'; once
status 2 train nvrtc-version=11; says 'NVRTC is of CUDA 11\.0; 12\.0 or later is needed'; once
status 2 train cublaslt-version=110800; says 'cuBLASLt is release 110800; 120000 or later is needed'; once
doubles=$AOT_NVRTC
without() { # LIBRARY: a folder with the others
  rm -rf libs; mkdir libs
  for library in "$doubles"/lib*.so*; do
    case $library in *"$1"*) ;; *) ln -s "$library" libs/ ;; esac
  done
  LD_LIBRARY_PATH=$dir/libs AOT_NVRTC=$dir/libs train ""
}
has_library() { ldconfig -p 2> /dev/null | grep -q "$1" || ls /usr/local/cuda/lib64/*"$1"* > /dev/null 2>&1; } # of a machine with CUDA
has_library libcuda.so || { status 2 without libcuda.so; says 'there is no CUDA driver on this machine: libcuda\.so\.1'; once; }
has_library libnvrtc || { status 2 without libnvrtc; says 'libnvrtc\.so\.13 and \.12 are not there'; once; }
has_library libcublasLt || { status 2 without libcublasLt; says 'cuBLASLt is not there'; once; }

# ---- what was kept for another architecture is not used ----
export AOT_CACHE_DIR="$dir/cache"
number() { tr -d ' \n' < json | sed -n "s/.*\"$1\":{\"value\":\([-0-9.e+]*\).*/\1/p" | sed 's/\.0$//'; }
status 0 train "" --no-cache --json json
functions=$(number compiled-functions)
[ "${functions:-0}" -gt 0 ] || complain "nothing is compiled"
for settings in capability=80 nvrtc-version=12; do
  status 0 train $settings --no-cache --json json
  [ "$(number compiled-functions)" = "$functions" ] || complain "$settings: $(number compiled-functions) compiled instead of $functions"
done
status 0 train "" --no-cache --json json
[ "$(number compiled-functions)" = 0 ] || complain "what was kept is compiled again"

# ---- a kernel that traps: lost, once; step by step it is named, with its node ----
rm -f last.st
status 2 train trap-at=12
says 'CUDA device 0 \(a double of a GPU\) lost, its memory contents are gone: CUDA_ERROR_ILLEGAL_ADDRESS, 700'
says 'rerun with AOT_CUDA_SYNC=1 to identify the step'; once
AOT_CUDA_SYNC=1; export AOT_CUDA_SYNC
status 2 train trap-at=12
says '(lp_[0-9a-f]+|product): CUDA_ERROR_ILLEGAL_ADDRESS, 700 .*; the device is lost'
says '^  node %[0-9]+ : '; once
unset AOT_CUDA_SYNC

# ---- work that never ends ----
status 2 train stall-at=70 --set run.device-with.patience=1
says 'timeline [0-9]+ is at [0-9]+ and was not raised to [0-9]+ within 1\.[0-9] s; queues with work: [12]; the device is given up'; once

# ---- memory that fails, and memory that another process has ----
status 2 train "lose-at=30 lose-with=214"
says 'lost, its memory contents are gone: CUDA_ERROR_ECC_UNCORRECTABLE, 214 .*; uncorrectable memory error \(ECC\): resume from a checkpoint'; once
status 2 train "memory=40000 taken=1000000"
says 'has no memory for [0-9]+ bytes: [0-9]+ of its 1040000 are free, [0-9]+ are this program.s; another process has much of the rest'
status 2 train "memory=40000"
says 'has no memory for [0-9]+ bytes: [0-9]+ of its 40000 are free, [0-9]+ are this program.s'
grep -q 'another process' out && complain "another process is made up"
finish
