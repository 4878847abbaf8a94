/* Files that are being written under a temporary name, NAME.tmp-N next to NAME, and what is left of them when a writer
 * is killed.
 *
 * A writer holds a lock on its file (flock) for as long as it has it open, so a process that gets the lock knows
 * that nothing writes there: the lock goes with the process, whatever ended it, and is seen from other process
 * namespaces. Where a file system has no locks, leftovers stay. */
#ifndef KIT_TEMPORARY_H
#define KIT_TEMPORARY_H

/* A new file next to path, locked, open for writing; *out_name is its name (free it). Leftovers of path go first. -1:
 * errno. */
int kit_temporary_open(const char *path, char **out_name);
/* Removes a file of the folder (an open directory) that is a temporary one, our user's, and that nothing writes. 1:
 * it is gone. */
int kit_temporary_remove(int folder, const char *name);

#endif
