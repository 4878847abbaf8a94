#include "kit/base/vector.h"
#include <trainer/save_of_ranks.h>

#include <aot/ext/leaf_part.h>
#include <aot/inline.h>
#include "kit/base/arena.h"
#include <base/clock.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <compiler/run_ranks.h>
#include <trainer/tensors/digests.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <trainer/saved_run.h>
#include <unistd.h>
#include <trainer/tensors/step_file.h>

#define FOLDER "step-"
#define MAX_TURNS 10000 /* folders of one step, of runs that were killed */

typedef struct saver {
  const char *path;
  const aoth_step_t *step;
  const aoth_checkpoint_ranks_t *ranks;
  aoth_sink_t *sink;
  kit_arena_t *arena;
  char folder[64], folder_path[4096];
  aoth_st_entry_t *leaf;
  const char **part; /* by leaf: what the index says of it; NULL: all ranks have it alike */
  uint64_t *hash;    /* by leaf */
  uint32_t n, capacity;
} saver_t;

int64_t aoth_rows_of_parts(int64_t per_rank, uint32_t n, uint32_t flags) {
  const int64_t most = per_rank * n;
  return most - ((most - (int64_t)(flags >> AOT_LEAF_PART_ROWS_SHIFT)) & 0xFFFF);
}

/* ---- before the work ---- */

static aot_status_t check_writable(const char *path, const aoth_where_t *where, aoth_sink_t *sink) {
  struct stat st;
  if (mkdir(path, 0777) != 0 && errno == EEXIST && stat(path, &st) == 0 && !S_ISDIR(st.st_mode)) errno = ENOTDIR;
  else if (access(path, W_OK | X_OK) == 0) return AOT_OK;
  aoth_sink_report(sink, AOT_SEVERITY_ERROR, where, "run.unwritable",
                   "the checkpoint, a folder of several ranks, cannot be written to %s: %s", path, strerror(errno));
  return AOT_E_INVALID;
}

typedef struct mark {
  char path[4160];
  uint64_t number; /* in its name, which nothing has had; 0: none was made */
} mark_t;

static void name_mark(mark_t *m, const char *path, uint64_t number) {
  m->number = number;
  snprintf(m->path, sizeof m->path, "%.4095s/.rank-0-%llx", path, (unsigned long long)number);
}

static void make_mark(mark_t *m, const char *path) {
  name_mark(m, path, aoth_now_ns() ^ (uint64_t)getpid() << 40);
  const int file = open(m->path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (file < 0) m->number = 0;
  else close(file);
}

/* Which rank cannot say so; n: none. */
static uint32_t find_unlike(const aoth_checkpoint_ranks_t *ranks, uint64_t *all, uint64_t own, aot_status_t *status) {
  uint32_t r = 0;
  if (*status == AOT_OK)
    *status = aoth_session_gather(ranks->session, &own, sizeof own, all, "the checkpoint's folder");
  if (*status != AOT_OK) return ranks->n;
  while (r < ranks->n && all[r]) r++;
  return r;
}

/* The first rank makes a file, the others look for it: on another machine a folder of that name may be another one. */
aot_status_t aoth_checkpoint_check_folder(const char *path, const aoth_checkpoint_ranks_t *ranks,
                                          const aoth_where_t *where, aoth_sink_t *sink) {
  uint64_t *all = calloc(ranks->n, sizeof *all);
  mark_t mark = {.number = 1};
  aot_status_t status = all ? AOT_OK : AOT_E_EXHAUSTED;
  if (check_writable(path, where, sink) != AOT_OK) mark.number = 0;
  else if (ranks->rank == 0) make_mark(&mark, path);
  const uint32_t unwritable = find_unlike(ranks, all, mark.number, &status);
  if (status == AOT_OK && unwritable < ranks->n) {
    status = AOT_E_INVALID;
    if (unwritable != ranks->rank)
      aoth_sink_report(sink, AOT_SEVERITY_ERROR, where, "run.unwritable",
                       "rank %u cannot write to the checkpoint, the folder %s", unwritable, path);
  }
  if (status == AOT_OK && ranks->rank) name_mark(&mark, path, all[0]);
  const uint32_t blind = find_unlike(ranks, all, access(mark.path, F_OK) == 0, &status);
  if (status == AOT_OK && blind < ranks->n) {
    status = AOT_E_INVALID;
    aoth_sink_report(
        sink, AOT_SEVERITY_ERROR, where, "run.unshared",
        "rank %u does not see what rank 0 writes to the checkpoint, the folder %s: ranks of several machines "
        "need one that all of them share",
        blind, path);
  }
  if (ranks->rank == 0 && mark.number) unlink(mark.path);
  free(all);
  return status;
}

/* ---- what is whose ---- */

static uint64_t hash_of(const aoth_tensor_t *t) {
  char digest[AOTH_DIGEST_CHARS + 1];
  aoth_tensor_digest(t, digest);
  digest[16] = 0;
  return strtoull(digest, NULL, 16);
}

static int grow(saver_t *s) {
  uint32_t capacity[3] = {s->capacity, s->capacity, s->capacity}; /* three arrays that grow alike */
  aoth_st_entry_t *leaf = kit_grow(s->leaf, &capacity[0], (uint64_t)s->n + 1, sizeof *leaf);
  if (leaf) s->leaf = leaf;
  const char **part = kit_grow(s->part, &capacity[1], (uint64_t)s->n + 1, sizeof *part);
  if (part) s->part = part;
  uint64_t *hash = kit_grow(s->hash, &capacity[2], (uint64_t)s->n + 1, sizeof *hash);
  if (hash) s->hash = hash;
  if (!leaf || !part || !hash) return 0;
  s->capacity = capacity[0];
  return 1;
}

static aot_status_t add_leaf(void *self, const char *key, const aoth_tensor_t *t) {
  saver_t *s = self;
  const uint32_t flags = aoth_step_leaf_flags(s->step, key);
  const char *name = kit_arena_text(s->arena, key, strlen(key));
  if (!name || !grow(s)) return aoth_sink_no_memory(s->sink, NULL, "run.memory", "to list the tensors of %s", s->path);
  s->leaf[s->n] = (aoth_st_entry_t){.name = name, .tensor = *t};
  s->part[s->n] = NULL;
  s->hash[s->n] = 0;
  if (flags & AOT_LEAF_PART) {
    char rows[24];
    const int n = snprintf(rows, sizeof rows, "%lld",
                           (long long)aoth_rows_of_parts(t->sizes[0], aoth_session_n_parts(s->ranks->session), flags));
    s->part[s->n] = kit_arena_text(s->arena, rows, (size_t)n);
  } else {
    s->hash[s->n] = hash_of(t);
  }
  s->n++;
  return AOT_OK;
}

static aot_status_t gather(const saver_t *s, const void *row, uint64_t nbytes, void *out) {
  return aoth_session_gather(s->ranks->session, row, nbytes, out, "a checkpoint");
}

/* What no stage has shared out, and ranks have not alike, is each one's own: statistics of its own rows, say. */
static aot_status_t find_own(saver_t *s) {
  uint64_t *all = calloc((size_t)s->ranks->n * s->n + 1, sizeof *all);
  if (!all) return aoth_sink_no_memory(s->sink, NULL, "run.memory", "to list the tensors of %s", s->path);
  const aot_status_t status = gather(s, s->hash, s->n * sizeof *all, all);
  for (uint32_t r = 1; status == AOT_OK && r < s->ranks->n; r++)
    for (uint32_t i = 0; i < s->n; i++)
      if (all[(size_t)r * s->n + i] != all[i]) s->part[i] = AOTH_SAVED_OWN;
  free(all);
  return status;
}

/* ---- the folder ---- */

static aot_status_t complain(const saver_t *s, const char *verb, const char *path) {
  aoth_sink_report(s->sink, AOT_SEVERITY_ERROR, NULL, "file.write", "cannot %s %s: %s", verb, path, strerror(errno));
  return AOT_E_INVALID;
}

static void remove_folder(const saver_t *s, const char *name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", s->path, name);
  DIR *folder = opendir(path);
  if (!folder) return;
  for (const struct dirent *e; (e = readdir(folder));)
    if (strncmp(e->d_name, "rank-", 5) == 0) unlinkat(dirfd(folder), e->d_name, 0);
  closedir(folder);
  rmdir(path);
}

/* All but the one that the index names. */
static void sweep(const saver_t *s) {
  DIR *folder = opendir(s->path);
  if (!folder) return;
  for (const struct dirent *e; (e = readdir(folder));)
    if (strncmp(e->d_name, FOLDER, sizeof FOLDER - 1) == 0 && strcmp(e->d_name, s->folder) != 0)
      remove_folder(s, e->d_name);
  closedir(folder);
}

/* A new one: 0 in `turn` where it cannot be made. */
static uint32_t make_folder(const saver_t *s, int64_t step) {
  char path[4096];
  for (uint32_t turn = 1; turn < MAX_TURNS; turn++) {
    snprintf(path, sizeof path, "%s/" FOLDER "%lld.%u", s->path, (long long)step, turn);
    if (mkdir(path, 0777) == 0) return turn;
    if (errno != EEXIST) break;
  }
  complain(s, "make", path);
  return 0;
}

/* The first rank makes it, all take its name from there. */
static aot_status_t agree_folder(saver_t *s, int64_t step) {
  uint32_t *all = calloc(s->ranks->n, sizeof *all);
  if (!all) return aoth_sink_no_memory(s->sink, NULL, "run.memory", "to list the tensors of %s", s->path);
  const uint32_t turn = s->ranks->rank == 0 ? make_folder(s, step) : 0;
  const aot_status_t status = gather(s, &turn, sizeof turn, all);
  snprintf(s->folder, sizeof s->folder, FOLDER "%lld.%u", (long long)step, all[0]);
  snprintf(s->folder_path, sizeof s->folder_path, "%s/%s", s->path, s->folder);
  const int is_made = all[0] != 0;
  free(all);
  return status == AOT_OK && !is_made ? AOT_E_INVALID : status;
}

static aot_status_t write_part(const saver_t *s) {
  char path[4160];
  aoth_st_entry_t *own = calloc((size_t)s->n + 1, sizeof *own);
  uint32_t n = 0;
  if (!own) return aoth_sink_no_memory(s->sink, NULL, "run.memory", "to list the tensors of %s", s->path);
  for (uint32_t i = 0; i < s->n; i++)
    if (s->part[i]) own[n++] = s->leaf[i];
  snprintf(path, sizeof path, "%s/rank-%u.safetensors", s->folder_path, s->ranks->rank);
  const aot_status_t status = aoth_st_write_with(path, AOTH_ST_OWN_NAME | AOTH_ST_DIGESTS, own, n, NULL, 0, s->sink);
  free(own);
  return status;
}

static aot_status_t agree_done(const saver_t *s, aot_status_t own) {
  int32_t *all = calloc(s->ranks->n, sizeof *all);
  if (!all) return aoth_sink_no_memory(s->sink, NULL, "run.memory", "to list the tensors of %s", s->path);
  aot_status_t status = gather(s, &own, sizeof own, all);
  for (uint32_t r = 0; r < s->ranks->n && status == AOT_OK; r++) {
    if (all[r] == AOT_OK) continue;
    if (r != s->ranks->rank)
      aoth_sink_report(s->sink, AOT_SEVERITY_ERROR, NULL, "checkpoint.rank",
                       "rank %u could not write its part of the checkpoint %s; the one before stays", r, s->path);
    status = all[r];
  }
  free(all);
  return status;
}

static aot_status_t write_index(const saver_t *s, const aoth_st_meta_t *meta, uint32_t n_meta) {
  char path[4160], ranks[16], columns[16];
  const uint32_t n_columns = aoth_session_n_parts(s->ranks->session);
  aoth_st_meta_t *all = calloc((size_t)n_meta + s->n + 3, sizeof *all);
  aoth_st_entry_t *alike = calloc((size_t)s->n + 1, sizeof *alike);
  uint32_t n = n_meta, n_alike = 0;
  kit_text_t name = {0};
  snprintf(path, sizeof path, "%s/" AOTH_SAVED_INDEX, s->path);
  snprintf(ranks, sizeof ranks, "%u", s->ranks->n);
  snprintf(columns, sizeof columns, "%u", n_columns);
  aot_status_t status =
      all && alike ? AOT_OK : aoth_sink_no_memory(s->sink, NULL, "run.memory", "to list the tensors of %s", s->path);
  if (status == AOT_OK) {
    memcpy(all, meta, n_meta * sizeof *all);
    all[n++] = (aoth_st_meta_t){"ranks", ranks};
    all[n++] = (aoth_st_meta_t){"folder", s->folder};
    if (n_columns != s->ranks->n) all[n++] = (aoth_st_meta_t){"columns", columns};
  }
  for (uint32_t i = 0; i < s->n && status == AOT_OK; i++) {
    if (!s->part[i]) {
      alike[n_alike++] = s->leaf[i];
      continue;
    }
    name.size = 0;
    kit_text_f(&name, AOTH_SAVED_PART "%s", s->leaf[i].name);
    const char *key = name.failed ? NULL : kit_arena_text(s->arena, name.data, name.size);
    all[n++] = (aoth_st_meta_t){key, s->part[i]};
    if (!key) status = aoth_sink_no_memory(s->sink, NULL, "run.memory", "to list the tensors of %s", s->path);
  }
  if (status == AOT_OK)
    status = aoth_st_write_with(path, AOTH_ST_OWN_NAME | AOTH_ST_DIGESTS, alike, n_alike, all, n, s->sink);
  kit_text_deinit(&name);
  free(all);
  free(alike);
  return status;
}

static aot_status_t save(saver_t *s, int64_t step, const aoth_st_meta_t *meta, uint32_t n_meta) {
  AOT_TRY(aoth_step_keys(s->step, AOTH_KEYS_LEAVES, add_leaf, s));
  AOT_TRY(find_own(s));
  AOT_TRY(agree_folder(s, step));
  aot_status_t status = agree_done(s, write_part(s));
  if (s->ranks->rank != 0) return status;
  if (status == AOT_OK) status = write_index(s, meta, n_meta);
  if (status == AOT_OK) sweep(s);
  else remove_folder(s, s->folder);
  return status;
}

aot_status_t aoth_save_of_ranks(const char *path, const aoth_step_t *step, const aoth_checkpoint_ranks_t *ranks,
                                int64_t number, const aoth_st_meta_t *meta, uint32_t n_meta, aoth_sink_t *sink) {
  saver_t s = {.path = path, .step = step, .ranks = ranks, .sink = sink, .arena = kit_arena_create()};
  const aot_status_t status =
      s.arena ? save(&s, number, meta, n_meta)
              : aoth_sink_no_memory(s.sink, NULL, "run.memory", "to list the tensors of %s", s.path);
  kit_arena_destroy(s.arena);
  free(s.leaf);
  free(s.part);
  free(s.hash);
  return status;
}
