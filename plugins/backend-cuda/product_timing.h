/* Which of several algorithms computes a product in the least time, by running them in memory of their own.
 *
 *     a burst      all of them in turns, a few ms: a chip that slows down slows all of them
 *     under load   one after the other, each alone on a chip that has been at work for a while: where power is what
 *     ends
 *                  its speed, as in a training step, one that draws less of it runs at a higher clock
 *
 * Under load an algorithm takes another time than in a burst, and others are the fastest. */
#ifndef GC_PRODUCT_TIMING_H
#define GC_PRODUCT_TIMING_H

#include "cublaslt.h"

enum { GC_MOST_CANDIDATES = 8 };

typedef struct gc_timing {
  const gc_driver_t *driver;
  const gc_cublaslt_t *cublaslt;
  gc_stream_t stream;
  double burst_ms, load_ms; /* that runs of each kind took in all */
  double loaded_until_ms;   /* gc_now_ms: until then the chip has been at work */
} gc_timing_t;

/* Of `n` candidates the fastest, the first unless another gains something; -1: there is no memory to run in. The
 * product is initialised; the context is current; on return the device has nothing to do. Under load a product that is
 * shorter than its launch has the result of its burst: it cannot load a chip. */
int gc_timing_fastest(gc_timing_t *t, const gc_product_t *p, const gc_candidate_t *candidates, int n,
                      int is_under_load);
/* The most that gc_timing_fastest takes under load, about. */
double gc_timing_load_ms(void);

#endif
