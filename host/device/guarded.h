/* Memory between guard pages, and the poison in and around it: what is written next to it, and what is left as it was,
 * is seen afterwards; what goes further traps.
 *
 *     | guard pages | poison .. data .. poison | guard pages |
 *
 * data ends within AOTH_HOST_ALIGN of the last page's end. Poison is a NaN as a float of any width, more than any index
 * as an integer, and no bool; as a NaN it is none that arithmetic makes. */
#ifndef AOTH_GUARDED_H
#define AOTH_GUARDED_H

#include <aot/base.h>
#include "kit/base/text.h"
#include <stddef.h>

typedef struct aoth_guarded {
  char *data;
  uint64_t nbytes;
  char *begin, *end; /* pages between the guards */
} aoth_guarded_t;

int aoth_guarded_map(uint64_t nbytes, aoth_guarded_t *out); /* all of it poison; 0: no memory */
void aoth_guarded_unmap(const aoth_guarded_t *m);
/* Where the address lies, guard pages included: "8 bytes behind", "byte 3 of"; 0: elsewhere. */
int aoth_guarded_where(const aoth_guarded_t *m, uint64_t address, kit_text_t *out);

void aoth_poison(char *begin, const char *end);
char *aoth_first_written(char *begin, const char *end); /* end: all of it is poison */
/* How many elements of the tensor are poison still, and the first of them, counted in the order of its sizes. Of types
 * of which poison is an ordinary number (bytes, 16 bit integers) 8 bytes of it in a row count, fewer do not.
 * O(elements) */
uint64_t aoth_unwritten(const aot_tensor_t *t, uint64_t *out_first);

#endif
