/* From files and --set to one tree: include, merge, override, substitute. */
#ifndef AOTH_COMPOSE_H
#define AOTH_COMPOSE_H

#include <config/pipeline.h>
#include <config/yaml.h>

#define AOTH_MAX_FILES 64u

typedef struct aoth_compose {
  kit_arena_t *arena;
  aoth_sink_t *sink;
  const aoth_overrides_t *overrides; /* never NULL */
  uint32_t n_files;                  /* that were opened; one more than AOTH_MAX_FILES where there are too many */
  uint32_t reserved;
  aoth_yaml_t *set_vars; /* variables that --set gives: a map, or NULL */
  const char *files[AOTH_MAX_FILES];
} aoth_compose_t;

/* The merged tree, variables filled in. NULL with complaints in the sink when there is no tree to speak of; a tree with
 * complaints lets the caller continue to further ones. */
aoth_yaml_t *aoth_compose(aoth_compose_t *c, const char *path);

/* set.c: variables first, the rest when the tree is merged. */
void aoth_set_vars(aoth_compose_t *c);
void aoth_set_apply(aoth_compose_t *c, aoth_yaml_t *tree);

/* vars.c: fill in ${name} and ${name:-default} below node. `vars` may be NULL. */
void aoth_vars_fill(aoth_compose_t *c, aoth_yaml_t *node, aoth_yaml_t *vars);
void aoth_vars_unused(aoth_compose_t *c, const aoth_yaml_t *tree); /* complain of --set vars.x that nothing reads */

/* text relative to the folder of the file that wrote node; absolute and empty texts as they are. */
const char *aoth_path_resolve(kit_arena_t *arena, const aoth_yaml_t *node, const char *text);
char *aoth_path_dir(kit_arena_t *arena, const char *path); /* "." for a bare name */

#endif
