/* Halving over the prefixes of a journal: 0 edits are right, all of them wrong, so two neighbours differ.
 *
 *     right |-------------|-----?-----|---------------| wrong
 *           0           good   fit?   bad             n
 *
 * Not every prefix is a program: an operand may not be there yet, a type may belong to edits to come. Those that are,
 * by the verifier and the types that operators give, are fit to be queried about; edits between two neighbouring ones
 * are one transaction. Every prefix is made in a child, out of the program before the stage. */
#include <cli/find/bisect.h>

#include <aot/inline.h>
#include <ir/redo.h>
#include <ir/tables.h>
#include <sandbox/call.h>
#include <sandbox/session.h>
#include <compiler/stage_check.h>
#include <stdlib.h>
#include <string.h>
#include <trainer/trial/child.h>
#include <cli/base/line_difference.h>

#define FIRST_WINDOW 16u

typedef struct prefix {
  aoth_session_t *s;
  const aoth_stage_t *stage;
  uint32_t n;        /* edits that are made */
  uint32_t from, to; /* for code that looks for fit ones, or describes */
} prefix_t;

/* ---- in a child ---- */

/* The stage's edits out of the program, and a journal begun for those that are made again. */
static aot_status_t take(aoth_session_t *s, aoth_edits_t *edits) {
  AOT_TRY(aoth_edits_take(s->now.prog, edits));
  s->has_journal--;
  return aoth_session_journal_begin(s);
}

static aot_status_t replay(aot_prog_t *p, const aoth_edits_t *edits, uint32_t from, uint32_t to) {
  const aoth_edits_t some = {.at = edits->at + from, .n = to - from, .arena = edits->arena};
  return aoth_edits_replay(p, &some);
}

static int is_fit(aoth_session_t *s) {
  return aoth_verify(s->now.prog, aoth_prog_properties(s->now.prog).known) == AOT_OK &&
         aoth_verify_types(s->now.prog) == AOT_OK;
}

static aot_status_t as_prefix(void *self, aoth_session_t *s) {
  const prefix_t *prefix = self;
  aoth_edits_t edits;
  AOT_TRY(take(s, &edits));
  AOT_TRY(replay(s->now.prog, &edits, 0, prefix->n));
  if (prefix->n == edits.n) return aoth_stage_commit(s, prefix->stage);
  if (!is_fit(s)) return AOT_E_PRECONDITION;
  aoth_session_journal_commit(s);
  return AOT_OK;
}

/* Which prefixes of [from, to] are fit. */
static aot_status_t find_fit(void *self, const aoth_request_t *request, json_t *answer) {
  const prefix_t *prefix = self;
  aoth_session_t *s = prefix->s;
  aoth_edits_t edits;
  json_t *fit = json_array();
  (void)request;
  aoth_session_alone(s, NULL);
  json_object_set_new(answer, "fit", fit);
  AOT_TRY(take(s, &edits));
  AOT_TRY(replay(s->now.prog, &edits, 0, prefix->from));
  for (uint32_t n = prefix->from; n <= prefix->to; n++) {
    if (n > prefix->from) AOT_TRY(replay(s->now.prog, &edits, n - 1, n));
    if (is_fit(s)) json_array_append_new(fit, json_integer(n));
  }
  return AOT_OK;
}

static void lines_to(json_t *list, const char *text) {
  while (text && *text) {
    const size_t n = strcspn(text, "\n");
    json_array_append_new(list, json_stringn(text, n));
    text += n + (text[n] == '\n');
  }
}

/* The node that an edit is about; AOT_NO_ID: it is about none. */
static aot_node_t node_of(aot_prog_t *p, const aoth_edit_t *e) {
  switch (e->kind) {
    case EDIT_NODE_CREATE:
    case EDIT_OPERAND_SET:
    case EDIT_ARG_SET:
    case EDIT_FLAGS_SET: return (aot_node_t){e->id};
    case EDIT_TYPE_SET: return aoth_graph_value_def(p, (aot_value_t){e->id});
    case EDIT_USES_REPLACE:
    case EDIT_OUTPUT_SET: return aoth_graph_value_def(p, (aot_value_t){e->value});
    default: return aot_no_node();
  }
}

/* The edits (from, to] as text, and what they changed in it. */
static aot_status_t describe(void *self, const aoth_request_t *request, json_t *answer) {
  const prefix_t *prefix = self;
  aoth_session_t *s = prefix->s;
  aoth_edits_t edits;
  kit_text_t before = {0}, after = {0}, journal = {0};
  json_t *lines = json_array();
  (void)request;
  aoth_session_alone(s, NULL);
  json_object_set_new(answer, "edits", lines);
  AOT_TRY(take(s, &edits));
  AOT_TRY(replay(s->now.prog, &edits, 0, prefix->from));
  aoth_print(s->now.prog, &before);
  AOT_TRY(aoth_session_journal_begin(s)); /* an inner one: of the edits that are reported */
  AOT_TRY(replay(s->now.prog, &edits, prefix->from, prefix->to));
  aoth_journal_print(s->now.prog, &journal);
  aoth_print(s->now.prog, &after);
  lines_to(lines, journal.data);
  aoth_bisect_tell_node(answer, s->now.prog, node_of(s->now.prog, &edits.at[prefix->to - 1]));
  return aoth_line_difference(before.data, after.data, answer);
}

/* ---- in the parent ---- */

static json_t *ask_child(aoth_child_answer_t answer, prefix_t *prefix, double timeout) {
  aoth_served_t served = {answer, prefix};
  const aoth_request_t request = {.what = 0};
  aoth_child_t child;
  json_t *said = NULL;
  if (aoth_child_start(&child, aoth_child_serve_table, &served))
    said = aoth_child_ask(&child, &request, "bisect", (int64_t)(timeout * 1000));
  aoth_child_deinit(&child);
  return said;
}

/* The fit prefix in (good, bad) that is nearest to the middle; 0: there is none. */
static uint32_t middle(aoth_bisect_t *b, prefix_t *prefix, uint32_t good, uint32_t bad) {
  const uint32_t mid = good + (bad - good) / 2;
  uint32_t best = 0;
  for (uint32_t window = FIRST_WINDOW;; window *= 4) {
    prefix->from = mid - good > window ? mid - window : good + 1;
    prefix->to = bad - mid > window ? mid + window : bad - 1;
    json_t *said = ask_child(find_fit, prefix, b->oracle.timeout), *one;
    size_t i;
    json_array_foreach(json_object_get(said, "fit"), i, one) {
      const uint32_t n = (uint32_t)json_integer_value(one);
      const uint32_t off = n > mid ? n - mid : mid - n, best_off = best > mid ? best - mid : mid - best;
      if (!best || off < best_off) best = n;
    }
    json_decref(said);
    if (best || (prefix->from == good + 1 && prefix->to == bad - 1)) return best;
  }
}

void aoth_bisect_edits(aoth_bisect_t *b, aoth_session_t *s, const aoth_stage_t *stage) {
  prefix_t prefix = {.s = s, .stage = stage};
  const uint32_t n = (uint32_t)aoth_journal_count(s->now.prog);
  uint32_t good = 0, bad = n;
  char why[512];
  while (bad - good > 1) {
    int unfit;
    prefix.n = middle(b, &prefix, good, bad);
    if (!prefix.n) break;
    const char *wrong = aoth_bisect_ask(b, as_prefix, &prefix, &unfit, why, sizeof why);
    if (unfit) break; /* it was fit a moment ago: nothing more can be said */
    if (wrong) {
      bad = prefix.n;
      json_object_set_new(b->found, "wrong", json_string(wrong));
      json_object_set_new(b->found, "why", json_string(why));
    } else {
      good = prefix.n;
    }
  }
  prefix.from = good;
  prefix.to = bad;
  json_t *said = ask_child(describe, &prefix, b->oracle.timeout);
  json_object_update(b->found, said);
  json_decref(said);
  json_object_set_new(b->found, "first", json_integer((json_int_t)good + 1));
  json_object_set_new(b->found, "last", json_integer(bad));
  json_object_set_new(b->found, "n_edits", json_integer(n));
}
