/* A stage in a process of its own, so that whatever its unit does costs one clear error.
 *
 *     this process                          the worker, a fork of it
 *     journal begin
 *     fork ------------------------------>  fn: create, run, destroy, on its copy of program and session
 *     wait, no longer than `timeout`        is the process as it was? (process_state.h)
 *     make the edits again  <-------------  edits, taken out of the journal, as bytes; what it reported
 *     check and commit, as after any stage  the end
 *
 * A fork is a copy of everything a unit may ask for, opsets and backends included, with the same ids, in less than a
 * millisecond; of this process's threads it has the one that runs the stage. Signals, exit and ends without a word are
 * told here, where nothing is damaged. What a worker cannot keep a unit from: files that it may write, other processes
 * of the user. */
#ifndef AOTH_WORKER_H
#define AOTH_WORKER_H

#include <sandbox/session.h>

/* fn(arg) in a worker; the edits that it made to the session's program are made here, in the open journal. What it
 * reported about itself stands in s->report, a cut that it chose is shown. Trouble is told, and s->outcome says how it
 * ended. */
aot_status_t aoth_worker_run(aoth_session_t *s, const aoth_stage_t *stage, aot_status_t (*fn)(void *arg), void *arg);

#endif
