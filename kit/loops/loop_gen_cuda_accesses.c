/* What a thread reads and writes: places, vectors of 16 bytes, arrays of registers, bounds and draws. */
#include "cuda_printer.h"

#include <aot/assert.h>
#include <aot/inline.h>
#include <stdio.h>

int64_t cuda_inner_stride(const lp_loop_t *l, uint32_t k) { return l->accesses[k].strides[lp_inner(l)]; }
uint32_t cuda_n_accesses(const lp_loop_t *l) { return l->n_loads + l->n_stores; }

int64_t cuda_size(const lp_loop_t *l, int32_t d) { return l->sizes[d] ? l->sizes[d] : 1; }

int cuda_is_vector(const cuda_printer_t *p, uint32_t k) { return p->g->vector > 1 && lp_gpu_is_vector(p->l, k); }

int cuda_has_array(const cuda_printer_t *p, uint32_t k) {
  return cuda_is_vector(p, k) || p->l->accesses[k].draws || lp_is_held(p->l, k);
}

int cuda_is_row_of_indices(const lp_loop_t *l, uint32_t k) {
  const lp_access_t *a = &l->accesses[k];
  for (uint32_t i = 0; i < a->n_indices; i++)
    if (lp_gpu_moves(l, a->indices[i].load)) return 0;
  return a->n_indices != 0;
}

static void print_number_of_slot(const cuda_printer_t *p, int is_held, int of_element) {
  const int has_chunk = is_held && p->g->chunks > 1, has_element = of_element && p->g->vector > 1;
  if (has_chunk) lp_print(p->out, p->g->vector > 1 ? "c * %u" : "c", p->g->vector);
  if (has_chunk && has_element) lp_print(p->out, " + ");
  if (has_element) lp_print(p->out, "j");
  if (!has_chunk && !has_element) lp_print(p->out, "0");
}

void cuda_print_slot(const cuda_printer_t *p, int is_held, int of_element) {
  lp_print(p->out, "[");
  print_number_of_slot(p, is_held, of_element);
  lp_print(p->out, "]");
}

void cuda_print_times(lp_text_t *out, const char *what, int64_t stride) {
  lp_print(out, stride == 1 ? "%s" : "%s * %lld", what, (long long)stride);
}

int cuda_has_tail(const cuda_printer_t *p) {
  const int ends = p->g->kind == LP_GPU_POINTS || p->g->kind == LP_GPU_ROWS;
  return ends && !p->is_whole && p->l->sizes[p->l->rank - 1] % p->g->vector != 0;
}

/* The number of element j in the innermost dimension; beyond the tail, of the vector's first. */
static const char *element_index(const cuda_printer_t *p) {
  return p->g->vector == 1 ? "i" : cuda_has_tail(p) ? "(i + (j < n ? j : 0))" : "(i + j)";
}

void cuda_print_term(const cuda_printer_t *p, uint32_t k, int32_t d, const char *index, const char *joint) {
  const lp_access_t *a = &p->l->accesses[k];
  lp_print(p->out, "%s", joint);
  if (a->bounded >> d & 1u) lp_print(p->out, "(%s - b%u_%d)", index, k, d);
  else lp_print(p->out, "%s", index);
  cuda_print_times(p->out, "", a->strides[d]);
}

/* What the row's dimensions add; index: the element's number in its row. */
static const char *print_row_terms(const cuda_printer_t *p, uint32_t k, const char *index, const char *joint) {
  const lp_loop_t *l = p->l;
  const int32_t first = lp_row(l);
  int64_t below = lp_length(l);
  for (int32_t d = first; d < l->rank; d++) {
    const long long size = (long long)cuda_size(l, d);
    char part[96];
    below /= size;
    if (!l->accesses[k].strides[d]) continue;
    if (below == 1) snprintf(part, sizeof part, "(%s %% %lld)", index, size);
    else if (d == first) snprintf(part, sizeof part, "(%s / %lld)", index, (long long)below);
    else snprintf(part, sizeof part, "(%s / %lld %% %lld)", index, (long long)below, size);
    cuda_print_term(p, k, d, first + 1 == l->rank ? index : part, joint);
    joint = " + ";
  }
  AOT_ASSERT(below <= 1); /* all of the row's dimensions were divided out; 0: it has no elements */
  return joint;
}

void cuda_print_place(const cuda_printer_t *p, uint32_t k, const char *index) {
  const lp_loop_t *l = p->l;
  const char *joint = "";
  if (l->accesses[k].n_indices) lp_print(p->out, "j%u", k), joint = " + ";
  if (l->columns) joint = print_row_terms(p, k, "row", joint);
  if (!l->columns) joint = print_row_terms(p, k, index, joint);
  else if (cuda_inner_stride(l, k)) cuda_print_term(p, k, lp_inner(l), index, joint), joint = " + ";
  if (!*joint) lp_print(p->out, "0");
}

void cuda_print_element_loop(const cuda_printer_t *p) {
  if (p->g->vector > 1) lp_print(p->out, "%sfor (int j = 0; j < %u; j++) ", CUDA_UNROLL, p->g->vector);
}

uint64_t cuda_vector_bytes(const cuda_printer_t *p, uint32_t k) {
  return p->g->vector * aot_dtype_size(p->l->accesses[k].dtype);
}

/* Random numbers of a vector from one block each four of them, where they lie so. */
static int draws_blocks(const cuda_printer_t *p, const lp_access_t *a) {
  if (a->strides[p->l->rank - 1] != 1 || p->g->vector % 4) return 0;
  for (int32_t d = 0; d + 1 < p->l->rank; d++)
    if (a->strides[d] % 4) return 0;
  return 1;
}

const char *cuda_counter(const cuda_printer_t *p) { return p->g->wide ? "uint64_t" : "uint32_t"; }

void cuda_print_draw(const cuda_printer_t *p, uint32_t k) {
  const lp_access_t *a = &p->l->accesses[k];
  const long long step = (long long)cuda_inner_stride(p->l, k);
  AOT_ASSERT(a->draws && a->seed < k && a->offset < k);
  lp_print(p->out, "%s w%u[%u];\n", lp_c_type(a->dtype), k, p->g->vector);
  lp_print(p->out, "lp_draw_%s(x%u, x%u + d%u, e%u + (%s)i * %lld, %lld, %u, %d, w%u);\n",
           a->dtype == AOT_U32   ? "u32"
           : a->dtype == AOT_U64 ? "u64"
           : a->dtype == AOT_F32 ? "f32"
                                 : "f64",
           a->seed, a->offset, k, k, cuda_counter(p), step, step, p->g->vector, draws_blocks(p, a), k);
}

void cuda_print_array(const cuda_printer_t *p, uint32_t k, int is_held) {
  const uint32_t chunks = is_held && p->g->chunks ? p->g->chunks : 1;
  lp_print(p->out, "%s%s w%u[%u];\n", cuda_is_vector(p, k) ? "LP_ALIGN16 " : "", lp_c_type(p->l->accesses[k].dtype), k,
           chunks * p->g->vector);
}

void cuda_print_take(const cuda_printer_t *p, uint32_t k) {
  if (!cuda_is_vector(p, k)) {
    cuda_print_element_loop(p);
    lp_print(p->out, "w%u", k);
    cuda_print_slot(p, lp_is_held(p->l, k), 1);
    lp_print(p->out, " = q%u[", k);
    cuda_print_place(p, k, element_index(p));
    lp_print(p->out, "];\n");
    return;
  }
  if (p->l->accesses[k].bounded) {
    lp_print(p->out, "if (");
    lp_print_is_inside(p->out, p->l, k, "i", "row");
    lp_print(p->out, ") ");
  }
  if (cuda_has_tail(p)) lp_print(p->out, "{\nif (n == %u) ", p->g->vector);
  lp_print(p->out, "lp_move(&w%u", k);
  cuda_print_slot(p, lp_is_held(p->l, k), 0);
  lp_print(p->out, ", &q%u[", k);
  cuda_print_place(p, k, "i");
  lp_print(p->out, "], %llu);\n", (unsigned long long)cuda_vector_bytes(p, k));
  if (!cuda_has_tail(p)) return;
  lp_print(p->out, "else\n%sfor (int j = 0; j < %u; j++) w%u", CUDA_UNROLL, p->g->vector, k);
  cuda_print_slot(p, lp_is_held(p->l, k), 1);
  lp_print(p->out, " = q%u[", k);
  cuda_print_place(p, k, element_index(p));
  lp_print(p->out, "];\n}\n");
}

int cuda_has_pairs(const cuda_printer_t *p, uint32_t k) {
  return cuda_is_vector(p, k) && p->g->vector % 2 == 0 && !p->l->accesses[k].bounded &&
         aot_dtype_size(p->l->accesses[k].dtype) == 2;
}

void cuda_print_load(const cuda_printer_t *p, uint32_t k, int from_array) {
  const lp_access_t *a = &p->l->accesses[k];
  AOT_ASSERT(k < p->l->n_loads && (!from_array || !a->counts));
  const char *half = lp_half_name(a->dtype);
  if (lp_gpu_moves(p->l, k) && !cuda_is_row_of_indices(p->l, k)) lp_print_indices(p->out, p->l, k, 1);
  lp_print(p->out, "const %s x%u = ", lp_value_type(a->dtype), k);
  if (a->bounded) {
    lp_print_is_inside(p->out, p->l, k, element_index(p), "row");
    lp_print(p->out, " ? ");
  }
  if (from_array && a->dtype == AOT_BF16 && cuda_has_pairs(p, k)) {
    lp_print(p->out, "lp_bf16_at(w%u, ", k);
    print_number_of_slot(p, lp_is_held(p->l, k), 1);
    lp_print(p->out, ");\n");
    return;
  }
  if (half) lp_print(p->out, "lp_from_%s(", half);
  lp_print(p->out, from_array ? "w%u" : a->counts ? "(q%u + " : "q%u[", k);
  if (from_array) cuda_print_slot(p, lp_is_held(p->l, k), 1);
  else cuda_print_place(p, k, element_index(p));
  lp_print(p->out, "%s%s", from_array ? "" : a->counts ? ")" : "]", half ? ")" : "");
  if (a->bounded) lp_print(p->out, " : ");
  if (a->bounded) lp_print_outside(p->out, p->l, k);
  lp_print(p->out, ";\n");
}

/* A sum for the place that a run of elements goes to. */
static int is_joined_by_run(const cuda_printer_t *p, uint32_t store) {
  return lp_gpu_has_begin(p->l) && p->l->accesses[store].adds;
}

void cuda_print_store(const cuda_printer_t *p, uint32_t k) {
  const lp_access_t *a = &p->l->accesses[k];
  AOT_ASSERT(k >= p->l->n_loads && k < cuda_n_accesses(p->l));
  if (is_joined_by_run(p, k)) {
    lp_print(p->out, "a%u[%s] += v%u;\n", a->inst, p->g->vector > 1 ? "j" : "0", a->inst);
    return;
  }
  if (!lp_gpu_has_begin(p->l)) lp_print_indices(p->out, p->l, k, 1);
  if (cuda_is_vector(p, k) && !a->of_row) {
    lp_print(p->out, "y%u[j] = ", k);
  } else {
    if (cuda_has_tail(p) && !a->of_row) lp_print(p->out, "if (j < n) ");
    if (p->pass.has_scan && !a->of_row) lp_print(p->out, "if (is_in) ");
    lp_print(p->out, "q%u[", k);
    if (a->of_row && !p->l->columns) lp_print(p->out, "0");
    else cuda_print_place(p, k, p->g->vector > 1 ? "(i + j)" : "i");
    lp_print(p->out, a->adds ? "] += " : "] = ");
  }
  lp_print_stored(p->out, p->l, k);
  lp_print(p->out, ";\n");
}

void cuda_print_give(const cuda_printer_t *p, uint32_t k) {
  AOT_ASSERT(cuda_is_vector(p, k) && !p->l->accesses[k].of_row); /* y has a vector's elements */
  if (cuda_has_tail(p)) lp_print(p->out, "if (n == %u) ", p->g->vector);
  lp_print(p->out, "lp_move(&q%u[", k);
  cuda_print_place(p, k, "i");
  lp_print(p->out, "], y%u, %llu);\n", k, (unsigned long long)cuda_vector_bytes(p, k));
  if (cuda_has_tail(p))
    lp_print(p->out, "else\n%sfor (int j = 0; j < %u; j++) if (j < n) q%u[i + j] = y%u[j];\n", CUDA_UNROLL,
             p->g->vector, k, k);
}
