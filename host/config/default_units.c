/* default-units: -> aoth_default_units_t, over the table that the build reads from pipelines/default-units.yaml. */
#include <config/default_units.h>

#include <aot/inline.h>
#include <string.h>

static const struct {
  const char *key, *unit;
} rows[] = {
#include <default_unit_rows.h>
};

const char *const aoth_default_unit_keys[AOTH_N_DEFAULT_UNITS] = {"optimizer", "precision", "step", "several-backends",
                                                                  "operators"};

_Static_assert(sizeof rows / sizeof *rows == AOTH_N_DEFAULT_UNITS,
               "pipelines/default-units.yaml has a row for each key");

const char *aoth_default_unit(uint32_t which) {
  for (uint32_t i = 0; i < AOTH_N_DEFAULT_UNITS; i++)
    if (strcmp(rows[i].key, aoth_default_unit_keys[which]) == 0) return rows[i].unit;
  return NULL;
}

void aoth_default_units_read(const aoth_fields_t *f, const aoth_yaml_t *node, aoth_default_units_t *out) {
  const int is_map = aoth_fields_known(f, node, "default-units", aoth_default_unit_keys, AOTH_N_DEFAULT_UNITS);
  memset(out, 0, sizeof *out);
  for (uint32_t i = 0; i < AOTH_N_DEFAULT_UNITS; i++) {
    const char *id = is_map ? aoth_fields_text(f, node, aoth_default_unit_keys[i]) : NULL;
    out->ids[i] = id ? id : aoth_default_unit(i);
    if (id) out->at[i] = aoth_yaml_get(node, aoth_default_unit_keys[i]);
    if (id) out->where[i] = aoth_yaml_where(f->arena, out->at[i]);
  }
}

void aoth_default_units_stage(const aoth_default_units_t *units, uint32_t which, const aoth_where_t *where,
                              aoth_stage_t *stage) {
  stage->use = stage->name = units->ids[which];
  stage->where = units->at[which] ? units->where[which] : *where;
  if (units->at[which]) stage->at = units->at[which];
}

void aoth_default_units_print(const aoth_default_units_t *units, kit_text_t *out) {
  int any = 0;
  for (uint32_t i = 0; i < AOTH_N_DEFAULT_UNITS; i++) {
    if (!units->at[i]) continue;
    if (!any++) kit_text_z(out, "default-units:\n");
    kit_text_f(out, "  %s: ", aoth_default_unit_keys[i]);
    aoth_yaml_print_text(out, aot_str(units->ids[i]));
    kit_text_z(out, "\n");
  }
}
