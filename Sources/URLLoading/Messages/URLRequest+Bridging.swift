//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

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

    /// The request as an object; what `as NSURLRequest` calls.
    ///
    /// - Returns: An `NSURLRequest`.
    public func _bridgeToObjectiveC() -> NSURLRequest { NSURLRequest(self) }

    /// The value of an object; what a forced cast calls.
    ///
    /// - Parameters:
    ///   - source: The object.
    ///   - result: Its request.
    public static func _forceBridgeFromObjectiveC(_ source: NSURLRequest, result: inout URLRequest?) {
        result = source.request
    }

    /// The value of an object; what `as? URLRequest` calls.
    ///
    /// - Parameters:
    ///   - source: The object.
    ///   - result: Its request.
    /// - Returns: True.
    public static func _conditionallyBridgeFromObjectiveC(_ source: NSURLRequest, result: inout URLRequest?) -> Bool {
        result = source.request
        return true
    }

    /// The value of an object; what `as URLRequest` calls.
    ///
    /// Nothing gives a request without a URL.
    ///
    /// - Parameter source: The object, or nothing.
    /// - Returns: Its request.
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSURLRequest?) -> URLRequest {
        source?.request ?? URLRequest()
    }
}
