/* One number for a whole program: what printing does not show is in it, too. */
#ifndef AOTH_DIGEST_H
#define AOTH_DIGEST_H

#include <ir/program.h>

/* Of all that a program holds, dead rows, ids and the order of use lists included; interned rows by what they say.
 * Equal programs have equal digests. O(program) */
typedef struct aoth_digest {
  uint64_t lo, hi;
} aoth_digest_t;
aoth_digest_t aoth_prog_digest(const aot_prog_t *p);

#endif
