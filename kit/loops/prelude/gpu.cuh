/* Types, macros and functions of a GPU. LP_ON_CPU: kit/cuda/cuda_shim.h has defined them. */
#ifndef LP_ON_CPU
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#define INT64_C(x) x##LL
#define INT64_MIN (-9223372036854775807LL - 1)
#define INT64_MAX 9223372036854775807LL
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define LP static __device__ __forceinline__
#define LP_ALIGN16 __align__(16)
#define LP_KERNEL(name, n, threads) \
  typedef struct { \
    char *at[n]; \
  } name##_t; \
  extern "C" __global__ void __launch_bounds__(threads) name(const name##_t lp_pointers)
/* limits registers so that `blocks` blocks are resident on a multiprocessor */
#define LP_RESIDENT(name, n, threads, blocks) \
  typedef struct { \
    char *at[n]; \
  } name##_t; \
  extern "C" __global__ void __launch_bounds__(threads, blocks) name(const name##_t lp_pointers)
#define LP_AT(k) lp_pointers.at[k]
#define LP_SHARED(name) extern __shared__ __align__(128) char name[]
LP void lp_move(void *to, const void *from, int bytes) {
  if (bytes % 16 == 0) {
#pragma unroll
    for (int k = 0; k < bytes / 16; k++) ((uint4 *)to)[k] = ((const uint4 *)from)[k];
  } else if (bytes == 8) *(uint2 *)to = *(const uint2 *)from;
  else if (bytes == 4) *(uint32_t *)to = *(const uint32_t *)from;
  else *(uint16_t *)to = *(const uint16_t *)from;
}
LP float lp_swap_f32(float v, int way) { return __shfl_xor_sync(0xffffffffu, v, way); }
LP double lp_swap_f64(double v, int way) { return __shfl_xor_sync(0xffffffffu, v, way); }
LP int64_t lp_swap_i64(int64_t v, int way) { return __shfl_xor_sync(0xffffffffu, v, way); }
LP float lp_lane_f32(float v, int lane) { return __shfl_sync(0xffffffffu, v, lane); }
LP double lp_lane_f64(double v, int lane) { return __shfl_sync(0xffffffffu, v, lane); }
LP int64_t lp_lane_i64(int64_t v, int lane) { return __shfl_sync(0xffffffffu, v, lane); }
LP float lp_from_bf16(uint16_t h) { return __uint_as_float((uint32_t)h << 16); }
LP uint16_t lp_to_bf16(float f) { return (uint16_t)(__float_as_uint(f) >> 16); }
/* A word of two bf16 whose lower one is 0 is the float of the upper one. For stored values NVRTC merges two
 * conversions into one word by itself. */
LP float lp_round_bf16(float f) {
  uint32_t two;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(f), "f"(0.0f));
  return __uint_as_float(two);
}
LP float lp_stored_bf16(float f) {
  uint16_t h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return lp_from_bf16(h);
}
LP float lp_from_f16(uint16_t h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}
LP uint16_t lp_to_f16(float f) {
  uint16_t h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
}
LP float lp_round_f16(float f) { return lp_from_f16(lp_to_f16(f)); }
#define lp_stored_f16 lp_round_f16
LP float lp_reciprocal_f32(float x) { return __fdividef(1.0f, x); }
LP uint64_t lp_below_i64(uint64_t bits, uint64_t range) { return __umul64hi(bits, range); }
/* One instruction; NVRTC computes a product of 64-bit numbers by several. */
LP uint64_t lp_wide(uint32_t a, uint32_t b) {
  uint64_t product;
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(a), "r"(b));
  return product;
}
LP uint64_t lp_bits_of_f64(double v) { return (uint64_t)__double_as_longlong(v); }
LP double lp_f64_of_bits(uint64_t u) { return __longlong_as_double((int64_t)u); }
#define LP_MUL(a, b) __dmul_rn(a, b)
#define LP_SUM(a, b) __dadd_rn(a, b)
#endif
/* The first out-of-range index i of a thread, as a number that is not 0: 2 i + 2, or -2 i + 1 if i < 0. */
LP int64_t lp_told_i64(int64_t i) {
  const int64_t most = INT64_C(1) << 61, near = i > most ? most : i < -most ? -most : i;
  return near < 0 ? -2 * near + 1 : 2 * near + 2;
}
#define LP_TELL(wrong, is_right, i) \
  if (!is_right && !*wrong) *wrong = lp_told_i64(i)
