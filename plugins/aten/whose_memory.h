/* Whose memory the results of a node share: the schema's marks and the rules of sharing.c, requested as the program has
 * the node. */
#ifndef AT_WHOSE_MEMORY_H
#define AT_WHOSE_MEMORY_H

#include <aot/host.h>

/* The operand that each result is, or is a view of, counted from 1; 0: it has memory of its own. out: room for
 * n_results. O(operands + results). */
aot_status_t at_whose_memory(const aot_host_t *host, aot_prog_t *prog, const aot_node_info_t *n, uint32_t *out);

#endif
