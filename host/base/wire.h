/* Records as bytes for another process of the same program, and back: one function a record, for both directions.
 *
 *     static const point_t *wire_point(aoth_wire_t *w, const point_t *at) {
 *       point_t copy, *p = aoth_wire_record(w, at, &copy, sizeof copy);
 *       p->name = aoth_wire_block(w, p->name, p->n_name, 1);
 *       return p;
 *     }
 *
 * Written, a record is what it was with its pointers, and what they point to follows it. Read, records are where the
 * bytes do, their pointers reset: nothing is copied, and the bytes live as long as the records. Bytes that do not
 * hold what they announce make the wire fail, and then all that is read is empty. */
#ifndef AOTH_WIRE_H
#define AOTH_WIRE_H

#include <base/text.h>
#include <stdint.h>

typedef struct aoth_wire {
  aoth_text_t *out; /* written to its end; NULL: read */
  char *at;         /* read: the next byte */
  size_t left;
  int failed; /* read: see above; written: no memory */
} aoth_wire_t;

aoth_wire_t aoth_wire_writer(aoth_text_t *out);           /* out is empty */
aoth_wire_t aoth_wire_reader(void *bytes, size_t nbytes); /* aligned to 8 */
/* The record to continue with: `copy` of it when written, the one in the bytes when read. */
void *aoth_wire_record(aoth_wire_t *w, const void *at, void *copy, size_t size);
/* n elements of a size; never NULL. */
void *aoth_wire_block(aoth_wire_t *w, const void *at, uint64_t n, size_t size);
void aoth_wire_text(aoth_wire_t *w, aot_str_t *text);
int aoth_wire_done(const aoth_wire_t *w); /* 1: all well, and all that there was has been read */

#endif
