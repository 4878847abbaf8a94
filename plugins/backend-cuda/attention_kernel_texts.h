/* The kernels of own attention (attention_text.h) as texts, in parts that stand one behind the other. They are written
 * with what matrix_text.h has; sizes, strides and factors have names that attention_text.c prints before them.
 *
 *     attention_tiles_text.c      where blocks, warps and threads stand; tiles of keys that pass by
 *     attention_forward_text.c    OUTPUT
 *     attention_backward_text.c   QUERIES, KEYS */
#ifndef GC_ATTENTION_KERNEL_TEXTS_H
#define GC_ATTENTION_KERNEL_TEXTS_H

/* Every kernel begins with it. */
extern const char gc_attention_threads[];

/* OUTPUT and QUERIES. */
extern const char gc_attention_query_block[]; /* the block's queries, and the tiles of keys that they see */
extern const char gc_attention_first_keys[];  /* the copy of the first tile of K and V */
extern const char gc_attention_next_keys[];   /* the wait for a tile, and the copy of the next */

/* Kernels; NULL behind the last part. */
extern const char *const gc_attention_output[];
extern const char *const gc_attention_queries[];
extern const char *const gc_attention_keys[];

#endif
