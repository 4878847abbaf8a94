/* Edits as bytes, for another process that holds the same program, and back. */
#ifndef AOTH_EDITS_WIRE_H
#define AOTH_EDITS_WIRE_H

#include "kit/base/wire.h"
#include <ir/redo.h>

/* Memory that both processes have at the same address: contents of leaves that are in there are not sent. */
typedef struct aoth_span {
  const void *at;
  uint64_t nbytes;
} aoth_span_t;

/* Types go by number where an edit has them so: below `first` they are those that both programs had at the beginning,
 * from there on counted as they were sent, each with what it is the first time. */
typedef struct aoth_type_numbers {
  aot_prog_t *prog;
  uint32_t first, n_sent;
  /* Written: by number here, less first, which one it was, counted from 1; 0: it was not sent. Read: by that, counted
   * from
   * 0, its number here. */
  uint32_t *at, capacity;
} aoth_type_numbers_t;

aoth_type_numbers_t aoth_type_numbers(aot_prog_t *p); /* nothing is sent yet */
void aoth_type_numbers_deinit(aoth_type_numbers_t *t);

/* What both processes have. */
typedef struct aoth_known {
  aoth_span_t *at;
  uint32_t n;
  aoth_type_numbers_t *types; /* of one direction; NULL: no edit has numbers */
} aoth_known_t;

/* Written: the edit, NULL. Read, `edit` NULL: an edit, which borrows the bytes; contents of a leaf that came along are
 * put into `leaves`. A wire that has failed afterwards held something else. */
const aoth_edit_t *aoth_wire_edit(kit_wire_t *w, const aoth_edit_t *edit, aoth_known_t known, kit_arena_t *leaves);

#endif
