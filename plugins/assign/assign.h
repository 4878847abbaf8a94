/* Which backend runs which nodes, and the program divided so.
 *
 *     query every backend -> claims          who would run a node, regions included              claims.c
 *     colour: the first that claims it       what is not worth a submission, or what has to be moved for it, goes
 *                                            to the next                                         worth.c, wires.c
 *     parts of one colour, in order          convex.c, by operands, effects and memory that is written over
 *     a graph PART each, and a call of it    outline.c
 *
 * Linear in the program, times the number of backends. */
#ifndef AS_ASSIGN_H
#define AS_ASSIGN_H

#include "convex.h"
#include <aot/ext/backends.h>
#include <aot/host.h>
#include <aot/snapshot.h>

typedef struct as_stage {
  const aot_host_t *host;
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  const aot_ext_backends_t *backends;
  uint32_t n_backends;
  uint32_t n_nodes;      /* node ids are below */
  uint32_t least_nodes;  /* that compute: of a part that is worth a submission */
  aot_str_t withheld;    /* as_options_t */
  uint8_t *is_claimed;   /* [(backend - 1) * n_nodes + node id] */
  uint8_t *is_view;      /* the same: it would compute nothing */
  uint64_t *nanoseconds; /* the same: that it would take; 0: not said */
  uint64_t *at_most;     /* the same: guessed from its work, on the slow side; 0: of a node that tells none */
  uint64_t *launch;      /* by backend - 1: nanoseconds of a submission */
  aot_str_t *device;     /* by backend - 1: where it runs; size 0: where the run does */
  uint32_t *device_of;   /* by backend - 1: the same as a number, 0 where the run does */
  uint32_t n_devices;
  uint64_t move_delay, move_rate; /* nanoseconds a value; bytes in a microsecond: from device to device */
} as_stage_t;

static inline uint64_t as_row(const as_stage_t *s, uint32_t backend, uint32_t node) {
  return (uint64_t)(backend - 1) * s->n_nodes + node;
}

void *as_alloc(const as_stage_t *s, uint64_t n, uint64_t size); /* zeroed; NULL has been told */
aot_status_t as_fail(const as_stage_t *s, uint32_t node, const char *code, const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* ---- claims.c ---- */
/* is_claimed, is_view, nanoseconds, launch. A node with regions is claimed by who claims all that is in them. */
aot_status_t as_ask(as_stage_t *s, const aot_snapshot_t *snapshot);

/* ---- wires.c ---- */
/* Between what is made and who reads it, which may be on different devices. */
typedef struct as_wire {
  uint32_t maker;      /* position + 1 of the node that makes it, or writes it anew; 0: it comes from outside */
  uint32_t is_wanted;  /* outside, as a result of the graph */
  uint32_t begin, end; /* its readers */
  uint64_t nbytes;
} as_wire_t;

typedef struct as_wires {
  uint32_t n;
  as_wire_t *wire;
  uint32_t *readers; /* positions */
  uint32_t *writer;  /* by leaf: position + 1 of the node that makes its new value */
} as_wires_t;

/* None where there is one device. O(nodes + operands). */
aot_status_t as_find_wires(const as_stage_t *s, const aot_snapshot_t *p, const aot_snap_graph_t *g, as_wires_t *w);

/* Nanoseconds that what a part makes and reads takes to be moved, where it runs, and where it would else. */
typedef struct as_move_time {
  uint64_t here, there;
} as_move_time_t;

/* ---- worth.c ---- */
/* A graph that is divided: nodes by their position in it. */
typedef struct as_division {
  as_graph_t order;
  const uint32_t *nodes;   /* ids */
  const as_wires_t *wires; /* NULL: nothing is moved */
  uint32_t *colour;        /* backends, counted from 0 */
  uint32_t *part;
  uint32_t n_parts;
} as_division_t;

/* device, other: by part, where it runs and where it would. out: by part, added to. O(wires * devices). (wires.c) */
aot_status_t as_count_moves(const as_stage_t *s, const as_division_t *d, const uint32_t *device, const uint32_t *other,
                            as_move_time_t *out);
/* as_divide, until every part is worth its submission: the nodes of one that is not go to the next backend that claims them.
 * *out_moved grows by how many. */
aot_status_t as_divide_worthily(const as_stage_t *s, as_division_t *d, uint32_t *out_moved);

/* ---- outline.c ---- */
/* The graph's nodes into graphs of kind PART, in whose place calls stand. part: by node id; backend: by part, counted from 1. in_place: by
 * output, 1: it may lie in its input's memory; 0: it is handed over when all parts have run. */
aot_status_t as_outline(const as_stage_t *s, aot_graph_t graph, const uint32_t *part, const uint32_t *backend,
                        uint32_t n_parts, const uint8_t *in_place);

/* ---- assign.c ---- */
typedef struct as_options {
  uint32_t least_nodes;
  aot_str_t devices; /* by backend, between commas; empty: where the run does */
  uint64_t move_delay, move_rate;
  aot_str_t withheld; /* "NAME=OPERATOR,OPERATOR;NAME=..": what these backends are not given */
} as_options_t;

aot_status_t as_assign(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const as_options_t *options);

#endif
