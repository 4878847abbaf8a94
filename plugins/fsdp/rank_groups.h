/* Groups of the run's ranks by the names that programs have for them (aot/ext/ranks.h): all, and rows and columns of
 * meshes, which come to be when they are first used. */
#ifndef FS_RANK_GROUPS_H
#define FS_RANK_GROUPS_H

#include <aot/ext/ranks.h>

enum { FS_MOST_GROUPS = 8 };

typedef struct fs_group {
  char name[32];
  aot_group_t *group;
  uint32_t n_ranks;
} fs_group_t;

typedef struct fs_groups {
  aot_run_ranks_t ranks;
  fs_group_t made[FS_MOST_GROUPS];
  uint32_t n_made;
} fs_groups_t;

/* AOT_E_NOT_FOUND: nothing has such a name; AOT_E_PRECONDITION: the ranks are no such mesh. *out_is_new: it is yet to
 * be made, by fs_group_make, when nothing else of the ranks is under way. */
aot_status_t fs_group_find(fs_groups_t *g, aot_str_t name, const fs_group_t **out, int *out_is_new);
aot_status_t fs_group_make(fs_groups_t *g, aot_str_t name, const fs_group_t **out);

/* The first group that has failed says why; all others are to fail, too, since their ranks would wait. */
aot_str_t fs_groups_failure(fs_groups_t *g);
void fs_groups_leave(fs_groups_t *g); /* all but that of the run */

#endif
