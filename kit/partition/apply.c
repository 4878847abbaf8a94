#include "apply.h"

#include "equal_nodes.h"
#include "kit/graph/split.h"
#include "tags.h"
#include <aot/ext/joint_halves.h>
#include <aot/ext/report.h>
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

/* Equal nodes become one in the arrays; *out_same, freed by the caller, determines which value represents which. */
static aot_status_t merge(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, jg_joint_t *j,
                          uint32_t **out_same) {
  const uint32_t n_ids = host->graph->n_values(prog);
  uint32_t *same = calloc((size_t)n_ids + 1, sizeof *same);
  *out_same = same;
  if (!same || pt_find_equal(j->snapshot, j->graph, n_ids, same) != 0 || pt_joint_merge(j, n_ids, same) != 0)
    return jg_no_memory(host, ctx);
  return AOT_OK;
}

static aot_status_t read_joint(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const pt_how_t *how,
                               jg_joint_t *out, uint32_t **out_same) {
  const aot_snapshot_t *snapshot = NULL;
  *out_same = NULL;
  AOT_TRY(host->graph->snapshot(prog, &snapshot));
  int made = jg_joint_init(out, snapshot);
  if (made == -1)
    return jg_fail(host, ctx, AOT_E_PRECONDITION, "partition.no-joint",
                   "the program has no joint graph; add stage autograd before the partition", aot_no_value());
  if (made != 0) return jg_no_memory(host, ctx);
  aot_status_t status = how->merge_equal ? merge(host, ctx, prog, out, out_same) : AOT_OK;
  if (status != AOT_OK) jg_joint_deinit(out);
  return status;
}

static aot_status_t put_cut(const jg_joint_t *j, const jg_split_t *s, const aot_cut_sink_t *sink) {
  aot_value_t *saved = calloc((size_t)s->n_saved + 1, sizeof *saved);
  aot_node_t *recomputed = calloc((size_t)s->n_recomputed + 1, sizeof *recomputed);
  aot_status_t status = AOT_E_EXHAUSTED;
  if (saved && recomputed) {
    for (uint32_t i = 0; i < s->n_saved; i++) saved[i].id = j->value_id[s->saved[i]];
    for (uint32_t i = 0; i < s->n_recomputed; i++) recomputed[i].id = j->node_id[s->recomputed[i]];
    aot_cut_t cut = {sizeof cut, s->n_saved, s->n_recomputed, 0, saved, recomputed, s->nbytes_saved, 0};
    status = sink->put(sink, &cut);
  }
  free(saved);
  free(recomputed);
  return status;
}

static aot_status_t report(const aot_host_t *host, aot_ctx_t *ctx, const jg_split_t *s) {
  const aot_ext_report_t *r = aot_ext(&host->head, AOT_EXT_REPORT);
  if (!r) return AOT_OK;
  AOT_TRY(r->number(r, ctx, aot_str("saved-bytes"), (double)s->nbytes_saved, aot_str("bytes")));
  AOT_TRY(r->number(r, ctx, aot_str("saved-values"), s->n_saved, aot_str("")));
  return r->number(r, ctx, aot_str("recomputed-nodes"), s->n_recomputed, aot_str("nodes"));
}

aot_status_t pt_resolve_tags(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, jg_joint_t *j, uint32_t *out_n) {
  uint32_t *region = calloc((size_t)j->n_nodes + 1, sizeof *region);
  aot_status_t status = region ? AOT_OK : jg_no_memory(host, ctx);
  for (uint32_t n = 0; status == AOT_OK && n < j->n_nodes; n++) {
    aot_node_info_t info = {.struct_size = sizeof info};
    status = host->graph->node_info(prog, (aot_node_t){j->node_id[n]}, &info);
    region[n] = info.region_tag;
  }
  if (status == AOT_OK) pt_tags_resolve(j, region, out_n);
  free(region);
  return status;
}

static aot_status_t report_number(const aot_host_t *host, aot_ctx_t *ctx, const char *name, uint32_t n) {
  const aot_ext_report_t *r = aot_ext(&host->head, AOT_EXT_REPORT);
  return r && n ? r->number(r, ctx, aot_str(name), n, aot_str("nodes")) : AOT_OK;
}

static uint32_t count_merged(const jg_joint_t *j, const uint32_t *same) {
  uint32_t n_merged = 0;
  for (uint32_t n = 0; same && n < j->n_nodes; n++) {
    const uint32_t v = j->result_begin[n];
    n_merged += v < j->result_begin[n + 1] && same[j->value_id[v]] != j->value_id[v];
  }
  return n_merged;
}

static aot_status_t choose(const aot_host_t *host, aot_ctx_t *ctx, const jg_joint_t *j, uint32_t *saved,
                           const aot_cut_sink_t *sink, const pt_how_t *how) {
  jg_split_t split;
  uint32_t bad = 0, n_saved = 0;
  int solved = how->pick(how->self, j, saved, &n_saved, &bad);
  if (solved == PT_TOLD) return AOT_E_PRECONDITION;
  if (solved == PT_STOPPED) return AOT_E_CANCELLED;
  if (solved == PT_EXHAUSTED) return AOT_E_EXHAUSTED;
  if (solved == -1)
    return jg_fail(host, ctx, AOT_E_PRECONDITION, "partition.unbounded",
                   "no cut is possible: this value may be neither saved nor recomputed",
                   (aot_value_t){j->value_id[bad]});
  if (solved != 0 || jg_split_init(&split, j, saved, n_saved, &bad) != 0) return jg_no_memory(host, ctx);
  aot_status_t status = put_cut(j, &split, sink);
  if (status == AOT_OK) status = report(host, ctx, &split);
  jg_split_deinit(&split);
  return status;
}

aot_status_t pt_choose(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const aot_cut_sink_t *sink,
                       const pt_how_t *how) {
  jg_joint_t j;
  uint32_t n_kept = 0, *same = NULL;
  aot_status_t status = read_joint(host, ctx, prog, how, &j, &same);
  if (status == AOT_OK) {
    uint32_t *saved = calloc((size_t)j.n_values + 1, sizeof *saved);
    status = !saved         ? jg_no_memory(host, ctx)
             : how->prepare ? how->prepare(how->prepare_self, host, ctx, prog, &j)
                            : AOT_OK;
    if (status == AOT_OK) status = pt_resolve_tags(host, ctx, prog, &j, &n_kept);
    if (status == AOT_OK && host->cancelled(host, ctx)) status = AOT_E_CANCELLED;
    if (status == AOT_OK) status = choose(host, ctx, &j, saved, sink, how);
    if (status == AOT_OK) status = report_number(host, ctx, "tagged-but-kept", n_kept);
    if (status == AOT_OK) status = report_number(host, ctx, "merged-nodes", count_merged(&j, same));
    free(saved);
    jg_joint_deinit(&j);
  }
  free(same);
  return status;
}

/* What the arrays have merged becomes one in the program: the forward and backward graphs are made of what was chosen
 * on. */
static aot_status_t merge_in_program(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const pt_how_t *how) {
  jg_joint_t j;
  uint32_t *same = NULL;
  aot_status_t status = read_joint(host, ctx, prog, how, &j, &same);
  if (status == AOT_OK) {
    for (uint32_t v = j.n_inputs; status == AOT_OK && v < j.n_values; v++) {
      const aot_value_t from = {j.value_id[v]}, to = {same[from.id]};
      if (from.id != to.id) status = host->edit->uses_replace(prog, from, to);
    }
    jg_joint_deinit(&j);
  }
  free(same);
  return status;
}

aot_status_t pt_apply(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const aot_cut_t *cut,
                      const pt_how_t *how) {
  const aot_ext_joint_halves_t *halves = aot_ext(&host->head, AOT_EXT_JOINT_HALVES);
  if (!halves)
    return jg_fail(host, ctx, AOT_E_UNAVAILABLE, "partition.no-halves",
                   "this host does not make halves of a joint graph (aot.joint-halves/1)", aot_no_value());
  if (how->merge_equal) AOT_TRY(merge_in_program(host, ctx, prog, how));
  return halves->make(halves, ctx, prog, cut);
}
