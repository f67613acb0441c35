// SPDX-License-Identifier: Apache-2.0

#include "Codecs.h"

#include <string.h>

void *clib_decoder_create(const struct clib_codec *codec) { return codec->create(codec); }

void clib_decoder_free(const struct clib_codec *codec, void *decoder) { codec->free(codec, decoder); }

void clib_decoder_decode(
    const struct clib_codec *codec, void *decoder, const uint8_t *bytes, size_t count, uint8_t *room, size_t capacity,
    struct clib_decoding *decoding
) {
    memset(decoding, 0, sizeof *decoding);
    codec->decode(codec, decoder, bytes, count, room, capacity, decoding);
}
