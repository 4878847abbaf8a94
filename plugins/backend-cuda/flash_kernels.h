/* Attention of f16 or bf16 and its gradients as CUDA C, on tensor cores, without scores in memory: FlashAttention-2 (T.
 * Dao,
 * 2023), by mma.m16n8k16 (kernels/tensor_cores.cuh). What dropout keeps is drawn where scores are, and not read:
 *
 *     S = scale Q K^T     P = exp(S - L)     D = drawn / (1 - p)     O = (P D) V     R = rowsum(O dO)
 *     dV = (P D)^T dO     dS = P (D (dO V^T) - R)     dQ = scale dS K     dK = scale dS^T Q
 *
 * Three kernels (kernels/flash_*.cu). Each keeps scores as the matrix fragments that products leave, and hands
 * them to the next product.
 *
 *     OUTPUT    a block takes queries of a head and goes over keys; L is of its rows. It leaves a bit for each score,
 *     set
 *               where it is stored, which the gradients read: a draw costs more than they do
 *     QUERIES   the same way; R first, which it leaves with L in base 2
 *     KEYS      a block takes keys and goes over queries, of all heads that share these keys; after QUERIES
 *
 * The gradients' seven products are two more than there have to be: nothing is added up in memory, so the same call
 * gives the same bits. */
#ifndef GC_FLASH_KERNELS_H
#define GC_FLASH_KERNELS_H

#include "cudnn/attention_graphs.h"
#include "kit/loops/loop.h"

enum { GC_OWN_OUTPUT, GC_OWN_QUERIES, GC_OWN_KEYS, GC_OWN_N_KINDS };

/* How the work is cut: rows of a warp in sixteens; warps of a block; what is held in registers is read once. */
typedef struct gc_own_cut {
  int32_t sixteens, warps, resident; /* resident: blocks of a multiprocessor */
  int32_t tile;                      /* rows that pass by at once: 64 (OUTPUT, QUERIES), 32 or 64 (KEYS) */
  int32_t is_held;                   /* whether the block's own rows are */
  int32_t unrolled;                  /* QUERIES, KEYS: sixteens of a tile that are written out; 0: all */
} gc_own_cut_t;

typedef struct gc_own_attention {
  gc_attention_t call; /* no bias; keep_dtype: not 0: probabilities are dropped */
  uint32_t n_kept;     /* a probability is stored where its drawn word's upper 24 bits are less */
  gc_own_cut_t cut[GC_OWN_N_KINDS];
  int32_t kind; /* of the kernel that is printed */
} gc_own_attention_t;

/* Pointers of a kernel, in their order. SEED, OFFSET: int64, in memory; DRAW: a number. BITS: see gc_own_bits_nbytes.
 *
 *     OUTPUT    Q K V O STATS BITS SEED OFFSET DRAW
 *     QUERIES   Q K V O STATS GO BITS GQ ROWS
 *     KEYS      Q K V GO ROWS BITS GK GV */
enum { GC_OWN_N_POINTERS = 9 };

/* Widths of 64 and 128, a positive scale, rows at multiples of 16 bytes. */
int gc_own_takes(const gc_attention_t *a);
/* Sets how the work is cut. */
void gc_own_choose(gc_own_attention_t *o);
void gc_own_launch(const gc_own_attention_t *o, uint32_t *out_blocks, uint32_t *out_threads, uint32_t *out_shared);
int gc_own_n_pointers(const gc_own_attention_t *o);
/* Bits of probabilities that are stored: [batch, head, query, 64 keys] of two words, of which bit 4 i + j of word w is
 * key
 * 8 i + 4 w + j's. Rows: float32, R / (keep scale) of [batch, head, query], then L in base 2. */
uint64_t gc_own_bits_nbytes(const gc_attention_t *a);
uint64_t gc_own_rows_nbytes(const gc_attention_t *a);
/* self: gc_own_attention_t */
void gc_print_own_attention(const void *self, const char *name, lp_text_t *out);

#endif
