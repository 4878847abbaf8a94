#include <device/hetero/hetero_layout.h>

#include <aot/assert.h>
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

/* Blocks that are free again wait by size, of which there are eight to a power of two (Wilson et al., Dynamic storage
 * allocation: segregated free lists); so a layout is linear in the cells. */
enum { N_SIZES = 64 * 8 + 16 };

typedef struct layout_builder {
  const aoth_part_graph_t *g;
  aoth_parts_layout_t *l;
  uint8_t *is_lone; /* by cell: nothing else ever is there */
  uint32_t *next;   /* by cell: lists through them */
  uint32_t *dies;   /* by part: cells that are read for the last time */
  uint32_t (*free_blocks)[N_SIZES];
} layout_builder_t;

int64_t aoth_parts_dim(const aoth_parts_layout_t *l, int64_t d) {
  return AOT_DIM_IS_SYM(d) ? l->exprs[AOT_DIM_EXPR(d)] : d;
}

static uint64_t nbytes_of(const aoth_parts_layout_t *l, const aot_type_t *t) {
  int64_t last = aoth_parts_dim(l, t->offset);
  if (t->kind != AOT_TYPE_TENSOR) return sizeof(int64_t); /* at most: a number */
  for (int32_t d = 0; d < t->rank; d++) {
    const int64_t size = aoth_parts_dim(l, t->sizes[d]);
    if (size <= 0) return 0;
    last += (size - 1) * aoth_parts_dim(l, t->strides[d]);
  }
  return ((uint64_t)last + 1) * aot_dtype_size(t->dtype);
}

/* The size class, and its size: at most an eighth more. */
static uint32_t size_class(uint64_t nbytes, uint64_t *out) {
  uint64_t units = (nbytes + AOTH_PARTS_ALIGNMENT - 1) / AOTH_PARTS_ALIGNMENT;
  uint32_t shift = 0;
  while (units >> shift >= 16) shift++;
  const uint64_t step = (uint64_t)1 << shift;
  units = (units + step - 1) / step;
  if (units == 16) units = 8, shift++;
  *out = (units << shift) * AOTH_PARTS_ALIGNMENT;
  const uint32_t size = shift * 8 + (uint32_t)(units & 7) + (units >= 8 ? 8 : 0);
  AOT_ASSERT(size < N_SIZES);
  return size;
}

static void place(const layout_builder_t *p, uint32_t cell) {
  const aoth_part_cell_t *c = &p->g->cells[cell];
  uint64_t nbytes;
  const uint32_t size = size_class(p->l->nbytes[cell], &nbytes);
  const uint32_t block = p->is_lone[cell] ? AOTH_NO_PLACE : p->free_blocks[c->lane][size];
  AOT_ASSERT(c->first <= c->last && c->last < p->g->n_parts);
  AOT_ASSERT(block == AOTH_NO_PLACE || (p->g->cells[block].lane == c->lane && p->g->cells[block].last < c->first));
  if (block != AOTH_NO_PLACE) p->free_blocks[c->lane][size] = p->next[block];
  p->l->at[cell] = block != AOTH_NO_PLACE ? p->l->at[block] : p->l->end[c->lane];
  if (block == AOTH_NO_PLACE) p->l->end[c->lane] += nbytes;
  if (p->is_lone[cell]) return;
  p->next[cell] = p->dies[c->last];
  p->dies[c->last] = cell;
}

/* Parts in order: what is made takes a block, what was read for the last time gives its own back. */
static void place_all(const layout_builder_t *p) {
  uint32_t c = 0;
  for (uint32_t part = 0; part < p->g->n_parts; part++) {
    for (; c < p->g->n_cells && p->g->cells[c].first == part; c++) /* they are in the order of their parts */
      if (p->g->cells[c].leaf == AOT_NO_ID) place(p, c);
    for (uint32_t d = p->dies[part], then; d != AOTH_NO_PLACE; d = then) {
      uint64_t nbytes;
      uint32_t *blocks = &p->free_blocks[p->g->cells[d].lane][size_class(p->l->nbytes[d], &nbytes)];
      then = p->next[d];
      p->next[d] = *blocks;
      *blocks = d;
    }
  }
  AOT_ASSERT(c == p->g->n_cells);
}

/* The host's memory is written and read by the queues of other devices, which do not keep to the order of its parts. */
static void find_lone(const layout_builder_t *p, const aoth_multi_queue_t *lanes) {
  const uint32_t n_ports = p->g->n_inputs + p->g->n_outputs;
  for (uint32_t m = 0; m < p->g->n_moves; m++) {
    const aoth_part_move_t *move = &p->g->moves[m];
    if (move->from >= n_ports && lanes->lane[move->from_lane].is_host) p->is_lone[move->from - n_ports] = 1;
    if (move->to >= n_ports && lanes->lane[move->to_lane].is_host) p->is_lone[move->to - n_ports] = 1;
  }
}

void aoth_parts_layout_deinit(aoth_parts_layout_t *l) {
  free(l->exprs);
  free(l->at);
}

aot_status_t aoth_parts_layout_init(aoth_parts_layout_t *l, aot_ctx_t *ctx, aot_prog_t *prog,
                                    const aoth_part_graph_t *g, const aoth_multi_queue_t *lanes,
                                    const aot_graph_at_t *at) {
  const size_t n = (size_t)g->n_cells + 1, n_parts = (size_t)g->n_parts + 1;
  layout_builder_t p = {.g = g,
                        .l = l,
                        .is_lone = calloc(n, 1),
                        .next = malloc((n + n_parts) * sizeof *p.next),
                        .free_blocks = malloc(AOTH_MAX_LANES * sizeof *p.free_blocks)};
  *l = (aoth_parts_layout_t){.exprs = malloc(((size_t)aoth_exprs_count(prog) + 1) * sizeof(int64_t)),
                             .at = malloc(2 * n * sizeof(uint64_t))};
  int64_t *symbols = malloc(((size_t)at->n_symbols + 1) * sizeof *symbols);
  const int is_ready = symbols && p.is_lone && p.next && p.free_blocks && l->exprs && l->at;
  if (is_ready) {
    l->nbytes = l->at + n;
    p.dies = p.next + n;
    memset(p.dies, 0xff, n_parts * sizeof *p.dies);
    memset(p.free_blocks, 0xff, AOTH_MAX_LANES * sizeof *p.free_blocks);
    for (uint64_t i = 0; i < at->n_symbols; i++) /* what a run is yet to report takes no room: it is given its own */
      symbols[i] = at->symbols[i] == AOT_SYMBOL_UNKNOWN ? 0 : at->symbols[i];
    aoth_exprs_eval(prog, symbols, (uint32_t)at->n_symbols, l->exprs);
    for (uint32_t c = 0; c < g->n_cells; c++) l->nbytes[c] = nbytes_of(l, &g->types[g->cells[c].slot]);
    find_lone(&p, lanes);
    place_all(&p);
  }
  free(symbols);
  free(p.is_lone);
  free(p.next);
  free(p.free_blocks);
  if (is_ready) return AOT_OK;
  aoth_parts_layout_deinit(l);
  return aoth_parts_no_memory(ctx);
}
