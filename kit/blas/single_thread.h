/* Libraries that read their number of threads from the environment when they are opened. */
#ifndef BL_SINGLE_THREAD_H
#define BL_SINGLE_THREAD_H

/* dlopen of `soname` with `variable` set to 1 meanwhile. NULL: dlerror reports. */
void *bl_open_with_one_thread(const char *soname, const char *variable);

#endif
