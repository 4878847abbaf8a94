/* Where ranks of several machines meet: "HOST:PORT", as NCCL_COMM_ID has it. NCCL's first rank listens there, the
 * others find it (nccl: src/bootstrap.cc). Looked at before NCCL is queried, which would say less. */
#ifndef NL_MEETING_ADDRESS_H
#define NL_MEETING_ADDRESS_H

#include <stddef.h>
#include <stdint.h>

/* 1: it is one of a host that can be found, and where this is the first rank, one that it can listen at. 0: it is not,
 * with a sentence in `why`. */
int nl_address_is_good(const char *address, uint32_t rank, uint32_t n_ranks, char *why, size_t size);
/* "HOST:PORT, which is 10.0.0.7 here"; and whether that is this machine's alone. */
void nl_address_show(const char *address, char *out, size_t size);

#endif
