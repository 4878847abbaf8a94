# rank_graphs.awk: a program in text form behind fsdp, held against what must be true of its graphs; a line for each thing that is not.
# Variables: mode; shards: 1 where every parameter is shared out. The first file is the program without ranks, for the whole sizes.
#
#   inputs are shards     a port of a parameter, a state or a gradient is as large as the leaf, which is ceil(rows / n) rows; no leaf is
#                         the input of two ports, or written by two
#   whole ones stay       what a gather makes, and views and casts of it, is no output; in the mode shard-grad the forward may save it
#   their own gathers     where the forward does not save it, what a node of the backward reads was gathered by the backward
function sizes(text, from) { from = index(text, "["); return substr(text, from + 1, index(text, "]") - from - 1) }
function wrong(what) { print FILENAME ":" FNR ": " what; n_wrong++ }
function is_view(op) { return op ~ /^aten\.(slice|t|view|_unsafe_view|reshape|transpose|permute|expand|unsqueeze|squeeze|alias|detach|select|_to_copy|clone)\./ }
FNR == NR {
  if ($1 == "leaf" && $3 == "parameter") whole[$4] = sizes(substr($0, index($0, ": ")))
  next
}
$1 == "leaf" {
  leaf_sizes[$2] = sizes(substr($0, index($0, ": ")))
  if ($3 != "parameter") next
  n_parameters++
  d = split(whole[$4], was, ", "); split(leaf_sizes[$2], is, ", ")
  rows = shards && d ? int((was[1] + parts - 1) / parts) : was[1]
  if (d && is[1] + 0 != rows) wrong("parameter " $4 " has " is[1] " rows of " was[1] ", not " rows)
  for (i = 2; i <= d; i++) if (is[i] != was[i]) wrong("parameter " $4 " is cut along dimension " i - 1)
}
$1 == "graph" { split("", gathered); split("", n_inputs); split("", n_written); n_graphs++; kind = $3 }
$1 == "in" {
  role = $0; sub(/^.* = /, "", role); split(role, part, " ")
  if (part[1] ~ /^(parameter|state|gradient|buffer)$/) {
    sub(":$", "", part[2])
    key = part[1] == "gradient" ? "gradient " part[2] : part[2]
    if (n_inputs[key]++) wrong("leaf " part[2] " is two inputs")
    if (sizes(substr($0, index($0, " : "))) != leaf_sizes[part[2]]) wrong("the port of leaf " part[2] " is not as large as the leaf")
  }
}
$1 == "out" {
  value = $NF
  if ($2 == "update" && n_written[$3]++) wrong("leaf " $3 " is written twice")
  if (value in gathered && !(mode == "shard-grad" && $2 == "saved")) wrong("a whole parameter leaves as " $2 " " $3)
}
/^  %.* = / {
  is_backward = $0 ~ /\{[^}]*backward/
  call = $0; sub(/^.* = /, "", call); op = call; sub(/ .*/, "", op)
  names = $0; sub(/ = .*/, "", names)
  operands = substr(call, length(op) + 1)
  is_gather = op ~ /all_gather/
  n_gathers += is_gather; n_backward_gathers += is_gather && is_backward
  from = is_gather ? 1 + is_backward : 0 # 1: the forward's, 2: the backward's
  while (match(operands, /%[A-Za-z0-9_]+/)) {
    read = substr(operands, RSTART, RLENGTH); operands = substr(operands, RSTART + RLENGTH)
    if (!(read in gathered)) continue
    if (is_backward && gathered[read] == 1 && mode != "shard-grad") wrong("the backward reads what the forward gathered: " read)
    if (!from && (op ~ /wait/ || is_view(op))) from = gathered[read]
  }
  while (match(names, /%[A-Za-z0-9_]+/)) {
    if (from) gathered[substr(names, RSTART, RLENGTH)] = from
    names = substr(names, RSTART + RLENGTH)
  }
}
END {
  if (!n_graphs || !n_parameters) wrong("there is no program")
  if (shards && !n_gathers) wrong("nothing is gathered")
  if (shards && mode != "shard-grad" && !n_backward_gathers) wrong("the backward gathers nothing")
  if (!shards && n_gathers) wrong("something is gathered")
  exit n_wrong != 0
}
