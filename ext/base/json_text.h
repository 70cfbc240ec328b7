/* The byte loops on which rendering speed depends: JSON escaping, and undoing one level of PostgreSQL's quoting.
   Where SSE2 exists they process 16 bytes at a time. No function reads at or beyond `end`; the comment of each function
   says how much space it needs for writing.

   The last bytes of a text are processed one by one. Gathering these bytes into one block takes fewer instructions, but
   is slower by a fifth on composites, whose texts were written just before: a read that spans several writes has to
   wait. */
#ifndef ROWCALL_JSON_TEXT_H
#define ROWCALL_JSON_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__) && !defined(ROWCALL_NO_SIMD)
#include <emmintrin.h>
#define ROWCALL_SSE2 1
#endif

/* 0: copied unchanged; 'u': \u00XX; anything else: a backslash and that letter (RFC 8259, section 7). */
static const unsigned char JSON_ESCAPE[256] = {
    'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'b', 't', 'n', 'u', 'f', 'r', 'u', 'u',
    'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u',
    ['"'] = '"', ['\\'] = '\\',
};

/* memcpy without a function call, for mostly short texts: keys, numbers, bare words. */
static inline void copy_text(char *target, const char *text, ptrdiff_t size) {
    if (size > 16) {
        memcpy(target, text, (size_t)size);
    } else if (size >= 8) {
        uint64_t first, last;
        memcpy(&first, text, 8);
        memcpy(&last, text + size - 8, 8);
        memcpy(target, &first, 8);
        memcpy(target + size - 8, &last, 8);
    } else if (size >= 4) {
        uint32_t first, last;
        memcpy(&first, text, 4);
        memcpy(&last, text + size - 4, 4);
        memcpy(target, &first, 4);
        memcpy(target + size - 4, &last, 4);
    } else if (size > 0) {
        const char middle = text[size >> 1], last = text[size - 1];
        target[0] = text[0];
        target[size >> 1] = middle;
        target[size - 1] = last;
    }
}

#define WORD_OF(byte) (UINT64_C(0x0101010101010101) * (byte))
#define WORD_HIGH WORD_OF(0x80)

/* Returns non-zero if some byte of the word is zero. A byte above a zero one may be flagged too, so a word with a flag
   is examined byte by byte. */
static inline uint64_t word_has_zero(uint64_t word) { return (word - WORD_OF(1)) & ~word & WORD_HIGH; }

static inline uint64_t word_needs_escape(uint64_t word) {
    return word_has_zero(word ^ WORD_OF('"')) | word_has_zero(word ^ WORD_OF('\\')) |
           ((word - WORD_OF(0x20)) & ~word & WORD_HIGH);
}

/* Writes the JSON form of [text, end) without its quotes and returns the end of the output.
   `target` must have room for 6 bytes for each source byte and 16 more. */
static inline char *json_escape(char *target, const char *text, const char *end) {
    static const char HEX[] = "0123456789ABCDEF";
    while (text < end) {
#ifdef ROWCALL_SSE2
        if (end - text >= 16) {
            const __m128i block = _mm_loadu_si128((const __m128i *)text);
            const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(0x1f)), block);
            const __m128i special = _mm_or_si128(
                _mm_cmpeq_epi8(block, _mm_set1_epi8('"')), _mm_cmpeq_epi8(block, _mm_set1_epi8('\\')));
            const unsigned found = (unsigned)_mm_movemask_epi8(_mm_or_si128(control, special));
            /* Stored before it is known to be clean: the next write starts where the clean run ends. */
            _mm_storeu_si128((__m128i *)target, block);
            const int clean = found ? __builtin_ctz(found) : 16;
            text += clean;
            target += clean;
            if (!found) continue;
        } else
#endif
        if (end - text >= 8) {
            uint64_t word;
            memcpy(&word, text, 8);
            if (!word_needs_escape(word)) {
                memcpy(target, &word, 8);
                text += 8;
                target += 8;
                continue;
            }
        }
        const unsigned char byte = (unsigned char)*text++;
        const unsigned char letter = JSON_ESCAPE[byte];
        if (!letter) {
            *target++ = (char)byte;
        } else if (letter != 'u') {
            *target++ = '\\';
            *target++ = (char)letter;
        } else {
            memcpy(target, "\\u00", 4);
            target[4] = HEX[byte >> 4];
            target[5] = HEX[byte & 15];
            target += 6;
        }
    }
    return target;
}

/* Copies the inside of PostgreSQL's double quotes to `target`, unquoted by one level: `\x` becomes x, and `""` becomes
   `"` if `doubled` is set (in tuples, not in arrays). `*position` is behind the opening quote and is moved behind the
   closing one. Returns the end of the output, or NULL if the closing quote is missing.
   `target` must have room for end - *text bytes and 16 more. */
static inline char *unquote(char *target, const char **position, const char *end, int doubled) {
    const char *text = *position;
    while (text < end) {
#ifdef ROWCALL_SSE2
        if (end - text >= 16) {
            const __m128i block = _mm_loadu_si128((const __m128i *)text);
            const unsigned found = (unsigned)_mm_movemask_epi8(_mm_or_si128(
                _mm_cmpeq_epi8(block, _mm_set1_epi8('"')), _mm_cmpeq_epi8(block, _mm_set1_epi8('\\'))));
            _mm_storeu_si128((__m128i *)target, block);
            const int run = found ? __builtin_ctz(found) : 16;
            text += run;
            target += run;
            if (!found) continue;
        } else
#endif
        if (*text != '"' && *text != '\\') {
            *target++ = *text++;
            continue;
        }
        /* Escapes come in sequences: a quote at the third level consists of seven. */
        do {
            if (*text == '"' && !(doubled && end - text > 1 && text[1] == '"')) {
                *position = text + 1;
                return target;
            }
            if (end - text < 2) return 0;
            /* A doubled quote and a byte behind a backslash both stand for the second byte. */
            *target++ = text[1];
            text += 2;
        } while (text < end && (*text == '\\' || *text == '"'));
    }
    return 0;
}

/* Returns the end of an unquoted value in a tuple: the first byte with a special meaning, or `end`. The table costs one
   branch per byte, and unquoted values are short. */
static inline const char *bare_slot_end(const char *text, const char *end) {
    static const unsigned char MEANS[256] = {[','] = 1, ['('] = 1, [')'] = 1, ['"'] = 1, ['\\'] = 1};
    while (text < end && !MEANS[(unsigned char)*text]) text++;
    return text;
}

/* Returns whether [text, end) is a number of JSON (RFC 8259, section 6); `NaN` and `Infinity` are not. */
static inline int is_json_number(const char *text, const char *end) {
#define SKIP_DIGITS(start) \
    start = text; \
    while (text < end && (unsigned char)(*text - '0') < 10) text++; \
    if (text == start) return 0
    const char *digits;
    if (text < end && *text == '-') text++;
    SKIP_DIGITS(digits);
    if (*digits == '0' && text - digits > 1) return 0;
    if (text < end && *text == '.') {
        text++;
        SKIP_DIGITS(digits);
    }
    if (text < end && (*text == 'e' || *text == 'E')) {
        text++;
        if (text < end && (*text == '+' || *text == '-')) text++;
        SKIP_DIGITS(digits);
    }
    return text == end;
#undef SKIP_DIGITS
}

#endif
