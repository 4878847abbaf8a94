/* aot/contract.h - what a stage needs, gives and takes away, as data.
 *
 * Properties say what a program is. The host simulates them over the pipeline file before anything runs, and checks
 * each claimed property with its verifier after the stage. A pass may change ports only of the roles that the
 * properties in its `gives` are about, add inputs of constants that it created and erase those of constants that are no
 * longer read; any other port must stand after it as before: role, index, type and order (docs/IR.md 5). */
#ifndef AOT_CONTRACT_H
#define AOT_CONTRACT_H

#include <aot/base.h>

/* X(name, number, text, meaning) */
#define AOT_PROPERTY_MAP(X)                                                                                            \
  X(IMPORTED, 0, "imported", "a well-formed program with leaves and a forward graph")                                  \
  X(FUNCTIONAL, 1, "functional", "no operator writes an argument; the boundary holds the updates")                     \
  X(JOINT, 2, "joint", "one graph computes outputs and gradients")                                                     \
  X(RNG_EXPLICIT, 3, "rng-explicit", "no operator draws hidden random numbers")                                        \
  X(PARTITIONED, 4, "partitioned", "separate forward and backward graphs with saved values between")                   \
  X(HOOKED, 5, "hooked", "saved values are packed and unpacked")                                                       \
  X(SHARDED, 6, "sharded", "parameters are split over ranks")                                                          \
  X(LOWERED, 7, "lowered", "a backend has compiled it")                                                                \
  X(STITCHED, 8, "stitched", "one graph is a whole training step")
#define AOT_PROP_IMPORTED AOT_STR_INIT("imported")
#define AOT_PROP_FUNCTIONAL AOT_STR_INIT("functional")
#define AOT_PROP_JOINT AOT_STR_INIT("joint")
#define AOT_PROP_RNG_EXPLICIT AOT_STR_INIT("rng-explicit")
#define AOT_PROP_PARTITIONED AOT_STR_INIT("partitioned")
#define AOT_PROP_HOOKED AOT_STR_INIT("hooked")
#define AOT_PROP_SHARDED AOT_STR_INIT("sharded")
#define AOT_PROP_LOWERED AOT_STR_INIT("lowered")
#define AOT_PROP_STITCHED AOT_STR_INIT("stitched")

/* A list of names, constant. Frozen. .needs = AOT_NAMES(AOT_PROP_FUNCTIONAL, AOT_PROP_JOINT) */
typedef struct aot_names {
  const aot_str_t *at;
  uint64_t n; /* 0: the list says nothing */
} aot_names_t;
#define AOT_NAMES(...)                                                                                                 \
  { (const aot_str_t[]){__VA_ARGS__}, sizeof((const aot_str_t[]){__VA_ARGS__}) / sizeof(aot_str_t) }

/* Constant data of a unit. Operator lists name full operators ("aten.add.Tensor"); a trailing * matches a prefix; an
 * empty list promises nothing. A name with a dot is a property of a vendor's ("vendor.tiled"), which the host carries
 * and compares like its own and does not verify; another name that it does not know is a reason to refuse the
 * plugin. */
typedef struct aot_contract {
  uint32_t struct_size, flags;
  aot_names_t needs;        /* properties that must hold before */
  aot_names_t gives;        /* hold after */
  aot_names_t drops;        /* hold no longer */
  aot_names_t refuses;      /* must not hold before: a partition refuses a partitioned program */
  const aot_str_t *creates; /* operators that the unit may create; empty: any */
  uint64_t n_creates;
  const aot_str_t *removes; /* operators that are gone after it */
  uint64_t n_removes;
} aot_contract_t;

#endif
