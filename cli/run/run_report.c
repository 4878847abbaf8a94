#include <cli/run/run_report.h>

#include <cli/base/compile_report.h>
#include <cli/verify/backend_shares.h>
#include <cli/run/check_stages.h>

#include <aot/inline.h>
#include "kit/base/text.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <compiler/compile.h>
#include <compiler/run_ranks.h>
#include <trainer/progress.h>
#include <sys/resource.h>

/* "1.5 MiB" */
static void print_bytes(FILE *out, uint64_t n) {
  static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double x = (double)n;
  int u = 0;
  for (; x >= 1024 && u < 4; u++) x /= 1024;
  fprintf(out, u ? "%.1f %s" : "%.0f %s", x, units[u]);
}

/* Peak resident memory of the process, in bytes (getrusage counts KiB on Linux). */
static uint64_t peak_rss(void) {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}

static aot_exe_stats_t exe_stats(const aoth_run_t *r) {
  aot_exe_stats_t stats = {.struct_size = sizeof stats};
  if (aoth_session_exe_stats(r->session, &stats) != AOT_OK) stats = (aot_exe_stats_t){.struct_size = sizeof stats};
  return stats;
}

/* One row a unit, with the words that it reported; -v shows the numbers, too, --time prints the whole table at the
 * end. */
void aoth_run_print_stages(const aoth_run_t *r) {
  const aoth_record_t *records;
  uint32_t n = aoth_session_records(r->session, &records);
  const aoth_cache_outcome_t *cache = aoth_session_cache(r->session);
  double ms = 0;
  if (!r->out) return;
  if (r->cli->common.verbose) aoth_records_print(r->session, r->out);
  for (uint32_t i = 0; i < n; i++) {
    const aoth_record_t *c = &records[i];
    char plugin[80];
    snprintf(plugin, sizeof plugin, "%s %s", c->plugin ? c->plugin : "-", c->version ? c->version : "");
    ms += c->ms;
    if (r->cli->common.verbose) continue;
    if (c->is_cached) fprintf(r->out, "%-20s %-26s %12s", c->name, plugin, "cached");
    else fprintf(r->out, "%-20s %-26s %9.1f ms", c->name, plugin, c->ms);
    fprintf(r->out, "  %6llu -> %llu nodes", (unsigned long long)c->nodes_before, (unsigned long long)c->nodes_after);
    for (uint32_t k = 0; k < c->n_numbers; k++)
      if (c->numbers[k].text) fprintf(r->out, ", %s %s", c->numbers[k].name, c->numbers[k].text);
    fputc('\n', r->out);
  }
  if (cache->outcome == AOTH_CACHE_HIT) fprintf(r->out, "compiled before; ready in %.1f ms\n", cache->ms);
  else fprintf(r->out, "compiled in %.1f ms\n", ms);
  if (r->cli->common.verbose) aoth_cache_print(r->session, r->out);
  fflush(r->out);
}

/* ---- results of a single call ---- */

static aot_status_t print_result(void *self, const char *key, const aoth_tensor_t *t) {
  FILE *out = self;
  kit_text_t shape = {0};
  aoth_tensor_print_shape(t, &shape);
  fprintf(out, "%-32s %s", key, shape.data ? shape.data : "");
  if (aoth_tensor_numel(t) == 1)
    fprintf(out, "  %.9g",
            kit_element_load(t->dtype, (const char *)t->data + t->offset * (int64_t)aot_dtype_size(t->dtype)));
  fprintf(out, "\n");
  kit_text_deinit(&shape);
  return AOT_OK;
}

static void print_training(const aoth_run_t *r) {
  const aoth_train_result_t *t = &r->train;
  const aoth_train_spec_t *spec = &r->pipeline->run.train;
  char time[32];
  int64_t steps = t->done - t->first;
  aoth_progress_duration(t->seconds, time, sizeof time);
  if (steps == 0 && !t->diverged) {
    fprintf(r->out, "nothing to do: the checkpoint is at step %lld of %lld\n", (long long)t->done,
            (long long)spec->steps);
    return;
  }
  fprintf(r->out, "%s after step %lld of %lld: loss %.4f -> %.4f in %s",
          t->diverged      ? "diverged"
          : t->interrupted ? "interrupted"
                           : "trained",
          (long long)t->done, (long long)spec->steps, t->first_loss, t->last_loss, time);
  if (t->seconds > 0) fprintf(r->out, ", %.0f %s/s", (double)steps * (double)t->items / t->seconds, t->unit);
  fprintf(r->out, "\n");
  if (t->loss_scale > 0) fprintf(r->out, "loss scale %g, %.0f steps skipped\n", t->loss_scale, t->n_skipped);
  if (spec->checkpoint_path && !t->diverged) fprintf(r->out, "checkpoint: %s\n", spec->checkpoint_path);
}

/* Programs that were compiled during the run, for inputs that share memory. */
static void print_patterns(const aoth_run_t *r) {
  for (uint32_t k = 0; k < aoth_step_n_patterns(r->step); k++) {
    const aoth_pattern_t *p = aoth_step_pattern(r->step, k);
    fprintf(r->out, "inputs that share memory: %s; %s in %.1f ms, %llu call%s\n", p->text,
            p->is_cached ? "out of the cache" : "compiled", p->ms, (unsigned long long)p->n_calls,
            p->n_calls == 1 ? "" : "s");
  }
}

static void print_backends(const aoth_run_t *r) {
  aoth_backend_shares_t shares;
  aoth_backend_shares(r->session, r->pipeline, &shares);
  aoth_backend_shares_print(&shares, r->cli->common.verbose != 0, r->out);
  if (!aoth_backend_is_idle(&shares)) return;
  aoth_sink_report(r->cli->sink, AOT_SEVERITY_WARNING, NULL, "run.idle-backend",
                   "backend %s runs no node; the others run all of them (-v: why)", shares.at[0].backend);
}

static int has_other_device(const aoth_run_t *r) {
  const aoth_share_t *shares;
  const uint32_t n = aoth_session_shares(r->session, &shares);
  int has = 0;
  for (uint32_t b = 0; b < n; b++) has |= shares[b].device != NULL;
  return has;
}

static aoth_rank_row_t rank_row(const aoth_run_t *r) {
  const aot_exe_stats_t stats = exe_stats(r);
  const aot_group_info_t traffic = aoth_session_traffic_of_ranks(r->session);
  return (aoth_rank_row_t){.leaf_nbytes = aoth_step_sizes(r->step).nbytes_leaves,
                           .arena_nbytes = stats.peak_nbytes ? stats.peak_nbytes : stats.arena_nbytes,
                           .peak_nbytes = peak_rss(),
                           .gathered_nbytes = traffic.gathered_nbytes,
                           .scattered_nbytes = traffic.scattered_nbytes,
                           .spent_ns = traffic.spent_ns,
                           .waited_ns = aoth_session_waited_for_ranks(r->session)};
}

/* Hidden is what went on while nodes ran; exposed, what a node waited for. */
static void print_time_of_rank(FILE *out, const aoth_rank_row_t *row) {
  const uint64_t exposed = row->waited_ns < row->spent_ns ? row->waited_ns : row->spent_ns;
  fprintf(out, ", %.3f s in collectives", (double)row->spent_ns / 1e9);
  if (exposed)
    fprintf(out, " (%.3f hidden, %.3f exposed)", (double)(row->spent_ns - exposed) / 1e9, (double)exposed / 1e9);
}

void aoth_run_hear_ranks(aoth_run_t *r) {
  const uint32_t n = aoth_session_n_ranks(r->session);
  const aoth_rank_row_t own = rank_row(r);
  r->ranks = n > 1 ? calloc(n, sizeof *r->ranks) : NULL;
  if (!r->ranks || aoth_session_gather(r->session, &own, sizeof own, r->ranks, "the summary") == AOT_OK) return;
  free(r->ranks);
  r->ranks = NULL;
}

static void print_ranks(const aoth_run_t *r) {
  for (uint32_t i = 0; r->ranks && i < aoth_session_n_ranks(r->session); i++) {
    const aoth_rank_row_t *row = &r->ranks[i];
    fprintf(r->out, "rank %u: parameters and state ", i);
    print_bytes(r->out, row->leaf_nbytes);
    fprintf(r->out, ", executable ");
    print_bytes(r->out, row->arena_nbytes);
    fprintf(r->out, ", gathered ");
    print_bytes(r->out, row->gathered_nbytes);
    fprintf(r->out, ", scattered ");
    print_bytes(r->out, row->scattered_nbytes);
    print_time_of_rank(r->out, row);
    fprintf(r->out, ", process peak ");
    print_bytes(r->out, row->peak_nbytes);
    fprintf(r->out, "\n");
  }
}

void aoth_run_print_summary(const aoth_run_t *r) {
  aoth_step_sizes_t sizes = aoth_step_sizes(r->step);
  aot_exe_stats_t stats = exe_stats(r);
  if (!r->out) return;
  print_ranks(r);
  if (r->cli->common.verbose) print_patterns(r);
  if (r->trained) print_training(r);
  if (r->called) aoth_step_keys(r->step, AOTH_KEYS_OUTPUTS | AOTH_KEYS_GRADIENTS, print_result, r->out);
  if (r->called && r->pipeline->run.outputs) fprintf(r->out, "outputs: %s\n", r->pipeline->run.outputs);
  fprintf(r->out, "memory: %s", aoth_step_has(r->step, AOT_GRAPH_STEP) ? "one step graph" : "saved for backward ");
  if (!aoth_step_has(r->step, AOT_GRAPH_STEP)) print_bytes(r->out, sizes.nbytes_saved);
  fprintf(r->out, ", boundary ");
  print_bytes(r->out, sizes.nbytes_block);
  fprintf(r->out, ", parameters and state ");
  print_bytes(r->out, sizes.nbytes_leaves);
  fprintf(r->out, ", executable ");
  print_bytes(r->out, stats.peak_nbytes ? stats.peak_nbytes : stats.arena_nbytes);
  fprintf(r->out, ", copied %s ", r->trained ? "a step" : "back");
  print_bytes(r->out, sizes.nbytes_copied + stats.copied_nbytes);
  fprintf(r->out, ", process peak ");
  print_bytes(r->out, peak_rss());
  fprintf(r->out, "\n");
  print_backends(r);
  if (r->profile) aoth_profile_print(r->profile, r->out);
  const aoth_traffic_t traffic = aoth_session_traffic(r->session);
  if (has_other_device(r)) {
    fprintf(r->out, "moved between devices: ");
    print_bytes(r->out, traffic.moved_nbytes);
    if (r->trained) fprintf(r->out, ", ");
    if (r->trained) print_bytes(r->out, r->train.crossed);
    fprintf(r->out, "%s\n", r->trained ? " of them a step" : "");
  }
  if (!traffic.device) return;
  fprintf(r->out, "device %s: ", traffic.device);
  print_bytes(r->out, traffic.nbytes);
  fprintf(r->out, " there and back");
  if (r->trained) fprintf(r->out, ", ");
  if (r->trained) print_bytes(r->out, r->train.moved);
  fprintf(r->out, "%s, %llu calls\n", r->trained ? " of them a step" : "", (unsigned long long)traffic.n_calls);
}

/* ---- JSON ---- */

static json_t *number_or_null(double d) { return isfinite(d) ? json_real(d) : json_null(); }

static json_t *training_json(const aoth_run_t *r) {
  const aoth_train_result_t *t = &r->train;
  const aoth_train_spec_t *spec = &r->pipeline->run.train;
  json_t *o = json_object(), *log = json_array();
  int64_t steps = t->done - t->first;
  json_object_set_new(o, "steps", json_integer(spec->steps));
  json_object_set_new(o, "first", json_integer(t->first));
  json_object_set_new(o, "done", json_integer(t->done));
  json_object_set_new(o, "first_loss", number_or_null(t->first_loss));
  json_object_set_new(o, "last_loss", number_or_null(t->last_loss));
  json_object_set_new(o, "seconds", json_real(t->seconds));
  json_object_set_new(o, "items_per_step", json_integer((json_int_t)t->items));
  json_object_set_new(o, "unit", json_string(t->unit));
  json_object_set_new(o, "items_per_second",
                      t->seconds > 0 ? json_real((double)steps * (double)t->items / t->seconds) : json_null());
  json_object_set_new(o, "optimizer", json_string(spec->optimizer.use));
  json_object_set_new(o, "seed", json_integer(spec->seed));
  if (t->loss_scale > 0) {
    json_object_set_new(o, "loss_scale", json_real(t->loss_scale));
    json_object_set_new(o, "skipped", json_integer((json_int_t)t->n_skipped));
  }
  json_object_set_new(o, "interrupted", json_boolean(t->interrupted));
  json_object_set_new(o, "diverged", json_boolean(t->diverged));
  json_object_set_new(o, "checkpoint", spec->checkpoint_path ? json_string(spec->checkpoint_path) : json_null());
  for (uint32_t i = 0; i < t->n_log; i++) {
    json_t *row = json_object();
    json_object_set_new(row, "step", json_integer(t->log[i].step));
    json_object_set_new(row, "loss", number_or_null(t->log[i].loss));
    json_object_set_new(row, "lr", json_real(t->log[i].lr));
    json_array_append_new(log, row);
  }
  json_object_set_new(o, "log", log);
  return o;
}

static aot_status_t add_result(void *self, const char *key, const aoth_tensor_t *t) {
  json_t *row = json_object(), *shape = json_array();
  for (int32_t d = 0; d < t->rank; d++) json_array_append_new(shape, json_integer(t->sizes[d]));
  json_object_set_new(row, "key", json_string(key));
  json_object_set_new(row, "dtype", json_string(aot_dtype_name(t->dtype)));
  json_object_set_new(row, "shape", shape);
  if (aoth_tensor_numel(t) == 1) {
    const char *element = (const char *)t->data + t->offset * (int64_t)aot_dtype_size(t->dtype);
    json_object_set_new(row, "value", number_or_null(kit_element_load(t->dtype, element)));
  }
  json_array_append_new(self, row);
  return AOT_OK;
}

static json_t *memory_json(const aoth_run_t *r) {
  aoth_step_sizes_t sizes = aoth_step_sizes(r->step);
  aot_exe_stats_t stats = exe_stats(r);
  json_t *o = json_object();
  json_object_set_new(o, "saved_bytes", json_integer((json_int_t)sizes.nbytes_saved));
  json_object_set_new(o, "boundary_bytes", json_integer((json_int_t)sizes.nbytes_block));
  json_object_set_new(o, "leaf_bytes", json_integer((json_int_t)sizes.nbytes_leaves));
  json_object_set_new(o, "arena_bytes", json_integer((json_int_t)stats.arena_nbytes));
  json_object_set_new(o, "peak_intermediate_bytes", json_integer((json_int_t)stats.peak_nbytes));
  json_object_set_new(o, "copied_bytes", json_integer((json_int_t)(sizes.nbytes_copied + stats.copied_nbytes)));
  json_object_set_new(o, "artifact_bytes", json_integer((json_int_t)aoth_session_artifact_nbytes(r->session)));
  json_object_set_new(o, "peak_rss_bytes", json_integer((json_int_t)peak_rss()));
  json_object_set_new(o, "kernels", json_integer(stats.n_kernels));
  return o;
}

static json_t *device_json(const aoth_run_t *r) {
  const aoth_traffic_t t = aoth_session_traffic(r->session);
  return json_pack("{s:s, s:I, s:I, s:I}", "name", t.device ? t.device : "host", "calls", (json_int_t)t.n_calls,
                   "copied_bytes", (json_int_t)t.nbytes, "copied_bytes_per_step",
                   (json_int_t)(r->trained ? r->train.moved : 0));
}

static json_t *ranks_json(const aoth_run_t *r) {
  json_t *list = json_array();
  for (uint32_t i = 0; r->ranks && i < aoth_session_n_ranks(r->session); i++) {
    const aoth_rank_row_t *row = &r->ranks[i];
    json_array_append_new(list,
                          json_pack("{s:I, s:I, s:I, s:I, s:I, s:f, s:f}", "leaf_bytes", (json_int_t)row->leaf_nbytes,
                                    "arena_bytes", (json_int_t)row->arena_nbytes, "peak_rss_bytes",
                                    (json_int_t)row->peak_nbytes, "gathered_bytes", (json_int_t)row->gathered_nbytes,
                                    "scattered_bytes", (json_int_t)row->scattered_nbytes, "collectives_s",
                                    (double)row->spent_ns / 1e9, "exposed_s", (double)row->waited_ns / 1e9));
  }
  return list;
}

json_t *aoth_patterns_json(const aoth_step_t *s) {
  json_t *list = json_array();
  for (uint32_t k = 0; s && k < aoth_step_n_patterns(s); k++) {
    const aoth_pattern_t *p = aoth_step_pattern(s, k);
    json_array_append_new(list, json_pack("{s:s, s:I, s:b, s:f}", "inputs", p->text, "calls", (json_int_t)p->n_calls,
                                          "cached", p->is_cached, "ms", p->ms));
  }
  return list;
}

aot_status_t aoth_run_write_json(const aoth_run_t *r) {
  if (aoth_session_rank(r->session)) return AOT_OK; /* the first rank speaks for all */
  json_t *o = json_object(), *results = json_array();
  json_object_set_new(o, "command", json_string("run"));
  json_object_set_new(o, "pipeline", json_string(r->cli->positional[0]));
  json_object_set_new(o, "model", r->pipeline->model_path ? json_string(r->pipeline->model_path) : json_null());
  json_object_set_new(o, "stages", aoth_records_json(r->session));
  json_object_set_new(o, "cache", aoth_cache_json(r->session));
  if (r->checks) json_object_set(o, "stage_checks", r->checks->rows);
  aoth_backend_shares_t backends;
  aoth_backend_shares(r->session, r->pipeline, &backends);
  json_t *shares = aoth_backend_shares_json(&backends);
  if (shares) json_object_set_new(o, "backends", shares);
  json_object_set_new(o, "alias_patterns", aoth_patterns_json(r->step));
  json_object_set_new(o, "train", r->trained ? training_json(r) : json_null());
  if (r->called) aoth_step_keys(r->step, AOTH_KEYS_OUTPUTS | AOTH_KEYS_GRADIENTS, add_result, results);
  json_object_set_new(o, "results", results);
  json_object_set_new(o, "outputs",
                      r->called && r->pipeline->run.outputs ? json_string(r->pipeline->run.outputs) : json_null());
  json_object_set_new(o, "memory", memory_json(r));
  json_object_set_new(o, "device", device_json(r));
  if (r->ranks) json_object_set_new(o, "ranks", ranks_json(r));
  json_object_set_new(o, "moved",
                      json_pack("{s:I, s:I}", "bytes", (json_int_t)aoth_session_traffic(r->session).moved_nbytes,
                                "bytes_per_step", (json_int_t)(r->trained ? r->train.crossed : 0)));
  if (r->profile) json_object_set_new(o, "profile", aoth_profile_json(r->profile));
  aot_status_t status = aoth_cli_json(r->cli, o);
  json_decref(o);
  return status;
}
