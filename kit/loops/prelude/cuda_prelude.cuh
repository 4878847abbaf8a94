/* What generated CUDA C begins with. It includes no headers: types, macros and what only a GPU has come first, unless
 * LP_ON_CPU says that kit/cuda/cuda_shim.h has defined them; then formulas shared with C, reductions over threads,
 * sorting, random numbers. */
#include "gpu.cuh"
#include "async_copies.cuh"
#include "extremes.cuh"
#include "functions.cuh"
#include "formulas.h"
#include "bf16_pairs.cuh"
#include "team_reductions.cuh"
#include "team_scans.cuh"
#include "sorting.cuh"
#include "draws.cuh"
#include "normal_draws.cuh"
