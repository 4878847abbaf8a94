/* A build without libsodium: nothing is signed, and nothing passes for signed. */
#include <plugin/ed25519.h>

#include <string.h>

int aoth_ed25519_is_there(void) { return 0; }

void aoth_ed25519_seed(unsigned char out[AOTH_ED25519_SEED]) { memset(out, 0, AOTH_ED25519_SEED); }

void aoth_ed25519_public(const unsigned char seed[AOTH_ED25519_SEED], unsigned char out[AOTH_ED25519_PUBLIC]) {
  (void)seed;
  memset(out, 0, AOTH_ED25519_PUBLIC);
}

void aoth_ed25519_sign(const unsigned char seed[AOTH_ED25519_SEED], const void *bytes, size_t nbytes,
                       unsigned char out[AOTH_ED25519_SIGNATURE]) {
  (void)seed, (void)bytes, (void)nbytes;
  memset(out, 0, AOTH_ED25519_SIGNATURE);
}

int aoth_ed25519_fits(const unsigned char key[AOTH_ED25519_PUBLIC], const void *bytes, size_t nbytes,
                      const unsigned char signature[AOTH_ED25519_SIGNATURE]) {
  (void)key, (void)bytes, (void)nbytes, (void)signature;
  return 0;
}

void aoth_ed25519_forget(void *bytes, size_t nbytes) { memset(bytes, 0, nbytes); }
