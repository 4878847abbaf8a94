/* What is done to the elements of a vector in one pass: loads, instructions, reductions, stores. */
#include "cuda_printer.h"

#include <aot/assert.h>
#include <aot/inline.h>
#include <math.h>
#include <string.h>

static int is_taken(const cuda_printer_t *p, uint32_t k) {
  return p->l->columns ? lp_gpu_moves(p->l, k) : p->pass.loads[k];
}

static int is_stored_here(const cuda_printer_t *p, uint32_t store) {
  const lp_access_t *a = &p->l->accesses[store];
  return !a->of_row && p->l->insts[a->inst].reduce != LP_ACROSS && lp_store_pass(p->l, store) == p->pass.number;
}

/* Each with all before it: by the team, whose threads have elements one after another, and with what came before. */
static void print_scan(const cuda_printer_t *p, uint32_t k) {
  const lp_inst_t *inst = &p->l->insts[k];
  const int32_t lane = lp_gpu_lane(inst);
  AOT_ASSERT(p->g->vector == 1 && p->g->splits == 1); /* a thread has one element at a time */
  lp_print(p->out, "const %s t%u = is_in ? (%s)(", lp_c_type(lane), k, lp_c_type(lp_value_dtype(inst->compute)));
  lp_print_template(p->out, p->l, inst);
  lp_print(p->out, ") : %s;\n", lp_first_value(inst));
  lp_print_value(p->out, p->l, k);
  lp_print(p->out, "lp_scan_%s_%s(t%u, &a%u, s%u, %u));\n",
           inst->scan == LP_LOG_ADD ? "log_add" : lp_reduction_name(inst->scan), lp_suffix(lane), k, k, k,
           p->g->team / 32);
}

void cuda_print_across_slot(const cuda_printer_t *p, uint32_t k) {
  if (p->g->chunks) {
    lp_print(p->out, "a%u", k);
    cuda_print_slot(p, 1, 1);
    return;
  }
  cuda_print_scratch(p, k);
  lp_print(p->out, "[part * (%s)%lld + i%s]", p->index, (long long)lp_length(p->l), p->g->vector > 1 ? " + j" : "");
}

/* An instruction that is true of one element of a row, which numbers of the row report; counted from 1. 0: there is
 * none. */
static uint32_t spot_of(const cuda_printer_t *p) {
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
static int has_none(const cuda_printer_t *p, const lp_inst_t *inst) {
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

/* Is a comparison that of a uniform number with a constant, so that it can be made on its word? Such a number is the
 * word's upper 24 bits, w / 256 * 2^-24, and w / 256 < b * 2^24 where w < bound. */
static int compares_word(const cuda_printer_t *p, const lp_inst_t *inst, uint32_t *out_bound) {
  const lp_arg_t *unit = &inst->args[0], *number = &inst->args[1];
  if (inst->compute != AOT_F32 || (strcmp(inst->text, "a < b") != 0 && strcmp(inst->text, "a >= b") != 0)) return 0;
  if (number->kind != LP_FLOAT || unit->kind != LP_INST || !p->pass.insts[unit->index]) return 0;
  const lp_inst_t *drawn = &p->l->insts[unit->index];
  if (drawn->compute != AOT_F32 || drawn->dtype != AOT_F32 || strcmp(drawn->text, "unit(d)") != 0) return 0;
  if (!(number->f > 0) || !((float)number->f < 1)) return 0;
  AOT_ASSERT(drawn->n_args > 3 && drawn->args[3].kind == LP_DRAWN); /* d */
  *out_bound = (uint32_t)ceil(ldexp((double)(float)number->f, 24)) << 8;
  return 1;
}

/* The load that a reduction takes the extreme of as it is, in vectors of pairs: what is after a row's end in its last
 * vector is one of its elements again. Counted from 1; 0: it takes another. */
static uint32_t pairs_of_extreme(const cuda_printer_t *p, const lp_inst_t *inst) {
  if ((inst->reduce != LP_MAX && inst->reduce != LP_MIN) || p->l->columns || p->pass.has_scan) return 0;
  while (inst->compute == AOT_F32 && inst->dtype == AOT_F32 && strcmp(inst->text, "a") == 0) {
    const lp_arg_t *arg = &inst->args[0];
    if (arg->kind == LP_LOAD)
      return p->l->accesses[arg->index].dtype == AOT_BF16 && cuda_has_pairs(p, arg->index) ? arg->index + 1 : 0;
    if (arg->kind != LP_INST || !p->pass.insts[arg->index]) return 0;
    inst = &p->l->insts[arg->index];
    if (inst->reduce || inst->scan) return 0;
  }
  return 0;
}

static void print_extremes_of_pairs(const cuda_printer_t *p) {
  for (uint32_t k = 0; k < p->l->n_insts; k++) {
    const lp_inst_t *inst = &p->l->insts[k];
    const uint32_t load = p->pass.insts[k] ? pairs_of_extreme(p, inst) : 0;
    if (!load) continue;
    lp_print(p->out, "a%u = %s(a%u, lp_%s_of_bf16(&w%u", k, lp_join_name(inst->reduce), k,
             lp_reduction_name(inst->reduce), load - 1);
    cuda_print_slot(p, lp_is_held(p->l, load - 1), 0);
    lp_print(p->out, ", %u));\n", p->g->vector);
  }
}

static void print_inst(const cuda_printer_t *p, uint32_t k) {
  const lp_inst_t *inst = &p->l->insts[k];
  uint32_t bound;
  if (pairs_of_extreme(p, inst)) return;
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
    if (compares_word(p, inst, &bound))
      lp_print(p->out, "const %s v%u = x%u %s %uu;\n", lp_value_type(inst->dtype), k,
               p->l->insts[inst->args[0].index].args[3].index, strcmp(inst->text, "a < b") == 0 ? "<" : ">=", bound);
    else lp_print_inst(p->out, p->l, k);
    if (!inst->keep) return;
    lp_print(p->out, "k%u", k);
    cuda_print_slot(p, 1, 1);
    lp_print(p->out, " = v%u;\n", k);
    return;
  }
  const char *lane = lp_c_type(lp_gpu_lane(inst));
  const char *only = p->pass.has_scan ? "if (is_in) " : cuda_has_tail(p) ? "if (j < n) " : "";
  lp_print(p->out, "{\nconst %s t = (%s)(", lane, lp_c_type(lp_value_dtype(inst->compute)));
  lp_print_template(p->out, p->l, inst);
  if (inst->reduce == LP_ACROSS) {
    lp_print(p->out, ");\n%s", only);
    cuda_print_across_slot(p, k);
    lp_print(p->out, " += t;\n}\n");
    return;
  }
  const char *slot = !p->l->columns ? "" : p->g->vector > 1 ? "[j]" : "[0]";
  lp_print(p->out, ");\n%sa%u%s = %s(a%u%s, t);\n}\n", only, k, slot, lp_join_name(inst->reduce), k, slot);
}

/* What is done to element j of the vector at i. */
static void print_element(const cuda_printer_t *p) {
  const lp_loop_t *l = p->l;
  cuda_print_element_loop(p);
  lp_print(p->out, "{\n");
  if (p->pass.has_place)
    lp_print(p->out, "const int64_t place = (%s)(%s);\n", p->g->wide ? "int64_t" : "uint32_t",
             l->columns         ? "row"
             : p->g->vector > 1 ? "i + j"
                                : "i");
  for (uint32_t k = 0; k < l->n_loads; k++)
    if (is_taken(p, k)) cuda_print_load(p, k, cuda_has_array(p, k));
  for (uint32_t k = 0; k < l->n_insts; k++) {
    if (p->pass.kept[k]) {
      lp_print(p->out, "const %s v%u = k%u", lp_value_type(l->insts[k].dtype), k, k);
      cuda_print_slot(p, 1, 1);
      lp_print(p->out, ";\n");
    }
    const int of_column = l->columns && l->insts[k].reduce == LP_EACH && l->insts[k].of_row && l->insts[k].pass == 0;
    if (of_column || (p->pass.insts[k] && lp_is_element(&l->insts[k]))) print_inst(p, k);
  }
  for (uint32_t s = l->n_loads; s < cuda_n_accesses(l); s++)
    if (is_stored_here(p, s)) cuda_print_store(p, s);
  lp_print(p->out, "}\n");
}

static void print_takes(const cuda_printer_t *p) {
  const lp_loop_t *l = p->l;
  for (uint32_t k = 0; k < l->n_loads; k++) {
    if (!is_taken(p, k) || lp_is_held(l, k) || !cuda_has_array(p, k)) continue;
    if (l->accesses[k].draws) {
      cuda_print_draw(p, k);
      continue;
    }
    cuda_print_array(p, k, 0);
    cuda_print_take(p, k);
  }
  for (uint32_t s = l->n_loads; s < cuda_n_accesses(l); s++)
    if (is_stored_here(p, s) && cuda_is_vector(p, s))
      lp_print(p->out, "LP_ALIGN16 %s y%u[%u];\n", lp_c_type(l->accesses[s].dtype), s, p->g->vector);
}

static void print_gives(const cuda_printer_t *p) {
  for (uint32_t s = p->l->n_loads; s < cuda_n_accesses(p->l); s++)
    if (is_stored_here(p, s) && cuda_is_vector(p, s)) cuda_print_give(p, s);
}

/* Is the spot's element none of this vector's? In 32 bits that is as good: where a number beyond them seems to be one
 * of them, every element is queried. */
static void print_is_elsewhere(const cuda_printer_t *p, uint32_t spot) {
  lp_inst_t place = p->l->insts[spot - 1];
  place.text = "b";
  lp_print(p->out, p->g->wide ? "(uint64_t)(" : "(uint32_t)((int)");
  lp_print_template(p->out, p->l, &place);
  lp_print(p->out, " - i) >= %u", p->g->vector);
}

void cuda_print_vector(const cuda_printer_t *p) {
  const uint32_t spot = spot_of(p);
  print_takes(p);
  print_extremes_of_pairs(p);
  if (spot) { /* few vectors have it, and the others are spared the question of every element */
    cuda_printer_t elsewhere = *p;
    elsewhere.nowhere = spot;
    lp_print(p->out, "if (");
    print_is_elsewhere(p, spot);
    lp_print(p->out, ") {\n");
    print_element(&elsewhere);
    lp_print(p->out, "} else {\n");
  }
  print_element(p);
  if (spot) lp_print(p->out, "}\n");
  print_gives(p);
}
