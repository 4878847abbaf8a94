/* f16 and bf16: in registers they are floats that the format can represent, rounded to nearest, ties to even. */
LP float lp_float_of(uint32_t u) {
  union {
    uint32_t u;
    float f;
  } c;
  c.u = u;
  return c.f;
}
LP uint32_t lp_bits_of(float f) {
  union {
    uint32_t u;
    float f;
  } c;
  c.f = f;
  return c.u;
}
LP float lp_from_bf16(uint16_t h) { return lp_float_of((uint32_t)h << 16); }
LP uint16_t lp_to_bf16(float f) { return (uint16_t)(lp_bits_of(f) >> 16); }
LP float lp_round_bf16(float f) {
  uint32_t u = lp_bits_of(f), r = u + 0x7fffu + (u >> 16 & 1u);
  return lp_float_of((f == f ? r : 0x7fc00000u) & 0xffff0000u);
}
LP float lp_from_f16(uint16_t h) {
  uint32_t m = (uint32_t)(h & 0x7fffu) << 13, u = lp_bits_of(lp_float_of(m) * 0x1p112f);
  u = m >= 0x0f800000u ? m | 0x7f800000u : u;
  return lp_float_of(u | (uint32_t)(h & 0x8000u) << 16);
}
LP float lp_round_f16(float f) {
  float a = fabsf(f), small = (a + 0.5f) - 0.5f;
  uint32_t u = lp_bits_of(a), r = (u + 0xfffu + (u >> 13 & 1u)) & 0xffffe000u;
  float large = a >= 65520.0f ? INFINITY : lp_float_of(r);
  return f == f ? copysignf(a < 0x1p-14f ? small : large, f) : f;
}
LP uint16_t lp_to_f16(float f) {
  uint32_t u = lp_bits_of(f), a = u & 0x7fffffffu, sign = u >> 16 & 0x8000u;
  uint32_t small = (uint32_t)(int32_t)((a < 0x38800000u ? lp_float_of(a) : 0.0f) * 0x1p24f);
  uint32_t large = a < 0x7f800000u ? (a >> 13) - 0x1c000u : a > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return (uint16_t)(sign | (a < 0x38800000u ? small : large));
}
