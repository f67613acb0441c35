//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef CSL_CODECS_H
#define CSL_CODECS_H

#include "CSystemLibraries.h"

// The common beginning of each library's function table.
struct csl_codec {
    void *(*create)(const struct csl_codec *codec);
    void (*free)(const struct csl_codec *codec, void *decoder);
    void (*decode)(
        const struct csl_codec *codec, void *decoder, const uint8_t *bytes, size_t count, uint8_t *room, size_t capacity,
        struct csl_decoding *decoding
    );
};

#endif
