/* The copying twins of views: what the view shows, as contiguous tensors of their own. */
#include "shape_rules.h"

#define COPY_OF(view)                                                                                                  \
  void at_shape_##view##_copy(at_infer_t *c) {                                                                         \
    c->copies = 1;                                                                                                     \
    at_shape_##view(c);                                                                                                \
  }

COPY_OF(alias)
COPY_OF(as_strided)
COPY_OF(diagonal)
COPY_OF(expand)
COPY_OF(narrow)
COPY_OF(permute)
COPY_OF(select)
COPY_OF(slice)
COPY_OF(split)
COPY_OF(split_sizes)
COPY_OF(squeeze)
COPY_OF(t)
COPY_OF(transpose)
COPY_OF(unbind)
COPY_OF(unfold)
COPY_OF(unsqueeze)
COPY_OF(view)
