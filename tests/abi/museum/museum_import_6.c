/* Museum, ABI 1.6: an importer. A file "MUSEUM6 number number .." is the model loss = sum((twice(w) * x - y)^2) whose
 * parameter w holds the numbers; one of its nodes is read by nobody. */
#include <aot/describe.h>
#include <aot/import.h>
#include <aot/inline.h>
#include <stdlib.h>

#define ID "museum.import-6"
#define HELP "reads a line of numbers"
#define MAX_NUMBERS 64u

typedef struct unit {
  aot_import_t table;
  aot_host_t host;
} unit_t;

typedef struct making {
  const unit_t *u;
  aot_prog_t *prog;
  aot_graph_t graph;
  aot_origin_t origin;
  aot_type_t vector;
} making_t;

static aot_status_t probe(const aot_import_t *i, aot_ctx_t *ctx, const aot_file_t *file, int32_t *out_score) {
  (void)i, (void)ctx;
  *out_score = file->nbytes > 8 && memcmp(file->data, "MUSEUM6 ", 8) == 0 ? 100 : 0;
  return AOT_OK;
}

static aot_status_t input(const making_t *m, int32_t role, uint32_t ordinal, const char *name, const float *data,
                          aot_value_t *out) {
  const aot_str_t names[] = {aot_str(name)};
  const aot_leaf_info_t leaf = {
      .struct_size = sizeof leaf,
      .role = role,
      .flags = role == AOT_ROLE_PARAMETER ? AOT_LEAF_REQUIRES_GRAD : 0,
      .ordinal = ordinal,
      .n_names = 1,
      .names = names,
      .type = m->vector,
      .data = data,
      .nbytes = data ? (uint64_t)m->vector.sizes[0] * sizeof *data : 0,
  };
  aot_leaf_info_t made = {.struct_size = sizeof made};
  aot_leaf_t id;
  AOT_TRY(m->u->host.edit->leaf_create(m->prog, &leaf, &id));
  AOT_TRY(m->u->host.graph->leaf_info(m->prog, id, &made));
  return m->u->host.edit->input_add(m->prog, m->graph, role, id.id, &made.type, names[0], out);
}

static aot_status_t node(const making_t *m, const char *op, aot_value_t a, aot_value_t b, aot_value_t *out) {
  const aot_arg_t args[] = {aot_arg_value(a), aot_arg_value(b)};
  const aot_node_spec_t spec = {
      .struct_size = sizeof spec,
      .op = m->u->host.graph->op_find(m->prog, aot_str(op)),
      .n_args = b.id == AOT_NO_ID ? 1 : 2,
      .args = args,
      .origin = m->origin,
  };
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_node_t made;
  AOT_TRY(m->u->host.edit->node_create(m->prog, m->graph, &spec, aot_no_node(), &made));
  AOT_TRY(m->u->host.graph->node_info(m->prog, made, &info));
  *out = info.first_result;
  return AOT_OK;
}

static aot_status_t read_file(const aot_import_t *i, aot_ctx_t *ctx, const aot_file_t *file, aot_prog_t *prog) {
  const unit_t *u = i->head.self;
  const aot_edit_api_t *edit = u->host.edit;
  const aot_value_t none = aot_no_value();
  const aot_origin_info_t origin = {
      .struct_size = sizeof origin, .line = 1, .source_file = file->path, .module_path = AOT_STR_INIT("line")};
  char text[1024];
  float *numbers = u->host.alloc(&u->host, ctx, AOT_ARENA_GRAPH, sizeof *numbers, MAX_NUMBERS * sizeof *numbers);
  int64_t n = 0;
  making_t m = {.u = u, .prog = prog};
  aot_value_t w, x, y, p, d, q, loss, unread;
  if (!numbers || file->nbytes >= sizeof text) return AOT_E_EXHAUSTED;
  memcpy(text, file->data, (size_t)file->nbytes);
  text[file->nbytes] = 0;
  for (char *at = text + 7, *end; n < MAX_NUMBERS; at = end, n++) {
    numbers[n] = strtof(at, &end);
    if (end == at) break;
  }
  m.vector = (aot_type_t){.kind = AOT_TYPE_TENSOR, .dtype = AOT_F32, .rank = 1, .sizes = &n};
  AOT_TRY(edit->origin_create(prog, &origin, &m.origin));
  AOT_TRY(edit->graph_create(prog, AOT_GRAPH_FORWARD, aot_str("forward"), &m.graph));
  AOT_TRY(input(&m, AOT_ROLE_PARAMETER, 0, "w", numbers, &w));
  AOT_TRY(input(&m, AOT_ROLE_USER_INPUT, 0, "x", NULL, &x));
  AOT_TRY(input(&m, AOT_ROLE_USER_INPUT, 1, "y", NULL, &y));
  AOT_TRY(node(&m, "museum6.twice.default", w, none, &p));
  AOT_TRY(node(&m, "aten.neg.default", p, none, &unread));
  AOT_TRY(node(&m, "aten.mul.Tensor", p, x, &q));
  AOT_TRY(node(&m, "aten.sub.Tensor", q, y, &d));
  AOT_TRY(node(&m, "aten.mul.Tensor", d, d, &q));
  AOT_TRY(node(&m, "aten.sum.default", q, none, &loss));
  AOT_TRY(edit->name_set(prog, loss, aot_str("loss")));
  return edit->output_add(prog, m.graph, AOT_ROLE_USER_OUTPUT, 0, loss, aot_str("loss"));
}

static void destroy(const aot_table_t *i) { free(i->self); }

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  unit_t *u = calloc(1, sizeof *u);
  (void)ctx, (void)opts;
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->table = (aot_import_t){
      .head = {.struct_size = sizeof u->table, .self = u, .destroy = destroy}, .probe = probe, .read = read_file};
  *out_table = &u->table.head;
  return AOT_OK;
}

AOT_PLUGIN_ONE("import/1", ID, "6.0", "museum", "Apache-2.0", HELP, create, .contract = NULL);
