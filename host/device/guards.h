/* Overruns by plugins on the host's memory, found where they happen (AOT_VALIDATE=1). Each buffer is a mapping of its
 * own, and ends within AOTH_HOST_ALIGN of the last page's end:
 *
 *     | guard page | poison .. buffer .. poison | guard page |
 *
 * A call that reaches into a guard page traps. While it runs, buffers that it only reads cannot be written: that traps as
 * well. What it wrote to poison is seen behind it: around its buffers, and in the red zones that lie behind its outputs
 * in a block. Fresh memory is poison, too: NaN as a float of any width, more than any index as an integer. */
#ifndef AOTH_GUARDS_H
#define AOTH_GUARDS_H

#include <aot/backend.h>

#define AOTH_RED_ZONE 64u /* bytes behind each port in a block */

typedef struct aoth_guards aoth_guards_t;

aoth_guards_t *aoth_guards_create(void); /* NULL: no memory */
void aoth_guards_destroy(aoth_guards_t *g);

int aoth_guards_alloc(aoth_guards_t *g, uint64_t nbytes, aot_buffer_t *out); /* 0: no memory */
void aoth_guards_free(aoth_guards_t *g, aot_buffer_t whole);
void aoth_guards_poison(const aoth_guards_t *g, aot_buffer_t whole); /* as if it were fresh */

/* Around a call: what it only reads is closed; what it has written beside its memory is told, with the port, mended, and
 * answered with AOT_E_CONTRACT. doing: "the step graph". Memory that is not of alloc is let alone. O(ports log buffers
 * + buffers) */
void aoth_guards_close(const aoth_guards_t *g, const aot_binding_t *b);
aot_status_t aoth_guards_check(const aoth_guards_t *g, aot_ctx_t *ctx, const aot_binding_t *b, const char *doing);

#endif
