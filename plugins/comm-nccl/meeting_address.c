#include "meeting_address.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct address_slot {
  char host[256], port[8];
} address_slot_t;

/* "[IPv6]:PORT", or "HOST:PORT" with no other colon. */
static int divide(const char *address, address_slot_t *out) {
  const int is_bracketed = address[0] == '[';
  const char *host = address + is_bracketed, *end = is_bracketed ? strchr(host, ']') : strchr(host, ':'),
             *port = end ? end + is_bracketed : NULL;
  if (!end || end == host || (size_t)(end - host) >= sizeof out->host || *port++ != ':') return 0;
  const size_t n = strlen(port);
  if (n == 0 || n > 5 || strspn(port, "0123456789") != n || atoi(port) < 1 || atoi(port) > 65535) return 0;
  snprintf(out->host, sizeof out->host, "%.*s", (int)(end - host), host);
  snprintf(out->port, sizeof out->port, "%s", port);
  return 1;
}

/* 0, or why nothing can listen there. NCCL would share the port with another job of this user's that listens there
 * (SO_REUSEPORT), and wait for its ranks: so it is queried without. */
static int try_to_listen(const struct addrinfo *at) {
  const int one = 1, s = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (s < 0) return errno;
  setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one); /* a run that has just ended there is no hindrance */
  const int wrong = bind(s, at->ai_addr, at->ai_addrlen) == 0 && listen(s, 1) == 0 ? 0 : errno;
  close(s);
  return wrong;
}

static void tell(int wrong, const address_slot_t *p, char *why, size_t size) {
  if (wrong == EADDRINUSE)
    snprintf(why, size, "port %s is taken by another process; name another one in the option 'rendezvous', ':PORT'",
             p->port);
  else if (wrong == EADDRNOTAVAIL)
    snprintf(why, size, "this machine, on which rank 0 is, is not %s: rank 0 has to run where the address is", p->host);
  else snprintf(why, size, "rank 0 cannot listen: %s", strerror(wrong));
}

static int is_loopback(const struct sockaddr *at) {
  const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)at;
  const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)at;
  return at->sa_family == AF_INET ? ntohl(v4->sin_addr.s_addr) >> 24 == 127
                                  : at->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

void nl_address_show(const char *address, char *out, size_t size) {
  const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
  struct addrinfo *found = NULL;
  char number[64];
  address_slot_t p;
  snprintf(out, size, "%s", address);
  if (!divide(address, &p) || getaddrinfo(p.host, p.port, &hints, &found)) return;
  if (!getnameinfo(found->ai_addr, found->ai_addrlen, number, sizeof number, NULL, 0, NI_NUMERICHOST))
    snprintf(out, size, "%.90s, which is %s here%s", address, number,
             is_loopback(found->ai_addr) ? " (and cannot be reached from other machines)" : "");
  freeaddrinfo(found);
}

int nl_address_is_good(const char *address, uint32_t rank, uint32_t n_ranks, char *why, size_t size) {
  const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
  struct addrinfo *found = NULL;
  char text[400] = "";
  address_slot_t p;
  if (!divide(address, &p)) {
    snprintf(text, sizeof text, "it is not HOST:PORT");
  } else {
    const int wrong = getaddrinfo(p.host, p.port, &hints, &found);
    const int not_there = wrong || rank ? 0 : try_to_listen(found);
    if (wrong) snprintf(text, sizeof text, "the host cannot be found: %s", gai_strerror(wrong));
    else if (not_there) tell(not_there, &p, text, sizeof text);
  }
  if (found) freeaddrinfo(found);
  if (text[0]) snprintf(why, size, "rank %u of %u: the ranks meet at %.90s: %s", rank, n_ranks, address, text);
  return !text[0];
}
