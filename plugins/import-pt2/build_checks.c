/* build_checks.c - what is checked while a program is built: that the operators are known, that recorded types are what
 * the opset infers, that the archive's own assertions hold. */
#include "builder.h"
#include <aot/ext/compare_dims.h>
#include <aot/ext/nearest.h>
#include <aot/inline.h>
#include <stdio.h>
#include <string.h>

/* ---- missing operators ---- */

typedef struct unknown_op {
  aot_str_t name, node, module, trace;
  uint32_t count;
} unknown_op_t;

typedef struct unknown_ops {
  unknown_op_t *at;
  uint32_t n, capacity, n_nodes;
  p2_names_t index;
} unknown_ops_t;

static aot_status_t note_unknown(p2_builder_t *b, unknown_ops_t *all, const p2_node_t *n) {
  uint32_t at = p2_names_find(&all->index, p2_op_name(n));
  all->n_nodes++;
  if (at != P2_NO_ENTRY) {
    all->at[at].count++;
    return AOT_OK;
  }
  AOT_TRY(p2_grow(b->env, (void **)&all->at, all->n, &all->capacity, sizeof *all->at));
  all->at[all->n].name = p2_op_name(n);
  all->at[all->n].node = p2_node_label(n);
  all->at[all->n].module = p2_module_path(n->module_stack);
  all->at[all->n].trace = n->stack_trace;
  all->at[all->n].count = 1;
  return p2_names_add(b->env, &all->index, p2_op_name(n), all->n++, NULL);
}

static aot_status_t say(p2_builder_t *b, aot_diag_t *d, int32_t severity, const char *message, const char *hint) {
  d->struct_size = sizeof *d;
  d->severity = severity;
  d->code = aot_str("import-pt2.unknown-operator");
  d->message = aot_str(message);
  d->hint = aot_str(hint);
  d->node = aot_no_node();
  d->value = aot_no_value();
  return b->host->diag(b->host, b->ctx, d);
}

/* One of them, where its first node is in the model's source. */
static aot_status_t say_unknown(p2_builder_t *b, const unknown_op_t *u) {
  const aot_ext_nearest_t *nearest = aot_ext(&b->host->head, AOT_EXT_NEAREST);
  const aot_str_t near = nearest ? nearest->op(nearest, b->prog, u->name) : aot_str("");
  char text[900], hint[300] = "";
  aot_diag_t d;
  memset(&d, 0, sizeof d);
  p2_source_line(u->trace, &d.file, &d.line);
  snprintf(text, sizeof text, "%.*s: %u node%s, first '%.*s'%s%.*s", P2_SHOW(u->name), u->count,
           u->count == 1 ? "" : "s", P2_SHOW(u->node), u->module.size ? " in module " : "", P2_SHOW(u->module));
  if (near.size) snprintf(hint, sizeof hint, "the nearest known operator is %.*s", P2_SHOW(near));
  return say(b, &d, AOT_SEVERITY_NOTE, text, hint);
}

#define MOST_TOLD 100 /* operators named; an archive with more is not a model */

static aot_status_t report_unknown(p2_builder_t *b, const unknown_ops_t *all) {
  char text[200];
  aot_diag_t d;
  uint32_t i;
  memset(&d, 0, sizeof d);
  snprintf(text, sizeof text, "the model uses %u operator%s that no loaded opset knows (%u node%s)", all->n,
           all->n == 1 ? "" : "s", all->n_nodes, all->n_nodes == 1 ? "" : "s");
  AOT_TRY(say(
      b, &d, AOT_SEVERITY_ERROR, text,
      "declare them in the pipeline (operators:, with kernels from a plugin), or load a plugin whose opset has them"));
  for (i = 0; i < all->n && i < MOST_TOLD; i++) AOT_TRY(say_unknown(b, &all->at[i]));
  b->env->error.told = 1;
  return AOT_E_INVALID;
}

/* Symbolic nodes are left out: most of them become expressions, and the others are looked up when they are built. */
aot_status_t p2_check_operators(p2_builder_t *b) {
  unknown_ops_t all;
  uint32_t g, i;
  memset(&all, 0, sizeof all);
  for (g = 0; g < b->program->n_graphs; g++) {
    const p2_graph_t *graph = &b->program->graphs[g];
    if (b->regions[g].fate == P2_REGION_SKIP) continue;
    for (i = 0; i < graph->n_nodes; i++) {
      const p2_node_t *n = &graph->nodes[i];
      if (p2_is_symbolic(n) || p2_is_assertion(n) || p2_is_inline(n)) continue;
      if (b->host->graph->op_find(b->prog, p2_op_name(n)).id == AOT_NO_ID) AOT_TRY(note_unknown(b, &all, n));
    }
  }
  return all.n ? report_unknown(b, &all) : AOT_OK;
}

/* ---- types ---- */

static aot_status_t put_type(const aot_type_sink_t *sink, const aot_type_t *type) {
  p2_types_t *l = sink->head.self;
  aot_type_t copy;
  int64_t *dims;
  memset(&copy, 0, sizeof copy);
  copy = *type;
  if (copy.rank < 0 || copy.rank > AOT_MAX_RANK) return AOT_E_CONTRACT;
  AOT_TRY(P2_NEW(l->b->env, P2_SCRATCH, 2 * (uint32_t)copy.rank, &dims));
  if (copy.rank) memcpy(dims, type->sizes, (size_t)copy.rank * sizeof *dims);
  copy.sizes = dims;
  if (type->strides && copy.rank) memcpy(dims + copy.rank, type->strides, (size_t)copy.rank * sizeof *dims);
  copy.strides = type->strides ? dims + copy.rank : NULL;
  AOT_TRY(p2_grow(l->b->env, (void **)&l->at, l->n, &l->capacity, sizeof *l->at));
  l->at[l->n++] = copy;
  return AOT_OK;
}

aot_status_t p2_infer(p2_builder_t *b, aot_op_t op, const aot_arg_t *args, uint32_t n, p2_types_t *out,
                      int *out_known) {
  aot_type_sink_t sink;
  aot_status_t status;
  memset(&sink, 0, sizeof sink);
  memset(out, 0, sizeof *out);
  out->b = b;
  sink.head.struct_size = sizeof sink;
  sink.head.self = out;
  sink.put = put_type;
  status = b->host->edit->infer(b->prog, op, args, n, &sink);
  *out_known = status == AOT_OK;
  return status == AOT_E_UNIMPLEMENTED ? AOT_OK : status;
}

static void print_type(p2_builder_t *b, const aot_type_t *t, char *out, size_t size) {
  const aot_ext_compare_dims_t *dims = aot_ext(&b->host->head, AOT_EXT_COMPARE_DIMS);
  char one[64];
  size_t used;
  int32_t i;
  if (t->kind != AOT_TYPE_TENSOR) {
    snprintf(out, size, "no tensor");
    return;
  }
  used = (size_t)snprintf(out, size, "%s[", aot_dtype_name(t->dtype));
  for (i = 0; i < t->rank && used + sizeof one + 3 < size; i++) {
    if (AOT_DIM_IS_SYM(t->sizes[i]) && dims) dims->text(dims, b->prog, t->sizes[i], one, sizeof one);
    else snprintf(one, sizeof one, "%lld", (long long)b->host->graph->dim_hint(b->prog, t->sizes[i]));
    used += (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "", one);
  }
  snprintf(out + used, size - used, "]");
}

int p2_types_agree(p2_builder_t *b, const aot_type_t *x, const aot_type_t *y) {
  int32_t i;
  if (x->kind != AOT_TYPE_TENSOR || y->kind != AOT_TYPE_TENSOR) return 1; /* None, numbers: the archive decides */
  if (x->dtype != y->dtype || x->rank != y->rank) return 0;
  for (i = 0; i < x->rank; i++)
    if (!p2_dims_agree(b, x->sizes[i], y->sizes[i])) return 0;
  return 1;
}

aot_status_t p2_check_types(p2_builder_t *b, const p2_node_t *n, const p2_types_t *inferred, const aot_type_t *given,
                            uint32_t n_given) {
  char recorded[400], ours[400];
  uint32_t i;
  if (inferred->n != n_given)
    return p2_node_bad(b, n, "import-pt2.shape-check", "the archive records %u results, the operator gives %u", n_given,
                       inferred->n);
  for (i = 0; i < n_given; i++) {
    if (p2_types_agree(b, &given[i], &inferred->at[i])) continue;
    print_type(b, &given[i], recorded, sizeof recorded);
    print_type(b, &inferred->at[i], ours, sizeof ours);
    p2_node_bad(b, n, "import-pt2.shape-check", "result %u is recorded as %s, its operands give %s", i, recorded, ours);
    p2_hint(b->env, "the archive is damaged, or a shape rule differs from PyTorch's");
    return AOT_E_INVALID;
  }
  return AOT_OK;
}

/* ---- assertions ---- */

static const p2_argument_t *given(const p2_node_t *n, const char *name, uint32_t position) {
  uint32_t i;
  for (i = 0; i < n->n_inputs; i++)
    if (p2_str_is(n->inputs[i].name, name) || (!n->inputs[i].name.size && i == position)) return &n->inputs[i].arg;
  return NULL;
}

/* _assert_tensor_metadata(a, size, stride, dtype): checked here once and for all; dtype and size are what types
 * hold. */
aot_status_t p2_check_assertion(p2_builder_t *b, const p2_scope_t *s, const p2_node_t *n) {
  const p2_argument_t *a = given(n, "a", 0), *size = given(n, "size", 1), *dtype = given(n, "dtype", 3);
  aot_type_t type;
  p2_bound_t bound;
  aot_value_t v;
  uint32_t i;
  if (!a || a->kind != P2_ARG_TENSOR) return p2_node_bad(b, n, "import-pt2.bad-argument", "argument 'a' is no tensor");
  AOT_TRY(p2_lookup(b, s, a->u.s, &bound));
  v.id = (uint32_t)bound.i;
  if (bound.kind != P2_BOUND_VALUE) return p2_node_bad(b, n, "import-pt2.bad-argument", "argument 'a' is no tensor");
  AOT_TRY(b->host->graph->value_type(b->prog, v, &type));
  if (dtype && dtype->kind == P2_ARG_DTYPE && dtype->u.i != type.dtype)
    return p2_node_bad(b, n, "import-pt2.assertion", "the archive asserts that '%.*s' is %s, it is %s", P2_SHOW(a->u.s),
                       p2_dtype_name(dtype->u.i), aot_dtype_name(type.dtype));
  if (!size || size->kind != P2_ARG_INTS) return AOT_OK;
  for (i = 0; i < size->n && size->n == (uint32_t)type.rank; i++)
    if (!p2_dims_agree(b, size->u.ints[i], type.sizes[i])) break;
  if (size->n == (uint32_t)type.rank && i == size->n) return AOT_OK;
  return p2_node_bad(b, n, "import-pt2.assertion", "the archive asserts another size of '%.*s' than it has",
                     P2_SHOW(a->u.s));
}
