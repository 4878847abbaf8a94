/* One element of a tensor as a number of C; f16 and bf16 are rounded to nearest even. */
#ifndef KIT_ELEMENT_H
#define KIT_ELEMENT_H

#include <stdint.h>

/* At byte address p, which need not be aligned; complex numbers: the real part. */
double kit_element_load(int32_t dtype, const void *p);
void kit_element_store(int32_t dtype, void *p, double number);
int64_t kit_element_load_int(int32_t dtype, const void *p); /* integers and bool */

#endif
