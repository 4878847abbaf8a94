/* Matrices of f16 and bf16 on tensor cores, by warps, on capability 8.0 and later (PTX ISA, "Warp-level matrix
 * instructions": mma.m16n8k16, ldmatrix). On a CPU kit/cuda/cuda_shim.h defines these.
 *
 *     lp_product_bf16(d, a, b)     d (16 x 8, float) += a (16 x 16) b (16 x 8)
 *     lp_load_matrices(to, at)     four of 8 x 8; thread 8 k + i of a warp has the address of row i of matrix k
 *     lp_load_turned(to, at)       the same, transposed
 *     lp_two_bf16(low, high)       two floats rounded, in a word
 *     lp_copy_tile(..)             rows of a matrix to shared memory, asynchronously
 *
 * In shared memory a row's pieces of 16 bytes are permuted, piece ^ row % 8, so that eight rows of one piece are in
 * different banks: lp_piece_at. */
#ifndef LP_MATRICES
#define LP_MATRICES
#ifdef LP_ON_CPU
#define LP_UNROLL
SHIM_PRODUCT(bf16)
SHIM_PRODUCT(f16)
#else
#define LP_UNROLL _Pragma("unroll")
LP uint32_t lp_lane_u32(uint32_t v, int lane) { return __shfl_sync(0xffffffffu, v, lane); }
LP void lp_load_matrices(uint32_t *to, uint32_t at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(at));
}
LP void lp_load_turned(uint32_t *to, uint32_t at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(at));
}
#define LP_PRODUCT(half) \
  LP uint32_t lp_two_##half(float low, float high) { \
    uint32_t two; \
    asm("cvt.rn." #half "x2.f32 %0, %1, %2;" : "=r"(two) : "f"(high), "f"(low)); \
    return two; \
  } \
  LP void lp_product_##half(float *d, const uint32_t *a, const uint32_t *b) { \
    asm("mma.sync.aligned.m16n8k16.row.col.f32." #half "." #half ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, " \
        "{%8, %9}, {%0, %1, %2, %3};" \
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); \
  }
LP_PRODUCT(bf16)
LP_PRODUCT(f16)
#endif
LP uint32_t lp_piece_at(int row, int piece, int row_nbytes) {
  return (uint32_t)(row * row_nbytes + ((piece ^ (row & 7)) << 4));
}
/* lp_philox of n blocks first, first + step, .. below 2^32, round by round: they share the round's key. */
LP void lp_philox_of(lp_block_t *out, int n, uint32_t step, uint64_t seed, uint64_t counter, uint32_t first) {
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
  LP_UNROLL
  for (int i = 0; i < n; i++) {
    out[i].w[0] = (uint32_t)counter;
    out[i].w[1] = (uint32_t)(counter >> 32);
    out[i].w[2] = first + (uint32_t)i * step;
    out[i].w[3] = 0;
  }
  LP_UNROLL
  for (int round = 0; round < 10; round++) {
    LP_UNROLL
    for (int i = 0; i < n; i++) {
      uint32_t *w = out[i].w;
      const uint64_t p0 = lp_wide(0xD2511F53u, w[0]), p1 = lp_wide(0xCD9E8D57u, w[2]);
      w[0] = (uint32_t)(p1 >> 32) ^ w[1] ^ k0;
      w[2] = (uint32_t)(p0 >> 32) ^ w[3] ^ k1;
      w[1] = (uint32_t)p1;
      w[3] = (uint32_t)p0;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}
/* `rows` rows from `first` on, by `threads` threads; row `last` is copied in place of those after it. */
LP void lp_copy_tile(char *to, const char *from, int64_t step_nbytes, int first, int last, int rows, int row_nbytes,
                     int threads) {
  const int pieces = row_nbytes / 16;
#pragma unroll
  for (int k = 0; k < rows * pieces; k += threads) {
    const int at = k + (int)threadIdx.x, row = at / pieces, piece = at % pieces;
    const int of = first + row < last ? first + row : last;
    if ((rows * pieces) % threads == 0 || at < rows * pieces)
      lp_copy(to + lp_piece_at(row, piece, row_nbytes), from + of * step_nbytes + piece * 16, 16);
  }
}
#endif
