/* What executables do to the host's memory that they should not, found where they do it (AOT_VALIDATE=1). Each buffer
 * is a mapping of its own, between guards and poison (guarded.h).
 *
 * A call that reaches into a guard page traps. While it runs, buffers that it only reads cannot be written: that traps
 * as well; inputs in other memory (the caller's, a block that is written too) are compared with their digests
 * afterwards. What it wrote to poison is seen behind it: around its buffers, and in the red zones that lie behind its
 * outputs in a block. Its arena, and outputs that it does not read, are poison before it: what it reads of an earlier
 * call are NaNs, and what it leaves unwritten is told. */
#ifndef AOTH_GUARDS_H
#define AOTH_GUARDS_H

#include <base/text.h>
#include <device/input_digests.h>

#define AOTH_RED_ZONE 64u /* bytes behind each port in a block */

int aoth_guards_are_wanted(void); /* AOT_VALIDATE=1 */

typedef struct aoth_guards aoth_guards_t;

aoth_guards_t *aoth_guards_create(void); /* NULL: no memory */
void aoth_guards_destroy(aoth_guards_t *g);

int aoth_guards_alloc(aoth_guards_t *g, uint64_t nbytes, aot_buffer_t *out); /* 0: no memory */
void aoth_guards_free(aoth_guards_t *g, aot_buffer_t whole);
void aoth_guards_poison(const aoth_guards_t *g, aot_buffer_t whole); /* as if it were fresh */

/* Around a call: what it only reads is closed, what it has to write is poison; what it has written beside its memory,
 * or, where it came to its end (is_done), not written at all, is told, with the port, mended, and answered with
 * AOT_E_CONTRACT. doing: "the step graph". Memory that is not of alloc is let alone. O(bytes + inputs outputs) */
void aoth_guards_close(aoth_guards_t *g, const aot_binding_t *b);
aot_status_t aoth_guards_check(aoth_guards_t *g, aot_ctx_t *ctx, const aot_binding_t *b, const char *doing,
                               int is_done);
/* The same of the inputs of a part of the call, which a backend runs by itself: after it, before the next. A failure is
 * told with the backend's name; the check of the whole call answers with it. */
void aoth_guards_part_begin(aoth_guards_t *g, const aot_binding_t *part);
aot_status_t aoth_guards_part_end(aoth_guards_t *g, aot_ctx_t *ctx, const aot_binding_t *part, const char *backend);
/* Of the call that runs: whose memory the address is near, "8 bytes behind the end of output 0"; 0: nobody's. */
int aoth_guards_where(const aoth_guards_t *g, uint64_t address, aoth_text_t *out);

#endif
