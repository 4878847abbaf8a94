/* Asking passes and backends for the operators they handle by name. The names are copied: they outlive the unit. */
#include "unit_coverage.h"

#include <aot/ext/coverage.h>
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAMES 1000000u

static int compare_names(const void *a, const void *b) {
  const aot_str_t x = *(const aot_str_t *)a, y = *(const aot_str_t *)b;
  const int order = memcmp(x.data, y.data, (size_t)(x.size < y.size ? x.size : y.size));
  return order ? order : (x.size > y.size) - (x.size < y.size);
}

typedef struct asking {
  const aoth_instance_t *instance;
  aoth_arena_t *arena;
  aoth_coverage_t *out;
} asking_t;

static aot_status_t do_ask(void *arg) {
  asking_t *a = arg;
  const aoth_instance_t *i = a->instance;
  const void *ext = NULL;
  aot_ext_coverage_t said;
  if (strcmp(i->unit->kind, "pass/1") == 0 && i->table.pass.get_ext) ext = i->table.pass.get_ext(i->self, AOT_EXT_COVERAGE);
  if (strcmp(i->unit->kind, "backend/1") == 0 && i->table.backend.get_ext)
    ext = i->table.backend.get_ext(i->self, AOT_EXT_COVERAGE);
  if (!ext) return AOT_OK;
  AOT_TRY(aot_import(&said, sizeof said, ext));
  const uint32_t n = said.n_ops < MAX_NAMES ? (uint32_t)said.n_ops : MAX_NAMES;
  aot_str_t *names = aoth_arena_alloc(a->arena, sizeof(void *), (n + 1u) * sizeof *names);
  if (!names) return AOT_OK;
  for (uint32_t k = 0; k < n; k++) {
    const char *text = aoth_arena_text(a->arena, said.ops[k].data, (size_t)said.ops[k].size);
    if (!text) return AOT_OK;
    names[k] = aot_str(text);
  }
  qsort(names, n, sizeof *names, compare_names);
  a->out->ops = names;
  a->out->n_ops = n;
  a->out->told = 1;
  return AOT_OK;
}

aot_status_t aoth_unit_coverage(aoth_session_t *s, const aoth_unit_t *unit, aoth_coverage_t *out) {
  aoth_stage_t stage;
  aoth_instance_t instance;
  *out = (aoth_coverage_t){.unit = unit};
  AOT_TRY(aoth_stage_of_unit(s, unit->id, unit->kind, NULL, &stage));
  AOT_TRY(aoth_instance_create(s, &stage, &instance));
  asking_t a = {&instance, s->arena, out};
  if (aoth_call(s, &stage, "coverage", do_ask, &a) != AOT_OK) return aoth_session_fail(s, &stage);
  return aoth_instance_destroy(s, &stage, &instance);
}

int aoth_covers(const aoth_coverage_t *c, aot_str_t op) {
  return c->n_ops && bsearch(&op, c->ops, c->n_ops, sizeof op, compare_names) != NULL;
}
