// SPDX-License-Identifier: Apache-2.0

#define NEW_INTERFACE 1
#include "Implementation.h"

const struct cquic_library *cquic_load_1(void *ngtcp2, void *crypto, void *nghttp3, const char **missing) {
    return load(ngtcp2, crypto, nghttp3, missing);
}
