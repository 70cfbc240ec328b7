/* SipHash-2-4 with 128 bits (Aumasson and Bernstein, 2012): without the key, no texts with equal hashes can be found. */

#ifndef ROWCALL_KEYED_HASH_H
#define ROWCALL_KEYED_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ROWCALL_ROTATED(x, by) (((x) << (by)) | ((x) >> (64 - (by))))
#define ROWCALL_ROUND(a, b, c, d)                                                                                       \
    do {                                                                                                                \
        a += b; b = ROWCALL_ROTATED(b, 13); b ^= a; a = ROWCALL_ROTATED(a, 32);                                         \
        c += d; d = ROWCALL_ROTATED(d, 16); d ^= c;                                                                     \
        a += d; d = ROWCALL_ROTATED(d, 21); d ^= a;                                                                     \
        c += b; b = ROWCALL_ROTATED(b, 17); b ^= c; c = ROWCALL_ROTATED(c, 32);                                         \
    } while (0)

/* Words are in the byte order of this machine: other machines do not read them. */
static inline void rowcall_keyed_hash(const uint64_t key[2], const char *text, size_t length, uint64_t out[2])
{
    uint64_t a = 0x736f6d6570736575ULL ^ key[0];
    uint64_t b = 0x646f72616e646f6dULL ^ key[1] ^ 0xee;
    uint64_t c = 0x6c7967656e657261ULL ^ key[0];
    uint64_t d = 0x7465646279746573ULL ^ key[1];
    uint64_t last = (uint64_t)length << 56;
    uint64_t word = 0;
    const char *end = text + (length & ~(size_t)7);
    for (; text != end; text += 8) {
        memcpy(&word, text, 8);
        d ^= word;
        ROWCALL_ROUND(a, b, c, d);
        ROWCALL_ROUND(a, b, c, d);
        a ^= word;
    }
    for (size_t index = 0; index < (length & 7); index++)
        last |= (uint64_t)(unsigned char)text[index] << (8 * index);
    d ^= last;
    ROWCALL_ROUND(a, b, c, d);
    ROWCALL_ROUND(a, b, c, d);
    a ^= last;
    c ^= 0xee;
    for (int turn = 0; turn < 4; turn++)
        ROWCALL_ROUND(a, b, c, d);
    out[0] = a ^ b ^ c ^ d;
    b ^= 0xdd;
    for (int turn = 0; turn < 4; turn++)
        ROWCALL_ROUND(a, b, c, d);
    out[1] = a ^ b ^ c ^ d;
}

#endif
