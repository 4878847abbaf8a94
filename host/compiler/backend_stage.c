/* The backend stage: ask about every node, have the opsets decompose what is refused, compile, load.
 *
 * A node that every backend refuses is replaced by its decomposition and they are queried again, until every node is
 * taken or no refused one has a decomposition left; then one error lists all of them with reasons and origins.
 * Decompositions are committed before compile, as the host's edits: the backend's contract is for its own. Each round
 * is linear in the program. Nodes that a backend takes but would rather have in parts are decomposed where that can be.
 *
 * Before that, effect tokens go: a node with a token is decomposed whatever the backend would say, then the token ports
 * have nothing between them. From there on the order of effects is the order of nodes. */
#include <compiler/backend_stage.h>
#include "kit/base/vector.h"
#include <compiler/backend_query.h>
#include <sandbox/call.h>
#include <compiler/decompose.h>
#include <compiler/devices.h>
#include <compiler/known_encodings.h>
#include <sandbox/replay_check.h>
#include <compiler/stage_check.h>

#include <aot/inline.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ROUNDS 64u
#define MAX_LISTED 50u

#define UNASKED 0
#define ACCEPTED 1
#define REFUSED 2
#define RATHER_PARTS 3

typedef struct lowering {
  aoth_session_t *s;
  const aoth_stage_t *stages; /* n_backends, in order of preference */
  const aoth_instance_t *backends;
  uint32_t n_backends, at;   /* at: the one that is being called */
  const aoth_stage_t *stage; /* the last, which takes what the others leave: complaints are about it */
  kit_arena_t *arena;        /* one round's verdicts */
  uint32_t n_nodes;          /* rows below, for each backend */
  unsigned char *verdicts;
  const char **reasons;
} lowering_t;

/* ---- query ---- */

static aot_status_t put_verdict(const aot_verdict_sink_t *sink, const aot_verdict_t *verdict) {
  lowering_t *l = sink->head.self;
  aot_verdict_t v;
  if (aot_import(&v, sizeof v, verdict) != AOT_OK) return AOT_E_TOO_NEW;
  if (v.node.id >= l->n_nodes) return AOT_E_RANGE;
  const size_t row = (size_t)l->at * l->n_nodes + v.node.id;
  l->verdicts[row] = v.accepted == 2 ? RATHER_PARTS : v.accepted ? ACCEPTED : REFUSED;
  const aot_str_t reason = v.reason.size ? v.reason : aot_str("none given by the backend");
  if (!v.accepted)
    l->reasons[row] = kit_arena_text(l->arena, reason.data, reason.size < 4096 ? (size_t)reason.size : 4096);
  return AOT_OK;
}

static aot_status_t do_query(void *arg) {
  lowering_t *l = arg;
  const aot_verdict_sink_t sink = {.head = {.struct_size = sizeof sink, .self = l}, .put = put_verdict};
  const aoth_instance_t *b = &l->backends[l->at];
  return aoth_backend_query(l->s, &l->stages[l->at], b, l->s->now.prog, &sink);
}

/* The best verdict of all backends. */
static int verdict_on(const lowering_t *l, uint32_t node) {
  int best = REFUSED;
  for (uint32_t b = 0; b < l->n_backends; b++) {
    const int verdict = l->verdicts[(size_t)b * l->n_nodes + node];
    if (verdict == ACCEPTED) return ACCEPTED;
    if (verdict == RATHER_PARTS) best = RATHER_PARTS;
  }
  return best;
}

/* Nodes with that verdict, in program order. NULL: no memory (n 1). */
static aot_node_t *nodes_with(lowering_t *l, int verdict, uint32_t *out_n) {
  uint32_t n = 0;
  aot_node_t *list = kit_arena_alloc(l->arena, sizeof(uint32_t), (l->n_nodes + 1) * sizeof *list);
  *out_n = 1;
  if (!list) return NULL;
  for (uint32_t g = 1; g < aoth_graph_n_graphs(l->s->now.prog); g++)
    for (aot_node_t k = aoth_graph_first(l->s->now.prog, (aot_graph_t){g}); k.id != AOT_NO_ID;
         k = aoth_graph_next(l->s->now.prog, k))
      if (verdict_on(l, k.id) == verdict) list[n++] = k;
  *out_n = n;
  return list;
}

aot_status_t aoth_lowering_no_memory(aoth_session_t *s, const aoth_stage_t *stage, const char *what) {
  s->outcome = AOTH_CALL_TOLD;
  return s->status = aoth_sink_no_memory(s->config.sink, &stage->where, "lower.memory", "%s", what);
}

static aot_status_t ask(lowering_t *l, aot_node_t **out_list, uint32_t *out_n) {
  kit_arena_reset(l->arena);
  l->n_nodes = aoth_graph_n_nodes(l->s->now.prog);
  const size_t n_rows = (size_t)l->n_backends * l->n_nodes + 1;
  l->verdicts = kit_arena_alloc(l->arena, 1, n_rows);
  l->reasons = kit_arena_alloc(l->arena, sizeof(void *), n_rows * sizeof *l->reasons);
  if (!l->verdicts || !l->reasons) return aoth_lowering_no_memory(l->s, l->stage, "for the verdicts on nodes");
  const uint64_t edits = aoth_journal_count(l->s->now.prog);
  for (l->at = 0; l->at < l->n_backends; l->at++) {
    AOT_TRY(aoth_call(l->s, &l->stages[l->at], "query", do_query, l));
    if (aoth_journal_count(l->s->now.prog) != edits)
      return aoth_contract_violation(l->s, &l->stages[l->at], "edited the program during a query");
  }
  *out_list = nodes_with(l, REFUSED, out_n);
  return *out_list ? AOT_OK : aoth_lowering_no_memory(l->s, l->stage, "for the verdicts on nodes");
}

/* ---- effect tokens ---- */

static int is_token(aot_prog_t *p, uint32_t value) {
  aot_type_t t;
  return value != AOT_NO_ID && aoth_graph_value_type(p, (aot_value_t){value}, &t) == AOT_OK && t.kind == AOT_TYPE_TOKEN;
}

static int has_token(aot_prog_t *p, const aot_node_info_t *n) {
  for (uint32_t i = 0; i < n->n_operands; i++)
    if (is_token(p, n->operands[i])) return 1;
  for (uint32_t i = 0; i < n->n_results; i++)
    if (is_token(p, n->first_result.id + i)) return 1;
  return 0;
}

static aot_status_t drop_token_outputs(aot_prog_t *p, aot_graph_t g, kit_arena_t *arena) {
  const uint32_t n = aoth_graph_n_outputs(p, g);
  uint32_t n_kept = 0;
  aot_port_t *kept = kit_arena_alloc(arena, 8, (n + 1) * sizeof *kept);
  if (!kept) return AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < n; i++)
    if (aoth_graph_outputs(p, g)[i].role != AOT_ROLE_TOKEN) kept[n_kept++] = aoth_graph_outputs(p, g)[i];
  if (n_kept == n) return AOT_OK;
  AOT_TRY(aoth_edit_outputs_clear(p, g));
  for (uint32_t i = 0; i < n_kept; i++)
    AOT_TRY(aoth_edit_output_add(p, g, kept[i].role, kept[i].index, kept[i].value, kept[i].name));
  return AOT_OK;
}

static aot_status_t drop_token_ports(aot_prog_t *p, aot_graph_t g, kit_arena_t *arena) {
  AOT_TRY(drop_token_outputs(p, g, arena));
  for (uint32_t i = aoth_graph_n_inputs(p, g); i-- > 0;)
    if (aoth_graph_inputs(p, g)[i].role == AOT_ROLE_TOKEN) AOT_TRY(aoth_edit_input_erase(p, g, i));
  return AOT_OK;
}

static aot_status_t take_tokens(lowering_t *l) {
  aot_prog_t *p = l->s->now.prog;
  for (uint32_t g = 1; g < aoth_graph_n_graphs(p); g++) {
    for (aot_node_t n = aoth_graph_first(p, (aot_graph_t){g}), next; n.id != AOT_NO_ID; n = next) {
      aot_node_info_t info = {.struct_size = sizeof info};
      int done = 1;
      next = aoth_graph_next(p, n);
      AOT_TRY(aoth_graph_node_info(p, n, &info));
      if (has_token(p, &info)) AOT_TRY(aoth_decompose_node(l->s, l->stage, l->arena, n, &done));
      if (done) continue;
      const aot_op_desc_t *op = aoth_graph_op_desc(p, info.op);
      return aoth_contract_violation(l->s, l->stage, "met %.*s, which takes a token that no operator set can take away",
                                     (int)op->name.size, op->name.data);
    }
    AOT_TRY(drop_token_ports(p, (aot_graph_t){g}, l->arena));
  }
  return AOT_OK;
}

/* ---- what is left is reported in one go ---- */

static void line_origin(aoth_session_t *s, aot_origin_t origin) {
  aot_origin_info_t o = {.struct_size = sizeof o};
  for (int depth = 0; depth < 8 && origin.id != AOT_NO_ID && aoth_graph_origin_info(s->now.prog, origin, &o) == AOT_OK;
       depth++) {
    if (o.module_path.size || o.source_file.size || o.node_name.size) {
      kit_text_t t = {0};
      if (o.source_file.size) kit_text_f(&t, "%.*s:%u", (int)o.source_file.size, o.source_file.data, o.line);
      if (o.module_path.size) kit_text_f(&t, "%s%.*s", t.size ? ", " : "", (int)o.module_path.size, o.module_path.data);
      if (o.node_name.size)
        kit_text_f(&t, "%snode %.*s of the model", t.size ? ", " : "", (int)o.node_name.size, o.node_name.data);
      aoth_sink_line(s->config.sink, "  from %s", t.data ? t.data : "");
      kit_text_deinit(&t);
      return;
    }
    origin = o.parent;
  }
}

static aot_status_t tell_refused(lowering_t *l, const aot_node_t *list, uint32_t n, const char *why) {
  aoth_session_t *s = l->s;
  aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, &l->stage->where, "lower.refused",
                   l->n_backends == 1 ? "backend %s does not support %u node%s, %s"
                                      : "backend %s and the backends before it do not support %u node%s, %s",
                   l->stage->use, n, n == 1 ? "" : "s", why);
  for (uint32_t i = 0; i < n && i < MAX_LISTED; i++) {
    aot_node_info_t info = {.struct_size = sizeof info};
    kit_text_t t = {0};
    aoth_print_node(s->now.prog, list[i], &t);
    const char *const *reasons = &l->reasons[(size_t)(l->n_backends - 1) * l->n_nodes];
    const char *reason = list[i].id < l->n_nodes && reasons[list[i].id] ? reasons[list[i].id] : "";
    aoth_sink_line(s->config.sink, "%.*s", (int)strcspn(t.data ? t.data : "", "\n"), t.data ? t.data : "");
    aoth_sink_line(s->config.sink, "  reason: %s", *reason ? reason : "the backend did not report one");
    if (aoth_graph_node_info(s->now.prog, list[i], &info) == AOT_OK) line_origin(s, info.origin);
    kit_text_deinit(&t);
  }
  if (n > MAX_LISTED) aoth_sink_line(s->config.sink, "and %u more", n - MAX_LISTED);
  s->outcome = AOTH_CALL_TOLD;
  return s->status = AOT_E_UNIMPLEMENTED;
}

/* Those that a backend would rather have in parts. */
static aot_status_t decompose_others(lowering_t *l, uint32_t *out_n_done) {
  uint32_t n;
  const aot_node_t *list = nodes_with(l, RATHER_PARTS, &n);
  *out_n_done = 0;
  if (!list) return aoth_lowering_no_memory(l->s, l->stage, "for the verdicts on nodes");
  for (uint32_t i = 0; i < n; i++) {
    int done = 0;
    AOT_TRY(aoth_try_decompose_node(l->s, l->stage, l->arena, list[i], &done));
    *out_n_done += (uint32_t)done;
  }
  return AOT_OK;
}

/* Rounds of query and decompose. On AOT_OK every node is accepted, and the backends know how every value is laid
 * out. */
static aot_status_t decompose_refused(lowering_t *l) {
  aot_node_t *list;
  uint32_t n;
  for (uint32_t round = 0; round < MAX_ROUNDS; round++) {
    for (uint32_t b = 0; b < l->n_backends; b++)
      AOT_TRY(aoth_stage_knows_encodings(l->s, &l->stages[b], &l->backends[b]));
    uint32_t n_parted = 0;
    AOT_TRY(ask(l, &list, &n));
    if (n == 0) AOT_TRY(decompose_others(l, &n_parted));
    if (n_parted) continue;
    if (n == 0) {
      if (round) aoth_report_number(&l->s->report, aot_str("decompose-rounds"), round, aot_str(""));
      return AOT_OK;
    }
    uint32_t n_stuck = 0;
    for (uint32_t i = 0; i < n; i++) {
      int done = 0;
      AOT_TRY(aoth_decompose_node(l->s, l->stage, l->arena, list[i], &done));
      if (!done) list[n_stuck++] = list[i];
    }
    if (n_stuck) return tell_refused(l, list, n_stuck, "and no opset decomposes them");
  }
  AOT_TRY(ask(l, &list, &n));
  return n ? tell_refused(l, list, n, "even after 64 rounds of decomposition") : AOT_OK;
}

/* ---- compile and load ---- */

aot_status_t aoth_artifact_add(aoth_session_t *s, const void *data, uint64_t nbytes) {
  if (nbytes > SIZE_MAX / 4 || s->now.artifact_nbytes > SIZE_MAX / 4) return AOT_E_EXHAUSTED;
  const uint64_t needed = s->now.artifact_nbytes + nbytes;
  void *artifact = kit_grow64(s->now.artifact, &s->now.artifact_capacity, needed, 1);
  if (needed && !artifact) return AOT_E_EXHAUSTED;
  s->now.artifact = artifact;
  if (nbytes) memcpy((char *)s->now.artifact + s->now.artifact_nbytes, data, (size_t)nbytes);
  s->now.artifact_nbytes = needed;
  return AOT_OK;
}

static aot_status_t put_bytes(const aot_bytes_sink_t *sink, const void *data, uint64_t nbytes) {
  return aoth_artifact_add(sink->head.self, data, nbytes);
}

typedef struct builder {
  aoth_session_t *s;
  const aoth_instance_t *backend;
  const void *bytes;
  uint64_t nbytes;
  const aot_device_t *device;
  aoth_loaded_t *out;
  const char *wrong;
} builder_t;

static aot_status_t do_compile(void *arg) {
  const builder_t *m = arg;
  const aot_bytes_sink_t sink = {.head = {.struct_size = sizeof sink, .self = m->s}, .write = put_bytes};
  return m->backend->table.backend.compile(m->backend->self, &m->s->ctx, m->s->now.prog, &sink);
}

aot_status_t aoth_backend_compile(aoth_session_t *s, const aoth_stage_t *stage, const aoth_instance_t *backend) {
  builder_t m = {.s = s, .backend = backend};
  AOT_TRY(aoth_session_journal_begin(s));
  AOT_TRY(aoth_call(s, stage, "compile", do_compile, &m));
  AOT_TRY(aoth_stage_check(s, stage));
  return aoth_stage_commit(s, stage);
}

static aot_status_t do_load(void *arg) {
  builder_t *m = arg;
  const aot_exe_t *self = NULL;
  aot_exe_t *exe = &m->out->exe;
  AOT_TRY(m->backend->table.backend.load(m->backend->self, &m->s->ctx, m->bytes, m->nbytes, m->device, &self));
  m->out->self = self;
  if (!self) m->wrong = "loaded its artifact to nothing";
  else if (self->head.struct_size < sizeof self->head || self->head.struct_size > 65536 ||
           aot_import(exe, sizeof *exe, self) != AOT_OK || !exe->plan || !exe->bind || !exe->submit || !exe->unbind)
    m->wrong = "made an executable that this host cannot use";
  if (m->wrong) m->out->self = NULL;
  return AOT_OK;
}

aot_status_t aoth_backend_load(aoth_session_t *s, const aoth_stage_t *stage, const aoth_instance_t *backend,
                               const void *bytes, uint64_t nbytes, const aot_device_t *device, aoth_loaded_t *out) {
  builder_t m = {.s = s, .backend = backend, .bytes = bytes, .nbytes = nbytes, .device = device, .out = out};
  *out = (aoth_loaded_t){0};
  AOT_TRY(aoth_call(s, stage, "load", do_load, &m));
  return m.wrong ? aoth_contract_violation(s, stage, "%s", m.wrong) : AOT_OK;
}

aot_status_t aoth_session_take_executable(aoth_session_t *s, const aoth_loaded_t *loaded) {
  AOT_TRY(aoth_session_make_queue(s));
  s->now.exe = loaded->exe;
  aoth_bound_calls_init(&s->now.calls, &s->queue, &s->now.exe, loaded->self);
  s->now.exe_self = loaded->self;
  return AOT_OK;
}

/* The executable is the session's, or destroyed. */
static aot_status_t take_loaded(aoth_session_t *s, const aoth_stage_t *stage, const aoth_loaded_t *loaded) {
  const aot_status_t status = aoth_session_take_executable(s, loaded);
  if (status != AOT_OK) aoth_table_destroy(s, stage, &loaded->self->head);
  return status;
}

static aot_status_t compile_and_load(aoth_session_t *s, const aoth_stage_t *stage, const aoth_instance_t *backend) {
  aoth_loaded_t loaded;
  s->now.artifact_nbytes = 0;
  AOT_TRY(aoth_backend_compile(s, stage, backend));
  AOT_TRY(aoth_backend_load(s, stage, backend, s->now.artifact, s->now.artifact_nbytes, s->device, &loaded));
  AOT_TRY(take_loaded(s, stage, &loaded));
  aoth_report_number(&s->report, aot_str("artifact-bytes"), (double)s->now.artifact_nbytes, aot_str("bytes"));
  return AOT_OK;
}

static aot_status_t make_acceptable(lowering_t *l, uint64_t *out_edits) {
  aoth_session_t *s = l->s;
  *out_edits = 0;
  if (!l->arena) return aoth_lowering_no_memory(l->s, l->stage, "for the verdicts on nodes");
  AOT_TRY(aoth_session_journal_begin(s));
  AOT_TRY(take_tokens(l));
  AOT_TRY(decompose_refused(l));
  *out_edits = aoth_journal_count(s->now.prog);
  AOT_TRY(aoth_stage_check_memory(s, l->stage));
  if (*out_edits && aoth_verify(s->now.prog, aoth_prog_properties(s->now.prog).known) != AOT_OK)
    return aoth_contract_violation(s, l->stage, "refused nodes whose decomposition breaks the program");
  AOT_TRY(aoth_stage_check_replay(s, l->stage));
  aoth_session_journal_commit(s);
  return AOT_OK;
}

/* By operator, in the order in which the nodes are. Texts live as long as the session. */
static void find_refusals(const lowering_t *l, uint32_t b, aoth_share_t *out) {
  aoth_session_t *s = l->s;
  aot_prog_t *p = s->now.prog;
  const uint32_t n_ops = aoth_graph_n_ops(p);
  uint32_t *row_of = kit_arena_alloc(l->arena, sizeof *row_of, ((size_t)n_ops + 1) * sizeof *row_of); /* row + 1 */
  aoth_refusal_t *rows = kit_arena_alloc(s->arena, sizeof(void *), ((size_t)n_ops + 1) * sizeof *rows);
  if (!row_of || !rows) return;
  out->refusals = rows;
  for (uint32_t g = 1; g < aoth_graph_n_graphs(p); g++)
    for (aot_node_t n = aoth_graph_first(p, (aot_graph_t){g}); n.id != AOT_NO_ID; n = aoth_graph_next(p, n)) {
      aot_node_info_t info = {.struct_size = sizeof info};
      const size_t at = (size_t)b * l->n_nodes + n.id;
      if (l->verdicts[at] == ACCEPTED || aoth_graph_node_info(p, n, &info) != AOT_OK) continue;
      if (!row_of[info.op.id]) {
        const aot_str_t op = aoth_graph_op_desc(p, info.op)->name;
        const char *reason = l->reasons[at] ? l->reasons[at] : "";
        rows[out->n_refusals].op = kit_arena_text(s->arena, op.data, (size_t)op.size);
        rows[out->n_refusals].reason = kit_arena_text(s->arena, reason, strlen(reason));
        row_of[info.op.id] = ++out->n_refusals;
      }
      rows[row_of[info.op.id] - 1].n_nodes++;
    }
}

aot_status_t aoth_backends_make_acceptable(aoth_session_t *s, const aoth_stage_t *stages,
                                           const aoth_instance_t *backends, uint32_t n, aoth_share_t *shares,
                                           uint64_t *out_edits) {
  lowering_t l = {.s = s,
                  .stages = stages,
                  .stage = &stages[n - 1],
                  .backends = backends,
                  .n_backends = n,
                  .arena = kit_arena_create()};
  const aot_status_t status = make_acceptable(&l, out_edits);
  for (uint32_t b = 0; b < n && status == AOT_OK; b++) find_refusals(&l, b, &shares[b]);
  kit_arena_destroy(l.arena);
  if (status == AOT_OK) return AOT_OK;
  return aoth_session_fail(s, l.at < n ? &stages[l.at] : l.stage); /* the one that was being asked */
}

aoth_stage_t aoth_stage_kept(aoth_session_t *s, const aoth_stage_t *stage) {
  aoth_stage_t kept = *stage;
  kept.at = kept.with = NULL;
  kept.use = stage->unit->id;
  kept.name = kit_arena_text(s->arena, stage->name, strlen(stage->name));
  if (stage->where.file) kept.where.file = kit_arena_text(s->arena, stage->where.file, strlen(stage->where.file));
  if (stage->where.source)
    kept.where.source = kit_arena_text(s->arena, stage->where.source, strlen(stage->where.source));
  return kept;
}

static void keep_backend(aoth_session_t *s, const aoth_stage_t *stage, const aoth_instance_t *backend) {
  s->now.backend = *backend;
  s->now.backend_stage = aoth_stage_kept(s, stage);
}

/* A failure leaves nothing over; it is reported by the caller. */
aot_status_t aoth_session_load_artifact(aoth_session_t *s, const aoth_stage_t *stage, const void *artifact,
                                        uint64_t nbytes) {
  aoth_instance_t backend;
  aoth_loaded_t loaded;
  aoth_session_exe_drop(s);
  s->report = (aoth_report_t){.arena = s->arena};
  AOT_TRY(aoth_instance_create(s, stage, &backend));
  aot_status_t status = aoth_backend_load(s, stage, &backend, artifact, nbytes, s->device, &loaded);
  if (status == AOT_OK) status = take_loaded(s, stage, &loaded);
  if (status != AOT_OK) {
    aoth_instance_destroy(s, stage, &backend);
    return status;
  }
  s->now.artifact = (void *)(uintptr_t)artifact;
  s->now.artifact_nbytes = nbytes;
  keep_backend(s, stage, &backend);
  return AOT_OK;
}

aot_status_t aoth_stage_lower(aoth_session_t *s, const aoth_stage_t *stage, aoth_instance_t *backend,
                              uint64_t *out_edits) {
  const aoth_properties_t properties = aoth_prog_properties(s->now.prog);
  lowering_t l = {
      .s = s, .stages = stage, .stage = stage, .backends = backend, .n_backends = 1, .arena = kit_arena_create()};
  aoth_session_exe_drop(s);
  aot_status_t status = make_acceptable(&l, out_edits);
  kit_arena_destroy(l.arena);
  if (status == AOT_OK) {
    status = compile_and_load(s, stage, backend);
    if (status != AOT_OK) aoth_prog_set_properties(s->now.prog, properties); /* compiled, perhaps, but not loaded */
  }
  if (status != AOT_OK) return aoth_session_fail(s, stage);
  keep_backend(s, stage, backend);
  return AOT_OK;
}

/* ---- the executable ---- */

static aot_status_t do_unbind(void *arg) {
  aoth_session_t *s = arg;
  return aoth_bound_calls_deinit(&s->now.calls);
}

void aoth_session_exe_drop(aoth_session_t *s) {
  if (s->now.exe_self) {
    s->queue.is_inside = 1; /* of the call that follows */
    aoth_call(s, &s->now.backend_stage, "unbind", do_unbind, s);
    s->queue.is_inside = 0;
    aoth_table_destroy(s, &s->now.backend_stage, &s->now.exe_self->head);
    aoth_instance_destroy(s, &s->now.backend_stage, &s->now.backend);
  }
  if (s->now.several) s->now.drop_several(s->now.several);
  s->now.several = NULL;
  s->now.exe_self = NULL;
  s->now.backend.unit = NULL;
  if (s->now.artifact_capacity) free(s->now.artifact);
  s->now.artifact = NULL;
  s->now.artifact_nbytes = s->now.artifact_capacity = 0;
}

const aot_exe_t *aoth_session_exe(aoth_session_t *s) { return s->now.exe_self ? &s->now.exe : NULL; }
uint64_t aoth_session_artifact_nbytes(aoth_session_t *s) { return s->now.artifact_nbytes; }

typedef struct run_state {
  aoth_session_t *s;
  const aot_binding_t *what;
  int64_t *symbols;
  const aot_output_sink_t *open;
  uint64_t *known;
} run_state_t;

/* The host has reported why it gives no memory; the backend, which passes that on, need not. */
static aot_status_t allocate(const aot_output_sink_t *sink, uint64_t output, const int64_t *symbols, uint64_t n_symbols,
                             aot_tensor_t *out) {
  const run_state_t *r = sink->head.self;
  const aot_status_t status = r->open->allocate(r->open, output, symbols, n_symbols, out);
  if (status != AOT_OK) r->s->ctx.n_diags++;
  return status;
}

static aot_status_t do_run(void *arg) {
  run_state_t *r = arg;
  const aot_output_sink_t open = {.head = {.struct_size = (uint32_t)sizeof open, .self = r}, .allocate = allocate};
  return aoth_bound_calls_run(&r->s->now.calls, r->what, r->symbols, r->open ? &open : NULL, r->known);
}

static int has_open_output(const aot_binding_t *what) {
  for (uint64_t i = 0; i < what->n_outputs; i++)
    if (what->outputs[i].rank == AOT_RANK_OPEN) return 1;
  return 0;
}

aot_status_t aoth_session_run_exe(aoth_session_t *s, const aot_binding_t *what, int64_t *symbols,
                                  const aot_output_sink_t *open, uint64_t *known) {
  run_state_t r = {s, what, symbols, open, known};
  if (!s->now.exe_self) {
    aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, NULL, "run.no-backend",
                     "nothing to run: the pipeline has no backend stage");
    return AOT_E_PRECONDITION;
  }
  if (open && !(s->now.exe.head.flags & AOT_EXE_OPEN_OUTPUTS) && has_open_output(what)) {
    aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, &s->now.backend_stage.where, "run.open",
                     "backend %s cannot return results whose size depends on the data", s->now.backend_stage.use);
    return AOT_E_UNIMPLEMENTED;
  }
  return aoth_queue_call(&s->queue, do_run, &r);
}

typedef struct query {
  aoth_session_t *s;
  aot_exe_stats_t *out;
} query_t;

static aot_status_t do_stats(void *arg) {
  const query_t *a = arg;
  if (a->s->now.exe.stats) return a->s->now.exe.stats(a->s->now.exe_self, a->out);
  return AOT_OK;
}

aot_status_t aoth_session_exe_stats(aoth_session_t *s, aot_exe_stats_t *out) {
  query_t a = {s, out};
  memset(out, 0, sizeof *out);
  out->struct_size = sizeof *out;
  if (!s->now.exe_self) return AOT_E_PRECONDITION;
  if (aoth_call(s, &s->now.backend_stage, "stats", do_stats, &a) == AOT_OK) return AOT_OK;
  return aoth_session_fail(s, &s->now.backend_stage);
}

/* ---- aot.profile/1 ---- */

typedef struct profile_call {
  aoth_session_t *s;
  aot_profile_t *out; /* NULL: start */
  int is_told;        /* the executable has the extension */
} profile_call_t;

static aot_status_t do_profile(void *arg) {
  profile_call_t *a = arg;
  aot_ext_profile_t x;
  const void *given = aot_ext(&a->s->now.exe.head, AOT_EXT_PROFILE);
  if (!given) return AOT_OK;
  a->is_told = 1;
  AOT_TRY(aot_import(&x, sizeof x, given));
  return a->out ? x.read(given, a->out) : x.start(given);
}

static aot_status_t profile(aoth_session_t *s, aot_profile_t *out) {
  profile_call_t a = {s, out, 0};
  if (!s->now.exe_self) return AOT_E_PRECONDITION;
  if (aoth_call(s, &s->now.backend_stage, "profile", do_profile, &a) != AOT_OK)
    return aoth_session_fail(s, &s->now.backend_stage);
  if (a.is_told) return AOT_OK;
  aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, &s->now.backend_stage.where, "run.profile",
                   "backend %s does not tell how long its steps take (%s)", s->now.backend_stage.use, AOT_EXT_PROFILE);
  return AOT_E_UNIMPLEMENTED;
}

aot_status_t aoth_session_profile_start(aoth_session_t *s) { return profile(s, NULL); }

aot_status_t aoth_session_profile(aoth_session_t *s, aot_profile_t *out) {
  *out = (aot_profile_t){.struct_size = sizeof *out};
  return profile(s, out);
}

/* ---- aot.check-nan/1 ---- */

typedef struct checker {
  aoth_session_t *s;
  int is_told; /* the executable has the extension */
} checker_t;

static aot_status_t do_check_nan(void *arg) {
  checker_t *a = arg;
  aot_ext_check_nan_t x;
  const void *given = aot_ext(&a->s->now.exe.head, AOT_EXT_CHECK_NAN);
  if (!given) return AOT_OK;
  a->is_told = 1;
  AOT_TRY(aot_import(&x, sizeof x, given));
  return x.start(given);
}

aot_status_t aoth_session_check_nan(aoth_session_t *s) {
  checker_t a = {s, 0};
  if (!s->now.exe_self) return AOT_E_PRECONDITION;
  if (aoth_call(s, &s->now.backend_stage, "check-nan", do_check_nan, &a) != AOT_OK)
    return aoth_session_fail(s, &s->now.backend_stage);
  if (a.is_told) return AOT_OK;
  aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, &s->now.backend_stage.where, "run.check-nan",
                   "backend %s cannot look for the first NaN (%s)", s->now.backend_stage.use, AOT_EXT_CHECK_NAN);
  return AOT_E_UNIMPLEMENTED;
}
