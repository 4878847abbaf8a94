/* The tables handed to plugins. bridge.c alone knows both sides of the boundary. */
#ifndef AOTH_BRIDGE_H
#define AOTH_BRIDGE_H

#include <aot/host.h>
#include "kit/base/arena.h"

/* A host table for plugins of ABI minor `minor`, in the arena: members that such a plugin cannot know are cut off.
 * NULL: no memory. */
aot_host_t *aoth_bridge_host(kit_arena_t *arena, uint32_t minor);

#endif
