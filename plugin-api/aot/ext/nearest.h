/* aot/ext/nearest.h - extension "aot.nearest/1", offered by the host: what a name that no opset knows was probably
 * meant to be. For importers, whose complaints about operators should help. */
#ifndef AOT_EXT_NEAREST_H
#define AOT_EXT_NEAREST_H

#include <aot/base.h>

#define AOT_EXT_NEAREST "aot.nearest/1"

typedef struct aot_ext_nearest {
  aot_table_t head;
  /* The known operator nearest to `name`: another overload of the same one first, then the same one in another
   * namespace, then a similar word in its namespace. Empty: none is near. Lives as long as the session. O(operators x
   * length of name) [stage-exclusive] */
  aot_str_t(AOT_CALL *op)(const struct aot_ext_nearest *x, aot_prog_t *prog, aot_str_t name);
} aot_ext_nearest_t;

#endif
