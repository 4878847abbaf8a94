/* Files to one tree.
 *
 *     file ── parse ─┬─ include: a.yaml  (lowest)
 *                    ├─ include: b.yaml  (over a)
 *                    └─ itself           (over both) ── --set ── ${variables}
 *
 * Maps merge key by key, anything else is replaced. An item {include: F} among the stages is replaced by F's stages.
 * A file that includes itself, directly or not, is refused with the whole chain. */
#include <config/compose.h>

#include <base/file.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_BYTES (1u << 20)
#define MAX_INCLUDES 16u

char *aoth_path_dir(kit_arena_t *arena, const char *path) {
  const char *slash = strrchr(path, '/');
  if (!slash) return kit_arena_text(arena, ".", 1);
  return kit_arena_text(arena, path, slash == path ? 1 : (size_t)(slash - path));
}

static const char *join(kit_arena_t *arena, const char *dir, const char *name) {
  if (name[0] == '/' || name[0] == 0 || strcmp(dir, ".") == 0) return kit_arena_text(arena, name, strlen(name));
  kit_text_t t = {0};
  kit_text_f(&t, "%s/%s", dir, name);
  const char *path = kit_arena_text(arena, t.data ? t.data : "", t.size);
  kit_text_deinit(&t);
  return path;
}

const char *aoth_path_resolve(kit_arena_t *arena, const aoth_yaml_t *node, const char *text) {
  return join(arena, (node->variable ? node->variable : node)->file->dir, text);
}

/* Up to MAX_BYTES + 1 bytes of a file, so that a file too big is seen as such. NULL: *out_why says why. */
static char *read_text(kit_arena_t *arena, const char *path, unsigned how, size_t *out_size, const char **out_why) {
  struct stat st;
  const int fd = kit_file_open(path, how, &st, out_why);
  if (fd < 0) return NULL;
  size_t n = 0;
  char *text = kit_arena_alloc(arena, 1, MAX_BYTES + 2);
  if (!text) *out_why = strerror(ENOMEM);
  while (text && n <= MAX_BYTES) {
    const ssize_t got = read(fd, text + n, MAX_BYTES + 1 - n);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      *out_why = strerror(errno);
      text = NULL;
    }
    if (got <= 0) break;
    n += (size_t)got;
  }
  close(fd);
  *out_size = n;
  return text;
}

/* Later wins; maps key by key. */
static aoth_yaml_t *merge(kit_arena_t *arena, aoth_yaml_t *base, aoth_yaml_t *over) {
  if (!base || base->kind != AOTH_YAML_MAP || over->kind != AOTH_YAML_MAP) return over;
  for (uint32_t i = 0; i < over->n; i++) {
    aoth_yaml_t *old = aoth_yaml_get(base, over->pairs[i].key->text.data);
    aoth_yaml_t *value = merge(arena, old, over->pairs[i].value);
    if (!value || !aoth_yaml_put(arena, base, over->pairs[i].key, value)) return NULL;
  }
  base->file = over->file; /* complaints about the whole map go to the file on top */
  base->line = over->line;
  base->column = over->column;
  base->end_column = over->end_column;
  return base;
}

static aoth_yaml_t *load_file(aoth_compose_t *c, const char *path, const aoth_yaml_t *from);

/* Same file as one that is being read? Compared by device and inode, so that links do not hide a cycle. */
static int is_cycle(aoth_compose_t *c, const char *path, const aoth_yaml_t *from) {
  struct stat mine, other;
  if (!from || stat(path, &mine) != 0) return 0;
  uint32_t depth = 0;
  for (const aoth_yaml_file_t *f = from->file; f; f = f->includer) {
    if (++depth > MAX_INCLUDES) {
      aoth_yaml_error(c->sink, c->arena, from, "pipeline.include", "includes are nested more than %u files deep",
                      MAX_INCLUDES);
      return 1;
    }
    if (stat(f->name, &other) != 0 || other.st_dev != mine.st_dev || other.st_ino != mine.st_ino) continue;
    aoth_yaml_error(c->sink, c->arena, from, "pipeline.include-cycle", "'%s' includes itself", f->name);
    return 1;
  }
  return 0;
}

static aoth_yaml_t *load_include(aoth_compose_t *c, aoth_yaml_t *node, aoth_yaml_t *vars) {
  if (node->kind != AOTH_YAML_SCALAR || node->text.size == 0) {
    aoth_yaml_error(c->sink, c->arena, node, "pipeline.include",
                    "'include': expected a path or a list of paths, got %s", aoth_yaml_kind(node));
    return NULL;
  }
  aoth_vars_fill(c, node, vars);
  return load_file(c, aoth_path_resolve(c->arena, node, node->text.data), node);
}

/* The stages list with every {include: F} replaced by the stages of F; F's variables go below ours. */
static void splice_stages(aoth_compose_t *c, aoth_yaml_t *tree, aoth_yaml_t *vars, aoth_yaml_t **base) {
  aoth_yaml_t *stages = aoth_yaml_get(tree, "stages");
  if (!stages || stages->kind != AOTH_YAML_LIST) return;
  aoth_yaml_t **old = stages->items;
  const uint32_t n = stages->n;
  stages->items = NULL;
  stages->n = stages->capacity = 0;
  for (uint32_t i = 0; i < n; i++) {
    aoth_yaml_t *path = aoth_yaml_get(old[i], "include");
    if (!path) {
      aoth_yaml_append(c->arena, stages, old[i]);
      continue;
    }
    if (old[i]->n != 1)
      aoth_yaml_error(c->sink, c->arena, old[i], "pipeline.include",
                      "a map with an included list of stages cannot have other keys");
    aoth_yaml_t *file = load_include(c, path, vars);
    if (!file) continue;
    aoth_yaml_t *inner = aoth_yaml_get(file, "stages"), *inner_vars = aoth_yaml_get(file, "vars");
    if (!inner || inner->kind != AOTH_YAML_LIST) {
      aoth_yaml_error(c->sink, c->arena, path, "pipeline.include", "'%s' has no list of stages", path->text.data);
      continue;
    }
    for (uint32_t k = 0; k < inner->n; k++) aoth_yaml_append(c->arena, stages, inner->items[k]);
    if (inner_vars) {
      aoth_yaml_t *only_vars = aoth_yaml_map(c->arena, tree);
      if (only_vars &&
          aoth_yaml_put(c->arena, only_vars, aoth_yaml_scalar(c->arena, inner_vars, "vars", 4), inner_vars))
        *base = *base ? merge(c->arena, *base, only_vars) : only_vars;
    }
  }
}

static void drop_key(aoth_yaml_t *map, const char *key) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < map->n; i++)
    if (strcmp(map->pairs[i].key->text.data, key) != 0) map->pairs[kept++] = map->pairs[i];
  map->n = kept;
}

/* Said in each file by itself, so that an included one cannot say it for the others; fragments may leave it out. */
static void check_version(aoth_compose_t *c, const aoth_yaml_t *tree, const aoth_yaml_t *from) {
  const aoth_yaml_t *aot = aoth_yaml_get(tree, "aot");
  int64_t version = 0;
  if (!aot && !from) {
    aoth_yaml_error(c->sink, c->arena, tree, "pipeline.version",
                    "missing language version; add 'aot: 1' at the top of the file");
  } else if (aot && (!aoth_yaml_i64(aot, &version) || version != 1)) {
    aoth_yaml_error(c->sink, c->arena, aot, "pipeline.version",
                    "unsupported language version; this aothost reads 'aot: 1'");
  }
}

/* One file with everything it includes below it. from: the node that named it, NULL for the pipeline itself. */
static aoth_yaml_t *load_file(aoth_compose_t *c, const char *path, const aoth_yaml_t *from) {
  if (is_cycle(c, path, from)) return NULL;
  if (c->n_files >= AOTH_MAX_FILES) {
    if (c->n_files == AOTH_MAX_FILES)
      aoth_yaml_error(c->sink, c->arena, from, "pipeline.include", "more than %u files are included", AOTH_MAX_FILES);
    c->n_files = AOTH_MAX_FILES + 1;
    return NULL;
  }
  c->files[c->n_files++] = path;
  const aot_str_t given = from ? (aot_str_t){0} : c->overrides->text;
  size_t size = (size_t)given.size;
  const char *why = NULL;
  const char *text = given.data ? given.data : read_text(c->arena, path, from ? 0 : KIT_OPEN_PIPE, &size, &why);
  if (!text) {
    if (from) aoth_yaml_error(c->sink, c->arena, from, "pipeline.include", "cannot read '%s': %s", path, why);
    else aoth_sink_report(c->sink, AOT_SEVERITY_ERROR, NULL, "pipeline.file", "cannot read '%s': %s", path, why);
    return NULL;
  }
  aoth_yaml_t *tree = NULL;
  const char *dir = aoth_path_dir(c->arena, path);
  aoth_yaml_parse(c->arena, path, dir, text, size, from ? from->file : NULL, from ? from->line : 0, c->sink, &tree);
  if (!tree) return NULL;
  if (tree->kind != AOTH_YAML_MAP) {
    aoth_yaml_error(c->sink, c->arena, tree, "pipeline.shape", "expected a map that starts with 'aot: 1', got %s",
                    aoth_yaml_kind(tree));
    return NULL;
  }
  check_version(c, tree, from);
  aoth_yaml_t *base = NULL, *vars = aoth_yaml_get(tree, "vars"), *include = aoth_yaml_get(tree, "include");
  const uint32_t n = !include ? 0 : include->kind == AOTH_YAML_LIST ? include->n : 1;
  for (uint32_t i = 0; i < n; i++) {
    aoth_yaml_t *below = load_include(c, include->kind == AOTH_YAML_LIST ? include->items[i] : include, vars);
    if (below) base = base ? merge(c->arena, base, below) : below;
  }
  drop_key(tree, "include");
  splice_stages(c, tree, vars, &base);
  return base ? merge(c->arena, base, tree) : tree;
}

/* The names by which --set finds a stage may be variables themselves. */
static void fill_stage_names(aoth_compose_t *c, aoth_yaml_t *tree, aoth_yaml_t *vars) {
  const aoth_yaml_t *stages = aoth_yaml_get(tree, "stages");
  for (uint32_t i = 0; stages && stages->kind == AOTH_YAML_LIST && i < stages->n; i++) {
    aoth_yaml_t *use = aoth_yaml_get(stages->items[i], "use"), *as = aoth_yaml_get(stages->items[i], "as");
    if (use) aoth_vars_fill(c, use, vars);
    if (as) aoth_vars_fill(c, as, vars);
  }
}

aoth_yaml_t *aoth_compose(aoth_compose_t *c, const char *path) {
  aoth_set_vars(c);
  aoth_yaml_t *tree = load_file(c, path, NULL);
  if (!tree) return NULL;
  aoth_yaml_t *vars = aoth_yaml_get(tree, "vars");
  fill_stage_names(c, tree, vars);
  aoth_set_apply(c, tree);
  for (uint32_t i = 0; i < tree->n; i++)
    if (tree->pairs[i].value != vars) aoth_vars_fill(c, tree->pairs[i].value, vars);
  if (vars) aoth_vars_fill(c, vars, vars); /* complaints about variables that nothing reads, too */
  aoth_vars_unused(c, tree);
  return tree;
}
