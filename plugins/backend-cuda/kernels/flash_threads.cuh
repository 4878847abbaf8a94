/* A thread's position in a warp's matrices: rows `row` and `row` + 8, columns `two` and `two` + 1 of a product.
 * `left_`, `right_`: the row and the piece that it addresses of four matrices that are loaded, as a left operand (or
 * transposed as a right one) and as a right operand. */
LP_SHARED(shared);
const uint32_t base = lp_shared_at(shared);
const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4, two = lane % 4 * 2;
const int left_row = lane % 16, left_piece = lane / 16;
const int right_row = lane % 8 + lane / 16 * 8, right_piece = lane / 8 % 2;
