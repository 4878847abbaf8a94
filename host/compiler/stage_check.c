#include <compiler/stage_check.h>

#include <aot/inline.h>
#include <ir/ports_kept.h>
#include <sandbox/call.h>
#include <config/pipeline.h>
#include <plugin/load.h>

int aoth_properties_after(const aoth_unit_t *unit, kit_arena_t *arena, aoth_properties_t before,
                          aoth_properties_t *out) {
  *out = before;
  if (!unit->has_contract) return 1;
  return aoth_properties_minus(arena, before, unit->contract.drops, out) &&
         aoth_properties_union(arena, *out, unit->contract.gives, out);
}

/* Units that give the property of this name, as a hint. Plugins not opened so far are opened for it, silently:
 * contracts are in them. */
static void hint_givers(aoth_session_t *s, aot_str_t property) {
  kit_text_t list = {0};
  for (uint32_t i = 0; i < aoth_registry_n_plugins(s->registry); i++) {
    aoth_plugin_t *p = aoth_registry_plugin(s->registry, i);
    int wanted = 0;
    for (uint32_t k = 0; k < p->n_units; k++) wanted |= aoth_kind_in(p->units[k].kind, AOTH_STAGE_KINDS);
    if (!wanted || aoth_plugin_open(s->registry, p, s->arena, NULL, NULL) != AOT_OK) continue;
    for (uint32_t k = 0; k < p->n_units; k++)
      if (!p->units[k].shadowed_by && p->units[k].has_contract &&
          aoth_properties_have(p->units[k].contract.gives, property))
        kit_text_f(&list, "%s%s", list.size ? ", " : "", p->units[k].id);
  }
  if (list.size)
    aoth_sink_line(s->config.sink, "hint: '%.*s' is provided by %s; add it before this stage", (int)property.size,
                   property.data, list.data);
  else aoth_sink_line(s->config.sink, "hint: no installed unit provides '%.*s'", (int)property.size, property.data);
  kit_text_deinit(&list);
}

static void hint_givers_of_all(aoth_session_t *s, aoth_properties_t missing) {
#define HINT_ROW(row, number, text, meaning)                                                                           \
  if (missing.known & (1u << number)) hint_givers(s, aot_str(text));
  AOT_PROPERTY_MAP(HINT_ROW)
#undef HINT_ROW
  for (uint32_t i = 0; i < missing.n_named; i++) hint_givers(s, missing.named[i]);
}

aot_status_t aoth_contract_check(aoth_session_t *s, const aoth_stage_t *stage, aoth_properties_t properties) {
  if (!stage->unit->has_contract) return AOT_OK;
  const aoth_contract_t *c = &stage->unit->contract;
  aoth_properties_t missing, unwanted;
  if (!aoth_properties_minus(s->arena, c->needs, properties, &missing) ||
      !aoth_properties_common(s->arena, c->refuses, properties, &unwanted))
    return aoth_sink_no_memory(s->config.sink, &stage->where, "contract.memory", "for the properties of stage %s",
                               stage->name);
  if (!aoth_properties_are_none(missing)) {
    aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, &stage->where, "contract.needs",
                     "stage %s requires a program that is %s, and no earlier stage provides this", stage->name,
                     aoth_property_names(missing, s->arena));
    hint_givers_of_all(s, missing);
    aoth_yaml_notes(s->config.sink, s->arena, stage->at, "contract.needs");
  }
  if (!aoth_properties_are_none(unwanted)) {
    aoth_sink_report(
        s->config.sink, AOT_SEVERITY_ERROR, &stage->where, "contract.refuses",
        "stage %s rejects the program: it is already %s; remove this stage or the earlier one that made it so",
        stage->name, aoth_property_names(unwanted, s->arena));
    if (unwanted.known & AOTH_PROP_JOINT)
      aoth_sink_line(s->config.sink, "hint: the program already has gradients (exported with its backward, or "
                                     "differentiated before); start with the partition");
    aoth_yaml_notes(s->config.sink, s->arena, stage->at, "contract.refuses");
  }
  return aoth_properties_are_none(missing) && aoth_properties_are_none(unwanted) ? AOT_OK : AOT_E_PRECONDITION;
}

aot_status_t aoth_stage_check_memory(aoth_session_t *s, const aoth_stage_t *stage) {
  if (aoth_journal_is_whole(s->now.prog)) return AOT_OK;
  aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, &stage->where, "stage.no-memory",
                   "out of memory in an edit of stage %s; the program was rolled back to its state before the stage",
                   stage->name);
  return s->status = AOT_E_EXHAUSTED;
}

aot_status_t aoth_stage_check(aoth_session_t *s, const aoth_stage_t *stage) {
  aoth_properties_t after;
  s->outcome = AOTH_CALL_OK;
  if (!aoth_properties_after(stage->unit, s->arena, aoth_prog_properties(s->now.prog), &after))
    return s->status = aoth_sink_no_memory(s->config.sink, &stage->where, "contract.memory",
                                           "for the properties of stage %s", stage->name);
  AOT_TRY(aoth_stage_check_memory(s, stage));
  if (stage->unit->has_contract && aoth_journal_check(s->now.prog, &stage->unit->contract) != AOT_OK)
    return aoth_contract_violation(s, stage, "broke its contract");
  if (aoth_verify(s->now.prog, after.known) != AOT_OK)
    return aoth_contract_violation(s, stage, "left an invalid program");
  return AOT_OK;
}

static aot_status_t do_types(void *arg) { return aoth_verify_types(arg); }

aot_status_t aoth_stage_check_types(aoth_session_t *s, const aoth_stage_t *stage) {
  if (aoth_call(s, stage, "the check of types", do_types, s->now.prog) == AOT_OK) return AOT_OK;
  return s->status == AOT_E_CONTRACT ? aoth_contract_violation(s, stage, "set types that its operators do not infer")
                                     : s->status;
}

aot_status_t aoth_stage_commit(aoth_session_t *s, const aoth_stage_t *stage) {
  aoth_properties_t after;
  if (!aoth_properties_after(stage->unit, s->arena, aoth_prog_properties(s->now.prog), &after) ||
      aoth_prog_set_properties(s->now.prog, after) != AOT_OK)
    return s->status = aoth_sink_no_memory(s->config.sink, &stage->where, "contract.memory",
                                           "for the properties of stage %s", stage->name);
  aoth_session_journal_commit(s);
  return AOT_OK;
}
