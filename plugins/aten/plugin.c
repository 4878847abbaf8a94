/* The unit: parses every schema of ops.def at create(), and connects the rules to the host. */
#include "at_emit.h"
#include "at_row.h"
#include "kit/schema/schema.h"
#include "derive.h"
#include "lazy_bits.h"
#include "rewrites.h"
#include "shape.h"
#include "whose_memory.h"

#include <aot/describe.h>
#include <aot/ext/coverage.h>
#include <aot/ext/opset_info.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define CLAIMS                                                                                                         \
  "* aten prims rngprims higher_order _c10d_functional fsdp inductor quantized_decomposed transformers aot _operator " \
  "math torch"
#define HELP "ATen operators: schemas, shape inference, decompositions, functional variants, view inverses"

typedef struct opset {
  aot_opset_t table;
  aot_host_t host;
  const aot_ext_compare_dims_t *compare; /* NULL: an older host */
  aot_op_desc_t *descs;
  const aot_op_desc_t **ops;
  aot_ext_coverage_t coverage;
  aot_ext_opset_info_t info;
} opset_t;

/* ---- the world as shape rules see it ---- */

typedef struct fixture {
  const opset_t *set;
  aot_prog_t *prog;
  const aot_type_sink_t *sink;
} fixture_t;

static aot_status_t type_of(void *self, uint32_t value, aot_type_t *out) {
  const fixture_t *w = self;
  aot_value_t v;
  v.id = value;
  return w->set->host.graph->value_type(w->prog, v, out);
}

static aot_status_t make_dim(void *self, int32_t op, int64_t a, int64_t b, int64_t c, int64_t *out) {
  const fixture_t *w = self;
  return w->set->host.edit->dim_make(w->prog, op, a, b, c, out);
}

static int64_t hint_of(void *self, int64_t dim) {
  const fixture_t *w = self;
  return w->set->host.graph->dim_hint(w->prog, dim);
}

/* A host without the extension has hints alone. */
static int compare_dims(void *self, int32_t op, int64_t a, int64_t b) {
  const fixture_t *w = self;
  const aot_ext_compare_dims_t *x = w->set->compare;
  if (x) return x->compare(x, w->prog, op, a, b);
  a = hint_of(self, a);
  b = hint_of(self, b);
  return op == AOT_EXPR_EQ ? a == b : op == AOT_EXPR_LT ? a < b : a <= b;
}

static void dim_text(void *self, int64_t dim, char *out, uint64_t capacity) {
  const fixture_t *w = self;
  if (w->set->compare) w->set->compare->text(w->set->compare, w->prog, dim, out, capacity);
  else snprintf(out, (size_t)capacity, "~%lld", (long long)hint_of(self, dim));
}

/* Named d and its number: the data report it. An archive's own are called u0, u1, .. */
static aot_status_t make_symbol(void *self, int64_t min, int64_t max, int64_t hint, int64_t *out) {
  const fixture_t *w = self;
  char name[24];
  aot_symbol_info_t info = {.struct_size = sizeof info, .min = min, .max = max, .hint = hint};
  snprintf(name, sizeof name, "d%u", w->set->host.graph->n_symbols(w->prog));
  info.name = aot_str(name);
  return w->set->host.edit->symbol_create(w->prog, &info, out);
}

static aot_status_t region_result(void *self, uint32_t graph, uint32_t i, aot_type_t *out) {
  const fixture_t *w = self;
  const aot_graph_api_t *api = w->set->host.graph;
  aot_graph_t g;
  const aot_port_t *ports;
  g.id = graph;
  if (i >= api->n_outputs(w->prog, g)) return AOT_E_NOT_FOUND;
  ports = api->outputs(w->prog, g);
  if (ports[i].value.id == AOT_NO_ID) {
    memset(out, 0, sizeof *out);
    return AOT_OK;
  }
  return api->value_type(w->prog, ports[i].value, out);
}

static aot_status_t put_type(void *self, const aot_type_t *type) {
  const fixture_t *w = self;
  return w->sink == NULL ? AOT_OK : w->sink->put(w->sink, type);
}

static aot_status_t infer_other(void *self, uint32_t op, const aot_arg_t *args, uint32_t n_args) {
  const fixture_t *w = self;
  return w->sink ? w->set->host.edit->infer(w->prog, (aot_op_t){op}, args, n_args, w->sink) : AOT_E_UNIMPLEMENTED;
}

static int carries_bit(void *self, uint32_t value, uint32_t bit) {
  const fixture_t *w = self;
  int carries;
  return at_carries_bit(&w->set->host, w->prog, (aot_value_t){value}, bit, &carries) == AOT_OK && carries;
}

static at_env_t environment(fixture_t *w) {
  at_env_t env = {w,           type_of,       make_dim, hint_of,     compare_dims, dim_text,
                  make_symbol, region_result, put_type, infer_other, carries_bit};
  return env;
}

static void complain(const opset_t *o, aot_ctx_t *ctx, const char *code, const char *message, const char *hint,
                     aot_node_t node) {
  aot_diag_t d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  d.severity = AOT_SEVERITY_ERROR;
  d.code = aot_str(code);
  d.message = aot_str(message);
  d.hint = aot_str(hint);
  d.node = node;
  d.value = aot_no_value();
  o->host.diag(&o->host, ctx, &d);
}

/* ---- the unit's functions ---- */

static aot_status_t AOT_CALL infer(const aot_opset_t *self, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local,
                                   const aot_arg_t *args, uint32_t n_args, const aot_type_sink_t *sink) {
  const opset_t *o = self->head.self;
  fixture_t w = {o, prog, sink};
  at_env_t env = environment(&w);
  at_infer_t c;
  aot_status_t status;
  if (local >= AT_N_OPS) return AOT_E_RANGE;
  status = at_infer_run(&c, &at_rows[local], &o->descs[local], args, n_args, &env);
  if (status != AOT_OK && c.message[0] != '\0') {
    char message[400];
    snprintf(message, sizeof message, "%s: %s", at_rows[local].name, c.message);
    complain(o, ctx, "aten.bad-arguments", message, "", aot_no_node());
  }
  return status;
}

/* An emitter for one node. infer and env live as long as it. */
typedef struct rewriter {
  em_t e;
  at_site_t site;
  at_infer_t infer;
  fixture_t world;
  at_env_t env;
} rewriter_t;

static em_t *begin(rewriter_t *r, const opset_t *o, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local, aot_node_t node,
                   aot_node_t before) {
  r->world.set = o;
  r->world.prog = prog;
  r->world.sink = NULL;
  r->env = environment(&r->world);
  r->infer.env = &r->env;
  r->infer.row = &at_rows[local];
  r->infer.desc = &o->descs[local];
  r->infer.args = NULL;
  r->infer.n_args = 0;
  r->infer.status = AOT_OK;
  r->infer.n_pool = 0;
  r->site = (at_site_t){.row = &at_rows[local], .infer = &r->infer};
  r->e = em_make(&o->host, ctx, prog, (aot_graph_t){AOT_NO_ID});
  r->e.code = "aten.rewrite";
  r->e.self = &r->site;
  em_rewrite(&r->e, node);
  r->e.before = before;
  return &r->e;
}

/* Results as the shape rule has them in memory: what reads them was given their strides, a view or the other half of a
 * partitioned program. memory: whose each result is; one that shares an operand's is where that is, a copy would end
 * the sharing. */
static void keep_result_layouts(em_t *e, const uint32_t *memory, aot_value_t *results) {
  for (uint32_t i = 0; i < e->info.n_results && e->status == AOT_OK; i++) {
    const aot_type_t like = at_result_type(e, i);
    if (!memory[i] && results[i].id != AOT_NO_ID && like.kind == AOT_TYPE_TENSOR)
      results[i] = em_value(e, at_laid_out(e, em_v(results[i]), &like));
    at_infer(e)->n_pool = 0;
  }
}

static aot_status_t AOT_CALL decompose(const aot_opset_t *self, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local,
                                       aot_node_t node, aot_value_t *out_values) {
  rewriter_t r;
  em_t *e;
  uint32_t *memory;
  aot_status_t status;
  if (local >= AT_N_OPS) return AOT_E_RANGE;
  if (at_rows[local].decompose == NULL) return AOT_E_UNIMPLEMENTED;
  e = begin(&r, self->head.self, ctx, prog, local, node, node);
  if (e->status != AOT_OK) return e->status;
  if (em_touches_complex(e) && !at_decomposes_complex(&at_rows[local])) return AOT_E_UNIMPLEMENTED;
  memory = em_scratch(e, e->info.n_results, sizeof *memory);
  if (memory == NULL || !em_ok(e, at_whose_memory(e->host, prog, &e->info, memory))) return e->status;
  status = at_rows[local].decompose(e, out_values);
  if (status == AOT_OK) keep_result_layouts(e, memory, out_values);
  return e->status != AOT_OK ? e->status : status;
}

/* Written tensors stay in their memory order: views that are made of the new values alias them as they did
 * before. */
static aot_status_t keep_layouts(em_t *e, aot_value_t *results, aot_value_t *written) {
  uint32_t i, k, r, n = 0;
  for (i = 0; i < e->desc->n_args && i < e->info.n_args; i++) {
    const aot_schema_arg_t *s = &e->desc->args[i];
    const aot_arg_t *a = &e->info.args[i];
    if (!(s->flags & AOT_SARG_WRITE) || (s->write_if && e->info.args[s->write_if - 1].u.i == 0)) continue;
    for (k = 0; k < (a->kind == AOT_ARG_VALUE ? 1 : a->kind == AOT_ARG_VALUES ? a->n : 0); k++) {
      aot_value_t old, laid;
      aot_type_t like;
      old.id = a->kind == AOT_ARG_VALUE ? (uint32_t)a->u.i : a->u.ids[k];
      if (old.id == AOT_NO_ID) continue;
      like = at_type(e, em_v(old));
      if (at_of(e)->row->form == AT_OUT && n < e->info.n_results) {
        const aot_type_t result = at_result_type(e, n);
        if (at_is_resized(&like, &result)) like = result;
      }
      laid = em_value(e, at_laid_out(e, em_v(written[n]), &like));
      for (r = 0; r < e->info.n_results; r++)
        if (results[r].id == written[n].id) results[r] = laid;
      written[n++] = laid;
      at_infer(e)->n_pool = 0;
    }
  }
  return e->status;
}

static aot_status_t AOT_CALL functional_form(const aot_opset_t *self, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local,
                                             aot_node_t node, aot_value_t *out_results, aot_value_t *out_written) {
  const opset_t *o = self->head.self;
  rewriter_t r;
  em_t *e;
  aot_status_t status;
  if (local >= AT_N_OPS) return AOT_E_RANGE;
  e = begin(&r, o, ctx, prog, local, node, node);
  if (e->status != AOT_OK) return e->status;
  if (at_rows[local].functional_by != NULL) {
    status = at_rows[local].functional_by(e, out_results, out_written);
  } else if (at_rows[local].functional != NULL) {
    status = at_functional_twin(e, out_results, out_written);
  } else {
    em_fail(e, AOT_E_UNIMPLEMENTED, "", "%s writes no argument: it has no functional form", at_rows[local].name);
    status = e->status;
  }
  if (status == AOT_OK && e->status == AOT_OK && !(o->descs[local].flags & AOT_OP_INPLACE_VIEW))
    status = keep_layouts(e, out_results, out_written);
  return e->status != AOT_OK ? e->status : status;
}

static aot_status_t AOT_CALL view_inverse(const aot_opset_t *self, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local,
                                          aot_node_t view, uint32_t index, aot_value_t base, aot_value_t updated,
                                          aot_node_t before, aot_value_t *out_base) {
  rewriter_t r;
  em_t *e;
  if (local >= AT_N_OPS) return AOT_E_RANGE;
  e = begin(&r, self->head.self, ctx, prog, local, view, before);
  if (e->status != AOT_OK) return e->status;
  if (at_rows[local].inverse == NULL)
    em_fail(e, AOT_E_UNIMPLEMENTED, "", "%s is not a view: it has no inverse", at_rows[local].name);
  else *out_base = at_rows[local].inverse(e, index, base, updated);
  if (e->status == AOT_OK) {
    aot_type_t like = at_type(e, em_v(base));
    *out_base = em_value(e, at_laid_out(e, em_v(*out_base), &like));
  }
  return e->status;
}

static aot_status_t AOT_CALL aliases(const aot_opset_t *self, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local,
                                     const aot_call_t *call, uint32_t *out_operands) {
  const opset_t *o = self->head.self;
  fixture_t w = {o, prog, NULL};
  at_env_t env = environment(&w);
  at_infer_t c;
  (void)ctx;
  if (local >= AT_N_OPS) return AOT_E_RANGE;
  if (at_rows[local].sharing == NULL || call->n_operands == 0) return AOT_OK;
  memset(&c, 0, offsetof(at_infer_t, pool));
  c.row = &at_rows[local];
  c.desc = &o->descs[local];
  c.args = call->args;
  c.n_args = call->n_args;
  c.env = &env;
  at_rows[local].sharing(&c, call, out_operands);
  return c.status;
}

static void AOT_CALL destroy(const aot_table_t *self) { (void)self; }

static const void *AOT_CALL get_ext(const aot_table_t *self, const char *id) {
  const opset_t *o = self->self;
  if (strcmp(id, AOT_EXT_COVERAGE) == 0) return &o->coverage;
  return strcmp(id, AOT_EXT_OPSET_INFO) == 0 ? &o->info : NULL;
}

/* ---- create: schemas ---- */

typedef struct session_memory {
  const aot_host_t *host;
  aot_ctx_t *ctx;
} session_memory_t;

static void *session_alloc(void *self, uint64_t align, uint64_t nbytes) {
  const session_memory_t *m = self;
  return m->host->alloc(m->host, m->ctx, AOT_ARENA_SESSION, (uint32_t)align, nbytes);
}

/* Flags that the schema shows: what is written, what is a view, which arguments are graphs. */
static uint32_t derived_flags(const sch_schema_t *s) {
  uint32_t flags = 0, i, k;
  for (i = 0; i < s->n_args; i++) {
    if (s->args[i].flags & AOT_SARG_WRITE) flags |= AOT_OP_WRITES;
    if (s->args[i].type == AOT_STYPE_GRAPH) flags |= AOT_OP_REGION;
    for (k = 0; k < s->n_results; k++) {
      if (s->args[i].alias_set == 0 || s->args[i].alias_set != s->results[k].alias_set) continue;
      if (s->args[i].flags & AOT_SARG_WRITE) continue;
      flags |= AOT_OP_VIEW;
      if (s->results[k].flags & AOT_SARG_LIST) flags |= AOT_OP_MULTI_VIEW;
    }
  }
  return flags;
}

static aot_status_t resolve_condition(const at_row_t *row, const sch_schema_t *s) {
  uint32_t i, at = s->n_args;
  if (row->write_if == NULL) return AOT_OK;
  for (i = 0; i < s->n_args; i++)
    if (aot_str_eq(s->args[i].name, aot_str(row->write_if))) at = i;
  if (at == s->n_args) return AOT_E_INTERNAL;
  for (i = 0; i < s->n_args; i++)
    if (s->args[i].flags & AOT_SARG_WRITE) s->args[i].write_if = (int32_t)at + 1;
  return AOT_OK;
}

static aot_status_t fill_desc(const opset_t *o, aot_ctx_t *ctx, const sch_memory_t *memory, const at_row_t *row,
                              aot_op_desc_t *out) {
  sch_schema_t s;
  sch_error_t error;
  aot_str_t text;
  aot_status_t status = at_row_schema(row, o->descs, memory, &s, &text, &error);
  if (status == AOT_OK) status = resolve_condition(row, &s);
  if (status != AOT_OK) {
    char message[320];
    snprintf(message, sizeof message, "schema of %s, byte %u: %s", row->name, error.at,
             error.message[0] ? error.message : "write_if names no argument");
    complain(o, ctx, "aten.bad-schema", message, "", aot_no_node());
    return status;
  }
  out->struct_size = sizeof *out;
  out->flags = at_row_flags(row) | derived_flags(&s);
  out->name = aot_str(row->name);
  out->schema = text;
  out->group = aot_str(row->group);
  out->doc = aot_str(row->doc);
  out->args = s.args;
  out->n_args = s.n_args;
  out->results = s.results;
  out->n_results = s.n_results;
  out->autocast[AOT_DEVICE_CPU] = at_autocast[row - at_rows].cpu;
  out->autocast[AOT_DEVICE_CUDA] = at_autocast[row - at_rows].cuda;
  return AOT_OK;
}

/* What the row knows beyond its descriptor. */
static aot_op_info_t row_info(const at_row_t *row) {
  aot_op_info_t info;
  memset(&info, 0, sizeof info);
  if (row->decompose != NULL) info.flags |= AOT_OP_INFO_DECOMPOSES;
  if (row->functional != NULL || row->functional_by != NULL) info.flags |= AOT_OP_INFO_FUNCTIONAL;
  if (row->inverse != NULL) info.flags |= AOT_OP_INFO_INVERSE;
  info.shape_rule = aot_str(row->shape_rule);
  if (row->functional != NULL) info.functional = aot_str(row->functional);
  else if (row->form == AT_OUT || row->form == AT_IN_PLACE) info.functional = aot_str(row->of->name);
  return info;
}

static aot_status_t AOT_CALL create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                                    const aot_table_t **out_table) {
  opset_t *o = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *o);
  aot_str_t *names;
  aot_op_info_t *infos;
  session_memory_t session;
  sch_memory_t memory = {&session, session_alloc};
  uint32_t i;
  (void)opts;
  if (o == NULL) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&o->host, sizeof o->host, host));
  o->compare = aot_ext(&o->host.head, AOT_EXT_COMPARE_DIMS);
  session.host = &o->host;
  session.ctx = ctx;
  o->descs = session_alloc(&session, sizeof(void *), AT_N_OPS * sizeof *o->descs);
  o->ops = session_alloc(&session, sizeof(void *), AT_N_OPS * sizeof *o->ops);
  names = session_alloc(&session, sizeof(void *), AT_N_OPS * sizeof *names);
  infos = session_alloc(&session, sizeof(void *), AT_N_OPS * sizeof *infos);
  if (o->descs == NULL || o->ops == NULL || names == NULL || infos == NULL) return AOT_E_EXHAUSTED;
  for (i = 0; i < AT_N_OPS; i++) {
    AOT_TRY(fill_desc(o, ctx, &memory, &at_rows[i], &o->descs[i]));
    o->ops[i] = &o->descs[i];
    names[i] = o->descs[i].name;
    infos[i] = row_info(&at_rows[i]);
  }
  o->info.struct_size = sizeof o->info;
  o->info.ops = infos;
  o->info.n_ops = AT_N_OPS;
  o->info.op_stride = sizeof *infos;
  o->coverage.struct_size = sizeof o->coverage;
  o->coverage.ops = names;
  o->coverage.n_ops = AT_N_OPS;
  o->table.head.struct_size = sizeof o->table;
  o->table.head.self = o;
  o->table.ops = o->ops;
  o->table.n_ops = AT_N_OPS;
  o->table.infer = infer;
  o->table.decompose = decompose;
  o->table.functional_form = functional_form;
  o->table.view_inverse = view_inverse;
  o->table.head.destroy = destroy;
  o->table.head.get_ext = get_ext;
  o->table.aliases = aliases;
  *out_table = &o->table.head;
  return AOT_OK;
}

/* ---- descriptor ---- */

AOT_PLUGIN_OPSET("aten", AOT_VERSION, "aothost", "Apache-2.0", HELP, CLAIMS, create);
