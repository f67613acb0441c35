// SPDX-License-Identifier: Apache-2.0

#ifndef CLIB_CODECS_H
#define CLIB_CODECS_H

#include "CSystemLibraries.h"

// The common beginning of each library's function table.
struct clib_codec {
    void *(*create)(const struct clib_codec *codec);
    void (*free)(const struct clib_codec *codec, void *decoder);
    void (*decode)(
        const struct clib_codec *codec, void *decoder, const uint8_t *bytes, size_t count, uint8_t *room, size_t capacity,
        struct clib_decoding *decoding
    );
};

#endif
