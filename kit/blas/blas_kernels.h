/* Which of OpenBLAS's kernels a processor can run: a table from features to names, for releases that do not know the
 * processor. */
#ifndef BL_BLAS_KERNELS_H
#define BL_BLAS_KERNELS_H

/* `flags`: the features as Linux lists them in /proc/cpuinfo, words between blanks. `chosen`: the kernels that OpenBLAS
 * took. The name for OPENBLAS_CORETYPE where the processor runs wider vectors than those use; NULL: let it be. */
const char *bl_better_kernels(const char *flags, const char *chosen);

#endif
