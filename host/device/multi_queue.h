/* Queues of several devices that work on one call: the session's own (lane 0), and one for each device next to it.
 *
 *     aoth_lanes_cross(l, a, b)      what comes on b follows what is on a
 *
 * Devices know nothing of each other, so the host hands points on: a's queue raises a timeline, the host waits for that
 * and raises one of b, for which b's queue waits. It does so when it waits itself (aoth_queue_t.run_host_side), in the
 * order in which it was put; code that puts work on a lane continues at once.
 *
 *     queue a    .. work  signal(out, 7)
 *     host                               wait(a.out, 7)  raise(b.in, 3)
 *     queue b                                                            wait(in, 3)  gate  work ..
 *
 * A lane on the host's own device has its turn there as well: the host is who does that work. If lane 0 is on the host,
 * everything is done as it is put. The gate hands on that a has failed, where b has host work to say it by; where not,
 * b computes on, and the wait for it all fails. */
#ifndef AOTH_MULTI_QUEUE_H
#define AOTH_MULTI_QUEUE_H

#include <device/queue.h>

#define AOTH_MAX_LANES 8u

typedef aot_status_t (*aoth_lane_work_t)(void *self, uint32_t number);

typedef struct aoth_lane {
  aoth_queue_t *queue;
  aot_timeline_t *out, *in; /* raised by the queue, for others; by the host, for the queue */
  uint64_t n_out, n_in;
  uint64_t n_put;                       /* work on it so far .. */
  uint64_t seen[AOTH_MAX_LANES];        /* .. and of each other lane's work, what this lane waits for */
  uint64_t height;                      /* of `queue`, after the call that was begun */
  const aot_ext_host_work_t *host_work; /* NULL: the device has none */
  int is_host;                          /* the host's own device */
} aoth_lane_t;

typedef struct aoth_lane_job aoth_lane_job_t; /* what the host has yet to do */

typedef struct aoth_lanes {
  aot_ctx_t *ctx;
  aoth_lane_t lane[AOTH_MAX_LANES];
  uint32_t n;
  aoth_lane_job_t *jobs; /* a ring: n_jobs from `first` on */
  uint32_t first, n_jobs, capacity;
  aot_status_t failed; /* that no gate could hand on */
  uint64_t n_failures; /* so far */
} aoth_multi_queue_t;

/* The queue is borrowed. The first is lane 0. After a failure, too: deinit, once nothing is under way. */
aot_status_t aoth_lanes_add(aoth_multi_queue_t *l, aot_ctx_t *ctx, aoth_queue_t *queue);
void aoth_lanes_deinit(aoth_multi_queue_t *l);

/* A call's work on these lanes (bits) is between the two; `end` also where something failed, with its status, which
 * it answers, and all of them follows all then. Lane 0 is the call's own. */
aot_status_t aoth_lanes_begin(aoth_multi_queue_t *l, uint32_t lanes);
aot_status_t aoth_lanes_end(aoth_multi_queue_t *l, uint32_t lanes, aot_status_t failed);

/* Something that puts work on the lane's queue, now or when the host's turn comes: work(self, number). */
aot_status_t aoth_lanes_put(aoth_multi_queue_t *l, uint32_t lane, aoth_lane_work_t work, void *self, uint32_t number);
void aoth_lanes_noted(aoth_multi_queue_t *l, uint32_t lane); /* the same was done by the caller, on a device's queue */
/* The host waits for what is on the lane. */
aot_status_t aoth_lanes_await(aoth_multi_queue_t *l, uint32_t lane);
/* O(1); nothing where it follows it already. */
aot_status_t aoth_lanes_cross(aoth_multi_queue_t *l, uint32_t from, uint32_t to);

#endif
