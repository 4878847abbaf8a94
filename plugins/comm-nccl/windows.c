#include "windows.h"

#include "attempt.h"
#include "kit/base/splitmix.h"
#include "kit/cuda/symbols.h"
#include <aot/inline.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void nl_memory_open(nl_memory_t *out) {
  char missing[128];
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); /* open anyway where there is a device */
  const nv_symbol_t symbols[] = {
      {"cuMemGetAddressRange_v2", &out->get_address_range},
      {"cuMemRetainAllocationHandle", &out->retain_handle},
      {"cuMemRelease", &out->release},
      {"cuStreamCreate", &out->stream_create},
      {"cuStreamSynchronize", &out->stream_synchronize},
      {"cuStreamDestroy_v2", &out->stream_destroy},
  };
  *out = (nl_memory_t){0};
  if (!library || !nv_find_symbols(library, symbols, sizeof symbols / sizeof *symbols, missing, sizeof missing))
    *out = (nl_memory_t){0};
}

/* ---- where buffers lie ---- */

/* What a rank says of a piece of work, and of its windows. */
typedef struct note {
  uint64_t places; /* where each buffer lies, as a hash: equal, if they lie alike */
  uint64_t fresh;  /* bit k: row k would be a window */
  uint64_t gone;   /* bit k: window k has no memory any more */
} note_t;

static int is_mappable(const nl_memory_t *m, uint64_t address) {
  uint64_t handle;
  if (m->retain_handle(&handle, (void *)(uintptr_t)address) != 0) return 0;
  m->release(handle);
  return 1;
}

static int lies_in(const nl_window_t *w, aot_buffer_t b) {
  const uint64_t at = b.address - w->begin;
  return b.address >= w->begin && at <= w->nbytes && b.nbytes <= w->nbytes - at;
}

/* The row that it is in, or would; NL_MOST_WINDOWS: none. Rows of `rows` beyond those of windows are filled as they
 * are found. */
static uint32_t find_row(nl_window_t *rows, const nl_memory_t *m, aot_buffer_t b, note_t *note) {
  size_t nbytes = 0;
  uint64_t begin = 0;
  uint32_t k = 0;
  if (!b.nbytes) return NL_MOST_WINDOWS;
  while (k < NL_MOST_WINDOWS && !(rows[k].nbytes && lies_in(&rows[k], b))) k++;
  if (k < NL_MOST_WINDOWS) return k;
  if (m->get_address_range(&begin, &nbytes, b.address) != 0 || !is_mappable(m, begin)) return NL_MOST_WINDOWS;
  const nl_window_t fresh = {.begin = begin, .nbytes = nbytes};
  if (!lies_in(&fresh, b)) return NL_MOST_WINDOWS;
  for (k = 0; k < NL_MOST_WINDOWS && rows[k].nbytes;) k++;
  if (k == NL_MOST_WINDOWS) return k;
  rows[k] = fresh;
  note->fresh |= UINT64_C(1) << k;
  return k;
}

static void note_place(nl_window_t *rows, const nl_memory_t *m, aot_buffer_t b, note_t *note) {
  const uint32_t k = find_row(rows, m, b, note);
  const int is_in = k < NL_MOST_WINDOWS;
  note->places = kit_mix64(note->places, k);
  note->places = kit_mix64(note->places, is_in ? b.address - rows[k].begin : 0);
  note->places = kit_mix64(note->places, is_in ? rows[k].nbytes : 0);
}

uint64_t nl_larger_side(const aot_collective_t *what) {
  return what->to.nbytes > what->from.nbytes ? what->to.nbytes : what->from.nbytes;
}

aot_status_t nl_tell_all(const aot_communicator_t *table, aot_group_t *group, uint32_t n_ranks, const void *own,
                         void *all, uint64_t nbytes) {
  const aot_collective_t tell = {.struct_size = sizeof tell,
                                 .kind = AOT_COLLECTIVE_ALL_GATHER,
                                 .dtype = AOT_U8,
                                 .to = {(uintptr_t)all, n_ranks * nbytes},
                                 .from = {(uintptr_t)own, nbytes},
                                 .what = aot_str("what NCCL can know of buffers")};
  return table->collect(table, NULL, group, &tell);
}

int nl_goes_through_windows(const nl_windows_t *w, const aot_collective_t *what) {
  return w->from && what->kind != AOT_COLLECTIVE_BROADCAST && nl_larger_side(what) >= w->from;
}

/* rows: the windows; those that are to be are added. */
static note_t note_of(const nl_windows_t *w, nl_window_t *rows, const nl_windows_how_t *how,
                      const aot_collective_t *const *what, uint64_t n) {
  note_t note = {0};
  for (uint32_t k = 0; k < NL_MOST_WINDOWS; k++)
    if (rows[k].nbytes && !is_mappable(how->memory, rows[k].begin)) note.gone |= UINT64_C(1) << k;
  for (uint64_t i = 0; i < n; i++) {
    if (!nl_goes_through_windows(w, what[i])) continue;
    note_place(rows, how->memory, what[i]->from, &note);
    note_place(rows, how->memory, what[i]->to, &note);
  }
  return note;
}

/* What holds for all ranks. 0: their buffers do not lie alike. */
static int merge(const note_t *all, uint32_t n_ranks, note_t *out) {
  int are_alike = 1;
  *out = all[0];
  for (uint32_t r = 1; r < n_ranks; r++) {
    are_alike &= all[r].places == all[0].places && all[r].fresh == all[0].fresh;
    out->gone &= all[r].gone;
  }
  return are_alike;
}

/* ---- asking NCCL, by a thread of its own ---- */

typedef struct change {
  nl_nccl_t nccl;
  const aot_ext_stream_t *stream;
  nl_comm_t comm;
  uint64_t out, in;                  /* bit k: row k is returned; becomes a window */
  nl_window_t rows[NL_MOST_WINDOWS]; /* without a handle: it could not be made */
} change_t;

static void do_change(void *arg) {
  change_t *c = arg;
  if (c->stream->enter(c->stream, NULL) != AOT_OK) return;
  for (uint32_t k = 0; k < NL_MOST_WINDOWS; k++) {
    nl_window_t *w = &c->rows[k];
    if (c->out >> k & 1) {
      c->nccl.window_deregister(c->comm, w->handle);
      *w = (nl_window_t){0};
    } else if (c->in >> k & 1) {
      const int code = c->nccl.window_register(c->comm, (void *)(uintptr_t)w->begin, (size_t)w->nbytes, &w->handle,
                                               NL_WINDOW_SYMMETRIC);
      if (code) w->handle = NULL;
    }
  }
}

static aot_status_t ask(nl_window_t *rows, const nl_windows_how_t *how, uint64_t out, uint64_t in, char *why,
                        size_t size) {
  change_t *c = calloc(1, sizeof *c);
  if (!c) return AOT_E_EXHAUSTED;
  *c = (change_t){.nccl = *how->nccl, .stream = how->stream, .comm = how->comm, .out = out, .in = in};
  memcpy(c->rows, rows, sizeof c->rows);
  nl_attempt_t *a = nl_attempt_begin(do_change, c);
  if (!a) {
    free(c);
    return AOT_E_EXHAUSTED;
  }
  const int has_ended = nl_attempt_ends(a, how->patience_ns + 1000000000u);
  if (has_ended) memcpy(rows, c->rows, sizeof c->rows);
  else snprintf(why, size, "ncclCommWindowRegister has not ended within %.3g s", (double)how->patience_ns / 1e9);
  nl_attempt_forget(a, free);
  return has_ended ? AOT_OK : AOT_E_UNAVAILABLE;
}

/* Of these rows those that are windows. */
static uint64_t made(const nl_window_t *rows, uint64_t in) {
  uint64_t bits = 0;
  for (uint32_t k = 0; k < NL_MOST_WINDOWS; k++)
    if (in >> k & 1 && rows[k].handle) bits |= UINT64_C(1) << k;
  return bits;
}

/* ---- the whole ---- */

/* What not all ranks could make: those that all have are returned, others go with the communicator. */
static aot_status_t undo(nl_windows_t *w, nl_window_t *rows, const nl_windows_how_t *how, uint64_t by_all,
                         uint64_t fresh, char *why, size_t size) {
  if (by_all) AOT_TRY(ask(rows, how, by_all, 0, why, size));
  for (uint32_t k = 0; k < NL_MOST_WINDOWS; k++)
    if (fresh >> k & 1) rows[k] = (nl_window_t){0};
  memcpy(w->rows, rows, sizeof w->rows);
  w->from = 0;
  return AOT_OK;
}

/* rows: with those that are to be. */
static aot_status_t change(nl_windows_t *w, nl_window_t *rows, const nl_windows_how_t *how, const note_t *note,
                           uint64_t *all, char *why, size_t size) {
  AOT_TRY(ask(rows, how, note->gone, note->fresh, why, size));
  const uint64_t own = made(rows, note->fresh);
  uint64_t by_all = note->fresh;
  if (note->fresh) AOT_TRY(nl_tell_all(how->table, how->group, how->n_ranks, &own, all, sizeof own));
  for (uint32_t r = 0; r < how->n_ranks && note->fresh; r++) by_all &= all[r];
  if (by_all != note->fresh) return undo(w, rows, how, by_all, note->fresh, why, size);
  memcpy(w->rows, rows, sizeof w->rows);
  return AOT_OK;
}

static aot_status_t agree(nl_windows_t *w, const nl_windows_how_t *how, const aot_collective_t *const *what, uint64_t n,
                          note_t *all, char *why, size_t size) {
  nl_window_t rows[NL_MOST_WINDOWS];
  note_t common;
  memcpy(rows, w->rows, sizeof rows);
  const note_t own = note_of(w, rows, how, what, n);
  AOT_TRY(nl_tell_all(how->table, how->group, how->n_ranks, &own, all, sizeof own));
  if (!merge(all, how->n_ranks, &common)) w->from = 0;
  if (!w->from || (!common.fresh && !common.gone)) return AOT_OK;
  return change(w, rows, how, &common, (uint64_t *)(void *)all, why, size);
}

aot_status_t nl_windows_prepare(nl_windows_t *w, const nl_windows_how_t *how, const aot_collective_t *const *what,
                                uint64_t n, char *why, size_t size) {
  note_t *all = calloc(how->n_ranks, sizeof *all);
  if (!all) return AOT_E_EXHAUSTED;
  const aot_status_t status = agree(w, how, what, n, all, why, size);
  free(all);
  return status;
}

void nl_windows_drop(nl_windows_t *w, const nl_nccl_t *nccl, nl_comm_t comm) {
  for (uint32_t k = 0; k < NL_MOST_WINDOWS; k++)
    if (w->rows[k].nbytes) nccl->window_deregister(comm, w->rows[k].handle);
  *w = (nl_windows_t){0};
}
