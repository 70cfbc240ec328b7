/* Escaping for HTML and for the XML of spreadsheets, and the dates of spreadsheets. Runs without special characters are
   copied whole. No function reads at or beyond `end`. */
#ifndef ROWCALL_MARKUP_H
#define ROWCALL_MARKUP_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* 1: `&<>"`. 2: bytes of characters that XML 1.0 forbids or a spreadsheet would misread, such as `_` and the first byte
   of U+FFFE. */
static const unsigned char MARKUP_SPECIAL[256] = {
    2, 2, 2, 2, 2, 2, 2, 2, 2, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    ['&'] = 1, ['<'] = 1, ['>'] = 1, ['"'] = 1, ['_'] = 2, [0xEF] = 2,
};

static inline char *markup_entity(char *target, unsigned char byte) {
    switch (byte) {
        case '&': memcpy(target, "&amp;", 5); return target + 5;
        case '<': memcpy(target, "&lt;", 4); return target + 4;
        case '>': memcpy(target, "&gt;", 4); return target + 4;
        default: memcpy(target, "&quot;", 6); return target + 6;
    }
}

/* Writes [text, end) with the four characters of markup as entities. `target` has room for 6 bytes for each byte. */
static inline char *html_escape(char *target, const char *text, const char *end) {
    while (text < end) {
        const char *run = text;
        while (text < end && MARKUP_SPECIAL[(unsigned char)*text] != 1) text++;
        memcpy(target, run, text - run);
        target += text - run;
        if (text < end) target = markup_entity(target, (unsigned char)*text++);
    }
    return target;
}

static inline int is_hex(unsigned char byte) {
    return (unsigned char)(byte - '0') < 10 || (unsigned char)((byte | 0x20) - 'a') < 6;
}

/* Returns whether the text begins like `_x0041_`, which a spreadsheet program would read as an escape. */
static inline int looks_escaped(const char *text, const char *end) {
    return end - text >= 7 && text[1] == 'x' && text[6] == '_' && is_hex(text[2]) && is_hex(text[3]) &&
           is_hex(text[4]) && is_hex(text[5]);
}

/* Writes [*position, stop) for the inside of a cell's <t>, moves `*position` behind it, and returns the end of the
   output. A character that begins before `stop` is written whole; `end` is the end of the value. ECMA-376, part 1,
   22.9.2.19: `_xHHHH_` represents a character that XML cannot contain. `target` has room for 7 bytes for each byte. */
static inline char *cell_escape(char *target, const char **position, const char *stop, const char *end) {
    static const char HEX[] = "0123456789ABCDEF";
    const char *text = *position;
    while (text < stop) {
        const char *run = text;
        while (text < stop && !MARKUP_SPECIAL[(unsigned char)*text]) text++;
        memcpy(target, run, text - run);
        target += text - run;
        if (text >= stop) break;
        const unsigned char byte = (unsigned char)*text;
        if (MARKUP_SPECIAL[byte] == 1) {
            target = markup_entity(target, byte);
            text++;
        } else if (byte < 0x20) {
            memcpy(target, "_x00", 4);
            target[4] = HEX[byte >> 4];
            target[5] = HEX[byte & 15];
            target[6] = '_';
            target += 7;
            text++;
        } else if (byte == '_' && looks_escaped(text, end)) {
            memcpy(target, "_x005F_", 7);
            target += 7;
            text++;
        } else if (byte == 0xEF && end - text >= 3 && (unsigned char)text[1] == 0xBF &&
                   ((unsigned char)text[2] & 0xFE) == 0xBE) {
            memcpy(target, (unsigned char)text[2] == 0xBE ? "_xFFFE_" : "_xFFFF_", 7);
            target += 7;
            text += 3;
        } else {
            *target++ = *text++;
        }
    }
    *position = text;
    return target;
}

/* Returns the position at which a text of more than `units` UTF-16 units has to be cut, or `end` for a shorter text. */
static inline const char *utf16_cut(const char *text, const char *end, ptrdiff_t units) {
    if (end - text <= units) return end;
    for (; text < end; text++) {
        const unsigned char byte = (unsigned char)*text;
        if ((byte & 0xC0) == 0x80) continue;
        units -= byte >= 0xF0 ? 2 : 1;
        if (units < 0) return text;
    }
    return end;
}

/* Returns the number at [text, text + count), or -1 if one of the bytes is no digit. */
static inline int digits(const char *text, int count) {
    int value = 0;
    for (int index = 0; index < count; index++) {
        const unsigned digit = (unsigned char)text[index] - '0';
        if (digit > 9) return -1;
        value = value * 10 + (int)digit;
    }
    return value;
}

/* Returns the days since 1970-01-01 in the Gregorian calendar, for years from 1 on (H. Hinnant, "chrono-compatible
   low-level date algorithms"). */
static inline int64_t days_from_civil(int year, int month, int day) {
    year -= month <= 2;
    const int era = year / 400;
    const int year_of_era = year - era * 400;
    const int day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return (int64_t)era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

/* Reads `2024-01-15` or `2024-01-15 10:30:00.12`, which any offset may follow, as the date number of spreadsheets: days
   since 1899-12-30 and millionths of a second of that day. Returns 1, or 0 if spreadsheets cannot represent the date:
   years before 1900 and after 9999, BC, infinity, and the last moments of 9999, which these numbers round up to the
   next year. */
static inline int date_serial(const char *text, const char *end, int64_t *days, int64_t *micros) {
    if (end - text < 10 || text[4] != '-' || text[7] != '-') return 0;
    const int year = digits(text, 4), month = digits(text + 5, 2), day = digits(text + 8, 2);
    if (year < 1900 || month < 1 || day < 1) return 0;
    *days = days_from_civil(year, month, day) + 25569;
    /* Spreadsheets treat 1900 as a leap year, so dates before March 1900 have a number that is one lower. */
    if (*days < 61) *days -= 1;
    *micros = 0;
    text += 10;
    if (text == end) return 1;
    if (end - text < 9 || text[0] != ' ' || text[3] != ':' || text[6] != ':') return 0;
    const int hour = digits(text + 1, 2), minute = digits(text + 4, 2), second = digits(text + 7, 2);
    if (hour < 0 || minute < 0 || second < 0) return 0;
    text += 9;
    int64_t fraction = 0, scale = 1000000;
    if (text < end && *text == '.') {
        for (text++; text < end && (unsigned char)(*text - '0') < 10; text++) {
            if (scale > 1) {
                scale /= 10;
                fraction += (*text - '0') * scale;
            }
        }
    }
    *micros = ((hour * 60 + minute) * 60 + (int64_t)second) * 1000000 + fraction;
    if ((double)*days + (double)*micros / 86400e6 >= 2958466.0) return 0;
    /* An offset may follow; ` BC` may not. */
    for (; text < end; text++) {
        if (*text == ' ') return 0;
    }
    return 1;
}

#endif
