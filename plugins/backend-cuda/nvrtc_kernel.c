#include "nvrtc_kernel.h"

#include <assert.h>

typedef struct own_step {
  const gc_kernel_t *kernel;
  uint32_t blocks, threads;
  int n, has_number;
  int64_t number;
  lw_ref_t refs[GC_OWN_MOST_POINTERS];
} own_step_t;

static aot_status_t run_own_kernel(const lw_frame_t *f, void *payload) {
  const own_step_t *p = payload;
  const gc_run_t *run = f->self;
  gc_address_t pointers[GC_OWN_MOST_POINTERS] = {0};
  for (int k = 0; k < p->n; k++)
    if (p->refs[k].storage != LW_NONE) pointers[k] = (gc_address_t)(uintptr_t)lw_at(f, p->refs[k]);
  if (p->has_number) pointers[p->n] = (gc_address_t)p->number;
  *run->result = gc_launch(run, p->kernel->main, p->blocks, p->threads, p->kernel->shared, pointers,
                           (uint32_t)(p->n + p->has_number));
  return *run->result == GC_SUCCESS ? AOT_OK : AOT_E_INTERNAL;
}

aot_status_t gc_add_own_kernel(lw_build_t *b, const gc_own_kernel_t *kernel, const lw_tensor_t *const *tensors, int n) {
  gc_lowering_t *l = b->machine->self;
  gc_kernel_t *code = l->code ? gc_code_printed(l->code, kernel->print, kernel->self) : &l->stand_in;
  own_step_t *p;
  assert(n + (kernel->number != NULL) <= GC_OWN_MOST_POINTERS);
  if (!code) return lw_no_memory(b->error, "for a kernel");
  code->is_wanted = 1;
  code->shared = kernel->shared;
  AOT_TRY(lw_add_step(b, run_own_kernel, kernel->kind, sizeof *p, &p));
  *p = (own_step_t){.kernel = code,
                    .blocks = kernel->blocks,
                    .threads = kernel->threads,
                    .n = n,
                    .has_number = kernel->number != NULL};
  if (kernel->number) p->number = *kernel->number;
  for (int k = 0; k < n; k++)
    p->refs[k] = kernel->writes >> k & 1u    ? lw_use(b, tensors[k])
                 : kernel->updates >> k & 1u ? lw_use_update(b, tensors[k])
                                             : lw_use_read(b, tensors[k]);
  return AOT_OK;
}
