/* One run of the stage: the program, which would run which node at what time (claims.h fills it), and its memory and
 * complaints. */
#ifndef AS_ASSIGN_STAGE_H
#define AS_ASSIGN_STAGE_H

#include <aot/ext/backends.h>
#include <aot/host.h>

typedef struct as_stage {
  const aot_host_t *host;
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  const aot_ext_backends_t *backends;
  uint32_t n_backends;
  uint32_t n_nodes;      /* node ids are below */
  uint32_t least_nodes;  /* that compute: of a part that is worth a submission */
  aot_str_t withheld;    /* as_options_t, assign.h */
  uint8_t *is_claimed;   /* [(backend - 1) * n_nodes + node id] */
  uint8_t *is_view;      /* the same: it would compute nothing */
  uint64_t *nanoseconds; /* the same: that it would take; 0: not said */
  uint64_t *at_most;     /* the same: guessed from its work, on the slow side; 0: of a node that reports none */
  uint64_t *launch;      /* by backend - 1: nanoseconds of a submission */
  aot_str_t *device;     /* by backend - 1: where it runs; size 0: where the run does */
  uint32_t *device_of;   /* by backend - 1: the same as a number, 0 where the run does */
  uint32_t n_devices;
  uint64_t move_delay, move_rate; /* nanoseconds a value; bytes in a microsecond: from device to device */
} as_stage_t;

static inline uint64_t as_row(const as_stage_t *s, uint32_t backend, uint32_t node) {
  return (uint64_t)(backend - 1) * s->n_nodes + node;
}

void *as_alloc(const as_stage_t *s, uint64_t n, uint64_t size); /* zeroed; NULL has been reported */
aot_status_t as_fail(const as_stage_t *s, uint32_t node, const char *code, const char *hint, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#endif
