#include <pipeline/stage_check.h>

#include <ir/ports_kept.h>
#include <pipeline/call.h>
#include <pipeline/load.h>

uint32_t aoth_properties_after(const aoth_unit_t *unit, uint32_t before) {
  return unit->has_contract ? (before & ~unit->contract.drops) | unit->contract.gives : before;
}

/* Units that give `property`, as a hint. Plugins not opened so far are opened for it, silently: contracts are in
 * them. */
static void hint_givers(aoth_session_t *s, uint32_t property) {
  aoth_text_t list = {0};
  for (uint32_t i = 0; i < aoth_registry_n_plugins(s->registry); i++) {
    aoth_plugin_t *p = aoth_registry_plugin(s->registry, i);
    int wanted = 0;
    for (uint32_t k = 0; k < p->n_units; k++) wanted |= aoth_kind_in(p->units[k].kind, AOTH_STAGE_KINDS);
    if (!wanted || aoth_plugin_open(s->registry, p, s->arena, NULL, NULL) != AOT_OK) continue;
    for (uint32_t k = 0; k < p->n_units; k++)
      if (!p->units[k].shadowed_by && p->units[k].has_contract && (p->units[k].contract.gives & property))
        aoth_text_f(&list, "%s%s", list.size ? ", " : "", p->units[k].id);
  }
  if (list.size)
    aoth_sink_line(s->config.sink, "hint: '%s' is given by %s, before this stage",
                   aoth_property_names(property, s->arena), list.data);
  else
    aoth_sink_line(s->config.sink, "hint: no unit that is known gives '%s'", aoth_property_names(property, s->arena));
  aoth_text_deinit(&list);
}

aot_status_t aoth_contract_check(aoth_session_t *s, const aoth_stage_t *stage, uint32_t properties) {
  if (!stage->unit->has_contract) return AOT_OK;
  const aoth_contract_t *c = &stage->unit->contract;
  const uint32_t missing = c->needs & ~properties, unwanted = c->refuses & properties;
  if (missing) {
    aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, &stage->where, "contract.needs",
                     "stage %s needs a program that is %s, and nothing before it makes it so", stage->name,
                     aoth_property_names(missing, s->arena));
    for (uint32_t bit = 0; bit < 32; bit++)
      if (missing & (1u << bit)) hint_givers(s, 1u << bit);
    aoth_yaml_notes(s->config.sink, s->arena, stage->at, "contract.needs");
  }
  if (unwanted) {
    aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, &stage->where, "contract.refuses",
                     "stage %s refuses a program that is %s already", stage->name,
                     aoth_property_names(unwanted, s->arena));
    if (unwanted & AOTH_PROP_JOINT)
      aoth_sink_line(
          s->config.sink,
          "hint: the program holds its gradients already (it was exported with its backward, or differentiated "
          "before): begin with the partition");
    aoth_yaml_notes(s->config.sink, s->arena, stage->at, "contract.refuses");
  }
  return missing || unwanted ? AOT_E_PRECONDITION : AOT_OK;
}

aot_status_t aoth_stage_check_memory(aoth_session_t *s, const aoth_stage_t *stage) {
  if (aoth_journal_is_whole(s->now.prog)) return AOT_OK;
  aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, &stage->where, "stage.no-memory",
                   "an edit of stage %s found no memory and was not made: the program stays as it was before the stage",
                   stage->name);
  return s->status = AOT_E_EXHAUSTED;
}

aot_status_t aoth_stage_check(aoth_session_t *s, const aoth_stage_t *stage) {
  const uint32_t after = aoth_properties_after(stage->unit, aoth_prog_properties(s->now.prog));
  s->outcome = AOTH_CALL_OK;
  AOT_TRY(aoth_stage_check_memory(s, stage));
  if (stage->unit->has_contract && aoth_journal_check(s->now.prog, &stage->unit->contract) != AOT_OK)
    return aoth_misbehaved(s, stage, "broke its contract");
  if (aoth_verify(s->now.prog, after) != AOT_OK) return aoth_misbehaved(s, stage, "left a broken program behind");
  return AOT_OK;
}

static aot_status_t do_types(void *arg) { return aoth_verify_types(arg); }

/* A call like any other: opsets answer it. */
static aot_status_t check_types(aoth_session_t *s, const aoth_stage_t *stage) {
  if (aoth_call(s, stage, "the check of types", do_types, s->now.prog) == AOT_OK) return AOT_OK;
  return s->status == AOT_E_CONTRACT ? aoth_misbehaved(s, stage, "set types that its operators do not give")
                                     : s->status;
}

aot_status_t aoth_stage_commit(aoth_session_t *s, const aoth_stage_t *stage) {
  AOT_TRY(check_types(s, stage));
  aoth_session_journal_commit(s);
  aoth_prog_set_properties(s->now.prog, aoth_properties_after(stage->unit, aoth_prog_properties(s->now.prog)));
  return AOT_OK;
}
