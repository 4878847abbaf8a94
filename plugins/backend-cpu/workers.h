/* Threads for steps that divide: a fixed team that sleeps between jobs. The division depends on the sizes and the
 * number of threads alone, so results repeat for a fixed number. */
#ifndef BC_WORKERS_H
#define BC_WORKERS_H

#include <stdint.h>

typedef struct bc_workers bc_workers_t;

/* n threads, the caller of bc_parallel among them. NULL: n < 2, or they cannot be had; bc_parallel then runs alone. */
bc_workers_t *bc_workers_create(int32_t n);
void bc_workers_destroy(bc_workers_t *w); /* NULL is fine */

/* part: which of at most n parts, [begin, end) of the range */
typedef void (*bc_part_fn)(void *arg, int32_t part, int64_t begin, int64_t end);
/* fn over [0, n) in parts of at least `grain`; returns when all are done. One call at a time. Returns the number of
 * parts. */
int32_t bc_parallel(bc_workers_t *w, int64_t n, int64_t grain, bc_part_fn fn, void *arg);

#endif
