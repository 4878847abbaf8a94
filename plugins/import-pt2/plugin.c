/* import-pt2: what torch.export.save writes becomes a program.
 *
 * The file that sees the ABI: the unit, its option, and the way from a recorded failure to a diagnostic. The rest reads
 * top to bottom in read_archive: directory -> layout -> JSON records and weights -> program. */
#define _GNU_SOURCE /* memmem */
#include "builder.h"
#include "export_program.h"
#include <aot/describe.h>
#include <aot/import.h>
#include <aot/ext/cache.h>
#include <aot/ext/export.h>
#include <aot/ext/model_operators.h>
#include <aot/inline.h>
#include <stdio.h>
#include <string.h>

#define ID "import-pt2"
#define HELP "importer for torch.export archives (.pt2)"

typedef struct import_pt2_unit {
  aot_import_t table;
  aot_host_t host;
  aot_ext_cache_t cache;
  aot_ext_export_t exporting;
  aot_ext_model_operators_t operators;
  aot_str_t model; /* option: which program of the archive */
} import_pt2_unit_t;

/* ---- environment ---- */

typedef struct owner {
  const aot_host_t *host;
  aot_ctx_t *ctx;
} owner_t;

static void *host_alloc(void *self, uint32_t arena, uint32_t align, uint64_t size) {
  owner_t *o = self;
  return o->host->alloc(o->host, o->ctx, arena == P2_KEEP ? AOT_ARENA_GRAPH : AOT_ARENA_SCRATCH, align, size);
}

static void env_init(p2_env_t *e, owner_t *o) {
  memset(e, 0, sizeof *e);
  e->self = o;
  e->alloc = host_alloc;
}

/* A failure of our own is reported here. One that the host or the opset has reported gets a note that says where we
 * were. */
static void tell(const owner_t *o, const p2_env_t *e, const p2_builder_t *b) {
  aot_str_t label = {NULL, 0};
  char text[600];
  aot_diag_t d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  d.severity = AOT_SEVERITY_ERROR;
  d.code = aot_str(e->error.code);
  d.message = aot_str(e->error.message);
  d.hint = aot_str(e->error.hint);
  d.byte = e->error.byte;
  d.node = aot_no_node();
  d.value = aot_no_value();
  if (!e->error.code) {
    if (e->error.told || !b->node) return;
    label = p2_node_label(b->node);
    snprintf(text, sizeof text, "while importing node '%.*s' (%.*s)", P2_SHOW(label), P2_SHOW(p2_op_name(b->node)));
    d.severity = AOT_SEVERITY_NOTE;
    d.code = aot_str("import-pt2.where");
    d.message = aot_str(text);
  } else if (e->error.told) {
    return;
  }
  o->host->diag(o->host, o->ctx, &d);
}

/* ---- the file ---- */

typedef struct archive {
  const import_pt2_unit_t *unit;
  owner_t owner;
  p2_env_t env; /* its self: owner; an archive stays where it is */
  aot_file_t file;
  p2_zip_t zip;
} archive_t;

static aot_status_t archive_init(archive_t *a, const import_pt2_unit_t *u, aot_ctx_t *ctx, const aot_file_t *given) {
  AOT_TRY(aot_import(&a->file, sizeof a->file, given));
  a->unit = u;
  a->owner = (owner_t){&u->host, ctx};
  env_init(&a->env, &a->owner);
  return AOT_OK;
}

static aot_status_t read_directory(archive_t *a) {
  return p2_zip_open(&a->env, "the model file", a->file.data, a->file.nbytes, 0, &a->zip);
}

/* ---- reading ---- */

static aot_status_t read_archive(archive_t *a, p2_doc_t *doc, p2_builder_t *b) {
  p2_env_t *e = &a->env;
  p2_program_t program;
  p2_weights_t weights;
  p2_layout_t layout;
  AOT_TRY(read_directory(a));
  AOT_TRY(p2_layout_find(e, &a->zip, a->unit->model, &layout));
  AOT_TRY(p2_json_open(e, layout.model, doc));
  AOT_TRY(p2_decode_program(e, doc, &program));
  AOT_TRY(p2_weights_load(e, &a->zip, &layout, &weights));
  b->program = &program;
  b->weights = &weights;
  return p2_build(b);
}

static aot_status_t AOT_CALL read_file(const aot_import_t *i, aot_ctx_t *ctx, const aot_file_t *given,
                                       aot_prog_t *prog) {
  archive_t a;
  p2_builder_t b;
  p2_doc_t doc;
  AOT_TRY(archive_init(&a, i->head.self, ctx, given));
  memset(&doc, 0, sizeof doc);
  memset(&b, 0, sizeof b);
  b.env = &a.env;
  b.host = &a.unit->host;
  b.ctx = ctx;
  b.prog = prog;
  const aot_status_t status = read_archive(&a, &doc, &b);
  if (status != AOT_OK) tell(&a.owner, &a.env, &b);
  p2_json_close(&doc);
  return status;
}

static aot_status_t AOT_CALL probe(const aot_import_t *i, aot_ctx_t *ctx, const aot_file_t *given, int32_t *out_score) {
  archive_t a;
  *out_score = 0;
  AOT_TRY(archive_init(&a, i->head.self, ctx, given));
  if (read_directory(&a) == AOT_OK) *out_score = p2_layout_score(&a.zip);
  if (p2_str_ends(a.file.path, ".pt2") && *out_score < 60) *out_score = 60; /* ours to explain what is wrong with it */
  return AOT_OK;
}

/* ---- operators of the model's own ---- */

#define OPERATORS_MEMBER "extra/operators.txt" /* torch.export.save(.., extra_files={"operators.txt": ..}) */

/* A schema a line. */
static aot_status_t AOT_CALL list_operators(const aot_ext_model_operators_t *x, aot_ctx_t *ctx, const aot_file_t *given,
                                            const aot_schema_sink_t *sink) {
  const uint8_t *bytes = NULL;
  archive_t a;
  AOT_TRY(archive_init(&a, x->head.self, ctx, given));
  if (read_directory(&a) != AOT_OK) return AOT_OK;
  p2_member_t *member = p2_zip_find(&a.zip, p2_str(OPERATORS_MEMBER));
  if (!member || p2_zip_content(&a.env, member, 1, &bytes) != AOT_OK) return AOT_OK;
  for (uint64_t at = 0, end; at < member->nbytes; at = end + 1) {
    for (end = at; end < member->nbytes && bytes[end] != '\n'; end++) continue;
    if (end > at) AOT_TRY(sink->put(sink, (aot_str_t){(const char *)bytes + at, end - at}));
  }
  return AOT_OK;
}

/* Every operator's name is in the JSON as "torch.ops.NAMESPACE.", be it a node's or an argument's; the others that
 * a file can have (_operator.add, torch.sym_max, ..) are of Python and PyTorch themselves. */
static aot_status_t AOT_CALL list_namespaces(const aot_ext_model_operators_t *x, aot_ctx_t *ctx,
                                             const aot_file_t *given, const aot_schema_sink_t *sink) {
  static const char prefix[] = "torch.ops.";
  const uint8_t *bytes = NULL;
  p2_layout_t layout;
  archive_t a;
  AOT_TRY(archive_init(&a, x->head.self, ctx, given));
  if (read_directory(&a) != AOT_OK || p2_layout_find(&a.env, &a.zip, a.unit->model, &layout) != AOT_OK) return AOT_OK;
  if (p2_zip_content(&a.env, layout.model, 1, &bytes) != AOT_OK) return AOT_OK;
  const char *at = (const char *)bytes, *end = at + layout.model->nbytes;
  while ((at = memmem(at, (size_t)(end - at), prefix, sizeof prefix - 1))) {
    const char *name = at += sizeof prefix - 1;
    while (at < end && *at != '.' && *at != '"') at++;
    if (at < end && *at == '.') AOT_TRY(sink->put(sink, (aot_str_t){name, (uint64_t)(at - name)}));
  }
  return AOT_OK;
}

/* ---- the compile cache ---- */

/* Two archives with equal directories (names, places, sizes and checksums of all members) hold the same program and the
 * same tensors: weights need not be read to know a model again. Without its checksums an archive says nothing of the
 * kind. */
static aot_status_t AOT_CALL model_key(const aot_ext_cache_t *x, aot_ctx_t *ctx, const aot_file_t *given,
                                       const aot_bytes_sink_t *sink) {
  archive_t a;
  AOT_TRY(archive_init(&a, x->head.self, ctx, given));
  if (read_directory(&a) != AOT_OK) return AOT_E_UNIMPLEMENTED;
  for (uint32_t m = 0; m < a.zip.n_members; m++) {
    const p2_member_t *member = &a.zip.members[m];
    if (member->crc == 0 && member->nbytes) return AOT_E_UNIMPLEMENTED;
    const uint64_t row[] = {member->name.size, member->at, member->packed, member->nbytes, member->crc, member->method};
    AOT_TRY(sink->write(sink, row, sizeof row));
    AOT_TRY(sink->write(sink, member->name.data, member->name.size));
  }
  return AOT_OK;
}

/* ---- writing ---- */

/* PyTorch has the operators of every namespace but the project's own; custom ones are the reader's to register. */
static int32_t AOT_CALL knows(const aot_ext_export_t *x, aot_str_t op) {
  (void)x;
  return !p2_str_starts(op, "aot.");
}

static aot_status_t AOT_CALL write_archive(const aot_ext_export_t *x, aot_ctx_t *ctx, aot_prog_t *prog, aot_str_t name,
                                           const aot_bytes_sink_t *sink) {
  const import_pt2_unit_t *u = x->head.self;
  owner_t o = {&u->host, ctx};
  p2_builder_t nothing_built;
  p2_writer_t w;
  p2_env_t e;
  env_init(&e, &o);
  memset(&nothing_built, 0, sizeof nothing_built);
  memset(&w, 0, sizeof w);
  w.env = &e;
  w.host = &u->host;
  w.prog = prog;
  const aot_status_t status = p2_export(&w, name, sink);
  if (status == AOT_E_EXHAUSTED && !e.error.code && !e.error.told)
    p2_fail(&e, "export-pt2.memory", "no memory for the archive");
  if (status != AOT_OK) tell(&o, &e, &nothing_built);
  return status;
}

static const void *AOT_CALL get_ext(const aot_table_t *i, const char *id) {
  const import_pt2_unit_t *u = i->self;
  if (strcmp(id, AOT_EXT_MODEL_OPERATORS) == 0) return &u->operators;
  if (strcmp(id, AOT_EXT_EXPORT) == 0) return &u->exporting;
  return strcmp(id, AOT_EXT_CACHE) == 0 ? &u->cache : NULL;
}

/* ---- the unit ---- */

static aot_status_t AOT_CALL create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host,
                                    const aot_opts_t *opts, const aot_table_t **out_table) {
  import_pt2_unit_t *u = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *u);
  (void)self;
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  if (opts && opts->n_values > 0) u->model = opts->values[0].s;
  u->cache = (aot_ext_cache_t){.head = {.struct_size = sizeof u->cache, .self = u}, .model_key = model_key};
  u->exporting = (aot_ext_export_t){
      .head = {.struct_size = sizeof u->exporting, .self = u},
      .suffix = aot_str(".pt2"),
      .knows = knows,
      .write = write_archive,
  };
  u->operators = (aot_ext_model_operators_t){
      .head = {.struct_size = sizeof u->operators, .self = u},
      .list = list_operators,
      .namespaces = list_namespaces,
  };
  u->table = (aot_import_t){
      .head = {.struct_size = sizeof u->table, .self = u, .get_ext = get_ext},
      .probe = probe,
      .read = read_file,
  };
  *out_table = &u->table.head;
  return AOT_OK;
}

/* clang-format off */
static const aot_option_t options[] = {
    {sizeof(aot_option_t), AOT_OPT_STRING, AOT_OPT_AFFECTS_OUTPUT, 0, AOT_STR_INIT("model"),
     AOT_STR_INIT("which program to read from an archive that holds several; empty: the only one, or 'model'"),
     AOT_STR_INIT(""), NULL, {0, 0, AOT_STR_INIT("")}, 0, 0}};
/* clang-format on */

static const aot_unit_t import_unit =
    AOT_UNIT("import/1", "pt2", AOT_VERSION, HELP, AOT_OPTIONS(options), .create = create);
static const aot_unit_t *const units[] = {&import_unit};

AOT_PLUGIN(ID, AOT_VERSION, "aothost", "Apache-2.0", units, AOT_NOTE_UNIT("import/1", "pt2", HELP));
