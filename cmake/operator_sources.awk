# Where operators are defined: awk -v root=DIR -f operator_sources.awk FILE.. prints "operator TAB what TAB file:line", paths relative to
# DIR. Rows of tables are found by their form: NAME("op", ..), NAME(id, "op", ..), {"op", ..}, {.op = AOT_STR_INIT("op"), ..}; a name
# without namespace is aten's. "shape:RULE" rows give the function of a shape rule.
function where(file) { file = FILENAME; sub("^" root "/", "", file); return file ":" FNR }
function put(op, what, place) { if (!seen[op, what]++) print op "\t" what "\t" place }
FNR == 1 {
  what = ""
  if (FILENAME ~ /\/ops[a-z_]*\.def$/) what = "schema"
  if (FILENAME ~ /\/(rules\.def|derivatives_emit\.c)$/) what = "derivative rule"
  if (FILENAME ~ /\/kit\/reference\// || FILENAME ~ /_kernels\.c$/) what = "kernel"
  if (FILENAME ~ /\/scalar\.def$/) what = "formula"
  if (FILENAME ~ /\/kit\/loops\//) what = "loop row"
  if (FILENAME ~ /\/kit\/lowering\//) what = "lowering row"
  op = ""
}
match($0, /^ *([A-Z_]+\(|\{)([A-Za-z0-9_]+, *|\.op = AOT_STR_INIT\()?"[A-Za-z0-9_.]+"/) {
  split(substr($0, RSTART, RLENGTH), quoted, "\"")
  n = split(quoted[2], part, ".")
  op = n == 2 ? "aten." quoted[2] : n == 3 ? quoted[2] : ""
  if (op != "" && what != "") put(op, what, where())
}
op != "" && match($0, /\.decompose = [a-z0-9_]+/) { user[++n_users] = op; role[n_users] = "decomposition"; by[n_users] = substr($0, RSTART + 13, RLENGTH - 13) }
op != "" && what == "derivative rule" && match($0, /ag_rule_[a-z0-9_]+\)/) { user[++n_users] = op; role[n_users] = "derivative function"; by[n_users] = substr($0, RSTART, RLENGTH - 1) }
/^[a-z_].*(at_shape_|at_dc_|ag_rule_)[a-z0-9_]+\(.*[{,]$/ {
  match($0, /(at_shape_|at_dc_|ag_rule_)[a-z0-9_]+/)
  name = substr($0, RSTART, RLENGTH)
  defined[name] = where()
  if (name ~ /^at_shape_/) put("shape:" substr(name, 10), "shape rule", where())
}
END { for (i = 1; i <= n_users; i++) if (by[i] in defined) put(user[i], role[i], defined[by[i]]) }
