/* Digests of a safetensors file, in its metadata: `digest.NAME` of each tensor's dtype, shape and elements, and
 * `digest` of all other metadata. Whatever changes on the disk, in the bytes or in the header, is found before it is
 * used.
 *
 * Hash: XXH3, 128 bits (Collet, xxHash), as 32 hexadecimal digits. It finds damage; it is no signature. */
#ifndef AOTH_DIGESTS_H
#define AOTH_DIGESTS_H

#include <trainer/tensors/safetensors.h>

#define AOTH_DIGEST_KEY "digest"
#define AOTH_DIGEST_CHARS 32

/* The elements in row-major order, any geometry. */
void aoth_tensor_digest(const aoth_tensor_t *t, char out[AOTH_DIGEST_CHARS + 1]);

/* The metadata with the digests of n tensors, as aoth_st_write takes it; rows and texts live in the arena. NULL: no
 * memory. *out_n: its rows. */
const aoth_st_meta_t *aoth_digests_add(kit_arena_t *arena, const aoth_st_entry_t *tensors, uint32_t n,
                                       const aoth_st_meta_t *meta, uint32_t n_meta, uint32_t *out_n);

int aoth_digests_are_there(const aoth_st_t *file); /* those of earlier versions of aothost have none */
/* The metadata, when the file has digests; then a tensor of it. Reported, with the file: AOT_E_INVALID. */
aot_status_t aoth_digests_check(const aoth_st_t *file, aoth_sink_t *sink);
aot_status_t aoth_digest_check(const aoth_st_t *file, const aoth_st_entry_t *e, aoth_sink_t *sink);

#endif
