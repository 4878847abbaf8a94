/* Which of cuBLASLt's algorithms computes a product: the first that the library names, or the fastest of those by a
 * measurement (product_timing.h), which is stored in the cache folder by the product's form, the library's version and
 * the device. What was found under load is stored in addition to what bursts found, and goes before it.
 *
 * A graph is lowered as if the library had an algorithm for each form. Those that are not known wait, and are chosen
 * after the lowering, one after another on a GPU that does nothing else, while processors make what else is
 * missing. */
#ifndef GC_PRODUCT_ALGORITHMS_H
#define GC_PRODUCT_ALGORITHMS_H

#include "kit/base/map.h"
#include "kit/base/sealed_file.h"
#include "product_timing.h"

enum { GC_ALGORITHMS_FIRST, GC_ALGORITHMS_TIME, GC_ALGORITHMS_LOAD }; /* how they are chosen */

/* The algorithm of a form: steps hold its place, which is filled when it is chosen. */
typedef struct gc_choice {
  kf_key_t key; /* of the form */
  gc_algo_t algo;
  enum { GC_ALGORITHM_UNKNOWN, GC_ALGORITHM_WAITS, GC_ALGORITHM_CHOSEN } state;
  int status;           /* cuBLASLt's, when it is chosen: not 0 where there is no algorithm */
  gc_product_t product; /* of the form, while it waits */
} gc_choice_t;

typedef struct gc_algorithms {
  const gc_cublaslt_t *cublaslt;
  gc_timing_t timing;
  const char *folder;    /* the cache's; NULL: nothing is stored */
  uint64_t identity;     /* of library and device */
  int how;               /* GC_ALGORITHMS_* */
  gc_choice_t **choices; /* owned, at fixed addresses */
  kit_map_t by_form;     /* rows of `choices` */
  uint32_t n, capacity;
  int is_gathering;      /* forms that are neither known nor kept are taken to have an algorithm, and wait */
  gc_choice_t **waiting; /* those */
  uint32_t n_waiting, waiting_capacity;
  double ms;                 /* that choosing took */
  uint32_t n_timed, n_found; /* forms of products: measured here; found in the folder */
  /* Asked whether work that is long may continue, and reported how far it is, where there is a text: what everybody
   * wants to know, or some. 0: it is to stop. NULL: nothing listens. */
  int (*go_on)(void *self, const char *text, int is_for_all);
  void *listener;
  int is_stopped;
} gc_algorithms_t;

void gc_algorithms_init(gc_algorithms_t *a, const gc_driver_t *driver, const gc_cublaslt_t *cublaslt,
                        gc_stream_t stream, const char *folder, const char *device, int how);
/* Products hold places of it until then. */
void gc_algorithms_deinit(gc_algorithms_t *a);
/* Sets p->algo, of a product that is not initialised: of a form that waits, the place. 0, or cuBLASLt's status. The
 * context is current. */
int gc_algorithms_choose(gc_algorithms_t *a, gc_product_t *p);
/* Those that wait. How many turned out to have no algorithm: what was lowered as if they had is lowered again. */
uint32_t gc_algorithms_choose_waiting(gc_algorithms_t *a);

#endif
