#include "work_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Between making a folder and locking it something else may have taken it for a dead one; then the next is tried. */
int kf_work_begin(const char *dir, kf_work_t *w) {
  struct stat named, locked;
  for (int tries = 0; tries < 100; tries++) {
    const int n = snprintf(w->path, sizeof w->path, "%s/work-XXXXXX", dir);
    if (n < 0 || (size_t)n >= sizeof w->path) errno = ENAMETOOLONG;
    if (n < 0 || (size_t)n >= sizeof w->path || !mkdtemp(w->path)) return -1;
    w->lock = open(w->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w->lock < 0) continue;
    flock(w->lock, LOCK_EX); /* a file system without locks: nothing can take it either */
    if (fstat(w->lock, &locked) == 0 && stat(w->path, &named) == 0 && named.st_ino == locked.st_ino &&
        named.st_dev == locked.st_dev)
      return 0;
    close(w->lock);
  }
  return -1;
}

void kf_work_path(const kf_work_t *w, const char *name, char *out) {
  snprintf(out, KF_PATH_SIZE + KF_NAME_SIZE, "%s/%s", w->path, name);
}

void kf_work_end(kf_work_t *w) {
  DIR *files = opendir(w->path);
  for (const struct dirent *f; files && (f = readdir(files)) != NULL;) unlinkat(dirfd(files), f->d_name, 0);
  if (files) closedir(files);
  rmdir(w->path);
  close(w->lock);
}
