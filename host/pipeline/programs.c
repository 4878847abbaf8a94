/* Several compiled programs in one session: one for each way in which the inputs of calls share memory. The selected one's
 * parts stand in the session itself, where everybody looks for them; those of the others in their rows. */
#include <pipeline/session.h>

#include <string.h>

static void put_aside(aoth_session_t *s) {
  aoth_program_t *row = &s->programs[s->selected];
  row->prog = s->prog;
  row->node_map = s->ctx.node_map;
  row->n_node_map = s->ctx.n_node_map;
  row->backend_stage = s->backend_stage;
  row->backend = s->backend;
  row->artifact = s->artifact;
  row->artifact_nbytes = s->artifact_nbytes;
  row->artifact_capacity = s->artifact_capacity;
  row->exe_self = s->exe_self;
  row->exe = s->exe;
}

static void take_up(aoth_session_t *s, uint32_t program) {
  const aoth_program_t *row = &s->programs[program];
  s->selected = program;
  s->prog = s->ctx.prog = row->prog;
  s->ctx.graph = row->prog ? aoth_prog_arena(row->prog) : NULL;
  s->ctx.node_map = row->node_map;
  s->ctx.n_node_map = row->n_node_map;
  s->backend_stage = row->backend_stage;
  s->backend = row->backend;
  s->artifact = row->artifact;
  s->artifact_nbytes = row->artifact_nbytes;
  s->artifact_capacity = row->artifact_capacity;
  s->exe_self = row->exe_self;
  s->exe = row->exe;
}

void aoth_session_select(aoth_session_t *s, uint32_t program) {
  if (s->n_programs == 0 || program == s->selected) return;
  put_aside(s);
  take_up(s, program);
}

static aot_status_t add_row(aoth_session_t *s) {
  aoth_program_t *rows = aoth_session_room(s, s->programs, s->n_programs, &s->program_capacity, sizeof *rows);
  if (!rows) return AOT_E_EXHAUSTED;
  s->programs = rows;
  memset(&rows[s->n_programs++], 0, sizeof *rows);
  return AOT_OK;
}

aot_status_t aoth_session_add_program(aoth_session_t *s, uint32_t *out) {
  if (s->n_programs == 0) AOT_TRY(add_row(s)); /* the first one's */
  AOT_TRY(add_row(s));
  *out = s->n_programs - 1;
  aoth_session_select(s, *out);
  return AOT_OK;
}

static void drop(aoth_session_t *s) {
  aoth_session_exe_drop(s);
  if (s->prog) aoth_prog_destroy(s->prog);
  s->prog = s->ctx.prog = NULL;
  s->ctx.graph = NULL;
}

void aoth_session_drop_program(aoth_session_t *s) {
  drop(s);
  put_aside(s);
  s->n_programs--;
}

void aoth_session_drop_programs(aoth_session_t *s) {
  const uint32_t selected = s->selected;
  drop(s);
  for (uint32_t k = 0; k < s->n_programs; k++) {
    if (k == selected) continue;
    take_up(s, k);
    drop(s);
  }
}
