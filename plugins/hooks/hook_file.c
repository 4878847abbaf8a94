/* Inlining: symbols of the file are bound to the value's sizes, then a graph's nodes are copied one by one, values and
 * dimensions replaced, and their result types inferred from what they now read. */
#include "hook_file.h"

#include "file_check.h"
#include "kit/base/errors.h"
#include <aot/ext/program_file.h>
#include <aot/inline.h>
#include <string.h>

#define UNBOUND INT64_MIN
#define SHOW(s) (int)(s).size, (s).data ? (s).data : ""

/* ---- fitting ---- */

static int is_any(const hk_file_t *f, const em_t *e, const aot_type_t *t) {
  aot_symbol_info_t s = {.struct_size = sizeof s};
  const int64_t symbol = t->rank == 1 ? hk_symbol_of(f, e, t->sizes[0]) : -1;
  return symbol >= 0 && e->host->graph->symbol_info(f->prog, (uint32_t)symbol, &s) == AOT_OK &&
         aot_str_eq(s.name, aot_str("any"));
}

/* Does a value of type t fit an input declared as `as`? Binds the symbols. */
static int bind(const hk_file_t *f, const em_t *e, const aot_type_t *as, const aot_type_t *t) {
  for (uint32_t i = 0; i < f->n_symbols; i++) f->bound[i] = UNBOUND;
  if (as->dtype != t->dtype) return 0;
  if (is_any(f, e, as)) return 1;
  if (as->rank != t->rank) return 0;
  for (int32_t d = 0; d < as->rank; d++) {
    const int64_t symbol = hk_symbol_of(f, e, as->sizes[d]);
    if (symbol < 0 && as->sizes[d] != t->sizes[d]) return 0;
    if (symbol < 0) continue;
    if (f->bound[symbol] != UNBOUND && f->bound[symbol] != t->sizes[d]) return 0;
    f->bound[symbol] = t->sizes[d];
  }
  return 1;
}

/* The first pair that fits, its symbols bound; NULL: none. *out_dtype: some pair has the dtype. */
static const hk_pair_t *find_pair(const hk_file_t *f, const em_t *e, const aot_type_t *t, int *out_dtype) {
  *out_dtype = 0;
  for (uint32_t i = 0; i < f->n_pairs; i++) {
    aot_type_t as;
    if (e->host->graph->value_type(f->prog, e->host->graph->inputs(f->prog, f->pairs[i].pack)[0].value, &as) != AOT_OK)
      continue;
    *out_dtype |= as.dtype == t->dtype;
    if (bind(f, e, &as, t)) return &f->pairs[i];
  }
  return NULL;
}

static int file_fits(const hk_hook_t *h, em_t *e, const aot_type_t *t) {
  int has_dtype;
  if (find_pair(h->self, e, t, &has_dtype)) return HK_TAKEN;
  return has_dtype ? HK_NO_FIT : HK_DTYPE;
}

/* ---- dimensions ---- */

static int64_t dim_now(const hk_file_t *f, int64_t dim) {
  return AOT_DIM_IS_SYM(dim) ? f->dims[AOT_DIM_EXPR(dim)] : dim;
}

/* Every expression of the file in terms of the program; children precedes what is made of them. */
static void make_dims(const hk_file_t *f, em_t *e) {
  for (uint32_t i = 1; i < f->n_exprs && e->status == AOT_OK; i++) {
    aot_expr_info_t x;
    e->status = e->host->graph->expr_info(f->prog, i, &x);
    if (e->status != AOT_OK) return;
    f->dims[i] = UNBOUND;
    if (x.op == AOT_EXPR_SYMBOL) {
      f->dims[i] = f->bound[x.a];
      continue;
    }
    const int64_t a = dim_now(f, x.a), b = dim_now(f, x.b), c = dim_now(f, x.c);
    if (a != UNBOUND && b != UNBOUND && c != UNBOUND)
      e->status = e->host->edit->dim_make(e->prog, x.op, a, b, c, &f->dims[i]);
  }
}

/* ---- nodes ---- */

static void unbound(const hk_file_t *f, em_t *e, aot_node_t n) {
  hk_fail(e, AOT_E_INVALID, "hooks.size", f->path, hk_line_of(f, e, n), aot_no_value(),
          "only sizes of the input of @pack are known, and none of f32[any]",
          "a size here is not one of the packed value");
}

/* One argument in terms of the program; lists go into scratch memory. */
static aot_arg_t map_arg(const hk_file_t *f, em_t *e, aot_node_t n, aot_arg_t a) {
  if (a.kind == AOT_ARG_VALUE) a.u.i = f->map[a.u.i];
  if (a.kind == AOT_ARG_INT) a.u.i = dim_now(f, a.u.i);
  if (a.kind == AOT_ARG_INT && a.u.i == UNBOUND) unbound(f, e, n);
  if (a.kind != AOT_ARG_VALUES && a.kind != AOT_ARG_INTS) return a;
  void *list = e->host->alloc(e->host, e->ctx, AOT_ARENA_SCRATCH, 8, ((uint64_t)a.n + 1) * 8);
  if (!list) {
    e->status = AOT_E_EXHAUSTED;
    return a;
  }
  if (a.kind == AOT_ARG_VALUES) {
    uint32_t *ids = list;
    for (uint32_t i = 0; i < a.n; i++) ids[i] = f->map[a.u.ids[i]];
    a.u.ids = ids;
  } else {
    int64_t *ints = list;
    for (uint32_t i = 0; i < a.n; i++)
      if ((ints[i] = dim_now(f, a.u.ints[i])) == UNBOUND) unbound(f, e, n);
    a.u.ints = ints;
  }
  return a;
}

/* The inlined node says where it comes from: the hook's line, and the saved value's origin after it. */
static aot_origin_t inlined_origin(const hk_file_t *f, em_t *e, aot_node_t n) {
  const aot_origin_info_t o = {
      .struct_size = sizeof o,
      .line = hk_line_of(f, e, n),
      .source_file = f->path,
      .parent = e->origin,
  };
  aot_origin_t out = aot_no_origin();
  if (e->status == AOT_OK) e->status = e->host->edit->origin_create(e->prog, &o, &out);
  return out;
}

static void copy_node(const hk_file_t *f, em_t *e, aot_node_t n) {
  aot_node_info_t from = {.struct_size = sizeof from}, to;
  e->status = e->host->graph->node_info(f->prog, n, &from);
  aot_arg_t *args = e->host->alloc(e->host, e->ctx, AOT_ARENA_SCRATCH, 8, ((uint64_t)from.n_args + 1) * sizeof *args);
  if (!args) e->status = AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < from.n_args && e->status == AOT_OK; i++) args[i] = map_arg(f, e, n, from.args[i]);
  em_t line = *e;
  line.origin = inlined_origin(f, &line, n);
  if (!em_ok(e, line.status)) return;
  em_put(&line, from.op, from.n_args, args, 0, NULL, &to);
  if (!em_ok(e, line.status)) {
    aot_diag_t d = kit_diag(AOT_SEVERITY_NOTE, "hooks.inline", "while this line was applied to a saved value");
    d.file = f->path;
    d.line = hk_line_of(f, e, n);
    e->host->diag(e->host, e->ctx, &d);
    return;
  }
  for (uint32_t i = 0; i < from.n_results; i++) f->map[from.first_result.id + i] = to.first_result.id + i;
}

static void inline_graph(const hk_file_t *f, em_t *e, aot_graph_t g, const aot_value_t *in, aot_value_t *out) {
  const aot_graph_api_t *a = e->host->graph;
  make_dims(f, e);
  for (uint32_t i = 0; i < a->n_inputs(f->prog, g); i++)
    f->map[a->inputs(f->prog, g)[i].value.id] = in[a->inputs(f->prog, g)[i].index].id;
  for (aot_node_t n = a->first(f->prog, g); n.id != AOT_NO_ID && e->status == AOT_OK; n = a->next(f->prog, n))
    copy_node(f, e, n);
  for (uint32_t i = 0; i < a->n_outputs(f->prog, g) && e->status == AOT_OK; i++)
    out[a->outputs(f->prog, g)[i].index].id = f->map[a->outputs(f->prog, g)[i].value.id];
}

/* ---- the hook ---- */

/* fits() has looked at the backward's value: the forward's is of another type. */
static void no_pair(const hk_file_t *f, em_t *e, aot_value_t v) {
  hk_fail(e, AOT_E_PRECONDITION, "hooks.no-fit", f->path, 0, v, "",
          "forward and backward disagree about the type of a value");
}

static void file_pack(const hk_hook_t *h, em_t *e, aot_value_t v, aot_value_t *out_parts, uint32_t *out_n) {
  const hk_file_t *f = h->self;
  const aot_type_t t = em_type(e, em_v(v));
  int has_dtype;
  const hk_pair_t *p = find_pair(f, e, &t, &has_dtype);
  if (!p) {
    no_pair(f, e, v);
    return;
  }
  *out_n = e->host->graph->n_outputs(f->prog, p->pack);
  inline_graph(f, e, p->pack, &v, out_parts);
}

static int same_size(const em_t *e, int64_t a, int64_t b) {
  if (a == b) return 1;
  return (AOT_DIM_IS_SYM(a) || AOT_DIM_IS_SYM(b)) &&
         e->host->graph->dim_hint(e->prog, a) == e->host->graph->dim_hint(e->prog, b);
}

static void check_again(const hk_file_t *f, em_t *e, const hk_pair_t *p, aot_value_t v, const aot_type_t *like) {
  const aot_type_t t = em_type(e, em_v(v));
  int same = t.dtype == like->dtype && t.rank == like->rank;
  for (int32_t d = 0; same && d < t.rank; d++) same = same_size(e, t.sizes[d], like->sizes[d]);
  const aot_value_t out = e->host->graph->outputs(f->prog, p->unpack)[0].value;
  if (!same)
    hk_fail(e, AOT_E_INVALID, "hooks.type", f->path, hk_line_of(f, e, e->host->graph->value_def(f->prog, out)), v,
            "what is unpacked must have the dtype and sizes of what was packed",
            "@unpack%.*s gives %s of rank %d where %s of rank %d was saved%s", SHOW(p->name), aot_dtype_name(t.dtype),
            (int)t.rank, aot_dtype_name(like->dtype), (int)like->rank,
            t.dtype == like->dtype && t.rank == like->rank ? ", with other sizes" : "");
}

/* What arrives must be what @unpack declares, as far as its operators may count on it: the dtype. */
static void check_parts(const hk_file_t *f, em_t *e, const hk_pair_t *p, const aot_value_t *parts) {
  const aot_graph_api_t *a = e->host->graph;
  for (uint32_t i = 0; i < a->n_inputs(f->prog, p->unpack); i++) {
    const aot_port_t port = a->inputs(f->prog, p->unpack)[i];
    aot_type_t as;
    const aot_type_t t = em_type(e, em_v(parts[port.index]));
    if (e->status == AOT_OK) e->status = a->value_type(f->prog, port.value, &as);
    if (e->status == AOT_OK && as.dtype != t.dtype)
      hk_fail(e, AOT_E_INVALID, "hooks.type", f->path, hk_line_of(f, e, a->first(f->prog, p->unpack)), aot_no_value(),
              "", "@unpack%.*s takes %s as its value %u, @pack%.*s gives %s", SHOW(p->name), aot_dtype_name(as.dtype),
              port.index, SHOW(p->name), aot_dtype_name(t.dtype));
  }
}

static aot_value_t file_unpack(const hk_hook_t *h, em_t *e, const aot_value_t *parts, uint32_t n,
                               const aot_type_t *like) {
  const hk_file_t *f = h->self;
  int has_dtype;
  const hk_pair_t *p = find_pair(f, e, like, &has_dtype);
  aot_value_t out = aot_no_value();
  (void)n;
  if (!p) {
    no_pair(f, e, parts[0]);
    return out;
  }
  check_parts(f, e, p, parts);
  inline_graph(f, e, p->unpack, parts, &out);
  if (e->status == AOT_OK) check_again(f, e, p, out, like);
  return out;
}

hk_hook_t hk_file_hook(const hk_file_t *f) { return (hk_hook_t){file_fits, file_pack, file_unpack, f}; }

/* ---- the file ---- */

static void make_room(hk_file_t *f, em_t *e) {
  const aot_graph_api_t *a = e->host->graph;
  aot_expr_info_t x;
  f->n_symbols = a->n_symbols(f->prog);
  f->n_exprs = 1;
  while (a->expr_info(f->prog, f->n_exprs, &x) == AOT_OK) f->n_exprs++;
  f->bound = e->host->alloc(e->host, e->ctx, AOT_ARENA_SCRATCH, 8, ((uint64_t)f->n_symbols + 1) * 8);
  f->dims = e->host->alloc(e->host, e->ctx, AOT_ARENA_SCRATCH, 8, ((uint64_t)f->n_exprs + 1) * 8);
  f->map = e->host->alloc(e->host, e->ctx, AOT_ARENA_SCRATCH, 4, ((uint64_t)a->n_values(f->prog) + 1) * 4);
  if (!f->bound || !f->dims || !f->map) e->status = AOT_E_EXHAUSTED;
}

static const aot_ext_program_file_t *text_of(const em_t *e) { return aot_ext(&e->host->head, AOT_EXT_PROGRAM_FILE); }

void hk_file_open(hk_file_t *f, em_t *e, aot_str_t path) {
  const aot_ext_program_file_t *text = text_of(e);
  memset(f, 0, sizeof *f);
  f->path = path;
  if (!text) {
    hk_fail(e, AOT_E_PRECONDITION, "hooks.host", path, 0, aot_no_value(), "",
            "this host does not read programs for plugins");
    return;
  }
  e->status = text->read(text, e->ctx, path, &f->prog);
  if (e->status != AOT_OK) return;
  make_room(f, e);
  if (e->status == AOT_OK) hk_check_file(f, e);
}

void hk_file_close(hk_file_t *f, em_t *e) {
  const aot_ext_program_file_t *text = text_of(e);
  if (f->prog) text->release(text, e->ctx, f->prog);
  f->prog = NULL;
}
