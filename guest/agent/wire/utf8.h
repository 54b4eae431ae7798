// UTF-8, by the Unicode standard's table of well-formed sequences. Pure.
#ifndef IGNITION_UTF8_H
#define IGNITION_UTF8_H

#include <stddef.h>
#include <stdint.h>

enum { UTF8_MAX_BYTES = 4 };

// Length of the sequence that a first byte announces, 0 when none begins with it.
size_t utf8_announced(uint8_t first);

// Length of the sequence at the start of `left` bytes, 0 when they do not start with one.
size_t utf8_length(const uint8_t *at, size_t left);

#endif
