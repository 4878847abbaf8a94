/* Alias sets as plain arrays: which names refer to which memory. Independent of programs.
 *
 *     storage 0   base x ---- flat = view(x)
 *                      \----- t = x.t() ---- row = t[0]
 *
 * A place is an alias-set node: a base, or one view step (node and result index) from its parent place. All places over
 * one base share a storage with a version. A write increments the version; a place with an older version is stale until
 * its view steps are replayed. Names (values of the original program) refer to places; several names can share a place,
 * and a name can move (x.t_()). Names of one tensor (y = x.relu_()) are joined and move together.
 *
 * Invariants: a base is never stale, since a write refreshes it last. A place is materialized if its value has the
 * strides of the view of the base: a base, or a value made by its view step. Computed values are not materialized
 * unless stated, and are never viewed.
 *
 * O(1) each (names: amortised); fz_stale_chain, fz_depth: O(chain length). After PyTorch's FunctionalStorageImpl, with
 * versions instead of its list of updates. */
#ifndef FZ_ALIAS_SETS_H
#define FZ_ALIAS_SETS_H

#include <stdint.h>

#define FZ_NONE UINT32_MAX

typedef struct fz_place {
  uint32_t storage;
  uint32_t parent;     /* FZ_NONE: a base */
  uint32_t view_node;  /* the step from the parent */
  uint32_t view_index; /* which result of it */
  uint32_t operand;    /* which operand of it is the parent */
  uint32_t value;      /* holds the contents as of `version` */
  uint32_t version;
  uint32_t declared;    /* the name that the place was made for: its recorded type is the place's geometry */
  uint32_t written_by;  /* 1 + the last node that wrote this very place; 0: none */
  uint8_t materialized; /* see above */
  /* its gradient is not that of its parent: written beneath a step that no gradient passes, or no view for autograd */
  uint8_t own_history;
  uint8_t narrowed; /* the value has the gradient of a part of what the place shows (storage_view.h) */
} fz_place_t;

typedef struct fz_storage {
  uint32_t base;    /* a place */
  uint32_t version; /* writes so far */
  uint32_t carries; /* a gradient may flow to something in it */
  uint32_t
      resized; /* its base has another storage here, where in PyTorch this one grew: older views have no elements */
} fz_storage_t;

typedef struct fz_alias {
  fz_place_t *places;
  fz_storage_t *storages;
  uint32_t *place_of; /* by name, n_values of them; FZ_NONE: none yet; of joined names the root's counts */
  uint32_t *joined;   /* by name: another name of the same tensor, itself at the root */
  uint32_t n_places, n_storages, n_values, place_capacity, storage_capacity;
  int failed; /* memory ran out: contents are cut */
} fz_alias_t;

int fz_alias_init(fz_alias_t *a, uint32_t n_values); /* 0: done; else no memory */
void fz_alias_deinit(fz_alias_t *a);

/* A new storage with its base, held by `value`; `declared` names it. Answers the place, FZ_NONE without memory. */
uint32_t fz_alias_base(fz_alias_t *a, uint32_t declared, uint32_t value);
/* A view step from parent, fresh, held by `value`; `declared` names it. */
uint32_t fz_alias_view(fz_alias_t *a, uint32_t parent, uint32_t view_node, uint32_t view_index, uint32_t declared,
                       uint32_t value);
void fz_alias_name(fz_alias_t *a, uint32_t name, uint32_t place); /* from now on the tensor of this name is the place */
void fz_alias_join(fz_alias_t *a, uint32_t name, uint32_t other); /* name becomes a name of other's tensor */
uint32_t fz_place_of(const fz_alias_t *a, uint32_t name);         /* FZ_NONE: none */

int fz_is_stale(const fz_alias_t *a, uint32_t place);
/* The steps to replay, from the last to the first, so that the place is fresh, and materialized if queried: the place
 * and its ancestors up to one that is both. out has room for fz_depth(a, place). */
uint32_t fz_stale_chain(const fz_alias_t *a, uint32_t place, int materialized, uint32_t *out);
uint32_t fz_depth(const fz_alias_t *a, uint32_t place); /* places from here to the base, both counted */
void fz_refresh(fz_alias_t *a, uint32_t place, uint32_t value,
                int materialized);                  /* `value` holds its contents as of now */
void fz_new_version(fz_alias_t *a, uint32_t place); /* its storage is written: all places over it are stale */

#endif
