/* A step graph as arrays, and its collectives as jobs: what arrange.h needs, and where in the program it is. */
#ifndef OV_JOBS_OF_STEP_H
#define OV_JOBS_OF_STEP_H

#include "arrange.h"
#include "kit/emit/emit.h"
#include "overlap_options.h"

typedef struct ov_form { /* a collective that is waited for where it is, and the one that is begun */
  const char *op, *start;
  int kind; /* OV_GATHER, .. */
} ov_form_t;

enum { OV_MOST_GROUPS = 64 };

typedef struct ov_rewriting {
  em_t e;
  const ov_options_t *options;
  uint32_t n;                      /* nodes of the graph */
  aot_node_t *nodes;               /* in order */
  uint32_t *place;                 /* by node id */
  const ov_form_t **is_collective; /* by place */
  uint8_t *may_wait;               /* by place: it may go later */
  uint8_t *is_repeated;            /* by place: it is rebuilt where a collective that reads it begins */
  double *ns;                      /* by place */
  uint32_t *operand_begin, *operands;
  ov_job_t *jobs;
  uint32_t n_jobs;
  aot_node_t groups[OV_MOST_GROUPS]; /* of jobs that go together: one of each */
  int32_t group_dtype[OV_MOST_GROUPS];
  uint32_t n_groups;
} ov_rewriting_t;

/* Fills all but e and options from the graph of e, as it is. Arrays live as long as e. */
aot_status_t ov_find_jobs(ov_rewriting_t *r);

const aot_graph_api_t *ov_graph_of(const ov_rewriting_t *r);
/* Of the node at hand, if it is waited for where it is, or also if it is only begun. NULL: it is no such
 * collective. */
const ov_form_t *ov_form_of(const em_t *e, int may_be_begun);
uint32_t ov_maker(const ov_rewriting_t *r, uint32_t value); /* its place; OV_NONE: an input of the graph */
/* Do others than nodes read one of these values? */
int ov_is_output(ov_rewriting_t *r, aot_value_t first, uint32_t n_results);

#endif
