/* Loop IR from text, and to it: a line an access or an instruction.
 *
 *     loop 4096 x 1024 reduced 1
 *     load f32 [1024, 1]                          x0; loads and instructions count from 0
 *     draw u32 [1024, 1] seed=x1 offset=x2        x3
 *     count i64 [1024, 1]                         x4: 1024 times the row's number and the element's
 *     load f32 [0, 1] at x1 * 64 of 100           at x1 * 64, which counts 100 rows; more of them: , x2 * 1 of 64
 *     load f32 [64, 1] in 0: 2..6 else 0.0        elsewhere in dimension 0 it is 0; or what x1 is
 *     each f32 f32 "a * b" a=x0 b=0.5             v0: computed in, dtype of the result, template, what it reads
 *     max f32 f32 "a" a=v0                        v1
 *     each f32 f32 "exp(a - %0)" a=v0 %0=v1
 *     running sum f32 f32 "a" a=v2                v3: of each element and all before it in its row
 *     store f32 [1024, 1] v2                      or, once a row: store f32 [1, 0] row v1
 *     store f32 [0, 1] at x1 * 64 of 100 add v1   by numbers of rows, added to what is there
 *
 * Of an access may be known what its pointer is a multiple of: load f32 [1024, 1] align 16.
 *
 * An index with `wraps` after it may be negative. Numbers with a point are floats. From ; on a line is a comment: the
 * printer reports there what lp_schedule has
 * found. */
#include "loop.h"

#include <aot/assert.h>
#include <aot/inline.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const reductions[] = {"each", "sum", "prod", "max", "min", "log-add", "across"}; /* by LP_* */
enum { N_REDUCTIONS = sizeof reductions / sizeof *reductions };

/* ---- to text ---- */

static void print_strides(lp_text_t *out, const int64_t *strides, int32_t rank) {
  for (int32_t d = 0; d < rank; d++) lp_print(out, "%s%" PRId64, d ? ", " : "[", strides[d]);
  lp_print(out, rank ? "]" : "[]");
}

static void print_float(lp_text_t *out, double v) {
  char text[40];
  snprintf(text, sizeof text, "%.17g", v);
  lp_print(out, "%s%s", text, isfinite(v) && !strpbrk(text, ".e") ? ".0" : "");
}

static void print_source(lp_text_t *out, const lp_arg_t *a) {
  switch (a->kind) {
    case LP_LOAD: lp_print(out, "x%u", a->index); break;
    case LP_DRAWN: lp_print(out, "d%u", a->index); break;
    case LP_INST: lp_print(out, "v%u", a->index); break;
    case LP_FLOAT: print_float(out, a->f); break;
    case LP_BOOL: lp_print(out, a->i ? "true" : "false"); break;
    default: lp_print(out, "%" PRId64, a->i);
  }
}

static void print_arg(lp_text_t *out, const lp_arg_t *a, uint32_t k) {
  if (a->kind == LP_ABSENT) return;
  if (k < LP_ARGS) lp_print(out, " %c=", (int)('a' + k));
  else lp_print(out, " %%%u=", k - LP_ARGS);
  print_source(out, a);
}

static void print_inst(lp_text_t *out, const lp_inst_t *inst) {
  AOT_ASSERT(!inst->reduce || !inst->scan); /* either, and `reductions` names the sum */
  AOT_ASSERT(inst->reduce + inst->scan < N_REDUCTIONS);
  lp_print(out, "%s%s %s %s \"%s\"", inst->scan ? "running " : "", reductions[inst->reduce + inst->scan],
           aot_dtype_name(inst->compute), aot_dtype_name(inst->dtype), inst->text);
  for (uint32_t k = 0; k < inst->n_args; k++) print_arg(out, &inst->args[k], k);
  if (inst->of_row || inst->pass || inst->keep)
    lp_print(out, " ; %spass %u%s", inst->of_row ? "row, " : "", inst->pass, inst->keep ? ", kept" : "");
  lp_print(out, "\n");
}

static void print_align(lp_text_t *out, const lp_access_t *a) {
  if (a->align) lp_print(out, " align %u", a->align);
}

static void print_indices(lp_text_t *out, const lp_access_t *a) {
  for (uint32_t i = 0; i < a->n_indices; i++) {
    const lp_index_t *x = &a->indices[i];
    lp_print(out, "%sx%u * %" PRId64 " of %" PRId64 "%s", i ? ", " : " at ", x->load, x->stride, x->size,
             x->wraps ? " wraps" : "");
  }
}

static void print_load(const lp_access_t *a, int32_t rank, lp_text_t *out) {
  lp_print(out, "%s %s ", a->draws ? "draw" : a->counts ? "count" : "load", aot_dtype_name(a->dtype));
  print_strides(out, a->strides, rank);
  if (a->draws) lp_print(out, " seed=x%u offset=x%u", a->seed, a->offset);
  print_indices(out, a);
  const char *joint = " in ";
  for (int32_t d = 0; d < rank; d++) {
    if (!(a->bounded >> d & 1u)) continue;
    lp_print(out, "%s%d: %" PRId64 "..%" PRId64, joint, d, a->begin[d], a->end[d]);
    joint = ", ";
  }
  if (a->bounded) lp_print(out, " else ");
  if (a->bounded) print_source(out, &a->outside);
  print_align(out, a);
  lp_print(out, "\n");
}

static void print_gpu(lp_text_t *out, const lp_gpu_t *g) {
  static const char *const kinds[] = {"", "points", "rows", "columns", "places"};
  AOT_ASSERT((uint32_t)g->kind < sizeof kinds / sizeof *kinds);
  if (g->kind)
    lp_print(out, "; GPU: %s, blocks %u x %u, team %u, vector %u, chunks %u, splits %u", kinds[g->kind], g->blocks,
             g->threads, g->team, g->vector, g->chunks, g->splits);
  if (g->parts) lp_print(out, ", parts %u", g->parts);
  if (g->tensors) lp_print(out, ", tensors %u", g->tensors);
  if (g->stages) lp_print(out, ", stages %u%s, shared %u", g->stages, g->bulk ? " in bulk" : "", g->shared);
  if (g->kind) lp_print(out, g->wide ? ", 64-bit indices\n" : "\n");
}

void lp_print_loop(const lp_loop_t *l, lp_text_t *out) {
  lp_print(out, "loop");
  for (int32_t d = 0; d < l->rank; d++) lp_print(out, "%s%" PRId64, d ? " x " : " ", l->sizes[d]);
  if (l->reduced) lp_print(out, " reduced");
  for (int32_t d = 0; d < l->rank; d++)
    if (l->reduced >> d & 1u) lp_print(out, " %d", d);
  lp_print(out, l->columns ? " ; columns\n" : "\n");
  print_gpu(out, &l->gpu);
  for (uint32_t k = 0; k < l->n_loads; k++) print_load(&l->accesses[k], l->rank, out);
  for (uint32_t k = 0; k < l->n_insts; k++) print_inst(out, &l->insts[k]);
  for (uint32_t k = l->n_loads; k < l->n_loads + l->n_stores; k++) {
    lp_print(out, "store %s ", aot_dtype_name(l->accesses[k].dtype));
    print_strides(out, l->accesses[k].strides, l->rank);
    print_align(out, &l->accesses[k]);
    print_indices(out, &l->accesses[k]);
    lp_print(out, "%s%s v%u\n", l->accesses[k].of_row ? " row" : "", l->accesses[k].adds ? " add" : "",
             l->accesses[k].inst);
  }
}

/* FNV-1a (Fowler, Noll, Vo), over lines up to their comments. */
uint64_t lp_hash(const lp_loop_t *l) {
  uint64_t h = UINT64_C(0xcbf29ce484222325);
  lp_text_t text = {0};
  lp_print_loop(l, &text);
  for (const char *line = text.failed ? "" : text.data; *line; line += strcspn(line, "\n") + 1) {
    size_t n = strcspn(line, ";\n");
    while (n > 0 && line[n - 1] == ' ') n--;
    for (size_t k = 0; k < n; k++) h = (h ^ (uint8_t)line[k]) * UINT64_C(0x100000001b3);
    if (n > 0) h = (h ^ '\n') * UINT64_C(0x100000001b3);
  }
  const int failed = text.failed;
  lp_text_deinit(&text);
  return failed ? 0 : h;
}

/* ---- from text ---- */

typedef struct parser {
  lp_loop_t *l;
  char *at; /* in a copy of the text, which templates point into */
  uint32_t line;
} parser_t;

static void skip_spaces(parser_t *p) {
  while (*p->at == ' ') p->at++;
}

static int take(parser_t *p, const char *word) {
  const size_t n = strlen(word);
  skip_spaces(p);
  if (strncmp(p->at, word, n) != 0) return 0;
  p->at += n;
  return 1;
}

static int take_int(parser_t *p, int64_t *out) {
  char *end;
  skip_spaces(p);
  *out = strtoll(p->at, &end, 10);
  if (end == p->at) return 0;
  p->at = end;
  return 1;
}

/* A number of a row that is there; what: "x" or "v". */
static int take_index(parser_t *p, const char *what, uint32_t n, uint32_t *out) {
  int64_t i;
  if (!take(p, what) || !take_int(p, &i) || i < 0 || i >= n) return 0;
  *out = (uint32_t)i;
  return 1;
}

static int take_dtype(parser_t *p, int32_t *out) {
  size_t n;
  skip_spaces(p);
  n = strcspn(p->at, " \n");
  for (int32_t d = 1; d < 64 /* beyond all dtypes */; d++)
    if (strlen(aot_dtype_name(d)) == n && strncmp(aot_dtype_name(d), p->at, n) == 0) {
      *out = d;
      p->at += n;
      return 1;
    }
  return 0;
}

static int take_strides(parser_t *p, int64_t *out) {
  if (!take(p, "[")) return 0;
  for (int32_t d = 0; d < p->l->rank; d++)
    if ((d && !take(p, ",")) || !take_int(p, &out[d])) return 0;
  return take(p, "]");
}

static int parse_head(parser_t *p) {
  lp_loop_t *l = p->l;
  int64_t d;
  if (!take(p, "loop")) return 0;
  do {
    if (l->rank == AOT_MAX_RANK || !take_int(p, &l->sizes[l->rank]) || l->sizes[l->rank] < 0) return 0;
    l->rank++;
  } while (take(p, "x"));
  if (!take(p, "reduced")) return 1;
  while (take_int(p, &d)) {
    if (d < 0 || d >= l->rank) return 0;
    l->reduced |= 1u << d;
  }
  return l->reduced != 0;
}

static int parse_number(parser_t *p, lp_arg_t *a) {
  char *end;
  const size_t n = strcspn(p->at, " \n;");
  const int is_float = memchr(p->at, '.', n) || memchr(p->at, 'n', n) || memchr(p->at, 'e', n);
  if (take(p, "true")) a->kind = LP_BOOL, a->i = 1;
  else if (take(p, "false")) a->kind = LP_BOOL;
  else if (is_float) a->kind = LP_FLOAT, a->f = strtod(p->at, &end), p->at = end;
  else a->kind = LP_INT;
  return a->kind != LP_INT || take_int(p, &a->i);
}

static int parse_arg(parser_t *p, lp_inst_t *inst) {
  int64_t k = *p->at - 'a';
  if (take(p, "%")) {
    if (!take_int(p, &k) || k < 0 || k >= LP_STEPS) return 0;
    k += LP_ARGS;
  } else {
    p->at++;
  }
  if (k < 0 || k >= LP_ARGS + LP_STEPS || !take(p, "=")) return 0;
  lp_arg_t *a = &inst->args[k];
  inst->n_args = k + 1 > inst->n_args ? (uint32_t)k + 1 : inst->n_args;
  a->kind = *p->at == 'x' ? LP_LOAD : *p->at == 'd' ? LP_DRAWN : *p->at == 'v' ? LP_INST : LP_ABSENT;
  if (a->kind == LP_LOAD) return take_index(p, "x", p->l->n_loads, &a->index);
  if (a->kind == LP_DRAWN) return take_index(p, "d", p->l->n_loads, &a->index) && p->l->accesses[a->index].draws;
  if (a->kind == LP_INST) return take_index(p, "v", p->l->n_insts, &a->index);
  return parse_number(p, a);
}

static int parse_inst(parser_t *p, int32_t reduce, int32_t scan) {
  lp_inst_t *inst = &p->l->insts[p->l->n_insts];
  inst->reduce = reduce;
  inst->scan = scan;
  if (!take_dtype(p, &inst->compute) || !take_dtype(p, &inst->dtype) || !take(p, "\"")) return 0;
  char *end = strchr(p->at, '"');
  if (!end) return 0;
  *end = 0;
  inst->text = p->at;
  p->at = end + 1;
  for (skip_spaces(p); *p->at && *p->at != '\n' && *p->at != ';'; skip_spaces(p))
    if (!parse_arg(p, inst)) return 0;
  p->l->n_insts++;
  return 1;
}

static int parse_align(parser_t *p, lp_access_t *a) {
  int64_t bytes;
  if (!take(p, "align")) return 1;
  if (!take_int(p, &bytes) || bytes < 1 || bytes > 4096) return 0;
  a->align = (uint32_t)bytes;
  return 1;
}

static int is_whole(int32_t dtype) { return dtype == AOT_I64 || dtype == AOT_I32; }

/* After "at": places by index tensors. */
static int parse_indices(parser_t *p, lp_access_t *a) {
  do {
    if (a->n_indices == LP_INDICES) return 0;
    lp_index_t *x = &a->indices[a->n_indices++];
    if (!take_index(p, "x", p->l->n_loads, &x->load) || !is_whole(p->l->accesses[x->load].dtype) || !take(p, "*") ||
        !take_int(p, &x->stride) || !take(p, "of") || !take_int(p, &x->size) || x->size < 1)
      return 0;
    x->wraps = take(p, "wraps");
  } while (take(p, ","));
  return 1;
}

/* After "in": bounds of dimensions, and what is outside. */
static int parse_bounds(parser_t *p, lp_access_t *a) {
  int64_t d;
  do {
    if (!take_int(p, &d) || d < 0 || d >= p->l->rank || !take(p, ":") || !take_int(p, &a->begin[d]) || !take(p, "..") ||
        !take_int(p, &a->end[d]))
      return 0;
    a->bounded |= 1u << d;
  } while (take(p, ","));
  if (!take(p, "else")) return 0;
  skip_spaces(p);
  if (*p->at != 'x') return parse_number(p, &a->outside);
  a->outside.kind = LP_LOAD;
  return take_index(p, "x", p->l->n_loads, &a->outside.index);
}

/* It has no memory that there is more to report. */
static int parse_count(parser_t *p) {
  lp_access_t *a = &p->l->accesses[p->l->n_loads];
  a->counts = 1;
  if (p->l->n_insts || p->l->n_stores || !take_dtype(p, &a->dtype) || !take_strides(p, a->strides)) return 0;
  p->l->n_loads++;
  return a->dtype == AOT_I64;
}

static int parse_load(parser_t *p, int draws) {
  lp_access_t *a = &p->l->accesses[p->l->n_loads];
  a->draws = draws;
  if (p->l->n_insts || p->l->n_stores || !take_dtype(p, &a->dtype) || !take_strides(p, a->strides)) return 0;
  if (draws && (!take(p, "seed=") || !take_index(p, "x", p->l->n_loads, &a->seed) || !take(p, "offset=") ||
                !take_index(p, "x", p->l->n_loads, &a->offset)))
    return 0;
  if (!draws && ((take(p, "at") && !parse_indices(p, a)) || (take(p, "in") && !parse_bounds(p, a)))) return 0;
  if (!parse_align(p, a)) return 0;
  p->l->n_loads++;
  return 1;
}

static int parse_store(parser_t *p) {
  lp_access_t *a = &p->l->accesses[p->l->n_loads + p->l->n_stores++];
  if (!take_dtype(p, &a->dtype) || !take_strides(p, a->strides) || !parse_align(p, a)) return 0;
  if (take(p, "at") && !parse_indices(p, a)) return 0;
  a->of_row = take(p, "row");
  a->adds = take(p, "add");
  return take_index(p, "v", p->l->n_insts, &a->inst);
}

static int parse_line(parser_t *p) {
  if (p->l->rank == 0) return parse_head(p);
  if (take(p, "load")) return parse_load(p, 0);
  if (take(p, "draw")) return parse_load(p, 1);
  if (take(p, "count")) return parse_count(p);
  if (take(p, "store")) return parse_store(p);
  const int is_scan = take(p, "running");
  skip_spaces(p);
  for (int32_t k = 0; k < N_REDUCTIONS; k++)
    if (take(p, reductions[k]))
      return p->l->n_stores == 0 && !(is_scan && k == LP_EACH) && (is_scan || k != LP_LOG_ADD) &&
             parse_inst(p, is_scan ? LP_EACH : k, is_scan ? k : LP_EACH);
  return 0;
}

uint32_t lp_parse(const char *text, lp_parsed_t *out) {
  uint64_t n = 1;
  memset(out, 0, sizeof *out);
  for (const char *c = text; *c; c++) n += *c == '\n';
  out->text = malloc(strlen(text) + 1);
  out->loop.accesses = calloc(n, sizeof *out->loop.accesses);
  out->loop.insts = calloc(n, sizeof *out->loop.insts);
  if (!out->text || !out->loop.accesses || !out->loop.insts) return LP_NONE;
  parser_t p = {&out->loop, strcpy(out->text, text), 0};
  while (*p.at) {
    p.line++;
    skip_spaces(&p);
    AOT_ASSERT(out->loop.n_loads + out->loop.n_stores + out->loop.n_insts < p.line); /* a line before for each */
    if (*p.at != '\n' && *p.at != ';' && !parse_line(&p)) return p.line;
    skip_spaces(&p);
    if (*p.at == ';') p.at += strcspn(p.at, "\n");
    if (*p.at && *p.at++ != '\n') return p.line;
  }
  return out->loop.n_stores && out->loop.n_insts <= LP_INSTS ? 0 : p.line + 1;
}

void lp_parsed_deinit(lp_parsed_t *p) {
  free(p->text);
  free(p->loop.accesses);
  free(p->loop.insts);
  memset(p, 0, sizeof *p);
}
