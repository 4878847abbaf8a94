/* Generated CUDA C as C for a CPU, to test it where there is no GPU: included before the text (cc -include).
 *
 *     blocks run one after another; the threads of a block are fibers, which run in turn, each until it waits
 *     a barrier, and a shuffle within a warp, wait until all threads of the block, or the warp, have come or are gone
 *     shared memory is static, as one block runs at a time
 *
 * shim_run(kernel, blocks, threads, pointers) runs a kernel; pointers are what its LP_AT(k) are, KERNEL_bounds is
 * the number of threads that it may be run with. It returns 0 where
 * threads wait for ones that never come. Unaligned vectors end in a trap, as they do on a GPU. Serial, and not for two
 * threads of the CPU at once. */
#ifndef CUDA_SHIM_H
#define CUDA_SHIM_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

/* What a guard leaves unset is read behind the same guard alone. */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

/* ---- what the text needs ---- */

#define LP_ON_CPU
#define LP static inline __attribute__((unused))
#define LP_ALIGN16 __attribute__((aligned(16)))
#define __shared__ static
#define LP_KERNEL(name, n, threads)                                                                                    \
  const uint32_t name##_bounds = threads;                                                                              \
  void name(char *const *lp_pointers)
#define LP_AT(k) lp_pointers[k]

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
enum { SHIM_READY = 1, SHIM_AT_BLOCK, SHIM_AT_WARP, SHIM_GONE };
typedef void (*shim_kernel_fn)(char *const *pointers);
typedef struct shim_fiber {
  ucontext_t context;
  char *stack;
  int state;
} shim_fiber_t;
static struct shim {
  shim_fiber_t fibers[SHIM_THREADS];
  ucontext_t scheduler;
  shim_kernel_fn kernel;
  char *const *pointers;
  shim_value_t values[SHIM_THREADS];
} shim;

static void shim_wait(int state) {
  const uint32_t me = threadIdx.x;
  shim.fibers[me].state = state;
  swapcontext(&shim.fibers[me].context, &shim.scheduler);
  threadIdx.x = me;
}

__attribute__((unused)) static void __syncthreads(void) { shim_wait(SHIM_AT_BLOCK); }

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
  shim.fibers[threadIdx.x].state = SHIM_GONE;
}

/* Threads from `begin` on that all wait in this way, or are gone, go on; how many do. */
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

__attribute__((destructor)) static void shim_free(void) {
  for (uint32_t t = 0; t < SHIM_THREADS; t++) free(shim.fibers[t].stack);
}

static int shim_block(uint32_t threads) {
  for (uint32_t t = 0; t < threads; t++) {
    shim_fiber_t *f = &shim.fibers[t];
    if (!f->stack && !(f->stack = malloc(SHIM_STACK))) return 0;
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = SHIM_STACK;
    f->context.uc_link = &shim.scheduler;
    f->state = SHIM_READY;
    makecontext(&f->context, shim_fiber_main, 0);
  }
  for (uint32_t gone = 0; gone < threads;) {
    uint32_t n = 0;
    gone = 0;
    for (uint32_t t = 0; t < threads; t++) {
      if (shim.fibers[t].state == SHIM_READY) {
        threadIdx.x = t;
        swapcontext(&shim.scheduler, &shim.fibers[t].context);
        n++;
      }
      gone += shim.fibers[t].state == SHIM_GONE;
    }
    for (uint32_t w = 0; w < threads; w += SHIM_WARP) n += shim_release(w, w + SHIM_WARP, SHIM_AT_WARP);
    n += shim_release(0, threads, SHIM_AT_BLOCK);
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
LP float lp_lane_f32(float v, int lane) { return shim_lane((shim_value_t){.f32 = v}, (uint32_t)lane).f32; }
LP double lp_lane_f64(double v, int lane) { return shim_lane((shim_value_t){.f64 = v}, (uint32_t)lane).f64; }
LP int64_t lp_lane_i64(int64_t v, int lane) { return shim_lane((shim_value_t){.i64 = v}, (uint32_t)lane).i64; }
LP float lp_swap_f32(float v, int way) { return lp_lane_f32(v, (int)threadIdx.x ^ way); }
LP double lp_swap_f64(double v, int way) { return lp_lane_f64(v, (int)threadIdx.x ^ way); }
LP int64_t lp_swap_i64(int64_t v, int way) { return lp_lane_i64(v, (int)threadIdx.x ^ way); }
LP float lp_reciprocal_f32(float x) { return 1.0f / x; }
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
#define LP_MUL(a, b) ((a) * (b)) /* compiled without contraction */
#define LP_SUM(a, b) ((a) + (b))

#endif
