/* Ed25519 (RFC 8032) by libsodium, ed25519_sodium.c, or not at all, ed25519_none.c: what CMake has found. */
#ifndef AOTH_ED25519_H
#define AOTH_ED25519_H

#include <stddef.h>

#define AOTH_ED25519_SEED 32 /* bytes: the secret key */
#define AOTH_ED25519_PUBLIC 32
#define AOTH_ED25519_SIGNATURE 64

int aoth_ed25519_is_there(void);                              /* 0: none of the others may be called */
void aoth_ed25519_seed(unsigned char out[AOTH_ED25519_SEED]); /* a new one, of the system's random numbers */
void aoth_ed25519_public(const unsigned char seed[AOTH_ED25519_SEED], unsigned char out[AOTH_ED25519_PUBLIC]);
void aoth_ed25519_sign(const unsigned char seed[AOTH_ED25519_SEED], const void *bytes, size_t nbytes,
                       unsigned char out[AOTH_ED25519_SIGNATURE]);
int aoth_ed25519_fits(const unsigned char key[AOTH_ED25519_PUBLIC], const void *bytes, size_t nbytes,
                      const unsigned char signature[AOTH_ED25519_SIGNATURE]);
void aoth_ed25519_forget(void *bytes, size_t nbytes); /* overwritten, whatever the compiler thinks of it */

#endif
