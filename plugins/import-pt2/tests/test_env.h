/* test_env.h - an environment for the reader without a host: memory that a test frees at its end, files, small ZIPs. */
#ifndef TEST_ENV_H
#define TEST_ENV_H

#include "pt2_env.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

typedef struct test_env {
  p2_env_t env; /* first: a test_env_t * is a p2_env_t * */
  void *blocks; /* chain of allocations */
} test_env_t;

void test_env_init(test_env_t *t);
void test_env_deinit(test_env_t *t);
void test_env_again(test_env_t *t); /* forget the failure, keep the memory */

/* A whole file; fails the test when it is not there. */
uint8_t *test_read(test_env_t *t, const char *path, uint64_t *out_n);

/* A ZIP of members, deflated where `deflate` is 1. */
typedef struct test_member {
  const char *name;
  const void *data;
  uint64_t n;
  int deflate;
} test_member_t;
uint8_t *test_zip(test_env_t *t, const test_member_t *members, uint32_t n, uint64_t *out_n);

#define assert_says(t, text)                                                                                           \
  do {                                                                                                                 \
    if (!strstr((t)->env.error.message, (text)))                                                                       \
      fail_msg("'%s' is not in the message '%s'", (text), (t)->env.error.message);                                     \
  } while (0)

#endif
