#!/bin/sh
# Guards of an archive: sizes that PyTorch's module() accepts give its results, those that it refuses are refused with the guard's
# text, by verify and run, from the compile cache, from the program's text, and for conditions that are asserted by nodes.
. "$(dirname "$0")/lib.sh"
found=$root/tests/fixtures/found2
verify() { "$aothost" verify "$root/pipelines/verify.yaml" --model "$1" --expect "$2" --set vars.backend=$backend ${3:---no-cache} -v; }

# ---- verify, against PyTorch ----
n=0
for backend in backend-ref backend-cpu; do
  for e in "$found"/guards_ignored/*/*.safetensors "$found"/guard_equalities/*/*.safetensors "$found"/symbolic_strides/*/*.safetensors; do
    case ${e##*/} in
      refused*) status 2 verify "${e%/*}/train.pt2" "$e"; says 'error: the inputs have sizes for which the model is not valid.*\(s.* = [0-9]' ;;
      *) status 0 verify "${e%/*}/train.pt2" "$e"; n=$((n + 1)) ;;
    esac
  done
done
[ "$n" -ge 26 ] || complain "$n calls only"

# ---- run: on a miss of the compile cache, on a hit, in workers, and from the text ----
even=$found/guards_ignored/even; backend=backend-ref
unset AOT_CACHE; export AOT_CACHE_DIR="$dir/cache"
broken="under the guard \(L\['args'\]\[0\]\.size\(\)\[0\] % 2\) == 0 \(s33 = 5\)"
call() { "$aothost" run "$root/pipelines/inference.yaml" --model "$1" --inputs "$even/$2.safetensors" --outputs o.st -v --set vars.backend=backend-ref; }
status 2 call "$even/train.pt2" refused.1; says 'cache: miss'; says "$broken"; [ ! -e o.st ] || complain "outputs of a refused call"
status 2 call "$even/train.pt2" refused.1; says 'cache: hit'; says "$broken"
status 0 call "$even/train.pt2" expected; says 'cache: hit'
status 2 verify "$even/train.pt2" "$even/refused.1.safetensors" "--isolate worker"; says "$broken"
status 0 "$aothost" opt "$even/train.pt2" -o even.ir; has even.ir '^guard mod\(s33, 2\) == 0 "\(L'
status 0 "$aothost" opt even.ir -o again.ir; same even.ir again.ir
status 2 call even.ir refused.1; says "$broken"
status 0 call even.ir expected

# ---- written, and read again ----
for name in even area chosen sizes_differ view; do
  from=$found/guards_ignored/$name
  status 0 "$aothost" export "$from/train.pt2" -o out.pt2
  for e in "$from"/*.safetensors; do
    case ${e##*/} in refused*) status 2 verify out.pt2 "$e"; says "under the guard .*L\['args" ;; *) status 0 verify out.pt2 "$e" ;; esac
  done
done

# ---- what cannot be understood is said, and not believed; what cannot hold is refused ----
damage=$4
edit_guard() { "$damage" "$even/train.pt2" d.pt2 models/model.json sub '% 2) == 0' "$1" || complain "damage_archive"; }
edit_guard '** 0.5 < 3.0)'; status 0 call d.pt2 refused.1
says "warning: the guard '\(L\['args'\]\[0\]\.size\(\)\[0\] \*\* 0\.5 < 3\.0\)' of the archive is not checked"
edit_guard '< 0)'; status 2 call d.pt2 expected; says "no sizes satisfy the guard"
finish
