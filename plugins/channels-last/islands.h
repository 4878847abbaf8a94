/* Islands: convolutions that values lying channels last connect. An island is taken or left as a whole, by the bytes
 * that are moved for it and those that no longer are. Union-find with path halving: almost linear. */
#ifndef CHANNELS_LAST_ISLANDS_H
#define CHANNELS_LAST_ISLANDS_H

#include <stdint.h>

#define NHWC_NO_ISLAND 0

typedef struct nhwc_island {
  uint32_t parent;                    /* itself: it represents all that were joined */
  uint32_t n_convolutions, n_patches; /* those whose windows neither overlap nor are one pixel */
  uint32_t n_copies;
  uint64_t copied_nbytes; /* read and written by copies that the layout costs */
  uint64_t saved_nbytes;  /* read and written by copies that a convolution would make of what is in another way */
  uint8_t is_barred;      /* something in it cannot be brought back to how it lay */
} nhwc_island_t;

typedef struct nhwc_islands {
  nhwc_island_t *at; /* room for one more than there are convolutions; 0 is none */
  uint32_t n;
} nhwc_islands_t;

uint32_t nhwc_island_new(nhwc_islands_t *s);
nhwc_island_t *nhwc_island_of(nhwc_islands_t *s, uint32_t island);    /* the one that represents it */
uint32_t nhwc_island_join(nhwc_islands_t *s, uint32_t a, uint32_t b); /* either may be none */
int nhwc_island_pays(const nhwc_island_t *island);

#endif
