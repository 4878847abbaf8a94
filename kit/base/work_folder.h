/* A folder of its own for work in the cache folder (aot/ext/env.h), under a lock for as long as it is in use: threads
 * and processes never share a name, and whoever can take the lock of a folder that a killed process left may remove it
 * (the host does). */
#ifndef KF_WORK_FOLDER_H
#define KF_WORK_FOLDER_H

#include <stddef.h>

enum { KF_PATH_SIZE = 4096, KF_NAME_SIZE = 32 };

typedef struct kf_work {
  char path[KF_PATH_SIZE];
  int lock;
} kf_work_t;

/* 0, or -1 and errno. */
int kf_work_begin(const char *dir, kf_work_t *w);
/* Of a file in it, whose name is shorter than KF_NAME_SIZE; out: KF_PATH_SIZE + KF_NAME_SIZE bytes. */
void kf_work_path(const kf_work_t *w, const char *name, char *out);
/* Removes it with what is in it. */
void kf_work_end(kf_work_t *w);

#endif
