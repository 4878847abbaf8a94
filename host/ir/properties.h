/* What a program is, as bits of a set: bit i is row i of AOT_PROPERTY_MAP (aot/contract.h). At the boundary properties
 * are names. */
#ifndef AOTH_PROPERTIES_H
#define AOTH_PROPERTIES_H

#include <aot/contract.h>

enum {
#define AOTH_PROPERTY_BIT(name, number, text, meaning) AOTH_PROP_##name = 1 << number,
  AOT_PROPERTY_MAP(AOTH_PROPERTY_BIT)
#undef AOTH_PROPERTY_BIT
#define AOTH_PROPERTY_ONE(name, number, text, meaning) +1
      AOTH_N_PROPERTIES = 0 AOT_PROPERTY_MAP(AOTH_PROPERTY_ONE)
#undef AOTH_PROPERTY_ONE
};

uint32_t aoth_property_find(aot_str_t name);       /* 0: there is none of this name */
const char *aoth_property_nearest(aot_str_t name); /* what it was probably meant to be; NULL: none is near */

/* A unit's contract as the host works with it. */
typedef struct aoth_contract {
  uint32_t needs, gives, drops, refuses; /* AOTH_PROP_* */
  const aot_str_t *creates, *removes;
  uint64_t n_creates, n_removes;
} aoth_contract_t;

#endif
