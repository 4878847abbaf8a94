/* Edits as bytes, for another process that holds the same program, and back. */
#ifndef AOTH_EDITS_WIRE_H
#define AOTH_EDITS_WIRE_H

#include <base/wire.h>
#include <ir/redo.h>

/* Memory that both processes have at the same address: contents of leaves that lie in there are not sent. */
typedef struct aoth_span {
  const void *at;
  uint64_t nbytes;
} aoth_span_t;

typedef struct aoth_spans {
  aoth_span_t *at;
  uint32_t n;
} aoth_spans_t;

/* Written: the edit, NULL. Read, `edit` NULL: an edit, which borrows the bytes; contents of a leaf that came along are put
 * into `leaves`. A wire that has failed afterwards held something else. */
const aoth_edit_t *aoth_wire_edit(aoth_wire_t *w, const aoth_edit_t *edit, aoth_spans_t known, aoth_arena_t *leaves);

#endif
