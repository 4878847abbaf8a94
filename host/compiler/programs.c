/* Several compiled programs in one session: one for each way in which the inputs of calls share memory. The selected
 * one is s->now, where everybody looks; the others are in their rows. */
#include <compiler/programs.h>
#include <compiler/backend_stage.h>
#include <sandbox/call.h>

#include <string.h>

static void take_up(aoth_session_t *s, uint32_t program) {
  s->selected = program;
  s->now = s->programs[program];
  s->ctx.prog = s->now.prog;
  s->ctx.graph = s->now.prog ? aoth_prog_arena(s->now.prog) : NULL;
}

void aoth_session_select(aoth_session_t *s, uint32_t program) {
  if (s->n_programs == 0 || program == s->selected) return;
  s->programs[s->selected] = s->now;
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
  if (s->now.prog) aoth_prog_destroy(s->now.prog);
  s->now.prog = s->ctx.prog = NULL;
  s->ctx.graph = NULL;
}

void aoth_session_drop_program(aoth_session_t *s) {
  drop(s);
  s->programs[s->selected] = s->now;
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
