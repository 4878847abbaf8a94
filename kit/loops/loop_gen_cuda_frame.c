/* What stands around the elements: a kernel's head, pointers and constants before, accumulators, what a team joins of
 * them, and the values of a row after. */
#include "cuda_printer.h"

#include <aot/assert.h>
#include <aot/inline.h>
#include <stdio.h>

/* A scan that an earlier pass needs as well is made again. */
static int was_scanned(const cuda_printer_t *p, uint32_t k) {
  uint8_t members[LP_INSTS];
  for (uint32_t pass = 0; pass < p->pass.number; pass++) {
    lp_pass_members(p->l, pass, members);
    if (members[k]) return 1;
  }
  return 0;
}

void cuda_print_accumulators(const cuda_printer_t *p) {
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
               p->g->vector, CUDA_UNROLL, p->g->vector, k, lp_first_value(inst));
    else lp_print(p->out, "%s a%u = %s;\n", lp_c_type(lp_gpu_lane(inst)), k, lp_first_value(inst));
  }
}

static const char *lane_suffix(const lp_inst_t *inst) { return lp_suffix(lp_gpu_lane(inst)); }

void cuda_print_scratch(const cuda_printer_t *p, uint32_t k) {
  AOT_ASSERT(!p->g->tensors && lp_gpu_scratch(p->l) != 0); /* the last pointer is the scratch memory's */
  lp_print(p->out, "((%s *)(LP_AT(%u) + %llu))", lp_c_type(lp_gpu_lane(&p->l->insts[k])), lp_gpu_n_pointers(p->l) - 1,
           (unsigned long long)lp_gpu_partial(p->l, k));
}

void cuda_print_partial(const cuda_printer_t *p, uint32_t k) {
  cuda_print_scratch(p, k);
  lp_print(p->out, "[part * (%s)%llu", p->index, (unsigned long long)lp_gpu_results(p->l));
}

uint32_t cuda_n_teams(const cuda_printer_t *p) {
  return p->g->kind == LP_GPU_ROWS && p->g->team > 32 && p->g->splits == 1 ? p->g->threads / p->g->team : 1;
}

static int is_joined_here(const cuda_printer_t *p, uint32_t k) {
  return p->pass.insts[k] && lp_reduces_row(&p->l->insts[k]);
}

/* What may be joined together with reduction k; is_there: those that are. 0: nothing, as it is not k's own number. */
static uint32_t partner_of(const cuda_printer_t *p, uint32_t k, const uint8_t *is_there) {
  const lp_inst_t *inst = &p->l->insts[k];
  for (uint32_t other = k + 1; other < p->l->n_insts; other++)
    if (is_joined_here(p, other) && !is_there[other] && p->l->insts[other].reduce == inst->reduce &&
        lp_gpu_lane(&p->l->insts[other]) == lp_gpu_lane(inst))
      return other;
  return 0;
}

/* Where the warps of a team leave theirs. */
static void print_team_slots(const cuda_printer_t *p, uint32_t k) {
  lp_print(p->out, cuda_n_teams(p) > 1 ? "s%u + team * 32" : "s%u", k);
}

/* Each warp joins its threads': into shared memory where the team has several. */
static void print_warps(const cuda_printer_t *p, uint32_t team) {
  uint8_t is_there[LP_INSTS] = {0};
  int n = 0;
  AOT_ASSERT(team < 32 ? 32 % team == 0 : team % 32 == 0 && team <= 1024);
  for (uint32_t k = 0; k < p->l->n_insts; k++) {
    const lp_inst_t *inst = &p->l->insts[k];
    if (!is_joined_here(p, k) || is_there[k]) continue;
    const char *name = lp_reduction_name(inst->reduce), *lane = lane_suffix(inst);
    const uint32_t other = team < 32 ? 0 : partner_of(p, k, is_there);
    is_there[k] = 1;
    if (other) is_there[other] = 1;
    n++;
    if (team < 32) {
      lp_print(p->out, "a%u = lp_team_%s_%s(a%u, %u);\n", k, name, lane, k, team);
      continue;
    }
    if (team == 32) {
      if (other) lp_print(p->out, "lp_warp_two_%s_%s(&a%u, &a%u);\n", name, lane, k, other);
      else lp_print(p->out, "a%u = lp_warp_%s_%s(a%u);\n", k, name, lane, k);
      continue;
    }
    lp_print(p->out, "__shared__ %s s%u[%u]", lp_c_type(lp_gpu_lane(inst)), k, 32 * cuda_n_teams(p));
    if (other) lp_print(p->out, ", s%u[%u]", other, 32 * cuda_n_teams(p));
    lp_print(p->out, ";\nlp_leave_%s%s_%s(a%u, ", other ? "two_" : "", name, lane, k);
    if (other) lp_print(p->out, "a%u, ", other);
    print_team_slots(p, k);
    lp_print(p->out, ", ");
    if (other) print_team_slots(p, other), lp_print(p->out, ", ");
    lp_print(p->out, "%u);\n", team / 32);
  }
  if (!n || team <= 32) return;
  lp_print(p->out, cuda_n_teams(p) > 1 ? "lp_sync(team + 1, %u);\n" : "lp_sync(0, %u);\n", team);
}

void cuda_print_joined(const cuda_printer_t *p, uint32_t team) {
  const int are_parts = p->g->splits > 1;
  print_warps(p, team);
  for (uint32_t k = 0; k < p->l->n_insts; k++) {
    const lp_inst_t *inst = &p->l->insts[k];
    if (!is_joined_here(p, k)) continue;
    if (are_parts) lp_print(p->out, "const %s v%u = (", lp_c_type(lp_gpu_lane(inst)), k);
    else lp_print_value(p->out, p->l, k);
    if (team > 32) {
      lp_print(p->out, "lp_found_%s_%s(", lp_reduction_name(inst->reduce), lane_suffix(inst));
      print_team_slots(p, k);
      lp_print(p->out, ", %u));\n", team / 32);
    } else {
      lp_print(p->out, "a%u);\n", k);
    }
    if (!are_parts) continue;
    lp_print(p->out, "if (lane == 0) ");
    cuda_print_partial(p, k);
    lp_print(p->out, " + row] = v%u;\n", k);
  }
}

void cuda_print_head(const cuda_printer_t *p, const char *name, const char *ending) {
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

void cuda_print_wrong(const cuda_printer_t *p) {
  if (lp_has_indices(p->l)) lp_print(p->out, "if (wrong) *(int64_t *)LP_AT(%u) = wrong;\n", cuda_n_accesses(p->l));
}

/* The pointer of an access; of one of several tensors: that which begins at `words`. */
static void print_pointer(const cuda_printer_t *p, uint32_t k) {
  const uint32_t word = lp_gpu_word(p->l, k), n_shared = lp_gpu_shared_words(p->l);
  if (!p->g->tensors || word < n_shared) lp_print(p->out, "LP_AT(%u)", word);
  else lp_print(p->out, "LP_AT(words + %u)", word - n_shared);
}

void cuda_print_outer_indices(const cuda_printer_t *p, int32_t n, const char *from) {
  const lp_loop_t *l = p->l;
  int64_t below = 1;
  for (int32_t d = n - 1; d >= 0; d--) {
    lp_print(p->out, "const %s i%d = %s", p->index, d, from);
    if (below > 1) lp_print(p->out, " / %lld", (long long)below);
    if (d > 0) lp_print(p->out, " %% %lld", (long long)cuda_size(l, d));
    lp_print(p->out, ";\n");
    below *= cuda_size(l, d);
  }
}

void cuda_print_row_pointer(const cuda_printer_t *p, uint32_t k, int32_t n) {
  const lp_access_t *a = &p->l->accesses[k];
  AOT_ASSERT(n >= 0 && n <= p->l->rank);
  const char *type = lp_c_type(a->dtype), *mark = k < p->l->n_loads ? "const " : "";
  const char *joint = !a->draws ? a->counts ? " + (int64_t)" : " + " : p->g->wide ? " + (uint64_t)" : " + (uint32_t)";
  if (a->counts) lp_print(p->out, "const int64_t q%u = 0", k);
  else if (a->draws) lp_print(p->out, "const uint64_t d%u = (uint64_t)", k);
  else lp_print(p->out, "%s%s *q%u = (%s%s *)", mark, type, k, mark, type);
  if (!a->counts) print_pointer(p, k);
  if (a->draws) lp_print(p->out, ";\nconst %s e%u = 0", cuda_counter(p), k);
  for (int32_t d = 0; d < n; d++) {
    char index[16];
    snprintf(index, sizeof index, "i%d", d);
    if (a->strides[d]) cuda_print_term(p, k, d, index, joint);
  }
  lp_print(p->out, ";\n");
}

void cuda_print_pointers(const cuda_printer_t *p, int32_t n, const char *from) {
  const lp_loop_t *l = p->l;
  cuda_print_outer_indices(p, n, from);
  for (uint32_t k = 0; k < cuda_n_accesses(l); k++) {
    if (lp_gpu_is_staged(l, k))
      lp_print(p->out, "const %s *q%u = (const %s *)(stage + %llu);\n", lp_c_type(l->accesses[k].dtype), k,
               lp_c_type(l->accesses[k].dtype), (unsigned long long)lp_gpu_staged_at(l, k));
    else cuda_print_row_pointer(p, k, n);
    if (k < l->n_loads) lp_print_row_bounds(p->out, l, k);
  }
}

void cuda_print_constants(const cuda_printer_t *p) {
  for (uint32_t k = 0; k < p->l->n_loads; k++) {
    if (cuda_is_row_of_indices(p->l, k)) lp_print_indices(p->out, p->l, k, 1);
    if (!lp_gpu_moves(p->l, k)) cuda_print_load(p, k, 0);
  }
}

void cuda_print_row_insts(const cuda_printer_t *p, uint32_t pass) {
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

void cuda_print_row_stores(const cuda_printer_t *p) {
  for (uint32_t s = p->l->n_loads; s < cuda_n_accesses(p->l); s++) {
    if (!p->l->accesses[s].of_row) continue;
    lp_print(p->out, "if (lane == 0) ");
    cuda_print_store(p, s);
  }
}
