#include <sandbox/worker_receive.h>

#include "kit/base/vector.h"
#include <aot/inline.h>
#include <ir/cut_check.h>
#include <sandbox/call.h>
#include <sandbox/worker_result.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LAST_SIGNAL 64 /* Linux */

int aoth_letter_check(aoth_crash_report_t *report_slot) {
  report_slot->doing[sizeof report_slot->doing - 1] = 0;
  report_slot->unit[sizeof report_slot->unit - 1] = 0;
  return report_slot->is_written == 1 && report_slot->crash.n_callers <= AOTH_CRASH_CALLERS &&
         report_slot->crash.signal >= 0 && report_slot->crash.signal <= LAST_SIGNAL;
}

aoth_known_t aoth_known_by_both(aoth_session_t *s, aoth_type_numbers_t *types) {
  const uint32_t n_leaves = aoth_graph_n_leaves(s->now.prog);
  aoth_known_t known = {.n = 0, .types = types};
  known.at = kit_arena_alloc(s->arena, sizeof(void *), (s->n_maps + (size_t)n_leaves) * sizeof *known.at);
  for (uint32_t i = 0; known.at && i < s->n_maps; i++)
    known.at[known.n++] = (aoth_span_t){s->maps[i].data, s->maps[i].nbytes};
  for (uint32_t l = 1; known.at && l < n_leaves; l++) {
    aot_leaf_info_t leaf = {.struct_size = sizeof leaf};
    if (aoth_graph_leaf_info(s->now.prog, (aot_leaf_t){l}, &leaf) == AOT_OK && leaf.data)
      known.at[known.n++] = (aoth_span_t){leaf.data, leaf.nbytes};
  }
  return known;
}

/* ---- frames ---- */

/* The contents of a leaf come in one; more than the machine has is none. */
static uint64_t most_of_frame(void) {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / 2 : UINT32_MAX;
}

char *aoth_received_room(aoth_received_t *r, size_t nbytes) {
  char *larger = kit_grow64(r->buffer, &r->capacity, r->size + nbytes, 1);
  r->is_broken |= !larger;
  if (!larger) return NULL;
  r->buffer = larger;
  return r->buffer + r->size;
}

static int is_outcome(const aoth_worker_result_t *result) {
  return result->outcome >= AOTH_CALL_OK && result->outcome <= AOTH_CALL_BROKE;
}

static aot_status_t take_result(aoth_received_t *r, const aoth_worker_result_t *result) {
  aoth_session_t *s = r->s;
  for (uint32_t i = 0; i < result->n_numbers; i++) {
    const aoth_number_t *n = &result->numbers[i];
    if (n->text) aoth_report_text(&s->report, aot_str(n->name), aot_str(n->text));
    else aoth_report_number(&s->report, aot_str(n->name), n->value, aot_str(n->unit));
  }
  for (uint32_t i = 0; i < result->n_env; i++) aoth_report_env(&s->report, result->env[i].name);
  if (result->why_not) s->cache_why_not = kit_arena_text(s->arena, result->why_not, strlen(result->why_not));
  aoth_sink_adopt(s->config.sink, result->told.data, (size_t)result->told.size, result->n_told);
  s->outcome = result->outcome;
  s->last_node = result->last_node;
  s->status = result->status;
  if (result->status == AOT_OK && result->left)
    s->status = aoth_contract_violation(s, r->stage, "left %s", result->left);
  return s->status;
}

static void show_cut(const aoth_received_t *r, const aot_cut_t *cut) {
  const aoth_watch_t *watch = r->s->config.watch;
  if (watch && watch->cut) watch->cut(watch->self, r->s, r->stage, cut);
}

/* 0: it is none. */
static int take_frame(aoth_received_t *r, uint32_t kind, char *bytes, size_t nbytes) {
  aot_prog_t *p = r->s->now.prog;
  kit_wire_t wire = kit_wire_reader(bytes, nbytes);
  aoth_worker_result_t result = {.status = AOT_OK};
  const aoth_edit_t *edit;
  const aot_cut_t *cut;
  switch (kind) {
    case AOTH_FRAME_EDIT:
      edit = aoth_wire_edit(&wire, NULL, r->known, aoth_prog_arena(p));
      return kit_wire_done(&wire) && aoth_edit_replay(p, edit) == AOT_OK;
    case AOTH_FRAME_BEGUN:
      if (aoth_journal_begin(p) != AOT_OK) return 0;
      r->n_open++;
      return 1;
    case AOTH_FRAME_UNDONE:
    case AOTH_FRAME_KEPT:
      if (r->n_open == 0) return 0;
      r->n_open--;
      if (kind == AOTH_FRAME_KEPT) aoth_journal_commit(p);
      else aoth_journal_undo(p);
      return 1;
    case AOTH_FRAME_CUT:
      cut = aoth_wire_cut(&wire, NULL);
      if (!kit_wire_done(&wire) || aoth_cut_wrong(p, cut)) return 0;
      show_cut(r, cut);
      return 1;
    case AOTH_FRAME_RESULT:
      aoth_wire_result(&wire, &result);
      r->has_result = kit_wire_done(&wire) && r->n_open == 0 && is_outcome(&result);
      if (r->has_result) r->status = take_result(r, &result);
      return r->has_result;
    default: return 0;
  }
}

void aoth_received_more(aoth_received_t *r, size_t nbytes) {
  size_t at = 0;
  r->size += nbytes;
  aoth_frame_t frame;
  while (!r->is_broken && !r->has_result && r->size - at >= sizeof frame) {
    memcpy(&frame, r->buffer + at, sizeof frame);
    r->is_broken = frame.nbytes > most_of_frame();
    if (r->is_broken || frame.nbytes > r->size - at - sizeof frame) break; /* the rest is to come */
    at += sizeof frame;
    r->is_broken = frame.nbytes % 8 || !take_frame(r, frame.kind, r->buffer + at, (size_t)frame.nbytes);
    at += (size_t)frame.nbytes;
  }
  r->size -= at;
  if (r->size && at) memmove(r->buffer, r->buffer + at, r->size);
}
