/* What a collective takes: rings of messages (Thakur, Rabenseifner, Gropp: Optimization of collective communication
 * operations in MPICH, IJHPCA 2005), by the time that a message of its size takes over the farthest hop of the ring.
 *
 *     links: "8: 0=6 1MiB=9.5 1GiB=3600; 10000: 0=14 1MiB=40 1GiB=22000"
 *
 * Among up to 8 ranks (of a machine) a message takes 6 us, one of a MiB 9.5 us, between sizes in proportion, and after
 * the last at its rate; among more (of several machines) what the next row says. */
#ifndef OV_LINK_COST_H
#define OV_LINK_COST_H

#include <stddef.h>
#include <stdint.h>

enum { OV_MOST_HOPS = 8, OV_MOST_SIZES = 16 };

typedef struct ov_hop {
  uint32_t n_ranks;                                /* that are not farther from each other */
  uint32_t n_sizes;                                /* at least 1 */
  double nbytes[OV_MOST_SIZES], ns[OV_MOST_SIZES]; /* rising */
} ov_hop_t;

typedef struct ov_link {
  ov_hop_t hops[OV_MOST_HOPS]; /* the near ones first; the last one goes for more ranks, too */
  uint32_t n_hops;
} ov_link_t;

/* One hop, of so many ns and bytes per ns. */
ov_link_t ov_link_of(double latency_ns, double bytes_per_ns);
/* NULL, or what is wrong with the text. */
const char *ov_link_read(const char *text, size_t size, ov_link_t *out);

enum { OV_GATHER, OV_SCATTER, OV_REDUCE, OV_EXCHANGE, OV_N_KINDS };

/* Of n ranks among `span` that stand side by side. nbytes: of the whole tensor, which is that of all n. */
double ov_collective_ns(const ov_link_t *link, int kind, uint32_t n, uint32_t span, uint64_t nbytes);

#endif
