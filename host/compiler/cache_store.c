#include <compiler/cache_store.h>

#include <aot/inline.h>
#include <jansson.h>
#include <compiler/backend_stage.h>
#include <compiler/compile.h>
#include <sandbox/call.h>
#include <config/pipeline.h>
#include <plugin/load.h>
#include <compiler/run_ranks.h>
#include <compiler/several_backends.h>
#include <compiler/session_lifetime.h>
#include <compiler/stage.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_DATA_NBYTES ((uint64_t)64 << 20) /* of contents that are copied into an entry */
#define DATA_ALIGNMENT 64u

#define FROM_NOTHING 0u
#define FROM_MODEL 1u
#define FROM_ENTRY 2u
typedef struct leaf_row {
  uint32_t from, reserved;
  uint64_t at, nbytes;
} leaf_row_t;

/* ---- packing ---- */

typedef struct packer {
  aoth_session_t *s;
  const aoth_model_t *model;
  kit_text_t about, program, nodes, leaves, data; /* bytes */
} packer_t;

static void add_node_ids(aot_prog_t *p, kit_text_t *out) {
  for (uint32_t g = 1; g < aoth_graph_n_graphs(p); g++)
    for (aot_node_t n = aoth_graph_first(p, (aot_graph_t){g}); n.id != AOT_NO_ID; n = aoth_graph_next(p, n))
      kit_text_add(out, (const char *)&n.id, sizeof n.id);
}

static void add_leaf(packer_t *k, const aot_leaf_info_t *l) {
  static const char zeros[DATA_ALIGNMENT] = {0};
  const uintptr_t file = (uintptr_t)k->model->file.data, at = (uintptr_t)l->data;
  leaf_row_t row = {FROM_NOTHING, 0, 0, l->nbytes};
  if (l->data && at >= file && at + l->nbytes <= file + k->model->file.nbytes) {
    row.from = FROM_MODEL;
    row.at = at - file;
  } else if (l->data) {
    kit_text_add(&k->data, zeros, (DATA_ALIGNMENT - k->data.size % DATA_ALIGNMENT) % DATA_ALIGNMENT);
    row.from = FROM_ENTRY;
    row.at = k->data.size;
    kit_text_add(&k->data, l->data, (size_t)l->nbytes);
  }
  kit_text_add(&k->leaves, (const char *)&row, sizeof row);
}

/* 0: more than an entry should copy. */
static int add_leaves(packer_t *k) {
  const uint32_t n = aoth_graph_n_leaves(k->s->now.prog);
  for (uint32_t i = 1; i < n && k->data.size <= MAX_DATA_NBYTES; i++) {
    aot_leaf_info_t l = {.struct_size = sizeof l};
    if (aoth_graph_leaf_info(k->s->now.prog, (aot_leaf_t){i}, &l) == AOT_OK) add_leaf(k, &l);
  }
  return k->data.size <= MAX_DATA_NBYTES;
}

static json_t *environment_json(const aoth_session_t *s) {
  json_t *env = json_object();
  for (uint32_t i = 0; i < s->n_env; i++)
    json_object_set_new(env, s->env[i].name, s->env[i].value ? json_string(s->env[i].value) : json_null());
  return env;
}

static void add_about(packer_t *k, const aoth_pipeline_t *p) {
  const aoth_cache_key_t *key = &k->s->cache->key;
  json_t *rows = json_object();
  for (uint32_t i = 0; i < key->n_rows; i++)
    json_object_set_new(rows, key->rows[i].label, json_string(key->rows[i].value));
  json_t *about = json_pack("{s:s?, s:s?, s:I, s:o, s:o, s:o}", "model", p->model_path, "pipeline", p->path, "made",
                            (json_int_t)time(NULL), "key", rows, "environment", environment_json(k->s), "stages",
                            aoth_records_json(k->s));
  if (about && aoth_session_n_ranks(k->s) > 1)
    json_object_set_new(about, "ranks",
                        json_pack("{s:I, s:I, s:I}", "draws", (json_int_t)k->s->ranks.n_draws, "program",
                                  (json_int_t)k->s->ranks.program, "parts", (json_int_t)k->s->ranks.n_parts));
  const aoth_share_t *of;
  const uint32_t n_shares = aoth_session_shares(k->s, &of);
  json_t *shares = aoth_shares_json(of, n_shares);
  if (about && shares) json_object_set(about, "backends", shares);
  json_decref(shares);
  char *text = about ? json_dumps(about, JSON_COMPACT) : NULL;
  json_decref(about);
  if (text) kit_text_z(&k->about, text);
  else k->about.failed = 1;
  void (*release)(void *);
  json_get_alloc_funcs(NULL, &release);
  if (text) release(text);
}

/* Does the text read back to a program that prints alike, node for node? It is what a hit will run by. */
static int reads_back(packer_t *k) {
  aoth_session_t *s = k->s;
  aot_ctx_t quiet = {.session = s->arena, .scratch = s->scratch};
  aot_prog_t *again = aoth_prog_create(s->ops, &quiet);
  kit_text_t text = {0};
  int same = again && aoth_parse(again, "cache", k->program.data, k->program.size) == AOT_OK;
  if (same) {
    aoth_print(again, &text);
    same = text.size == k->program.size && memcmp(text.data, k->program.data, text.size) == 0 &&
           aoth_count_nodes(again) * sizeof(uint32_t) == k->nodes.size;
  }
  kit_text_deinit(&text);
  if (again) aoth_prog_destroy(again);
  return same;
}

static int pack(packer_t *k, const aoth_pipeline_t *p) {
  if (k->s->cache_why_not) return AOTH_BYPASS_UNIT;
  if (!add_leaves(k)) return AOTH_BYPASS_SIZE;
  aoth_print(k->s->now.prog, &k->program);
  add_node_ids(k->s->now.prog, &k->nodes);
  if (k->program.failed || !reads_back(k)) return AOTH_BYPASS_TEXT;
  add_about(k, p);
  return k->about.failed || k->nodes.failed || k->leaves.failed || k->data.failed ? AOTH_BYPASS_WRITE
                                                                                  : AOTH_BYPASS_NONE;
}

int aoth_cache_store(aoth_session_t *s, const aoth_pipeline_t *p, const aoth_model_t *model) {
  packer_t k = {.s = s, .model = model};
  int reason = pack(&k, p);
  if (!reason) {
    const aoth_entry_part_t parts[AOTH_ENTRY_SECTIONS] = {
        {k.about.data, k.about.size},   {k.program.data, k.program.size}, {k.nodes.data, k.nodes.size},
        {k.leaves.data, k.leaves.size}, {k.data.data, k.data.size},       {s->now.artifact, s->now.artifact_nbytes}};
    if (aoth_entry_write(s->cache->path, parts, NULL) != AOT_OK) reason = AOTH_BYPASS_WRITE;
  }
  kit_text_deinit(&k.about);
  kit_text_deinit(&k.program);
  kit_text_deinit(&k.nodes);
  kit_text_deinit(&k.leaves);
  kit_text_deinit(&k.data);
  return reason;
}

/* ---- setting up ---- */

static const char *set_leaves(aot_prog_t *p, const aoth_model_t *model, const aoth_entry_t *e) {
  const aoth_entry_part_t *rows = &e->parts[AOTH_ENTRY_LEAVES], *data = &e->parts[AOTH_ENTRY_DATA];
  const uint32_t n = aoth_graph_n_leaves(p);
  if (rows->nbytes != (n - 1) * sizeof(leaf_row_t)) return "inconsistent: leaves";
  for (uint32_t i = 1; i < n; i++) {
    const leaf_row_t *r = (const leaf_row_t *)rows->data + i - 1;
    const aoth_entry_part_t from =
        r->from == FROM_MODEL ? (aoth_entry_part_t){model->file.data, model->file.nbytes} : *data;
    if (r->from == FROM_NOTHING) continue;
    if (r->at > from.nbytes || r->nbytes > from.nbytes - r->at) return "inconsistent: contents of leaves";
    aoth_prog_leaf_data(p, (aot_leaf_t){i}, (const char *)from.data + r->at, r->nbytes);
  }
  return NULL;
}

/* The artifact knows nodes by the ids that they had; messages about it have to find them here. */
static const char *map_nodes(aoth_session_t *s, const aoth_entry_t *e) {
  const uint32_t *old = e->parts[AOTH_ENTRY_NODES].data;
  const uint64_t n = e->parts[AOTH_ENTRY_NODES].nbytes / sizeof *old;
  uint32_t most = 0, i = 0;
  if (n != aoth_count_nodes(s->now.prog)) return "inconsistent: nodes";
  for (uint64_t k = 0; k < n; k++) most = old[k] > most ? old[k] : most;
  if (most > UINT32_MAX - 2u) return "inconsistent: nodes";
  uint32_t *map = kit_arena_alloc(s->arena, sizeof *map, (most + (size_t)1) * sizeof *map);
  if (!map) return "too large for this machine";
  for (uint32_t g = 1; g < aoth_graph_n_graphs(s->now.prog); g++)
    for (aot_node_t k = aoth_graph_first(s->now.prog, (aot_graph_t){g}); k.id != AOT_NO_ID;
         k = aoth_graph_next(s->now.prog, k))
      map[old[i++]] = k.id;
  aoth_prog_map_nodes(s->now.prog, map, most + 1);
  return NULL;
}

static const char *text_of(aoth_session_t *s, const json_t *row, const char *name) {
  const char *text = json_string_value(json_object_get(row, name));
  const char *copy = text ? kit_arena_text(s->arena, text, strlen(text)) : NULL;
  return copy ? copy : "";
}

static void restore_numbers(aoth_session_t *s, const json_t *row, aoth_record_t *out) {
  json_t *numbers = json_object_get(row, "numbers"), *value;
  const char *name;
  const size_t capacity = json_object_size(numbers) + s->report.n_numbers + 1;
  aoth_number_t *list = kit_arena_alloc(s->arena, sizeof(void *), capacity * sizeof *list);
  if (!list) return;
  json_object_foreach(numbers, name, value) {
    if (json_object_get(value, "text")) continue; /* of the machine where the entry was made */
    list[out->n_numbers].name = kit_arena_text(s->arena, name, strlen(name));
    list[out->n_numbers].unit = text_of(s, value, "unit");
    list[out->n_numbers].value = json_number_value(json_object_get(value, "value"));
    list[out->n_numbers].text = NULL;
    if (list[out->n_numbers].name) out->n_numbers++;
  }
  const int is_loaded = strcmp(out->unit, s->now.backend_stage.use) == 0;
  for (uint32_t i = 0; is_loaded && i < s->report.n_numbers; i++)
    if (s->report.numbers[i].text) list[out->n_numbers++] = s->report.numbers[i];
  out->numbers = list;
}

/* What each unit did when the entry was made, in no time now. */
static void restore_records(aoth_session_t *s, const json_t *about) {
  size_t i;
  json_t *row;
  json_array_foreach(json_object_get(about, "stages"), i, row) {
    aoth_record_t *rows = aoth_session_room(s, s->records, s->n_records, &s->record_capacity, sizeof *rows);
    if (!rows) return;
    s->records = rows;
    aoth_record_t r = {
        .unit = text_of(s, row, "unit"),
        .name = text_of(s, row, "name"),
        .plugin = text_of(s, row, "plugin"),
        .version = text_of(s, row, "version"),
        .number = (uint32_t)json_integer_value(json_object_get(row, "number")),
        .is_cached = 1,
        .nodes_before = (uint64_t)json_integer_value(json_object_get(row, "nodes_before")),
        .nodes_after = (uint64_t)json_integer_value(json_object_get(row, "nodes_after")),
        .edits = (uint64_t)json_integer_value(json_object_get(row, "edits")),
        .peak_bytes = (uint64_t)json_integer_value(json_object_get(row, "peak_bytes")),
    };
    restore_numbers(s, row, &r);
    rows[s->n_records++] = r;
  }
}

static void restore_ranks(aoth_session_t *s, const json_t *said) {
  s->ranks.n_draws = (uint64_t)json_integer_value(json_object_get(said, "draws"));
  s->ranks.n_parts = (uint32_t)json_integer_value(json_object_get(said, "parts"));
  s->ranks.program = (uint64_t)json_integer_value(json_object_get(said, "program"));
}

static const char *restore_program(aoth_session_t *s, const aoth_model_t *model, const aoth_entry_t *e) {
  aoth_sink_t *sink = s->ctx.sink;
  if (aoth_session_new_program(s, model) != AOT_OK) return "too large for this machine";
  s->ctx.stage = NULL;
  s->ctx.sink = NULL; /* what is wrong with a text that nothing wrote is of no use to anything */
  const aoth_entry_part_t *text = &e->parts[AOTH_ENTRY_PROGRAM];
  const aot_status_t status = aoth_parse(s->now.prog, "cache", text->data, (size_t)text->nbytes);
  s->ctx.sink = sink;
  if (status != AOT_OK) return "of operators that are no longer as they were";
  const char *wrong = set_leaves(s->now.prog, model, e);
  return wrong ? wrong : map_nodes(s, e);
}

static aot_status_t load_artifact(aoth_session_t *s, const aoth_pipeline_t *p, const aoth_entry_part_t *artifact) {
  uint32_t first = 0;
  while (!aoth_count_backends(p->stages + first, p->n_stages - first))
    first++; /* the key is of a pipeline with a backend */
  const uint32_t n = p->n_stages - first;
  if (n == 1) return aoth_session_load_artifact(s, &p->stages[first], artifact->data, artifact->nbytes);
  return aoth_session_load_several(s, &p->stages[first], n, artifact->data, artifact->nbytes);
}

const char *aoth_cache_restore(aoth_session_t *s, const aoth_pipeline_t *p, const aoth_model_t *model,
                               aoth_entry_t *entry, json_t *about) {
  aoth_map_t *maps = aoth_session_room(s, s->maps, s->n_maps, &s->map_capacity, sizeof *maps);
  if (!maps) return "too large for this machine";
  s->maps = maps;
  const char *wrong = restore_program(s, model, entry);
  if (!wrong && load_artifact(s, p, &entry->parts[AOTH_ENTRY_ARTIFACT]) != AOT_OK)
    wrong = "not accepted by the backend";
  if (wrong) return wrong;
  maps[s->n_maps++] = entry->map;
  restore_records(s, about);
  if (aoth_session_n_ranks(s) > 1) restore_ranks(s, json_object_get(about, "ranks"));
  aoth_shares_restore(s, json_object_get(about, "backends"));
  return NULL;
}
