/* What a worker (worker.h) sends, in the process that waits for it. It comes out of memory that a plugin may have
 * damaged, or from the plugin itself: every number has a bound, every text an end, and what does not fit makes all of
 * it broken. */
#ifndef AOTH_WORKER_RECEIVE_H
#define AOTH_WORKER_RECEIVE_H

#include <ir/edits_wire.h>
#include <sandbox/session.h>

/* What comes through the pipe of edits, in order: a head, and its bytes, a multiple of 8. */
enum { AOTH_FRAME_EDIT = 1, AOTH_FRAME_BEGUN, AOTH_FRAME_UNDONE, AOTH_FRAME_KEPT, AOTH_FRAME_CUT, AOTH_FRAME_RESULT };
typedef struct aoth_frame {
  uint32_t kind, reserved;
  uint64_t nbytes;
} aoth_frame_t;

/* Of a crash, through a pipe of its own in one write: also from a signal handler. */
typedef struct aoth_letter {
  uint32_t is_written, last_node;
  aoth_crash_t crash;
  char doing[128];
  char unit[64]; /* that was called; empty: the stage's own */
} aoth_crash_report_t;
_Static_assert(sizeof(aoth_crash_report_t) <= 4096, "POSIX promises no more at once");

/* 0: it is none. Its texts have an end, its numbers are within their bounds. */
int aoth_letter_check(aoth_crash_report_t *report_slot);

typedef struct aoth_received {
  aoth_session_t *s; /* with the stage's journal open */
  const aoth_stage_t *stage;
  aoth_known_t known;
  char *buffer; /* of frames; the last one may not be whole */
  uint64_t size, capacity;
  uint32_t n_open; /* journals inside of the stage's, which are the caller's to undo at the end */
  int has_result, is_broken;
  aot_status_t status; /* has_result */
} aoth_received_t;

/* Memory of both processes: model files, and what leaves hold already. In session memory; none where there is no
 * room. */
aoth_known_t aoth_known_by_both(aoth_session_t *s, aoth_type_numbers_t *types);
/* Room for more bytes, at the end of the buffer; NULL: none, and broken. */
char *aoth_received_room(aoth_received_t *r, size_t nbytes);
/* So many bytes have come to the end of the buffer: the frames that are whole are made here. */
void aoth_received_more(aoth_received_t *r, size_t nbytes);

#endif
