/* Strides: what memory order results get, and what views are possible. layout.c says whose rules they are. */
#ifndef AT_LAYOUT_H
#define AT_LAYOUT_H

#include "dims.h"

void at_strides_contiguous(at_infer_t *c, const int64_t *sizes, int32_t rank, int64_t *out);
void at_strides_channels_last(at_infer_t *c, const int64_t *sizes, int32_t rank, int64_t *out);
int at_is_contiguous(at_infer_t *c, const aot_type_t *t);
int at_is_channels_last(at_infer_t *c, const aot_type_t *t);
int at_suggests_channels_last(at_infer_t *c, const aot_type_t *t); /* PyTorch's suggest_memory_format */
int at_is_dense(at_infer_t *c, const aot_type_t *t);               /* non-overlapping and dense */
/* Strides of an elementwise result over these operands, broadcast to sizes. */
void at_strides_pointwise(at_infer_t *c, const aot_type_t *operands, uint32_t n, const int64_t *sizes, int32_t rank,
                          int64_t *out);
/* Strides of a fresh tensor of t's sizes, for a memory format; PRESERVE keeps dense strides. */
void at_strides_for_format(at_infer_t *c, const aot_type_t *t, int64_t memory_format, int64_t *out);
/* Strides of a view of t with these sizes; 0 when there is none. */
int at_view_strides(at_infer_t *c, const aot_type_t *t, const int64_t *sizes, int32_t rank, int64_t *out);

#endif
