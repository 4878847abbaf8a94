/* The subscripts of einsum: letters name dimensions, "..." the ones that broadcast (torch.einsum).
 *
 *     "bij,bjk->bik"    "ii" (a repeated letter takes the diagonal)    "...ij->...ji"
 *     "ij,jk" (the result is implied)
 *
 * A label is a number: 0..25 are A..Z, 26..51 are a..z, 52.. the dimensions of the ellipsis from left to right. */
#ifndef AT_EINSUM_H
#define AT_EINSUM_H

#include <aot/base.h>

#include <stddef.h>

#define AT_EINSUM_OPERANDS 32
#define AT_EINSUM_LABELS (52 + AOT_MAX_RANK)

typedef struct at_einsum {
  uint32_t n_operands;
  int32_t rank[AT_EINSUM_OPERANDS], out_rank;
  uint8_t label[AT_EINSUM_OPERANDS][AOT_MAX_RANK]; /* of each dimension */
  uint8_t out[AOT_MAX_RANK];
  char why[160]; /* what is wrong with the equation */
} at_einsum_t;

/* Reads the equation for n operands of these ranks. 1, or 0 with e->why. */
int at_einsum_read(at_einsum_t *e, const char *equation, size_t size, uint32_t n, const int32_t *ranks);

#endif
