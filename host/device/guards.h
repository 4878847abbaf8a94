/* What executables do to the host's memory that they should not, found where they do it (AOT_VALIDATE=1). Each buffer
 * is a mapping of its own, between guards and poison (guarded.h).
 *
 * A call that reaches into a guard page traps. While it runs, buffers that it only reads cannot be written: that traps
 * as well; inputs in other memory (the caller's, a block that is written too) are compared with their digests
 * afterwards. Writes to poison are found after it: around its buffers, and in the red zones after its outputs in a
 * block. Its arena, and outputs that it does not read, are poisoned before it: reads of an earlier call's values give
 * NaNs, and outputs left unwritten are reported. */
#ifndef AOTH_GUARDS_H
#define AOTH_GUARDS_H

#include "kit/base/text.h"
#include <device/input_digests.h>

#define AOTH_RED_ZONE 64u /* bytes after each port in a block */

int aoth_guards_are_wanted(void); /* AOT_VALIDATE=1 */

typedef struct aoth_guards aoth_guards_t;

aoth_guards_t *aoth_guards_create(void); /* NULL: no memory */
void aoth_guards_destroy(aoth_guards_t *g);

int aoth_guards_alloc(aoth_guards_t *g, uint64_t nbytes, aot_buffer_t *out); /* 0: no memory */
void aoth_guards_free(aoth_guards_t *g, aot_buffer_t whole);
void aoth_guards_poison(const aoth_guards_t *g, aot_buffer_t whole); /* as if it were fresh */

/* Around a call. close: inputs become read-only, outputs are poisoned. check: a write outside of its memory
 * or, if the call completed (is_done), an unwritten output is reported with its port, repaired, and returned as
 * AOT_E_CONTRACT. doing: "the step graph". Memory that alloc did not return is ignored. O(bytes + inputs outputs) */
void aoth_guards_close(aoth_guards_t *g, const aot_binding_t *b);
aot_status_t aoth_guards_check(aoth_guards_t *g, aot_ctx_t *ctx, const aot_binding_t *b, const char *doing,
                               int is_done);
/* The same for the inputs of one backend's segment of the call, between segments. A failure is reported with the
 * backend's name, and the check of the whole call returns it. */
void aoth_guards_part_begin(aoth_guards_t *g, const aot_binding_t *part);
aot_status_t aoth_guards_part_end(aoth_guards_t *g, aot_ctx_t *ctx, const aot_binding_t *part, const char *backend);
/* Which port of the running call an address is near, "8 bytes behind the end of output 0"; 0: none. */
int aoth_guards_where(const aoth_guards_t *g, uint64_t address, kit_text_t *out);

#endif
