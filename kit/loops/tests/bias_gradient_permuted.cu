loop 24 x 6 x 520 reduced 1 2
; GPU: rows, blocks 24 x 416, team 416, vector 8, chunks 1, splits 1
load bf16 [520, 12480, 1] align 16
sum f32 f32 "a" a=x0 ; row, pass 0
each f32 bf16 "%0" %0=v0 ; row, pass 1
store bf16 [1, 0, 0] row v1

LP_KERNEL(bias_gradient_permuted, 2, 416) {
const int length = 3120, lane = threadIdx.x, row = (int)blockIdx.x;
if (row < 24) {
const int i0 = row;
const uint16_t *q0 = (const uint16_t *)LP_AT(0) + i0 * 520;
uint16_t *q1 = (uint16_t *)LP_AT(1) + i0;
LP_ALIGN16 uint16_t w0[8];
{
const int i = lane * 8;
if (i < length) {
lp_move(&w0[0], &q0[(i / 520) * 12480 + (i % 520)], 16);
}
}
float a0 = 0;
{
const int i = lane * 8;
if (i < length) {
#pragma unroll
for (int j = 0; j < 8; j++) {
const float x0 = lp_bf16_at(w0, j);
{
const float t = (float)((x0));
a0 = LP_ADD(a0, t);
}
}
}
}
__shared__ float s0[32];
lp_leave_sum_f32(a0, s0, 13);
lp_sync(0, 416);
const float v0 = ((float)lp_found_sum_f32(s0, 13));
const float v1 = lp_stored_bf16((float)((v0)));
if (lane == 0) q1[0] = lp_to_bf16(v1);
}
}
