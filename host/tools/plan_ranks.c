#include <tools/plan_ranks.h>

#include <aot/inline.h>
#include <base/file.h>
#include <pipeline/options.h>
#include <pipeline/session.h>
#include <pipeline/yaml.h>
#include <stdlib.h>
#include <string.h>

#define STAGE "overlap"
#define MAX_SETS 64

typedef struct planning {
  aoth_cli_t *cli;
  const char *pipeline;
  aoth_arena_t *arena;
  const char *sets[MAX_SETS];
  uint32_t n_sets; /* of all numbers of ranks alike */
} planning_t;

/* ---- the machine ---- */

static int add_set(planning_t *p, const char *key, const aoth_yaml_t *value) {
  aoth_text_t text = {0};
  aoth_text_f(&text, "%s=", key);
  if (value->quoted) aoth_yaml_print_text(&text, value->text);
  else aoth_text_add(&text, value->text.data, value->text.size);
  if (p->n_sets == MAX_SETS) return 0;
  p->sets[p->n_sets] = text.failed ? NULL : aoth_arena_text(p->arena, text.data, text.size);
  aoth_text_deinit(&text);
  return p->sets[p->n_sets++] != NULL;
}

/* `name` and `memory` are said of it; whatever else is a setting of the stage. */
static aot_status_t take_machine(planning_t *p, const aoth_yaml_t *map, aoth_rank_plans_t *out) {
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
      if (!aoth_option_bytes(value->text.data, &bytes) || bytes <= 0) {
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

static aot_status_t read_machine(planning_t *p, const char *path, aoth_rank_plans_t *out) {
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

static uint64_t leaf_nbytes(aot_prog_t *prog) {
  uint64_t sum = 0;
  for (uint32_t i = 1; i < aoth_graph_n_leaves(prog); i++) {
    aot_leaf_info_t leaf = {.struct_size = sizeof leaf};
    if (aoth_graph_leaf_info(prog, (aot_leaf_t){i}, &leaf) != AOT_OK || leaf.role == AOT_ROLE_USER_INPUT) continue;
    uint64_t nbytes = aot_dtype_size(leaf.type.dtype);
    for (int32_t d = 0; d < leaf.type.rank; d++) nbytes *= (uint64_t)aoth_graph_dim_hint(prog, leaf.type.sizes[d]);
    sum += nbytes;
  }
  return sum;
}

static int take_number(const aoth_number_t *n, const char *name, double *out) {
  if (strcmp(n->name, name) != 0) return 0;
  *out = n->value;
  return 1;
}

static aot_status_t take_report(const planning_t *p, aoth_rank_plan_t *out) {
  const aoth_record_t *records;
  double arena = 0;
  int n_found = 0;
  for (uint32_t i = 0, n = aoth_session_records(p->cli->session, &records); i < n; i++)
    for (uint32_t k = 0; strcmp(records[i].unit, STAGE) == 0 && k < records[i].n_numbers; k++) {
      const aoth_number_t *number = &records[i].numbers[k];
      n_found += take_number(number, "predicted-step", &out->step_s);
      n_found += take_number(number, "predicted-communication", &out->communication_s);
      n_found += take_number(number, "exposed-communication", &out->exposed_s);
      n_found += take_number(number, "predicted-arena", &arena);
    }
  out->arena_nbytes = (uint64_t)arena;
  out->leaf_nbytes = leaf_nbytes(aoth_session_prog(p->cli->session));
  if (n_found == 4) return AOT_OK;
  aoth_sink_report(p->cli->sink, AOT_SEVERITY_ERROR, NULL, "plan.stage",
                   "%s predicts nothing: it needs the stage " STAGE " in front of its backend, and run.train",
                   p->pipeline);
  return AOT_E_INVALID;
}

static aot_status_t plan_one(planning_t *p, uint32_t n_ranks, aoth_rank_plan_t *out) {
  char fsdp[64], overlap[64];
  const uint32_t n_sets = p->n_sets;
  aoth_pipeline_t *pipeline = NULL;
  snprintf(fsdp, sizeof fsdp, "stages.fsdp.ranks=%u", n_ranks);
  snprintf(overlap, sizeof overlap, "stages." STAGE ".ranks=%u", n_ranks);
  if (n_sets + 2 > MAX_SETS) return AOT_E_EXHAUSTED;
  p->sets[n_sets] = fsdp;
  p->sets[n_sets + 1] = overlap;
  const aoth_overrides_t overrides = {.sets = p->sets, .n_sets = n_sets + 2};
  aoth_session_t *s = aoth_cli_session(p->cli);
  aot_status_t status = s ? aoth_pipeline_load(p->pipeline, &overrides, p->cli->sink, &pipeline) : AOT_E_INVALID;
  if (status == AOT_OK) status = aoth_pipeline_check(s, pipeline);
  if (status == AOT_OK) status = aoth_pipeline_import(s, pipeline);
  if (status == AOT_OK)
    status = aoth_pipeline_run_stages(s, pipeline, AOTH_STAGES_OPTIMIZER | AOTH_STAGES_STITCH | AOTH_STAGES_NO_BACKEND);
  *out = (aoth_rank_plan_t){.n_ranks = n_ranks};
  if (status == AOT_OK) status = take_report(p, out);
  aoth_session_destroy(s);
  p->cli->session = NULL;
  aoth_pipeline_destroy(pipeline);
  return status;
}

aot_status_t aoth_plan_ranks(aoth_cli_t *cli, const char *pipeline, const char *machine, const uint32_t *counts,
                             uint32_t n, aoth_arena_t *arena, aoth_rank_plans_t *out) {
  planning_t p = {.cli = cli, .pipeline = pipeline, .arena = arena, .sets = {"run.ranks=none"}, .n_sets = 1};
  *out = (aoth_rank_plans_t){.rows = calloc((size_t)n + 1, sizeof *out->rows)};
  if (!out->rows) return AOT_E_EXHAUSTED;
  if (machine) AOT_TRY(read_machine(&p, machine, out));
  for (uint32_t i = 0; i < cli->common.sets.n; i++) {
    if (p.n_sets + 2 >= MAX_SETS) return AOT_E_EXHAUSTED;
    p.sets[p.n_sets++] = cli->common.sets.items[i];
  }
  for (uint32_t i = 0; i < n; i++, out->n++) AOT_TRY(plan_one(&p, counts[i], &out->rows[i]));
  return AOT_OK;
}
