/* aot/contract.h - what a stage needs, gives and takes away, as data.
 *
 * Properties say what a program is. The host simulates them over the pipeline file before anything runs, and checks each
 * claimed property with its verifier after the stage. A pass may change ports only of the roles that the properties in its `gives`
 * are about; any other port must stand after it as before: role, index, type and order (docs/IR.md 5). */
#ifndef AOT_CONTRACT_H
#define AOT_CONTRACT_H

#include <aot/base.h>

/* X(constant, bit, text, meaning) */
#define AOT_PROPERTY_MAP(X)                                                                                            \
  X(AOT_PROP_IMPORTED, 0, "imported", "a well-formed program with leaves and a forward graph")                         \
  X(AOT_PROP_FUNCTIONAL, 1, "functional", "no operator writes an argument; the boundary holds the updates")            \
  X(AOT_PROP_JOINT, 2, "joint", "one graph computes outputs and gradients")                                            \
  X(AOT_PROP_RNG_EXPLICIT, 3, "rng-explicit", "no operator draws hidden random numbers")                               \
  X(AOT_PROP_PARTITIONED, 4, "partitioned", "separate forward and backward graphs with saved values between")          \
  X(AOT_PROP_HOOKED, 5, "hooked", "saved values are packed and unpacked")                                              \
  X(AOT_PROP_SHARDED, 6, "sharded", "parameters are split over ranks")                                                 \
  X(AOT_PROP_LOWERED, 7, "lowered", "a backend has compiled it")                                                       \
  X(AOT_PROP_STITCHED, 8, "stitched", "one graph is a whole training step")
#define AOT_PROP_IMPORTED (1u << 0)
#define AOT_PROP_FUNCTIONAL (1u << 1)
#define AOT_PROP_JOINT (1u << 2)
#define AOT_PROP_RNG_EXPLICIT (1u << 3)
#define AOT_PROP_PARTITIONED (1u << 4)
#define AOT_PROP_HOOKED (1u << 5)
#define AOT_PROP_SHARDED (1u << 6)
#define AOT_PROP_LOWERED (1u << 7)
#define AOT_PROP_STITCHED (1u << 8)

/* Constant data of a unit. Operator lists name full operators ("aten.add.Tensor"); a trailing * matches a prefix; an empty
 * list promises nothing. */
typedef struct aot_contract {
  uint32_t struct_size;
  uint32_t needs; /* AOT_PROP_* that must hold before */
  uint32_t gives; /* hold after */
  uint32_t drops; /* hold no longer */
  uint32_t refuses; /* must not hold before: a partition refuses a partitioned program */
  uint32_t reserved;
  const aot_str_t *creates; /* operators that the unit may create; empty: any */
  uint64_t n_creates;
  const aot_str_t *removes; /* operators that are gone after it */
  uint64_t n_removes;
} aot_contract_t;

#endif
