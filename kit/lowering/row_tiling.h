/* A wide result that is produced and consumed row by row is computed in tiles of rows.
 *
 *     %scores = linear %x, %w          32,768 rows of 50,304 halves: 3 GiB
 *     %loss, %g = ..                   a loop: the loss of all rows; a gradient, rows on rows
 *     %dx = mm %g, %w                  keeps the rows
 *     %dw = mm (t %g), %x              sums over them
 *
 * becomes, per tile of 4,096 rows, these four on slices: inputs with rows (%x) are views, values that only the chain
 * reads (%scores, %g) get the memory of one tile, values with other readers (%dx) are written to their slice of the
 * whole, and sums over rows (%loss, %dw) accumulate, those of matmuls in place. Sums of f16 and bf16 accumulate in f32.
 *
 * A chain starts with a matmul, continues through views and loops while their results are about as wide, and ends with
 * matmuls. It runs where its last node is, or just before the first reader of its results, so its inputs exist. Each
 * tile is lowered by the ordinary lowerings, with the types of a slice. O(nodes) per chain; one chain per large matmul.
 *
 * The idea for losses: P.-L. Hsu et al., Liger Kernel, 2024 (FusedLinearCrossEntropy). */
#ifndef LW_ROW_TILING_H
#define LW_ROW_TILING_H

#include "schedule_items.h"

enum { /* of a value in a chain, by what it is there */
       LW_ROWS_NOT_SEEN,
       LW_ROWS_FIXED,  /* comes from outside and has no rows */
       LW_ROWS_GIVEN,  /* comes from outside, in slices */
       LW_ROWS_COPIED, /* a loop makes it for itself */
       LW_ROWS_INNER,  /* made in slices that only the chain reads */
       LW_ROWS_OUTER,  /* made in slices that others read as one */
       LW_ROWS_SUM,    /* over the rows */
       LW_ROWS_BEHIND  /* a view of what the chain gives */
};
enum { LW_NO_ROWS = AOT_MAX_RANK };

typedef struct lw_chain_part { /* a value of a chain */
  uint32_t row;
  uint8_t role, dim; /* the dimension that the rows are */
  lw_tensor_t whole; /* while the chain is lowered: as it is outside; of a sum, what has been added */
  lw_tensor_t *place;
} lw_chain_part_t;

typedef struct lw_chain {
  struct lw_chain *next;
  uint32_t at;                /* it is lowered before the unit at that place */
  uint32_t *units, n_units;   /* last nodes */
  uint32_t *behind, n_behind; /* views of what it gives, which stand among them: lowered when it has run */
  lw_chain_part_t *parts;
  uint32_t n_parts;
  int64_t n_rows, chunk_rows; /* of the value that counts fewest */
} lw_chain_t;

struct lw_chunks {
  lw_chain_t *chains; /* in the order that they were found in: those that begin earlier first */
  uint8_t *is_taken;  /* by last node of a unit */
};

aot_status_t lw_find_chunks(lw_build_t *b, const lw_units_t *units); /* b->chunks; once places are found */
int lw_has_chunks(const lw_build_t *b);                              /* were chains found? */
int lw_is_chunked(const lw_build_t *b, uint32_t last);               /* is the unit with that last node in one? */
/* Chains that run before the unit at that place (row_tile_steps.c). LW_DECLINED: the graph is to be lowered without
 * chunks. */
aot_status_t lw_lower_chunks(lw_build_t *b, const lw_units_t *units, uint32_t at);

typedef struct lw_product_form { /* arguments */
  const char *op;
  uint32_t x, y, addend; /* LW_NONE: it has none */
} lw_product_form_t;
const lw_product_form_t *lw_product_form_of(const lw_build_t *b); /* of b->node; NULL: it is no product */

/* The view's dimension that goes through memory as the operand's rows do, from the same element on; LW_NO_ROWS:
 * none. */
int32_t lw_rows_of_view(const lw_tensor_t *of, int32_t dim, const lw_tensor_t *view);

#endif
