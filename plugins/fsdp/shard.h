/* Parameters shared out over ranks: a rewrite of the functional forward program.
 *
 *     parameter [d0, ..]                      parameter [ceil(d0 / n), ..]        this rank's rows, zeros after the
 *     last
 *       |                          ->           | all_gather, wait                {must_recompute}
 *     its readers                               | slice [0, d0)                   where d0 is no multiple of n
 *                                             its readers
 *
 * autograd's rule for a gather is the scatter, so that nothing else learns of it: gradients, optimizer states and new
 * values are as large as the leaf. A parameter that is read in a smaller dtype alone (autocast) is gathered in that
 * one, and its gradients are added up in the leaf's. Small parameters stay whole: their gradients are added up over
 * ranks. The loss is the mean of the ranks' losses. */
#ifndef FS_SHARD_H
#define FS_SHARD_H

#include <aot/ext/leaf_part.h>
#include <aot/host.h>

#define FS_SHARD 0      /* ZeRO-3: gathered again in the backward */
#define FS_SHARD_GRAD 1 /* ZeRO-2: the gathered parameter is stored for the backward */
#define FS_REPLICATE 2  /* every rank has all of them; gradients are added up */
#define FS_HYBRID 3     /* shared out over each row of a mesh, alike in its columns: gradients are added up over both */

typedef struct fs_options {
  int32_t mode; /* FS_* */
  uint32_t rank, n_ranks;
  uint32_t n_columns;       /* of the mesh; as many as ranks where there is none: parts of a parameter */
  uint32_t loss;            /* number of the user output that is minimised */
  uint64_t replicate_under; /* bytes: smaller parameters stay whole */
  int local_buffers;        /* statistics that the forward writes are each rank's own */
  int reduces_narrow;       /* gradients are added up in the dtype that the parameter is gathered in */
} fs_options_t;

typedef struct fs_counts {
  uint64_t n_sharded, n_whole;           /* parameters */
  uint64_t n_cast;                       /* gathered in a smaller dtype than they are held in */
  uint64_t sharded_nbytes, whole_nbytes; /* what this rank holds of them */
  uint64_t all_nbytes;                   /* what one rank alone would */
} fs_counts_t;

aot_status_t fs_run(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const fs_options_t *options,
                    const aot_ext_leaf_part_t *part, fs_counts_t *out);

#endif
