// SPDX-License-Identifier: Apache-2.0

#define NEW_INTERFACE 0
#include "Implementation.h"

const struct cquic_library *cquic_load_0(void *ngtcp2, void *crypto, void *nghttp3, const char **missing) {
    return load(ngtcp2, crypto, nghttp3, missing);
}
