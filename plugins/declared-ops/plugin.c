/* declared-ops: an opset that begins empty. The host hands it the texts of a pipeline's `operators:` section. */
#include "schema_op.h"

#include <aot/describe.h>
#include <aot/inline.h>
#include <string.h>

#define ID "declared-ops"
#define HELP "custom operators declared by schema in a pipeline; plugins provide the kernels"

typedef struct opset {
  aot_opset_t table;
  aot_host_t host;
  aot_ext_declare_t declare;
  aot_op_desc_t **ops; /* n_ops of them, in the order of declaration */
  uint32_t n_ops, capacity;
} opset_t;

/* ---- memory of the session ---- */

typedef struct session_memory {
  const aot_host_t *host;
  aot_ctx_t *ctx;
} session_memory_t;

static void *session_alloc(void *self, uint64_t align, uint64_t nbytes) {
  const session_memory_t *m = self;
  return m->host->alloc(m->host, m->ctx, AOT_ARENA_SESSION, (uint32_t)align, nbytes);
}

static int make_room(opset_t *o, const sch_memory_t *memory) {
  if (o->n_ops < o->capacity) return 1;
  const uint32_t capacity = o->capacity ? 2 * o->capacity : 16;
  aot_op_desc_t **ops = session_alloc(memory->self, sizeof(void *), capacity * sizeof *ops);
  if (!ops) return 0;
  if (o->n_ops) memcpy(ops, o->ops, o->n_ops * sizeof *ops);
  o->ops = ops;
  o->capacity = capacity;
  return 1;
}

/* ---- the unit's functions ---- */

static aot_status_t AOT_CALL declare(const aot_ext_declare_t *self, aot_ctx_t *ctx, aot_str_t schema,
                                     const aot_op_desc_t **out, uint32_t *out_local, aot_declare_error_t *out_error) {
  opset_t *o = self->head.self;
  session_memory_t session = {&o->host, ctx};
  const sch_memory_t memory = {&session, session_alloc};
  char *text = session_alloc(&session, 1, schema.size + 1);
  aot_op_desc_t *desc = session_alloc(&session, sizeof(void *), sizeof *desc);
  if (!text || !desc || !make_room(o, &memory)) return AOT_E_EXHAUSTED;
  memcpy(text, schema.data, (size_t)schema.size);
  AOT_TRY(dc_declare((aot_str_t){text, schema.size}, &memory, desc, out_error));
  *out = desc;
  *out_local = o->n_ops;
  o->ops[o->n_ops++] = desc;
  return AOT_OK;
}

static void AOT_CALL destroy(const aot_table_t *self) { (void)self; }

static const void *AOT_CALL get_ext(const aot_table_t *self, const char *id) {
  const opset_t *o = self->self;
  return strcmp(id, AOT_EXT_DECLARE) == 0 ? &o->declare : NULL;
}

static aot_status_t AOT_CALL create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                                    const aot_table_t **out_table) {
  opset_t *o = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *o);
  (void)opts;
  if (!o) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&o->host, sizeof o->host, host));
  o->table = (aot_opset_t){.head = {.struct_size = sizeof o->table, .self = o, .destroy = destroy, .get_ext = get_ext}};
  o->declare = (aot_ext_declare_t){.head = {.struct_size = sizeof o->declare, .self = o}, .declare = declare};
  *out_table = &o->table.head;
  return AOT_OK;
}

/* ---- descriptor ---- */

AOT_PLUGIN_OPSET(ID, AOT_VERSION, "aothost", "Apache-2.0", HELP, "", create);
