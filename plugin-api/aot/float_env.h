/* aot/float_env.h - the floating-point environment of a thread: rounding, denormal numbers, traps. Never part of the
 * ABI.
 *
 *     const aot_float_env_t before = aot_float_env();
 *     dlopen(..);                           a library that was linked with -ffast-math changes it
 *     aot_float_env_restore(before);
 *
 * A plugin leaves it as it found it: the host compares around every call, restores it and names the plugin. */
#ifndef AOT_FLOAT_ENV_H
#define AOT_FLOAT_ENV_H

#include <stdint.h>
#if !defined(__x86_64__) && !defined(__aarch64__)
#include <fenv.h>
#endif

/* What decides about results; flags of exceptions that occurred are no part of it. */
typedef struct aot_float_env {
  uint32_t control; /* x86-64: MXCSR; AArch64: FPCR; others: the rounding mode */
  uint32_t x87;     /* x86-64: the control word, else 0 */
} aot_float_env_t;

#if defined(__x86_64__)
#define AOT_FLOAT_FLAGS 0x3fu
#define AOT_FLOAT_DENORMALS 0x8040u /* flush to zero, denormals are zero */
#define AOT_FLOAT_ROUNDING 0x6000u

static inline uint32_t aot_float_mxcsr(void) {
  uint32_t control;
  __asm__ __volatile__("stmxcsr %0" : "=m"(control));
  return control;
}
static inline aot_float_env_t aot_float_env(void) {
  aot_float_env_t e;
  uint16_t x87;
  __asm__ __volatile__("fnstcw %0" : "=m"(x87));
  e.control = aot_float_mxcsr() & ~AOT_FLOAT_FLAGS;
  e.x87 = x87;
  return e;
}
static inline void aot_float_env_restore(aot_float_env_t e) {
  const uint32_t control = e.control | (aot_float_mxcsr() & AOT_FLOAT_FLAGS);
  const uint16_t x87 = (uint16_t)e.x87;
  __asm__ __volatile__("fldcw %0\n\tldmxcsr %1" : : "m"(x87), "m"(control));
}
#elif defined(__aarch64__)
#define AOT_FLOAT_DENORMALS 0x1080000u /* FZ, FZ16 */
#define AOT_FLOAT_ROUNDING 0xc00000u

static inline aot_float_env_t aot_float_env(void) {
  aot_float_env_t e;
  uint64_t control;
  __asm__ __volatile__("mrs %0, fpcr" : "=r"(control));
  e.control = (uint32_t)control;
  e.x87 = 0;
  return e;
}
static inline void aot_float_env_restore(aot_float_env_t e) {
  __asm__ __volatile__("msr fpcr, %0" : : "r"((uint64_t)e.control));
}
#else
#define AOT_FLOAT_DENORMALS 0u
#define AOT_FLOAT_ROUNDING UINT32_MAX

static inline aot_float_env_t aot_float_env(void) {
  aot_float_env_t e;
  e.control = (uint32_t)fegetround();
  e.x87 = 0;
  return e;
}
static inline void aot_float_env_restore(aot_float_env_t e) { fesetround((int)e.control); }
#endif

/* What is not as it was, as the end of "it left .."; a null pointer: nothing. */
static inline const char *aot_float_env_change(aot_float_env_t before, aot_float_env_t after) {
  const uint32_t changed = before.control ^ after.control;
  if (changed & AOT_FLOAT_DENORMALS) return "denormal numbers flushed to zero, or no longer";
  if (changed & AOT_FLOAT_ROUNDING) return "another way of rounding floating-point numbers";
  return changed || before.x87 != after.x87 ? "other floating-point traps, or another x87 precision" : 0;
}

#endif
