#include <device/multi_queue.h>

#include <aot/assert.h>
#include <aot/inline.h>
#include <device/host_device.h>
#include <ir/program.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { JOB_WORK = 1, JOB_MARK, JOB_AWAIT, JOB_RAISE, JOB_GATE, JOB_END };

/* The status of what precedes a crossing, on its way to the other queue. The job that has it, and the work on that
 * queue, come in either order once the device is lost. */
typedef struct gate {
  aot_status_t status;
  atomic_int n_owners;
} gate_t;

struct aoth_lane_job {
  int kind;
  uint32_t lane;
  uint64_t value; /* of a timeline */
  gate_t *gate;
  aoth_lane_work_t work;
  void *self;
  uint32_t number;
};

/* ---- requests to a queue ---- */

static gate_t *make_gate(aot_status_t status, int n_owners) {
  gate_t *gate = malloc(sizeof *gate);
  if (!gate) return NULL;
  gate->status = status;
  atomic_init(&gate->n_owners, n_owners);
  return gate;
}

static void let_go(gate_t *gate) {
  if (gate && atomic_fetch_sub(&gate->n_owners, 1) == 1) free(gate);
}

static aot_status_t pass_gate(void *self, aot_status_t before) {
  gate_t *gate = self;
  const aot_status_t status = before != AOT_OK ? before : gate->status;
  let_go(gate);
  return status;
}

static aot_status_t put_gate(aoth_multi_queue_t *l, aoth_lane_t *lane, gate_t *gate) {
  AOT_ASSERT(lane->host_work && gate);
  return lane->host_work->enqueue(lane->host_work, l->ctx, lane->queue->queue, pass_gate, gate);
}

/* Signals `value`, then waits for it on the same queue, so that earlier failures propagate to later work. */
static aot_status_t put_mark(aoth_multi_queue_t *l, aoth_lane_t *lane, uint64_t value) {
  const aot_device_t *d = lane->queue->device;
  const aot_point_t point = {lane->out, value};
  AOT_TRY(d->signal(d, l->ctx, lane->queue->queue, point));
  return d->wait(d, l->ctx, lane->queue->queue, point);
}

static aot_status_t put_end(aoth_multi_queue_t *l, aoth_lane_t *lane, uint64_t value) {
  const aot_device_t *d = lane->queue->device;
  return d->signal(d, l->ctx, lane->queue->queue, (aot_point_t){lane->queue->timeline, value});
}

/* ---- what the host does when its turn comes ---- */

static void fail(aoth_multi_queue_t *l, aoth_lane_t *lane, aot_status_t status) {
  gate_t *gate = lane->host_work ? make_gate(status, 1) : NULL;
  l->n_failures++;
  if (!gate || put_gate(l, lane, gate) != AOT_OK) l->failed = status;
}

static void await(aoth_multi_queue_t *l, const aoth_lane_job_t *job) {
  const aoth_lane_t *lane = &l->lane[job->lane];
  const aot_device_t *d = lane->queue->device;
  const aot_status_t status = d->wait_host(d, l->ctx, (aot_point_t){lane->out, job->value}, lane->queue->patience_ns);
  if (status != AOT_OK) l->n_failures++;
  if (job->gate) job->gate->status = status;
  else if (status != AOT_OK) l->failed = status;
  let_go(job->gate);
}

static aot_status_t perform(aoth_multi_queue_t *l, const aoth_lane_job_t *job) {
  aoth_lane_t *lane = &l->lane[job->lane];
  const aot_device_t *d = lane->queue->device;
  switch (job->kind) {
    case JOB_WORK: return job->work(job->self, job->number);
    case JOB_MARK: return put_mark(l, lane, job->value);
    case JOB_AWAIT: await(l, job); return AOT_OK;
    case JOB_RAISE: return d->signal_host(d, l->ctx, (aot_point_t){lane->in, job->value});
    case JOB_GATE: return put_gate(l, lane, job->gate);
    default: return put_end(l, lane, job->value);
  }
}

/* In their order, all that there are: a failure is its lane's. */
static aot_status_t run_host_side(void *lanes) {
  aoth_multi_queue_t *l = lanes;
  while (l->n_jobs) {
    AOT_ASSERT(l->first < l->capacity && l->n_jobs <= l->capacity);
    const aoth_lane_job_t job = l->jobs[l->first];
    AOT_ASSERT(job.kind >= JOB_WORK && job.kind <= JOB_END && job.lane < l->n);
    l->first = (l->first + 1) % l->capacity;
    l->n_jobs--;
    const aot_status_t status = perform(l, &job);
    if (status != AOT_OK) fail(l, &l->lane[job.lane], status);
  }
  const aot_status_t failed = l->failed;
  l->failed = AOT_OK;
  return failed;
}

static int grow(aoth_multi_queue_t *l) {
  const uint32_t capacity = l->capacity ? 2 * l->capacity : 64;
  AOT_ASSERT(l->n_jobs == l->capacity);
  aoth_lane_job_t *jobs = malloc(capacity * sizeof *jobs);
  if (!jobs) return 0;
  for (uint32_t i = 0; i < l->n_jobs; i++) jobs[i] = l->jobs[(l->first + i) % l->capacity];
  free(l->jobs);
  l->jobs = jobs;
  l->first = 0;
  l->capacity = capacity;
  return 1;
}

static aot_status_t put_job(aoth_multi_queue_t *l, const aoth_lane_job_t *job) {
  if (l->lane[0].is_host) return perform(l, job);
  if (l->n_jobs == l->capacity && !grow(l))
    return aoth_report_error(l->ctx, AOT_E_EXHAUSTED, "run.memory", "no memory for the queues of several devices");
  l->jobs[(l->first + l->n_jobs++) % l->capacity] = *job;
  return AOT_OK;
}

/* ---- lanes ---- */

aot_status_t aoth_lanes_add(aoth_multi_queue_t *l, aot_ctx_t *ctx, aoth_queue_t *queue) {
  const aot_device_t *d = queue->device;
  l->ctx = ctx;
  if (l->n == AOTH_MAX_LANES)
    return aoth_report_error(ctx, AOT_E_UNIMPLEMENTED, "run.device", "a program runs on %u devices at most",
                             AOTH_MAX_LANES);
  aoth_lane_t *lane = &l->lane[l->n];
  *lane = (aoth_lane_t){.queue = queue, .is_host = d == aoth_host_device()};
  AOT_TRY(d->timeline_create(d, ctx, &lane->out));
  const aot_status_t status = d->timeline_create(d, ctx, &lane->in);
  if (status != AOT_OK) {
    d->timeline_destroy(d, ctx, lane->out);
    return status;
  }
  const aot_ext_host_work_t *host_work = aot_ext(&d->head, AOT_EXT_HOST_WORK);
  lane->host_work = host_work && host_work->enqueue ? host_work : NULL;
  queue->run_host_side = run_host_side;
  queue->lanes = l;
  queue->first = l->n ? l->lane[0].queue : NULL;
  queue->host_driven = l->n > 0 && lane->is_host;
  l->n++;
  return AOT_OK;
}

void aoth_lanes_deinit(aoth_multi_queue_t *l) {
  for (uint32_t i = 0; i < l->n; i++) {
    const aot_device_t *d = l->lane[i].queue->device;
    d->timeline_destroy(d, l->ctx, l->lane[i].out);
    d->timeline_destroy(d, l->ctx, l->lane[i].in);
    l->lane[i].queue->run_host_side = NULL;
  }
  free(l->jobs);
  *l = (aoth_multi_queue_t){0};
}

/* Whose work the host does in its turn. */
static int host_driven(const aoth_multi_queue_t *l, uint32_t lane) { return lane > 0 && l->lane[lane].is_host; }

aot_status_t aoth_lanes_put(aoth_multi_queue_t *l, uint32_t lane, aoth_lane_work_t work, void *self, uint32_t number) {
  AOT_ASSERT(lane < l->n);
  l->lane[lane].n_put++;
  if (!host_driven(l, lane)) return work(self, number);
  return put_job(l, &(aoth_lane_job_t){.kind = JOB_WORK, .lane = lane, .work = work, .self = self, .number = number});
}

void aoth_lanes_noted(aoth_multi_queue_t *l, uint32_t lane) { l->lane[lane].n_put++; }

static aot_status_t leave(aoth_multi_queue_t *l, uint32_t from) {
  aoth_lane_t *lane = &l->lane[from];
  lane->n_out++;
  if (!host_driven(l, from)) return put_mark(l, lane, lane->n_out);
  return put_job(l, &(aoth_lane_job_t){.kind = JOB_MARK, .lane = from, .value = lane->n_out});
}

aot_status_t aoth_lanes_await(aoth_multi_queue_t *l, uint32_t lane) {
  const aoth_lane_t *on = &l->lane[lane];
  const aot_device_t *d = on->queue->device;
  AOT_TRY(leave(l, lane));
  const aot_status_t before = run_host_side(l);
  const aot_status_t status = d->wait_host(d, l->ctx, (aot_point_t){on->out, on->n_out}, on->queue->patience_ns);
  return status != AOT_OK ? status : before;
}

static aot_status_t arrive(aoth_multi_queue_t *l, uint32_t to, gate_t *gate) {
  aoth_lane_t *lane = &l->lane[to];
  const aot_device_t *d = lane->queue->device;
  aot_status_t status = AOT_OK;
  if (!lane->is_host) {
    lane->n_in++;
    status = put_job(l, &(aoth_lane_job_t){.kind = JOB_RAISE, .lane = to, .value = lane->n_in});
    if (status == AOT_OK) status = d->wait(d, l->ctx, lane->queue->queue, (aot_point_t){lane->in, lane->n_in});
  }
  if (!gate || status != AOT_OK) {
    let_go(gate);
    return status;
  }
  if (!lane->is_host) return put_gate(l, lane, gate);
  return put_job(l, &(aoth_lane_job_t){.kind = JOB_GATE, .lane = to, .gate = gate});
}

aot_status_t aoth_lanes_cross(aoth_multi_queue_t *l, uint32_t from, uint32_t to) {
  aoth_lane_t *a = &l->lane[from], *b = &l->lane[to];
  gate_t *gate = NULL;
  AOT_ASSERT(from < l->n && to < l->n && b->seen[from] <= a->n_put);
  if (from == to || b->seen[from] == a->n_put) return AOT_OK;
  if (b->host_work && !(gate = make_gate(AOT_OK, 2)))
    return aoth_report_error(l->ctx, AOT_E_EXHAUSTED, "run.memory", "no memory for the queues of several devices");
  b->seen[from] = a->n_put;
  aot_status_t status = leave(l, from);
  if (status == AOT_OK)
    status = put_job(l, &(aoth_lane_job_t){.kind = JOB_AWAIT, .lane = from, .value = a->n_out, .gate = gate});
  if (status == AOT_OK) return arrive(l, to, gate);
  let_go(gate); /* both */
  let_go(gate);
  return status;
}

/* ---- a call ---- */

/* Where nothing of earlier calls is under way, what failed in them has been reported: it is none of this one. */
static aot_status_t begin(aoth_multi_queue_t *l, uint32_t lane) {
  const aoth_queue_t *first = l->lane[0].queue;
  aoth_queue_t *q = l->lane[lane].queue;
  if (first->done == first->height && !q->is_lost) aoth_queue_wait(q, q->height);
  aot_point_t point = {NULL, q->height + 1};
  if (!host_driven(l, lane)) AOT_TRY(aoth_queue_next(q, &point));
  l->lane[lane].height = point.value;
  return AOT_OK;
}

static int is_lost(const aoth_multi_queue_t *l, uint32_t lane) {
  const aoth_lane_t *on = &l->lane[lane];
  const aot_device_t *d = on->queue->device;
  return d->wait_host(d, l->ctx, (aot_point_t){on->out, 0}, 0) == AOT_E_DATA_LOSS;
}

static aot_status_t end(aoth_multi_queue_t *l, uint32_t lane, aot_status_t failed) {
  aoth_lane_t *to = &l->lane[lane];
  aoth_queue_passed(to->queue);
  to->queue->is_lost |= failed == AOT_E_DATA_LOSS && is_lost(l, lane);
  if (to->queue->is_lost) return AOT_OK;
  if (!host_driven(l, lane)) return put_end(l, to, to->height);
  return put_job(l, &(aoth_lane_job_t){.kind = JOB_END, .lane = lane, .value = to->height});
}

aot_status_t aoth_lanes_begin(aoth_multi_queue_t *l, uint32_t lanes) {
  aot_status_t status = AOT_OK;
  for (uint32_t i = 1; i < l->n; i++) l->lane[i].height = 0;
  for (uint32_t i = 1; i < l->n && status == AOT_OK; i++)
    if (lanes >> i & 1) status = begin(l, i);
  return status;
}

aot_status_t aoth_lanes_end(aoth_multi_queue_t *l, uint32_t lanes, aot_status_t failed) {
  aot_status_t status = failed == AOT_E_DATA_LOSS ? failed : AOT_OK; /* nothing waits for a lost device */
  for (uint32_t i = 1; i < l->n && status == AOT_OK; i++)
    if (lanes >> i & 1) status = aoth_lanes_cross(l, i, 0);
  aoth_lanes_noted(l, 0);
  for (uint32_t i = 1; i < l->n && status == AOT_OK; i++)
    if (lanes >> i & 1) status = aoth_lanes_cross(l, 0, i);
  for (uint32_t i = 1; i < l->n; i++) {
    const aot_status_t ended = l->lane[i].height && lanes >> i & 1 ? end(l, i, status) : AOT_OK;
    if (status == AOT_OK) status = ended;
  }
  return failed != AOT_OK ? failed : status;
}
