/* BC_WIDE: a function that is compiled for wider vectors, too; which one runs is decided when the plugin is loaded.
 * Products and sums are not contracted (-ffp-contract=off), so all give the same bits. What such a function calls has
 * to be inlined into it: BC_INLINE. With gcc alone, since what clang 14 makes of target_clones is not found by other
 * files; not under sanitizers, which are not ready when that decision is made. */
#ifndef BC_SIMD_DISPATCH_H
#define BC_SIMD_DISPATCH_H

#define BC_INLINE static inline __attribute__((always_inline))

#if defined(__x86_64__) && defined(__linux__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&              \
    !defined(__SANITIZE_THREAD__)
#define BC_WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define BC_WIDE
#endif

#endif
