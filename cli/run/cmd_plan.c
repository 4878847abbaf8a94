/* aothost plan: what a step takes with more ranks, predicted. */
#include <cli/base/commands.h>
#include <cli/base/html_page.h>
#include <cli/run/plan_ranks.h>
#include <trainer/writable.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COUNTS = 64, MAX_RANKS = 65536 };

typedef struct plan {
  aoth_cli_t cli;
  const char *world, *modes, *machine, *plot;
  uint32_t counts[MAX_COUNTS], n_counts;
  aoth_rank_plans_t plans;
} plan_t;

static int add_count(plan_t *p, unsigned long n) {
  if (!n || n > MAX_RANKS || p->n_counts == MAX_COUNTS) return 0;
  p->counts[p->n_counts++] = (uint32_t)n;
  return 1;
}

/* "8": 1, 2, 4, 8; "6": 1, 2, 4, 6; "1,2,12": these. */
static aot_status_t read_world(plan_t *p) {
  char *end = NULL;
  int is_right = p->world && *p->world;
  if (is_right && !strchr(p->world, ',')) {
    const unsigned long most = strtoul(p->world, &end, 10);
    for (unsigned long n = 1; is_right && n < most && n < MAX_RANKS; n *= 2) is_right = add_count(p, n);
    is_right = is_right && !*end && add_count(p, most);
  }
  for (const char *at = p->world; is_right && !end && at;) {
    is_right = add_count(p, strtoul(at, &end, 10)) && (*end == ',' || !*end);
    at = is_right && *end ? end + 1 : NULL;
    if (at) end = NULL;
  }
  if (is_right) return AOT_OK;
  aoth_sink_report(p->cli.sink, AOT_SEVERITY_ERROR, NULL, "plan.world",
                   "--world %s: expected a number of ranks from 1 to %d, or several with commas",
                   p->world ? p->world : "", MAX_RANKS);
  return AOT_E_INVALID;
}

static const double mib = 1048576;

static int mode_width(const aoth_rank_plans_t *p) {
  size_t width = 4;
  for (uint32_t i = 0; i < p->n; i++)
    if (p->rows[i].mode && strlen(p->rows[i].mode) > width) width = strlen(p->rows[i].mode);
  return (int)width;
}

static const char *mode_of(const aoth_rank_plan_t *r) { return r->mode ? r->mode : "-"; }

static void print_times(const aoth_rank_plans_t *p, int width) {
  printf("%-*s %7s %12s %14s %12s %8s\n", width, "mode", "ranks", "step ms", "communication", "exposed ms", "of one");
  for (uint32_t i = 0; i < p->n; i++) {
    const aoth_rank_plan_t *r = &p->rows[i];
    printf("%-*s %7u %12.3f %14.3f %12.3f %7.1f%%\n", width, mode_of(r), r->n_ranks, r->step_s * 1e3,
           r->communication_s * 1e3, r->exposed_s * 1e3,
           r->step_s > 0 ? 100 * (r->step_s - r->exposed_s) / r->step_s : 100);
  }
}

static void print_memory(const aoth_rank_plans_t *p, int width) {
  printf("\nMiB of a rank: held between steps; and of a step's arena, each at its highest point\n");
  printf("%-*s %7s %11s %11s %9s %11s %11s %11s %11s\n", width, "mode", "ranks", "parameters", "states", "buffers",
         "gathered", "gradients", "activations", "arena");
  for (uint32_t i = 0; i < p->n; i++) {
    const aoth_rank_plan_t *r = &p->rows[i];
    const uint64_t nbytes = aoth_plan_leaf_nbytes(r) + r->arena_nbytes;
    printf("%-*s %7u %11.1f %11.1f %9.1f %11.1f %11.1f %11.1f %11.1f%s\n", width, mode_of(r), r->n_ranks,
           (double)r->parameter_nbytes / mib, (double)r->state_nbytes / mib, (double)r->buffer_nbytes / mib,
           (double)r->gathered_nbytes / mib, (double)r->gradient_nbytes / mib, (double)r->active_nbytes / mib,
           (double)r->arena_nbytes / mib, p->memory_nbytes && nbytes > p->memory_nbytes ? "  too much" : "");
  }
}

static void print_traffic(const aoth_rank_plans_t *p, int width) {
  printf("\nMiB that come to a rank in a step\n");
  printf("%-*s %7s %-8s %-8s %9s %11s\n", width, "mode", "ranks", "by", "with", "times", "MiB");
  for (uint32_t i = 0; i < p->n; i++)
    for (uint32_t k = 0; k < p->rows[i].n_collectives; k++) {
      const aoth_plan_collectives_t *c = &p->rows[i].collectives[k];
      printf("%-*s %7u %-8s %-8s %9llu %11.3f\n", width, mode_of(&p->rows[i]), p->rows[i].n_ranks, c->kind, c->group,
             (unsigned long long)c->n, (double)c->nbytes / mib);
    }
}

static void print_tables(const aoth_rank_plans_t *p) {
  const int width = mode_width(p);
  if (p->machine) printf("%s\n", p->machine);
  print_times(p, width);
  print_memory(p, width);
  print_traffic(p, width);
}

static json_t *collectives_json(const aoth_rank_plan_t *r) {
  json_t *rows = json_array();
  for (uint32_t k = 0; k < r->n_collectives; k++) {
    const aoth_plan_collectives_t *c = &r->collectives[k];
    json_array_append_new(rows, json_pack("{s:s, s:s, s:I, s:I}", "by", c->kind, "with", c->group, "times",
                                          (json_int_t)c->n, "bytes", (json_int_t)c->nbytes));
  }
  return rows;
}

static json_t *to_json(const aoth_rank_plans_t *p) {
  json_t *rows = json_array();
  for (uint32_t i = 0; i < p->n; i++) {
    const aoth_rank_plan_t *r = &p->rows[i];
    json_t *row =
        json_pack("{s:s?, s:i, s:f, s:f, s:f, s:o}", "mode", r->mode, "ranks", (int)r->n_ranks, "step_s", r->step_s,
                  "communication_s", r->communication_s, "exposed_s", r->exposed_s, "collectives", collectives_json(r));
    const struct {
      const char *name;
      uint64_t nbytes;
    } parts[] = {{"leaf_bytes", aoth_plan_leaf_nbytes(r)}, {"parameter_bytes", r->parameter_nbytes},
                 {"state_bytes", r->state_nbytes},         {"buffer_bytes", r->buffer_nbytes},
                 {"gathered_bytes", r->gathered_nbytes},   {"gradient_bytes", r->gradient_nbytes},
                 {"activation_bytes", r->active_nbytes},   {"arena_bytes", r->arena_nbytes}};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
      json_object_set_new(row, parts[k].name, json_integer((json_int_t)parts[k].nbytes));
    json_array_append_new(rows, row);
  }
  return json_pack("{s:s?, s:I, s:o}", "machine", p->machine, "memory_bytes", (json_int_t)p->memory_nbytes, "plans",
                   rows);
}

static aot_status_t draw(const plan_t *p) {
  kit_text_t text = {0};
  if (!p->plot) return AOT_OK;
  aoth_plan_svg(&p->plans, &text);
  const aot_status_t status = aoth_page_write(&text, p->plot, p->cli.sink);
  kit_text_deinit(&text);
  return status;
}

static aot_status_t run(plan_t *p, kit_arena_t *arena) {
  AOT_TRY(read_world(p));
  AOT_TRY(aoth_check_writable(p->plot, "the picture", NULL, p->cli.sink));
  AOT_TRY(
      aoth_plan_ranks(&p->cli, p->cli.positional[0], p->modes, p->machine, p->counts, p->n_counts, arena, &p->plans));
  const char *json = p->cli.common.json_path;
  if (!p->cli.common.quiet && !(json && strcmp(json, "-") == 0)) print_tables(&p->plans);
  json_t *result = to_json(&p->plans);
  const aot_status_t status = aoth_cli_json(&p->cli, result);
  json_decref(result);
  return status == AOT_OK ? draw(p) : status;
}

static int plan_main(const aoth_command_t *self, int argc, char **argv) {
  plan_t p = {.world = NULL};
  const aoth_flag_t flags[] = {
      {.name = "--world",
       .value = "N",
       .text = &p.world,
       .help = "numbers of ranks: 1, 2, 4, .. up to N, or those of a list with commas"},
      {.name = "--modes",
       .value = "M,..",
       .text = &p.modes,
       .help = "modes of the stage fsdp, hybrid:N with N columns; the pipeline's when left out"},
      {.name = "--machine", .value = "F", .text = &p.machine, .help = "what ranks and links of a machine do"},
      {.name = "--plot", .value = "F.svg", .text = &p.plot, .writes = 1, .help = "the table as a picture"},
  };
  int code = aoth_cli_init(&p.cli, self, argc, argv, flags, sizeof flags / sizeof *flags, 1, 1);
  if (code == AOTH_CLI_GO) {
    kit_arena_t *arena = kit_arena_create();
    const aot_status_t status = arena ? run(&p, arena) : AOT_E_EXHAUSTED;
    code = status == AOT_OK ? 0 : status == AOTH_E_PLUGIN ? 3 : 2;
    free(p.plans.rows);
    kit_arena_destroy(arena);
  }
  return aoth_cli_deinit(&p.cli, code);
}

const aoth_command_t aoth_cmd_plan = {
    .name = "plan",
    .usage = "plan PIPELINE --world N [--modes M,..] [--machine F] [--plot F.svg] [options]",
    .summary = "predict step time, memory and communication for N ranks",
    .text = "Compiles the pipeline's step for 1, 2, 4, .. N ranks, in each mode, up to its backend and tells: how long "
            "a step takes,\n"
            "how much of its communication is exposed (nothing is computed meanwhile); what a rank holds of parameters "
            "and states,\n"
            "and what a step needs beside: whole parameters, gradients, activations; what collectives bring to it, and "
            "from whom.\n"
            "Every rank takes the model's batch. Nothing runs, and no rank but this one is needed.\n"
            "\n"
            "The pipeline needs the stages fsdp and overlap. Nodes cost what the backend estimates (aot.cost/1), or by "
            "work and\n"
            "bytes; collectives are rings of messages. A machine file says how fast both are:\n"
            "\n"
            "  name: 8 GPUs a node\n"
            "  flops: 400000             # GFLOP/s that a rank reaches\n"
            "  memory-bandwidth: 4000    # GB/s of a rank's memory\n"
            "  memory: 141GiB            # that a rank has: plans that need more are marked\n"
            "  links: \"8: 0=6 1GiB=3000; 10000: 0=14 1GiB=22000\"\n"
            "\n"
            "links: among up to 8 ranks a message of 0 bytes takes 6 us and one of 1 GiB 3000 us, in proportion "
            "between; among more\n"
            "ranks what the next row says. Every key but name and memory is an option of the stage overlap (aothost "
            "plugins overlap).\n"
            "\n"
            "  aothost plan pipelines/fsdp.yaml --world 64\n"
            "  aothost plan pipelines/fsdp.yaml --world 4 --modes shard,shard-grad,replicate,hybrid:2\n"
            "  aothost plan pipelines/fsdp.yaml --world 1024 --machine examples/machines/h200.yaml --plot plan.svg\n"
            "  aothost plan pipelines/fsdp.yaml --world 64 --set stages.overlap.latency=5 --set "
            "stages.overlap.bandwidth=40",
    .main = plan_main,
};
