/* A joint graph becomes a forward and a backward graph, given what to save (aot/partition.h).
 *
 * Which node runs where follows from the saved values (kit/graph/split.h). Ports keep role, index and name: the forward
 * has the joint graph's inputs but the tangents, its forward outputs, then a SAVED slot each; the backward has the
 * leaves that it reads, the slots, the tangents, and the gradients. A leaf that the forward updates, and an input that
 * comes with the call, reach the backward in a slot. What is saved of a larger tensor is copied, so that a slot holds
 * no more than its elements, if the opsets have a copy (AOT_OP_COPY). Planning and making are apart so that a choice
 * can be shown before it is followed. */
#ifndef JG_MAKE_HALVES_H
#define JG_MAKE_HALVES_H

#include <aot/host.h>
#include <aot/partition.h>

typedef struct jg_halves jg_halves_t;

/* Which node runs where; edits nothing. host and ctx are borrowed until destroy. AOT_E_INVALID: no graphs can be made
 * of this choice, reported at the value at fault. AOT_E_PRECONDITION: there is no joint graph. O(program). */
aot_status_t jg_halves_plan(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *p, const aot_cut_t *cut,
                            jg_halves_t **out);

/* The cut in full: saved values that the backward does read, what runs twice, bytes. Its lists live as long as h. */
void jg_halves_complete(const jg_halves_t *h, aot_cut_t *cut);

/* The program, unchanged since the plan, gets its two graphs and loses the joint one. O(program). */
aot_status_t jg_halves_make(jg_halves_t *h);

void jg_halves_destroy(jg_halves_t *h); /* NULL: nothing */

#endif
