/* export_archive.c - a program as an archive: models/model.json, the weights and constants with their configs, the
 * bookkeeping. */
#include "export_program.h"
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- payloads: storages, written once however many tensors share them ---- */

typedef struct payloads {
  const char *folder, *prefix; /* "data/weights/", "weight_" */
  json_t *config;
  p2_names_t index; /* address and size of a storage -> its number */
  uint32_t n;
} payloads_t;

/* Bytes from the storage's begin to the last element. */
static uint64_t extent(const aot_type_t *t) {
  uint64_t last = (uint64_t)t->offset;
  for (int32_t i = 0; i < t->rank; i++) {
    if (t->sizes[i] == 0) return 0;
    last += (uint64_t)((t->sizes[i] - 1) * t->strides[i]);
  }
  return (last + 1) * aot_dtype_size(t->dtype);
}

/* *out_new: the storage has not been written yet. */
static aot_status_t number_of(p2_writer_t *w, payloads_t *p, const aot_leaf_info_t *l, uint32_t *out, int *out_new) {
  const uint64_t id[] = {(uint64_t)(uintptr_t)l->data, l->nbytes};
  char *key;
  *out_new = 1;
  *out = p->n;
  if (l->data && l->nbytes) {
    AOT_TRY(p2_alloc(w->env, P2_SCRATCH, 8, sizeof id, 1, (void **)&key));
    memcpy(key, id, sizeof id);
    const aot_status_t status = p2_names_add(w->env, &p->index, (aot_str_t){key, sizeof id}, p->n, out);
    *out_new = status == AOT_OK;
    if (status != AOT_OK && status != AOT_E_EXISTS) return status;
    if (*out_new) *out = p->n;
  }
  p->n += (uint32_t)*out_new;
  return AOT_OK;
}

static aot_status_t put_payload(p2_writer_t *w, p2_zip_writer_t *zip, payloads_t *p, const p2_leaf_out_t *l) {
  char path[64], member[128];
  uint32_t number;
  int is_new;
  aot_type_t t = l->info.type;
  const int is_parameter = l->info.role == AOT_ROLE_PARAMETER;
  t.flags = l->info.flags & AOT_LEAF_REQUIRES_GRAD ? AOT_TYPE_REQUIRES_GRAD : 0;
  for (int32_t i = 0; i < t.rank; i++)
    if (AOT_DIM_IS_SYM(t.sizes[i]) || AOT_DIM_IS_SYM(t.strides[i]) || AOT_DIM_IS_SYM(t.offset)) {
      p2_cannot(w, "export-pt2.weight", "'%.*s' has a symbolic size, so it can have no data", P2_SHOW(l->fqns[0]));
      return AOT_E_INVALID;
    }
  AOT_TRY(number_of(w, p, &l->info, &number, &is_new));
  snprintf(path, sizeof path, "%s%u", p->prefix, (unsigned)number);
  snprintf(member, sizeof member, "%s%s", p->folder, path);
  if (is_new) AOT_TRY(p2_zip_member(zip, member, l->info.data, l->info.data ? l->info.nbytes : extent(&t)));
  for (uint32_t i = 0; i < l->n_names; i++) {
    json_t *row = json_pack("{s:s, s:b, s:b, s:o}", "path_name", path, "is_param", is_parameter, "use_pickle", 0,
                            "tensor_meta", p2_tensor_meta(w, &t));
    if (json_object_setn_new(p->config, l->fqns[i].data, (size_t)l->fqns[i].size, row) != 0) return AOT_E_EXHAUSTED;
  }
  return AOT_OK;
}

static aot_status_t put_json(p2_zip_writer_t *zip, const char *member, const json_t *root) {
  char *text = json_dumps(root, JSON_ENSURE_ASCII);
  if (!text) return AOT_E_EXHAUSTED;
  const aot_status_t status = p2_zip_member(zip, member, text, strlen(text));
  free(text);
  return status;
}

static int is_constant(const aot_leaf_info_t *l) {
  return l->role == AOT_ROLE_CONSTANT || (l->role == AOT_ROLE_BUFFER && !(l->flags & AOT_LEAF_PERSISTENT));
}

static aot_status_t put_payloads(p2_writer_t *w, p2_zip_writer_t *zip, payloads_t *p, int constants,
                                 const char *config_member) {
  json_t *root = json_pack("{s:{}}", "config");
  aot_status_t status = root ? AOT_OK : AOT_E_EXHAUSTED;
  p->config = json_object_get(root, "config");
  for (uint32_t i = 0; status == AOT_OK && i < w->n_leaves; i++) {
    const aot_leaf_info_t *l = &w->leaves[i].info;
    if (l->role != AOT_ROLE_USER_INPUT && is_constant(l) == constants) status = put_payload(w, zip, p, &w->leaves[i]);
  }
  if (status == AOT_OK) status = put_json(zip, config_member, root);
  json_decref(root);
  return status;
}

/* ---- the program ---- */

static aot_status_t find_top(p2_writer_t *w) {
  const aot_graph_api_t *g = w->host->graph;
  w->top = g->graph_find(w->prog, AOT_GRAPH_JOINT);
  if (w->top.id == AOT_NO_ID) w->top = g->graph_find(w->prog, AOT_GRAPH_FORWARD);
  w->loss = w->tangent = aot_no_value();
  for (uint32_t i = 0; i < g->n_outputs(w->prog, w->top); i++)
    if (g->outputs(w->prog, w->top)[i].role == AOT_ROLE_LOSS) w->loss = g->outputs(w->prog, w->top)[i].value;
  for (uint32_t i = 0; i < g->n_inputs(w->prog, w->top); i++)
    if (g->inputs(w->prog, w->top)[i].role == AOT_ROLE_TANGENT) w->tangent = g->inputs(w->prog, w->top)[i].value;
  return AOT_OK;
}

static json_t *program_json(p2_writer_t *w) {
  if (p2_symbols_name(w) != AOT_OK || p2_regions_write(w) != AOT_OK) return NULL;
  json_t *module = p2_module_json(w);
  if (!module) return NULL;
  return json_pack("{s:o, s:{s:i}, s:o, s:{s:i, s:i}, s:[s], s:s, s:o}", "graph_module", module, "opset_version",
                   "aten", 10, "range_constraints", p2_ranges_json(w), "schema_version", "major", 8, "minor", 17,
                   "verifiers", "ATEN", "torch_version", "2.11.0", "guards_code", p2_guards_json(w));
}

static aot_status_t put_members(p2_writer_t *w, p2_zip_writer_t *zip) {
  payloads_t weights = {.folder = "data/weights/", .prefix = "weight_"};
  payloads_t constants = {.folder = "data/constants/", .prefix = "tensor_"};
  json_t *program = program_json(w);
  if (!program) return w->env->error.code ? AOT_E_INVALID : AOT_E_EXHAUSTED;
  aot_status_t status = p2_zip_member(zip, "archive_format", "pt2", 3);
  if (status == AOT_OK) status = p2_zip_member(zip, "archive_version", "0", 1);
  if (status == AOT_OK) status = put_json(zip, "models/model.json", program);
  json_decref(program);
  AOT_TRY(status);
  AOT_TRY(put_payloads(w, zip, &weights, 0, "data/weights/model_weights_config.json"));
  AOT_TRY(put_payloads(w, zip, &constants, 1, "data/constants/model_constants_config.json"));
  AOT_TRY(p2_zip_member(zip, "data/sample_inputs/model.pt", "", 0));
  AOT_TRY(p2_zip_member(zip, "byteorder", "little", 6));
  AOT_TRY(p2_zip_member(zip, ".data/version", "6\n", 2));
  return p2_zip_end(zip);
}

aot_status_t p2_export(p2_writer_t *w, aot_str_t name, const aot_bytes_sink_t *sink) {
  const uint32_t n_graphs = w->host->graph->n_graphs(w->prog);
  p2_zip_writer_t zip = {.env = w->env, .sink = sink, .root = name.size ? name : p2_str("archive")};
  w->node = aot_no_node();
  AOT_TRY(P2_NEW(w->env, P2_SCRATCH, w->host->graph->n_values(w->prog), &w->value_names));
  AOT_TRY(P2_NEW(w->env, P2_SCRATCH, n_graphs, &w->graphs));
  AOT_TRY(P2_NEW(w->env, P2_SCRATCH, n_graphs, &w->graph_names));
  AOT_TRY(find_top(w));
  const aot_status_t status = put_members(w, &zip);
  for (uint32_t i = 0; i < n_graphs; i++) json_decref(w->graphs[i]);
  return status;
}
