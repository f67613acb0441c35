// SPDX-License-Identifier: Apache-2.0

#include "Codecs.h"
#include "Functions.h"
#define TABLE brotli

#include <stdlib.h>
#include <time.h>

// libbrotlidec.so.1: brotli 1.0 or newer.

// libbrotlidec decodes ahead of the output space, by up to a whole window, and a few input bytes can be headers that take long to
// process. These limits keep each step short: the bytes of input per step, and the microseconds after which no further step starts.
enum { MAXIMUM_READ = 2048, MAXIMUM_TIME = 1000 };

// BrotliDecoderResult
enum { RESULT_ERROR = 0, RESULT_SUCCESS = 1, RESULT_NEEDS_MORE_INPUT = 2 };

// BrotliDecoderErrorCode: the codes in this range mean that an allocation failed.
enum { FIRST_ALLOCATION_ERROR = -21, LAST_ALLOCATION_ERROR = -30 };

#define FUNCTIONS(F) \
    F(void *, BrotliDecoderCreateInstance, (void *, void *, void *)) \
    F(void, BrotliDecoderDestroyInstance, (void *)) \
    F(int, BrotliDecoderDecompressStream, (void *, size_t *, const uint8_t **, size_t *, uint8_t **, size_t *)) \
    F(int, BrotliDecoderGetErrorCode, (const void *)) \
    F(const char *, BrotliDecoderErrorString, (int))

struct brotli {
    struct clib_codec codec;
    FUNCTIONS(MEMBER)
};

static const struct clib_function functions[] = {FUNCTIONS(ROW)};

// Windows of more than 16 MiB are an extension that is off by default (BROTLI_DECODER_PARAM_LARGE_WINDOW): brotli rejects them.
static void *create(const struct clib_codec *codec) {
    return ((const struct brotli *)codec)->BrotliDecoderCreateInstance(NULL, NULL, NULL);
}

static void destroy(const struct clib_codec *codec, void *decoder) {
    ((const struct brotli *)codec)->BrotliDecoderDestroyInstance(decoder);
}

static long long microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static void decode(
    const struct clib_codec *codec, void *decoder, const uint8_t *bytes, size_t count, uint8_t *room, size_t capacity,
    struct clib_decoding *decoding
) {
    const struct brotli *brotli = (const struct brotli *)codec;
    size_t unread, unwritten = capacity;
    int result;
    const long long end = microseconds() + MAXIMUM_TIME;
    do {
        const size_t span = count - decoding->read < MAXIMUM_READ ? count - decoding->read : MAXIMUM_READ;
        unread = span;
        result = brotli->BrotliDecoderDecompressStream(decoder, &unread, &bytes, &unwritten, &room, NULL);
        decoding->read += span - unread;
        decoding->written = capacity - unwritten;
    } while (result == RESULT_NEEDS_MORE_INPUT && decoding->read < count && unwritten > 0 && microseconds() < end);
    if (result == RESULT_SUCCESS) decoding->outcome = CLIB_DECODING_IS_OVER;
    if (result != RESULT_ERROR) return;
    int error = brotli->BrotliDecoderGetErrorCode(decoder);
    int is_memory = error <= FIRST_ALLOCATION_ERROR && error >= LAST_ALLOCATION_ERROR;
    decoding->outcome = is_memory ? CLIB_DECODING_HAS_NO_MEMORY : CLIB_DECODING_IS_DAMAGED;
    decoding->reason = brotli->BrotliDecoderErrorString(error);
}

const struct clib_codec *clib_brotli_load(void *handle, const char **missing) {
    struct brotli *brotli = LOAD();
    if (!brotli) return NULL;
    brotli->codec = (struct clib_codec){create, destroy, decode};
    return &brotli->codec;
}
