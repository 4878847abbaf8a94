/* A plugin is opened in a process of its own before it is opened here: a constructor that loops, stops or leaves the
 * process, starts others, or an exit handler that changes its status, is seen there.
 *
 *     aothost run p.yaml        a plugin that is not the project's own, and not known to be harmless
 *       `- aothost probe-plugin FILE      dlopen, entry, "done" through a pipe, exit: exit handlers and destructors
 *
 * What was harmless is known by a digest of the file, in the folder of the compile cache (AOT_CACHE=off: nothing is).
 * AOT_LOAD_TIMEOUT is how many seconds it may take (30). */
#ifndef AOTH_PROBE_H
#define AOTH_PROBE_H

#include "kit/base/arena.h"

#define AOTH_PROBE_COMMAND "probe-plugin"

/* What went wrong, in the arena: "it stopped the process while it was being opened"; NULL: nothing, or it cannot be
 * tried. */
const char *aoth_probe(const char *path, kit_arena_t *arena);
int aoth_probe_be(const char *path); /* the command: an exit status that only aoth_probe knows */

#endif
