/* An address at which ranks of several machines meet, before NCCL is queried: what is wrong with it, and who sees
 * that. */
#include "meeting_address.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

static void expect(const char *address, uint32_t rank, const char *sentence) {
  char why[320] = "";
  const int is_good = nl_address_is_good(address, rank, 2, why, sizeof why);
  if (is_good != !sentence || !strstr(why, sentence ? sentence : "")) fail_msg("%s: %s", address, why);
}

/* A port that is listened at, shared with the caller for that. */
static int listen_somewhere(int *out_port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  const int one = 1, s = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(setsockopt(s, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one), 0);
  assert_int_equal(bind(s, (struct sockaddr *)&at, sizeof at), 0);
  assert_int_equal(listen(s, 1), 0);
  assert_int_equal(getsockname(s, (struct sockaddr *)&at, &size), 0);
  *out_port = ntohs(at.sin_port);
  return s;
}

static void a_port_is_free_or_taken(void **state) {
  int port;
  char address[32], sentence[160];
  (void)state;
  const int s = listen_somewhere(&port);
  snprintf(address, sizeof address, "127.0.0.1:%d", port);
  snprintf(sentence, sizeof sentence, "rank 0 of 2: the ranks meet at %s: port %d is taken by another process", address,
           port);
  expect(address, 0, sentence);
  expect(address, 1, NULL); /* who does not listen there hopes that it is rank 0 */
  close(s);
  expect(address, 0, NULL);
}

static void a_host_is_here_there_or_nowhere(void **state) {
  (void)state;
  expect("localhost:29501", 1, NULL);
  expect("[::1]:29501", 1, NULL);
  expect("192.0.2.1:29501", 1, NULL); /* of another machine, for all that is known here */
  expect("192.0.2.1:29501", 0, "this machine, on which rank 0 is, is not 192.0.2.1");
  expect("no-such-host.invalid:29501", 1,
         "rank 1 of 2: the ranks meet at no-such-host.invalid:29501: the host cannot be found");
}

static void what_is_no_address(void **state) {
  static const char *const wrong[] = {"",
                                      "localhost",
                                      ":29501",
                                      "localhost:",
                                      "localhost:http",
                                      "localhost:0",
                                      "localhost:65536",
                                      "localhost:-1",
                                      "::1:29501",
                                      "[::1]29501",
                                      "[::1",
                                      "a:1:2"};
  (void)state;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) expect(wrong[i], 1, "it is not HOST:PORT");
}

static void what_an_address_is_here(void **state) {
  char out[200];
  (void)state;
  nl_address_show("127.0.1.1:29501", out, sizeof out);
  assert_string_equal(out, "127.0.1.1:29501, which is 127.0.1.1 here (and cannot be reached from other machines)");
  nl_address_show("[::1]:29501", out, sizeof out);
  assert_string_equal(out, "[::1]:29501, which is ::1 here (and cannot be reached from other machines)");
  nl_address_show("192.0.2.1:29501", out, sizeof out);
  assert_string_equal(out, "192.0.2.1:29501, which is 192.0.2.1 here");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_port_is_free_or_taken),
      cmocka_unit_test(a_host_is_here_there_or_nowhere),
      cmocka_unit_test(what_is_no_address),
      cmocka_unit_test(what_an_address_is_here),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
