/* Facts about the memory at a program's boundary, as data: which owns what is saved, which inputs stay in place, which
 * are to be detached. Functions of the program alone; operators count by their alias marks. */
#ifndef AOTH_SAVED_SLOTS_H
#define AOTH_SAVED_SLOTS_H

#include <ir/program.h>

/* As aot_ext_saved_t.held: AOT_HELD_* of each saved slot of a partitioned program; 0: donated. Two slots may share a
 * storage. */
aot_status_t aoth_saved_held(aot_prog_t *p, uint32_t *out_held, uint32_t capacity, uint32_t *out_n);

/* Inputs of graph g whose memory stays where it is from call to call: parameters, buffers, constants, state. */
int aoth_input_is_static(const aot_port_t *port);

/* A user input that requires a gradient and gets none: the caller detaches it before the call, so that its own graph of
 * gradients does not wait for one (PyTorch: indices_of_inps_to_detach). `gradients` is the JOINT or BACKWARD graph.
 * O(outputs). */
int aoth_input_to_detach(aot_prog_t *p, const aot_port_t *port, aot_graph_t gradients);

#endif
