/* In place of mpi_ranks.c where there was no MPI to build with. */
#include "mpi_ranks.h"

#include <stdio.h>

aot_status_t cm_join(uint64_t patience_ns, rn_transport_t *out, rn_error_t *error) {
  (void)patience_ns;
  (void)out;
  snprintf(error->text, sizeof error->text,
           "this comm-mpi was built without MPI: install libopenmpi-dev and openmpi-bin (tools/setup does), and build "
           "again");
  return AOT_E_UNIMPLEMENTED;
}
