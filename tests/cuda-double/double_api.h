/* What a library of CUDA shows: its functions, of which the prototypes stand in CUDA's headers. */
#ifndef DOUBLE_API_H
#define DOUBLE_API_H

#define API __attribute__((visibility("default")))
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#endif
