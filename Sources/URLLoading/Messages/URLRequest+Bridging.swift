// SPDX-License-Identifier: Apache-2.0

public import Foundation

extension URLRequest: ReferenceConvertible {
    /// The class a request bridges to.
    public typealias ReferenceType = NSURLRequest
}

// The names are the standard library's.
// swift-format-ignore: NoLeadingUnderscores
extension URLRequest: _ObjectiveCBridgeable {
    /// The class a request bridges to.
    public typealias _ObjectiveCType = NSURLRequest

    /// Bridges the request to an object; called for `as NSURLRequest`.
    ///
    /// - Returns: An `NSURLRequest`.
    public func _bridgeToObjectiveC() -> NSURLRequest { NSURLRequest(self) }

    /// Bridges an object to a request; called for a forced cast.
    ///
    /// - Parameters:
    ///   - source: The object.
    ///   - result: Its request.
    public static func _forceBridgeFromObjectiveC(_ source: NSURLRequest, result: inout URLRequest?) {
        result = source.request
    }

    /// Bridges an object to a request; called for `as? URLRequest`.
    ///
    /// - Parameters:
    ///   - source: The object.
    ///   - result: Its request.
    /// - Returns: True.
    public static func _conditionallyBridgeFromObjectiveC(_ source: NSURLRequest, result: inout URLRequest?) -> Bool {
        result = source.request
        return true
    }

    /// Bridges an object to a request; called for `as URLRequest`.
    ///
    /// nil becomes a request without a URL.
    ///
    /// - Parameter source: The object, or nil.
    /// - Returns: Its request.
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSURLRequest?) -> URLRequest {
        source?.request ?? URLRequest()
    }
}
