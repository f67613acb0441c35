// SPDX-License-Identifier: Apache-2.0

public import Foundation

/// The delegate of a ``NetService``, called on the run loops that the service is scheduled in.
///
/// All methods are optional, as in Apple's API.
public protocol NetServiceDelegate: NSObjectProtocol {
    /// Tells the delegate that the service is about to be resolved.
    func netServiceWillResolve(_ sender: NetService)

    /// Tells the delegate that the service was resolved: ``NetService/hostName``, ``NetService/port``, ``NetService/addresses`` and
    /// ``NetService/txtRecordData()`` are available.
    func netServiceDidResolveAddress(_ sender: NetService)

    /// Tells the delegate that the service was not resolved.
    ///
    /// - Parameters:
    ///   - sender: The service.
    ///   - errorDict: A ``NetService/ErrorCode`` for the key ``NetService/errorCode``, and the number 10 for the key
    ///     ``NetService/errorDomain``, as on Apple's systems.
    func netService(_ sender: NetService, didNotResolve errorDict: [String: NSNumber])

    /// Tells the delegate that ``NetService/stop()`` stopped the service.
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
