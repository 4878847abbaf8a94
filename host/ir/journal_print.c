/* A journal as lines, one an edit. */
#include <inttypes.h>
#include <ir/program_store.h>
#include <ir/redo.h>

static void print_node_name(aot_prog_t *p, uint32_t node, kit_text_t *out) {
  kit_text_f(out, "node %u", node);
  if (node < p->nodes.n) kit_text_f(out, " %.*s", STR_ARGS(op_name(p, p->nodes.at[node].op)));
}

static void print_created(aot_prog_t *p, uint32_t node, kit_text_t *out) {
  aot_node_t n = {node};
  kit_text_f(out, "node_create %u: ", node);
  aoth_print_node(p, n, out);
}

static void print_edit(aot_prog_t *p, const aoth_edit_row_t *e, kit_text_t *out) {
  switch (e->kind) {
    case EDIT_NODE_CREATE: print_created(p, e->u[0], out); break;
    case EDIT_NODE_ERASE:
    case EDIT_FLAGS_SET:
    case EDIT_OPERAND_SET:
    case EDIT_ARG_SET:
    case EDIT_NOTE:
      kit_text_f(out, "%s ", aoth_edit_name(e->kind));
      print_node_name(p, e->u[0], out);
      if (e->kind == EDIT_OPERAND_SET) kit_text_f(out, " operand %u, was value %" PRIu32, e->u[1], e->u[2]);
      if (e->kind == EDIT_ARG_SET) kit_text_f(out, " argument %u", e->u[1]);
      if (e->kind == EDIT_NOTE) kit_text_f(out, ": %s", (const char *)e->p);
      break;
    case EDIT_USES_REPLACE:
      kit_text_f(out, "uses_replace value %u by value %u, %u uses", e->u[0], e->u[1], e->u[2]);
      break;
    case EDIT_OUTPUT_SET: kit_text_f(out, "output_set graph %u output %u", e->u[0], e->u[1]); break;
    case EDIT_INPUT_ERASE: kit_text_f(out, "input_erase graph %u input %u", e->u[0], e->u[1]); break;
    default: kit_text_f(out, "%s %u", aoth_edit_name(e->kind), e->u[0]); break;
  }
  kit_text_z(out, "\n");
}

void aoth_journal_print(aot_prog_t *p, kit_text_t *out) {
  for (uint32_t i = p->edits.n - (uint32_t)aoth_journal_count(p); i < p->edits.n; i++)
    print_edit(p, &p->edits.at[i], out);
}
