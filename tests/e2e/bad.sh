# For check_bad_*.sh, after lib.sh: things that go wrong must go wrong in order.
touch out before after
no_report() { ! grep -qE 'Sanitizer|runtime error:' out || { complain "a sanitizer's report: $*"; grep -E -A5 'Sanitizer|runtime error:' out; }; }
# refuse STATUS WHAT WHERE COMMAND...: it ends with STATUS, says WHAT is wrong and WHERE (texts, not patterns), and leaves nothing
# behind that was not there before: no result, no half of one, no temporary file, no bundle.
refuse() {
  wanted=$1; what=$2; where=$3; shift 3
  ls -A > before
  status "$wanted" "$@"
  ls -A > after
  for text in "$what" "$where"; do grep -qF -- "$text" out || { complain "does not say '$text': $*"; head -5 out; }; done
  cmp -s before after || { complain "left behind: $*"; diff before after; }
  no_report "$@"
}
# as_user COMMAND...: without the powers of root, where files' modes mean nothing. `can_be_user` tells whether it can be done.
as_user() { if [ "$(id -u)" = 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups -- "$@"; else "$@"; fi; }
can_be_user() { chmod 755 "$dir" && as_user "$aothost" inspect "$dir/m.pt2" > out 2>&1; }
