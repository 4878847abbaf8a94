/* A static memory plan: buffers with lifetimes get offsets in one arena.
 *
 * Time is the position in the schedule. A buffer lives from its first to its last position, both included, so what a
 * step reads and what it writes never overlap. A sweep over time keeps the free gaps of the arena in address order:
 * ended buffers give their bytes back, a new one takes the smallest gap that holds it, or grows the arena at its end
 * (best fit with coalescing). O(n log n + n * gaps); gaps are few in practice. Where that leaves gaps at the peak and
 * buffers are few (MP_FEW), they are also placed in three other orders, each at the lowest place that is free all its
 * life: the largest first, the largest product of size and life, the longest life; then, from the last of these, with
 * what ended on top of the arena put first, a few times. The smallest arena is used.
 * `kit_unit_plan` prints how far above the bound that is.
 *
 *     offset  ^   [ b ][  d  ]
 *             |  [a][c   ]
 *             +------------------> time */
#ifndef MP_PLAN_H
#define MP_PLAN_H

#include <stdint.h>

#define MP_FEW 2048u

typedef struct mp_buffer {
  uint64_t nbytes;
  uint32_t first, last; /* positions, first <= last */
  uint64_t offset;      /* out */
} mp_buffer_t;

/* Fills every offset, multiples of align (a power of two); *out_nbytes is the arena's size. 0, or -2 without memory. */
int mp_plan(mp_buffer_t *buffers, uint32_t n_buffers, uint64_t align, uint64_t *out_nbytes);

/* The most bytes alive at one position: no plan can be smaller. */
uint64_t mp_lower_bound(const mp_buffer_t *buffers, uint32_t n_buffers, uint64_t align);

#endif
