/* Asynchronous copies to shared memory, in groups that complete in order (cp.async), and a barrier of some of a block's
 * warps. */
#ifndef LP_ON_CPU
LP uint32_t lp_shared_at(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
LP void lp_copy(void *to, const void *from, int bytes) {
  const uint32_t at = lp_shared_at(to);
  if (bytes == 4) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(from) : "memory");
  else if (bytes == 8) asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(at), "l"(from) : "memory");
  else {
#pragma unroll
    for (int k = 0; k < bytes; k += 16)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at + k), "l"((const char *)from + k) : "memory");
  }
}
LP void lp_end_copies(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }
#define LP_WAIT_COPIES(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")
/* Bulk copies of whole rows (sm_90): an mbarrier in shared memory counts their bytes; its phase alternates 0 and 1. */
LP void lp_begin_barrier(uint64_t *b) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(lp_shared_at(b)) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
LP void lp_expect(uint64_t *b, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(lp_shared_at(b)), "r"(bytes) : "memory");
}
LP void lp_fetch(void *to, const void *from, int bytes, uint64_t *b) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(lp_shared_at(to)),
      "l"(from), "r"(bytes), "r"(lp_shared_at(b))
      : "memory");
}
LP void lp_await(uint64_t *b, int round) {
  int is_there = 0;
  while (!is_there)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
                 : "=r"(is_there)
                 : "r"(lp_shared_at(b)), "r"(round)
                 : "memory");
}
LP void lp_sync(int barrier, int n) {
  if (barrier == 0) __syncthreads();
  else asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(n) : "memory");
}
#endif
