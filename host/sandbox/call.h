/* Calls into units: made, failed, undone. */
#ifndef AOTH_CALL_H
#define AOTH_CALL_H

#include <sandbox/session.h>

/* Room for one more row of a session array; the old rows stay after in the arena. NULL: no memory. */
void *aoth_session_room(aoth_session_t *s, void *rows, uint32_t n, uint32_t *capacity, size_t row_size);
typedef aot_status_t (*aoth_call_fn)(void *arg);
/* One call into a unit in a crash frame, with a fresh scratch arena. `doing`: "run", "compile", for messages. Trouble
 * is reported; s->outcome says how it ended. */
aot_status_t aoth_call(aoth_session_t *s, const aoth_stage_t *stage, const char *doing, aoth_call_fn fn, void *arg);
/* After a call that did not end well, or broke something (message given by the caller): undoes open journals, writes
 * the bundle if one was requested. Answers AOTH_E_PLUGIN, or the unit's own status where it reported what it does not
 * take. */
aot_status_t aoth_session_fail(aoth_session_t *s, const aoth_stage_t *stage);
/* 1: a unit that says why it cannot has not failed: the program, the data or the machine is not what it takes. */
int aoth_is_refusal(aot_status_t status);
aot_status_t aoth_contract_violation(aoth_session_t *s, const aoth_stage_t *stage, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* That it died of a signal, or ended the process (signal 0). Answers AOTH_E_PLUGIN. */
aot_status_t aoth_tell_crash(aoth_session_t *s, const aoth_stage_t *stage, const aoth_crash_t *crash,
                             const char *doing);
aot_status_t aoth_instance_create(aoth_session_t *s, const aoth_stage_t *stage, aoth_instance_t *out);
/* The same where no stage is at stake: a failure leaves no bundle, and journals as they are. */
aot_status_t aoth_instance_try(aoth_session_t *s, const aoth_stage_t *stage, aoth_instance_t *out);
void aoth_instance_destroy(aoth_session_t *s, const aoth_stage_t *stage, aoth_instance_t *instance);
void aoth_table_destroy(aoth_session_t *s, const aoth_stage_t *stage, const aot_table_t *table); /* of any kind */
aot_status_t aoth_session_journal_begin(aoth_session_t *s);
void aoth_session_journal_commit(aoth_session_t *s);
/* A stage that represents a unit the pipeline does not list: importer, opset. Options at their defaults. */
aot_status_t aoth_stage_of_unit(aoth_session_t *s, const char *id, const char *kinds, const aoth_where_t *where,
                                aoth_stage_t *out);

#endif
