/* torch_save.h - the tensors of a torch.save file: a ZIP with a pickle and one member a storage. */
#ifndef P2_TORCH_SAVE_H
#define P2_TORCH_SAVE_H

#include "pickle_reader.h"
#include "zip_directory.h"

typedef struct p2_saved_tensor {
  aot_str_t name; /* key in the saved dict; empty when the file holds a single tensor */
  p2_member_t *storage;
  const p2_pv_t *tensor;
} p2_saved_tensor_t;

/* The tensors of a saved dict, in its order, or the one tensor saved alone. `m` is the file as a member of an
 * archive. */
aot_status_t p2_torch_load(p2_env_t *e, p2_member_t *m, p2_saved_tensor_t **out, uint32_t *out_n);

#endif
