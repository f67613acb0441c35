//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation

/// What a delegate hears of a ``NetService``, in the run loops where that is scheduled.
///
/// All methods are optional, as in Apple's: one that a class does not have does nothing.
public protocol NetServiceDelegate: NSObjectProtocol {
    /// The service is about to be looked for.
    func netServiceWillResolve(_ sender: NetService)

    /// The service was found: ``NetService/hostName``, ``NetService/port``, ``NetService/addresses`` and ``NetService/txtRecordData()`` say where and what it
    /// is.
    func netServiceDidResolveAddress(_ sender: NetService)

    /// The service was not found.
    ///
    /// - Parameters:
    ///   - sender: The service.
    ///   - errorDict: A ``NetService/ErrorCode`` under ``NetService/errorCode``, and 10 under ``NetService/errorDomain``, as on Apple's systems.
    func netService(_ sender: NetService, didNotResolve errorDict: [String: NSNumber])

    /// The service was stopped by ``NetService/stop()``.
    func netServiceDidStop(_ sender: NetService)
}

extension NetServiceDelegate {
    /// Does nothing.
    public func netServiceWillResolve(_ sender: NetService) {}

    /// Does nothing.
    public func netServiceDidResolveAddress(_ sender: NetService) {}

    /// Does nothing.
    public func netService(_ sender: NetService, didNotResolve errorDict: [String: NSNumber]) {}

    /// Does nothing.
    public func netServiceDidStop(_ sender: NetService) {}
}
