/* A chain as steps, a chunk of rows after the other (row_tiling.h). */
#include "row_tiling.h"

#include <aot/assert.h>

#include "group_member.h"

static const aot_snap_node_t *node_at(const lw_build_t *b, uint32_t i) {
  return AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin + i;
}

/* Of a value with rows along that dimension: those from `begin` on, in counts of the chain. */
static lw_tensor_t slice(const lw_chain_t *c, const lw_chain_part_t *p, const lw_tensor_t *whole, int64_t begin,
                         int64_t n) {
  const int64_t factor = whole->sizes[p->dim] / c->n_rows;
  AOT_ASSERT(p->dim < whole->rank && whole->sizes[p->dim] % c->n_rows == 0);
  AOT_ASSERT(begin >= 0 && n > 0 && begin + n <= c->n_rows);
  lw_tensor_t t = *whole;
  t.sizes[p->dim] = n * factor;
  t.offset += begin * factor * whole->strides[p->dim];
  return t;
}

/* Memory for what is there when all chunks have been. */
static aot_status_t begin_part(lw_build_t *b, lw_chain_part_t *p) {
  const lw_value_t *v = lw_value(b, p->row);
  p->whole = v->t;
  p->place = b->places[p->row - b->value_begin];
  if (p->role < LW_ROWS_OUTER) return AOT_OK;
  if (p->role == LW_ROWS_OUTER && p->place) {
    p->whole = *p->place;
    return AOT_OK;
  }
  if (p->role == LW_ROWS_SUM && lw_is_half(&p->whole)) p->whole.dtype = AOT_F32;
  lw_result_geometry(&p->whole);
  if (p->role == LW_ROWS_SUM) lw_make_contiguous(&p->whole);
  return lw_new_tensor(b, &p->whole);
}

/* The chain's values as they are for one chunk: declared, and with places. */
static aot_status_t begin_chunk(lw_build_t *b, lw_chain_t *c, int64_t begin, int64_t n) {
  for (uint32_t k = 0; k < c->n_parts; k++) {
    lw_chain_part_t *p = &c->parts[k];
    lw_tensor_t *t = &lw_value(b, p->row)->t, **place = &b->places[p->row - b->value_begin];
    if (p->role == LW_ROWS_SUM) {
      *t = p->whole;
      t->storage = LW_NONE;
      continue;
    }
    *t = slice(c, p, &p->whole, begin, n);
    if (p->role != LW_ROWS_INNER && p->role != LW_ROWS_OUTER) continue;
    t->offset = p->whole.offset;
    t->storage = LW_NONE;
    *place = NULL;
    if (p->role == LW_ROWS_INNER && !p->place) continue;
    *place = lw_pool_alloc(b->pool, sizeof **place);
    if (!*place) return lw_no_memory(b->error, "for the schedule");
    **place = p->role == LW_ROWS_OUTER ? slice(c, p, &p->whole, begin, n) : slice(c, p, p->place, 0, n);
    if (p->role == LW_ROWS_INNER) AOT_TRY(lw_new_tensor(b, *place));
  }
  return AOT_OK;
}

static lw_chain_part_t *part_of(const lw_chain_t *c, uint32_t row) {
  for (uint32_t k = 0; k < c->n_parts; k++)
    if (c->parts[k].row == row) return &c->parts[k];
  return NULL;
}

/* A view of all rows, of which it is a slice as its operand is. */
static aot_status_t lower_view(lw_build_t *b, const lw_chain_t *c, int64_t n) {
  const lw_chain_part_t *of = part_of(c, lw_arg_row(b, 0)), *p = part_of(c, b->node->result_begin);
  lw_tensor_t whole = *lw_arg_tensor(b, 0), view;
  const uint32_t storage = whole.storage;
  AOT_ASSERT(of && p && of->dim < whole.rank);
  whole.sizes[of->dim] = of->whole.sizes[of->dim];
  AOT_TRY(lw_new_tensor(b, &whole)); /* the view determines what it sees of it; what no step uses takes no memory */
  if (!lw_see(b, &whole, &view) || lw_rows_of_view(&whole, of->dim, &view) != p->dim) return LW_DECLINED;
  view = slice(c, p, &view, 0, n);
  view.storage = storage;
  lw_bind(b, 0, &view);
  return AOT_OK;
}

static aot_status_t lower_part(lw_build_t *b, const lw_chain_t *c, const lw_units_t *units, uint32_t last,
                               int64_t begin, int64_t n) {
  b->node = node_at(b, last);
  lw_find_unit(b, units, last);
  if (b->group[last] != LW_NONE) return lw_lower_unit(b, units->unit);
  if (!lw_product_form_of(b)) return lower_view(b, c, n);
  const lw_chain_part_t *p = part_of(c, b->node->result_begin);
  AOT_ASSERT(p);
  if (p->role != LW_ROWS_SUM) return lw_lower_unit(b, units->unit);
  const lw_product_form_t *form = lw_product_form_of(b);
  const lw_tensor_t x = *lw_arg_tensor(b, form->x), y = *lw_arg_tensor(b, form->y);
  return b->machine->target->product(b, &x, &y, begin ? &p->whole : NULL, &p->whole, 1, begin != 0);
}

/* What a chunk has given goes to where it belongs, unless it was made there. */
static aot_status_t end_chunk(lw_build_t *b, lw_chain_t *c, int64_t begin, int64_t n) {
  for (uint32_t k = 0; k < c->n_parts; k++) {
    const lw_chain_part_t *p = &c->parts[k];
    lw_tensor_t *t = &lw_value(b, p->row)->t;
    if (p->role == LW_ROWS_GIVEN || p->role == LW_ROWS_COPIED) *t = p->whole;
    if (p->role < LW_ROWS_OUTER || t->storage == LW_NONE) continue; /* nothing reads it; or a product has added it */
    b->node = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + AOT_SNAP_ROWS(b->s, aot_snap_value_t, values)[p->row].def;
    const lw_tensor_t made = *t, to = p->role == LW_ROWS_OUTER ? slice(c, p, &p->whole, begin, n) : p->whole;
    if (p->role == LW_ROWS_OUTER && made.storage == to.storage) continue;
    if (p->role == LW_ROWS_SUM && begin) AOT_TRY(b->machine->target->add(b, &to, &made));
    else AOT_TRY(lw_copy(b, &to, &made));
  }
  return AOT_OK;
}

static aot_status_t bind_results(lw_build_t *b, lw_chain_t *c) {
  const aot_snap_value_t *values = AOT_SNAP_ROWS(b->s, aot_snap_value_t, values);
  for (uint32_t k = 0; k < c->n_parts; k++) {
    lw_chain_part_t *p = &c->parts[k];
    b->places[p->row - b->value_begin] = p->place;
    if (p->role < LW_ROWS_OUTER) continue;
    lw_tensor_t result = p->whole;
    result.dtype = values[p->row].dtype;
    b->node = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + values[p->row].def;
    if (result.dtype != p->whole.dtype) {
      AOT_TRY(lw_new_tensor(b, &result));
      AOT_TRY(lw_copy(b, &result, &p->whole));
    }
    lw_bind(b, p->row - b->node->result_begin, &result);
  }
  return AOT_OK;
}

/* The number that losses of classes are scaled by is that of all rows: it is there before the first chunk. */
static aot_status_t count_classes(lw_build_t *b, const lw_chain_t *c, const lw_units_t *units) {
  if (!b->class_numbers) b->class_numbers = lw_pool_alloc(b->pool, ((uint64_t)b->graph->n_nodes + 1) * sizeof(void *));
  if (!b->class_numbers) return lw_no_memory(b->error, "for the schedule");
  for (uint32_t u = 0; u < c->n_units; u++) {
    if (b->group[c->units[u]] == LW_NONE) continue;
    lw_find_unit(b, units, c->units[u]);
    for (uint32_t k = 0; k < units->unit->n; k++) {
      const uint32_t node = units->unit->nodes[k];
      lw_member_t m;
      b->node = node_at(b, node);
      if (!lw_member(b, &m) || !m.rows || !m.rows->class_at) continue;
      lw_tensor_t *number = b->class_numbers[node] = lw_pool_alloc(b->pool, sizeof *number);
      if (!number) return lw_no_memory(b->error, "for the schedule");
      AOT_TRY(b->machine->target->classes(b, m.rows->class_at, lw_arg_tensor(b, m.rows->of)->sizes[1], number));
    }
  }
  return AOT_OK;
}

static aot_status_t lower_chain(lw_build_t *b, lw_chain_t *c, const lw_units_t *units) {
  AOT_TRY(count_classes(b, c, units));
  for (uint32_t k = 0; k < c->n_parts; k++) AOT_TRY(begin_part(b, &c->parts[k]));
  for (int64_t begin = 0; begin < c->n_rows; begin += c->chunk_rows) {
    const int64_t n = c->chunk_rows < c->n_rows - begin ? c->chunk_rows : c->n_rows - begin;
    AOT_TRY(begin_chunk(b, c, begin, n));
    for (uint32_t u = 0; u < c->n_units; u++) AOT_TRY(lower_part(b, c, units, c->units[u], begin, n));
    AOT_TRY(end_chunk(b, c, begin, n));
    b->out->n_chunks++;
  }
  AOT_TRY(bind_results(b, c));
  for (uint32_t k = 0; k < c->n_behind; k++) {
    lw_find_unit(b, units, c->behind[k]);
    AOT_TRY(lw_lower_unit(b, units->unit));
  }
  return AOT_OK;
}

aot_status_t lw_lower_chunks(lw_build_t *b, const lw_units_t *units, uint32_t at) {
  for (lw_chain_t *c = b->makes_chunks && b->chunks ? b->chunks->chains : NULL; c; c = c->next)
    if (c->at == at) AOT_TRY(lower_chain(b, c, units));
  return AOT_OK;
}
