/* A pass that takes its time. It edits, writes its process's id to the file `running`, and then, as its option says,
 *
 *     asks       until it hears that it is to stop
 *     deaf       works for ever
 *     late       never queries, and is done when the file `enough` is there */
#include <aot/describe.h>
#include <aot/host.h>
#include <aot/inline.h>
#include <aot/pass.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

typedef struct patient {
  aot_pass_t table;
  aot_host_t host;
  aot_str_t how;
} patient_t;

static void wait_a_little(void) {
  const struct timespec ms = {.tv_nsec = 1000000};
  nanosleep(&ms, NULL);
}

static void say_running(void) {
  FILE *f = fopen("running.part", "w");
  if (!f) return;
  fprintf(f, "%ld\n", (long)getpid());
  fclose(f);
  rename("running.part", "running");
}

static aot_status_t run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const patient_t *u = p->head.self;
  const aot_graph_api_t *g = u->host.graph;
  const aot_node_t first = g->first(prog, g->graph_find(prog, AOT_GRAPH_FORWARD));
  AOT_TRY(u->host.edit->note(prog, first, aot_str("looked at")));
  say_running();
  while (aot_str_eq(u->how, aot_str("deaf"))) wait_a_little();
  if (aot_str_eq(u->how, aot_str("late")))
    while (access("enough", F_OK) != 0) wait_a_little();
  while (aot_str_eq(u->how, aot_str("asks"))) {
    if (u->host.cancelled(&u->host, ctx)) return AOT_E_CANCELLED;
    wait_a_little();
  }
  return AOT_OK;
}

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  patient_t *u = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *u);
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->how = opts->values[0].s;
  u->table = (aot_pass_t){.head = {.struct_size = sizeof u->table, .self = u}, .run = run};
  *out_table = &u->table.head;
  return AOT_OK;
}

static const aot_str_t ways[] = {AOT_STR_INIT("asks"), AOT_STR_INIT("deaf"), AOT_STR_INIT("late")};
static const aot_option_t options[] = {{
    .struct_size = sizeof(aot_option_t),
    .kind = AOT_OPT_ENUM,
    .flags = AOT_OPT_REQUIRED,
    .name = AOT_STR_INIT("how"),
    .help = AOT_STR_INIT("whether it asks"),
    .choices = ways,
    .n_choices = 3,
}};
static const aot_contract_t contract = {.struct_size = sizeof contract, .needs = AOT_NAMES(AOT_PROP_IMPORTED)};

AOT_PLUGIN_ONE("pass/1", "patient", "0.1", "tests", "Apache-2.0", "takes its time", create, .contract = &contract,
               AOT_OPTIONS(options));
