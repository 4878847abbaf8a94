/* The weight of the row, which the mask broadcasts over batches and heads. */
const float weight = weights[((MASK_BATCHES > 1 ? n : 0) * MASK_HEADS + (MASK_HEADS > 1 ? h : 0)) * QUERIES + i];
