/* The comparison for a terminal: a column an arm, a row a number; then what the rows cannot say. */
#include <cli/ab/ab.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LABEL 27
#define COLUMN 24
#define MOST_COLUMNS 6 /* arms next to each other; on a terminal as many as it is wide */
#define MOST_DIFFERENCES 10

/* ---- cells ---- */

typedef void (*cell_t)(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a, char *out, size_t size);

/* Number at a path of two keys; NaN: null, or not come to. */
static double at(const json_t *o, const char *key, const char *below) {
  const json_t *v = o ? json_object_get(o, key) : NULL;
  if (v && below) v = json_object_get(v, below);
  return v && json_is_number(v) ? json_number_value(v) : (double)NAN;
}

static void bytes_cell(double n, char *out, size_t size) {
  char text[AOTH_BYTES_SIZE];
  if (!isnan(n)) snprintf(out, size, "%s", aoth_bytes_text((uint64_t)n, text));
}

static void ms_cell(double ms, char *out, size_t size) {
  if (!isnan(ms)) snprintf(out, size, ms < 10 ? "%.3f ms" : ms < 1000 ? "%.1f ms" : "%.0f ms", ms);
}

static void interval_cell(aoth_interval_t i, char *out, size_t size) {
  if (!isnan(i.value)) snprintf(out, size, i.value < 10 ? "%.3f to %.3f ms" : "%.1f to %.1f ms", i.low, i.high);
}

static void outcome_cell(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a, char *out, size_t size) {
  (void)ab;
  snprintf(out, size, "%s%s%s", aoth_ab_outcome(a), a->worker.doing ? ": " : "",
           a->worker.doing ? a->worker.doing : "");
}
static void stage_cell(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a, char *out, size_t size) {
  (void)ab;
  ms_cell(a->stage.value, out, size);
}
static void stage_range_cell(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a, char *out, size_t size) {
  (void)ab;
  interval_cell(a->stage, out, size);
}
static void compile_cell(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a, char *out, size_t size) {
  (void)ab;
  ms_cell(a->compile.value, out, size);
}
static void compile_range_cell(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a, char *out, size_t size) {
  (void)ab;
  interval_cell(a->compile, out, size);
}
static void saved_cell(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a, char *out, size_t size) {
  char text[AOTH_BYTES_SIZE];
  const double n = at(a->compiled, "saved", "bytes");
  (void)ab;
  if (!isnan(n))
    snprintf(out, size, "%s in %.0f", aoth_bytes_text((uint64_t)n, text), at(a->compiled, "saved", "values"));
}
static void recomputed_cell(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a, char *out, size_t size) {
  const double n = at(a->compiled, "choice", "recomputed_nodes"), heavy = at(a->compiled, "choice", "recomputed_heavy");
  (void)ab;
  if (isnan(n)) return;
  if (heavy > 0) snprintf(out, size, "%.0f, %.0f of them heavy", n, heavy);
  else snprintf(out, size, "%.0f", n);
}
static void recomputed_bytes_cell(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a, char *out, size_t size) {
  (void)ab;
  bytes_cell(at(a->compiled, "choice", "recomputed_bytes"), out, size);
}
static void flops_cell(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a, char *out, size_t size) {
  const double n = at(a->compiled, "choice", "recomputed_flops");
  (void)ab;
  if (!isnan(n)) snprintf(out, size, n < 1e4 ? "%.0f" : "%.3g", n);
}
static void cost_cell(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a, char *out, size_t size) {
  const double cost = at(a->compiled, "choice", "recompute_cost");
  (void)ab;
  if (!isnan(cost)) snprintf(out, size, "%.4g", cost);
}
static void simulated_cell(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a, char *out, size_t size) {
  (void)ab;
  bytes_cell(at(a->memory, "simulated", "peak_bytes"), out, size);
}
static void planned_cell(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a, char *out, size_t size) {
  (void)ab;
  bytes_cell(at(a->memory, "planned", "peak_bytes"), out, size);
}
static void arena_cell(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a, char *out, size_t size) {
  (void)ab;
  bytes_cell(at(a->finished, "peak_intermediate_bytes", NULL), out, size);
}
static void rss_cell(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a, char *out, size_t size) {
  (void)ab;
  bytes_cell(at(a->finished, "peak_rss_bytes", NULL), out, size);
}

int aoth_ab_has_times(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a) {
  return aoth_ab_alive(a) && ab->n_done && isfinite(a->step.value);
}

static void step_cell(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a, char *out, size_t size) {
  if (aoth_ab_has_times(ab, a)) ms_cell(a->step.value, out, size);
}
static void range_cell(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a, char *out, size_t size) {
  if (aoth_ab_has_times(ab, a)) snprintf(out, size, "%.4g to %.4g ms", a->step.low, a->step.high);
}
static void forward_cell(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a, char *out, size_t size) {
  if (aoth_ab_has_times(ab, a)) snprintf(out, size, "%.4g + %.4g ms", a->forward.value, a->backward.value);
}
static void ratio_cell(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a, char *out, size_t size) {
  if (aoth_ab_has_times(ab, a) && a != &ab->arms[ab->baseline])
    snprintf(out, size, "%.3f (%.3f to %.3f)", a->ratio.value, a->ratio.low, a->ratio.high);
}
static void verdict_cell(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a, char *out, size_t size) {
  if (aoth_ab_has_times(ab, a))
    snprintf(out, size, "%s",
             a == &ab->arms[ab->baseline] ? "baseline"
             : a->verdict < 0             ? "faster"
             : a->verdict > 0             ? "slower"
                                          : "no verdict");
}

static void agreement_cell(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a, const struct aoth_ab_agreement *g,
                           char *out, size_t size) {
  if (!aoth_ab_alive(a) || !a->results[0] || !g->n_keys) return;
  if (a == &ab->arms[ab->reference]) snprintf(out, size, "reference");
  else if (g->n_equal == g->n_keys) snprintf(out, size, "bit for bit");
  else snprintf(out, size, "%s, abs %.2g", g->n_close == g->n_keys ? "close" : "DIFFER", g->max_abs);
}
static void outputs_cell(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a, char *out, size_t size) {
  agreement_cell(ab, a, &a->outputs, out, size);
}
static void gradients_cell(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a, char *out, size_t size) {
  agreement_cell(ab, a, &a->gradients, out, size);
}

static const struct row {
  const char *label;
  cell_t cell;
} rows[] = {{"", outcome_cell},
            {"compile, this stage", stage_cell},
            {"  95 % interval", stage_range_cell},
            {"compile, all, cold", compile_cell},
            {"  95 % interval", compile_range_cell},
            {"saved, bytes in values", saved_cell},
            {"recomputed nodes", recomputed_cell},
            {"  bytes they write", recomputed_bytes_cell},
            {"  operations, about", flops_cell},
            {"  cost, in its own unit", cost_cell},
            {"peak, simulated", simulated_cell},
            {"peak, backend's plan", planned_cell},
            {"peak of arena, measured", arena_cell},
            {"peak of process", rss_cell},
            {"step, median", step_cell},
            {"  95 % interval", range_cell},
            {"  forward + backward", forward_cell},
            {"step, of the baseline's", ratio_cell},
            {"  verdict", verdict_cell},
            {"outputs", outputs_cell},
            {"gradients", gradients_cell}};
#define N_ROWS (sizeof rows / sizeof *rows)

uint32_t aoth_ab_n_rows(void) { return N_ROWS; }

int aoth_ab_row(const aoth_ab_t *ab, uint32_t row, uint32_t arm, char *out, size_t size) {
  out[0] = 0;
  rows[row].cell(ab, &ab->arms[arm], out, size);
  return out[0] != 0;
}

const char *aoth_ab_row_label(uint32_t row) { return rows[row].label; }

/* A row that says nothing of any arm is left out. */
static void print_row(const aoth_ab_t *ab, uint32_t row, uint32_t first, uint32_t end, FILE *out) {
  char cells[MOST_COLUMNS][128];
  int says = 0;
  for (uint32_t i = first; i < end; i++) says |= aoth_ab_row(ab, row, i, cells[i - first], sizeof cells[0]);
  if (!says) return;
  fprintf(out, "%-*s", LABEL, rows[row].label);
  for (uint32_t i = first; i < end; i++) fprintf(out, " %*s", COLUMN, cells[i - first][0] ? cells[i - first] : "-");
  fprintf(out, "\n");
}

/* The end of a long name reports more than its beginning. */
static void print_names(const aoth_ab_t *ab, uint32_t first, uint32_t end, FILE *out) {
  fprintf(out, "%-*s", LABEL, "");
  for (uint32_t i = first; i < end; i++) {
    const char *name = ab->arms[i].arm.name;
    const size_t n = strlen(name);
    if (n <= COLUMN) fprintf(out, " %*s", COLUMN, name);
    else fprintf(out, " ..%s", name + n - (COLUMN - 2));
  }
  fprintf(out, "\n");
}

/* ---- sentences ---- */

static void print_lost(const aoth_ab_t *ab, FILE *out) {
  for (uint32_t i = 0; i < ab->n_arms; i++) {
    const aoth_ab_arm_run_t *a = &ab->arms[i];
    if (a->worker.fate != AOTH_CHILD_FINE)
      fprintf(out, "%s %s during %s: %s\n", a->arm.name, aoth_ab_outcome(a), a->worker.doing,
              a->worker.why ? a->worker.why : "");
    else if (a->differs)
      fprintf(out, "%s differs from %s: largest difference %.3g in %s\n", a->arm.name, ab->arms[ab->reference].arm.name,
              fmax(a->outputs.max_abs, a->gradients.max_abs),
              a->gradients.max_abs >= a->outputs.max_abs ? a->gradients.worst : a->outputs.worst);
  }
}

static void print_verdicts(const aoth_ab_t *ab, FILE *out) {
  for (uint32_t i = 0; i < ab->n_arms; i++) {
    const aoth_ab_arm_run_t *a = &ab->arms[i];
    if (!aoth_ab_has_times(ab, a) || (int64_t)i == ab->baseline) continue;
    fprintf(out, "%s: ", a->arm.name);
    if (a->verdict)
      fprintf(out, "a step takes %.3f of %s's, %s", a->ratio.value, ab->arms[ab->baseline].arm.name,
              a->verdict < 0 ? "faster" : "slower");
    else if (ab->n_done < AOTH_LEAST_GROUPS)
      fprintf(out, "no verdict on speed, it takes %u processes", AOTH_LEAST_GROUPS);
    else fprintf(out, "no verdict on speed against %s", ab->arms[ab->baseline].arm.name);
    fprintf(out, " (%.3f to %.3f, %.4g %% interval)\n", a->ratio.low, a->ratio.high, 100 * ab->level);
  }
}

static void print_names_of(const json_t *names, const char *what, FILE *out) {
  size_t i;
  json_t *name;
  json_array_foreach(names, i, name) fprintf(out, "%s%s", i ? ", " : what, json_string_value(name));
}

static void print_differences(const json_t *differences, FILE *out) {
  const size_t n = json_array_size(differences);
  if (n)
    fprintf(out, "\nchosen differently: %zu value%s%s\n", n, n == 1 ? "" : "s",
            n > MOST_DIFFERENCES ? ", the largest of them" : "");
  for (size_t i = 0; i < n && i < MOST_DIFFERENCES; i++) {
    const json_t *d = json_array_get(differences, i);
    const char *op = json_string_value(json_object_get(d, "op")),
               *module = json_string_value(json_object_get(d, "module"));
    char bytes[AOTH_BYTES_SIZE];
    fprintf(out, "%12s  %-24s %-30s %s",
            aoth_bytes_text((uint64_t)json_integer_value(json_object_get(d, "bytes")), bytes),
            json_string_value(json_object_get(d, "type")), op ? op : "(input)", module ? module : "");
    print_names_of(json_object_get(d, "saved_by"), "\n              saved by ", out);
    print_names_of(json_object_get(d, "recomputed_by"), "; recomputed by ", out);
    fprintf(out, "\n");
  }
}

static void print_conditions(const aoth_ab_t *ab, FILE *out) {
  const char *inputs = json_string_value(aoth_ab_common(ab, "inputs")),
             *tangents = json_string_value(aoth_ab_common(ab, "tangents"));
  fprintf(out, "%s, stage %s", ab->cli->positional[0], ab->pipeline->stages[ab->stage].name);
  if (ab->pipeline->model_path) fprintf(out, ", model %s", ab->pipeline->model_path);
  fprintf(out, "\n");
  if (!inputs) {
    fprintf(out, "nothing was run: no arm has got so far, or the pipeline has no backend\n\n");
    return;
  }
  fprintf(out, "inputs: %s%s, seed %lld", json_is_true(aoth_ab_common(ab, "made_up")) ? "made up: " : "", inputs,
          (long long)json_integer_value(aoth_ab_common(ab, "seed")));
  if (tangents) fprintf(out, "; tangents: %s", tangents);
  fprintf(out, "\n%u process%s an arm, in each %u round%s in turn after %u to warm up%s\n\n", ab->n_done,
          ab->n_done == 1 ? "" : "es", ab->n_steps, ab->n_steps == 1 ? "" : "s", ab->n_warmup,
          ab->interrupted ? "; interrupted" : "");
}

static uint32_t n_columns(FILE *out) {
  struct winsize size = {0};
  if (!isatty(fileno(out)) || ioctl(fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return MOST_COLUMNS;
  const uint32_t n = size.ws_col > LABEL ? (size.ws_col - LABEL) / (COLUMN + 1) : 0;
  return n < 1 ? 1 : n < MOST_COLUMNS ? n : MOST_COLUMNS;
}

void aoth_ab_print(const aoth_ab_t *ab, const json_t *differences, FILE *out) {
  const uint32_t most = n_columns(out);
  print_conditions(ab, out);
  for (uint32_t first = 0; first < ab->n_arms; first += most) {
    const uint32_t end = first + most < ab->n_arms ? first + most : ab->n_arms;
    print_names(ab, first, end, out);
    for (uint32_t r = 0; r < N_ROWS; r++) print_row(ab, r, first, end, out);
    fprintf(out, "\n");
  }
  print_lost(ab, out);
  print_verdicts(ab, out);
  print_differences(differences, out);
}
