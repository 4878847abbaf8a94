#!/bin/sh
# check_bad.sh AOTHOST PLUGINS HERE [--save]: every pipeline of bad_pipelines.txt ends with status 2 and exactly the errors
# expected of it. --save writes what was said as the new expectations, for review.
. "$(dirname "$0")/lib.sh"
save=${4:-}
cp "$here/bad_pipelines.txt" "$dir/"
awk '/^### /{name=$2; printf "" > (name ".yaml"); printf "" > (name ".expect"); print name > "names"; next}
     name && /^#: /{print substr($0, 4) > (name ".expect"); next}
     name {print > (name ".yaml")}' bad_pipelines.txt
n=0
for name in $(cat names); do
  HOME=$dir "$aothost" check "$name.yaml" --plugin-dir "$plugins/good" > out 2> err
  status=$?
  # "FILE:LINE:COL: error: TEXT [code]" -> "LINE:COL TEXT"; a file of another name keeps its name
  sed -n -E "s/^($name\.yaml:)?(([^ ]*:)?[0-9]+:[0-9]+): error: (.*) \[[a-z.-]+\]\$/\2 \4/p; s/^error: (.*) \[[a-z.-]+\]\$/- \1/p" err > said
  if [ "$save" ]; then cp said "$name.expect"
  elif [ $status -ne 2 ]; then echo "$name: status $status, expected 2"; cat err; bad=1
  elif ! cmp -s said "$name.expect"; then echo "$name:"; diff "$name.expect" said; bad=1
  fi
  n=$((n + 1))
done
if [ "$save" ]; then
  awk 'function flush() {if (name) while ((getline line < (name ".expect")) > 0) print "#: " line}
       /^### /{print; name=$2; flush(); next} name && /^#: /{next} {print}' bad_pipelines.txt > "$here/bad_pipelines.txt"
fi
[ $bad = 0 ] && echo "$n bad pipelines, each with its complaints"
exit $bad
