//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

// The C library of the system, by one name.
#if canImport(Glibc)
@_exported public import Glibc
#else
@_exported public import Musl
#endif
