/* Query, head and batch of a row, and the offset of its first element. */
const int64_t i = row % QUERIES, h = row / QUERIES % HEADS, n = row / (QUERIES * HEADS);
const int64_t first = n * BATCH_STRIDE + h * HEAD_STRIDE + i * ROW_STRIDE;
