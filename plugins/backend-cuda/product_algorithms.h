/* Which of cuBLASLt's algorithms computes a product: the first that the library names, or the fastest of those by a
 * measurement, which is kept in the cache folder by the product's form, the library's version and the device. */
#ifndef GC_PRODUCT_ALGORITHMS_H
#define GC_PRODUCT_ALGORITHMS_H

#include "common/kept/sealed_file.h"
#include "cublaslt.h"

typedef struct gc_algorithms {
  const gc_driver_t *driver;
  const gc_cublaslt_t *cublaslt;
  gc_stream_t stream;
  const char *folder; /* the cache's; NULL: nothing is kept */
  uint64_t identity;  /* of library and device */
  int are_timed;
  double left_ms; /* for measurements; without any left the first algorithms are taken */
  struct gc_chosen *chosen;
  uint32_t n, n_slots;       /* a power of two, at least twice n */
  double ms;                 /* that choosing took */
  uint32_t n_timed, n_found; /* forms of products: measured here; found in the folder */
} gc_algorithms_t;

void gc_algorithms_init(gc_algorithms_t *a, const gc_driver_t *driver, const gc_cublaslt_t *cublaslt,
                        gc_stream_t stream, const char *folder, const char *device, int are_timed);
void gc_algorithms_deinit(gc_algorithms_t *a);
/* Fills p->algo, of a product that is not initialised. 0, or cuBLASLt's status. The context is current. */
int gc_algorithms_choose(gc_algorithms_t *a, gc_product_t *p);

#endif
