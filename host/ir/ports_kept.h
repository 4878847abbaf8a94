/* A pass leaves the ports of the program as they were, but for what the properties that its contract gives are about.
 *
 * Ports of forward, joint, backward and update graphs are compared by side, role, index and type, in their order. A
 * property excepts the roles that it brings: functional, inputs that share memory and outputs that are updates or
 * views; joint, tangents and gradients; rng-explicit, seeds and offsets; hooked, saved slots; sharded, leaves. Leaves
 * that the backward reads in place are its own affair. Any pass may erase the input of a constant that is no longer
 * read, and add inputs of constant leaves that it created. A pass that gives `partitioned` or `stitched` makes new
 * graphs. */
#ifndef AOTH_PORTS_KEPT_H
#define AOTH_PORTS_KEPT_H

#include <ir/program.h>

typedef struct aoth_ports aoth_ports_t;

aoth_ports_t *aoth_ports_record(aot_prog_t *p); /* NULL: no memory (reported). O(ports) */
void aoth_ports_destroy(aoth_ports_t *r);

/* gives: AOTH_PROP_* of the pass's contract. AOT_E_CONTRACT: reported, with port and node. O(ports). */
aot_status_t aoth_ports_check(aot_prog_t *p, const aoth_ports_t *r, uint32_t gives);

#endif
