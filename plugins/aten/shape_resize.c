/* resize_, resize_as_: other sizes over the memory that the tensor has, from its offset on. Tensors of the asked sizes
 * stay as they are, unless a memory format is requested; others become row-major (PyTorch's Resize.cpp). */
#include "shape_rules.h"

#include <aot/inline.h>

static int64_t asked_format(at_infer_t *c, const aot_type_t *like) {
  int64_t format = at_has(c, "memory_format") ? at_int(c, "memory_format") : AOT_MEMORY_CONTIGUOUS;
  if (format != AOT_MEMORY_PRESERVE) return format;
  if (like == NULL) at_fail(c, "resize_ to the format that is preserved: it is not supported, as in PyTorch");
  return like && at_suggests_channels_last(c, like) ? AOT_MEMORY_CHANNELS_LAST : AOT_MEMORY_CONTIGUOUS;
}

void at_shape_resize(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self"), to = t;
  int64_t *strides;
  int32_t d, same;
  if (at_has(c, "the_template")) {
    to = at_tensor(c, "the_template");
  } else {
    to.rank = (int32_t)at_ints(c, "size", &to.sizes);
  }
  if (c->status != AOT_OK) return;
  strides = at_dims(c, to.rank);
  same = to.rank == t.rank;
  for (d = 0; same && d < t.rank; d++) same = at_same(c, t.sizes[d], to.sizes[d]);
  if (same && !at_has(c, "memory_format")) at_put_view(c, &t, t.sizes, t.strides, t.rank, t.offset);
  else {
    int64_t format = asked_format(c, at_has(c, "the_template") ? &to : NULL);
    if (format == AOT_MEMORY_CONTIGUOUS) at_strides_contiguous(c, to.sizes, to.rank, strides);
    else at_strides_channels_last(c, to.sizes, to.rank, strides);
    at_put_view(c, &t, to.sizes, strides, to.rank, t.offset);
  }
}

/* set_: what the source is */
void at_shape_set_source(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "source");
  at_put_view(c, &t, t.sizes, t.strides, t.rank, t.offset);
}
