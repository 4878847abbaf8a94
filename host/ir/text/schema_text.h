/* Does the text of an operator's schema say what its rows say? People read the one, the host the other. */
#ifndef AOTH_SCHEMA_TEXT_H
#define AOTH_SCHEMA_TEXT_H

#include <aot/opset.h>
#include "kit/base/text.h"

/* 1: it does, or there is no text. 0: what they disagree about, as the end of a sentence. Names, order, defaults, lists
 * and marks are compared, not types. O(text) */
int aoth_schema_agrees(const aot_op_desc_t *d, kit_text_t *out_why);

#endif
