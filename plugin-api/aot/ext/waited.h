/* aot/ext/waited.h - extension "aot.waited/1" of an opset whose kernels wait for other ranks: how long they have. */
#ifndef AOT_EXT_WAITED_H
#define AOT_EXT_WAITED_H

#include <aot/base.h>

#define AOT_EXT_WAITED "aot.waited/1"

typedef struct aot_ext_waited {
  aot_table_t head; /* self: the extension's own */
  /* Nanoseconds since the opset was made, in which a node stood until other ranks had done their part: communication
   * that nothing hid. Of what goes on a device's queue nothing is known. [host-main] */
  uint64_t(AOT_CALL *ns)(const struct aot_ext_waited *x);
} aot_ext_waited_t;

#endif
