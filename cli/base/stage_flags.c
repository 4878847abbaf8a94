/* --use STAGE --with K=V ..: stages from the command line. */
#include <cli/base/cli.h>

#include <config/options.h>
#include <config/pipeline.h>
#include <plugin/registry.h>
#include <string.h>

#define MAX_STAGES 64u
#define MAX_OPTIONS 256u

aot_status_t aoth_cli_stages(aoth_cli_t *cli, const aoth_texts_t *uses, kit_arena_t *arena, aoth_stage_t **out,
                             uint32_t *out_n) {
  aot_status_t status = AOT_OK;
  const char *const *t = uses->items;
  aoth_stage_t *stages = kit_arena_alloc(arena, sizeof(void *), MAX_STAGES * sizeof *stages);
  uint32_t n_stages = 0;
  if (!stages) return AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < uses->n;) {
    const char *withs[MAX_OPTIONS];
    uint32_t n = 0;
    if (strcmp(t[i], "--use") != 0 || n_stages == MAX_STAGES) {
      aoth_sink_report(cli->sink, AOT_SEVERITY_ERROR, NULL, "opt.with", "%s",
                       n_stages == MAX_STAGES ? "too many stages: 64 are the limit"
                                              : "--with belongs to the --use before it, and there is none");
      return AOT_E_INVALID;
    }
    const char *use = t[i + 1];
    for (i += 2; i < uses->n && strcmp(t[i], "--with") == 0 && n < MAX_OPTIONS; i += 2) withs[n++] = t[i + 1];
    aoth_stage_t *stage = &stages[n_stages++];
    aot_status_t one = aoth_stage_from_flags(use, withs, n, arena, cli->sink, stage);
    if (one == AOT_OK) one = aoth_stage_resolve(cli->session, stage, AOTH_STAGE_KINDS, arena);
    if (status == AOT_OK) status = one;
    stage->number = n_stages;
  }
  *out = stages;
  *out_n = n_stages;
  return status;
}
