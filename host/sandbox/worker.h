/* A stage in a process of its own, so that whatever its unit does costs one clear error.
 *
 *     this process                          the worker, a fork of it
 *     journal begin
 *     fork ------------------------------>  fn: create, run, destroy, on its copy of program and session
 *     wait, no longer than `timeout`        is the process as it was? (process_state.h)
 *     make the edits again  <-------------  edits, removed of the journal, as bytes; what it reported
 *     check and commit, as after any stage  the end
 *
 * A fork is a copy of everything a unit may request, opsets and backends included, with the same ids, in less than a
 * millisecond; of this process's threads it has the one that runs the stage. The parent reports signals, exit() and
 * silent termination. A worker does not protect files that the user may write, or other processes of the user. */
#ifndef AOTH_WORKER_H
#define AOTH_WORKER_H

#include <sandbox/session.h>

/* fn(arg) in a worker; the edits that it made to the session's program are made here, in the open journal. fn makes
 * the checks that need the worker's own state, such as edits that found no memory. What it
 * reported about itself is in s->report; a partition that it chose is printed. Failures are reported, and s->outcome is
 * set. */
aot_status_t aoth_worker_run(aoth_session_t *s, const aoth_stage_t *stage, aot_status_t (*fn)(void *arg), void *arg);

#endif
