/* The journal: what each edit replaced, so that all edits since `begin` can be undone (undo.c), newest first, or
 * removed and made again (redo.c).
 *
 * u[] of each kind, as recorded by edit.c and its neighbours (first column: what undo needs):
 *   graph_create g            graph_erase g             input_add g          input_erase g i   p: the port
 *   output_add g              output_set g i old prev next                   outputs_clear g   p: aoth_saved_outputs_t
 *   node_create n typed       node_erase n              operand_set n operand old prev next
 *   arg_set n arg 0           p: the old argument;      arg_set n arg 1      p: the old row with its body
 *   uses_replace from to count first last               type_set v old       flags_set n old   name_set v old
 *   leaf_part l               p: the old row
 *   leaf_create, rule_add, origin_create, encoding_create, symbol_create, expr_create, guard_add: the newest row of its
 *   array
 *
 * begin nests; commit of an inner begin keeps its records for the outer one. Memory: 32 bytes an edit, and the replaced
 * bodies. The record of an edit has its room before the edit is made; an edit without it is not made, and then the
 * journal is not whole, whatever becomes of the edit's status. */
#include <aot/assert.h>
#include <ir/program_store.h>
#include <ir/redo.h>
#include <stdlib.h>
#include <string.h>

aot_status_t aoth_edit_begin(aot_prog_t *p) {
  if (p->tell) p->tell(p); /* the state is still that right after the last edit */
  if (p->has_journal && !ROWS_ROOM(p->edits, 1)) return aoth_no_memory(p, "the journal", sizeof *p->edits.at);
  p->generation++;
  return AOT_OK;
}

void aoth_edit_record(aot_prog_t *p, uint32_t kind, uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t e,
                      const void *ptr) {
  if (!p->has_journal) return;
  AOT_ASSERT(p->edits.n < p->edits.capacity); /* aoth_edit_begin has made room */
  aoth_edit_row_t row = {.kind = kind, .u = {a, b, c, d, e}, .p = ptr};
  p->edits.at[p->edits.n++] = row;
}

aot_status_t aoth_journal_begin(aot_prog_t *p) {
  AOT_ASSERT((p->has_journal != 0) == (p->marks.n > 0));
  if (!ROWS_ROOM(p->marks, 1)) return aoth_no_memory(p, "the journal", sizeof *p->marks.at);
  if (!p->has_journal) p->lacked_memory = 0;
  p->marks.at[p->marks.n++] = p->edits.n;
  p->has_journal = 1;
  if (!p->tell) return AOT_OK;
  p->tell(p);
  p->listener->begun(p->listener->self);
  return AOT_OK;
}

int aoth_journal_is_whole(const aot_prog_t *p) { return !p->lacked_memory; }

static uint32_t mark_of(const aot_prog_t *p) { return p->marks.n ? p->marks.at[p->marks.n - 1] : p->edits.n; }

uint64_t aoth_journal_count(aot_prog_t *p) {
  AOT_ASSERT(mark_of(p) <= p->edits.n);
  return p->edits.n - mark_of(p);
}

static void end(aot_prog_t *p) {
  if (p->marks.n) p->marks.n--;
  p->has_journal = p->marks.n > 0;
}

void aoth_journal_commit(aot_prog_t *p) {
  if (p->tell) {
    p->tell(p);
    p->listener->kept(p->listener->self);
  }
  end(p);
  if (p->has_journal) return;
  free(p->edits.at); /* of a large program the journal is large; the next stage starts with none */
  memset(&p->edits, 0, sizeof p->edits);
}

/* Frees nothing: after a crash another thread may hold the allocator's lock for good (process/crash.h). */
void aoth_journal_taken(aot_prog_t *p) {
  AOT_ASSERT(p->edits.n == mark_of(p));
  if (p->tell) {
    p->n_heard = p->edits.n;
    p->listener->undone(p->listener->self);
  }
  end(p);
}

const aoth_edit_row_t *aoth_journal_newest(const aot_prog_t *p) {
  return p->edits.n > mark_of(p) ? &p->edits.at[p->edits.n - 1] : NULL;
}
