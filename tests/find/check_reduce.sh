#!/bin/sh
# aothost reduce: a fault at one node of a thousand becomes a program of a few lines that fails in the same way: refused, crashed, with
# other results, in a run; a bundle that no longer fails says so.
. "$(dirname "$0")/find_lib.sh"
# a thousand nodes that read each other, one of them another operator
awk 'BEGIN {
  print "aot 1\nproperties imported functional\n\nleaf 0 user_input 0 \"x\" : f32[8, 16]\nleaf 1 user_input 1 \"y\" : f32[8, 16]"
  print "leaf 2 parameter \"w\" : f32[16, 16]\nleaf 3 buffer \"unread\" : f32[77]\n\ngraph @main forward {"
  print "  in %x = user_input 0 : f32[8, 16]\n  in %y = user_input 1 : f32[8, 16]\n  in %w = parameter 2 : f32[16, 16]"
  print "  in %unread = buffer 3 : f32[77]"
  v[0] = "x"; v[1] = "y"; seed = 7
  for (i = 2; i < 1002; i++) {
    seed = (seed * 1103 + 12345) % 65521; a = v[i - 1 - seed % (i < 20 ? i : 20)]
    seed = (seed * 1103 + 12345) % 65521; b = v[i - 1 - seed % (i < 20 ? i : 20)]
    if (i == 618) op = "aten.sigmoid.default %" a
    else if (seed % 4 == 0) op = "aten.add.Tensor %" a ", %" b
    else if (seed % 4 == 1) op = "aten.mm.default %" a ", %w"
    else if (seed % 4 == 2) op = "aten.mul.Tensor %" a ", %" b
    else op = "aten.tanh.default %" a
    v[i] = "v" i; print "  %v" i " = " op
  }
  print "  out user_output 0 \"a\" = %v1001\n  out user_output 1 \"b\" = %v618\n  out user_output 2 \"c\" = %v900\n}"
}' > big.ir
cat > p.yaml <<'YAML'
aot: 1
vars: {how: refuse}
model: {import: ir, path: big.ir}
stages:
  - use: stumble
    with: {how: "${how}", op: aten.sigmoid.default}
  - use: backend-ref
YAML
# reduced STATUS BUNDLE: a few lines, which fail again with the same status
reduced() {
  status 0 "$aothost" reduce "$2" -o small --plugin-dir "$plugins" --json r.json
  jq -e '.fails and .nodes_before == 1000 and .nodes_after <= 5 and .programs < 120' r.json > jq.out ||
    complain "$2: $(jq -c '[.fails, .nodes_before, .nodes_after, .programs]' r.json)"
  says 'aten.sigmoid.default'
  [ "$(grep -c . small/program.ir)" -le 14 ] || complain "$2: $(grep -c . small/program.ir) lines"
  grep -q 'f32\[1, 1\]' small/program.ir || complain "$2: sizes are not reduced"
  status "$1" "$aothost" replay small --plugin-dir "$plugins"
  rm -r small
}
for how in refuse crash; do
  [ $how = crash ] && ends=3 || ends=2
  status $ends "$aothost" run p.yaml --plugin-dir "$plugins" --inputs random --set vars.how=$how --bundle-dir $how
  reduced $ends $how
done
status 3 "$aothost" run p.yaml --plugin-dir "$plugins" --inputs random --set vars.how=skip --check-stages --bundle-dir skip
reduced 3 skip

# a run that fails: its inputs stay, the nodes go
wrong_index <<'IR'
aot 1
properties imported functional
leaf 0 user_input 0 "i" : i64[3]
leaf 1 parameter "w" : f32[4, 100]
graph @main forward {
  in %i = user_input 0 : i64[3]
  in %w = parameter 1 : f32[4, 100]
  %e : f32[3, 100] = aten.embedding.default %w, %i
  %t : f32[3, 100] = aten.tanh.default %e
  %n : f32[3, 100] = aten.neg.default %t
  %s : f32[] = aten.sum.default %n
  out user_output 0 "a" = %n
  out user_output 1 "s" = %s
}
IR
status 2 "$aothost" run i.yaml --bundle-dir run
status 0 "$aothost" reduce run
says 'aten.embedding.default'
grep -q 'aten.tanh.default' out && complain 'tanh is still there'
status 2 "$aothost" replay run-reduced

# what fails no more, and what is none
sed 's/how: refuse/how: skip/' refuse/pipeline.yaml > well && mv well refuse/pipeline.yaml
status 1 "$aothost" reduce refuse --plugin-dir "$plugins"
says 'nothing fails'
status 2 "$aothost" reduce "$dir/none"
finish
