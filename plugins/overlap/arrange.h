/* When collectives begin and when they are waited for, on plain arrays.
 *
 * Nodes keep their order, and each takes its time. A job is a collective: what it reads is there from `ready` on, and
 * what it makes is read at `need`. Jobs run one after the other, next to the nodes.
 *
 *   - jobs whose operands are there early (gathers of parameters) begin as late as they may to be done in time, and not
 *   so
 *     early that more than `ahead` bytes lie about before they are read;
 *   - jobs whose results are not urgent (gradients, which the optimizer reads) begin when their operands are there;
 *   nodes
 *     that read them, where they may go later, do so when the job is likely to be done.
 *
 * Next to kernels, and where ranks come to it one after the other, a job takes longer than alone: `margin` times as
 * long, for both. A wait that comes too early stops the rank; one that comes late holds memory a little longer.
 *
 * In front of one node gathers begin first, then urgent waits end, then reductions begin,
 * then other waits end. Jobs near each other go together up to `bucket` bytes, as one; gathers only as far as there is
 * time in front of the first reader, so that a step begins with small ones. O(n log n). */
#ifndef OV_ARRANGE_H
#define OV_ARRANGE_H

#include "link_cost.h"

#define OV_NONE UINT32_MAX

typedef struct ov_job {
  int kind;               /* OV_GATHER .. */
  uint32_t group;         /* only jobs of one group go together; counted from 0 */
  uint32_t at;            /* the node that it is */
  uint32_t ready;         /* no earlier than in front of this node */
  uint32_t need;          /* the node that cannot do without it; the number of nodes: none */
  uint32_t wait;          /* the node that waits for it now */
  uint64_t nbytes;        /* of the whole tensor */
  uint32_t n_ranks, span; /* that take part, of so many that stand side by side */
  uint32_t in;            /* out: the bucket */
} ov_job_t;

typedef struct ov_bucket {
  uint32_t first, n; /* of jobs, in the order of `list` */
  uint32_t start;    /* out: it begins in front of this node .. */
  uint32_t wait;     /* a scatter or reduction: it is waited for in front of this one, if not earlier by its reader */
  int is_urgent;     /* out: it is waited for before reductions begin that are in front of the same node */
  uint32_t ready, need;
  uint64_t nbytes;
  double ns;
} ov_bucket_t;

typedef struct ov_problem {
  uint32_t n_nodes;
  const double *ns; /* by node; collectives and waits: 0 */
  /* of nodes that may go later, which only such nodes read: the nodes whose results they read, CSR; others: none */
  const uint32_t *operand_begin, *operands;
  ov_job_t *jobs; /* in the order of `at` */
  uint32_t n_jobs;
  uint64_t bucket, ahead; /* bytes */
  double margin;          /* at least 1 */
  ov_link_t link;
} ov_problem_t;

typedef struct ov_plan {
  ov_bucket_t *buckets; /* in the order in which they begin */
  uint32_t n_buckets;
  uint32_t *list;   /* jobs by bucket */
  uint32_t *behind; /* by node: the bucket after whose wait it goes, from 1; 0: it stays */
  double compute_ns, collective_ns, step_ns;
} ov_plan_t;

/* 0, or -2 without memory. Deinit in any case. */
int ov_arrange(const ov_problem_t *p, ov_plan_t *out);
void ov_plan_deinit(ov_plan_t *p);

#endif
