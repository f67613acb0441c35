//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import HTTPRules
import LoadingModel
import NIOCore

/// What every load of a session has in common.
final class SessionFacts {
    let policy: SessionPolicy
    let headers: OutgoingHeaders
    let loop: any EventLoop

    init(policy: SessionPolicy, loop: any EventLoop) {
        self.policy = policy
        self.loop = loop
        headers = OutgoingHeaders(additional: policy.additionalHeaders)
    }
}
