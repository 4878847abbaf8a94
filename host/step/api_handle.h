/* Inside of a handle, for the files api*.c. */
#ifndef AOTH_API_HANDLE_H
#define AOTH_API_HANDLE_H

#include <stdatomic.h>
#include <step/api.h>

struct aothost_call {
  aothost_t *h;
  uint32_t number;      /* the step's, step.h */
  kit_arena_t *results; /* geometry of tensors got; until the call runs again, or its handle is reset */
  aothost_call_t *next;
};

struct aothost {
  atomic_uint n_users; /* who has it open, and exported tensors that are in it */
  aoth_sink_t *sink;
  aoth_session_t *session;
  aoth_pipeline_t *pipeline;   /* NULL when borrowed */
  const aoth_pipeline_t *plan; /* the pipeline in use */
  aoth_step_t *step;
  aoth_save_call_t save_call; /* NULL: none */
  int owned;                  /* sink, session and pipeline are ours */
  void *model;                /* the caller's model at a better address; NULL: where he has it */
  aothost_message_t message;
  void *message_self;
  size_t told;                              /* bytes of the sink's text that were handed on */
  uint32_t counted[AOT_SEVERITY_ERROR + 1]; /* reports of at least each severity, then */
  uint32_t flags;                           /* of the compile */
  int contains;                             /* crashes, until it is closed */
  aothost_call_t first;                     /* of the functions that take no call */
  aothost_call_t *calls;                    /* those that were opened */
};

/* The last of the users takes the handle with it, on whichever thread. */
void aoth_api_hold(aothost_t *h);
void aoth_api_release(aothost_t *h);

/* Hand on what was said, and pass a status through; the same with an error of the caller's. */
aot_status_t aoth_api_tell(aothost_t *h, aot_status_t status);
aot_status_t aoth_api_refuse(aothost_t *h, aot_status_t status, const char *what);

/* api_call.c */
aot_status_t aoth_api_call_init(aothost_call_t *c, aothost_t *h);
void aoth_api_calls_free(aothost_t *h); /* while the step is there */

#endif
