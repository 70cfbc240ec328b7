/* Hexadecimal text → bytes. */
#ifndef ROWCALL_HEX_TEXT_H
#define ROWCALL_HEX_TEXT_H

#include <stdint.h>

/* The value of each hexadecimal digit plus one; 0: no such digit. */
static const uint8_t HEX_DIGIT[256] = {
    ['0'] = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
    ['a'] = 11, 12, 13, 14, 15, 16,
    ['A'] = 11, 12, 13, 14, 15, 16,
};

/* Writes the bytes for which the digits [text, end) stand and returns the end of the output, or NULL if the text is not
   pairs of digits. `target` must have room for half as many bytes. */
static inline char *hex_decode(char *target, const char *text, const char *end) {
    if ((end - text) % 2) return 0;
    for (; text < end; text += 2) {
        const unsigned high = HEX_DIGIT[(unsigned char)text[0]];
        const unsigned low = HEX_DIGIT[(unsigned char)text[1]];
        if (!high || !low) return 0;
        *target++ = (char)((high - 1) << 4 | (low - 1));
    }
    return target;
}

#endif
