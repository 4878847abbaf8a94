/* The generated kernels of a program: text collected by name while graphs are lowered, compiled by NVRTC in units, on
 * several threads, then found by name. A schedule keeps the place of a kernel, which is filled when it is compiled.
 *
 * The machine code of a unit is stored in the cache folder under a hash of its text, the compiler and the architecture
 * (kit/base/sealed_file.h), so that a second start compiles nothing. Where units begin is reported by the names that
 * are in them, so that another kernel makes another unit and leaves the others as they are. */
#ifndef GC_CODE_H
#define GC_CODE_H

#include "kit/base/map.h"
#include "kit/cuda/nvrtc.h"
#include "kit/loops/loop.h"
#include "driver.h"

typedef struct gc_kernel {
  uint64_t hash; /* of its text */
  char name[32];
  gc_function_t begin, merge, main, end; /* what runs before `main` and after it; NULL: nothing */
  int has_begin, has_merge, has_end;
  uint32_t shared; /* bytes of shared memory that `main` is launched with */
  int is_wanted;   /* a step calls it: it is to be compiled */
  lp_text_t text;  /* until it is */
} gc_kernel_t;

typedef struct gc_code {
  const gc_driver_t *driver;
  const nv_nvrtc_t *nvrtc;
  const char *folder;    /* the cache's; NULL: nothing is stored */
  int arch;              /* compute capability: 90 */
  gc_kernel_t **kernels; /* in the order in which they were added; owned, at fixed addresses */
  kit_map_t by_name;     /* rows of `kernels` */
  uint32_t n, capacity;
  gc_kernel_t **fresh; /* not compiled yet */
  uint32_t n_fresh, fresh_capacity;
  gc_module_t *modules;
  uint32_t n_modules, module_capacity;
  uint32_t n_found, n_compiled; /* kernels: in the folder; by NVRTC */
  double compile_ms;            /* that both took, from the first text to the last kernel */
} gc_code_t;

void gc_code_init(gc_code_t *c, const gc_driver_t *driver, const nv_nvrtc_t *nvrtc, int arch, const char *folder);
void gc_code_deinit(gc_code_t *c);
/* The kernel that `print` prints under the name it is given: known, or added. NULL: no memory. */
typedef void (*gc_print_fn)(const void *self, const char *name, lp_text_t *out);
gc_kernel_t *gc_code_printed(gc_code_t *c, gc_print_fn print, const void *self);
/* A number for the kernel of this loop, the same wherever its text is the same. 0: no memory. */
uint64_t gc_code_hash(const lp_loop_t *loop);
/* The kernel of this loop, which has a GPU schedule: known, or added. NULL: no memory. */
gc_kernel_t *gc_code_kernel(gc_code_t *c, const lp_loop_t *loop);
/* Everything that is wanted is compiled, on threads, until gc_code_end; nothing else is queried of `c` before that.
 * NULL: no memory, which gc_code_end reports. */
typedef struct gc_compiling gc_compiling_t;
gc_compiling_t *gc_code_begin(gc_code_t *c);
/* The kernels are there: 0, or -1 with what the compiler or the driver says in `why`. The context is current. */
int gc_code_end(gc_code_t *c, gc_compiling_t *j, char *why, size_t size);

#endif
