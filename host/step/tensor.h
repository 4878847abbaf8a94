/* Tensors of the run time: a storage, and a geometry over it. Sizes are numbers here; symbols are gone.
 *
 * The struct carries its own sizes and strides, so that it can be copied, stored in arrays and changed by boundary
 * rules (restride) without owning memory. Strides and offset count elements, as everywhere. */
#ifndef AOTH_TENSOR_H
#define AOTH_TENSOR_H

#include "kit/base/element.h"
#include <aot/base.h>
#include <aot/status.h>
#include "kit/base/text.h"

#define AOTH_ALIGN 64u /* every boundary tensor's storage starts at a multiple of this */

struct aoth_resident;
typedef struct aoth_tensor {
  void *data;      /* first byte of the storage; NULL: none, or `resident` has it */
  uint64_t nbytes; /* of the storage */
  int32_t dtype;   /* 0: no tensor at all (a None output) */
  int32_t rank;
  uint32_t memory, encoding; /* carried to the backend, which knows them */
  int64_t offset;
  int64_t sizes[AOT_MAX_RANK];
  int64_t strides[AOT_MAX_RANK];
  struct aoth_resident *resident; /* where a step's tensor lies (device/mirrored_buffer.h); NULL: at `data` */
} aoth_tensor_t;

/* The same tensor as the plugin boundary and the public API see it; borrows t's arrays. */
aot_tensor_t aoth_tensor_view(const aoth_tensor_t *t);
/* Back: fails (0) when the rank is out of range; absent strides mean contiguous. */
int aoth_tensor_from(const aot_tensor_t *view, aoth_tensor_t *out);
/* A contiguous tensor over `data`. */
aoth_tensor_t aoth_tensor_make(void *data, int32_t dtype, int32_t rank, const int64_t *sizes);
aoth_tensor_t aoth_tensor_scalar(void *data, int32_t dtype);

int64_t aoth_tensor_numel(const aoth_tensor_t *t); /* -1: does not fit */
/* Bytes from the start of the storage to the end of the last element that the geometry reaches. 0: a size, stride or
 * offset is negative, or the bytes do not fit in 62 bits. */
int aoth_tensor_extent(const aoth_tensor_t *t, uint64_t *out_nbytes);
/* Do two elements share an address? */
int aoth_strides_overlap(int32_t rank, const int64_t *sizes, const int64_t *strides);
void aoth_tensor_contiguous(aoth_tensor_t *t);         /* row-major strides, offset 0 */
int aoth_tensor_is_contiguous(const aoth_tensor_t *t); /* whatever its offset */
int aoth_tensor_same_sizes(const aoth_tensor_t *a, const aoth_tensor_t *b);

/* Element by element; same dtype and sizes, any geometry, no overlap unless it is the very same place. */
void aoth_tensor_copy(const aoth_tensor_t *to, const aoth_tensor_t *from);
/* Set every element to a number, converted to the dtype (float16 and bfloat16 rounded to nearest even). */
void aoth_tensor_fill(const aoth_tensor_t *t, double number);

/* Walks the elements in row-major order: at[k] is the byte address of the k-th operand's element. */
typedef struct aoth_walk {
  const aoth_tensor_t *t[2];
  char *at[2];
  int64_t index[AOT_MAX_RANK];
  int64_t left; /* elements still to be visited, this one included */
  uint64_t size;
  uint32_t n;
} aoth_walk_t;
void aoth_walk_begin(aoth_walk_t *w, const aoth_tensor_t *a, const aoth_tensor_t *b); /* b may be NULL; same sizes */
void aoth_walk_next(aoth_walk_t *w);

void aoth_tensor_print_shape(const aoth_tensor_t *t, kit_text_t *out); /* f32[2, 3] */

#endif
