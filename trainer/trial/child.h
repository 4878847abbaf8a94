/* A process of one's own to try something in: whatever a plugin does there, the parent continues without it.
 *
 *     aoth_child_start    a fork that serves requests; it has all that its parent had, and what it changes is its own
 *     aoth_child_ask      one request, one answer as JSON; no answer says how the child was lost
 *     aoth_child_deinit   ends it */
#ifndef AOTH_CHILD_H
#define AOTH_CHILD_H

#include <aot/status.h>
#include "kit/base/text.h"

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct aoth_request {
  int32_t what;       /* the server's own numbers */
  int32_t is_patient; /* an interrupted parent waits for the answer all the same */
  int64_t number;
  char path[512];
} aoth_request_t;

#define AOTH_CHILD_FINE 0
#define AOTH_CHILD_FAILED 1  /* it said so itself */
#define AOTH_CHILD_CRASHED 2 /* a plugin call died, or the whole process */
#define AOTH_CHILD_HUNG 3    /* no answer in time: killed */

typedef struct aoth_child {
  pid_t pid;         /* 0: gone */
  int fd;            /* requests there, answers back; -1: none */
  int log_fd;        /* what it printed, errors and all; -1: none */
  int fate;          /* AOTH_CHILD_* */
  int input;         /* FAILED because of its input: usage, model, data (exit status 2, not 3) */
  const char *doing; /* when it was lost: as the request that it was lost in was called */
  char *why;         /* one line; free() it */
  int64_t log_at;    /* where in the log the request began that it answers */
} aoth_child_t;

#define AOTH_NO_CHILD ((aoth_child_t){.fd = -1, .log_fd = -1})

/* Serves requests until the other end closes; never returns. */
typedef void (*aoth_child_serve_t)(void *self, int fd);
/* Fills in the answer to one; else than AOT_OK it has said why, on standard error. */
typedef aot_status_t (*aoth_child_answer_t)(void *self, const aoth_request_t *request, json_t *answer);

/* A child that serves, its standard output and error in a file of its own. 0: it cannot be made (errno). */
int aoth_child_start(aoth_child_t *w, aoth_child_serve_t serve, void *self);
/* In the child: every request answered by `answer`. Never returns. */
void aoth_child_serve(int fd, aoth_child_answer_t answer, void *self);
/* An aoth_child_serve_t over a table of both. */
typedef struct aoth_served {
  aoth_child_answer_t answer;
  void *self;
} aoth_served_t;
void aoth_child_serve_table(void *served, int fd);
/* One request and its answer (a new reference); NULL: the child is lost, w says how. While it answers it runs, else it
 * is stopped: no child disturbs another. timeout_ms: from now. */
json_t *aoth_child_ask(aoth_child_t *w, const aoth_request_t *request, const char *doing, int64_t timeout_ms);
void aoth_child_end(aoth_child_t *w);                        /* ends the process, if it is there still */
void aoth_child_log(const aoth_child_t *w, kit_text_t *out); /* what it printed so far */
void aoth_child_deinit(aoth_child_t *w);
/* The first error of what was printed, without its place and code; "": none. */
void aoth_first_error(const char *printed, char *out, size_t size);

#endif
