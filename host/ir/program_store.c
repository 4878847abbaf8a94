/* The growing arrays and hash indexes of a program.
 *
 * Arrays double; indexes are hash tables of row numbers (kit/base/map.h). */
#include "kit/base/vector.h"
#include <ir/program_store.h>

#include <aot/assert.h>
#include <stdlib.h>
#include <string.h>

void aoth_graph_free(aoth_graph_row_t *g) {
  free(g->inputs.at);
  free(g->outputs.at);
  free(g->output_slots.at);
  memset(g, 0, sizeof *g);
}

int aoth_rows_grow(void **at, uint32_t *capacity, uint32_t n, size_t more, size_t row_size) {
  AOT_ASSERT(n <= *capacity);
  if (more > UINT32_MAX / 2 - n) return 0; /* the top bit of an id is ours */
  void *grown = kit_grow(*at, capacity, n + more, row_size);
  if (grown) *at = grown;
  return grown != NULL;
}

uint64_t aoth_prog_nbytes(aot_prog_t *p) {
  uint64_t n = sizeof *p + kit_arena_nbytes(p->store);
#define ROWS_NBYTES(rows) n += (uint64_t)p->rows.capacity * sizeof *p->rows.at
  ROWS_NBYTES(graphs);
  ROWS_NBYTES(nodes);
  ROWS_NBYTES(values);
  ROWS_NBYTES(slots);
  ROWS_NBYTES(types);
  ROWS_NBYTES(ints);
  ROWS_NBYTES(names);
  ROWS_NBYTES(leaves);
  ROWS_NBYTES(rules);
  ROWS_NBYTES(origins);
  ROWS_NBYTES(encodings);
  ROWS_NBYTES(symbols);
  ROWS_NBYTES(exprs);
  ROWS_NBYTES(edits);
#undef ROWS_NBYTES
  const kit_map_t *indexes[] = {&p->type_index, &p->ints_index, &p->origin_index, &p->encoding_index, &p->expr_index};
  for (size_t i = 0; i < sizeof indexes / sizeof *indexes; i++)
    n += (uint64_t)indexes[i]->capacity * sizeof(kit_map_cell_t);
  for (uint32_t g = 1; g < p->graphs.n; g++)
    n += (uint64_t)(p->graphs.at[g].inputs.capacity + p->graphs.at[g].outputs.capacity) * sizeof(aot_port_t);
  return n;
}

aot_status_t aoth_no_memory(aot_prog_t *p, const char *what, uint64_t nbytes) {
  p->lacked_memory = 1;
  return aoth_diagnose(p, AOT_E_EXHAUSTED, "ir.no-memory",
                       "no memory for %s (%llu bytes asked; the program holds %llu bytes, %u nodes)", what,
                       (unsigned long long)nbytes, (unsigned long long)aoth_prog_nbytes(p), (unsigned)p->nodes.n - 1);
}

aot_str_t aoth_store_text(aot_prog_t *p, aot_str_t s) {
  aot_str_t copy = {NULL, s.size};
  if (s.size) copy.data = kit_arena_text(p->store, s.data, (size_t)s.size);
  return copy;
}
