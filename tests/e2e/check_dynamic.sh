#!/bin/sh
# Results whose size depends on the data: other data than were recorded, sizes out of range, on both backends.
. "$(dirname "$0")/lib.sh"
mask=$root/tests/models/dynamic_mask; rows=$root/tests/models/dynamic_rows; ranges=$root/tests/models/dynamic_ranges
call() { model=$1; shift; "$aothost" run "$root/pipelines/inference.yaml" --model "$model/train.pt2" --outputs o.st --set vars.backend=$backend "$@"; }

# other rows are kept than when it was recorded: all of them, none of them
"$edit" "$mask/expected.safetensors" mask.st keep input.
"$edit" "$rows/expected.safetensors" rows.st keep input.
"$edit" mask.st all.st add input.1 1
"$edit" mask.st none.st add input.1 -100
"$edit" rows.st nothing.st add input.2 -3
"$edit" rows.st much.st add input.2 10
"$edit" rows.st two.st add input.2 -1
for backend in backend-ref backend-cpu; do
for which in mask all none; do
  status 0 call "$mask" --inputs $which.st
  wc -c < o.st > $which.size
done
[ "$(cat none.size)" -lt "$(cat mask.size)" ] || complain "a mask that keeps nothing gives as much as one that keeps some"
[ "$(cat all.size)" -gt "$(cat mask.size)" ] || complain "a mask that keeps all gives no more than one that keeps some"

# ranges over other sizes than recorded; an index that is known to be of no elements
"$edit" "$ranges/expected.safetensors" ranges.st keep input.
"$edit" ranges.st fewer.st add input.2 -3 add input.1 -9
for which in ranges fewer; do
  status 0 call "$ranges" --inputs $which.st
  mv o.st $which.$backend.st
done

# the model's own assertions on the number that it reads: the inputs' fault, told with the message
for which in nothing much; do
  status 2 call "$rows" --inputs $which.st
  says "$backend\."
  says 'u[0-9] in 1..4|Runtime assertion failed for expression u[0-9]'
done
status 0 call "$rows" --inputs two.st
done
for which in ranges fewer; do
  [ "$(wc -c < $which.backend-ref.st)" = "$(wc -c < $which.backend-cpu.st)" ] || complain "the backends give $which other sizes"
done

# a size that is told inside of a branch: backend-cpu plans the memory of both branches before it knows which is taken
cat > branch.ir <<'IR'
aot 1
properties imported
symbol u0 in [0, 4] hint 2
leaf 0 user_input 0 "x" : f32[4]
leaf 1 user_input 1 "p" : bool[]
graph @some region {
  in %x = region 0 : f32[4]
  %n : i64[u0, 1] strides [1, u0] = aten.nonzero.default %x
  %s : i64[] = aten.sum.default %n, none
  out region 0 = %s
}
graph @all region {
  in %y = region 0 : f32[4]
  %c = aten.argsort.default %y, -1, false
  %t : i64[] = aten.sum.default %c, none
  out region 0 = %t
}
graph @forward forward {
  in %x0 = user_input 0 : f32[4]
  in %p0 = user_input 1 : bool[]
  %r : i64[] = higher_order.cond %p0, @some, @all, [%x0]
  out user_output 0 "r" = %r
}
IR
status 0 "$aothost" run "$root/pipelines/inference.yaml" --model branch.ir --set vars.backend=backend-ref
status 2 "$aothost" run "$root/pipelines/inference.yaml" --model branch.ir --set vars.backend=backend-cpu
says 'depends on the data, and it stands in a region'

# the derivative of resizing rows, to a size that the run tells
for backend in backend-ref backend-cpu; do
  for expected in $(expectations "$root/tests/models/resized_rows"); do
    status 0 "$aothost" verify "$root/pipelines/verify.yaml" --model "$root/tests/models/resized_rows/train.pt2" --expect "$expected" --set vars.backend=$backend
  done
done
# .. and in halves: the sizes are inferred anew, and stay what they were
sed -e 's/- use: functionalize/&\n  - use: autocast/' "$root/pipelines/verify.yaml" > halves.yaml
status 0 "$aothost" run halves.yaml --model "$root/tests/models/resized_rows/train.pt2" \
  --inputs "$root/tests/models/resized_rows/expected.1.safetensors" --grads --outputs halves.st
finish
