#include <sandbox/replay_check.h>

#include <ir/digest.h>
#include <ir/edits_wire.h>
#include <string.h>

static int same(aot_prog_t *p, const kit_text_t *text, aoth_digest_t digest) {
  const aoth_digest_t now = aoth_prog_digest(p);
  kit_text_t again = {0};
  aoth_print(p, &again);
  const int is_same = now.lo == digest.lo && now.hi == digest.hi && !again.failed && !text->failed &&
                      again.size == text->size && memcmp(again.data, text->data, text->size) == 0;
  kit_text_deinit(&again);
  return is_same;
}

/* As a worker sends them: what is made again was read from bytes. */
static aot_status_t replay_sent(aot_prog_t *p, const aoth_edits_t *edits) {
  const aoth_known_t none = {.n = 0};
  kit_text_t bytes = {0};
  aot_status_t status = AOT_OK;
  for (uint32_t i = 0; i < edits->n && status == AOT_OK; i++) {
    bytes.size = 0;
    kit_wire_t out = kit_wire_writer(&bytes);
    aoth_wire_edit(&out, &edits->at[i], none, NULL);
    kit_wire_t in = kit_wire_reader(bytes.data, bytes.size);
    const aoth_edit_t *sent = aoth_wire_edit(&in, NULL, none, aoth_prog_arena(p));
    status = kit_wire_done(&out) && kit_wire_done(&in) ? aoth_edit_replay(p, sent) : AOT_E_INTERNAL;
  }
  kit_text_deinit(&bytes);
  return status;
}

aot_status_t aoth_stage_check_replay(aoth_session_t *s, const aoth_stage_t *stage) {
  aot_prog_t *p = s->now.prog;
  aoth_edits_t edits;
  kit_text_t text = {0};
  if (!s->config.check_replay) return AOT_OK;
  const aoth_digest_t digest = aoth_prog_digest(p);
  aoth_print(p, &text);
  aot_status_t status = aoth_edits_take(p, &edits);
  const aot_status_t begun = aoth_journal_begin(p);
  if (status == AOT_OK) status = begun;
  if (status == AOT_OK) status = replay_sent(p, &edits);
  if (status == AOT_OK && !same(p, &text, digest)) {
    aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, &stage->where, "replay.differs",
                     "replaying the %u edits of stage %s gives a different program", edits.n, stage->name);
    status = AOT_E_INTERNAL;
  }
  aoth_edits_deinit(&edits);
  kit_text_deinit(&text);
  if (status == AOT_OK) return AOT_OK;
  s->outcome = AOTH_CALL_TOLD;
  return s->status = status;
}
