/* Life of a program, its growing arrays and its hash indexes.
 *
 * Arrays double; indexes are open addressing with linear probing, at most half full. An index holds row numbers only,
 * and rows leave it newest first (undo), so that a removal can simply empty its cell: no later key was probed past
 * it. */
#include <ir/program_store.h>
#include <stdlib.h>
#include <string.h>

#define EMPTY_ROW(rows) (ROWS_ROOM(rows, 1) && memset(&(rows).at[(rows).n++], 0, sizeof *(rows).at))

/* Row 0 of every array whose rows have ids: what AOT_NO_ID names. */
static int put_empty_rows(aot_prog_t *p) {
  if (!EMPTY_ROW(p->graphs) || !EMPTY_ROW(p->nodes) || !EMPTY_ROW(p->values) || !EMPTY_ROW(p->slots) ||
      !EMPTY_ROW(p->types) || !EMPTY_ROW(p->ints) || !EMPTY_ROW(p->names) || !EMPTY_ROW(p->leaves) ||
      !EMPTY_ROW(p->origins) || !EMPTY_ROW(p->encodings) || !EMPTY_ROW(p->exprs))
    return 0;
  p->values.at[0].type = VALUE_DEAD;
  return 1;
}

int aoth_prog_is_empty(const aot_prog_t *p) {
  return p->graphs.n == 1 && p->leaves.n == 1 && p->origins.n == 1 && p->encodings.n == 1 && p->exprs.n == 1 &&
         !p->rules.n && !p->symbols.n;
}

aot_prog_t *aoth_prog_create(aoth_ops_t *ops, aot_ctx_t *ctx) {
  aot_prog_t *p = calloc(1, sizeof *p);
  if (!p) return NULL;
  p->ops = ops;
  p->ctx = ctx ? ctx : &p->no_ctx;
  p->no_ctx.prog = p;
  p->no_ctx.last_node = NONE;
  p->graph_arena = aoth_arena_create();
  p->store = aoth_arena_create();
  p->generation = 1;
  if (!p->graph_arena || !p->store || !put_empty_rows(p)) {
    aoth_prog_destroy(p);
    return NULL;
  }
  return p;
}

void aoth_prog_destroy(aot_prog_t *p) {
  if (!p) return;
  for (uint32_t g = 1; g < p->graphs.n; g++) aoth_graph_free(&p->graphs.at[g]);
  free(p->graphs.at);
  free(p->nodes.at);
  free(p->values.at);
  free(p->slots.at);
  free(p->types.at);
  free(p->ints.at);
  free(p->names.at);
  free(p->leaves.at);
  free(p->rules.at);
  free(p->origins.at);
  free(p->encodings.at);
  free(p->symbols.at);
  free(p->exprs.at);
  free(p->type_index.cells);
  free(p->ints_index.cells);
  free(p->origin_index.cells);
  free(p->encoding_index.cells);
  free(p->expr_index.cells);
  free(p->edits.at);
  free(p->marks.at);
  free(p->snapshot);
  free(p->model);
  aoth_arena_destroy(p->graph_arena);
  aoth_arena_destroy(p->store);
  free(p);
}

void aoth_graph_free(graph_row_t *g) {
  free(g->inputs.at);
  free(g->outputs.at);
  free(g->output_slots.at);
  memset(g, 0, sizeof *g);
}

void aoth_prog_ctx(aot_prog_t *p, aot_ctx_t *ctx) { p->ctx = ctx ? ctx : &p->no_ctx; }
aoth_arena_t *aoth_prog_arena(aot_prog_t *p) { return p->graph_arena; }
aoth_ops_t *aoth_prog_ops(aot_prog_t *p) { return p->ops; }
uint32_t aoth_prog_properties(aot_prog_t *p) { return p->properties; }
void aoth_prog_set_properties(aot_prog_t *p, uint32_t properties) { p->properties = properties; }
uint64_t aoth_prog_generation(aot_prog_t *p) { return p->generation; }
const char *aoth_prog_model(aot_prog_t *p) { return p->model; }

void aoth_prog_map_nodes(aot_prog_t *p, const uint32_t *at, uint32_t n) {
  p->node_map = at;
  p->n_node_map = n;
}

void aoth_prog_set_model(aot_prog_t *p, const char *path) {
  free(p->model);
  p->model = path ? strdup(path) : NULL;
}

uint64_t aoth_prog_nbytes(aot_prog_t *p) {
  uint64_t n = sizeof *p + aoth_arena_nbytes(p->store);
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
  const aoth_index_t *indexes[] = {&p->type_index, &p->ints_index, &p->origin_index, &p->encoding_index,
                                   &p->expr_index};
  for (size_t i = 0; i < sizeof indexes / sizeof *indexes; i++) n += (uint64_t)indexes[i]->capacity * sizeof(uint32_t);
  for (uint32_t g = 1; g < p->graphs.n; g++)
    n += (uint64_t)(p->graphs.at[g].inputs.capacity + p->graphs.at[g].outputs.capacity) * sizeof(aot_port_t);
  return n;
}

int aoth_rows_grow(void **at, uint32_t *capacity, uint32_t n, size_t more, size_t row_size) {
  size_t wanted = (size_t)*capacity * 2;
  if (wanted < 8) wanted = 8;
  if (wanted < n + more) wanted = n + more;
  if (wanted > UINT32_MAX / 2) wanted = UINT32_MAX / 2; /* the top bit of an id is ours */
  if (wanted < n + more || wanted > SIZE_MAX / row_size) return 0;
  void *grown = realloc(*at, wanted * row_size);
  if (!grown) return 0;
  *at = grown;
  *capacity = (uint32_t)wanted;
  return 1;
}

aot_status_t aoth_no_memory(aot_prog_t *p, const char *what, uint64_t nbytes) {
  p->lacked_memory = 1;
  return aoth_complain(p, AOT_E_EXHAUSTED, "ir.no-memory",
                       "no memory for %s (%llu bytes asked; the program holds %llu bytes, %u nodes)", what,
                       (unsigned long long)nbytes, (unsigned long long)aoth_prog_nbytes(p), (unsigned)p->nodes.n - 1);
}

aot_str_t aoth_store_text(aot_prog_t *p, aot_str_t s) {
  aot_str_t copy = {NULL, s.size};
  if (s.size) copy.data = aoth_arena_text(p->store, s.data, (size_t)s.size);
  return copy;
}

uint32_t aoth_index_find(const aot_prog_t *p, const aoth_index_t *x, uint32_t hash, aoth_same_t same, const void *key) {
  if (!x->capacity) return NONE;
  uint32_t mask = x->capacity - 1;
  for (uint32_t at = hash & mask; x->cells[at]; at = (at + 1) & mask)
    if (same(p, x->cells[at], key)) return x->cells[at];
  return NONE;
}

void aoth_index_put(aoth_index_t *x, uint32_t hash, uint32_t row) {
  uint32_t mask = x->capacity - 1, at = hash & mask;
  while (x->cells[at]) at = (at + 1) & mask;
  x->cells[at] = row;
  x->n++;
}

int aoth_index_room(aoth_index_t *x, const aot_prog_t *p, uint32_t (*hash_of)(const aot_prog_t *p, uint32_t row)) {
  if (x->n + 1 <= x->capacity / 2) return 1;
  aoth_index_t grown = {NULL, 0, x->capacity ? x->capacity * 2 : 64};
  if (!grown.capacity || !(grown.cells = calloc(grown.capacity, sizeof *grown.cells))) return 0;
  for (uint32_t row = 1; row <= x->n; row++) aoth_index_put(&grown, hash_of(p, row), row);
  free(x->cells);
  *x = grown;
  return 1;
}

void aoth_index_drop(aoth_index_t *x, uint32_t hash, uint32_t row) {
  uint32_t mask = x->capacity - 1, at = hash & mask;
  while (x->cells[at] && x->cells[at] != row) at = (at + 1) & mask;
  if (!x->cells[at]) return;
  x->cells[at] = 0;
  x->n--;
}
