/* What a program is: the properties that the host knows, as bits of a set (bit i is row i of AOT_PROPERTY_MAP,
 * aot/contract.h), and those that vendors named, as names. At the boundary all are names. */
#ifndef AOTH_PROPERTIES_H
#define AOTH_PROPERTIES_H

#include <aot/contract.h>
#include "kit/base/arena.h"

enum {
#define AOTH_PROPERTY_BIT(name, number, text, meaning) AOTH_PROP_##name = 1 << number,
  AOT_PROPERTY_MAP(AOTH_PROPERTY_BIT)
#undef AOTH_PROPERTY_BIT
#define AOTH_PROPERTY_ONE(name, number, text, meaning) +1
      AOTH_N_PROPERTIES = 0 AOT_PROPERTY_MAP(AOTH_PROPERTY_ONE)
#undef AOTH_PROPERTY_ONE
};

uint32_t aoth_property_find(aot_str_t name);       /* 0: the host knows none of this name */
const char *aoth_property_nearest(aot_str_t name); /* what it was probably meant to be; NULL: none is near */

/* A set. Its names, each once, belong to the code that made it. */
typedef struct aoth_properties {
  uint32_t known; /* AOTH_PROP_* */
  uint32_t n_named;
  const aot_str_t *named;
} aoth_properties_t;

aoth_properties_t aoth_properties_known(uint32_t known); /* no vendor's */
int aoth_properties_are_none(aoth_properties_t set);
int aoth_properties_have(aoth_properties_t set, aot_str_t name); /* of either sort */
/* The name's property, and no other; the name is borrowed. */
aoth_properties_t aoth_properties_one(const aot_str_t *name);
/* Set operations; the result's array is in `arena`, its names are those of a and b. 0: no memory. O(a * b) */
int aoth_properties_union(kit_arena_t *arena, aoth_properties_t a, aoth_properties_t b, aoth_properties_t *out);
int aoth_properties_minus(kit_arena_t *arena, aoth_properties_t a, aoth_properties_t b, aoth_properties_t *out);
int aoth_properties_common(kit_arena_t *arena, aoth_properties_t a, aoth_properties_t b, aoth_properties_t *out);

/* A unit's contract as the host works with it. */
typedef struct aoth_contract {
  aoth_properties_t needs, gives, drops, refuses;
  const aot_str_t *creates, *removes;
  uint64_t n_creates, n_removes;
} aoth_contract_t;

#endif
