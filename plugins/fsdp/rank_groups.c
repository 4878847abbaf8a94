#include "rank_groups.h"

#include <aot/inline.h>
#include <stdio.h>
#include <string.h>

#define WORLD_OF_TORCH "0" /* how PyTorch names its group of all ranks */

typedef struct mesh {
  uint32_t n_columns;
  int is_row;
} mesh_t;

static int starts_with(aot_str_t name, const char *prefix, char *rest, size_t size) {
  const size_t n = strlen(prefix);
  if (name.size <= n || name.size - n >= size || memcmp(name.data, prefix, n) != 0) return 0;
  snprintf(rest, size, "%.*s", (int)(name.size - n), name.data + n);
  return 1;
}

static int read_mesh(aot_str_t name, mesh_t *out) {
  char number[16], more;
  out->is_row = starts_with(name, AOT_RANKS_ROWS, number, sizeof number);
  if (!out->is_row && !starts_with(name, AOT_RANKS_COLUMNS, number, sizeof number)) return 0;
  return sscanf(number, "%u%c", &out->n_columns, &more) == 1 && out->n_columns > 0;
}

aot_status_t fs_group_find(fs_groups_t *g, aot_str_t name, const fs_group_t **out, int *out_is_new) {
  mesh_t mesh;
  *out_is_new = 0;
  if (aot_str_eq(name, aot_str(AOT_RANKS_ALL)) || aot_str_eq(name, aot_str(WORLD_OF_TORCH))) {
    *out = &g->made[0];
    return AOT_OK;
  }
  if (!read_mesh(name, &mesh)) return AOT_E_NOT_FOUND;
  if (g->ranks.n_ranks % mesh.n_columns) return AOT_E_PRECONDITION;
  for (uint32_t i = 1; i < g->n_made; i++)
    if (aot_str_eq(name, aot_str(g->made[i].name))) {
      *out = &g->made[i];
      return AOT_OK;
    }
  *out_is_new = 1;
  return g->n_made < FS_MOST_GROUPS ? AOT_OK : AOT_E_EXHAUSTED;
}

aot_status_t fs_group_make(fs_groups_t *g, aot_str_t name, const fs_group_t **out) {
  const aot_communicator_t *c = g->ranks.communicator;
  fs_group_t *made = &g->made[g->n_made];
  mesh_t mesh;
  if (!read_mesh(name, &mesh)) return AOT_E_NOT_FOUND;
  const uint32_t colour = mesh.is_row ? g->ranks.rank / mesh.n_columns : g->ranks.rank % mesh.n_columns;
  AOT_TRY(c->split(c, NULL, g->ranks.group, colour, g->ranks.rank, &made->group));
  made->n_ranks = mesh.is_row ? mesh.n_columns : g->ranks.n_ranks / mesh.n_columns;
  snprintf(made->name, sizeof made->name, "%.*s", (int)name.size, name.data);
  g->n_made++;
  *out = made;
  return AOT_OK;
}

aot_str_t fs_groups_failure(fs_groups_t *g) {
  const aot_communicator_t *c = g->ranks.communicator;
  aot_str_t why = {"", 0};
  uint32_t failed = 0;
  while (failed < g->n_made && c->failure(c, g->made[failed].group, &why) == AOT_OK) failed++;
  for (uint32_t i = 0; i < g->n_made && failed < g->n_made; i++)
    if (i != failed) c->abort(c, g->made[i].group, why);
  return why;
}

void fs_groups_leave(fs_groups_t *g) {
  const aot_communicator_t *c = g->ranks.communicator;
  if (g->n_made > 1) fs_groups_failure(g);
  while (g->n_made > 1) c->leave(c, g->made[--g->n_made].group);
}
