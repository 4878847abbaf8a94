/* Which options of the stage it takes for things to go wrong: each that is not at its default is put there, alone, and
 * the stage runs again. */
#include <cli/find/bisect.h>

#include <aot/inline.h>
#include <sandbox/call.h>
#include <config/pipeline.h>
#include <plugin/registry.h>
#include <sandbox/session.h>
#include <config/stage_print.h>
#include <string.h>

typedef struct changed {
  const aoth_stage_t *stage;
  uint32_t option;
} changed_t;

static int same_value(const aot_option_t *option, const aot_opt_value_t *a, const aot_opt_value_t *b) {
  if (option->kind == AOT_OPT_F64) return a->f == b->f;
  if (option->kind >= AOT_OPT_STRING && option->kind <= AOT_OPT_PATH) return aot_str_eq(a->s, b->s);
  return a->i == b->i;
}

/* In the child: the stage again, one option at its default. */
static aot_status_t as_changed(void *self, aoth_session_t *s) {
  const changed_t *c = self;
  aoth_stage_t stage = *c->stage;
  aot_opt_value_t *values = kit_arena_copy(s->arena, 8, stage.opts.values, stage.opts.n_values * sizeof *values);
  if (!values) return AOT_E_EXHAUSTED;
  values[c->option] = aoth_unit_option(stage.unit, c->option)->preset;
  stage.opts.values = values;
  AOT_TRY(aoth_oracle_as_it_was(NULL, s));
  return aoth_session_run_stage(s, &stage);
}

void aoth_bisect_options(aoth_bisect_t *b, aoth_session_t *s, const aoth_stage_t *stage) {
  changed_t c = {.stage = stage};
  json_t *list = json_array();
  char why[512];
  (void)s;
  for (; c.option < stage->opts.n_values; c.option++) {
    const aot_option_t *option = aoth_unit_option(stage->unit, c.option);
    kit_text_t text = {0};
    int unfit;
    if (option->flags & AOT_OPT_REQUIRED || same_value(option, &stage->opts.values[c.option], &option->preset))
      continue;
    if (aoth_bisect_ask(b, as_changed, &c, &unfit, why, sizeof why) || unfit) continue;
    kit_text_str(&text, option->name);
    kit_text_z(&text, "=");
    aoth_print_option_value(&text, stage, c.option);
    json_array_append_new(list, json_string(text.data ? text.data : ""));
    kit_text_deinit(&text);
  }
  json_object_set_new(b->found, "options", list);
}
