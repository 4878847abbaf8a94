#include <cli/run/plan_ranks.h>

#include <aot/inline.h>
#include <base/file.h>
#include "kit/base/byte_size.h"
#include <config/options.h>
#include <sandbox/session.h>
#include <config/yaml.h>
#include <stdlib.h>
#include <string.h>

#define STAGE "overlap"
#define MAX_SETS 64
#define MAX_OWN_SETS 4 /* of one plan */
#define MAX_MODES 16

typedef struct planner {
  aoth_cli_t *cli;
  const char *pipeline;
  kit_arena_t *arena;
  const char *sets[MAX_SETS + MAX_OWN_SETS];
  uint32_t n_sets; /* of all numbers of ranks alike */
} planner_t;

typedef struct plan_mode {
  const char *name; /* "hybrid"; NULL: the pipeline's */
  uint32_t columns; /* of a mesh; 0: not said */
  const char *text; /* "hybrid:8" */
} plan_mode_t;

/* ---- the machine ---- */

static int add_set(planner_t *p, const char *key, const aoth_yaml_t *value) {
  kit_text_t text = {0};
  kit_text_f(&text, "%s=", key);
  if (value->quoted) aoth_yaml_print_text(&text, value->text);
  else kit_text_add(&text, value->text.data, value->text.size);
  if (p->n_sets == MAX_SETS) return 0;
  p->sets[p->n_sets] = text.failed ? NULL : kit_arena_text(p->arena, text.data, text.size);
  kit_text_deinit(&text);
  return p->sets[p->n_sets++] != NULL;
}

/* `name` and `memory` are said of it; whatever else is a setting of the stage. */
static aot_status_t take_machine(planner_t *p, const aoth_yaml_t *map, aoth_rank_plans_t *out) {
  for (uint32_t i = 0; i < map->n; i++) {
    const aoth_yaml_t *key = map->pairs[i].key, *value = map->pairs[i].value;
    char name[128];
    int64_t bytes;
    if (value->kind != AOTH_YAML_SCALAR) {
      aoth_yaml_error(p->cli->sink, p->arena, value, "plan.machine", "'%s' is one value", key->text.data);
      return AOT_E_INVALID;
    }
    snprintf(name, sizeof name, "stages." STAGE ".%s", key->text.data);
    if (aot_str_eq(key->text, aot_str("name"))) {
      out->machine = value->text.data;
    } else if (aot_str_eq(key->text, aot_str("memory"))) {
      if (!kit_byte_size(value->text.data, &bytes) || bytes <= 0) {
        aoth_yaml_error(p->cli->sink, p->arena, value, "plan.machine", "'memory' is a number of bytes, such as 141GiB");
        return AOT_E_INVALID;
      }
      out->memory_nbytes = (uint64_t)bytes;
    } else if (!add_set(p, name, value)) {
      return AOT_E_EXHAUSTED;
    }
  }
  return AOT_OK;
}

static aot_status_t read_machine(planner_t *p, const char *path, aoth_rank_plans_t *out) {
  aoth_map_t file;
  aoth_yaml_t *map = NULL;
  AOT_TRY(aoth_file_map(path, p->cli->sink, &file));
  aot_status_t status = aoth_yaml_parse(p->arena, path, ".", file.data, file.nbytes, NULL, 0, p->cli->sink, &map);
  aoth_file_unmap(&file);
  if (status == AOT_OK && (!map || map->kind != AOTH_YAML_MAP)) {
    aoth_sink_report(p->cli->sink, AOT_SEVERITY_ERROR, NULL, "plan.machine", "%s says nothing of a machine", path);
    status = AOT_E_INVALID;
  }
  return status == AOT_OK ? take_machine(p, map, out) : status;
}

/* ---- one number of ranks ---- */

static void add_leaves(aot_prog_t *prog, aoth_rank_plan_t *out) {
  for (uint32_t i = 1; i < aoth_graph_n_leaves(prog); i++) {
    aot_leaf_info_t leaf = {.struct_size = sizeof leaf};
    if (aoth_graph_leaf_info(prog, (aot_leaf_t){i}, &leaf) != AOT_OK || leaf.role == AOT_ROLE_USER_INPUT) continue;
    uint64_t nbytes = aot_dtype_size(leaf.type.dtype);
    for (int32_t d = 0; d < leaf.type.rank; d++) nbytes *= (uint64_t)aoth_graph_dim_hint(prog, leaf.type.sizes[d]);
    if (leaf.role == AOT_ROLE_PARAMETER) out->parameter_nbytes += nbytes;
    else if (leaf.role == AOT_ROLE_STATE) out->state_nbytes += nbytes;
    else out->buffer_nbytes += nbytes;
  }
}

/* "gather-bytes/rows" follows "gathers/rows". */
static void take_collectives(const aoth_number_t *number, aoth_rank_plan_t *out) {
  const char *group = strchr(number->name, '/'), *bytes = strstr(number->name, "-bytes/");
  const int size = group ? (int)((bytes ? bytes : group - 1) - number->name) : 0; /* without the s */
  if (!group) return;
  if (bytes && out->n_collectives) {
    out->collectives[out->n_collectives - 1].nbytes = (uint64_t)number->value;
  } else if (!bytes && out->n_collectives < AOTH_PLAN_MOST_COLLECTIVES) {
    aoth_plan_collectives_t *c = &out->collectives[out->n_collectives++];
    snprintf(c->kind, sizeof c->kind, "%.*s", size, number->name);
    snprintf(c->group, sizeof c->group, "%s", group + 1);
    c->n = (uint64_t)number->value;
  }
}

static aot_status_t take_report(const planner_t *p, aoth_rank_plan_t *out) {
  double gathered = 0, gradients = 0, active = 0, arena = 0;
  const struct {
    const char *name;
    double *to;
  } wanted[] = {{"predicted-step", &out->step_s},
                {"predicted-communication", &out->communication_s},
                {"exposed-communication", &out->exposed_s},
                {"gathered-at-once", &gathered},
                {"gradients-at-once", &gradients},
                {"activations-at-once", &active},
                {"predicted-arena", &arena}};
  const uint32_t n_wanted = sizeof wanted / sizeof *wanted;
  const aoth_record_t *records;
  uint32_t n_found = 0;
  for (uint32_t i = 0, n = aoth_session_records(p->cli->session, &records); i < n; i++)
    for (uint32_t k = 0; strcmp(records[i].unit, STAGE) == 0 && k < records[i].n_numbers; k++) {
      const aoth_number_t *number = &records[i].numbers[k];
      take_collectives(number, out);
      for (uint32_t w = 0; w < n_wanted; w++) {
        if (strcmp(number->name, wanted[w].name) != 0) continue;
        *wanted[w].to = number->value;
        n_found++;
      }
    }
  out->gathered_nbytes = (uint64_t)gathered;
  out->gradient_nbytes = (uint64_t)gradients;
  out->active_nbytes = (uint64_t)active;
  out->arena_nbytes = (uint64_t)arena;
  add_leaves(aoth_session_prog(p->cli->session), out);
  if (n_found == n_wanted) return AOT_OK;
  aoth_sink_report(p->cli->sink, AOT_SEVERITY_ERROR, NULL, "plan.stage",
                   "%s predicts nothing: it needs the stage " STAGE " in front of its backend, and run.train",
                   p->pipeline);
  return AOT_E_INVALID;
}

static aot_status_t plan_one(planner_t *p, const plan_mode_t *mode, uint32_t n_ranks, aoth_rank_plan_t *out) {
  char own[MAX_OWN_SETS][64];
  uint32_t n_own = 0;
  aoth_pipeline_t *pipeline = NULL;
  snprintf(own[n_own++], sizeof *own, "stages.fsdp.ranks=%u", n_ranks);
  snprintf(own[n_own++], sizeof *own, "stages." STAGE ".ranks=%u", n_ranks);
  if (mode->name) snprintf(own[n_own++], sizeof *own, "stages.fsdp.mode=%.32s", mode->name);
  if (mode->columns) snprintf(own[n_own++], sizeof *own, "stages.fsdp.columns=%u", mode->columns);
  for (uint32_t i = 0; i < n_own; i++) p->sets[p->n_sets + i] = own[i];
  const aoth_overrides_t overrides = {.sets = p->sets, .n_sets = p->n_sets + n_own};
  aoth_session_t *s = aoth_cli_session(p->cli);
  aot_status_t status = s ? aoth_pipeline_load(p->pipeline, &overrides, p->cli->sink, &pipeline) : AOT_E_INVALID;
  if (status == AOT_OK) status = aoth_pipeline_check(s, pipeline);
  if (status == AOT_OK) status = aoth_pipeline_import(s, pipeline);
  if (status == AOT_OK)
    status = aoth_pipeline_run_stages(s, pipeline, AOTH_STAGES_OPTIMIZER | AOTH_STAGES_STITCH | AOTH_STAGES_NO_BACKEND);
  *out = (aoth_rank_plan_t){.mode = mode->text, .n_ranks = n_ranks};
  if (status == AOT_OK) status = take_report(p, out);
  aoth_session_destroy(s);
  p->cli->session = NULL;
  aoth_pipeline_destroy(pipeline);
  return status;
}

/* ---- modes ---- */

/* One row without a name where none are said. */
static aot_status_t read_modes(const planner_t *p, const char *text, plan_mode_t *out, uint32_t *out_n) {
  *out_n = 0;
  if (!text) out[(*out_n)++] = (plan_mode_t){.name = NULL};
  while (text && *out_n < MAX_MODES) {
    plan_mode_t *m = &out[*out_n];
    const size_t size = strcspn(text, ","), name_size = strcspn(text, ":,");
    char *end = NULL;
    m->text = kit_arena_text(p->arena, text, size);
    m->name = kit_arena_text(p->arena, text, name_size);
    if (!m->text || !m->name) return AOT_E_EXHAUSTED;
    const unsigned long columns = name_size < size ? strtoul(text + name_size + 1, &end, 10) : 0;
    if (!name_size || columns > UINT32_MAX || (name_size < size && (!columns || end != text + size))) break;
    m->columns = (uint32_t)columns;
    ++*out_n;
    if (!text[size]) return AOT_OK;
    text += size + 1;
  }
  if (!text) return AOT_OK;
  aoth_sink_report(p->cli->sink, AOT_SEVERITY_ERROR, NULL, "plan.modes",
                   "--modes at '%s': expected at most %d modes of the stage fsdp with commas, of a mesh with its "
                   "columns, such as hybrid:8",
                   text, MAX_MODES);
  return AOT_E_INVALID;
}

aot_status_t aoth_plan_ranks(aoth_cli_t *cli, const char *pipeline, const char *modes, const char *machine,
                             const uint32_t *counts, uint32_t n, kit_arena_t *arena, aoth_rank_plans_t *out) {
  planner_t p = {.cli = cli, .pipeline = pipeline, .arena = arena, .sets = {"run.ranks=none"}, .n_sets = 1};
  plan_mode_t mode[MAX_MODES];
  uint32_t n_modes;
  *out = (aoth_rank_plans_t){.rows = calloc((size_t)n * MAX_MODES + 1, sizeof *out->rows)};
  if (!out->rows) return AOT_E_EXHAUSTED;
  AOT_TRY(read_modes(&p, modes, mode, &n_modes));
  if (machine) AOT_TRY(read_machine(&p, machine, out));
  for (uint32_t i = 0; i < cli->common.sets.n; i++) {
    if (p.n_sets == MAX_SETS) return AOT_E_EXHAUSTED;
    p.sets[p.n_sets++] = cli->common.sets.items[i];
  }
  for (uint32_t m = 0; m < n_modes; m++)
    for (uint32_t i = 0; i < n; i++)
      if (!mode[m].columns || counts[i] % mode[m].columns == 0)
        AOT_TRY(plan_one(&p, &mode[m], counts[i], &out->rows[out->n++]));
  if (out->n) return AOT_OK;
  aoth_sink_report(cli->sink, AOT_SEVERITY_ERROR, NULL, "plan.modes",
                   "--modes %s: the columns of no mesh divide a number of ranks", modes);
  return AOT_E_INVALID;
}
