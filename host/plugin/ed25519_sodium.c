#include <plugin/ed25519.h>

#include <sodium.h>

_Static_assert(AOTH_ED25519_SEED == crypto_sign_SEEDBYTES && AOTH_ED25519_PUBLIC == crypto_sign_PUBLICKEYBYTES &&
                   AOTH_ED25519_SIGNATURE == crypto_sign_BYTES,
               "libsodium signs with Ed25519");

int aoth_ed25519_is_there(void) { return sodium_init() >= 0; }

void aoth_ed25519_seed(unsigned char out[AOTH_ED25519_SEED]) { randombytes_buf(out, AOTH_ED25519_SEED); }

void aoth_ed25519_public(const unsigned char seed[AOTH_ED25519_SEED], unsigned char out[AOTH_ED25519_PUBLIC]) {
  unsigned char secret[crypto_sign_SECRETKEYBYTES];
  crypto_sign_seed_keypair(out, secret, seed);
  sodium_memzero(secret, sizeof secret);
}

void aoth_ed25519_sign(const unsigned char seed[AOTH_ED25519_SEED], const void *bytes, size_t nbytes,
                       unsigned char out[AOTH_ED25519_SIGNATURE]) {
  unsigned char key[crypto_sign_PUBLICKEYBYTES], secret[crypto_sign_SECRETKEYBYTES];
  crypto_sign_seed_keypair(key, secret, seed);
  crypto_sign_detached(out, NULL, bytes, nbytes, secret);
  sodium_memzero(secret, sizeof secret);
}

int aoth_ed25519_fits(const unsigned char key[AOTH_ED25519_PUBLIC], const void *bytes, size_t nbytes,
                      const unsigned char signature[AOTH_ED25519_SIGNATURE]) {
  return crypto_sign_verify_detached(signature, bytes, nbytes, key) == 0;
}

void aoth_ed25519_forget(void *bytes, size_t nbytes) { sodium_memzero(bytes, nbytes); }
