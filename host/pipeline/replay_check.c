#include <pipeline/replay_check.h>

#include <ir/digest.h>
#include <ir/redo.h>
#include <string.h>

static int same(aot_prog_t *p, const aoth_text_t *text, aoth_digest_t digest) {
  const aoth_digest_t now = aoth_prog_digest(p);
  aoth_text_t again = {0};
  aoth_print(p, &again);
  const int is_same = now.lo == digest.lo && now.hi == digest.hi && !again.failed && !text->failed &&
                      again.size == text->size && memcmp(again.data, text->data, text->size) == 0;
  aoth_text_deinit(&again);
  return is_same;
}

aot_status_t aoth_stage_check_replay(aoth_session_t *s, const aoth_stage_t *stage) {
  aot_prog_t *p = s->now.prog;
  aoth_edits_t edits;
  aoth_text_t text = {0};
  if (!s->config.check_replay) return AOT_OK;
  const aoth_digest_t digest = aoth_prog_digest(p);
  aoth_print(p, &text);
  aot_status_t status = aoth_edits_take(p, &edits);
  const aot_status_t begun = aoth_journal_begin(p);
  if (status == AOT_OK) status = begun;
  if (status == AOT_OK) status = aoth_edits_replay(p, &edits);
  if (status == AOT_OK && !same(p, &text, digest)) {
    aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, &stage->where, "replay.differs",
                     "the %u edits of stage %s, made again, give another program", edits.n, stage->name);
    status = AOT_E_INTERNAL;
  }
  aoth_edits_deinit(&edits);
  aoth_text_deinit(&text);
  if (status == AOT_OK) return AOT_OK;
  s->outcome = AOTH_CALL_TOLD;
  return s->status = status;
}
