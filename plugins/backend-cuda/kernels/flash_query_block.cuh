/* The block's queries and the tiles of keys that they see. Blocks with the most tiles come first. */
const int blocks = (QUERIES + OWN - 1) / OWN, block = blockIdx.x % blocks;
const int first = (IS_CAUSAL ? blocks - 1 - block : block) * OWN;
const int64_t head = blockIdx.x / blocks, n = head / HEADS, h = head % HEADS, h_key = h / SHARE;
const char *q = LP_AT(0) + n * q_batch + h * q_head, *k = LP_AT(1) + n * k_batch + h_key * k_head;
const char *v = LP_AT(2) + n * v_batch + h_key * v_head;
const int seen = IS_CAUSAL && first + OWN < KEYS ? first + OWN : KEYS, n_tiles = (seen + TILE - 1) / TILE;
