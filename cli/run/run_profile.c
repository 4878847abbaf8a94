#include <cli/run/run_profile.h>

#include <aot/ext/profile.h>
#include <aot/inline.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <cli/base/node_names.h>

enum { MOST_SUMS = 24, MOST_STEPS = 24 }; /* printed; JSON has all */

static int read_line(aoth_names_t *m, const aot_profile_row_t *row, aoth_profile_line_t *l) {
  aot_node_info_t info = {.struct_size = sizeof info};
  *l = (aoth_profile_line_t){
      .kernel = kit_arena_text(m->arena, row->kernel.data, row->kernel.size),
      .type = "",
      .n_steps = 1,
      .n_runs = row->n_runs,
      .ms = (double)row->ns * 1e-6,
      .nbytes = (double)row->nbytes * (double)row->n_runs,
      .flops = (double)row->flops * (double)row->n_runs,
      .limit_ms = (double)row->limit_ns * (double)row->n_runs * 1e-6,
      .last_at = row->last_at,
      .last_ns = row->last_ns,
  };
  if (aoth_names_node(m, row->node, &l->op, &l->module) && aoth_graph_node_info(m->p, row->node, &info) == AOT_OK &&
      info.n_results)
    l->type = aoth_names_type(m, info.first_result);
  return l->kernel && l->op && l->module && l->type;
}

static int slowest_first(const void *pa, const void *pb) {
  const aoth_profile_line_t *a = pa, *b = pb;
  return (a->ms < b->ms) - (a->ms > b->ms);
}

static int same_work(const void *pa, const void *pb) {
  const aoth_profile_line_t *a = pa, *b = pb;
  const int order = strcmp(a->kernel, b->kernel);
  return order ? order : strcmp(a->op, b->op);
}

static int same_module(const void *pa, const void *pb) {
  const aoth_profile_line_t *a = pa, *b = pb;
  return strcmp(a->module, b->module);
}

static void add(aoth_profile_line_t *sum, const aoth_profile_line_t *l) {
  sum->n_steps++;
  sum->n_runs += l->n_runs;
  sum->ms += l->ms;
  sum->nbytes += l->nbytes;
  sum->flops += l->flops;
  sum->limit_ms += l->limit_ms;
}

/* Lines that are the same become one. The count of those that are left. */
static uint64_t sum_up(aoth_profile_line_t *lines, uint64_t n, int (*same)(const void *, const void *)) {
  uint64_t n_sums = 0;
  qsort(lines, n, sizeof *lines, same);
  for (uint64_t i = 0; i < n; i++) {
    if (n_sums && same(&lines[n_sums - 1], &lines[i]) == 0) add(&lines[n_sums - 1], &lines[i]);
    else lines[n_sums++] = lines[i];
  }
  qsort(lines, n_sums, sizeof *lines, slowest_first);
  return n_sums;
}

/* A loop, or loops that run as one, are made for the last of the nodes that they compute: which one that is reports
 * little of all their like. */
static void sum_all(aoth_profile_view_t *v) {
  for (uint64_t i = 0; i < v->n_steps; i++) {
    v->sums[i] = v->modules[i] = v->steps[i];
    v->sums[i].type = v->sums[i].module = "";
    v->modules[i].type = v->modules[i].kernel = v->modules[i].op = "";
    if (strcmp(v->sums[i].kernel, "loop") == 0 || strcmp(v->sums[i].kernel, "loops") == 0) v->sums[i].op = "";
  }
  v->n_sums = sum_up(v->sums, v->n_steps, same_work);
  v->n_modules = sum_up(v->modules, v->n_steps, same_module);
}

aot_status_t aoth_profile_read(aoth_session_t *s, kit_arena_t *arena, aoth_profile_view_t *out) {
  aoth_names_t m = {.p = aoth_session_prog(s), .arena = arena};
  aot_profile_t given;
  int has_memory = 1;
  *out = (aoth_profile_view_t){.n_runs = 0};
  AOT_TRY(aoth_session_profile(s, &given));
  out->steps = kit_arena_alloc(arena, sizeof(void *), ((size_t)given.n_rows + 1) * sizeof *out->steps);
  out->sums = kit_arena_alloc(arena, sizeof(void *), ((size_t)given.n_rows + 1) * sizeof *out->sums);
  out->modules = kit_arena_alloc(arena, sizeof(void *), ((size_t)given.n_rows + 1) * sizeof *out->modules);
  if (!out->steps || !out->sums || !out->modules) return AOT_E_EXHAUSTED;
  for (uint64_t i = 0; i < given.n_rows && has_memory; i++) {
    aot_profile_row_t row = {.n_runs = 0};
    const uint64_t known = given.row_stride < sizeof row ? given.row_stride : sizeof row;
    memcpy(&row, (const char *)given.rows + i * given.row_stride, (size_t)known);
    if (!row.n_runs) continue;
    has_memory = read_line(&m, &row, &out->steps[out->n_steps++]);
    out->ms += (double)row.ns * 1e-6;
    out->limit_ms += (double)row.limit_ns * (double)row.n_runs * 1e-6;
    if (row.n_left_out > out->n_left_out) out->n_left_out = row.n_left_out;
    if (!out->n_runs || row.n_runs < out->n_runs) out->n_runs = row.n_runs;
  }
  kit_text_deinit(&m.text);
  if (!has_memory) return AOT_E_EXHAUSTED;
  sum_all(out);
  qsort(out->steps, out->n_steps, sizeof *out->steps, slowest_first);
  return AOT_OK;
}

/* ---- for people ---- */

/* A rate, or the share of the limit, where both are known. */
static void print_number(const char *format, double number, double of, FILE *out) {
  char text[32] = "-";
  if (number > 0 && of > 0) snprintf(text, sizeof text, format, number / of);
  fprintf(out, " %7s", text);
}

static void print_numbers(const aoth_profile_view_t *v, const aoth_profile_line_t *l, FILE *out) {
  fprintf(out, "%10.3f %5.1f%%", l->ms / (double)v->n_runs, 100 * l->ms / v->ms);
  print_number("%.1f", l->nbytes * 1e-6, l->ms, out);
  print_number("%.1f", l->flops * 1e-6, l->ms, out);
  print_number("%.0f%%", 100 * l->limit_ms, l->ms, out);
  fprintf(out, "  ");
}

#define NUMBERS "        ms           GB/s GFLOP/s   limit"

void aoth_profile_print(const aoth_profile_view_t *v, FILE *out) {
  if (!v->n_runs || v->ms <= 0) {
    fprintf(out, "profile: nothing ran\n");
    return;
  }
  fprintf(out, "profile: %.3f ms in %llu steps, mean of %llu runs%s", v->ms / (double)v->n_runs,
          (unsigned long long)v->n_steps, (unsigned long long)v->n_runs, v->n_left_out ? " after a first one" : "");
  if (v->limit_ms > 0)
    fprintf(out, "; %.3f ms at the machine's limits (%.0f%%)", v->limit_ms / (double)v->n_runs,
            100 * v->limit_ms / v->ms);
  fprintf(out, "\n" NUMBERS "   steps  %-22s %s\n", "kernel", "operator");
  for (uint64_t i = 0; i < v->n_sums && i < MOST_SUMS; i++) {
    print_numbers(v, &v->sums[i], out);
    fprintf(out, "%6llu  %-22s %s\n", (unsigned long long)v->sums[i].n_steps, v->sums[i].kernel, v->sums[i].op);
  }
  fprintf(out, "slowest steps\n" NUMBERS "  %-22s %-44s %-22s %s\n", "kernel", "operator", "result", "module");
  for (uint64_t i = 0; i < v->n_steps && i < MOST_STEPS; i++) {
    const aoth_profile_line_t *l = &v->steps[i];
    print_numbers(v, l, out);
    fprintf(out, "%-22s %-44s %-22s %s\n", l->kernel, l->op, l->type, l->module);
  }
}

/* ---- JSON ---- */

json_t *aoth_profile_json(const aoth_profile_view_t *v) {
  json_t *steps = json_array();
  for (uint64_t i = 0; i < v->n_steps; i++) {
    const aoth_profile_line_t *l = &v->steps[i];
    json_array_append_new(steps,
                          json_pack("{s:s, s:s, s:s, s:s, s:I, s:f, s:f, s:f, s:f}", "kernel", l->kernel, "operator",
                                    l->op, "result", l->type, "module", l->module, "runs", (json_int_t)l->n_runs, "ms",
                                    l->ms, "bytes", l->nbytes, "flops", l->flops, "limit_ms", l->limit_ms));
  }
  return json_pack("{s:I, s:I, s:f, s:f, s:o}", "runs", (json_int_t)v->n_runs, "left_out", (json_int_t)v->n_left_out,
                   "ms", v->ms, "limit_ms", v->limit_ms, "steps", steps);
}

/* ---- a lane of the trace ---- */

void aoth_profile_trace(const aoth_profile_view_t *v, aoth_trace_t *t) {
  aoth_trace_lane(t, AOTH_TRACE_HOST, "host");
  aoth_trace_lane(t, AOTH_TRACE_DEVICE, "device, last run");
  for (uint64_t i = 0; i < v->n_steps; i++) {
    const aoth_profile_line_t *l = &v->steps[i];
    if (l->last_at)
      aoth_trace_past(t, AOTH_TRACE_DEVICE, l->kernel, *l->op ? l->op : l->kernel, l->last_at, l->last_ns, NULL);
  }
}
