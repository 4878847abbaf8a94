/* Damaged frames and letters of workers: whatever comes is refused or made, nothing crashes, and undone it leaves the
 * program as it was. AOT_FUZZ_FRAMES: how many (2,000); the generator is the same each time. */
#include "session_world.h"

#include <sandbox/call.h>
#include <sandbox/worker_receive.h>

#define N_STAGES 5
#define ROUND 250 /* damaged streams with one session */

static const char pipeline_text[] = "aot: 1\n"
                                    "model: {path: m.ir}\n"
                                    "stages:\n"
                                    "  - {use: functionalize, isolate: worker}\n"
                                    "  - {use: autograd, isolate: worker}\n"
                                    "  - {use: partition-mincut, isolate: worker}\n"
                                    "  - {use: adamw, isolate: worker}\n"
                                    "  - {use: stitch, isolate: worker}\n";
static const char model_text[] = "aot 1\n"
                                 "properties imported\n"
                                 "symbol s0 in [1, 64] hint 8\n"
                                 "leaf 0 parameter \"w\" : f32[4] grad\n"
                                 "leaf 1 user_input 0 \"x\" : f32[s0, 4]\n"
                                 "graph @main forward {\n"
                                 "  in %w = parameter 0 : f32[4] grad\n"
                                 "  in %x = user_input 1 : f32[s0, 4]\n"
                                 "  %y : f32[s0, 4] = aten.mul.Tensor %x, %w\n"
                                 "  %t : f32[4, s0] strides [1, 4] = aten.t.default %y\n"
                                 "  %q : f32[s0, 4] = aten.mul.Tensor %y, %y\n"
                                 "  %loss : f32[] = aten.sum.default %q\n"
                                 "  out loss 0 = %loss\n"
                                 "  out user_output 1 = %t\n"
                                 "}\n";

/* ---- what a worker sends ---- */

typedef struct stream {
  char *bytes;
  size_t size;
} stream_t;
static stream_t sent[N_STAGES], *hearing;

ssize_t __real_read(int fd, void *to, size_t size);
ssize_t __wrap_read(int fd, void *to, size_t size);
ssize_t __wrap_read(int fd, void *to, size_t size) {
  const ssize_t got = __real_read(fd, to, size);
  if (!hearing || got <= 0 || size < 100000) return got; /* letters are shorter */
  hearing->bytes = realloc(hearing->bytes, hearing->size + (size_t)got);
  memcpy(hearing->bytes + hearing->size, to, (size_t)got);
  hearing->size += (size_t)got;
  return got;
}

static void begin_session(fixture_t *w, uint32_t n_stages) {
  const aoth_session_config_t config = {.sink = w->sink};
  aoth_session_destroy(w->session);
  aoth_pipeline_destroy(w->pipeline);
  aoth_sink_destroy(w->sink);
  w->pipeline = NULL;
  w->sink = aoth_sink_create(NULL);
  aoth_session_config_t with = config;
  with.sink = w->sink;
  w->session = aoth_session_create(&with);
  assert_non_null(w->session);
  write_text("m.ir", model_text);
  write_text("p.yaml", pipeline_text);
  if (aoth_pipeline_load("p.yaml", NULL, w->sink, &w->pipeline) != AOT_OK ||
      aoth_pipeline_check(w->session, w->pipeline) != AOT_OK || aoth_pipeline_import(w->session, w->pipeline) != AOT_OK)
    fail_msg("%s", aoth_sink_text(w->sink));
  for (uint32_t i = 0; i < n_stages; i++) {
    hearing = sent[i].bytes ? NULL : &sent[i];
    if (aoth_session_run_stage(w->session, &w->pipeline->stages[i]) != AOT_OK) fail_msg("%s", aoth_sink_text(w->sink));
    hearing = NULL;
  }
}

/* ---- damage ---- */

static uint64_t state = 1;
static uint64_t draw(uint64_t below) { /* xorshift */
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state % below;
}

static uint64_t odd_number(void) {
  static const uint64_t odd[] = {
      0,          1,        7,  8,   UINT32_MAX,     UINT64_MAX,  INT32_MAX, INT64_MAX, 0x80000000,
      0x80000001, 1u << 20, 65, 512, UINT64_MAX / 8, 0x7fffffff8, 3,         2,         0xffffffff00000000};
  return draw(4) ? odd[draw(sizeof odd / sizeof *odd)] : draw(UINT64_MAX) >> draw(64);
}

static void damage(char *bytes, size_t *size) {
  const uint64_t number = odd_number();
  const size_t at = draw(*size), word = at / 8 * 8, from = draw(*size) / 8 * 8;
  switch (draw(6)) {
    case 0: bytes[at] ^= (char)(1 << draw(8)); break;
    case 1: bytes[at] = (char)number; break;
    case 2: memcpy(bytes + at / 4 * 4, &number, at / 4 * 4 + 4 <= *size ? 4 : 0); break;
    case 3: memcpy(bytes + word, &number, word + 8 <= *size ? 8 : 0); break;
    case 4: memmove(bytes + word, bytes + from, word + 64 <= *size && from + 64 <= *size ? 64 : 0); break;
    default: *size = *size - draw(*size / 8 + 1) / 8 * 8; break;
  }
}

/* 1: it was a whole stage. */
static int receive(fixture_t *w, uint32_t stage, const char *bytes, size_t size) {
  aoth_session_t *s = w->session;
  aot_prog_t *p = aoth_session_prog(s);
  aoth_type_numbers_t types = aoth_type_numbers(p);
  aoth_received_t r = {.s = s, .stage = &w->pipeline->stages[stage], .known = aoth_known_by_both(s, &types)};
  assert_int_equal(aoth_session_journal_begin(s), AOT_OK);
  while (size && !r.is_broken && !r.has_result) { /* in pieces, as a pipe has them */
    const size_t piece = draw(2) ? size : 1 + draw(size);
    char *room = aoth_received_room(&r, piece);
    assert_non_null(room);
    memcpy(room, bytes, piece);
    aoth_received_more(&r, piece);
    bytes += piece;
    size -= piece;
  }
  for (; r.n_open; r.n_open--) aoth_journal_undo(p);
  aoth_journal_undo(p);
  s->has_journal--;
  aoth_type_numbers_deinit(&types);
  free(r.buffer);
  return r.has_result && r.status == AOT_OK;
}

static void damaged_frames_crash_nothing(void **unused) {
  fixture_t *w = *unused;
  const char *asked = getenv("AOT_FUZZ_FRAMES");
  const long n = asked ? atol(asked) : 2000;
  long n_made = 0;
  begin_session(w, N_STAGES);
  for (uint32_t i = 0; i < N_STAGES; i++) assert_true(sent[i].size > 100);
  for (long k = 0; k < n; k += ROUND) {
    const uint32_t stage = (uint32_t)(k / ROUND % N_STAGES);
    char *bytes = malloc(sent[stage].size);
    kit_text_t before = {0}, after = {0};
    begin_session(w, stage);
    aoth_print(aoth_session_prog(w->session), &before);
    if (!receive(w, stage, sent[stage].bytes, sent[stage].size))
      fail_msg("stage %u: %s", stage, aoth_sink_text(w->sink));
    for (int i = 0; i < ROUND; i++) {
      size_t size = sent[stage].size;
      memcpy(bytes, sent[stage].bytes, size);
      for (uint64_t d = 1 + draw(3); d && size > 64; d--) damage(bytes, &size);
      n_made += receive(w, stage, bytes, size);
    }
    aoth_print(aoth_session_prog(w->session), &after);
    assert_string_equal(before.data, after.data);
    kit_text_deinit(&before);
    kit_text_deinit(&after);
    free(bytes);
  }
  print_message("%ld damaged streams, %ld of them a stage\n", n, n_made);
  for (uint32_t i = 0; i < N_STAGES; i++) free(sent[i].bytes);
}

static void damaged_letters_crash_nothing(void **unused) {
  fixture_t *w = *unused;
  int n_letters = 0;
  begin_session(w, 0);
  for (int i = 0; i < 20000; i++) {
    aoth_crash_report_t report_slot;
    for (size_t k = 0; k < sizeof report_slot; k++) ((char *)&report_slot)[k] = (char)draw(256);
    report_slot.is_written = (uint32_t)draw(2);
    report_slot.crash.signal = (int)draw(80);
    report_slot.crash.n_callers = (uint32_t)(draw(2) ? draw(80) : odd_number());
    if (!aoth_letter_check(&report_slot)) continue;
    assert_true(strlen(report_slot.doing) < sizeof report_slot.doing &&
                strlen(report_slot.unit) < sizeof report_slot.unit);
    if (n_letters++ % 100 == 0)
      aoth_tell_crash(w->session, &w->pipeline->stages[0], &report_slot.crash, report_slot.doing);
  }
  assert_true(n_letters > 1000);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {TEST(damaged_frames_crash_nothing), TEST(damaged_letters_crash_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
