#include "element.h"

#include "half.h"
#include <aot/base.h>
#include <math.h>
#include <string.h>

/* Once, from double (half.h rounds a float). To nearest even at the last bit that stays: scale so that this
 * bit is 1, round, scale back. */
static uint16_t double_to_half(double number) {
  uint16_t sign = signbit(number) ? 0x8000 : 0;
  double a = fabs(number);
  int exponent;
  if (isnan(a)) return (uint16_t)(sign | 0x7e00);
  if (a >= 65520.0) return (uint16_t)(sign | 0x7c00);
  if (a == 0) return sign;
  frexp(a, &exponent); /* a = m * 2^exponent, m in [0.5, 1) */
  int unit = exponent - 11 < -24 ? -24 : exponent - 11;
  uint32_t n = (uint32_t)nearbyint(ldexp(a, -unit)); /* 0..2048 units; 2048 carries into the next exponent by itself */
  if (unit == -24) return (uint16_t)(sign | n);
  return (uint16_t)(sign | (((uint32_t)(unit + 24) << 10) + n));
}

#define LOAD(type)                                                                                                     \
  do {                                                                                                                 \
    type x_;                                                                                                           \
    memcpy(&x_, p, sizeof x_);                                                                                         \
    return (double)x_;                                                                                                 \
  } while (0)

double kit_element_load(int32_t dtype, const void *p) {
  uint16_t bits;
  switch (dtype) {
    /* clang-format off */
    case AOT_F32: case AOT_C64: LOAD(float);
    case AOT_F64: case AOT_C128: LOAD(double);
    case AOT_F16: memcpy(&bits, p, sizeof bits); return (double)kit_f16_to_f32(bits);
    case AOT_BF16: memcpy(&bits, p, sizeof bits); return (double)kit_bf16_to_f32(bits);
    case AOT_U64: LOAD(uint64_t);
    /* clang-format on */
    default: return (double)kit_element_load_int(dtype, p);
  }
}
#undef LOAD

#define LOAD(type)                                                                                                     \
  do {                                                                                                                 \
    type x_;                                                                                                           \
    memcpy(&x_, p, sizeof x_);                                                                                         \
    return (int64_t)x_;                                                                                                \
  } while (0)

int64_t kit_element_load_int(int32_t dtype, const void *p) {
  switch (dtype) {
    case AOT_U8:
    case AOT_BOOL: LOAD(uint8_t);
    case AOT_I8: LOAD(int8_t);
    case AOT_I16: LOAD(int16_t);
    case AOT_U16: LOAD(uint16_t);
    case AOT_I32: LOAD(int32_t);
    case AOT_U32: LOAD(uint32_t);
    case AOT_I64: LOAD(int64_t);
    case AOT_U64: LOAD(uint64_t);
    default: return 0;
  }
}
#undef LOAD

#define STORE(type, number)                                                                                            \
  do {                                                                                                                 \
    type x_ = (type)(number);                                                                                          \
    memcpy(p, &x_, sizeof x_);                                                                                         \
  } while (0)

void kit_element_store(int32_t dtype, void *p, double number) {
  switch (dtype) {
    case AOT_F32: STORE(float, number); break;
    case AOT_F64: STORE(double, number); break;
    case AOT_F16: STORE(uint16_t, double_to_half(number)); break;
    case AOT_BF16: STORE(uint16_t, kit_f32_to_bf16((float)number)); break;
    case AOT_U8: STORE(uint8_t, number); break;
    case AOT_BOOL: STORE(uint8_t, number != 0); break;
    case AOT_I8: STORE(int8_t, number); break;
    case AOT_I16: STORE(int16_t, number); break;
    case AOT_U16: STORE(uint16_t, number); break;
    case AOT_I32: STORE(int32_t, number); break;
    case AOT_U32: STORE(uint32_t, number); break;
    case AOT_I64: STORE(int64_t, number); break;
    case AOT_U64: STORE(uint64_t, number); break;
    case AOT_C64: {
      float z[2] = {(float)number, 0};
      memcpy(p, z, sizeof z);
      break;
    }
    case AOT_C128: {
      double z[2] = {number, 0};
      memcpy(p, z, sizeof z);
      break;
    }
    default: break;
  }
}
#undef STORE
