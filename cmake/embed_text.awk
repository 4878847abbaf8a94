# awk -f embed_text.awk FILE: the text of a source in C's syntax as numbers, with a final 0, for the initializer of an array of char.
#
# Comments and blank lines are left out. A line #include "NAME" becomes the file of that name in the same folder. Of a kernel, what comes
# before the line "LP_KERNEL(..) {" or "LP_RESIDENT(..) {" is left out, and that line: the program that prints the kernel writes its own.
function fail(what) { print file ": " what > "/dev/stderr"; failed = 1; exit 1 }
function emit(line,    i, c) {
  for (i = 1; i <= length(line); i++) {
    c = substr(line, i, 1)
    if (!(c in code)) fail("only ASCII can be embedded: " line)
    numbers[n++] = code[c]
  }
  numbers[n++] = 10
}
function add(path,    line, folder, name, begin, end, in_comment, n_lines, status) { # recursive by includes
  if (is_open[path]) fail(path " includes itself")
  is_open[path] = 1
  folder = path; sub(/[^\/]*$/, "", folder)
  while ((status = (getline line < path)) > 0) {
    n_lines++
    if (in_comment) {
      if (!(end = index(line, "*/"))) continue
      line = substr(line, end + 2); in_comment = 0
    }
    while ((begin = index(line, "/*")) > 0) {
      end = index(substr(line, begin + 2), "*/")
      if (!end) { in_comment = 1; line = substr(line, 1, begin - 1); break }
      line = substr(line, 1, begin - 1) substr(line, begin + end + 3)
    }
    sub(/[ \t]+$/, "", line)
    if (line == "") continue
    if (line ~ /^LP_(KERNEL|RESIDENT)\(.*\{$/) {
      if (has_head) fail("holds two kernels")
      n = 0; has_head = 1
      continue
    }
    if (line ~ /^[ \t]*#[ \t]*include[ \t]*"/) {
      name = line; sub(/^[^"]*"/, "", name); sub(/".*/, "", name)
      add(folder name)
    } else emit(line)
  }
  if (status < 0 || !n_lines) fail("cannot read " path)
  if (in_comment) fail(path ": a comment does not end")
  close(path)
  is_open[path] = 0
}
BEGIN {
  for (i = 1; i < 128; i++) code[sprintf("%c", i)] = i
  file = ARGV[1]
  add(file)
  for (i = 0; i < n; i++) printf "%d,%s", numbers[i], i % 24 == 23 ? "\n" : ""
  print "0"
  exit failed
}
