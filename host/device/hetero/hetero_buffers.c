#include <device/hetero/hetero_buffers.h>

#include <aot/assert.h>
#include <device/hetero/hetero.h>
#include <stdlib.h>

aot_status_t aoth_parts_memory_init(aoth_parts_memory_t *m, aot_ctx_t *ctx, const aoth_multi_queue_t *lanes,
                                    uint32_t n_leaves, kit_arena_t *arena) {
  *m = (aoth_parts_memory_t){.lanes = lanes, .n_leaves = n_leaves};
  m->versions = kit_arena_alloc(arena, sizeof(uint64_t), ((size_t)n_leaves + 1) * sizeof *m->versions);
  m->copies = kit_arena_alloc(arena, sizeof(void *), ((size_t)lanes->n * n_leaves + 1) * sizeof *m->copies);
  return m->versions && m->copies ? AOT_OK : aoth_parts_no_memory(ctx);
}

void aoth_parts_memory_drop(const aoth_parts_memory_t *m, aoth_parts_block_t *b) {
  if (!b) return;
  AOT_ASSERT(b->n_owners > 0 && b->lane < m->lanes->n);
  if (--b->n_owners) return;
  aoth_queue_t *q = m->lanes->lane[b->lane].queue;
  aoth_queue_idle(q);
  if (b->buffer.address) aoth_queue_free(q, b->buffer);
  free(b);
}

void aoth_parts_memory_clear(aoth_parts_memory_t *m) {
  for (uint32_t lane = 1; lane < AOTH_MAX_LANES; lane++) {
    aoth_parts_memory_drop(m, m->arenas[lane]);
    m->arenas[lane] = NULL;
  }
  for (uint64_t i = 0; i < (uint64_t)m->lanes->n * m->n_leaves; i++) {
    aoth_parts_memory_drop(m, m->copies[i].block);
    m->copies[i] = (aoth_parts_copy_t){0};
  }
}

/* The slot keeps it, too. */
static aot_status_t have_block(const aoth_parts_memory_t *m, aot_ctx_t *ctx, uint32_t lane, uint64_t nbytes,
                               aoth_parts_block_t **slot, aoth_parts_block_t **out) {
  if (!*slot || (*slot)->buffer.nbytes < nbytes) {
    aoth_parts_block_t *b = calloc(1, sizeof *b);
    if (!b) return aoth_parts_no_memory(ctx);
    *b = (aoth_parts_block_t){.lane = lane, .n_owners = 1};
    const aot_status_t status = aoth_queue_alloc(m->lanes->lane[lane].queue, nbytes, &b->buffer);
    if (status != AOT_OK) {
      free(b);
      return status;
    }
    aoth_parts_memory_drop(m, *slot);
    *slot = b;
  }
  (*slot)->n_owners++;
  *out = *slot;
  return AOT_OK;
}

aot_status_t aoth_parts_memory_arena(aoth_parts_memory_t *m, aot_ctx_t *ctx, uint32_t lane, uint64_t nbytes,
                                     aoth_parts_block_t **out) {
  AOT_ASSERT(lane > 0 && lane < m->lanes->n); /* the arena of lane 0 is the call's */
  return have_block(m, ctx, lane, nbytes, &m->arenas[lane], out);
}

static aoth_parts_copy_t *copy_of(const aoth_parts_memory_t *m, uint32_t leaf, uint32_t lane) {
  AOT_ASSERT(leaf < m->n_leaves && lane < m->lanes->n);
  return &m->copies[(uint64_t)lane * m->n_leaves + leaf];
}

aot_status_t aoth_parts_memory_copy(aoth_parts_memory_t *m, aot_ctx_t *ctx, uint32_t leaf, uint32_t lane,
                                    uint64_t nbytes, aoth_parts_block_t **out) {
  aoth_parts_copy_t *copy = copy_of(m, leaf, lane);
  const aoth_parts_block_t *before = copy->block;
  AOT_TRY(have_block(m, ctx, lane, nbytes, &copy->block, out));
  if (copy->block != before) copy->version = 0;
  return AOT_OK;
}

int aoth_parts_memory_is_due(aoth_parts_memory_t *m, uint32_t leaf, uint32_t lane) {
  aoth_parts_copy_t *copy = copy_of(m, leaf, lane);
  const uint64_t version = m->versions[leaf], n_failures = m->lanes->n_failures;
  if (version && copy->version == version && copy->n_failures == n_failures) return 0;
  copy->version = version;
  copy->n_failures = n_failures;
  return 1;
}
