// SPDX-License-Identifier: Apache-2.0

// The C library of the system, by one name.
#if canImport(Glibc)
@_exported public import Glibc
#else
@_exported public import Musl
#endif
