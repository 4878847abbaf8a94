/* A host that does not do what it is queried: the table of a plugin with one call of it failing. For a child that tries
 * one thing: the functions of graphs and edits have no `self`, so what fails is stored in the process. */
#ifndef AOTH_CONFORM_HOST_H
#define AOTH_CONFORM_HOST_H

#include <config/pipeline.h>
#include <plugin/registry.h>

#define AOTH_HOSTILE_ALLOC 1     /* the n-th allocation answers NULL, reported */
#define AOTH_HOSTILE_EDIT 2      /* the n-th edit or snapshot answers AOT_E_EXHAUSTED, reported */
#define AOTH_HOSTILE_EXTENSION 3 /* the n-th extension requested is not there */
#define AOTH_HOSTILE_CANCELLED 4 /* from the n-th question on, the run is cancelled */

/* Before the unit is created. In a child: it stays so. 0: no memory. */
int aoth_hostile_install(aoth_plugin_t *p, kit_arena_t *arena);
/* From now on the n-th call (from 0) of that sort fails; what 0: none does. */
void aoth_hostile_arm(int what, uint64_t n);
/* Has the plugin requested the extension since then? */
int aoth_hostile_was_asked(const char *extension);
/* Has it failed since it was armed? 0: there were fewer calls. */
int aoth_hostile_has_failed(void);
const char *aoth_hostile_name(void); /* of what has failed: "alloc of 64 bytes", "node_create" */

#endif
