/* What a hook's file must be like, before anything of it is inlined. */
#ifndef FILE_CHECK_H
#define FILE_CHECK_H

#include "hook_file.h"

/* Finds the pairs, and holds every graph against the rules: tensors in and out by position, nothing written, drawn at
 * random, printed or owning graphs. Reported with file and line. */
void hk_check_file(hk_file_t *f, em_t *e);

int64_t hk_symbol_of(const hk_file_t *f, const em_t *e, int64_t dim); /* of the file; -1: the dimension is no symbol */
uint32_t hk_line_of(const hk_file_t *f, const em_t *e, aot_node_t n); /* 0: none */

#endif
