/* Generated CUDA C as C for a CPU, to test it where there is no GPU: included before the text (cc -include).
 *
 *     blocks run one after another; the threads of a block are fibers, which run in turn, each until it waits
 *     a barrier, and a shuffle within a warp, wait until all threads of the block, or the warp, have come or are gone
 *     shared memory is static, as one block runs at a time
 *     a copy to shared memory is made when it is waited for; until then there is poison
 *     products of matrices are computed by each thread for itself, of what all of its warp have left
 *
 * shim_run(kernel, blocks, threads, pointers) runs a kernel; pointers are what its LP_AT(k) are, KERNEL_bounds is
 * the number of threads that it may be run with. It returns 0 where
 * threads wait for ones that never come. Unaligned vectors end in a trap, as they do on a GPU. Serial, and not for two
 * threads of the CPU at once. */
#ifndef CUDA_SHIM_H
#define CUDA_SHIM_H

#include "../base/vector.h" /* by its place: a text is compiled without the tree as an include folder */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifndef __x86_64__
#include <ucontext.h>
#endif

/* What a guard leaves unset is read after the same guard alone. */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

/* ---- what the text needs ---- */

#define LP_ON_CPU
#define LP static inline __attribute__((unused))
#define LP_ALIGN16 __attribute__((aligned(16)))
#define __shared__ static
#define LP_KERNEL(name, n, threads)                                                                                    \
  const uint32_t name##_bounds = threads;                                                                              \
  void name(char *const *lp_pointers)
#define LP_RESIDENT(name, n, threads, blocks) LP_KERNEL(name, n, threads)
#define LP_AT(k) lp_pointers[k]
#define lp_stored_bf16 lp_round_bf16
#define lp_stored_f16 lp_round_f16
#define LP_SHARED(name) char *const name = shim_shared
static char shim_shared[227 << 10] __attribute__((aligned(128), unused));

typedef struct shim_index {
  uint32_t x;
} shim_index_t;
static shim_index_t threadIdx, blockIdx;

typedef union shim_value {
  float f32;
  double f64;
  int64_t i64;
} shim_value_t;

/* ---- threads as fibers ---- */

enum { SHIM_THREADS = 1024, SHIM_WARP = 32, SHIM_STACK = 1 << 16 };
enum { SHIM_READY = 1, SHIM_AT_BLOCK, SHIM_AT_WARP, SHIM_AT_TEAM, SHIM_GONE };
typedef struct shim_copy {
  void *to;
  const void *from;
  int bytes, group;
  uint64_t *barrier; /* of a whole row */
} shim_copy_t;
typedef void (*shim_kernel_fn)(char *const *pointers);
/* A stack that runs or waits. swapcontext queries the kernel for the signal mask each time, which was two thirds of the
 * time of tests on the double. */
#ifdef __x86_64__
typedef void *shim_stack_t; /* the stack pointer; what it points to are the registers that a call preserves */
/* Saves the running stack in *from and continues `to`. */
void shim_switch(shim_stack_t *from, const shim_stack_t *to) __attribute__((visibility("hidden")));
__asm__(".pushsection .text\n.p2align 4\n.type shim_switch, @function\nshim_switch:\n"
        "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
        "movq %rsp, (%rdi)\nmovq (%rsi), %rsp\n"
        "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
        ".size shim_switch, .-shim_switch\n.popsection\n");
#else
typedef ucontext_t shim_stack_t;
#define shim_switch swapcontext
#endif
typedef struct shim_fiber {
  shim_stack_t context;
  char *stack;
  int state;
  int barrier, expected; /* SHIM_AT_TEAM */
  shim_copy_t *copies;   /* that are not waited for yet: rows from first_copy to n_copies */
  int first_copy, n_copies, group;
  uint32_t capacity;
  uint32_t n_turns; /* in which it has left something for its warp */
} shim_fiber_t;
static struct shim {
  shim_fiber_t fibers[SHIM_THREADS];
  shim_stack_t scheduler;
  shim_kernel_fn kernel;
  char *const *pointers;
  shim_value_t values[SHIM_THREADS];
  uint32_t left[2][SHIM_THREADS][6]; /* by turn: what a thread leaves for its warp */
  shim_copy_t rows[256];             /* on their way */
  int n_rows;
} shim;

static void shim_wait(int state) {
  const uint32_t me = threadIdx.x;
  shim.fibers[me].state = state;
  shim_switch(&shim.fibers[me].context, &shim.scheduler);
  threadIdx.x = me;
}

__attribute__((unused)) static void __syncthreads(void) { shim_wait(SHIM_AT_BLOCK); }

__attribute__((unused)) static void lp_sync(int barrier, int n) {
  shim.fibers[threadIdx.x].barrier = barrier;
  shim.fibers[threadIdx.x].expected = n;
  shim_wait(barrier ? SHIM_AT_TEAM : SHIM_AT_BLOCK);
}

/* The value of the same warp's thread `lane`. */
static shim_value_t shim_lane(shim_value_t mine, uint32_t lane) {
  const uint32_t me = threadIdx.x;
  shim.values[me] = mine;
  shim_wait(SHIM_AT_WARP);
  const shim_value_t other = shim.values[me / SHIM_WARP * SHIM_WARP + lane % SHIM_WARP];
  shim_wait(SHIM_AT_WARP); /* before the value is another */
  return other;
}

static void shim_fiber_main(void) {
  shim.kernel(shim.pointers);
  shim_wait(SHIM_GONE);
}

/* The first switch to the fiber calls shim_fiber_main, which never returns. */
static void shim_fiber_begin(shim_fiber_t *f) {
#ifdef __x86_64__
  uint64_t *top = (uint64_t *)(void *)(f->stack + SHIM_STACK);
  memset(top - 8, 0, 8 * sizeof *top); /* six registers, the function, no caller: aligned as after a call */
  top[-2] = (uint64_t)(uintptr_t)shim_fiber_main;
  f->context = top - 8;
#else
  getcontext(&f->context);
  f->context.uc_stack.ss_sp = f->stack;
  f->context.uc_stack.ss_size = SHIM_STACK;
  makecontext(&f->context, shim_fiber_main, 0);
#endif
}

/* Threads from `begin` on that all wait in this way, or are gone, continue; how many do. */
static uint32_t shim_release(uint32_t begin, uint32_t end, int state) {
  uint32_t n = 0;
  for (uint32_t t = begin; t < end; t++) {
    if (shim.fibers[t].state != state && shim.fibers[t].state != SHIM_GONE) return 0;
    n += shim.fibers[t].state == state;
  }
  for (uint32_t t = begin; t < end; t++)
    if (shim.fibers[t].state == state) shim.fibers[t].state = SHIM_READY;
  return n;
}

/* Threads that wait at a barrier of their own, once there are as many as it expects. */
static uint32_t shim_release_teams(uint32_t threads) {
  uint32_t released = 0;
  for (uint32_t first = 0; first < threads; first++) {
    const shim_fiber_t *f = &shim.fibers[first];
    int n = 0;
    if (f->state != SHIM_AT_TEAM) continue;
    for (uint32_t t = first; t < threads; t++)
      n += shim.fibers[t].state == SHIM_AT_TEAM && shim.fibers[t].barrier == f->barrier;
    if (n != f->expected) continue;
    for (uint32_t t = threads; t-- > first;)
      if (shim.fibers[t].state == SHIM_AT_TEAM && shim.fibers[t].barrier == f->barrier)
        shim.fibers[t].state = SHIM_READY, released++;
  }
  return released;
}

__attribute__((destructor)) static void shim_free(void) {
  for (uint32_t t = 0; t < SHIM_THREADS; t++) {
    free(shim.fibers[t].stack);
    free(shim.fibers[t].copies);
  }
}

static int shim_block(uint32_t threads) {
  for (uint32_t t = 0; t < threads; t++) {
    shim_fiber_t *f = &shim.fibers[t];
    if (!f->stack && !(f->stack = malloc(SHIM_STACK))) return 0;
    shim_fiber_begin(f);
    f->state = SHIM_READY;
    f->first_copy = f->n_copies = f->group = 0;
    f->n_turns = 0;
  }
  shim.n_rows = 0;
  for (uint32_t gone = 0; gone < threads;) {
    uint32_t n = 0;
    gone = 0;
    for (uint32_t t = 0; t < threads; t++) {
      if (shim.fibers[t].state == SHIM_READY) {
        threadIdx.x = t;
        shim_switch(&shim.scheduler, &shim.fibers[t].context);
        n++;
      }
      gone += shim.fibers[t].state == SHIM_GONE;
    }
    for (uint32_t w = 0; w < threads; w += SHIM_WARP) n += shim_release(w, w + SHIM_WARP, SHIM_AT_WARP);
    n += shim_release_teams(threads) + shim_release(0, threads, SHIM_AT_BLOCK);
    if (n == 0 && gone < threads) return 0;
  }
  return 1;
}

__attribute__((visibility("default"))) int shim_run(shim_kernel_fn kernel, uint32_t blocks, uint32_t threads,
                                                    char *const *pointers) {
  if (threads > SHIM_THREADS || threads % SHIM_WARP) return 0;
  shim.kernel = kernel;
  shim.pointers = pointers;
  for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)
    if (!shim_block(threads)) return 0;
  return 1;
}

/* ---- what only a GPU has ---- */

LP void lp_move(void *to, const void *from, int bytes) {
  const uintptr_t align = bytes < 16 ? (uintptr_t)bytes : 16;
  if (((uintptr_t)to | (uintptr_t)from) % align) __builtin_trap();
  memcpy(to, from, (size_t)bytes);
}
LP void lp_copy(void *to, const void *from, int bytes) {
  shim_fiber_t *f = &shim.fibers[threadIdx.x];
  const uintptr_t align = bytes < 16 ? (uintptr_t)bytes : 16;
  if (((uintptr_t)to | (uintptr_t)from) % align || bytes < 4) __builtin_trap();
  if ((char *)to < shim_shared || (char *)to + bytes > shim_shared + sizeof shim_shared) __builtin_trap();
  f->copies = (shim_copy_t *)kit_grow(f->copies, &f->capacity, (uint64_t)f->n_copies + 1, sizeof *f->copies);
  if (!f->copies) __builtin_trap();
  memset(to, 0xff, (size_t)bytes);
  f->copies[f->n_copies++] = (shim_copy_t){to, from, bytes, f->group};
}
LP void lp_end_copies(void) { shim.fibers[threadIdx.x].group++; }
/* All but those of the last n groups. */
LP void shim_wait_copies(int n) {
  shim_fiber_t *f = &shim.fibers[threadIdx.x];
  for (; f->first_copy < f->n_copies && f->copies[f->first_copy].group < f->group - n; f->first_copy++)
    memcpy(f->copies[f->first_copy].to, f->copies[f->first_copy].from, (size_t)f->copies[f->first_copy].bytes);
  if (f->first_copy == f->n_copies) f->first_copy = f->n_copies = 0;
}
#define LP_WAIT_COPIES(n) shim_wait_copies(n)

/* A barrier that counts bytes: those that are still to come, whether they have been reported, and the round. */
LP void shim_set(uint64_t *b, uint32_t bytes, uint32_t is_told, uint32_t round) {
  *b = (uint64_t)bytes << 2 | is_told << 1 | round;
}
LP void lp_begin_barrier(uint64_t *b) { shim_set(b, 0, 0, 0); }
LP void lp_expect(uint64_t *b, int bytes) {
  if (*b >> 1) __builtin_trap(); /* the round before is not over */
  shim_set(b, (uint32_t)bytes, 1, *b & 1);
}
LP void lp_fetch(void *to, const void *from, int bytes, uint64_t *b) {
  if (((uintptr_t)to | (uintptr_t)from | (uintptr_t)bytes) % 16 || shim.n_rows == 256) __builtin_trap();
  if ((char *)to < shim_shared || (char *)to + bytes > shim_shared + sizeof shim_shared) __builtin_trap();
  memset(to, 0xff, (size_t)bytes);
  shim.rows[shim.n_rows++] = (shim_copy_t){to, from, bytes, 0, b};
}
LP void lp_await(uint64_t *b, int round) {
  for (int turn = 0; (int)(*b & 1) == round; turn++) {
    uint32_t bytes = (uint32_t)(*b >> 2);
    int n = 0;
    for (int k = 0; k < shim.n_rows; k++) {
      shim_copy_t *row = &shim.rows[k];
      if (row->barrier != b) {
        shim.rows[n++] = *row;
        continue;
      }
      memcpy(row->to, row->from, (size_t)row->bytes);
      bytes -= (uint32_t)row->bytes;
    }
    shim.n_rows = n;
    shim_set(b, bytes, *b >> 1 & 1, (uint32_t)round);
    if (*b >> 1 == 1) shim_set(b, 0, 0, (uint32_t)!round);
    else if (turn == 1 << 20) __builtin_trap(); /* nothing fetches it */
    else shim_wait(SHIM_READY);
  }
}
LP float lp_lane_f32(float v, int lane) { return shim_lane((shim_value_t){.f32 = v}, (uint32_t)lane).f32; }
LP double lp_lane_f64(double v, int lane) { return shim_lane((shim_value_t){.f64 = v}, (uint32_t)lane).f64; }
LP int64_t lp_lane_i64(int64_t v, int lane) { return shim_lane((shim_value_t){.i64 = v}, (uint32_t)lane).i64; }
LP uint32_t lp_lane_u32(uint32_t v, int lane) {
  return (uint32_t)shim_lane((shim_value_t){.i64 = v}, (uint32_t)lane).i64;
}
LP float lp_swap_f32(float v, int way) { return lp_lane_f32(v, (int)threadIdx.x ^ way); }
LP double lp_swap_f64(double v, int way) { return lp_lane_f64(v, (int)threadIdx.x ^ way); }
LP int64_t lp_swap_i64(int64_t v, int way) { return lp_lane_i64(v, (int)threadIdx.x ^ way); }
LP float lp_reciprocal_f32(float x) { return 1.0f / x; }
LP uint64_t lp_wide(uint32_t a, uint32_t b) { return (uint64_t)a * b; }
LP uint64_t lp_below_i64(uint64_t bits, uint64_t range) { return (uint64_t)((unsigned __int128)bits * range >> 64); }
LP uint64_t lp_bits_of_f64(double v) {
  uint64_t u;
  memcpy(&u, &v, sizeof u);
  return u;
}
LP double lp_f64_of_bits(uint64_t u) {
  double v;
  memcpy(&v, &u, sizeof v);
  return v;
}

/* ---- matrices of 8 x 8 halves, of which each thread of a warp holds a part (PTX ISA, "Matrix fragments") ----
 *
 *     thread 4 i + j of a warp has elements 2 j and 2 j + 1 of row i, in one word
 *
 * Shared memory is addressed by bytes from its first. */
LP uint32_t lp_shared_at(const void *p) { return (uint32_t)((const char *)p - shim_shared); }
/* What the warp's threads have left, n words each. A second wait is spared, as the next time there is another place. */
LP uint32_t (*shim_leave(const uint32_t *words, int n))[6] {
  const uint32_t me = threadIdx.x, turn = shim.fibers[me].n_turns++ % 2;
  memcpy(shim.left[turn][me], words, (size_t)n * 4);
  shim_wait(SHIM_AT_WARP);
  return &shim.left[turn][me / SHIM_WARP * SHIM_WARP];
}
/* Four matrices; thread 8 k + i says where row i of matrix k lies. */
LP void shim_load_matrices(uint32_t *to, uint32_t at, int is_turned) {
  uint32_t(*rows)[6] = shim_leave(&at, 1);
  const uint32_t lane = threadIdx.x % SHIM_WARP;
  for (uint32_t k = 0; k < 4; k++) {
    uint16_t two[2];
    for (uint32_t e = 0; e < 2; e++) {
      const uint32_t i = is_turned ? lane % 4 * 2 + e : lane / 4, j = is_turned ? lane / 4 : lane % 4 * 2 + e;
      const uint32_t row = rows[8 * k + i][0];
      if (row % 16 || row + 16 > sizeof shim_shared) __builtin_trap();
      memcpy(&two[e], shim_shared + row + 2 * j, 2);
    }
    to[k] = (uint32_t)two[1] << 16 | two[0];
  }
}
LP void lp_load_matrices(uint32_t *to, uint32_t at) { shim_load_matrices(to, at, 0); }
LP void lp_load_turned(uint32_t *to, uint32_t at) { shim_load_matrices(to, at, 1); }
/* d (16 x 8, float) += a (16 x 16) times b (16 x 8) */
#define SHIM_PRODUCT(half)                                                                                             \
  LP uint32_t lp_two_##half(float low, float high) {                                                                   \
    return (uint32_t)lp_to_##half(lp_round_##half(high)) << 16 | lp_to_##half(lp_round_##half(low));                   \
  }                                                                                                                    \
  LP void lp_product_##half(float *d, const uint32_t *a, const uint32_t *b) {                                          \
    const uint32_t lane = threadIdx.x % SHIM_WARP, words[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};                    \
    uint32_t(*all)[6] = shim_leave(words, 6);                                                                          \
    for (uint32_t k = 0; k < 4; k++) {                                                                                 \
      const uint32_t column = lane % 4 * 2 + k % 2;                                                                    \
      double sum = d[k];                                                                                               \
      for (uint32_t i = 0; i < 16; i++) {                                                                              \
        const uint32_t x = all[lane / 4 * 4 + i % 8 / 2][i / 8 * 2 + k / 2],                                           \
                       y = all[column * 4 + i % 8 / 2][4 + i / 8];                                                     \
        sum += (double)lp_from_##half((uint16_t)(x >> i % 2 * 16)) * lp_from_##half((uint16_t)(y >> i % 2 * 16));      \
      }                                                                                                                \
      d[k] = (float)sum;                                                                                               \
    }                                                                                                                  \
  }

#define LP_MUL(a, b) ((a) * (b)) /* compiled without contraction */
#define LP_SUM(a, b) ((a) + (b))

#endif
