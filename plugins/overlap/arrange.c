#include "arrange.h"

#include <stdlib.h>
#include <string.h>

/* ---- buckets ---- */

/* Is there time in front of the first reader for a gather of so much? At the beginning of a step there is none, and
 * what is read first is not to wait for what is read later. */
static int is_hidden(const ov_problem_t *p, const ov_bucket_t *b, const ov_job_t *j, const double *begins) {
  const double ns = ov_collective_ns(&p->link, j->kind, j->n_ranks, j->span, b->nbytes + j->nbytes);
  return p->margin * ns <= begins[b->need];
}

/* begins: by node, the time of those in front of it. */
static int takes(const ov_problem_t *p, const ov_bucket_t *b, const ov_job_t *j, const double *begins) {
  if (b->nbytes + j->nbytes > p->bucket) return 0;
  if (j->kind == OV_GATHER && !is_hidden(p, b, j, begins)) return 0;
  /* a gather begins before the first is read, and the others are begun when the last operand is there */
  return j->kind == OV_GATHER ? j->ready <= b->need : j->ready < b->need;
}

static void add(ov_bucket_t *b, const ov_job_t *j) {
  if (!b->n || j->ready > b->ready) b->ready = j->ready;
  if (!b->n || j->need < b->need) b->need = j->need;
  b->nbytes += j->nbytes;
  b->n++;
}

static uint32_t n_groups(const ov_problem_t *p) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->n_jobs; i++)
    if (p->jobs[i].group >= n) n = p->jobs[i].group + 1;
  return n;
}

/* Greedy, in the order of the program; of each kind and group one bucket is open at a time. opener: by both, the job
 * that has opened it, from 1. */
static void fill_buckets(const ov_problem_t *p, ov_plan_t *out, const double *begins, uint32_t *opener) {
  for (uint32_t i = 0; i < p->n_jobs; i++) {
    ov_job_t *j = &p->jobs[i];
    uint32_t *first = &opener[j->group * OV_N_KINDS + (uint32_t)j->kind];
    if (!*first || !takes(p, &out->buckets[p->jobs[*first - 1].in], j, begins)) {
      *first = i + 1;
      j->in = out->n_buckets++;
    }
    j->in = p->jobs[*first - 1].in;
    add(&out->buckets[j->in], j);
  }
}

static void list_jobs(const ov_problem_t *p, ov_plan_t *out) {
  uint32_t begin = 0;
  for (uint32_t b = 0; b < out->n_buckets; b++) {
    out->buckets[b].first = begin;
    begin += out->buckets[b].n;
    out->buckets[b].n = 0;
  }
  for (uint32_t i = 0; i < p->n_jobs; i++) {
    ov_bucket_t *b = &out->buckets[p->jobs[i].in];
    out->list[b->first + b->n++] = i;
  }
}

static int kind_of(const ov_problem_t *p, const ov_plan_t *out, const ov_bucket_t *b) {
  return p->jobs[out->list[b->first]].kind;
}

/* ---- when they begin ---- */

/* The last node that begins no later. begins: by node, rising. */
static uint32_t node_at(const double *begins, uint32_t n, double time) {
  uint32_t low = 0, high = n;
  while (low < high) {
    const uint32_t middle = low + (high - low + 1) / 2;
    if (begins[middle] <= time) low = middle;
    else high = middle - 1;
  }
  return low;
}

/* Late enough to be done in time if they take `margin` times as long, from the last deadline back. gathers: in the
 * order of need. */
static void choose_starts(const ov_problem_t *p, ov_plan_t *out, const uint32_t *gathers, uint32_t n,
                          const double *begins) {
  double free_from = begins[p->n_nodes];
  for (uint32_t i = n; i-- > 0;) {
    ov_bucket_t *b = &out->buckets[gathers[i]];
    const double end = begins[b->need] < free_from ? begins[b->need] : free_from;
    free_from = end - p->margin * b->ns;
    b->start = node_at(begins, p->n_nodes, free_from);
    if (b->start < b->ready) b->start = b->ready;
  }
}

/* And late enough that no more than `ahead` bytes were begun and not yet read. */
static void hold_back(const ov_problem_t *p, ov_plan_t *out, const uint32_t *gathers, uint32_t n) {
  uint64_t begun = 0;
  for (uint32_t i = 0, read = 0; i < n; i++) {
    ov_bucket_t *b = &out->buckets[gathers[i]];
    begun += b->nbytes;
    while (read < i && begun > p->ahead) {
      begun -= out->buckets[gathers[read]].nbytes;
      if (b->start < out->buckets[gathers[read]].need) b->start = out->buckets[gathers[read]].need;
      read++;
    }
    if (i && b->start < out->buckets[gathers[i - 1]].start) b->start = out->buckets[gathers[i - 1]].start;
    if (b->start > b->need) b->start = b->need;
  }
}

/* ---- a run of it ---- */

typedef struct run_state {
  const ov_problem_t *p;
  ov_plan_t *out;
  double now, link_free;
  double *done;                           /* by bucket */
  double *late_ns;                        /* by bucket: of the nodes that go after its wait */
  const uint32_t *order, *rank, *urgent;  /* buckets as they begin; the place of each there; the node that each must be
                                            waited for at */
  const uint32_t *job_at;                 /* by node: the job that it waits for */
  uint32_t next;                          /* of order: the next to begin */
  uint32_t *pending, n_pending, n_waited; /* reductions, in the order in which they began */
  uint32_t waited;                        /* the last of them that was waited for, by its place in order from 1 */
} run_state_t;

static void begin_bucket(run_state_t *r, uint32_t k) {
  const ov_bucket_t *b = &r->out->buckets[k];
  const double at = r->now > r->link_free ? r->now : r->link_free;
  r->done[k] = r->link_free = at + b->ns;
  if (kind_of(r->p, r->out, b) != OV_GATHER) r->pending[r->n_pending++] = k;
}

/* In front of a node gathers begin first; reductions after urgent waits, whose results they may read. */
static void begin_buckets(run_state_t *r, uint32_t node, int only_gathers) {
  for (; r->next < r->out->n_buckets; r->next++) {
    const ov_bucket_t *b = &r->out->buckets[r->order[r->next]];
    if (b->start > node || (b->start == node && only_gathers && kind_of(r->p, r->out, b) != OV_GATHER)) return;
    begin_bucket(r, r->order[r->next]);
  }
}

/* Also if it takes `margin` times as long. */
static int has_arrived(const run_state_t *r, uint32_t k) {
  return r->done[k] + (r->p->margin - 1) * r->out->buckets[k].ns <= r->now;
}

static void wait_for_next(run_state_t *r, uint32_t node, int is_urgent) {
  const uint32_t k = r->pending[r->n_waited++];
  if (r->now < r->done[k]) r->now = r->done[k];
  r->out->buckets[k].wait = node;
  r->out->buckets[k].is_urgent = is_urgent;
  r->waited = r->rank[k] + 1;
  r->now += r->late_ns[k];
}

/* The place from 1 of the last reduction that the node reads something of, if that was not waited for yet. */
static uint32_t reads_late(const run_state_t *r, uint32_t node) {
  uint32_t last = 0;
  for (uint32_t o = r->p->operand_begin[node]; o < r->p->operand_begin[node + 1]; o++) {
    const uint32_t from = r->p->operands[o], job = r->job_at[from];
    const int is_wait = job != OV_NONE && r->p->jobs[job].kind != OV_GATHER;
    const uint32_t place = is_wait ? r->rank[r->p->jobs[job].in] + 1 : r->out->behind[from];
    if (place > last) last = place;
  }
  return last > r->waited ? last : 0;
}

/* What comes in front of the node, and the node. */
static void run_node(run_state_t *r, uint32_t i) {
  const ov_problem_t *p = r->p;
  ov_plan_t *out = r->out;
  begin_buckets(r, i, 1);
  while (r->n_waited < r->n_pending && r->urgent[r->pending[r->n_waited]] <= i) wait_for_next(r, i, 1);
  begin_buckets(r, i, 0);
  while (r->n_waited < r->n_pending && (has_arrived(r, r->pending[r->n_waited]) || i == p->n_nodes))
    wait_for_next(r, i, 0);
  if (i == p->n_nodes) return;
  const ov_job_t *job = r->job_at[i] == OV_NONE ? NULL : &p->jobs[r->job_at[i]];
  if (job && job->kind == OV_GATHER && r->now < r->done[job->in]) r->now = r->done[job->in];
  out->behind[i] = reads_late(r, i);
  if (out->behind[i]) r->late_ns[r->order[out->behind[i] - 1]] += p->ns[i];
  else r->now += p->ns[i];
}

static int compare_starts(const void *a, const void *b) {
  const uint64_t *x = a, *y = b;
  return x[0] < y[0] ? -1 : x[0] > y[0] ? 1 : x[1] < y[1] ? -1 : x[1] > y[1];
}

/* By a key, then by the order of the program. */
static void sort_by(uint64_t (*keyed)[2], uint32_t n, uint32_t *order) {
  qsort(keyed, n, sizeof *keyed, compare_starts);
  for (uint32_t i = 0; i < n; i++) order[i] = (uint32_t)keyed[i][1];
}

/* One that follows another is waited for after it: an urgent one makes those before it urgent. */
static void spread_urgency(const ov_plan_t *out, const uint32_t *order, uint32_t *urgent) {
  uint32_t soonest = OV_NONE;
  for (uint32_t i = out->n_buckets; i-- > 0;) {
    urgent[order[i]] = out->buckets[order[i]].need < soonest ? out->buckets[order[i]].need : soonest;
    soonest = urgent[order[i]];
  }
}

typedef struct scratch {
  double *begins, *done, *late_ns;
  uint64_t (*keyed)[2];
  uint32_t *order, *rank, *gathers, *job_at, *pending, *urgent;
} scratch_t;

static void find_times(const ov_problem_t *p, ov_plan_t *out, scratch_t *s) {
  out->compute_ns = s->begins[p->n_nodes];
  for (uint32_t k = 0; k < out->n_buckets; k++) {
    ov_bucket_t *b = &out->buckets[k];
    const int kind = kind_of(p, out, b);
    const ov_job_t *first = &p->jobs[out->list[b->first]];
    b->ns = ov_collective_ns(&p->link, kind, first->n_ranks, first->span, b->nbytes);
    b->start = b->ready;
    b->wait = OV_NONE;
    out->collective_ns += b->ns;
    s->keyed[k][0] = kind == OV_GATHER ? b->need : b->ready;
    s->keyed[k][1] = k;
  }
  sort_by(s->keyed, out->n_buckets, s->order);
}

static void place(const ov_problem_t *p, ov_plan_t *out, scratch_t *s) {
  uint32_t n_gathers = 0;
  for (uint32_t i = 0; i < out->n_buckets; i++)
    if (kind_of(p, out, &out->buckets[s->order[i]]) == OV_GATHER) s->gathers[n_gathers++] = s->order[i];
  choose_starts(p, out, s->gathers, n_gathers, s->begins);
  hold_back(p, out, s->gathers, n_gathers);
  for (uint32_t k = 0; k < out->n_buckets; k++) {
    s->keyed[k][0] = 2 * (uint64_t)out->buckets[k].start + (kind_of(p, out, &out->buckets[k]) != OV_GATHER);
    s->keyed[k][1] = k;
  }
  sort_by(s->keyed, out->n_buckets, s->order);
  for (uint32_t i = 0; i < out->n_buckets; i++) s->rank[s->order[i]] = i;
  spread_urgency(out, s->order, s->urgent);
}

static void run_through(const ov_problem_t *p, ov_plan_t *out, scratch_t *s) {
  run_state_t r = {.p = p,
                   .out = out,
                   .done = s->done,
                   .late_ns = s->late_ns,
                   .order = s->order,
                   .rank = s->rank,
                   .urgent = s->urgent,
                   .job_at = s->job_at,
                   .pending = s->pending};
  for (uint32_t i = 0; i <= p->n_nodes; i++) s->job_at[i] = OV_NONE;
  for (uint32_t j = 0; j < p->n_jobs; j++) s->job_at[p->jobs[j].wait] = j;
  for (uint32_t i = 0; i <= p->n_nodes; i++) run_node(&r, i);
  out->step_ns = r.now;
}

/* In the order in which they begin. */
static void put_in_order(const ov_problem_t *p, ov_plan_t *out, const uint32_t *order, ov_bucket_t *spare) {
  for (uint32_t i = 0; i < out->n_buckets; i++) {
    spare[i] = out->buckets[order[i]];
    for (uint32_t j = 0; j < spare[i].n; j++) p->jobs[out->list[spare[i].first + j]].in = i;
  }
  memcpy(out->buckets, spare, out->n_buckets * sizeof *spare);
}

int ov_arrange(const ov_problem_t *p, ov_plan_t *out) {
  const size_t nodes = (size_t)p->n_nodes + 2, jobs = (size_t)p->n_jobs + 1;
  *out = (ov_plan_t){.buckets = calloc(jobs, sizeof *out->buckets),
                     .list = calloc(jobs, sizeof *out->list),
                     .behind = calloc(nodes, sizeof *out->behind)};
  double *times = calloc(nodes + 2 * jobs, sizeof *times);
  uint32_t *rows = calloc(nodes + 5 * jobs, sizeof *rows);
  uint32_t *opener = calloc(OV_N_KINDS * ((size_t)n_groups(p) + 1), sizeof *opener);
  uint64_t(*keyed)[2] = calloc(jobs, sizeof *keyed);
  ov_bucket_t *spare = calloc(jobs, sizeof *spare);
  const int is_whole = out->buckets && out->list && out->behind && times && rows && opener && keyed && spare;
  if (is_whole) {
    scratch_t s = {.begins = times,
                   .done = times + nodes,
                   .late_ns = times + nodes + jobs,
                   .keyed = keyed,
                   .job_at = rows,
                   .order = rows + nodes,
                   .gathers = rows + nodes + jobs,
                   .pending = rows + nodes + 2 * jobs,
                   .urgent = rows + nodes + 3 * jobs,
                   .rank = rows + nodes + 4 * jobs};
    for (uint32_t i = 0; i < p->n_nodes; i++) s.begins[i + 1] = s.begins[i] + p->ns[i];
    fill_buckets(p, out, s.begins, opener);
    list_jobs(p, out);
    find_times(p, out, &s);
    place(p, out, &s);
    run_through(p, out, &s);
    put_in_order(p, out, s.order, spare);
  }
  free(times);
  free(rows);
  free(opener);
  free(keyed);
  free(spare);
  return is_whole ? 0 : -2;
}

void ov_plan_deinit(ov_plan_t *p) {
  free(p->buckets);
  free(p->list);
  free(p->behind);
}
