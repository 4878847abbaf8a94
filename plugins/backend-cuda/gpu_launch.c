/* How a step launches a kernel, and how what it reads lies. */
#include "gpu_target.h"

#include <aot/inline.h>

gc_result_t gc_launch(const gc_run_t *run, gc_function_t function, uint32_t blocks, uint32_t threads, uint32_t shared,
                      gc_address_t *pointers, uint32_t n) {
  size_t nbytes = n * sizeof *pointers;
  void *extra[] = {GC_LAUNCH_BUFFER, pointers, GC_LAUNCH_BUFFER_SIZE, &nbytes, GC_LAUNCH_END};
  return run->driver->launch_kernel(function, blocks, 1, 1, threads, 1, 1, shared, run->stream, NULL, extra);
}

uint32_t gc_alignment_of(const lw_build_t *b, const lw_tensor_t *t) {
  const uint64_t at = (uint64_t)t->offset * aot_dtype_size(t->dtype);
  uint32_t align = ((const gc_lowering_t *)b->machine->self)->align;
  while (at % align) align /= 2;
  return align;
}
