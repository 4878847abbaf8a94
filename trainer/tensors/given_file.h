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

#include <trainer/tensors/safetensors.h>

/* Archives from before 2026-12 counted numbers and None among the inputs, which the program has as constants: input.0,
 * input.2. numbers[k], of n ascending ones, is the file's K of the program's input k: k itself, unless the file has
 * exactly n inputs with gaps between their numbers. O(tensors log n). */
void aoth_given_numbers(const aoth_st_t *file, uint32_t n, uint32_t *numbers);
/* The program's input that the file numbers so; `number` itself where it has none. O(log n). */
uint32_t aoth_given_index(const uint32_t *numbers, uint32_t n, uint32_t number);

/* AOT_E_NOT_FOUND, without a complaint: the file has no input k. AOT_E_INVALID, reported: its alias is not understood,
 * names no tensor, or reaches outside it. */
aot_status_t aoth_given_input(const aoth_st_t *file, uint32_t k, aoth_sink_t *sink, aoth_tensor_t *out);

#endif
