/* A pass of small rewrites: a node whose result is one of its operands is left out, one that computes what an earlier
 * one does is replaced by it, and unused nodes are erased. */
#include <aot/describe.h>
#include <aot/inline.h>
#include <aot/pass.h>
#include <string.h>

#define ID "right.peephole"
#define HELP "leaves out nodes that change nothing, or that are computed already"

typedef struct peephole_unit {
  aot_pass_t table;
  aot_host_t host;
} peephole_unit_t;

typedef struct call {
  const aot_graph_api_t *g;
  const aot_edit_api_t *e;
  aot_prog_t *prog;
} call_t;

/* Is the node one of this operator? Then its first operand. */
static int is_op(const call_t *c, aot_node_t n, const char *op, aot_value_t *out_operand) {
  aot_node_info_t info = {.struct_size = sizeof info};
  if (n.id == AOT_NO_ID || c->g->node_info(c->prog, n, &info) != AOT_OK || !info.n_operands) return 0;
  out_operand->id = info.operands[0];
  return aot_str_eq(c->g->op_desc(c->prog, info.op)->name, aot_str(op));
}

static int is_number(const aot_node_info_t *info, uint32_t arg, double number) {
  const aot_arg_t *a = &info->args[arg];
  return (a->kind == AOT_ARG_INT && (double)a->u.i == number) || (a->kind == AOT_ARG_FLOAT && a->u.f == number);
}

static int same_type(const call_t *c, aot_value_t a, aot_value_t b) {
  aot_type_t x, y;
  if (c->g->value_type(c->prog, a, &x) != AOT_OK || c->g->value_type(c->prog, b, &y) != AOT_OK) return 0;
  return x.kind == y.kind && x.dtype == y.dtype && x.rank == y.rank && x.offset == y.offset &&
         (!x.rank || (memcmp(x.sizes, y.sizes, (size_t)x.rank * sizeof *x.sizes) == 0 &&
                      memcmp(x.strides, y.strides, (size_t)x.rank * sizeof *x.strides) == 0));
}

/* x + 0 and x * 1 are x. */
static int is_neutral(const aot_node_info_t *info, const char *name) {
  if (strcmp(name, "aten.mul.Tensor") == 0) return is_number(info, 1, 1);
  return strcmp(name, "aten.sub.Tensor") == 0 && is_number(info, 1, 0);
}

/* The value that the result of a node is. AOT_NO_ID: none is known. */
static aot_value_t equal_value(const call_t *c, aot_node_t n, const aot_node_info_t *info) {
  const aot_str_t name = c->g->op_desc(c->prog, info->op)->name;
  char text[64] = "";
  aot_value_t operand, inner;
  if (name.size < sizeof text) memcpy(text, name.data, (size_t)name.size);
  if (is_neutral(info, text)) return (aot_value_t){info->operands[0]};
  if (!is_op(c, n, "aten.t.default", &operand)) return aot_no_value();
  const aot_node_t other = c->g->value_def(c->prog, operand);
  return !is_op(c, other, "aten.t.default", &inner) ? aot_no_value() : inner;
}

/* Do both compute the same, of the same values and numbers? */
static int is_same_sum(const call_t *c, const aot_node_info_t *a_info, const aot_node_info_t *b_info) {
  if (a_info->op.id != b_info->op.id || a_info->n_args != b_info->n_args) return 0;
  if (!aot_str_eq(c->g->op_desc(c->prog, a_info->op)->name, aot_str("aten.add.Tensor"))) return 0;
  for (uint32_t i = 0; i < 2; i++) {
    const aot_arg_t *a = &a_info->args[i], *b = &b_info->args[i];
    if (a->kind != AOT_ARG_VALUE || b->kind != AOT_ARG_VALUE || a->u.i != b->u.i) return 0;
  }
  return is_number(a_info, 2, 1) && is_number(b_info, 2, 1);
}

static aot_status_t rewrite(const call_t *c, aot_graph_t graph) {
  for (aot_node_t n = c->g->first(c->prog, graph); n.id != AOT_NO_ID; n = c->g->next(c->prog, n)) {
    aot_node_info_t info = {.struct_size = sizeof info}, before = info;
    AOT_TRY(c->g->node_info(c->prog, n, &info));
    if (info.n_results != 1) continue;
    aot_value_t x = equal_value(c, n, &info);
    const aot_node_t last = c->g->prev(c->prog, n);
    if (x.id == AOT_NO_ID && last.id != AOT_NO_ID && c->g->node_info(c->prog, last, &before) == AOT_OK &&
        is_same_sum(c, &before, &info))
      x = before.first_result;
    if (x.id != AOT_NO_ID && same_type(c, info.first_result, x))
      AOT_TRY(c->e->uses_replace(c->prog, info.first_result, x));
  }
  return AOT_OK;
}

static aot_status_t erase_unread(const call_t *c, aot_graph_t graph) {
  for (aot_node_t n = c->g->last(c->prog, graph), before; n.id != AOT_NO_ID; n = before) {
    aot_node_info_t info = {.struct_size = sizeof info};
    uint32_t n_uses = 0;
    before = c->g->prev(c->prog, n);
    AOT_TRY(c->g->node_info(c->prog, n, &info));
    if (c->g->op_desc(c->prog, info.op)->flags & (AOT_OP_EFFECT | AOT_OP_COLLECTIVE | AOT_OP_WRITES)) continue;
    for (uint32_t i = 0; i < info.n_results; i++)
      n_uses += c->g->n_uses(c->prog, (aot_value_t){info.first_result.id + i});
    if (!n_uses) AOT_TRY(c->e->node_erase(c->prog, n));
  }
  return AOT_OK;
}

static aot_status_t run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const peephole_unit_t *u = p->head.self;
  const call_t c = {u->host.graph, u->host.edit, prog};
  const aot_graph_t forward = c.g->graph_find(prog, AOT_GRAPH_FORWARD);
  (void)ctx;
  if (forward.id == AOT_NO_ID) return AOT_OK;
  AOT_TRY(rewrite(&c, forward));
  return erase_unread(&c, forward);
}

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  peephole_unit_t *u = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *u);
  (void)opts;
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->table = (aot_pass_t){.head = {.struct_size = sizeof u->table, .self = u}, .run = run};
  *out_table = &u->table.head;
  return AOT_OK;
}

static const aot_contract_t contract = {.struct_size = sizeof contract, .needs = AOT_NAMES(AOT_PROP_FUNCTIONAL)};

AOT_PLUGIN_ONE("pass/1", ID, "1.0.0", "aothost", "Apache-2.0", HELP, create, .contract = &contract);
