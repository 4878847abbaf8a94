/* The inputs of a call, from a safetensors file.
 *
 * Input k is the tensor "input.K", or what the file's metadata say: the key "alias.input.K" names a tensor of the file
 * and a geometry over its storage, in the words of docs/IR.md:
 *
 *     "alias.input.0": "storage.0 [4]"     "alias.input.1": "storage.0 [2, 2] strides [2, 1] offset 2"
 *
 * Inputs over one tensor of the file share its memory. */
#ifndef AOTH_GIVEN_FILE_H
#define AOTH_GIVEN_FILE_H

#include <step/safetensors.h>

/* AOT_E_NOT_FOUND, without a complaint: the file has no input k. AOT_E_INVALID, told: its alias is not understood,
 * names no tensor, or reaches outside it. */
aot_status_t aoth_given_input(const aoth_st_t *file, uint32_t k, aoth_sink_t *sink, aoth_tensor_t *out);

#endif
