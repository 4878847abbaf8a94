/* Stores by index tensors, without locks: values that go to one place are joined in the order of their rows, or of runs
 * of them, which depends on the indices alone.
 *
 *     places of each column's own, or few rows    a thread takes a column and goes through its rows
 *     the same places for all columns
 *       NAME_begin   the places as numbers, sorted, equal ones in the order of their rows: pieces of them, a block each
 *                    (of very many all, by one block)
 *       NAME_merge   several pieces become one: a number's place is its own in its piece, and how many come before it
 *       in
 *                    each of the others, found by halving
 *       NAME         a block takes a part of the sorted numbers and some columns, and a team of it a segment: rows of
 *                    several numbers are read, then added one after another. A run of equal numbers becomes one sum,
 *                    which is added to its place; what goes over an end of a segment is joined in shared memory, and
 *                    what goes over one of the part is left in scratch memory
 *       NAME_end     runs over several parts: where one begins, a thread adds what those have left, in their order
 *
 * A store that does not add takes the last value of a run, and has no second kernel. */
#include "cuda_printer.h"

#include <aot/assert.h>
#include <aot/inline.h>
#include <stdio.h>

static uint32_t store_of(const lp_loop_t *l) { return l->n_loads; }
static long long length_of(const lp_loop_t *l) { return (long long)lp_length(l); }
static long long across_of(const lp_loop_t *l) { return (long long)l->sizes[lp_inner(l)]; }

/* The number of the place that `row` goes to; how many places there are. */
static uint64_t print_key(const cuda_printer_t *p) {
  const lp_access_t *a = &p->l->accesses[store_of(p->l)];
  uint8_t is_read[LP_INSTS * LP_ARGS] = {0};
  uint64_t n = 1;
  for (uint32_t i = 0; i < a->n_indices; i++) {
    if (!is_read[a->indices[i].load]) cuda_print_load(p, a->indices[i].load, 0);
    is_read[a->indices[i].load] = 1;
  }
  lp_print(p->out, "uint32_t key = 0;\n");
  for (uint32_t i = 0; i < a->n_indices; i++) {
    const lp_index_t *x = &a->indices[i];
    n *= (uint64_t)x->size;
    lp_print(p->out, "key = key * %lldu + (uint32_t)lp_place(", (long long)x->size);
    if (x->wraps) lp_print(p->out, "lp_wrap(x%u, %lld)", x->load, (long long)x->size);
    else lp_print(p->out, "x%u", x->load);
    lp_print(p->out, ", %lld, &wrong);\n", (long long)x->size);
  }
  AOT_ASSERT(n <= INT32_MAX); /* choose_places sorts no more of them */
  return n;
}

/* One block: all numbers, sorted. */
static void print_sort(const cuda_printer_t *p) {
  int bits = 8;
  lp_print(p->out, "for (int row = threadIdx.x; row < %lld; row += %d) {\n", length_of(p->l), LP_GPU_BEGIN_THREADS);
  const uint64_t n = print_key(p);
  lp_print(p->out, "keys[row] = key;\nrows[row] = (uint32_t)row;\n}\n");
  while (bits < 32 && n > (uint64_t)1 << bits) bits += 8; /* two digits at a time: it ends where it began */
  lp_print(p->out, "__syncthreads();\nlp_sort(keys, rows, more_keys, more_rows, %lld, %d);\n", length_of(p->l), bits);
}

/* A piece, sorted: in order already where it is the only one. */
static void print_piece(const cuda_printer_t *p) {
  const char *from = lp_gpu_has_merge(p->l) ? "more_" : "";
  lp_print(p->out, "(void)keys, (void)rows, (void)more_keys, (void)more_rows;\n");
  lp_print(p->out, "__shared__ uint64_t piece[%d];\nconst int first = blockIdx.x * %d;\n", LP_GPU_PIECE, LP_GPU_PIECE);
  lp_print(p->out, "for (int at = threadIdx.x; at < %d; at += %d) {\nconst int row = first + at;\n", LP_GPU_PIECE,
           LP_GPU_BEGIN_THREADS);
  lp_print(p->out, "piece[at] = ~(uint64_t)0;\nif (row < %lld) {\n", length_of(p->l));
  print_key(p);
  lp_print(p->out, "piece[at] = (uint64_t)key << 32 | (uint32_t)row;\n}\n}\nlp_sort_piece(piece, %d, %d);\n",
           LP_GPU_PIECE, LP_GPU_BEGIN_THREADS);
  lp_print(p->out, "for (int at = threadIdx.x; at < %d && first + at < %lld; at += %d) {\n", LP_GPU_PIECE,
           length_of(p->l), LP_GPU_BEGIN_THREADS);
  lp_print(p->out, "%skeys[first + at] = (uint32_t)(piece[at] >> 32);\n%srows[first + at] = (uint32_t)piece[at];\n}\n",
           from, from);
}

/* Arrays of numbers that are sorted; there are others, that they are sorted into on the way. */
static void print_sorted(const cuda_printer_t *p) {
  static const char *const names[] = {"keys", "rows", "more_keys", "more_rows"};
  for (unsigned k = 0; k < 4; k++)
    lp_print(p->out, "uint32_t *%s = (uint32_t *)(LP_AT(%u) + %llu);\n", names[k], lp_gpu_n_pointers(p->l) - 1,
             (unsigned long long)(k * lp_gpu_sorted(p->l)));
}

static void print_begin(const cuda_printer_t *p, const char *name) {
  lp_gpu_t other = *p->g;
  cuda_printer_t q = *p;
  other.threads = LP_GPU_BEGIN_THREADS;
  other.vector = 1;
  q.g = &other;
  cuda_print_head(&q, name, "_begin");
  print_sorted(p);
  cuda_print_pointers(p, 0, "0");
  if (lp_gpu_has_pieces(p->l)) print_piece(&q);
  else print_sort(&q);
  cuda_print_wrong(p);
  lp_print(p->out, "}\n");
}

/* Four threads count for a number, each in every fourth piece. */
static void print_merge(const cuda_printer_t *p, const char *name) {
  lp_gpu_t other = *p->g;
  cuda_printer_t q = *p;
  other.threads = LP_GPU_BEGIN_THREADS;
  q.g = &other;
  cuda_print_head(&q, name, "_merge");
  print_sorted(p);
  lp_print(p->out, "const int me = blockIdx.x * %d + threadIdx.x / 4, at = me < %lld ? me : 0;\n",
           LP_GPU_BEGIN_THREADS / 4, length_of(p->l));
  lp_print(p->out, "const uint32_t own = more_keys[at];\n");
  lp_print(p->out, "uint32_t rank = lp_rank(more_keys, %lld, %d, at, own);\n", length_of(p->l), LP_GPU_PIECE);
  lp_print(p->out, "rank += (uint32_t)lp_swap_i64(rank, 1);\nrank += (uint32_t)lp_swap_i64(rank, 2);\n");
  lp_print(p->out, "if (threadIdx.x %% 4 == 0 && me < %lld) keys[rank] = own, rows[rank] = more_rows[at];\n}\n",
           length_of(p->l));
}

/* Where the store goes for this number. */
static void print_place_of_key(const cuda_printer_t *p) {
  const lp_access_t *a = &p->l->accesses[store_of(p->l)];
  uint64_t below = 1;
  lp_print(p->out, "const int64_t j%u = ", store_of(p->l));
  for (uint32_t i = a->n_indices; i-- > 0; below *= (uint64_t)a->indices[i].size) {
    lp_print(p->out, "(int64_t)(key");
    if (below > 1) lp_print(p->out, " / %lluu", (unsigned long long)below);
    if (i > 0) lp_print(p->out, " %% %lldu", (long long)a->indices[i].size);
    lp_print(p->out, ") * %lld%s", (long long)a->indices[i].stride, i ? " + " : ";\n");
  }
}

static void print_nothing(const cuda_printer_t *p) {
  cuda_print_element_loop(p);
  lp_print(p->out, "a%u[%s] = 0;\n", p->l->accesses[store_of(p->l)].inst, p->g->vector > 1 ? "j" : "0");
}

/* What a thread has is added to the place. */
static void print_add(const cuda_printer_t *p) {
  const uint32_t s = store_of(p->l), inst = p->l->accesses[s].inst;
  const char *type = lp_c_type(p->l->accesses[s].dtype), *slot = p->g->vector > 1 ? "j" : "0";
  if (p->g->vector == 1 || !lp_gpu_adds_vectors(p->l)) {
    cuda_print_element_loop(p);
    lp_print(p->out, "q%u[", s);
    cuda_print_place(p, s, p->g->vector > 1 ? "(i + j)" : "i");
    lp_print(p->out, "] += (%s)a%u[%s];\n", type, inst, slot);
    return;
  }
  const uint64_t nbytes = p->g->vector * aot_dtype_size(p->l->accesses[s].dtype);
  lp_print(p->out, "LP_ALIGN16 %s y%u[%u];\nlp_move(y%u, &q%u[", type, s, p->g->vector, s, s);
  cuda_print_place(p, s, "i");
  lp_print(p->out, "], %llu);\n", (unsigned long long)nbytes);
  cuda_print_element_loop(p);
  lp_print(p->out, "y%u[j] += (%s)a%u[j];\nlp_move(&q%u[", s, type, inst, s);
  cuda_print_place(p, s, "i");
  lp_print(p->out, "], y%u, %llu);\n", s, (unsigned long long)nbytes);
}

static void print_partial_sum(const cuda_printer_t *p, const char *which) {
  const uint32_t inst = p->l->accesses[store_of(p->l)].inst;
  cuda_print_element_loop(p);
  cuda_print_scratch(p, inst);
  lp_print(p->out, "[(part * 2%s) * (%s)%llu + outer * across + i%s] = a%u[%s];\n", which, p->index,
           (unsigned long long)lp_gpu_results(p->l), p->g->vector > 1 ? " + j" : "", inst,
           p->g->vector > 1 ? "j" : "0");
}

static void print_head_of_segment(const cuda_printer_t *p, const char *segment, const char *joint, int is_read) {
  const uint32_t inst = p->l->accesses[store_of(p->l)].inst, width = p->g->team * p->g->vector;
  const char *element = p->g->vector > 1 ? " + j" : "", *slot = p->g->vector > 1 ? "j" : "0";
  char own[32];
  snprintf(own, sizeof own, "a%u[%s]", inst, slot);
  cuda_print_element_loop(p);
  if (is_read) lp_print(p->out, "%s %s ", own, joint);
  lp_print(p->out, "heads[%s * %u + lane * %u%s]", segment, width, p->g->vector, element);
  if (!is_read) lp_print(p->out, " %s %s", joint, own);
  lp_print(p->out, ";\n");
}

/* What segments after `from` have of the run of `key`, in their order. */
static void print_added_heads(const cuda_printer_t *p, const char *from) {
  lp_print(p->out, "for (int next = %s; next < %u; next++) {\n", from, p->g->threads / p->g->team);
  lp_print(p->out, "const int begin = (part * %u + next) * %d;\nif (begin >= length || keys[begin] != key) break;\n",
           p->g->threads / p->g->team, LP_GPU_SEGMENT);
  print_head_of_segment(p, "next", "+=", 1);
  lp_print(p->out, "}\n");
}

/* Rows of some numbers are read before they are added: `near` has these, and the one after them. */
static void print_near_rows(const cuda_printer_t *p) {
  const uint32_t n = p->g->chunks;
  AOT_ASSERT(n > 0 && LP_GPU_SEGMENT % n == 0); /* else rows of the next segment would be added */
  lp_print(p->out, "uint32_t near[%u];\n", n + 1);
  for (uint32_t k = 0; k < p->l->n_loads; k++)
    if (p->pass.loads[k] && lp_is_held(p->l, k)) cuda_print_array(p, k, 1);
  lp_print(p->out, "%sfor (int c = 0; c < %u; c++) near[c] = top + c < length ? keys[top + c] : 0xffffffffu;\n",
           CUDA_UNROLL, n + 1);
  lp_print(p->out, "%sfor (int c = 0; c < %u; c++) {\nconst %s row = rows[top + c < length ? top + c : length - 1];\n",
           CUDA_UNROLL, n, p->index);
  for (uint32_t k = 0; k < p->l->n_loads; k++)
    if (p->pass.loads[k] && lp_is_held(p->l, k)) cuda_print_take(p, k);
  lp_print(p->out, "}\n");
}

/* The elements of a segment, one after another; then what goes over its ends. */
static void print_adding_segment(const cuda_printer_t *p) {
  const uint32_t s = store_of(p->l), inst = p->l->accesses[s].inst, down = p->g->threads / p->g->team;
  const char *type = lp_c_type(lp_gpu_lane(&p->l->insts[inst]));
  lp_print(p->out, "__shared__ %s heads[%u];\n", type, p->g->threads * p->g->vector);
  lp_print(p->out, "const int was_begun = first > 0 && first < length && keys[first - 1] == keys[first];\n");
  lp_print(p->out, "const int is_open = first < last && last < length && keys[last - 1] == keys[last];\n");
  lp_print(p->out, "int is_begun = was_begun;\n%s a%u[%u];\n", type, inst, p->g->vector);
  print_nothing(p);
  lp_print(p->out, "if (i < across)\nfor (int top = first; top < last; top += %u) {\n", p->g->chunks);
  print_near_rows(p);
  lp_print(p->out, "%sfor (int c = 0; c < %u; c++) {\nconst uint32_t key = near[c];\n", CUDA_UNROLL, p->g->chunks);
  lp_print(p->out, "if (key == 0xffffffffu) break;\nconst %s row = rows[top + c];\n(void)row;\n", p->index);
  cuda_print_vector(p);
  lp_print(p->out, "if (near[c + 1] == key) continue;\nif (is_begun) {\n");
  print_head_of_segment(p, "segment", "=", 0);
  lp_print(p->out, "} else {\n");
  print_place_of_key(p);
  print_add(p);
  lp_print(p->out, "}\n");
  print_nothing(p);
  lp_print(p->out, "is_begun = 0;\n}\n}\nif (is_open && is_begun) {\n");
  print_head_of_segment(p, "segment", "=", 0);
  lp_print(p->out, "}\n__syncthreads();\nif (i < across && is_open && !is_begun) {\n");
  lp_print(p->out, "const uint32_t key = keys[last - 1];\nconst int end = (part + 1) * %u;\n", down * LP_GPU_SEGMENT);
  print_added_heads(p, "segment + 1");
  lp_print(p->out, "if (end < length && keys[end] == key) {\n");
  print_partial_sum(p, " + 1");
  lp_print(p->out, "} else {\n");
  print_place_of_key(p);
  print_add(p);
  lp_print(p->out, "}\n}\nif (i < across && segment == 0 && was_begun) {\nconst uint32_t key = keys[first];\n");
  print_head_of_segment(p, "0", "=", 1);
  print_added_heads(p, "1");
  print_partial_sum(p, "");
  lp_print(p->out, "}\n");
}

static void print_last_of_segment(const cuda_printer_t *p) {
  lp_print(p->out, "if (i < across)\nfor (int e = first; e < last; e++) {\nconst uint32_t key = keys[e];\n");
  lp_print(p->out, "if (e + 1 < length && keys[e + 1] == key) continue;\nconst %s row = rows[e];\n", p->index);
  print_place_of_key(p);
  cuda_print_vector(p);
  lp_print(p->out, "}\n");
}

static void print_segments(const cuda_printer_t *p, const char *name) {
  const lp_gpu_t *g = p->g;
  const uint32_t width = g->team * g->vector, down = g->threads / g->team;
  const long long tiles = (across_of(p->l) + width - 1) / width,
                  outer = (long long)lp_gpu_results(p->l) / across_of(p->l);
  cuda_print_head(p, name, "");
  lp_print(p->out, "const %s length = %lld, across = %lld, part = (%s)(blockIdx.x / %lld);\n", p->index,
           length_of(p->l), across_of(p->l), p->index, tiles * outer);
  lp_print(p->out, "const %s lane = threadIdx.x %% %u, segment = threadIdx.x / %u;\n", p->index, g->team, g->team);
  lp_print(p->out, "const %s i = (blockIdx.x %% %lld * %u + lane) * %u, outer = blockIdx.x %% %lld / %lld;\n", p->index,
           tiles, g->team, g->vector, tiles * outer, tiles);
  print_sorted(p);
  cuda_print_pointers(p, lp_inner(p->l), "outer");
  cuda_print_constants(p);
  lp_print(p->out, "const int first = (part * %u + segment) * %d;\n", down, LP_GPU_SEGMENT);
  lp_print(p->out, "const int last = first + %d < length ? first + %d : length;\n", LP_GPU_SEGMENT, LP_GPU_SEGMENT);
  if (p->l->accesses[store_of(p->l)].adds) print_adding_segment(p);
  else print_last_of_segment(p);
  lp_print(p->out, "}\n");
}

/* A thread for each column of each part whose last run continues, if it began there. Where the run ends is found by
 * halving, so that many of its sums are on their way at a time. */
static void print_places_end(const cuda_printer_t *p, const char *name) {
  const uint32_t inst = p->l->accesses[store_of(p->l)].inst;
  const unsigned long long columns = (unsigned long long)lp_gpu_results(p->l);
  const int span = (int)(p->g->threads / p->g->team) * LP_GPU_SEGMENT; /* numbers of a part */
  lp_gpu_t single = *p->g;
  cuda_printer_t q = *p;
  single.threads = LP_GPU_END_THREADS;
  single.vector = 1;
  q.g = &single;
  cuda_print_head(&q, name, "_end");
  lp_print(p->out, "const %s at = (%s)blockIdx.x * %d + threadIdx.x, part = at / %llu, column = at %% %llu;\n",
           p->index, p->index, LP_GPU_END_THREADS, columns, columns);
  lp_print(p->out, "const %s across = %lld, outer = column / across, i = column %% across;\n", p->index,
           across_of(p->l));
  print_sorted(p);
  cuda_print_pointers(p, lp_inner(p->l), "outer");
  lp_print(p->out, "const int first = part * %d, last = first + %d;\n", span, span);
  lp_print(p->out, "const uint32_t key = last < %lld ? keys[last - 1] : 0;\n", length_of(p->l));
  lp_print(p->out,
           "if (last < %lld && keys[last] == key && !(first > 0 && keys[first] == key && keys[first - 1] == key)"
           ") {\n",
           length_of(p->l));
  lp_print(p->out, "%s a%u[1] = {", lp_c_type(lp_gpu_lane(&p->l->insts[inst])), inst);
  cuda_print_scratch(p, inst);
  lp_print(p->out, "[(part * 2 + 1) * (%s)%llu + column]};\n", p->index, columns);
  lp_print(p->out, "%s low = part + 1, high = %u;\nwhile (low < high) {\nconst %s middle = (low + high) / 2;\n",
           p->index, p->g->splits, p->index);
  lp_print(p->out, "if (keys[middle * %d] == key) low = middle + 1;\nelse high = middle;\n}\n", span);
  lp_print(p->out, "#pragma unroll 16\nfor (%s next = part + 1; next < low; next++) a%u[0] += ", p->index, inst);
  cuda_print_scratch(p, inst);
  lp_print(p->out, "[next * 2 * (%s)%llu + column];\n", p->index, columns);
  print_place_of_key(p);
  print_add(&q);
  lp_print(p->out, "}\n}\n");
}

/* A column a thread. */
static void print_walk(const cuda_printer_t *p, const char *name) {
  const unsigned long long columns = (unsigned long long)lp_gpu_results(p->l);
  cuda_print_head(p, name, "");
  lp_print(p->out, "const %s length = %lld, across = %lld, at = (%s)blockIdx.x * %u + threadIdx.x;\n", p->index,
           length_of(p->l), across_of(p->l), p->index, p->g->threads);
  lp_print(p->out, "if (at < %llu) {\nconst %s outer = at / across, i = at %% across;\n", columns, p->index);
  cuda_print_pointers(p, lp_inner(p->l), "outer");
  cuda_print_constants(p);
  lp_print(p->out, "for (%s row = 0; row < length; row++) {\n", p->index);
  cuda_print_vector(p);
  lp_print(p->out, "}\n");
  cuda_print_wrong(p);
  lp_print(p->out, "}\n}\n");
}

void cuda_print_places(cuda_printer_t *p, const char *name) {
  lp_find_pass(p->l, 0, &p->pass);
  if (!lp_gpu_has_begin(p->l)) {
    print_walk(p, name);
    return;
  }
  print_begin(p, name);
  if (lp_gpu_has_merge(p->l)) print_merge(p, name);
  print_segments(p, name);
  if (lp_gpu_has_end(p->l)) print_places_end(p, name);
}
