/* The last collectives of a rank, for the caller afterwards why a run has stopped: a ring, written to a file when the
 * group fails. Lines of ranks side by side report who was where:
 *
 *     exchange 41  all_gather  12288 bytes  began 0.812 s before the end, took 0.4 ms
 *     _c10d_functional.all_gather_into_tensor exchange 42  reduce_scatter  12288 bytes  began 0.811 s before the end,
 *     did not end */
#ifndef PLUGINS_COMMON_LAST_COLLECTIVES_H
#define PLUGINS_COMMON_LAST_COLLECTIVES_H

#include <stdint.h>

#define RN_RECORD_ROWS 64u
#define RN_RECORD_PATH 512u

typedef struct rn_record_row {
  uint64_t number, nbytes, begin_ns, end_ns; /* number of its first exchange; end 0: it has not ended, or failed */
  const char *kind;                          /* static */
  char what[96];
} rn_record_row_t;

typedef struct rn_record {
  rn_record_row_t row[RN_RECORD_ROWS];
  uint64_t n; /* so far; row n - 1 is at (n - 1) modulo RN_RECORD_ROWS */
} rn_record_t;

void rn_record_begin(rn_record_t *r, const char *kind, uint64_t number, uint64_t nbytes, const char *what,
                     uint64_t now);
void rn_record_end(rn_record_t *r, uint64_t now); /* the one that began last */
/* PATH.RANK becomes the record, and why the group has failed. What cannot be written is not reported: something else
 * is. */
void rn_record_write(const rn_record_t *r, const char *path, uint32_t rank, const char *why, uint64_t now);

#endif
