// SPDX-License-Identifier: Apache-2.0

#include "Codecs.h"
#include "Functions.h"
#define TABLE zstd

#include <stdlib.h>

// libzstd.so.1: zstd 1.4 or newer.

// ZSTD_d_windowLogMax: 8 MiB, the limit for senders (RFC 9659, section 3).
enum { WINDOW_LIMIT_PARAMETER = 100, WINDOW_LIMIT = 23 };

// ZSTD_error_memory_allocation
enum { MEMORY_ERROR = 64 };

// The header of a block (RFC 8878, section 3.1.1.2). libzstd requests it together with the preceding block.
enum { BLOCK_HEADER = 3 };

struct span {  // ZSTD_inBuffer
    const void *bytes;
    size_t size;
    size_t position;
};

struct room {  // ZSTD_outBuffer
    void *bytes;
    size_t size;
    size_t position;
};

#define FUNCTIONS(F) \
    F(void *, ZSTD_createDStream, (void)) \
    F(size_t, ZSTD_freeDStream, (void *)) \
    F(size_t, ZSTD_initDStream, (void *)) \
    F(size_t, ZSTD_DCtx_setParameter, (void *, int, int)) \
    F(size_t, ZSTD_decompressStream, (void *, struct room *, struct span *)) \
    F(unsigned, ZSTD_isError, (size_t)) \
    F(const char *, ZSTD_getErrorName, (size_t))

struct zstd {
    struct clib_codec codec;
    FUNCTIONS(MEMBER)
};

static const struct clib_function functions[] = {FUNCTIONS(ROW)};

struct decoder {
    void *stream;
    // The input size that libzstd requests at the beginning of a frame, and for the next call.
    size_t wanted_first;
    size_t wanted;
    // Whether the last block may have more output than fit into the output space.
    int has_more;
};

static void destroy(const struct clib_codec *codec, void *pointer) {
    struct decoder *decoder = pointer;
    ((const struct zstd *)codec)->ZSTD_freeDStream(decoder->stream);
    free(decoder);
}

static void *create(const struct clib_codec *codec) {
    const struct zstd *zstd = (const struct zstd *)codec;
    struct decoder *decoder = calloc(1, sizeof *decoder);
    if (!decoder) return NULL;
    decoder->stream = zstd->ZSTD_createDStream();
    if (decoder->stream && !zstd->ZSTD_isError(zstd->ZSTD_DCtx_setParameter(decoder->stream, WINDOW_LIMIT_PARAMETER, WINDOW_LIMIT))) {
        decoder->wanted_first = decoder->wanted = zstd->ZSTD_initDStream(decoder->stream);
        if (!zstd->ZSTD_isError(decoder->wanted)) return decoder;
    }
    destroy(codec, decoder);
    return NULL;
}

// Passes one block per call, and uses a separate call for the rest of the previous block. Otherwise, a call that finds damage would
// lose the output before the damage, and a small complete frame would be decoded past the window limit.
static size_t span_of(const struct decoder *decoder, size_t count) {
    if (decoder->has_more) return 0;
    size_t wanted = decoder->wanted > BLOCK_HEADER ? decoder->wanted - BLOCK_HEADER : decoder->wanted;
    return count < wanted ? count : wanted;
}

static void decode(
    const struct clib_codec *codec, void *pointer, const uint8_t *bytes, size_t count, uint8_t *place, size_t capacity,
    struct clib_decoding *decoding
) {
    const struct zstd *zstd = (const struct zstd *)codec;
    struct decoder *decoder = pointer;
    struct room room = {place, capacity, 0};
    do {
        struct span span = {bytes + decoding->read, span_of(decoder, count - decoding->read), 0};
        size_t result = zstd->ZSTD_decompressStream(decoder->stream, &room, &span);
        if (zstd->ZSTD_isError(result)) {
            decoding->outcome = result == (size_t)-MEMORY_ERROR ? CLIB_DECODING_HAS_NO_MEMORY : CLIB_DECODING_IS_DAMAGED;
            decoding->reason = zstd->ZSTD_getErrorName(result);
            break;
        }
        decoding->read += span.position;
        decoding->written = room.position;
        decoder->wanted = result;
        decoder->has_more = room.position == room.size;
        if (result == 0) {
            decoding->outcome = CLIB_DECODING_IS_OVER;
            decoder->wanted = decoder->wanted_first;
            break;
        }
    } while (decoding->read < count && decoding->written < capacity);
}

const struct clib_codec *clib_zstd_load(void *handle, const char **missing) {
    struct zstd *zstd = LOAD();
    if (!zstd) return NULL;
    zstd->codec = (struct clib_codec){create, destroy, decode};
    return &zstd->codec;
}
