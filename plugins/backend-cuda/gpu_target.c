#include "gpu_target.h"

#include "product_step.h"
#include "kit/lowering/kernel_step.h"
#include "kit/lowering/region_steps.h"
#include "kit/lowering/transaction.h"
#include "kit/base/geometry.h"
#include "cuda_device.h"
#include "gpu_attention.h"
#include "gpu_conv.h"
#include "flash_attention.h"
#include <aot/graph.h>
#include <aot/inline.h>
#include <string.h>
#include <xxhash.h>

static gc_lowering_t *lowering(const lw_build_t *b) { return b->machine->self; }
static const gc_run_t *run_of(const lw_frame_t *f) { return f->self; }
static gc_address_t address(const lw_frame_t *f, lw_ref_t r) { return (gc_address_t)(uintptr_t)lw_at(f, r); }

/* Steps of this target fail by the driver or by a library: the frame's owner reports it. */
static aot_status_t driver_status(const gc_run_t *run, gc_result_t result) {
  if (result == GC_SUCCESS) return AOT_OK;
  *run->result = result;
  return AOT_E_INTERNAL;
}

/* ---- generated kernels ---- */

typedef struct loop_step {
  gc_kernel_t *kernel;
  uint32_t blocks, threads, begin_blocks, merge_blocks, end_blocks;
  uint32_t n, n_pointers; /* words that refs and numbers report (lp_gpu_word); and what follows them */
  lw_ref_t *refs;
  uint64_t *numbers;     /* of words without memory: draws, sizes */
  const int64_t *rounds; /* of a loop around it, over; NULL: none */
  int64_t *moves;        /* by word: bytes that its memory moves in each */
  gc_kernel_t *several;  /* the same for as many tensors as fit; NULL: it is not joined */
  uint32_t n_shared, n_row, most_tensors;
  gc_address_t *pointers;
  lw_ref_t scratch;
  int32_t check; /* its word among gc_run_t.checks; -1: it looks nothing up */
  uint32_t told; /* the store that is this word; LW_NONE: it is set for an index that is wrong */
  int64_t size;  /* of the first dimension that it looks up */
  uint32_t node; /* id */
} loop_step_t;

static aot_status_t run_loop(const lw_frame_t *f, void *payload) {
  loop_step_t *p = payload;
  const gc_run_t *run = run_of(f);
  const gc_address_t check = p->check < 0 ? 0 : (gc_address_t)(uintptr_t)&run->checks[p->check];
  uint32_t n = p->n;
  for (uint32_t k = 0; k < p->n; k++)
    p->pointers[k] = p->refs[k].storage == LW_NONE ? p->numbers[k] : address(f, p->refs[k]);
  for (uint32_t k = 0; k < p->n && p->rounds; k++) p->pointers[k] += (gc_address_t)(*p->rounds * p->moves[k]);
  if (p->told != LW_NONE) p->pointers[p->told] = check;
  else if (check) p->pointers[n++] = check;
  if (p->scratch.storage != LW_NONE) p->pointers[n++] = address(f, p->scratch);
  gc_result_t result = GC_SUCCESS;
  if (p->kernel->begin)
    result = gc_launch(run, p->kernel->begin, p->begin_blocks, LP_GPU_BEGIN_THREADS, 0, p->pointers, n);
  if (result == GC_SUCCESS && p->kernel->merge)
    result = gc_launch(run, p->kernel->merge, p->merge_blocks, LP_GPU_BEGIN_THREADS, 0, p->pointers, n);
  if (result == GC_SUCCESS)
    result = gc_launch(run, p->kernel->main, p->blocks, p->threads, p->kernel->shared, p->pointers, n);
  if (result == GC_SUCCESS && p->kernel->end)
    result = gc_launch(run, p->kernel->end, p->end_blocks, LP_GPU_END_THREADS, 0, p->pointers, n);
  return driver_status(run, result);
}

static gc_kernel_t *kernel_of(const lw_build_t *b, const lp_loop_t *loop) {
  gc_code_t *code = lowering(b)->code;
  return code ? gc_code_kernel(code, loop) : &lowering(b)->stand_in;
}

static void set_alignments(lw_build_t *b, lp_loop_t *loop, const lw_tensor_t *tensors) {
  for (uint32_t k = 0; k < loop->n_loads + loop->n_stores; k++)
    if (!loop->accesses[k].draws && !loop->accesses[k].counts)
      loop->accesses[k].align = gc_alignment_of(b, &tensors[k]);
}

/* A schedule for the GPU, and its kernel. NULL: not for GPUs, or no memory (*out_status). */
static gc_kernel_t *make_kernel(lw_build_t *b, lp_loop_t *loop, aot_status_t *out_status) {
  *out_status = LW_DECLINED;
  if (!lp_gpu_schedule(loop, &lowering(b)->machine)) return NULL;
  gc_kernel_t *kernel = kernel_of(b, loop);
  *out_status = kernel ? AOT_OK : lw_no_memory(b->error, "for a step");
  return kernel;
}

/* The step; what its accesses use is the caller's to say. */
static aot_status_t add_step(lw_build_t *b, const lp_loop_t *loop, gc_kernel_t *kernel, loop_step_t **out) {
  const uint32_t n = loop->gpu.tensors ? lp_gpu_n_pointers(loop) : loop->n_loads + loop->n_stores;
  const uint64_t scratch_nbytes = lp_gpu_scratch(loop);
  lw_tensor_t scratch = {.storage = LW_NONE};
  loop_step_t *p;
  if (scratch_nbytes) AOT_TRY(lw_scratch(b, scratch_nbytes, &scratch));
  LW_STEP(b, run_loop, p);
  *p = (loop_step_t){
      .kernel = kernel,
      .blocks = loop->gpu.blocks,
      .threads = loop->gpu.threads,
      .begin_blocks = lp_gpu_begin_blocks(loop),
      .merge_blocks = lp_gpu_merge_blocks(loop),
      .end_blocks = lp_gpu_end_blocks(loop),
      .n = n,
      .n_pointers = lp_gpu_n_pointers(loop),
      .scratch = lw_use(b, &scratch),
      .check = lp_has_indices(loop) ? (int32_t)lowering(b)->n_checks++ : -1,
      .told = LW_NONE,
  };
  p->refs = lw_pool_alloc(b->pool, (n + 1) * sizeof *p->refs);
  p->numbers = lw_pool_alloc(b->pool, (n + 1) * sizeof *p->numbers);
  p->pointers = lw_pool_alloc(b->pool, (p->n_pointers + 1) * sizeof *p->pointers);
  if (!p->refs || !p->numbers || !p->pointers) return lw_no_memory(b->error, "for a step");
  for (uint32_t k = 0; k < n; k++) p->refs[k].storage = LW_NONE;
  if (loop->gpu.tensors) p->numbers[lp_gpu_shared_words(loop) + LP_GPU_SIZE] = (uint64_t)loop->sizes[0];
  *out = p;
  return AOT_OK;
}

/* Bytes that take as long as a few launches. */
enum { LONG_LOOP = 16 << 20 };

/* Once its accesses are reported: loops of this kernel that share what they share may be one launch. */
static aot_status_t let_join(lw_build_t *b, lp_loop_t *loop, loop_step_t *p) {
  lw_step_t *step = &b->out->steps[b->out->n_steps - 1];
  if (!loop->gpu.tensors || lp_gpu_most_tensors(loop) < 2 || step->nbytes >= LONG_LOOP) return AOT_OK;
  loop->gpu.tensors = p->most_tensors = step->most_joined = lp_gpu_most_tensors(loop);
  step->joins = gc_code_hash(loop);
  p->several = kernel_of(b, loop);
  loop->gpu.tensors = 1;
  if (!p->several || !step->joins) return lw_no_memory(b->error, "for a step");
  p->n_shared = lp_gpu_shared_words(loop);
  p->n_row = lp_gpu_row_words(loop);
  for (uint32_t k = 0; k < p->n_shared; k++) {
    const int64_t at[2] = {p->refs[k].storage, p->refs[k].at};
    step->joins = XXH3_64bits_withSeed(at, sizeof at, step->joins);
  }
  return AOT_OK;
}

/* One table of what each has of its own, with the blocks of each after those of the one before. */
static aot_status_t join_loops(lw_build_t *b, const lw_step_t *const *steps, uint32_t n, lw_step_t *out) {
  const loop_step_t *first = steps[0]->payload;
  loop_step_t *p = lw_pool_alloc(b->pool, sizeof *p);
  if (!p) return lw_no_memory(b->error, "for a step");
  *p = *first;
  p->kernel = first->several;
  p->several = NULL;
  p->blocks = 0;
  p->n = p->n_pointers = first->n_shared + first->most_tensors * first->n_row;
  p->refs = lw_pool_alloc(b->pool, p->n * sizeof *p->refs);
  p->numbers = lw_pool_alloc(b->pool, p->n * sizeof *p->numbers);
  p->pointers = lw_pool_alloc(b->pool, p->n * sizeof *p->pointers);
  if (!p->refs || !p->numbers || !p->pointers) return lw_no_memory(b->error, "for a step");
  memcpy(p->refs, first->refs, first->n_shared * sizeof *p->refs);
  for (uint32_t k = first->n_shared; k < p->n; k++) p->refs[k].storage = LW_NONE;
  for (uint32_t t = 0; t < first->most_tensors; t++) {
    const uint32_t row = first->n_shared + t * first->n_row;
    const loop_step_t *one = t < n ? steps[t]->payload : NULL;
    if (one) memcpy(&p->refs[row], &one->refs[first->n_shared], first->n_row * sizeof *p->refs);
    if (one) memcpy(&p->numbers[row], &one->numbers[first->n_shared], first->n_row * sizeof *p->numbers);
    p->numbers[row + LP_GPU_FIRST_BLOCK] = one ? p->blocks : LP_GPU_NO_BLOCK;
    p->blocks += one ? one->blocks : 0;
  }
  out->kernel = "run_loops";
  out->payload = p;
  return AOT_OK;
}

void gc_want_kernels(const lw_schedule_t *s) {
  for (uint32_t i = 0; i < s->n_steps; i++) {
    const loop_step_t *p = s->steps[i].payload;
    if (s->steps[i].run == run_loop) p->kernel->is_wanted = 1;
  }
}

/* Sums across rows are stored as they are declared: a second kernel has joined them. 0: not where they are to lie. */
static int store_across(lw_group_t *g) {
  for (uint32_t s = g->loop.n_loads; s < g->loop.n_loads + g->loop.n_stores; s++) {
    if (!lw_is_across(g, s)) continue;
    if (!lw_is_contiguous(&g->tensors[s])) return 0;
    g->accesses[s].dtype = g->tensors[s].dtype;
  }
  return 1;
}

static aot_status_t lower_loop(lw_build_t *b, lw_group_t *g) {
  loop_step_t *p;
  aot_status_t status = LW_DECLINED;
  set_alignments(b, &g->loop, g->tensors);
  gc_kernel_t *kernel = store_across(g) ? make_kernel(b, &g->loop, &status) : NULL;
  if (status == LW_DECLINED && g->n > 1) return LW_SPLIT;
  if (status != AOT_OK) return status;
  AOT_TRY(lw_store_results(b, g));
  AOT_TRY(add_step(b, &g->loop, kernel, &p));
  for (uint32_t k = 0; k < g->loop.n_loads + g->loop.n_stores; k++) {
    const uint32_t word = lp_gpu_word(&g->loop, k);
    p->refs[word] = k >= g->loop.n_loads && lw_is_across(g, k) ? lw_use(b, &g->tensors[k]) : lw_use_access(b, g, k);
    if (g->draws[k]) p->numbers[word] = g->draws[k]->draw;
    for (uint32_t i = 0; i < g->accesses[k].n_indices && !p->node; i++) {
      p->size = g->accesses[k].indices[i].size;
      p->node = g->nodes[k];
    }
  }
  lw_count_loop(b);
  return let_join(b, &g->loop, p);
}

const char *gc_step_name(const lw_step_t *step) {
  const loop_step_t *p = step->payload;
  if (step->run == run_loop) return p->kernel->name;
  return strncmp(step->kernel, "run_", 4) == 0 ? step->kernel + 4 : step->kernel;
}

/* lp_told_i64 (kit/loops/loop_prelude_cuda.c), backwards */
static int64_t told_index(int64_t word) { return word & 1 ? -(word >> 1) : (word >> 1) - 1; }

static aot_status_t tell_index(const loop_step_t *p, int64_t index, lw_error_t *error) {
  if (p->told != LW_NONE)
    return lw_fail(error, AOT_E_RANGE, "bad-target", "target %lld is no class of %lld", (long long)index,
                   (long long)p->size);
  if (index >= 0 && index < p->size) /* of another dimension that the loop looks up */
    return lw_fail(error, AOT_E_RANGE, "bad-index", "index %lld is out of range", (long long)index);
  return lw_fail(error, AOT_E_RANGE, "bad-index", "index %lld is out of range for a dimension of size %lld",
                 (long long)index, (long long)p->size);
}

aot_status_t gc_check_indices(const lw_schedule_t *s, _Atomic int64_t *checks, lw_error_t *error) {
  aot_status_t status = AOT_OK;
  for (uint32_t i = 0; i < s->n_steps; i++) {
    const loop_step_t *p = s->steps[i].payload;
    if (s->steps[i].run != run_loop || p->check < 0 || !checks[p->check]) continue;
    const int64_t index = told_index(checks[p->check]);
    checks[p->check] = 0;
    if (status != AOT_OK) continue;
    error->node = p->node;
    status = tell_index(p, index, error);
  }
  return status;
}

/* ---- classes of a loss ---- */

/* What lw_target_t.classes requests, as a loop over the classes: how many count, and whether one is wrong. */
static aot_status_t lower_classes(lw_build_t *b, uint32_t k, int64_t n_classes, lw_tensor_t *out) {
  enum { IS_IGNORED, COUNT, IS_WRONG, SCALE, N_INSTS };
  const lw_tensor_t *classes = lw_arg_tensor(b, k);
  const lp_arg_t of = {.kind = LP_LOAD}, is_ignored = {.kind = LP_INST, .index = IS_IGNORED};
  const int is_mean = lw_arg_int(b, k + 2, 1) == 1;
  const lp_arg_t ignored = {.kind = LP_INT, .i = lw_arg_int(b, k + 3, -100)}, end = {.kind = LP_INT, .i = n_classes};
  const lp_inst_t inst = {.compute = AOT_I64, .dtype = AOT_I64, .n_args = 3, .args = {of, is_ignored, end}};
  lp_inst_t insts[N_INSTS] = {inst, inst, inst, inst};
  insts[IS_IGNORED].text = "a == b";
  insts[IS_IGNORED].args[1] = ignored;
  insts[IS_IGNORED].dtype = AOT_BOOL;
  insts[COUNT].text = "b != 0 ? T(0) : T(1)";
  insts[COUNT].reduce = LP_SUM;
  insts[IS_WRONG].text = "b != 0 || (a >= 0 && a < c) ? T(0) : told(a)";
  insts[IS_WRONG].reduce = LP_MAX;
  insts[SCALE].text = is_mean ? "T(1) / a" : "T(1)";
  insts[SCALE].args[0] = (lp_arg_t){.kind = LP_INST, .index = COUNT};
  insts[SCALE].compute = insts[SCALE].dtype = AOT_F64;
  insts[SCALE].n_args = (uint32_t)is_mean;
  lp_access_t accesses[] = {{.dtype = AOT_I64, .strides = {classes->strides[0]}},
                            {.dtype = AOT_F64, .inst = SCALE, .of_row = 1},
                            {.dtype = AOT_I64, .inst = IS_WRONG, .of_row = 1}};
  lp_loop_t loop = {.rank = 1,
                    .sizes = {classes->sizes[0]},
                    .accesses = accesses,
                    .n_loads = 1,
                    .n_stores = 2,
                    .insts = insts,
                    .n_insts = N_INSTS,
                    .reduced = 1};
  aot_status_t status;
  loop_step_t *p;
  AOT_TRY(lw_scratch(b, sizeof(double), out));
  const lw_tensor_t tensors[] = {*classes, *out, *out};
  if (!lp_simplify(&loop)) return LW_DECLINED;
  set_alignments(b, &loop, tensors);
  gc_kernel_t *kernel = make_kernel(b, &loop, &status);
  if (status != AOT_OK) return status;
  AOT_TRY(add_step(b, &loop, kernel, &p));
  p->refs[0] = lw_use_read(b, classes);
  p->refs[1] = lw_use(b, out);
  p->refs[2] = lw_use(b, NULL);
  p->check = (int32_t)lowering(b)->n_checks++;
  p->told = 2;
  p->node = b->node->id;
  p->size = n_classes;
  return AOT_OK;
}

/* ---- loops of one instruction: copies, sums in place, sums over dimensions ---- */

/* What lies further on with each round of a loop of the program. */
typedef struct transfer {
  const int64_t *rounds; /* over; NULL: nothing moves */
  int64_t dst, src;      /* bytes a round */
} transfer_t;

/* dst = src, or dst += src, or dst = the sums of src over the reduced dimensions, along which dst does not step, as a
 * loop. LW_DECLINED: loops do not have the dtype. */
static aot_status_t add_small_loop(lw_build_t *b, const lw_tensor_t *dst, const lw_tensor_t *src, int is_sum,
                                   uint32_t reduced, const transfer_t *moving) {
  lp_access_t accesses[3];
  lp_inst_t inst = {
      .text = is_sum ? "a + b" : "a", .n_args = is_sum ? 2 : 1, .compute = src->dtype, .dtype = dst->dtype};
  lp_loop_t loop = {.rank = dst->rank, .accesses = accesses, .n_loads = is_sum ? 2 : 1, .n_stores = 1, .insts = &inst};
  const lw_tensor_t tensors[3] = {*src, *dst, *dst};
  aot_status_t status;
  loop_step_t *p;
  if (!lp_dtype_supported(dst->dtype) || !lp_dtype_supported(src->dtype)) return LW_DECLINED;
  if (lp_value_dtype(src->dtype) == AOT_F32) inst.compute = AOT_F32;
  else if (src->dtype != AOT_F64 && src->dtype != AOT_BOOL) inst.compute = AOT_I64;
  loop.n_insts = 1;
  memcpy(loop.sizes, dst->sizes, sizeof loop.sizes);
  memset(accesses, 0, sizeof accesses);
  for (uint32_t k = 0; k < loop.n_loads + 1; k++) {
    const lw_tensor_t *t = k == 0 ? src : dst;
    accesses[k].dtype = t->dtype;
    memcpy(accesses[k].strides, t->strides, sizeof t->strides);
    if (k < loop.n_loads) inst.args[k] = (lp_arg_t){.kind = LP_LOAD, .index = k};
  }
  loop.in_place = is_sum;
  loop.reduced = reduced;
  inst.reduce = reduced ? LP_SUM : LP_EACH;
  accesses[loop.n_loads].of_row = reduced != 0;
  if (!lp_simplify(&loop)) return LW_DECLINED;
  set_alignments(b, &loop, tensors);
  for (uint32_t k = 0; k <= loop.n_loads && moving->rounds; k++)
    while ((k < loop.n_loads ? moving->src : moving->dst) % accesses[k].align) accesses[k].align /= 2;
  gc_kernel_t *kernel = make_kernel(b, &loop, &status);
  if (status != AOT_OK) return status;
  AOT_TRY(add_step(b, &loop, kernel, &p));
  p->rounds = moving->rounds;
  p->moves = lw_pool_alloc(b->pool, (p->n + 1) * sizeof *p->moves);
  if (!p->moves) return lw_no_memory(b->error, "for a step");
  for (uint32_t k = 0; k <= loop.n_loads; k++) {
    const uint32_t word = lp_gpu_word(&loop, k);
    p->refs[word] = k < loop.n_loads ? lw_use_read_only(b, &tensors[k], 0) : lw_use(b, &tensors[k]);
    p->moves[word] = k < loop.n_loads ? moving->src : moving->dst;
  }
  lw_count_loop(b);
  if (moving->rounds) {
    lw_depends_on_run(b);
    return AOT_OK;
  }
  return let_join(b, &loop, p);
}

typedef struct move_step {
  lw_ref_t dst, src;
  uint64_t nbytes;
  transfer_t moving;
} move_step_t;

static aot_status_t run_move(const lw_frame_t *f, void *payload) {
  const move_step_t *p = payload;
  const gc_run_t *run = run_of(f);
  const int64_t round = p->moving.rounds ? *p->moving.rounds : 0;
  return driver_status(run, run->driver->memcpy_on_device(address(f, p->dst) + (gc_address_t)(round * p->moving.dst),
                                                          address(f, p->src) + (gc_address_t)(round * p->moving.src),
                                                          p->nbytes, run->stream));
}

static aot_status_t run_zero(const lw_frame_t *f, void *payload) {
  const move_step_t *p = payload;
  const gc_run_t *run = run_of(f);
  return driver_status(run, run->driver->memset_bytes(address(f, p->dst), 0, p->nbytes, run->stream));
}

/* A complex number as its two parts, after the other dimensions. 0: there is no room for one more. */
static int in_parts(lw_tensor_t *t) {
  if (t->rank == AOT_MAX_RANK) return 0;
  for (int32_t d = 0; d < t->rank; d++) t->strides[d] *= 2;
  t->offset *= 2;
  t->sizes[t->rank] = 2;
  t->strides[t->rank++] = 1;
  t->dtype = t->dtype == AOT_C64 ? AOT_F32 : AOT_F64;
  return 1;
}

static aot_status_t lower_copy(lw_build_t *b, const lw_tensor_t *dst, int64_t dst_step, const lw_tensor_t *src,
                               int64_t src_step, const int64_t *rounds) {
  const transfer_t moving = {rounds, dst_step * (int64_t)aot_dtype_size(dst->dtype),
                             src_step * (int64_t)aot_dtype_size(src->dtype)};
  lw_tensor_t to = *dst, from = *src;
  move_step_t *p;
  if (lw_numel(dst) == 0) return AOT_OK;
  if (dst->dtype == src->dtype && lw_is_contiguous(dst) && lw_is_contiguous(src)) {
    LW_STEP(b, run_move, p);
    *p = (move_step_t){lw_use(b, dst), lw_use_read(b, src), (uint64_t)lw_numel(dst) * aot_dtype_size(dst->dtype),
                       moving};
    if (rounds) lw_depends_on_run(b);
    return AOT_OK;
  }
  const int is_complex = dst->dtype == src->dtype && (dst->dtype == AOT_C64 || dst->dtype == AOT_C128);
  aot_status_t status = LW_DECLINED;
  if (!is_complex || (in_parts(&to) && in_parts(&from))) status = add_small_loop(b, &to, &from, 0, 0, &moving);
  if (status != LW_DECLINED) return status;
  return lw_fail(b->error, AOT_E_UNIMPLEMENTED, "copy", "a copy from %s to %s is not supported on the GPU",
                 aot_dtype_name(src->dtype), aot_dtype_name(dst->dtype));
}

static aot_status_t lower_zero(lw_build_t *b, const lw_tensor_t *dst) {
  move_step_t *p;
  LW_STEP(b, run_zero, p);
  *p = (move_step_t){.dst = lw_use(b, dst), .nbytes = (uint64_t)lw_numel(dst) * aot_dtype_size(dst->dtype)};
  return AOT_OK;
}

static aot_status_t lower_add(lw_build_t *b, const lw_tensor_t *dst, const lw_tensor_t *src) {
  if (lw_numel(dst) == 0) return AOT_OK;
  return add_small_loop(b, dst, src, 1, 0, &(transfer_t){.rounds = NULL});
}

aot_status_t gc_add_sums(lw_build_t *b, const lw_tensor_t *dst, const lw_tensor_t *src, uint32_t reduced) {
  return add_small_loop(b, dst, src, 0, reduced, &(transfer_t){.rounds = NULL});
}

/* ---- jumps ---- */

static aot_status_t run_jump(const lw_frame_t *f, void *payload) {
  lw_jump_t *p = payload;
  const gc_run_t *run = run_of(f);
  if (p->pred.storage != LW_NONE) {
    const size_t nbytes = aot_dtype_size(p->value.dtype);
    AOT_TRY(driver_status(run, run->driver->memcpy_to_host(run->decides, address(f, p->pred), nbytes, run->stream)));
    AOT_TRY(run->settle(run->self, f->error));
    p->value.data = run->decides;
    p->value.nbytes = nbytes;
    p->value.offset = 0; /* one element, and it alone */
  }
  return lw_take_jump(f, p);
}

uint32_t gc_jump_target(const lw_step_t *step) {
  return step->run == run_jump ? ((const lw_jump_t *)step->payload)->target : LW_NONE;
}

int gc_jump_waits(const lw_step_t *step) {
  return step->run == run_jump && ((const lw_jump_t *)step->payload)->pred.storage != LW_NONE;
}

/* ---- kernels on the host ---- */

/* Of a storage: the bytes that the step's tensors reach, there and in the staging memory. */
typedef struct piece {
  uint32_t storage;
  int64_t begin, end; /* of the storage */
  uint64_t staged_at;
  int is_read, is_written;
} piece_t;

typedef struct host_step {
  lw_kernel_step_t *kernel;
  piece_t *pieces;
  uint32_t n_pieces;
  const gc_run_t *run; /* while it is on the stream */
  uint32_t node;       /* id */
} host_step_t;

/* On a thread of the driver, which may not be called from here. */
static void run_on_host(void *self) {
  host_step_t *p = self;
  lw_error_t error = {.node = p->node};
  for (uint32_t k = 0; k < p->n_pieces; k++)
    p->run->staged[p->pieces[k].storage] = p->run->staging + p->pieces[k].staged_at - p->pieces[k].begin;
  const aot_status_t status = lw_run_kernel(p->kernel, p->run->staged, &error);
  if (status != AOT_OK) p->run->fault(p->run->self, status, &error);
}

static aot_status_t run_host_step(const lw_frame_t *f, void *payload) {
  host_step_t *p = ((lw_kernel_step_t *)payload)->self;
  const gc_run_t *run = run_of(f);
  gc_result_t result = GC_SUCCESS;
  p->run = run;
  for (uint32_t k = 0; k < p->n_pieces && result == GC_SUCCESS; k++) {
    const piece_t *piece = &p->pieces[k];
    if (piece->is_read && piece->end > piece->begin)
      result = run->driver->memcpy_to_host(run->staging + piece->staged_at,
                                           address(f, (lw_ref_t){piece->storage, piece->begin}),
                                           (size_t)(piece->end - piece->begin), run->stream);
  }
  if (result == GC_SUCCESS) result = run->driver->launch_host_func(run->stream, run_on_host, p);
  for (uint32_t k = 0; k < p->n_pieces && result == GC_SUCCESS; k++) {
    const piece_t *piece = &p->pieces[k];
    if (piece->is_written && piece->end > piece->begin)
      result = run->driver->memcpy_to_device(address(f, (lw_ref_t){piece->storage, piece->begin}),
                                             run->staging + piece->staged_at, (size_t)(piece->end - piece->begin),
                                             run->stream);
  }
  return driver_status(run, result);
}

/* ---- kernels that put work of their own on the queue ---- */

typedef struct queue_step {
  uint32_t number;    /* of its work next to the stream; LW_NONE: it is on the stream */
  int goes_on;        /* until another step waits for it */
  uint32_t waits_for; /* work next to the stream; LW_NONE: none */
} queue_step_t;

static aot_status_t enqueue(const lw_frame_t *f, lw_kernel_step_t *p, aot_queue_t *queue) {
  const gc_run_t *run = run_of(f);
  rk_error_t error = {.text = ""};
  for (uint32_t k = 0; k < p->n_tensors; k++) p->tensors[k]->data = f->base[p->refs[k].storage];
  if (!queue) return lw_fail(f->error, AOT_E_INTERNAL, "kernel-failed", "the stream of a call is no queue");
  const aot_status_t status = custom_enqueue(p->custom, &p->call, &run->device->table, queue, &error);
  return status == AOT_OK ? AOT_OK : lw_fail(f->error, status, "kernel-failed", "%s", error.text);
}

static aot_status_t run_on_queue(const lw_frame_t *f, void *payload) {
  const queue_step_t *q = ((lw_kernel_step_t *)payload)->self;
  const gc_run_t *run = run_of(f);
  if (q->waits_for != LW_NONE) AOT_TRY(driver_status(run, gc_beside_wait(run->beside, run->stream, q->waits_for)));
  return enqueue(f, payload, gc_stream_queue(run->device, run->stream));
}

static aot_status_t run_beside(const lw_frame_t *f, void *payload) {
  const queue_step_t *q = ((lw_kernel_step_t *)payload)->self;
  const gc_run_t *run = run_of(f);
  AOT_TRY(driver_status(run, gc_beside_fork(run->beside, run->stream)));
  AOT_TRY(enqueue(f, payload, run->beside->queue));
  AOT_TRY(driver_status(run, gc_beside_end(run->beside, q->number)));
  if (q->goes_on && !run->waits_at_once) return AOT_OK;
  return driver_status(run, gc_beside_wait(run->beside, run->stream, q->number));
}

static aot_status_t remember_beside(lw_build_t *b, uint32_t storage, uint32_t number) {
  gc_lowering_t *l = lowering(b);
  if (storage >= l->n_beside_of) {
    const uint32_t n = 2 * (storage + 1);
    uint32_t *more = lw_pool_alloc(b->pool, n * sizeof *more);
    if (!more) return lw_no_memory(b->error, "for a step");
    if (l->n_beside_of) memcpy(more, l->beside_of, l->n_beside_of * sizeof *more);
    l->beside_of = more;
    l->n_beside_of = n;
  }
  lw_save(b, &l->beside_of[storage], sizeof *l->beside_of);
  l->beside_of[storage] = number + 1;
  return AOT_OK;
}

/* All collectives continue one queue, so that they are in one order on all ranks. */
static aot_status_t lower_on_queue(lw_build_t *b, const custom_node_t *custom, rk_arg_t *args) {
  gc_lowering_t *l = lowering(b);
  const int goes_on = (custom->kernel->head.flags & AOT_KERNEL_STARTS) != 0,
            is_beside = goes_on || (lw_is_collective(b, custom->node) && !custom->passes);
  lw_kernel_step_t *k;
  queue_step_t *q = lw_pool_alloc(b->pool, sizeof *q);
  if (!q) return lw_no_memory(b->error, "for a step");
  AOT_TRY(lw_add_kernel_step(b, is_beside ? run_beside : run_on_queue, NULL, custom, args, &k));
  k->self = q;
  *q = (queue_step_t){.number = is_beside ? l->n_beside++ : LW_NONE, .goes_on = goes_on, .waits_for = LW_NONE};
  l->n_started += (uint32_t)goes_on;
  for (uint32_t t = k->n_operands; t < k->n_tensors && goes_on; t++)
    AOT_TRY(remember_beside(b, k->refs[t].storage, q->number));
  const uint32_t storage = custom->passes && k->n_operands ? k->refs[0].storage : LW_NONE;
  if (storage < l->n_beside_of && l->beside_of[storage]) q->waits_for = l->beside_of[storage] - 1;
  return AOT_OK;
}

static piece_t *piece_of(host_step_t *p, uint32_t storage) {
  for (uint32_t k = 0; k < p->n_pieces; k++)
    if (p->pieces[k].storage == storage) return &p->pieces[k];
  p->pieces[p->n_pieces] = (piece_t){.storage = storage, .begin = INT64_MAX, .end = INT64_MIN};
  return &p->pieces[p->n_pieces++];
}

static void reach(piece_t *piece, int64_t begin, int64_t end) {
  if (begin < piece->begin) piece->begin = begin;
  if (end > piece->end) piece->end = end;
}

static int takes_queue(lw_build_t *b, const custom_node_t *custom, const rk_arg_t *args) {
  const uint32_t n = b->node->n_results;
  rk_tensor_t *results = lw_pool_alloc(b->pool, ((uint64_t)n + 1) * sizeof *results);
  for (uint32_t r = 0; results && r < n; r++) {
    lw_tensor_t t = *lw_type(b, r);
    if (t.dtype) lw_result_geometry(&t);
    if (t.dtype) results[r] = lw_rk_tensor(b, &t);
  }
  return results && custom_takes_queue(custom, &(rk_call_t){args, b->node->n_args, results, n});
}

static aot_status_t lower_kernel(lw_build_t *b, const rk_kernel_t *kernel, const custom_node_t *custom,
                                 rk_arg_t *args) {
  lw_kernel_step_t *k;
  if (custom && takes_queue(b, custom, args)) return lower_on_queue(b, custom, args);
  if (custom && custom->kernel->head.flags & AOT_KERNEL_STARTS)
    return lw_fail(
        b->error, AOT_E_UNIMPLEMENTED, "starts",
        "what it begins cannot stand on a queue: its tensors lie in another order, or are of several dtypes");
  host_step_t *p = lw_pool_alloc(b->pool, sizeof *p);
  uint64_t nbytes = 0;
  if (!p) return lw_no_memory(b->error, "for a step");
  AOT_TRY(lw_add_kernel_step(b, run_host_step, kernel, custom, args, &k));
  uint32_t *n_on_host = kernel && lowering(b)->n_on_host ? &lowering(b)->n_on_host[b->node->op] : NULL;
  if (n_on_host) lw_save(b, n_on_host, sizeof *n_on_host);
  if (n_on_host) ++*n_on_host;
  k->self = p;
  *p = (host_step_t){.kernel = k, .node = b->node->id};
  p->pieces = lw_pool_alloc(b->pool, (k->n_tensors + k->n_floats + 1) * sizeof *p->pieces);
  if (!p->pieces) return lw_no_memory(b->error, "for a step");
  for (uint32_t t = 0; t < k->n_tensors; t++) {
    const rk_tensor_t *x = k->tensors[t];
    const int64_t size = (int64_t)aot_dtype_size(x->dtype);
    piece_t *piece = piece_of(p, k->refs[t].storage);
    int64_t first, last;
    if (tn_reach(x->rank, x->sizes, x->strides, x->offset, &first, &last))
      reach(piece, first * size, (last + 1) * size);
    if (t < k->n_operands) piece->is_read = 1;
    else piece->is_written = 1;
  }
  for (uint32_t i = 0; i < k->n_floats; i++) {
    piece_t *piece = piece_of(p, k->floats[i].at.storage);
    reach(piece, k->floats[i].at.at, k->floats[i].at.at + (int64_t)sizeof(double));
    piece->is_read = 1;
  }
  for (uint32_t i = 0; i < p->n_pieces; i++) {
    piece_t *piece = &p->pieces[i];
    if (piece->end < piece->begin) piece->begin = piece->end = 0;
    piece->staged_at = nbytes + (uint64_t)(piece->begin % LW_ALIGN); /* as it is aligned in its storage */
    nbytes = (piece->staged_at + (uint64_t)(piece->end - piece->begin) + LW_ALIGN - 1) / LW_ALIGN * LW_ALIGN;
  }
  if (nbytes > lowering(b)->staging_nbytes) lowering(b)->staging_nbytes = nbytes;
  return AOT_OK;
}

/* ---- the target ---- */

/* What is stored of steps is in the pool of a schedule that is no more. */
static void begin_anew(void *self, const aot_snapshot_t *s) {
  gc_lowering_t *l = self;
  l->staging_nbytes = 0;
  l->n_checks = l->n_products = l->n_dnn = 0;
  l->attentions = NULL;
  l->masks = NULL;
  l->attentions_in = l->masks_in = NULL;
  l->n_beside = l->n_started = l->n_beside_of = 0;
  if (l->n_on_host) memset(l->n_on_host, 0, ((size_t)s->ops.count + 1) * sizeof *l->n_on_host);
}

static const lw_lowering_table_t *const tables[] = {
    &lw_lowerings_products, &lw_lowerings_joins, &lw_lowerings_regions,   &lw_lowerings_spared,
    &lw_lowerings_branches, &lw_lowerings_loops, &gc_lowerings_attention, &gc_lowerings_conv};
const lw_target_t gc_gpu = {
    .tables = tables,
    .n_tables = sizeof tables / sizeof tables[0],
    /* an H100: its copy, a kernel of a graph, a warp a row where rows are many */
    .costs = {.bytes_a_ns = 3000,
              .step_ns = 2000,
              .row_ns = 0.04,
              .ops_a_ns = 20000,
              .row_elements = 65536,
              .thread_elements = 32768,
              .merges_apart = 1},
    .product = gc_lower_product,
    .product_onto = gc_lower_product_onto,
    .loop = lower_loop,
    .kernel = lower_kernel,
    .copy = lower_copy,
    .zero = lower_zero,
    .add = lower_add,
    .self_nbytes = sizeof(gc_lowering_t),
    .begin_anew = begin_anew,
    .draws = gc_own_attention_draws,
    .jump = run_jump,
    .classes = lower_classes,
    .join = join_loops,
    .runs_early = 1,
    .row_nbytes = 128,
    .goes_onto = 1,
    .on_gpu = 1,
    .has_across = 1,
};
