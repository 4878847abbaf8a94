/* With the first collective between windows NCCL (2.28) makes what all of them need: words by which devices wait for
 * each other, and windows of its own. It cannot while its caller captures a stream, as steps are: so a communicator
 * that is to have windows begins with a small one, in which each kind of collective is done once. */
#ifndef NL_FIRST_WINDOW_H
#define NL_FIRST_WINDOW_H

#include "nccl.h"
#include "windows.h"

/* By all ranks of the communicator, on a thread that captures nothing, with the context set. 0, or NCCL's error
 * number. */
int nl_first_window(const nl_nccl_t *nccl, const nl_memory_t *memory, nl_comm_t comm, uint32_t n_ranks);

#endif
