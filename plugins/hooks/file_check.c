#include "file_check.h"

#include <aot/inline.h>
#include <string.h>

#define SHOW(s) (int)(s).size, (s).data ? (s).data : ""

uint32_t hk_line_of(const hk_file_t *f, const em_t *e, aot_node_t n) {
  aot_node_info_t node = {.struct_size = sizeof node};
  aot_origin_info_t origin = {.struct_size = sizeof origin};
  if (n.id == AOT_NO_ID || e->host->graph->node_info(f->prog, n, &node) != AOT_OK || node.origin.id == AOT_NO_ID)
    return 0;
  return e->host->graph->origin_info(f->prog, node.origin, &origin) == AOT_OK ? origin.line : 0;
}

int64_t hk_symbol_of(const hk_file_t *f, const em_t *e, int64_t dim) {
  aot_expr_info_t x;
  if (!AOT_DIM_IS_SYM(dim) || e->host->graph->expr_info(f->prog, AOT_DIM_EXPR(dim), &x) != AOT_OK) return -1;
  return x.op == AOT_EXPR_SYMBOL ? x.a : -1;
}

/* An error about a graph: it points at the graph's first node. */
static void bad_graph(const hk_file_t *f, em_t *e, aot_graph_t g, const char *what, const char *hint) {
  int32_t kind;
  aot_str_t name = {0};
  e->host->graph->graph_info(f->prog, g, &kind, &name);
  hk_fail(e, AOT_E_INVALID, "hooks.file", f->path, hk_line_of(f, e, e->host->graph->first(f->prog, g)), aot_no_value(),
          hint, "graph @%.*s %s", SHOW(name), what);
}

static void check_node(const hk_file_t *f, em_t *e, aot_node_t n) {
  static const struct {
    uint32_t flag;
    const char *what;
  } banned[] = {{AOT_OP_WRITES, "writes an argument"},
                {AOT_OP_RANDOM, "draws random numbers"},
                {AOT_OP_EFFECT, "has an effect"},
                {AOT_OP_COLLECTIVE, "talks to other processes"},
                {AOT_OP_REGION, "owns graphs"}};
  aot_node_info_t node = {.struct_size = sizeof node};
  e->status = e->host->graph->node_info(f->prog, n, &node);
  const aot_op_desc_t *d = e->status == AOT_OK ? e->host->graph->op_desc(f->prog, node.op) : NULL;
  for (size_t i = 0; d && i < sizeof banned / sizeof *banned; i++)
    if (d->flags & banned[i].flag)
      hk_fail(e, AOT_E_INVALID, "hooks.operator", f->path, hk_line_of(f, e, n), aot_no_value(),
              "pack and unpack compute a value from values, and nothing else", "%.*s %s: that cannot stand in a hook",
              SHOW(d->name), banned[i].what);
}

/* Ports by position, each a tensor. */
static void check_ports(const hk_file_t *f, em_t *e, aot_graph_t g, const aot_port_t *ports, uint32_t n,
                        const char *words) {
  for (uint32_t i = 0; i < n; i++) {
    aot_type_t t = {.kind = AOT_TYPE_NONE};
    if (ports[i].value.id != AOT_NO_ID && e->host->graph->value_type(f->prog, ports[i].value, &t) != AOT_OK)
      t.kind = AOT_TYPE_NONE;
    if (ports[i].role != AOT_ROLE_REGION || ports[i].index >= n || t.kind != AOT_TYPE_TENSOR)
      bad_graph(f, e, g, words, "write them as `region 0`, `region 1`, .., all tensors");
  }
}

static void check_graph(const hk_file_t *f, em_t *e, aot_graph_t g) {
  const aot_graph_api_t *a = e->host->graph;
  check_ports(f, e, g, a->inputs(f->prog, g), a->n_inputs(f->prog, g), "takes something else than tensors by position");
  check_ports(f, e, g, a->outputs(f->prog, g), a->n_outputs(f->prog, g),
              "gives something else than tensors by position");
  for (aot_node_t n = a->first(f->prog, g); n.id != AOT_NO_ID && e->status == AOT_OK; n = a->next(f->prog, n))
    check_node(f, e, n);
}

/* Symbols are bound by the sizes of the packed value, so that these must be symbols or numbers. */
static void check_sizes(const hk_file_t *f, em_t *e, aot_graph_t pack) {
  aot_type_t t;
  if (e->status == AOT_OK)
    e->status = e->host->graph->value_type(f->prog, e->host->graph->inputs(f->prog, pack)[0].value, &t);
  for (int32_t d = 0; e->status == AOT_OK && d < t.rank; d++)
    if (AOT_DIM_IS_SYM(t.sizes[d]) && hk_symbol_of(f, e, t.sizes[d]) < 0)
      bad_graph(f, e, pack, "takes a value whose sizes are neither numbers nor symbols",
                "name each size, and compute with the names");
}

static void check_pair(const hk_file_t *f, em_t *e, const hk_pair_t *p) {
  const aot_graph_api_t *a = e->host->graph;
  if (p->pack.id == AOT_NO_ID || p->unpack.id == AOT_NO_ID) {
    bad_graph(f, e, p->pack.id == AOT_NO_ID ? p->unpack : p->pack, "has no partner",
              "every @pack needs an @unpack, every @pack.NAME an @unpack.NAME");
    return;
  }
  const uint32_t n = a->n_outputs(f->prog, p->pack);
  if (a->n_inputs(f->prog, p->pack) != 1) bad_graph(f, e, p->pack, "must take one input, the value to be packed", "");
  if (n < 1 || n > HK_MAX_PARTS) bad_graph(f, e, p->pack, "must give between 1 and 16 values", "");
  if (a->n_inputs(f->prog, p->unpack) != n)
    bad_graph(f, e, p->unpack, "does not take as many values as its @pack gives", "");
  if (a->n_outputs(f->prog, p->unpack) != 1) bad_graph(f, e, p->unpack, "must give one output, the value again", "");
  check_graph(f, e, p->pack);
  check_graph(f, e, p->unpack);
  check_sizes(f, e, p->pack);
}

/* The pair of a graph's name, a new one if there is none yet. NULL: reported. */
static hk_pair_t *pair_of(hk_file_t *f, em_t *e, aot_graph_t g, aot_str_t name) {
  for (uint32_t i = 0; i < f->n_pairs; i++)
    if (aot_str_eq(f->pairs[i].name, name)) return &f->pairs[i];
  if (f->n_pairs == HK_MAX_PAIRS) {
    bad_graph(f, e, g, "is one too many: a file holds at most 32 pairs", "");
    return NULL;
  }
  f->pairs[f->n_pairs] = (hk_pair_t){{AOT_NO_ID}, {AOT_NO_ID}, name};
  return &f->pairs[f->n_pairs++];
}

static void add_graph(hk_file_t *f, em_t *e, aot_graph_t g, int32_t kind, aot_str_t name) {
  static const aot_str_t words[] = {AOT_STR_INIT("pack"), AOT_STR_INIT("unpack")};
  for (int w = 0; w < 2 && kind == AOT_GRAPH_REGION; w++) {
    const aot_str_t rest = {name.data + words[w].size, name.size - words[w].size};
    if (name.size < words[w].size || memcmp(name.data, words[w].data, (size_t)words[w].size) != 0) continue;
    if (rest.size && rest.data[0] != '.') continue;
    hk_pair_t *p = pair_of(f, e, g, rest);
    if (p) *(w ? &p->unpack : &p->pack) = g;
    return;
  }
  bad_graph(f, e, g, "is no part of a hook",
            "a hook's file holds graphs `@pack region` and `@unpack region`, or @pack.NAME and @unpack.NAME");
}

void hk_check_file(hk_file_t *f, em_t *e) {
  const uint32_t n = e->host->graph->n_graphs(f->prog);
  for (uint32_t i = 0; i < n && e->status == AOT_OK; i++) {
    const aot_graph_t g = {i};
    int32_t kind;
    aot_str_t name;
    if (e->host->graph->graph_info(f->prog, g, &kind, &name) == AOT_OK) add_graph(f, e, g, kind, name);
  }
  for (uint32_t i = 0; i < f->n_pairs && e->status == AOT_OK; i++) check_pair(f, e, &f->pairs[i]);
  if (!f->n_pairs)
    hk_fail(e, AOT_E_INVALID, "hooks.file", f->path, 1, aot_no_value(),
            "write graphs `@pack region` and `@unpack region`", "the file holds no hook");
}
