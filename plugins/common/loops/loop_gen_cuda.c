/* Loop IR to CUDA C without headers, by the schedule in loop.gpu. Sizes and strides are constants of the text, but for
 * the sizes of flat points: those come with the pointers, so that tensors of all sizes share a text, and a launch.
 *
 *     points                          rows                                   columns
 *     if (i < elements)               a row a team                           a tile of columns and every so many rows
 *       loads of its vector             loads that are held                    rows: loads of some | their elements
 *       its elements, j                 every pass: its vectors, c, and        threads' sums joined in shared memory
 *       stores                            their elements, j | reductions       the columns' values, and stores
 *                                       the row's values, and stores
 *
 * Variables: x loads, v instructions, as in C; w loads and y stores of a vector, k values kept between passes, a what
 * a thread has reduced, q pointers to a row's first element, e the number of its first draw. */
#include "common/loops/cuda_printer.h"

#include <aot/inline.h>
#include <stdio.h>
#include <string.h>

static const char unroll[] = "#pragma unroll\n";

/* ---- accesses ---- */

int64_t cu_inner_stride(const lp_loop_t *l, uint32_t k) { return l->accesses[k].strides[lp_inner(l)]; }
uint32_t cu_n_accesses(const lp_loop_t *l) { return l->n_loads + l->n_stores; }

static int64_t size_of(const lp_loop_t *l, int32_t d) { return l->sizes[d] ? l->sizes[d] : 1; } /* as a divisor */

/* Made 16 bytes at a time, or what a vector has. */
static int is_vector(const cu_printer_t *p, uint32_t k) { return p->g->vector > 1 && lp_gpu_is_vector(p->l, k); }

/* A load that passes through an array of registers. */
static int has_array(const cu_printer_t *p, uint32_t k) {
  return is_vector(p, k) || p->l->accesses[k].draws || lp_is_held(p->l, k);
}

/* Are its indices those of the whole row? Then their place is found before it. */
static int is_row_of_indices(const lp_loop_t *l, uint32_t k) {
  const lp_access_t *a = &l->accesses[k];
  for (uint32_t i = 0; i < a->n_indices; i++)
    if (lp_gpu_moves(l, a->indices[i].load)) return 0;
  return a->n_indices != 0;
}

/* The element's place in an array: of one vector, or of all that a thread holds. */
static void print_slot(const cu_printer_t *p, int is_held, int of_element) {
  const int has_chunk = is_held && p->g->chunks > 1, has_element = of_element && p->g->vector > 1;
  lp_print(p->out, "[");
  if (has_chunk) lp_print(p->out, p->g->vector > 1 ? "c * %u" : "c", p->g->vector);
  if (has_chunk && has_element) lp_print(p->out, " + ");
  if (has_element) lp_print(p->out, "j");
  if (!has_chunk && !has_element) lp_print(p->out, "0");
  lp_print(p->out, "]");
}

void cu_print_times(lp_text_t *out, const char *what, int64_t stride) {
  lp_print(out, stride == 1 ? "%s" : "%s * %lld", what, (long long)stride);
}

static int has_tail(const cu_printer_t *p) {
  return p->g->kind == LP_GPU_POINTS && p->l->sizes[p->l->rank - 1] % p->g->vector != 0;
}

/* The number of element j in the innermost dimension; beyond the tail, of the vector's first. */
static const char *element_index(const cu_printer_t *p) {
  return p->g->vector == 1 ? "i" : has_tail(p) ? "(i + (j < n ? j : 0))" : "(i + j)";
}

/* What a dimension adds to a place. */
static void print_term(const cu_printer_t *p, uint32_t k, int32_t d, const char *index, const char *joint) {
  const lp_access_t *a = &p->l->accesses[k];
  char bounded[64];
  snprintf(bounded, sizeof bounded, "(%s - b%u_%d)", index, k, d);
  lp_print(p->out, "%s", joint);
  cu_print_times(p->out, a->bounded >> d & 1u ? bounded : index, a->strides[d]);
}

/* What the row's dimensions add; index: the element's number in its row. */
static const char *print_row_terms(const cu_printer_t *p, uint32_t k, const char *index, const char *joint) {
  const lp_loop_t *l = p->l;
  const int32_t first = lp_row(l);
  int64_t below = lp_length(l);
  for (int32_t d = first; d < l->rank; d++) {
    const long long size = (long long)size_of(l, d);
    char part[96];
    below /= size;
    if (!l->accesses[k].strides[d]) continue;
    if (below == 1) snprintf(part, sizeof part, "(%s %% %lld)", index, size);
    else if (d == first) snprintf(part, sizeof part, "(%s / %lld)", index, (long long)below);
    else snprintf(part, sizeof part, "(%s / %lld %% %lld)", index, (long long)below, size);
    print_term(p, k, d, first + 1 == l->rank ? index : part, joint);
    joint = " + ";
  }
  return joint;
}

/* Its place from the row on; index: of the element, or of the vector. */
void cu_print_place(const cu_printer_t *p, uint32_t k, const char *index) {
  const lp_loop_t *l = p->l;
  const char *joint = "";
  if (l->accesses[k].n_indices) lp_print(p->out, "j%u", k), joint = " + ";
  if (l->columns) joint = print_row_terms(p, k, "row", joint);
  if (!l->columns) joint = print_row_terms(p, k, index, joint);
  else if (cu_inner_stride(l, k)) print_term(p, k, lp_inner(l), index, joint), joint = " + ";
  if (!*joint) lp_print(p->out, "0");
}

void cu_print_element_loop(const cu_printer_t *p) {
  if (p->g->vector > 1) lp_print(p->out, "%sfor (int j = 0; j < %u; j++) ", unroll, p->g->vector);
}

static uint64_t vector_bytes(const cu_printer_t *p, uint32_t k) {
  return p->g->vector * aot_dtype_size(p->l->accesses[k].dtype);
}

/* Random numbers of a vector from one block each four of them, where they lie so. */
static int draws_blocks(const cu_printer_t *p, const lp_access_t *a) {
  if (a->strides[p->l->rank - 1] != 1 || p->g->vector % 4) return 0;
  for (int32_t d = 0; d + 1 < p->l->rank; d++)
    if (a->strides[d] % 4) return 0;
  return 1;
}

static void print_draw(const cu_printer_t *p, uint32_t k) {
  const lp_access_t *a = &p->l->accesses[k];
  const long long step = (long long)cu_inner_stride(p->l, k);
  lp_print(p->out, "%s w%u[%u];\n", lp_c_type(a->dtype), k, p->g->vector);
  lp_print(p->out, "lp_draw_%s(x%u, x%u + d%u, e%u + (uint64_t)i * %lld, %lld, %u, %d, w%u);\n",
           a->dtype == AOT_U32   ? "u32"
           : a->dtype == AOT_U64 ? "u64"
           : a->dtype == AOT_F32 ? "f32"
                                 : "f64",
           a->seed, a->offset, k, k, step, step, p->g->vector, draws_blocks(p, a), k);
}

static void print_array(const cu_printer_t *p, uint32_t k, int is_held) {
  const uint32_t chunks = is_held && p->g->chunks ? p->g->chunks : 1;
  lp_print(p->out, "%s%s w%u[%u];\n", is_vector(p, k) ? "LP_ALIGN16 " : "", lp_c_type(p->l->accesses[k].dtype), k,
           chunks * p->g->vector);
}

/* From memory into the load's array. */
static void print_take(const cu_printer_t *p, uint32_t k) {
  if (!is_vector(p, k)) {
    cu_print_element_loop(p);
    lp_print(p->out, "w%u", k);
    print_slot(p, lp_is_held(p->l, k), 1);
    lp_print(p->out, " = q%u[", k);
    cu_print_place(p, k, element_index(p));
    lp_print(p->out, "];\n");
    return;
  }
  if (p->l->accesses[k].bounded) {
    lp_print(p->out, "if (");
    lp_print_is_inside(p->out, p->l, k, "i", "row");
    lp_print(p->out, ") ");
  }
  if (has_tail(p)) lp_print(p->out, "{\nif (n == %u) ", p->g->vector);
  lp_print(p->out, "lp_move(&w%u", k);
  print_slot(p, lp_is_held(p->l, k), 0);
  lp_print(p->out, ", &q%u[", k);
  cu_print_place(p, k, "i");
  lp_print(p->out, "], %llu);\n", (unsigned long long)vector_bytes(p, k));
  if (!has_tail(p)) return;
  lp_print(p->out, "else\n%sfor (int j = 0; j < %u; j++) w%u[j] = q%u[", unroll, p->g->vector, k, k);
  cu_print_place(p, k, element_index(p));
  lp_print(p->out, "];\n}\n");
}

/* The load's value, from its array or from memory. */
void cu_print_load(const cu_printer_t *p, uint32_t k, int from_array) {
  const lp_access_t *a = &p->l->accesses[k];
  const char *half = lp_half_name(a->dtype);
  if (lp_gpu_moves(p->l, k) && !is_row_of_indices(p->l, k)) lp_print_indices(p->out, p->l, k, 1);
  lp_print(p->out, "const %s x%u = ", lp_value_type(a->dtype), k);
  if (a->bounded) {
    lp_print_is_inside(p->out, p->l, k, element_index(p), "row");
    lp_print(p->out, " ? ");
  }
  if (half) lp_print(p->out, "lp_from_%s(", half);
  lp_print(p->out, from_array ? "w%u" : a->counts ? "(q%u + " : "q%u[", k);
  if (from_array) print_slot(p, lp_is_held(p->l, k), 1);
  else cu_print_place(p, k, element_index(p));
  lp_print(p->out, "%s%s", from_array ? "" : a->counts ? ")" : "]", half ? ")" : "");
  if (a->bounded) lp_print(p->out, " : ");
  if (a->bounded) lp_print_outside(p->out, p->l, k);
  lp_print(p->out, ";\n");
}

/* A sum for the place that a run of elements goes to. */
static int is_joined_by_run(const cu_printer_t *p, uint32_t store) {
  return lp_gpu_has_begin(p->l) && p->l->accesses[store].adds;
}

static void print_store(const cu_printer_t *p, uint32_t k) {
  const lp_access_t *a = &p->l->accesses[k];
  if (is_joined_by_run(p, k)) {
    lp_print(p->out, "a%u[%s] += v%u;\n", a->inst, p->g->vector > 1 ? "j" : "0", a->inst);
    return;
  }
  if (!lp_gpu_has_begin(p->l)) lp_print_indices(p->out, p->l, k, 1);
  if (is_vector(p, k) && !a->of_row) {
    lp_print(p->out, "y%u[j] = ", k);
  } else {
    if (has_tail(p)) lp_print(p->out, "if (j < n) ");
    if (p->pass.has_scan && !a->of_row) lp_print(p->out, "if (is_in) ");
    lp_print(p->out, "q%u[", k);
    if (a->of_row && !p->l->columns) lp_print(p->out, "0");
    else cu_print_place(p, k, p->g->vector > 1 ? "(i + j)" : "i");
    lp_print(p->out, a->adds ? "] += " : "] = ");
  }
  lp_print_stored(p->out, p->l, k);
  lp_print(p->out, ";\n");
}

/* From the store's vector to memory. */
static void print_give(const cu_printer_t *p, uint32_t k) {
  if (has_tail(p)) lp_print(p->out, "if (n == %u) ", p->g->vector);
  lp_print(p->out, "lp_move(&q%u[", k);
  cu_print_place(p, k, "i");
  lp_print(p->out, "], y%u, %llu);\n", k, (unsigned long long)vector_bytes(p, k));
  if (has_tail(p))
    lp_print(p->out, "else\n%sfor (int j = 0; j < %u; j++) if (j < n) q%u[i + j] = y%u[j];\n", unroll, p->g->vector, k,
             k);
}

/* ---- elements of a pass ---- */

static int is_taken(const cu_printer_t *p, uint32_t k) {
  return p->l->columns ? lp_gpu_moves(p->l, k) : p->pass.loads[k];
}

static int is_stored_here(const cu_printer_t *p, uint32_t store) {
  const lp_access_t *a = &p->l->accesses[store];
  return !a->of_row && p->l->insts[a->inst].reduce != LP_ACROSS && lp_store_pass(p->l, store) == p->pass.number;
}

/* Each with all before it: by the team, whose threads have elements one after another, and with what came before. */
static void print_scan(const cu_printer_t *p, uint32_t k) {
  const lp_inst_t *inst = &p->l->insts[k];
  const int32_t lane = lp_gpu_lane(inst);
  lp_print(p->out, "const %s t%u = is_in ? (%s)(", lp_c_type(lane), k, lp_c_type(lp_value_dtype(inst->compute)));
  lp_print_template(p->out, p->l, inst);
  lp_print(p->out, ") : %s;\n", lp_first_value(inst));
  lp_print_value(p->out, p->l, k);
  lp_print(p->out, "lp_scan_%s_%s(t%u, &a%u, s%u, %u));\n",
           inst->scan == LP_LOG_ADD ? "log_add" : lp_reduction_name(inst->scan), lp_suffix(lane), k, k, k,
           p->g->team / 32);
}

/* The sum across rows that element j belongs to: a register, or its place in scratch memory. */
static void print_across_slot(const cu_printer_t *p, uint32_t k) {
  if (p->g->chunks) {
    lp_print(p->out, "a%u", k);
    print_slot(p, 1, 1);
    return;
  }
  cu_print_scratch(p, k);
  lp_print(p->out, "[part * (%s)%lld + i%s]", p->index, (long long)lp_length(p->l), p->g->vector > 1 ? " + j" : "");
}

/* An instruction that is true of one element of a row, which numbers of the row tell; counted from 1. 0: there is none. */
static uint32_t spot_of(const cu_printer_t *p) {
  const lp_loop_t *l = p->l;
  if (l->columns || !l->reduced || p->g->vector == 1 || p->pass.has_scan) return 0;
  for (uint32_t k = 0; k < l->n_insts; k++) {
    const lp_inst_t *inst = &l->insts[k];
    const lp_arg_t *place = &inst->args[1];
    if (!p->pass.insts[k] || strcmp(inst->text, "@ == b") != 0 || inst->compute != AOT_I64) continue;
    if (place->kind == LP_LOAD ? !lp_moves(l, place->index) : place->kind == LP_INST && l->insts[place->index].of_row)
      return k + 1;
  }
  return 0;
}

/* The largest of those elements alone of which an instruction is true, that is false of all that are here? */
static int has_none(const cu_printer_t *p, const lp_inst_t *inst) {
  static const char chosen[] = " != 0 ? ", other[] = " : -T(INFINITY)";
  const size_t size = strlen(inst->text);
  if (!p->nowhere || inst->reduce != LP_MAX || size < sizeof chosen + sizeof other || inst->text[0] != '%' ||
      inst->text[1] < '0' || inst->text[1] >= '0' + LP_STEPS)
    return 0;
  const lp_arg_t *when = &inst->args[LP_ARGS + inst->text[1] - '0'];
  return when->kind == LP_INST && when->index + 1 == p->nowhere &&
         strncmp(inst->text + 2, chosen, sizeof chosen - 1) == 0 &&
         strcmp(inst->text + size - (sizeof other - 1), other) == 0;
}

static void print_inst(const cu_printer_t *p, uint32_t k) {
  const lp_inst_t *inst = &p->l->insts[k];
  if (has_none(p, inst)) return;
  if (k + 1 == p->nowhere) {
    lp_print(p->out, "const %s v%u = 0;\n", lp_value_type(inst->dtype), k);
    return;
  }
  if (inst->scan) {
    print_scan(p, k);
    return;
  }
  if (inst->reduce == LP_EACH) {
    lp_print_inst(p->out, p->l, k);
    if (!inst->keep) return;
    lp_print(p->out, "k%u", k);
    print_slot(p, 1, 1);
    lp_print(p->out, " = v%u;\n", k);
    return;
  }
  const char *lane = lp_c_type(lp_gpu_lane(inst)), *only = p->pass.has_scan ? "if (is_in) " : "";
  lp_print(p->out, "{\nconst %s t = (%s)(", lane, lp_c_type(lp_value_dtype(inst->compute)));
  lp_print_template(p->out, p->l, inst);
  if (inst->reduce == LP_ACROSS) {
    lp_print(p->out, ");\n");
    print_across_slot(p, k);
    lp_print(p->out, " += t;\n}\n");
    return;
  }
  const char *slot = !p->l->columns ? "" : p->g->vector > 1 ? "[j]" : "[0]";
  lp_print(p->out, ");\n%sa%u%s = %s(a%u%s, t);\n}\n", only, k, slot, lp_join_name(inst->reduce), k, slot);
}

/* What is done to element j of the vector at i. */
static void print_element(const cu_printer_t *p) {
  const lp_loop_t *l = p->l;
  cu_print_element_loop(p);
  lp_print(p->out, "{\n");
  if (p->pass.has_place)
    lp_print(p->out, "const int64_t place = (%s)(%s);\n", p->g->wide ? "int64_t" : "uint32_t",
             l->columns         ? "row"
             : p->g->vector > 1 ? "i + j"
                                : "i");
  for (uint32_t k = 0; k < l->n_loads; k++)
    if (is_taken(p, k)) cu_print_load(p, k, has_array(p, k));
  for (uint32_t k = 0; k < l->n_insts; k++) {
    if (p->pass.kept[k]) {
      lp_print(p->out, "const %s v%u = k%u", lp_value_type(l->insts[k].dtype), k, k);
      print_slot(p, 1, 1);
      lp_print(p->out, ";\n");
    }
    const int of_column = l->columns && l->insts[k].reduce == LP_EACH && l->insts[k].of_row && l->insts[k].pass == 0;
    if (of_column || (p->pass.insts[k] && lp_is_element(&l->insts[k]))) print_inst(p, k);
  }
  for (uint32_t s = l->n_loads; s < cu_n_accesses(l); s++)
    if (is_stored_here(p, s)) print_store(p, s);
  lp_print(p->out, "}\n");
}

void cu_print_vector(const cu_printer_t *p) {
  const lp_loop_t *l = p->l;
  for (uint32_t k = 0; k < l->n_loads; k++) {
    if (!is_taken(p, k) || lp_is_held(l, k) || !has_array(p, k)) continue;
    if (l->accesses[k].draws) {
      print_draw(p, k);
      continue;
    }
    print_array(p, k, 0);
    print_take(p, k);
  }
  for (uint32_t s = l->n_loads; s < cu_n_accesses(l); s++)
    if (is_stored_here(p, s) && is_vector(p, s))
      lp_print(p->out, "LP_ALIGN16 %s y%u[%u];\n", lp_c_type(l->accesses[s].dtype), s, p->g->vector);
  const uint32_t spot = spot_of(p);
  if (spot) { /* few vectors have it, and the others are spared the question of every element */
    lp_inst_t place = l->insts[spot - 1];
    cu_printer_t elsewhere = *p;
    elsewhere.nowhere = spot;
    place.text = "b";
    lp_print(p->out, "if ((uint64_t)(");
    lp_print_template(p->out, l, &place);
    lp_print(p->out, " - i) >= %u) {\n", p->g->vector);
    print_element(&elsewhere);
    lp_print(p->out, "} else {\n");
  }
  print_element(p);
  if (spot) lp_print(p->out, "}\n");
  for (uint32_t s = l->n_loads; s < cu_n_accesses(l); s++)
    if (is_stored_here(p, s) && is_vector(p, s)) print_give(p, s);
}

/* ---- reductions ---- */

/* A scan that an earlier pass needs as well is made again. */
static int was_scanned(const cu_printer_t *p, uint32_t k) {
  uint8_t members[LP_INSTS];
  for (uint32_t pass = 0; pass < p->pass.number; pass++) {
    lp_pass_members(p->l, pass, members);
    if (members[k]) return 1;
  }
  return 0;
}

void cu_print_accumulators(const cu_printer_t *p) {
  for (uint32_t k = 0; k < p->l->n_insts; k++) {
    const lp_inst_t *inst = &p->l->insts[k];
    if (!p->pass.insts[k] || (!lp_reduces_row(inst) && !inst->scan)) continue;
    if (inst->scan && was_scanned(p, k)) {
      lp_print(p->out, "a%u = %s;\n", k, lp_first_value(inst));
      continue;
    }
    if (inst->scan) lp_print(p->out, "__shared__ %s s%u[32];\n", lp_c_type(lp_gpu_lane(inst)), k);
    if (p->l->columns)
      lp_print(p->out, "%s a%u[%u];\n%sfor (int j = 0; j < %u; j++) a%u[j] = %s;\n", lp_c_type(lp_gpu_lane(inst)), k,
               p->g->vector, unroll, p->g->vector, k, lp_first_value(inst));
    else lp_print(p->out, "%s a%u = %s;\n", lp_c_type(lp_gpu_lane(inst)), k, lp_first_value(inst));
  }
}

static const char *lane_suffix(const lp_inst_t *inst) { return lp_suffix(lp_gpu_lane(inst)); }

/* Where the partial results of a reduction lie. */
void cu_print_scratch(const cu_printer_t *p, uint32_t k) {
  lp_print(p->out, "((%s *)(LP_AT(%u) + %llu))", lp_c_type(lp_gpu_lane(&p->l->insts[k])), lp_gpu_n_pointers(p->l) - 1,
           (unsigned long long)lp_gpu_partial(p->l, k));
}

/* The partial result of a part, but for which result it is: "] " ends it. */
void cu_print_partial(const cu_printer_t *p, uint32_t k) {
  cu_print_scratch(p, k);
  lp_print(p->out, "[part * (%s)%llu", p->index, (unsigned long long)lp_gpu_results(p->l));
}

/* Of a block that is larger than a warp's teams are. */
static uint32_t n_teams(const cu_printer_t *p) {
  return p->g->kind == LP_GPU_ROWS && p->g->team > 32 && p->g->splits == 1 ? p->g->threads / p->g->team : 1;
}

/* The values of the pass's reductions, joined over the team; into scratch memory where they are parts. */
void cu_print_joined(const cu_printer_t *p, uint32_t team) {
  const int are_parts = p->g->splits > 1;
  for (uint32_t k = 0; k < p->l->n_insts; k++) {
    const lp_inst_t *inst = &p->l->insts[k];
    if (!p->pass.insts[k] || !lp_reduces_row(inst)) continue;
    if (team > 32) lp_print(p->out, "__shared__ %s s%u[%u];\n", lp_c_type(lp_gpu_lane(inst)), k, 32 * n_teams(p));
    if (are_parts) lp_print(p->out, "const %s v%u = (", lp_c_type(lp_gpu_lane(inst)), k);
    else lp_print_value(p->out, p->l, k);
    lp_print(p->out, "lp_%s_%s_%s(a%u", team > 32 ? "block" : "warp", lp_reduction_name(inst->reduce),
             lane_suffix(inst), k);
    if (team > 32 && n_teams(p) > 1) lp_print(p->out, ", s%u + team * 32, %u, team + 1", k, team / 32);
    else if (team > 32) lp_print(p->out, ", s%u, %u, 0", k, team / 32);
    lp_print(p->out, "));\n");
    if (!are_parts) continue;
    lp_print(p->out, "if (lane == 0) ");
    cu_print_partial(p, k);
    lp_print(p->out, " + row] = v%u;\n", k);
  }
}

/* ---- what stands around ---- */

void cu_print_head(const cu_printer_t *p, const char *name, const char *ending) {
  if (p->g->residents && !*ending)
    lp_print(p->out, "LP_RESIDENT(%s, %u, %u, %u) {\n", name, lp_gpu_n_pointers(p->l), p->g->threads, p->g->residents);
  else lp_print(p->out, "LP_KERNEL(%s%s, %u, %u) {\n", name, ending, lp_gpu_n_pointers(p->l), p->g->threads);
  if (lp_has_indices(p->l)) lp_print(p->out, "int64_t wrong = 0;\n");
  for (uint32_t k = 0; k < p->l->n_loads; k++)
    for (int32_t d = 0; d < p->l->rank; d++)
      if (p->l->accesses[k].bounded >> d & 1u)
        lp_print(p->out, "const %s b%u_%d = %lld, e%u_%d = %lld;\n", p->index, k, d,
                 (long long)p->l->accesses[k].begin[d], k, d, (long long)p->l->accesses[k].end[d]);
}

/* The last line: was an index out of range? */
void cu_print_wrong(const cu_printer_t *p) {
  if (lp_has_indices(p->l)) lp_print(p->out, "if (wrong) *(int64_t *)LP_AT(%u) = wrong;\n", cu_n_accesses(p->l));
}

/* The pointer of an access; of one of several tensors: that which begins at `words`. */
static void print_pointer(const cu_printer_t *p, uint32_t k) {
  const uint32_t word = lp_gpu_word(p->l, k), n_shared = lp_gpu_shared_words(p->l);
  if (!p->g->tensors || word < n_shared) lp_print(p->out, "LP_AT(%u)", word);
  else lp_print(p->out, "LP_AT(words + %u)", word - n_shared);
}

/* Indices of the first n dimensions. */
static void print_outer_indices(const cu_printer_t *p, int32_t n, const char *from) {
  const lp_loop_t *l = p->l;
  int64_t below = 1;
  for (int32_t d = n - 1; d >= 0; d--) {
    lp_print(p->out, "const %s i%d = %s", p->index, d, from);
    if (below > 1) lp_print(p->out, " / %lld", (long long)below);
    if (d > 0) lp_print(p->out, " %% %lld", (long long)size_of(l, d));
    lp_print(p->out, ";\n");
    below *= size_of(l, d);
  }
}

/* To where these indices lead. */
static void print_row_pointer(const cu_printer_t *p, uint32_t k, int32_t n) {
  const lp_access_t *a = &p->l->accesses[k];
  const char *type = lp_c_type(a->dtype), *mark = k < p->l->n_loads ? "const " : "";
  const char *joint = a->draws ? " + (uint64_t)" : a->counts ? " + (int64_t)" : " + ";
  if (a->counts) lp_print(p->out, "const int64_t q%u = 0", k);
  else if (a->draws) lp_print(p->out, "const uint64_t d%u = (uint64_t)", k);
  else lp_print(p->out, "%s%s *q%u = (%s%s *)", mark, type, k, mark, type);
  if (!a->counts) print_pointer(p, k);
  if (a->draws) lp_print(p->out, ", e%u = 0", k);
  for (int32_t d = 0; d < n; d++) {
    char index[16];
    snprintf(index, sizeof index, "i%d", d);
    if (a->strides[d]) print_term(p, k, d, index, joint);
  }
  lp_print(p->out, ";\n");
}

void cu_print_pointers(const cu_printer_t *p, int32_t n, const char *from) {
  const lp_loop_t *l = p->l;
  print_outer_indices(p, n, from);
  for (uint32_t k = 0; k < cu_n_accesses(l); k++) {
    if (lp_gpu_is_staged(l, k))
      lp_print(p->out, "const %s *q%u = (const %s *)(stage + %llu);\n", lp_c_type(l->accesses[k].dtype), k,
               lp_c_type(l->accesses[k].dtype), (unsigned long long)lp_gpu_staged_at(l, k));
    else print_row_pointer(p, k, n);
    if (k < l->n_loads) lp_print_row_bounds(p->out, l, k);
  }
}

/* Loads of what does not change within what a block takes. */
void cu_print_constants(const cu_printer_t *p) {
  for (uint32_t k = 0; k < p->l->n_loads; k++) {
    if (is_row_of_indices(p->l, k)) lp_print_indices(p->out, p->l, k, 1);
    if (!lp_gpu_moves(p->l, k)) cu_print_load(p, k, 0);
  }
}

void cu_print_row_insts(const cu_printer_t *p, uint32_t pass) {
  for (uint32_t k = 0; k < p->l->n_insts; k++) {
    const lp_inst_t *inst = &p->l->insts[k];
    if (!inst->of_row || lp_reduces_row(inst) || inst->pass != pass) continue;
    if (inst->reduce == LP_EACH) {
      lp_print_inst(p->out, p->l, k);
      continue;
    }
    lp_print(p->out, "a%u += (%s)(", k, lp_c_type(lp_value_dtype(inst->compute)));
    lp_print_template(p->out, p->l, inst);
    lp_print(p->out, ");\n");
  }
}

void cu_print_row_stores(const cu_printer_t *p) {
  for (uint32_t s = p->l->n_loads; s < cu_n_accesses(p->l); s++) {
    if (!p->l->accesses[s].of_row) continue;
    lp_print(p->out, "if (lane == 0) ");
    print_store(p, s);
  }
}

/* ---- points ---- */

/* The block's tensor: the last whose first block is not after it, found by halves. */
static void print_tensor(const cu_printer_t *p) {
  const uint32_t first = lp_gpu_shared_words(p->l), words = lp_gpu_row_words(p->l), n = p->g->tensors;
  uint32_t half = 1;
  while (2 * half < n) half *= 2;
  lp_print(p->out, "int words = %u;\n", first);
  if (n > 1)
    lp_print(p->out,
             "for (int step = %u; step; step /= 2)\nif (words + step * %u < %u && "
             "(int64_t)LP_AT(words + step * %u + %d) <= blockIdx.x) words += step * %u;\n",
             half, words, first + n * words, words, LP_GPU_FIRST_BLOCK, words);
  lp_print(p->out, "const %s size = (%s)(int64_t)LP_AT(words + %d);\n", p->index, p->index, LP_GPU_SIZE);
  lp_print(p->out, "const %s block = (%s)(blockIdx.x - (int64_t)LP_AT(words + %d));\n", p->index, p->index,
           LP_GPU_FIRST_BLOCK);
}

static void print_points(cu_printer_t *p, const char *name) {
  const lp_loop_t *l = p->l;
  const lp_gpu_t *g = p->g;
  const char *at = l->rank > 1 ? "at" : "i";
  const long long row = (long long)size_of(l, l->rank - 1);
  long long elements = 1;
  char size[24] = "size", block[24] = "block";
  for (int32_t d = 0; d < l->rank; d++) elements *= (long long)l->sizes[d];
  lp_find_pass(l, 0, &p->pass);
  cu_print_head(p, name, "");
  if (g->tensors) {
    print_tensor(p);
  } else {
    snprintf(size, sizeof size, "%lld", elements);
    snprintf(block, sizeof block, "(%s)blockIdx.x", p->index);
  }
  lp_print(p->out, "const %s %s = (%s * %u + threadIdx.x) * %u;\n", p->index, at, block, g->threads, g->vector);
  lp_print(p->out, "if (%s < %s) {\n", at, size);
  if (l->rank > 1) lp_print(p->out, "const %s row = at / %lld, i = at %% %lld;\n", p->index, row, row);
  if (has_tail(p))
    lp_print(p->out, "const int n = %s - i < %u ? (int)(%s - i) : %u;\n", size, g->vector, size, g->vector);
  cu_print_pointers(p, l->rank - 1, "row");
  cu_print_constants(p);
  cu_print_row_insts(p, 0);
  cu_print_vector(p);
  cu_print_wrong(p);
  lp_print(p->out, "}\n}\n");
}

/* ---- rows ---- */

/* The vectors of a row that are this thread's: c of them where it holds them, else as they come. */
static void print_chunks(const cu_printer_t *p) {
  const lp_gpu_t *g = p->g;
  const long long step = (long long)g->team * g->vector;
  if (p->pass.has_scan) { /* all threads take part to the last */
    lp_print(p->out, "for (%s top = 0; top < length; top += %u) {\n{\n", p->index, g->team);
    lp_print(p->out, "const int is_in = top + lane < length;\nconst %s i = is_in ? top + lane : length - 1;\n",
             p->index);
    return;
  }
  if (g->chunks > 1) {
    lp_print(p->out, "%sfor (int c = 0; c < %u; c++) {\n", unroll, g->chunks);
    lp_print(p->out, "const %s i = (c * %u + lane) * %u;\n", p->index, g->team, g->vector);
  } else if (g->chunks == 1) {
    lp_print(p->out, "{\nconst %s i = lane * %u;\n", p->index, g->vector);
  } else if (g->splits > 1) {
    lp_print(p->out, "#pragma unroll 4\nfor (%s i = (part * %u + lane) * %u; i < length; i += %lld) {\n", p->index,
             g->team, g->vector, step * g->splits);
  } else {
    lp_print(p->out, "#pragma unroll 4\nfor (%s i = lane * %u; i < length; i += %lld) {\n", p->index, g->vector, step);
  }
  if (g->chunks && lp_length(p->l) % step) lp_print(p->out, "if (i < length) ");
  lp_print(p->out, "{\n");
}

/* Loads that are held and come first in this pass. */
static void print_held(const cu_printer_t *p, uint8_t *is_there) {
  int n = 0;
  for (uint32_t k = 0; k < p->l->n_loads; k++) {
    if (!p->pass.loads[k] || is_there[k] || !lp_is_held(p->l, k)) continue;
    print_array(p, k, 1);
    n++;
  }
  if (!n) return;
  print_chunks(p);
  for (uint32_t k = 0; k < p->l->n_loads; k++) {
    if (!p->pass.loads[k] || is_there[k] || !lp_is_held(p->l, k)) continue;
    print_take(p, k);
    is_there[k] = 1;
  }
  lp_print(p->out, "}\n}\n");
}

static void print_row_pass(cu_printer_t *p, uint32_t number, uint8_t *is_there) {
  lp_find_pass(p->l, number, &p->pass);
  cu_print_row_insts(p, number);
  print_held(p, is_there);
  cu_print_accumulators(p);
  print_chunks(p);
  cu_print_vector(p);
  lp_print(p->out, "}\n}\n");
  cu_print_joined(p, p->g->team);
}

/* Sums across rows: of each element that the thread has of a row, or of values of rows. */
static void print_across(const cu_printer_t *p) {
  for (uint32_t k = 0; k < p->l->n_insts; k++) {
    const lp_inst_t *inst = &p->l->insts[k];
    const uint32_t n = p->g->chunks * p->g->vector;
    if (inst->reduce != LP_ACROSS) continue;
    if (inst->of_row) {
      lp_print(p->out, "%s a%u = 0;\n", lp_c_type(lp_gpu_lane(inst)), k);
    } else if (!n) {
      print_chunks(p);
      cu_print_element_loop(p);
      print_across_slot(p, k);
      lp_print(p->out, " = 0;\n}\n}\n");
    } else
      lp_print(p->out, "%s a%u[%u];\n%sfor (int j = 0; j < %u; j++) a%u[j] = 0;\n", lp_c_type(lp_gpu_lane(inst)), k, n,
               unroll, n, k);
  }
}

/* The teams of a block first add theirs in shared memory, where no rows are any more. */
static void print_joined_teams(const cu_printer_t *p) {
  const lp_loop_t *l = p->l;
  const uint32_t teams = p->g->threads / p->g->team;
  const long long length = (long long)lp_length(l);
  for (uint32_t k = 0; k < l->n_insts; k++) {
    const lp_inst_t *inst = &l->insts[k];
    const char *type = lp_c_type(lp_gpu_lane(inst));
    if (inst->reduce != LP_ACROSS) continue;
    lp_print(p->out, "{\n%s *const sums = (%s *)shared;\n__syncthreads();\n", type, type);
    if (inst->of_row) {
      lp_print(p->out, "if (lane == 0) sums[threadIdx.x / %u] = a%u;\n", p->g->team, k);
    } else {
      print_chunks(p);
      cu_print_element_loop(p);
      lp_print(p->out, "sums[threadIdx.x / %u * %lld + i%s] = a%u", p->g->team, length, p->g->vector > 1 ? " + j" : "",
               k);
      print_slot(p, 1, 1);
      lp_print(p->out, ";\n}\n}\n");
    }
    lp_print(p->out, "__syncthreads();\nfor (int i = threadIdx.x; i < %lld; i += %u) {\n%s sum = sums[i];\n",
             inst->of_row ? 1 : length, p->g->threads, type);
    lp_print(p->out, "for (int other = 1; other < %u; other++) sum += sums[other * %lld + i];\n", teams,
             inst->of_row ? 1 : length);
    cu_print_scratch(p, k);
    lp_print(p->out, "[blockIdx.x * (%s)%lld + i] = sum;\n}\n}\n", p->index, inst->of_row ? 1 : length);
  }
}

/* They go to scratch memory, as part `part`. */
static void print_across_parts(const cu_printer_t *p) {
  const lp_loop_t *l = p->l;
  for (uint32_t k = 0; k < l->n_insts; k++) {
    if (l->insts[k].reduce != LP_ACROSS || (!l->insts[k].of_row && !p->g->chunks)) continue;
    if (l->insts[k].of_row) {
      lp_print(p->out, "if (lane == 0) ");
      cu_print_scratch(p, k);
      lp_print(p->out, "[part] = a%u;\n", k);
      continue;
    }
    print_chunks(p);
    cu_print_element_loop(p);
    cu_print_scratch(p, k);
    lp_print(p->out, "[part * (%s)%lld + i%s] = a%u", p->index, (long long)lp_length(l), p->g->vector > 1 ? " + j" : "",
             k);
    print_slot(p, 1, 1);
    lp_print(p->out, ";\n}\n}\n");
  }
}

/* Loads that are held and are the same for all rows. */
static void print_same_for_rows(cu_printer_t *p, uint8_t *is_there) {
  const lp_loop_t *l = p->l;
  for (uint32_t k = 0; k < l->n_loads; k++) {
    const lp_access_t *a = &l->accesses[k];
    int is_own = a->n_indices || a->bounded;
    for (int32_t d = 0; d < lp_row(l); d++) is_own |= a->strides[d] != 0;
    if (is_own || !lp_is_held(l, k)) continue;
    print_row_pointer(p, k, 0);
    print_array(p, k, 1);
    print_chunks(p);
    print_take(p, k);
    lp_print(p->out, "}\n}\n");
    is_there[k] = 1;
  }
}

/* A row to come by its first thread, whole: a barrier counts the bytes. */
static void print_bulk_copies(const cu_printer_t *p) {
  const lp_loop_t *l = p->l;
  uint64_t sum = 0;
  for (uint32_t k = 0; k < l->n_loads; k++)
    if (lp_gpu_is_staged(l, k)) sum += (uint64_t)l->sizes[l->rank - 1] * aot_dtype_size(l->accesses[k].dtype);
  lp_print(p->out, "if (lane == 0) {\nlp_expect(&full[next_stage], %llu);\n", (unsigned long long)sum);
  for (uint32_t k = 0; k < l->n_loads; k++)
    if (lp_gpu_is_staged(l, k))
      lp_print(p->out, "lp_fetch(stage + %llu, q%u, %llu, &full[next_stage]);\n",
               (unsigned long long)lp_gpu_staged_at(l, k), k,
               (unsigned long long)l->sizes[l->rank - 1] * aot_dtype_size(l->accesses[k].dtype));
  lp_print(p->out, "}\n}\n");
}

/* A row to come, by every thread the vectors that it will read. */
static void print_copies(const cu_printer_t *p) {
  const lp_loop_t *l = p->l;
  print_chunks(p);
  for (uint32_t k = 0; k < l->n_loads; k++)
    if (lp_gpu_is_staged(l, k))
      lp_print(p->out, "lp_copy(stage + %llu + i * %u, &q%u[i], %llu);\n", (unsigned long long)lp_gpu_staged_at(l, k),
               (unsigned)aot_dtype_size(l->accesses[k].dtype), k, (unsigned long long)vector_bytes(p, k));
  lp_print(p->out, "}\n}\n}\nlp_end_copies();\n");
}

/* Rows through shared memory: a row to come goes into the stage whose row is done; then a team waits for its row. The
 * first rows are ones before the team's first. */
static void print_stages(const cu_printer_t *p, long long rows) {
  const lp_loop_t *l = p->l;
  const lp_gpu_t *g = p->g;
  const uint32_t teams = g->threads / g->team, step = g->blocks * teams, ahead = (g->stages - 1) * step;
  const unsigned long long bytes = (unsigned long long)lp_gpu_staged_at(l, l->n_loads);
  lp_print(p->out, "LP_SHARED(shared);\nchar *const stages = shared");
  if (teams > 1) lp_print(p->out, " + threadIdx.x / %u * %llu", g->team, g->stages * bytes);
  lp_print(p->out, ";\nint next_stage = 0;\n");
  if (g->bulk) {
    lp_print(p->out, "__shared__ uint64_t barriers[%u];\nuint64_t *const full = barriers", g->stages * teams);
    if (teams > 1) lp_print(p->out, " + threadIdx.x / %u * %u", g->team, g->stages);
    lp_print(p->out, ";\nint round = 0;\n");
    lp_print(p->out, "if (lane == 0) for (int k = 0; k < %u; k++) lp_begin_barrier(&full[k]);\n__syncthreads();\n",
             g->stages);
  }
  lp_print(p->out, "for (%s row = part - %u; row < %lld; row += %u) {\n", p->index, ahead, rows, step);
  lp_print(p->out, "if (row + %u < %lld) {\nconst %s next = row + %u;\n", ahead, rows, p->index, ahead);
  print_outer_indices(p, l->rank - 1, "next");
  lp_print(p->out, "char *const stage = stages + next_stage * %llu;\n", bytes);
  for (uint32_t k = 0; k < l->n_loads; k++)
    if (lp_gpu_is_staged(l, k)) print_row_pointer(p, k, l->rank - 1);
  if (g->bulk) print_bulk_copies(p);
  else print_copies(p);
  if (g->stages > 1) lp_print(p->out, "next_stage = next_stage == %u ? 0 : next_stage + 1;\n", g->stages - 1);
  if (g->stages > 1) lp_print(p->out, "if (row < part) continue;\n");
  if (g->bulk) lp_print(p->out, "lp_await(&full[next_stage], round);\n");
  else lp_print(p->out, "LP_WAIT_COPIES(%u);\n", g->stages - 1);
  lp_print(p->out, "const char *const stage = stages + next_stage * %llu;\n", bytes);
}

/* Who takes which row: teams that go on from row to row, parts of a row, or teams with a row each. */
static void print_rows_begin(cu_printer_t *p, uint8_t *is_there) {
  const lp_gpu_t *g = p->g;
  const uint32_t teams = g->threads / g->team;
  const long long rows = (long long)lp_gpu_results(p->l);
  lp_print(p->out, "const %s length = %lld, lane = threadIdx.x", p->index, (long long)lp_length(p->l));
  if (teams > 1) lp_print(p->out, " %% %u", g->team);
  if (n_teams(p) > 1) lp_print(p->out, ", team = threadIdx.x / %u", g->team);
  if (g->splits > 1) {
    lp_print(p->out, ", row = blockIdx.x / %u, part = blockIdx.x %% %u;\n", g->splits, g->splits);
  } else {
    lp_print(p->out, ", %s = (%s)blockIdx.x", lp_gpu_goes_on(p->l) ? "part" : "row", p->index);
    if (teams > 1) lp_print(p->out, " * %u + threadIdx.x / %u", teams, g->team);
    if (g->parts && !lp_gpu_goes_on(p->l)) lp_print(p->out, ", part = row");
    lp_print(p->out, ";\n");
  }
  print_across(p);
  if (lp_gpu_goes_on(p->l)) print_same_for_rows(p, is_there);
  if (g->stages) print_stages(p, rows);
  else if (lp_gpu_goes_on(p->l))
    lp_print(p->out, "for (%s row = part; row < %lld; row += %u) {\n", p->index, rows, g->blocks * teams);
  else lp_print(p->out, "if (row < %lld) {\n", rows);
}

static void print_rows(cu_printer_t *p, const char *name) {
  const lp_loop_t *l = p->l;
  const lp_gpu_t *g = p->g;
  uint8_t is_there[LP_INSTS * LP_ARGS] = {0};
  cu_print_head(p, name, "");
  print_rows_begin(p, is_there);
  cu_print_pointers(p, lp_row(l), "row");
  cu_print_constants(p);
  for (uint32_t k = 0; k < l->n_insts; k++)
    if (l->insts[k].keep) lp_print(p->out, "%s k%u[%u];\n", lp_value_type(l->insts[k].dtype), k, g->chunks * g->vector);
  for (uint32_t pass = 0; pass < l->n_passes; pass++) print_row_pass(p, pass, is_there);
  if (g->splits == 1) {
    cu_print_row_insts(p, l->n_passes);
    cu_print_row_stores(p);
  }
  if (g->bulk) lp_print(p->out, "round ^= next_stage == %u;\n", g->stages - 1);
  if (lp_gpu_goes_on(l) && n_teams(p) > 1) lp_print(p->out, "lp_sync(team + 1, %u);\n", g->team);
  else if (lp_gpu_goes_on(l) && g->team > 32) lp_print(p->out, "__syncthreads();\n"); /* shared memory is used again */
  if (lp_gpu_goes_on(p->l)) lp_print(p->out, "}\n");
  if (g->parts && lp_gpu_joins_teams(l)) print_joined_teams(p);
  else if (g->parts) print_across_parts(p);
  cu_print_wrong(p);
  lp_print(p->out, lp_gpu_goes_on(p->l) ? "}\n" : "}\n}\n");
}

/* ---- columns ---- */

/* Sums of `across` columns by `down` threads each: they go to shared memory, and half joins half. */
void cu_print_joined_columns(const cu_printer_t *p, uint32_t across, uint32_t down) {
  const lp_loop_t *l = p->l;
  for (uint32_t k = 0; k < l->n_insts; k++)
    if (l->insts[k].reduce != LP_EACH)
      lp_print(p->out, "__shared__ %s s%u[%u];\n", lp_c_type(lp_gpu_lane(&l->insts[k])), k, across * down);
  cu_print_element_loop(p);
  lp_print(p->out, "{\n");
  for (uint32_t k = 0; k < l->n_insts; k++) {
    if (l->insts[k].reduce == LP_EACH) continue;
    lp_print(p->out, "s%u[down * %u + lane", k, across);
    if (p->g->vector > 1) lp_print(p->out, " * %u + j", p->g->vector);
    lp_print(p->out, "] = a%u", k);
    print_slot(p, 0, 1);
    lp_print(p->out, ";\n");
  }
  lp_print(p->out, "}\n");
  for (uint32_t half = down / 2; half; half /= 2) {
    lp_print(p->out, "__syncthreads();\nfor (int k = threadIdx.x; k < %u; k += %u) {\n", half * across, p->g->threads);
    for (uint32_t k = 0; k < l->n_insts; k++)
      if (l->insts[k].reduce != LP_EACH)
        lp_print(p->out, "s%u[k] = %s(s%u[k], s%u[k + %u]);\n", k, lp_join_name(l->insts[k].reduce), k, k,
                 half * across);
    lp_print(p->out, "}\n");
  }
  lp_print(p->out, "__syncthreads();\n");
}

/* The values of a column: its reductions, what follows from them, and its stores. */
void cu_print_column_values(const cu_printer_t *p) {
  const lp_loop_t *l = p->l;
  for (uint32_t k = 0; k < l->n_loads; k++)
    if (lp_gpu_moves(l, k) && !lp_moves(l, k)) cu_print_load(p, k, 0);
  for (uint32_t k = 0; k < l->n_insts; k++) {
    if (!l->insts[k].of_row) continue;
    if (l->insts[k].reduce == LP_EACH) {
      lp_print_inst(p->out, l, k);
      continue;
    }
    lp_print_value(p->out, l, k);
    lp_print(p->out, p->g->vector > 1 ? "s%u[lane * %u + j]);\n" : "s%u[lane]);\n", k, p->g->vector);
  }
  for (uint32_t s = l->n_loads; s < cu_n_accesses(l); s++)
    if (l->accesses[s].of_row) print_store(p, s);
}

/* A tile's sums into scratch memory. */
static void print_column_parts(const cu_printer_t *p, long long across) {
  for (uint32_t k = 0; k < p->l->n_insts; k++) {
    if (p->l->insts[k].reduce == LP_EACH) continue;
    cu_print_partial(p, k);
    lp_print(p->out, " + outer * %lld + i%s] = s%u[", across, p->g->vector > 1 ? " + j" : "", k);
    lp_print(p->out, p->g->vector > 1 ? "lane * %u + j];\n" : "lane];\n", p->g->vector);
  }
}

/* The rows that a thread takes at once: c of them. */
static void print_column_rows(const cu_printer_t *p, uint32_t step) {
  if (p->g->chunks > 1) {
    lp_print(p->out, "%sfor (int c = 0; c < %u; c++) {\nconst %s row = top + c * %u;\nif (row < length) {\n", unroll,
             p->g->chunks, p->index, step);
    return;
  }
  lp_print(p->out, "{\nconst %s row = top;\n{\n", p->index);
}

static void print_columns(cu_printer_t *p, const char *name) {
  const lp_loop_t *l = p->l;
  const lp_gpu_t *g = p->g;
  const uint32_t width = g->team * g->vector, down = g->threads / g->team, step = down * g->splits;
  const long long across = (long long)l->sizes[lp_inner(l)], tiles = (across + width - 1) / width;
  lp_find_pass(l, 0, &p->pass);
  cu_print_head(p, name, "");
  lp_print(p->out, "const %s length = %lld, across = %lld;\n", p->index, (long long)lp_length(l), across);
  lp_print(p->out, "const %s lane = threadIdx.x %% %u, down = threadIdx.x / %u, part = blockIdx.x %% %u;\n", p->index,
           g->team, g->team, g->splits);
  lp_print(p->out, "const %s i = (blockIdx.x / %u %% %lld * %u + lane) * %u, outer = blockIdx.x / %lld;\n", p->index,
           g->splits, tiles ? tiles : 1, g->team, g->vector, (tiles ? tiles : 1) * g->splits);
  cu_print_pointers(p, lp_inner(l), "outer");
  cu_print_constants(p);
  cu_print_accumulators(p);
  lp_print(p->out, "if (i < across)\nfor (%s top = part * %u + down; top < length; top += %llu) {\n", p->index, down,
           (unsigned long long)step * g->chunks);
  for (uint32_t k = 0; k < l->n_loads; k++)
    if (has_array(p, k)) print_array(p, k, 1);
  print_column_rows(p, step);
  for (uint32_t k = 0; k < l->n_loads; k++)
    if (has_array(p, k)) print_take(p, k);
  lp_print(p->out, "}\n}\n");
  print_column_rows(p, step);
  cu_print_vector(p);
  lp_print(p->out, "}\n}\n}\n");
  cu_print_joined_columns(p, width, down);
  lp_print(p->out, "if (down == 0 && i < across) {\n");
  cu_print_element_loop(p);
  lp_print(p->out, "{\n");
  if (g->splits > 1) print_column_parts(p, across);
  else cu_print_column_values(p);
  lp_print(p->out, "}\n}\n");
  cu_print_wrong(p);
  lp_print(p->out, "}\n");
}

void lp_gen_cuda(const lp_loop_t *l, const char *name, lp_text_t *out) {
  cu_printer_t p = {.out = out, .l = l, .g = &l->gpu, .index = l->gpu.wide ? "int64_t" : "int"};
  switch (l->gpu.kind) {
    case LP_GPU_COLUMNS: print_columns(&p, name); break;
    case LP_GPU_ROWS: print_rows(&p, name); break;
    case LP_GPU_PLACES: cu_print_places(&p, name); return;
    default: print_points(&p, name);
  }
  if (lp_gpu_has_end(l)) cu_print_end(&p, name);
}
