/* partition_bench: what partition-mincut makes of dumped and of generated joint graphs, and how long it takes.
 *
 *   partition_bench [--runs N] [--check] [--times T] [--pytorch ROWS.json] [--inputs INPUTS.json] [--generate
 *   SHAPE:NODES]
 *                   [GRAPH.json.gz ..]
 *
 * Prints a table row a graph: nodes, edges, seconds to read, seconds to choose (median of N runs; classes, bans,
 * prices, flow, choice among equal cuts, and the two node lists), megabytes (10^6) and values saved, beside PyTorch's
 * row where ROWS.json has one of the file's name. INPUTS.json: {"NAME": ["primals_2", ..]}, the placeholders that are
 * not parameters or buffers; a graph that is not in it has parameters only. --check: exit 1 where a graph saves more
 * than PyTorch or takes more than one T-th (100) of its seconds, or where the cut nearest the backward is not PyTorch's
 * to the byte (where its row rounds, to the last digit); where a graph without a row takes more than a second, beyond
 * 10,000 nodes 20 seconds for every 100,000. */
#include "generate_joint.h"
#include "joint_dump.h"

#include "kit/graph/split.h"
#include "partition-mincut/mincut.h"
#include "partition-mincut/op_lists.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_RUNS 999
#define MAX_DYNAMIC 64

static const mc_rules_t pytorch_rules = {
    .operators = MC_PYTORCH,
    .ties = MC_FEWEST_BYTES,
    .ban_expensive = 1,
    .ban_heavy = 1,
    .ban_materialized = 1,
    .ban_reductions = 1,
    .ban_far_apart = 1,
    .ban_long_chains = 1,
    .free_static_inputs = 1,
    .double_fused = 1,
    .max_distance = 1000,
    .distance_base = 1.1,
};

typedef struct settings {
  int runs, check;
  double times;
  json_t *pytorch, *inputs;
} settings_t;

typedef struct answer {
  double seconds, megabytes;
  double rounded;    /* megabytes may be off by so much */
  uint32_t n_values; /* inputs that the backward reads counted, as in PyTorch's rows */
} answer_t;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static uint32_t count_read_inputs(const jg_joint_t *j, const jg_split_t *s) {
  uint8_t *read = calloc((size_t)j->n_inputs + 1, 1);
  uint32_t count = 0;
  if (!read) return 0;
  for (uint32_t i = 0; i < s->n_backward; i++)
    for (uint32_t k = j->operand_begin[s->backward[i]]; k < j->operand_begin[s->backward[i] + 1]; k++)
      if (j->operands[k] < j->n_inputs && !jg_is_tangent(j, j->operands[k])) read[j->operands[k]] = 1;
  for (uint32_t v = 0; v < j->n_inputs; v++) count += read[v];
  free(read);
  return count;
}

/* One choice; *out_seconds holds its time. 0, -1: no cut is possible, -2: no memory. */
static int choose_once(const jg_joint_t *j, const mc_rules_t *rules, double *out_seconds, answer_t *out) {
  uint32_t *saved = malloc(((size_t)j->n_values + 1) * sizeof *saved), n_saved = 0, bad = 0;
  jg_split_t split;
  const double start = now();
  int status = saved ? mc_choose(j, rules, saved, &n_saved, &bad) : -2;
  if (status == 0) status = jg_split_init(&split, j, saved, n_saved, &bad);
  *out_seconds = now() - start;
  if (status == 0) {
    out->megabytes = 1e-6 * (double)split.nbytes_saved;
    out->n_values = split.n_saved + count_read_inputs(j, &split);
    jg_split_deinit(&split);
  }
  free(saved);
  return status;
}

static int choose(const jg_joint_t *j, const mc_rules_t *rules, int runs, answer_t *out) {
  double seconds[MAX_RUNS];
  int status = 0;
  for (int i = 0; i < runs && status == 0; i++) status = choose_once(j, rules, &seconds[i], out);
  qsort(seconds, (size_t)runs, sizeof *seconds, by_size);
  out->seconds = seconds[runs / 2];
  return status;
}

/* PyTorch's row of a graph: seconds, megabytes, values. */
static int find_row(const settings_t *s, const char *name, answer_t *out) {
  size_t i;
  const json_t *row;
  json_array_foreach(s->pytorch, i, row) {
    const char *model = json_string_value(json_object_get(row, "model"));
    if (!model || strcmp(model, name) != 0) continue;
    out->seconds = json_number_value(json_object_get(row, "s_mincut"));
    const json_t *exact = json_object_get(row, "act_bytes_mincut"), *rounded = json_object_get(row, "act_MB_mincut");
    out->megabytes = exact ? 1e-6 * json_number_value(exact) : json_number_value(rounded);
    out->rounded = exact ? 1e-9 : 0.0051;
    out->n_values = (uint32_t)json_integer_value(json_object_get(row, "nsaved_mincut"));
    return 1;
  }
  return 0;
}

/* Seconds allowed without a row of PyTorch's. */
static double limit_of(uint32_t n_rows) { return n_rows <= 10000 ? 1 : n_rows * 2e-4; }

static int complain(const char *name, const char *what, double ours, double theirs) {
  fprintf(stderr, "partition_bench: %s: %s: %.6g, expected %.6g\n", name, what, ours, theirs);
  return 1;
}

static int compare(const char *name, double times, const answer_t *ours, const answer_t *nearest,
                   const answer_t *theirs) {
  int bad = 0;
  if (ours->megabytes > theirs->megabytes + theirs->rounded)
    bad |= complain(name, "saves more", ours->megabytes, theirs->megabytes);
  if (ours->seconds > theirs->seconds / times)
    bad |= complain(name, "takes too many seconds", ours->seconds, theirs->seconds / times);
  if (fabs(nearest->megabytes - theirs->megabytes) > theirs->rounded)
    bad |= complain(name, "the cut nearest the backward saves", nearest->megabytes, theirs->megabytes);
  return bad;
}

/* One row of the table; 1: something is not as it should be. */
static int report(const settings_t *s, const char *name, const jg_joint_t *j, uint32_t n_rows, double read_seconds) {
  mc_rules_t rules = pytorch_rules;
  answer_t ours, nearest, theirs;
  double once;
  int status = choose(j, &rules, s->runs, &ours);
  rules.ties = MC_NEAREST_BACKWARD;
  if (status == 0) status = choose_once(j, &rules, &once, &nearest);
  if (status != 0) {
    fprintf(stderr, "partition_bench: %s: %s\n", name, status == -1 ? "no cut is possible" : "no memory");
    return 1;
  }
  printf("| %s | %u | %u | %.4f | %.5f | %.2f | %u | %.2f |", name, n_rows, j->operand_begin[j->n_nodes], read_seconds,
         ours.seconds, ours.megabytes, ours.n_values, nearest.megabytes);
  if (!find_row(s, name, &theirs)) {
    printf(" | | | |\n");
    return s->check && ours.seconds > limit_of(n_rows)
               ? complain(name, "takes too many seconds", ours.seconds, limit_of(n_rows))
               : 0;
  }
  printf(" %.3f | %.2f | %u | %.0f |\n", theirs.seconds, theirs.megabytes, theirs.n_values,
         theirs.seconds / ours.seconds);
  return s->check ? compare(name, s->times, &ours, &nearest, &theirs) : 0;
}

/* Operators that PyTorch's lists do not name: they are kept. One line, each name once with its number of nodes. */
static void list_unknown(const char *name, const jg_joint_t *j) {
  json_t *counts = json_object();
  const char *op;
  json_t *count;
  for (uint32_t n = 0; n < j->n_nodes; n++) {
    char text[128];
    snprintf(text, sizeof text, "%.*s", (int)(j->op_name[n].size < 127 ? j->op_name[n].size : 127), j->op_name[n].data);
    if (mc_listed(j->op_name[n])) continue;
    json_object_set_new(counts, text, json_integer(1 + json_integer_value(json_object_get(counts, text))));
  }
  if (json_object_size(counts)) fprintf(stderr, "%s: in no list, so never computed again:", name);
  json_object_foreach(counts, op, count) fprintf(stderr, " %s x%d", op, (int)json_integer_value(count));
  if (json_object_size(counts)) fprintf(stderr, "\n");
  json_decref(counts);
}

/* "graphs/gpt2.json.gz": gpt2. */
static void name_of(const char *path, char *out, size_t size) {
  const char *slash = strrchr(path, '/');
  snprintf(out, size, "%s", slash ? slash + 1 : path);
  char *dot = strchr(out, '.');
  if (dot) *dot = '\0';
}

static int one_file(const settings_t *s, const char *path) {
  char name[128], error[JD_TEXT];
  const char *dynamic[MAX_DYNAMIC];
  uint32_t n_dynamic = 0;
  jd_dump_t dump;
  size_t i;
  const json_t *input;
  name_of(path, name, sizeof name);
  json_array_foreach(json_object_get(s->inputs, name), i, input) if (n_dynamic < MAX_DYNAMIC && json_is_string(input))
      dynamic[n_dynamic++] = json_string_value(input);
  const double start = now();
  if (jd_read(path, dynamic, n_dynamic, &dump, error) != 0) {
    fprintf(stderr, "partition_bench: %s\n", error);
    return 1;
  }
  const double read_seconds = now() - start;
  list_unknown(name, &dump.joint);
  const int bad = report(s, name, &dump.joint, dump.n_rows, read_seconds);
  jd_deinit(&dump);
  return bad;
}

static int one_generated(const settings_t *s, const char *what) {
  jg_joint_t j;
  char *end = NULL;
  const char *colon = strchr(what, ':');
  const size_t length = colon ? (size_t)(colon - what) : 0;
  const unsigned long n = colon ? strtoul(colon + 1, &end, 10) : 0;
  int shape = 0;
  while (shape < GJ_SHAPES && (strlen(gj_names[shape]) != length || strncmp(gj_names[shape], what, length) != 0))
    shape++;
  if (shape == GJ_SHAPES || !end || *end || n < 64 || n > 10000000) {
    fprintf(stderr,
            "partition_bench: --generate %s: expected layers, random or chains, a colon, and 64 to 10000000 nodes\n",
            what);
    return 1;
  }
  if (gj_make(shape, (uint32_t)n, 1, &j) != 0) return 1;
  const int bad = report(s, what, &j, j.n_nodes, 0);
  jg_joint_deinit(&j);
  return bad;
}

static json_t *load(const char *path) {
  json_error_t e;
  json_t *root = json_load_file(path, 0, &e);
  if (!root) fprintf(stderr, "partition_bench: %s:%d:%d: %s\n", path, e.line, e.column, e.text);
  return root;
}

static int usage(void) {
  fprintf(stderr,
          "usage: partition_bench [--runs N] [--check] [--times T] [--pytorch ROWS.json] [--inputs INPUTS.json]\n"
          "                       [--generate SHAPE:NODES] [GRAPH.json.gz ..]\n");
  return 2;
}

/* Options that take a word, up to the first graph. 0, or what to exit with. */
static int read_option(settings_t *s, const char *option, const char *word) {
  if (!word) return usage();
  if (strcmp(option, "--runs") == 0) {
    s->runs = atoi(word);
    return s->runs < 1 || s->runs > MAX_RUNS ? usage() : 0;
  }
  if (strcmp(option, "--times") == 0) {
    s->times = atof(word);
    return s->times > 0 ? 0 : usage();
  }
  json_t **where = strcmp(option, "--pytorch") == 0 ? &s->pytorch : strcmp(option, "--inputs") == 0 ? &s->inputs : NULL;
  if (!where) return usage();
  json_decref(*where);
  *where = load(word);
  return *where ? 0 : 2;
}

int main(int argc, char **argv) {
  settings_t s = {.runs = 9, .times = 100};
  int status = 0;
  printf("| graph | nodes | edges | read s | choose s | MB | values | MB nearest backward | PyTorch s | MB | values | "
         "times |\n");
  printf("|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (int i = 1; i < argc && status < 2; i++) {
    if (strcmp(argv[i], "--check") == 0) s.check = 1;
    else if (strcmp(argv[i], "--generate") == 0) status |= i + 1 < argc ? one_generated(&s, argv[++i]) : usage();
    else if (strncmp(argv[i], "--", 2) == 0) status |= read_option(&s, argv[i], i + 1 < argc ? argv[i + 1] : NULL), i++;
    else status |= one_file(&s, argv[i]);
  }
  json_decref(s.pytorch);
  json_decref(s.inputs);
  return status > 2 ? 2 : status;
}
