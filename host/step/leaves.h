/* The tensors that live outside a call: parameters, buffers, constants, optimizer state. (User inputs live in a call's
 * memory.)
 *
 * A leaf is where programs use it (device/mirrored_buffer.h); the host's copy is the mapped model file until
 * something writes it. In memory that the host shares with the device, programs read it straight from the file, until
 * it is written or unless it lies otherwise than they may count on. Leaves over the same bytes of the file share a
 * storage and stay shared. */
#ifndef AOTH_LEAVES_H
#define AOTH_LEAVES_H

#include <device/mirrored_buffer.h>
#include <ir/program.h>
#include <step/tensor.h>

typedef struct aoth_leaf {
  aot_leaf_info_t info; /* names and type are [graph] memory */
  aoth_tensor_t tensor; /* its resident is the first's; USER_INPUT: geometry and data are the step's business */
  uint32_t first;       /* of the leaves that share a storage */
  aoth_mirrored_buffer_t resident; /* the first's: that storage */
  aoth_queue_t *home;              /* of the device that it lives on; NULL: the one of all */
} aoth_leaf_t;

typedef struct aoth_leaves {
  aot_prog_t *prog;
  aoth_queue_t *queue; /* of the device that they are on */
  aoth_sink_t *sink;
  aoth_leaf_t *leaf; /* by leaf id */
  uint32_t n;        /* highest id + 1 */
  uint32_t n_inputs;
  uint32_t *input; /* leaf id of each user input */
  uint32_t n_names;
  struct aoth_leaf_name *names; /* sorted by kind and name */
} aoth_leaves_t;

/* Tables alone: contents come by reset, or from another's by take. */
aot_status_t aoth_leaves_init(aoth_leaves_t *l, aot_prog_t *prog, aoth_queue_t *queue, aoth_sink_t *sink);
/* Where it lives, before it has contents; of leaves that share a storage the first's counts. */
void aoth_leaf_live(aoth_leaves_t *l, uint32_t leaf, aoth_queue_t *home);
void aoth_leaves_deinit(aoth_leaves_t *l);
aot_status_t aoth_leaves_reset(aoth_leaves_t *l); /* back to the contents in the model file */
/* The storage of a leaf is something else's memory from now on, with what it holds; or is no longer: it is copied. */
aot_status_t aoth_leaves_lend(aoth_leaves_t *l, uint32_t leaf, void *memory);
aot_status_t aoth_leaves_take_back(aoth_leaves_t *l, uint32_t leaf);
uint64_t aoth_leaves_nbytes(const aoth_leaves_t *l); /* of the device's memory that was had for them. O(leaves) */
/* All leaves that live outside calls become what those of `from`, another compile of the same program, are; `from` must
 * not be read before it took them back. AOT_E_CONTRACT, with a complaint, when they are not the same leaves.
 * O(leaves). */
aot_status_t aoth_leaves_take(aoth_leaves_t *l, aoth_leaves_t *from);
/* The parameter, buffer, constant or state leaf with this name, any of its names; AOT_NO_ID. O(log n). */
uint32_t aoth_leaves_find(const aoth_leaves_t *l, int32_t role, const char *name);
aot_str_t aoth_leaf_name(const aoth_leaf_t *leaf); /* its first name */

#endif
