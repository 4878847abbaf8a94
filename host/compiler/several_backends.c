#include <compiler/several_backends.h>

#include <aot/inline.h>
#include <device/hetero/hetero_exe.h>
#include <jansson.h>
#include <compiler/backend_stage.h>
#include <sandbox/call.h>
#include <compiler/devices.h>
#include <compiler/stage.h>
#include <compiler/stage_check.h>
#include <base/clock.h>
#include <string.h>

/* What is stored of each backend as long as the program runs. */
struct aoth_several {
  aoth_session_t *s;
  uint32_t n;
  aoth_stage_t *stages;
  aoth_instance_t *units;
  aoth_loaded_t *loaded;
  aoth_part_backend_t *backends;
  aoth_share_t *shares;
  uint32_t at;            /* the one that is being loaded */
  const aot_exe_t *whole; /* the executable of all of it */
};

uint32_t aoth_count_backends(const aoth_stage_t *stages, uint32_t n_stages) {
  uint32_t n = 0;
  while (n < n_stages && stages[n].unit && strcmp(stages[n].unit->kind, "backend/2") == 0) n++;
  return n;
}

static aot_status_t several_create(aoth_session_t *s, const aoth_stage_t *stages, uint32_t n, aoth_several_t **out) {
  aoth_several_t *v = *out = kit_arena_alloc(s->arena, sizeof(void *), sizeof *v);
  if (!v) return aoth_lowering_no_memory(s, stages, "for several backends");
  *v = (aoth_several_t){
      .s = s,
      .n = n,
      .stages = kit_arena_alloc(s->arena, sizeof(void *), n * sizeof *v->stages),
      .units = kit_arena_alloc(s->arena, sizeof(void *), n * sizeof *v->units),
      .loaded = kit_arena_alloc(s->arena, sizeof(void *), n * sizeof *v->loaded),
      .backends = kit_arena_alloc(s->arena, sizeof(void *), n * sizeof *v->backends),
      .shares = kit_arena_alloc(s->arena, sizeof(void *), n * sizeof *v->shares),
  };
  if (!v->stages || !v->units || !v->loaded || !v->backends || !v->shares)
    return aoth_lowering_no_memory(s, stages, "for several backends");
  for (uint32_t b = 0; b < n; b++) {
    v->stages[b] = aoth_stage_kept(s, &stages[b]);
    v->shares[b].backend = v->backends[b].name = v->stages[b].name;
    v->backends[b].lane = v->stages[b].lane;
    const aoth_stage_t *device = v->stages[b].lane ? stages[b].device : NULL;
    v->shares[b].device = !device       ? NULL
                          : device->use ? kit_arena_text(s->arena, device->use, strlen(device->use))
                                        : "host";
  }
  for (uint32_t b = 0; b < n; b++) AOT_TRY(aoth_instance_create(s, &v->stages[b], &v->units[b]));
  return AOT_OK;
}

/* After the executable of the whole. */
static void several_destroy(aoth_several_t *v) {
  for (uint32_t b = 0; b < v->n; b++) {
    if (v->loaded[b].self) aoth_table_destroy(v->s, &v->stages[b], &v->loaded[b].self->head);
    aoth_instance_destroy(v->s, &v->stages[b], &v->units[b]);
    v->loaded[b].self = NULL;
  }
}

/* ---- who runs how much ---- */

static uint32_t find_share(const aoth_several_t *v, aot_str_t name) {
  uint32_t b = 0;
  while (b < v->n && !aot_str_eq(aot_str(v->shares[b].backend), name)) b++;
  return b;
}

static void count_shares(aoth_several_t *v) {
  aot_prog_t *p = v->s->now.prog;
  for (uint32_t g = 1; g < aoth_graph_n_graphs(p); g++)
    for (aot_node_t n = aoth_graph_first(p, (aot_graph_t){g}); n.id != AOT_NO_ID; n = aoth_graph_next(p, n)) {
      aot_node_info_t info = {.struct_size = sizeof info};
      aot_graph_t part;
      aot_str_t name, device;
      if (aoth_graph_node_info(p, n, &info) != AOT_OK || !aoth_is_part_call(p, &info, &part, &name, &device)) continue;
      const uint32_t b = find_share(v, name);
      if (b == v->n) continue;
      v->shares[b].n_parts++;
      for (aot_node_t k = aoth_graph_first(p, part); k.id != AOT_NO_ID; k = aoth_graph_next(p, k))
        v->shares[b].n_nodes++;
    }
}

uint32_t aoth_session_shares(const aoth_session_t *s, const aoth_share_t **out) {
  *out = s->now.several ? s->now.several->shares : NULL;
  return s->now.several ? s->now.several->n : 0;
}

json_t *aoth_shares_json(const aoth_share_t *shares, uint32_t n) {
  json_t *list = n ? json_array() : NULL;
  for (uint32_t b = 0; b < n; b++) {
    json_t *left = json_array();
    for (uint32_t k = 0; k < shares[b].n_refusals; k++)
      json_array_append_new(left, json_pack("{s:s, s:I, s:s}", "operator", shares[b].refusals[k].op, "nodes",
                                            (json_int_t)shares[b].refusals[k].n_nodes, "reason",
                                            shares[b].refusals[k].reason));
    json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:o, s:s?}", "backend", shares[b].backend, "nodes",
                                          (json_int_t)shares[b].n_nodes, "parts", (json_int_t)shares[b].n_parts, "left",
                                          left, "device", shares[b].device));
  }
  return list;
}

static const char *kept_text(aoth_session_t *s, const json_t *row, const char *name) {
  const char *text = json_string_value(json_object_get(row, name));
  const char *copy = kit_arena_text(s->arena, text ? text : "", text ? strlen(text) : 0);
  return copy ? copy : "";
}

/* The reasons; what runs where the program says. */
void aoth_shares_restore(aoth_session_t *s, const json_t *shares) {
  aoth_several_t *v = s->now.several;
  size_t i, k;
  json_t *row, *left;
  json_array_foreach(shares, i, row) {
    json_t *list = json_object_get(row, "left");
    if (!v || i >= v->n) return;
    aoth_refusal_t *refusals =
        kit_arena_alloc(s->arena, sizeof(void *), (json_array_size(list) + 1) * sizeof *refusals);
    if (!refusals) return;
    json_array_foreach(list, k, left) refusals[k] =
        (aoth_refusal_t){.op = kept_text(s, left, "operator"),
                         .reason = kept_text(s, left, "reason"),
                         .n_nodes = (uint32_t)json_integer_value(json_object_get(left, "nodes"))};
    v->shares[i].refusals = refusals;
    v->shares[i].n_refusals = (uint32_t)json_array_size(list);
  }
}

/* ---- the artifact: a header, then those of the backends ---- */

#define MAGIC 0x54524150u /* "PART" */
#define ARTIFACT_ALIGNMENT 64u

typedef struct header {
  uint32_t magic, n;
} header_t;

typedef struct range { /* n of them after the header; nbytes 0: the backend has no part */
  uint64_t at, nbytes;
} range_t;

static uint64_t head_nbytes(uint32_t n) { return sizeof(header_t) + n * sizeof(range_t); }

static aot_status_t put_zeros(aoth_session_t *s, uint64_t n) {
  static const char zeros[ARTIFACT_ALIGNMENT] = {0};
  for (uint64_t k; n; n -= k) {
    k = n < sizeof zeros ? n : sizeof zeros;
    AOT_TRY(aoth_artifact_add(s, zeros, k));
  }
  return AOT_OK;
}

/* ---- where leaves live ---- */

aoth_queue_t *aoth_session_leaf_home(aoth_session_t *s, const aot_prog_t *prog, uint32_t leaf) {
  const aoth_several_t *v = s->now.prog == prog ? s->now.several : NULL;
  for (uint32_t k = 0; k < s->n_programs && !v; k++)
    if (k != s->selected && s->programs[k].prog == prog) v = s->programs[k].several;
  const uint32_t lane = v ? aoth_parts_exe_home(v->whole, leaf) : 0;
  return lane ? s->lanes.lane[lane].queue : NULL;
}

int aoth_session_has_several(const aoth_session_t *s) { return s->now.several != NULL; }

void aoth_session_leaf_is(aoth_session_t *s, uint32_t leaf, uint64_t version) {
  if (s->now.several) aoth_parts_exe_leaf_is(s->now.several->whole, leaf, version);
}

/* ---- compiling ---- */

/* What is not the backend's goes, calls of parts first; it comes back when the journal is undone. */
static aot_status_t leave_parts_of(aoth_session_t *s, const char *backend) {
  aot_prog_t *p = s->now.prog;
  const uint32_t n_graphs = aoth_graph_n_graphs(p);
  uint8_t *is_kept = kit_arena_alloc(s->scratch, 1, n_graphs + 1u), is_done = 0;
  int32_t kind;
  aot_str_t name;
  if (!is_kept) return AOT_E_EXHAUSTED;
  for (uint32_t g = 1; g < n_graphs; g++)
    for (aot_node_t n = aoth_graph_first(p, (aot_graph_t){g}); n.id != AOT_NO_ID; n = aoth_graph_next(p, n)) {
      aot_node_info_t info = {.struct_size = sizeof info};
      aot_graph_t part;
      aot_str_t device;
      if (aoth_graph_node_info(p, n, &info) == AOT_OK && aoth_is_part_call(p, &info, &part, &name, &device))
        is_kept[part.id] = aot_str_eq(name, aot_str(backend));
    }
  for (int is_called = 1; is_called >= 0; is_called--)
    for (uint32_t g = 1; g < n_graphs; g++) {
      if (aoth_graph_graph_info(p, (aot_graph_t){g}, &kind, &name) != AOT_OK || kind == AOT_GRAPH_REGION) continue;
      if ((kind != AOT_GRAPH_PART) == is_called && !is_kept[g]) AOT_TRY(aoth_edit_graph_erase(p, (aot_graph_t){g}));
    }
  while (!is_done) { /* regions in regions: as often as they are deep */
    is_done = 1;
    for (uint32_t g = 1; g < n_graphs; g++) {
      if (aoth_graph_graph_info(p, (aot_graph_t){g}, &kind, &name) != AOT_OK || kind != AOT_GRAPH_REGION) continue;
      if (aoth_graph_is_named(p, (aot_graph_t){g})) continue;
      AOT_TRY(aoth_edit_graph_erase(p, (aot_graph_t){g}));
      is_done = 0;
    }
  }
  return AOT_OK;
}

/* After what is in the artifact. The journal is undone whatever happens, but where a failure has undone it already. */
static aot_status_t compile_parts(aoth_several_t *v, uint32_t b) {
  aoth_session_t *s = v->s;
  const aoth_properties_t properties = aoth_prog_properties(s->now.prog);
  const uint32_t before = s->has_journal;
  AOT_TRY(aoth_session_journal_begin(s));
  aoth_prog_set_properties(s->now.prog,
                           aoth_properties_known(properties.known & (AOTH_PROP_FUNCTIONAL | AOTH_PROP_RNG_EXPLICIT)));
  aot_status_t status = leave_parts_of(s, v->stages[b].name);
  if (status == AOT_OK) status = aoth_backend_compile(s, &v->stages[b], &v->units[b]);
  if (status != AOT_OK) status = aoth_session_fail(s, &v->stages[b]);
  if (s->has_journal > before) {
    aoth_journal_undo(s->now.prog);
    s->has_journal--;
  }
  aoth_prog_set_properties(s->now.prog, properties);
  return status;
}

static aot_status_t compile_all(aoth_several_t *v) {
  aoth_session_t *s = v->s;
  range_t *ranges = kit_arena_alloc(s->arena, sizeof(void *), v->n * sizeof *ranges);
  const header_t header = {MAGIC, v->n};
  s->now.artifact_nbytes = 0;
  if (!ranges) return aoth_lowering_no_memory(s, v->stages, "for several backends");
  AOT_TRY(put_zeros(s, head_nbytes(v->n)));
  for (uint32_t b = 0; b < v->n; b++) {
    const uint64_t begin_ns = aoth_now_ns(), n_nodes = aoth_count_nodes(s->now.prog);
    AOT_TRY(put_zeros(s, (ARTIFACT_ALIGNMENT - s->now.artifact_nbytes % ARTIFACT_ALIGNMENT) % ARTIFACT_ALIGNMENT));
    s->report = (aoth_report_t){.arena = s->arena};
    ranges[b].at = s->now.artifact_nbytes;
    if (v->shares[b].n_parts) AOT_TRY(compile_parts(v, b));
    ranges[b].nbytes = s->now.artifact_nbytes - ranges[b].at;
    aoth_report_number(&s->report, aot_str("artifact-bytes"), (double)ranges[b].nbytes, aot_str("bytes"));
    aoth_session_record(s, &v->stages[b], begin_ns, n_nodes, 0);
  }
  memcpy(s->now.artifact, &header, sizeof header);
  memcpy((char *)s->now.artifact + sizeof header, ranges, v->n * sizeof *ranges);
  return AOT_OK;
}

/* ---- loading ---- */

/* Code that is called is who a failure is informed of. */
static void entering(void *self, uint32_t backend) {
  const aoth_several_t *v = self;
  v->s->now.backend_stage = v->stages[backend];
  v->s->ctx.stage = v->stages[backend].name;
  v->s->ctx.where_file = v->stages[backend].where.file;
  v->s->ctx.where_line = v->stages[backend].where.line;
}

static aot_status_t load_all(aoth_several_t *v, const char *artifact, uint64_t nbytes) {
  aoth_session_t *s = v->s;
  header_t header = {0, 0};
  if (nbytes >= sizeof header) memcpy(&header, artifact, sizeof header);
  if (header.magic != MAGIC || header.n != v->n || nbytes < head_nbytes(v->n)) {
    aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, &v->stages[0].where, "lower.artifact",
                     "these %llu bytes are no artifact of %u backends", (unsigned long long)nbytes, v->n);
    return s->status = AOT_E_DATA_LOSS;
  }
  for (uint32_t b = 0; b < v->n; b++) {
    range_t r;
    v->at = b;
    memcpy(&r, artifact + sizeof header + b * sizeof r, sizeof r);
    if (!r.nbytes || r.at > nbytes || r.nbytes > nbytes - r.at)
      continue; /* what is missing is reported where it is called */
    AOT_TRY(aoth_backend_load(s, &v->stages[b], &v->units[b], artifact + r.at, r.nbytes,
                              aoth_session_lane_device(s, v->stages[b].lane), &v->loaded[b]));
    v->backends[b].exe = &v->loaded[b].exe;
    v->backends[b].self = v->loaded[b].self;
  }
  s->now.several = v;
  s->now.drop_several = several_destroy;
  s->now.backend_stage = v->stages[v->n - 1];
  s->now.backend = (aoth_instance_t){.unit = NULL};
  AOT_TRY(aoth_session_make_lanes(s));
  const aot_exe_t *whole = aoth_parts_exe_create(&s->ctx, s->now.prog, &s->lanes, v->backends, v->n, v, entering);
  if (!whole) return s->status = AOT_E_INVALID;
  v->whole = whole;
  const aoth_loaded_t loaded = {.self = whole, .exe = *whole};
  const aot_status_t status = aoth_session_take_executable(s, &loaded);
  if (status != AOT_OK) whole->head.destroy(&whole->head);
  return status;
}

/* ---- all of it ---- */

static aot_status_t lower(aoth_several_t *v, const aoth_stage_t *assign) {
  aoth_session_t *s = v->s;
  uint64_t edits;
  AOT_TRY(aoth_backends_make_acceptable(s, v->stages, v->units, v->n, v->shares, &edits));
  AOT_TRY(aoth_session_run_stage(s, assign));
  count_shares(v);
  AOT_TRY(compile_all(v));
  aoth_properties_t properties = aoth_prog_properties(s->now.prog);
  for (uint32_t b = 0; b < v->n; b++)
    if (!aoth_properties_after(v->stages[b].unit, s->arena, properties, &properties))
      return aoth_lowering_no_memory(s, v->stages, "for several backends");
  if (load_all(v, s->now.artifact, s->now.artifact_nbytes) != AOT_OK) return aoth_session_fail(s, &v->stages[v->at]);
  aoth_prog_set_properties(s->now.prog, properties);
  return AOT_OK;
}

aot_status_t aoth_session_lower_to_several(aoth_session_t *s, const aoth_stage_t *stages, uint32_t n,
                                           const aoth_stage_t *assign) {
  aoth_several_t *v = NULL;
  aoth_session_exe_drop(s);
  s->report = (aoth_report_t){.arena = s->arena};
  for (uint32_t b = 0; b < n; b++) AOT_TRY(aoth_contract_check(s, &stages[b], aoth_prog_properties(s->now.prog)));
  aot_status_t status = several_create(s, stages, n, &v);
  if (status == AOT_OK) status = lower(v, assign);
  if (status == AOT_OK || !v) return status;
  s->now.several = NULL;
  several_destroy(v);
  return status;
}

aot_status_t aoth_session_load_several(aoth_session_t *s, const aoth_stage_t *stages, uint32_t n, const void *artifact,
                                       uint64_t nbytes) {
  aoth_several_t *v = NULL;
  aoth_session_exe_drop(s);
  s->report = (aoth_report_t){.arena = s->arena};
  aot_status_t status = several_create(s, stages, n, &v);
  if (status == AOT_OK) status = load_all(v, artifact, nbytes);
  if (status == AOT_OK) {
    s->now.artifact = (void *)(uintptr_t)artifact;
    s->now.artifact_nbytes = nbytes;
    count_shares(v);
  } else if (v) {
    s->now.several = NULL;
    several_destroy(v);
  }
  return status;
}
