/* Does what a stage did agree with its contract? Operators that it made must be on its `creates` list, operators on its
 * `removes` list must be gone. Patterns are full names or prefixes ending in *; each is matched against the operator
 * table once, then nodes are looked up by number: O(patterns * operators + edits + nodes). */
#include <ir/program_store.h>
#include <stdlib.h>
#include <string.h>

#define MAX_REPORTS 20

static int matches(aot_str_t pattern, aot_str_t name) {
  int prefix = pattern.size && pattern.data[pattern.size - 1] == '*';
  uint64_t n = pattern.size - (uint64_t)prefix;
  return (prefix ? name.size >= n : name.size == n) && memcmp(pattern.data, name.data, (size_t)n) == 0;
}

static void mark_matches(const aot_prog_t *p, const aot_str_t *patterns, uint64_t n, unsigned char *marked) {
  for (uint32_t op = 1; op < aoth_ops_count(p->ops); op++)
    for (uint64_t i = 0; i < n && !marked[op]; i++) marked[op] = (unsigned char)matches(patterns[i], op_name(p, op));
}

static uint32_t check_created(aot_prog_t *p, const unsigned char *allowed) {
  uint32_t bad = 0, mark = p->marks.n ? p->marks.at[p->marks.n - 1] : p->edits.n;
  for (uint32_t i = mark; i < p->edits.n && bad < MAX_REPORTS; i++) {
    aot_node_t n = {p->edits.at[i].u[0]};
    if (p->edits.at[i].kind != EDIT_NODE_CREATE || !node_is_alive(p, n.id) || allowed[p->nodes.at[n.id].op]) continue;
    aoth_report_node(
        p, n, AOT_SEVERITY_ERROR, "ir.contract", "the contract's `creates` must list every operator it makes",
        "operator %.*s was created, which the contract does not allow", STR_ARGS(op_name(p, p->nodes.at[n.id].op)));
    bad++;
  }
  return bad;
}

static uint32_t check_removed(aot_prog_t *p, const unsigned char *gone) {
  uint32_t bad = 0;
  for (uint32_t id = 1; id < p->nodes.n && bad < MAX_REPORTS; id++) {
    aot_node_t n = {id};
    if (!p->nodes.at[id].alive || !gone[p->nodes.at[id].op]) continue;
    aoth_report_node(p, n, AOT_SEVERITY_ERROR, "ir.contract", NULL,
                     "operator %.*s is still there, which the contract removes",
                     STR_ARGS(op_name(p, p->nodes.at[id].op)));
    bad++;
  }
  return bad;
}

aot_status_t aoth_journal_check(aot_prog_t *p, const aoth_contract_t *c) {
  uint32_t n_ops = aoth_ops_count(p->ops), bad = 0;
  unsigned char *marked = calloc(n_ops + 1u, 1);
  if (!marked) return aoth_no_memory(p, "the contract check", n_ops);
  if (c->n_creates) {
    mark_matches(p, c->creates, c->n_creates, marked);
    bad += check_created(p, marked);
  }
  if (c->n_removes) {
    memset(marked, 0, n_ops);
    mark_matches(p, c->removes, c->n_removes, marked);
    bad += check_removed(p, marked);
  }
  free(marked);
  return bad ? AOT_E_CONTRACT : AOT_OK;
}
