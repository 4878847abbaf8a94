/* Copies that are in memory as another tensor does. */
#ifndef PLUGINS_COMMON_EMIT_LAYOUT_H
#define PLUGINS_COMMON_EMIT_LAYOUT_H

#include "emit.h"

int64_t em_hint(const em_t *e, int64_t dim);
int64_t em_numel(const em_t *e, const aot_type_t *t); /* with symbols at their hints */

/* Equal sizes: is every element at the same place, except for the first one's? */
int em_lies_alike(const em_t *e, const aot_type_t *a, const aot_type_t *b);

/* Of a rank of 4 or 5: the memory format; does a tensor lie so, without gaps? Dimensions of size 1 are anywhere. */
int64_t em_channels_last(int32_t rank);
int em_lies_channels_last(const em_t *e, const aot_type_t *t);

/* x copied into a memory format. */
em_x_t em_in_format(em_t *e, em_x_t x, int64_t format);

/* x copied so that its dimensions follow one another in memory in the order of these strides, without gaps; equal
 * strides stay in order. Symbols count by their hints. */
em_x_t em_in_order(em_t *e, em_x_t x, const int64_t *strides, int32_t rank);

/* A tensor of one number in the memory order of `like`, dense, on its device. */
em_x_t em_filled(em_t *e, const aot_type_t *like, em_x_t number);

/* x in the memory order of `like`, which has the same sizes; x itself when it lies so or `like` is not dense. */
em_x_t em_laid_out(em_t *e, em_x_t x, const aot_type_t *like);

#endif
