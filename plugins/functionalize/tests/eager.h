/* A tiny eager interpreter, written except for the host: what a program of views and writes means.
 *
 * Tensors are geometries over storages, as in PyTorch. Every number has a derivative next to it, along one direction of
 * the inputs (forward-mode differentiation); a tensor's derivatives are in a second storage, its history. detach and
 * views made under no_grad look at the same numbers with a history of their own; a write under no_grad leaves the
 * history alone. That is all that eager autograd says about aliases. */
#ifndef EAGER_H
#define EAGER_H

#include <stddef.h>
#include <stdint.h>

#define EG_RANK 4
#define EG_NUMEL 256 /* of a storage */
#define EG_VALUES 96
#define EG_STEPS 40

typedef enum eg_dtype { EG_F64, EG_I64, EG_BOOL } eg_dtype_t;

typedef struct eg_shape {
  eg_dtype_t dtype;
  int rank;
  int64_t size[EG_RANK], stride[EG_RANK], offset;
} eg_shape_t;

typedef struct eg_tensor {
  eg_shape_t at;
  int storage, history;
  int is_view;        /* of another tensor: detach_ is refused */
  int shares_history; /* a view for autograd, too */
} eg_tensor_t;

typedef enum eg_op { /* program_text.c has their names; eager.c says what each takes */
                     EG_ADD,
                     EG_SUB,
                     EG_MUL,
                     EG_MUL_SCALAR,
                     EG_RELU,
                     EG_TANH,
                     EG_CLONE,
                     EG_GT,
                     EG_TO_COPY,
                     EG_SUM,
                     EG_INDEX,
                     EG_VIEW,
                     EG_RESHAPE,
                     EG_FLATTEN,
                     EG_RAVEL,
                     EG_CONTIGUOUS,
                     EG_TO,
                     EG_TRANSPOSE,
                     EG_SWAPAXES,
                     EG_T,
                     EG_MT,
                     EG_PERMUTE,
                     EG_MOVEDIM,
                     EG_SELECT,
                     EG_SLICE,
                     EG_NARROW,
                     EG_SPLIT,
                     EG_SPLIT_SIZES,
                     EG_TENSOR_SPLIT,
                     EG_UNBIND,
                     EG_CHUNK,
                     EG_EXPAND,
                     EG_UNSQUEEZE,
                     EG_SQUEEZE,
                     EG_SQUEEZE_ALL,
                     EG_UNFLATTEN,
                     EG_UNFOLD,
                     EG_DIAGONAL,
                     EG_AS_STRIDED,
                     EG_ALIAS,
                     EG_DETACH,
                     EG_ADD_, /* from here on they write or rename */
                     EG_SUB_,
                     EG_MUL_,
                     EG_ADDCMUL_,
                     EG_LERP_,
                     EG_MUL_SCALAR_,
                     EG_COPY_,
                     EG_FILL_,
                     EG_ZERO_,
                     EG_RELU_,
                     EG_TANH_,
                     EG_NEG_,
                     EG_SIN_,
                     EG_MASKED_FILL_,
                     EG_TRIU_,
                     EG_TRIL_,
                     EG_CUMSUM_,
                     EG_INDEX_PUT_,
                     EG_INDEX_PUT_ADD_,
                     EG_INDEX_ADD_,
                     EG_INDEX_COPY_,
                     EG_INDEX_FILL_,
                     EG_T_,
                     EG_TRANSPOSE_,
                     EG_SWAPAXES_,
                     EG_UNSQUEEZE_,
                     EG_SQUEEZE_,
                     EG_SQUEEZE_ALL_,
                     EG_DETACH_,
                     EG_ADD_OUT,
                     EG_MUL_OUT,
                     EG_NEG_OUT,
                     EG_TANH_OUT, /* write their last value */
                     EG_N_OPS
} eg_op_t;

typedef struct eg_step {
  eg_op_t op;
  int a, b, c;   /* values; unused: -1. c is written (out=) */
  int64_t p[12]; /* dimensions, positions, sizes: see eager.c */
  double number;
  int no_grad;
  int n_results, first; /* filled in by running */
} eg_step_t;

typedef struct eg_input {
  eg_shape_t at;
  int numel; /* of its storage */
  int requires_grad;
  int is_buffer;
  double data[EG_NUMEL], direction[EG_NUMEL]; /* by position in the storage */
} eg_input_t;

typedef struct eg_program {
  eg_input_t input[4];
  int n_inputs;
  int64_t index[2]; /* a constant input of two row numbers, for index and index_put_ */
  eg_step_t step[EG_STEPS];
  int n_steps;
  int output[8], n_outputs;
} eg_program_t;

typedef struct eg_world {
  double number[EG_VALUES][EG_NUMEL], derivative[EG_VALUES][EG_NUMEL];
  int numel[EG_VALUES], n_storages, n_histories;
  int frozen[EG_VALUES];         /* by history: of a leaf that requires a gradient, and is written under no_grad only */
  eg_tensor_t tensor[EG_VALUES]; /* inputs first */
  eg_shape_t made[EG_VALUES];    /* geometry of a value when it was made */
  int tensor_of[EG_VALUES];      /* several values can be one tensor */
  int n_values, n_tensors;
} eg_world_t;

void eg_begin(eg_world_t *w, const eg_program_t *p);
/* 1: done; 0: not a legal step, nothing happened. Fills in n_results and first. */
int eg_run_step(eg_world_t *w, const eg_program_t *p, eg_step_t *s);
int eg_run(eg_world_t *w, eg_program_t *p);

int64_t eg_count(const eg_shape_t *t);
/* Position in the storage of the n-th element in row-major order. */
int64_t eg_position(const eg_shape_t *t, int64_t n);
const eg_tensor_t *eg_value(const eg_world_t *w, int value);

#endif
