/* A program given as text, compiled for training by the plugins of this build: autograd, partition-default,
 * backend-ref. Used by the tests that compare gradients with numbers. */
#ifndef GRAD_HARNESS_H
#define GRAD_HARNESS_H

#include <config/pipeline.h>
#include <step/step.h>

typedef struct gh_prog {
  aoth_sink_t *sink;
  aoth_pipeline_t *pipeline;
  aoth_session_t *session;
  aoth_step_t *step;
  char folder[64];
  char why[4096]; /* what went wrong */
} gh_prog_t;

/* 1, or 0 with p->why set; gh_close either way. stages: unit ids separated by spaces; without a backend there is no
 * step. */
int gh_open(gh_prog_t *p, const char *ir, const char *stages);
void gh_close(gh_prog_t *p);
/* The program as text, after the stages. */
void gh_print(gh_prog_t *p, kit_text_t *out);

#endif
