/* archive_weights.h - the tensors that an archive carries: parameters, buffers, lifted constants, by name. */
#ifndef P2_ARCHIVE_WEIGHTS_H
#define P2_ARCHIVE_WEIGHTS_H

#include "archive_layout.h"
#include "exported_program.h"

typedef struct p2_weight {
  aot_str_t fqn;
  const p2_member_t *storage; /* identity: tensors of one storage share it; NULL: no plain tensor (a custom object) */
  const uint8_t *data;        /* aligned for dtype; NULL when nbytes is 0 */
  uint64_t nbytes;            /* of the whole storage */
  int32_t dtype;              /* AOT_F32, .. */
  uint32_t rank;
  int32_t requires_grad; /* -1: not recorded */
  int32_t reserved;
  const int64_t *sizes, *strides;
  int64_t offset; /* elements */
} p2_weight_t;

typedef struct p2_weights {
  p2_weight_t *items;
  uint32_t n, capacity;
  p2_names_t index;
} p2_weights_t;

/* Reads and checks all: that each member is there, is a whole number of elements, and holds every element of the
 * tensor. */
aot_status_t p2_weights_load(p2_env_t *e, const p2_zip_t *zip, const p2_layout_t *layout, p2_weights_t *out);
const p2_weight_t *p2_weights_find(const p2_weights_t *w, aot_str_t fqn); /* NULL: not there */
/* 1 when both are the same tensor: one storage, one geometry. */
int p2_weight_same(const p2_weight_t *a, const p2_weight_t *b);
/* "bfloat16 (13)" of an archive's dtype number, for messages. */
const char *p2_dtype_name(int64_t archive_number);

#endif
