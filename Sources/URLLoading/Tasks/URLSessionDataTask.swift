//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// A task that delivers the response body in memory: to the delegate in chunks, or to a completion handler or caller as a whole.
open class URLSessionDataTask: URLSessionTask, @unchecked Sendable {}
