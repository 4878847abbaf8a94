/* Life of a program. */
#include <ir/program.h>

#include <aot/assert.h>
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
  AOT_ASSERT(!graph_is_alive(p, NONE) && !node_is_alive(p, NONE) && !value_is_alive(p, NONE));
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
  p->print_node = aoth_print_node;
  p->print_call = aoth_print_call;
  p->no_ctx.prog = p;
  p->no_ctx.last_node = NONE;
  p->graph_arena = kit_arena_create();
  p->store = kit_arena_create();
  p->generation = 1;
  if (!p->graph_arena || !p->store || !put_empty_rows(p)) {
    aoth_prog_destroy(p);
    return NULL;
  }
  AOT_ASSERT(aoth_prog_is_empty(p));
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
  free(p->guards.at);
  free(p->facts.at);
  free(p->unbacked.at);
  kit_map_deinit(&p->type_index);
  kit_map_deinit(&p->ints_index);
  kit_map_deinit(&p->origin_index);
  kit_map_deinit(&p->encoding_index);
  kit_map_deinit(&p->expr_index);
  free(p->edits.at);
  free(p->marks.at);
  free(p->snapshot);
  free(p->model);
  kit_arena_destroy(p->graph_arena);
  kit_arena_destroy(p->store);
  free(p);
}

void aoth_prog_ctx(aot_prog_t *p, aot_ctx_t *ctx) { p->ctx = ctx ? ctx : &p->no_ctx; }
kit_arena_t *aoth_prog_arena(aot_prog_t *p) { return p->graph_arena; }
aoth_ops_t *aoth_prog_ops(aot_prog_t *p) { return p->ops; }
aoth_properties_t aoth_prog_properties(aot_prog_t *p) { return p->properties; }

aot_status_t aoth_prog_set_properties(aot_prog_t *p, aoth_properties_t properties) {
  aot_str_t *names = kit_arena_alloc(p->store, 8, ((size_t)properties.n_named + 1) * sizeof *names);
  for (uint32_t i = 0; names && i < properties.n_named; i++) {
    names[i] = aoth_store_text(p, properties.named[i]);
    if (!names[i].data) names = NULL;
  }
  if (!names) return aoth_no_memory(p, "the properties of a program", properties.n_named * sizeof *names);
  p->properties = (aoth_properties_t){properties.known, properties.n_named, names};
  return AOT_OK;
}

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
