//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import HTTPWire

/// Which of the fields that a tracer wants to send go with a request, beside its own.
package enum PropagatedFields {
    /// The fields that are sent.
    ///
    /// A field that the request has already stays as it is, and where that is its `traceparent`, the `tracestate` is the request's as well:
    /// "The tracestate header is a companion header for the traceparent header" (W3C Trace Context, section 3.3).
    ///
    /// - Parameters:
    ///   - fields: Names and values, the values perhaps from elsewhere.
    ///   - own: The request's fields, the session's among them.
    ///   - leftOrigin: Whether a redirect led away from the origin that the load began with, where `baggage` stays: it says what the program
    ///     knows of its work.
    /// - Returns: Those of the fields that can be sent and are no one else's to set, each name once.
    package static func admitted(
        _ fields: [(String, String)], beside own: HeaderBlock, leftOrigin: Bool
    ) -> [(String, String)] {
        var admitted: [(String, String)] = []
        let ownsTrace = own.contains("traceparent")
        for (name, value) in fields {
            let lower = name.lowercased()
            guard ASCII.isToken(name), ASCII.isFieldValue(value), !OutgoingHeaders.isReservedForSession(name),
                !RedirectPolicy.isBoundToOrigin(name), !own.contains(name), !(ownsTrace && lower == "tracestate"),
                !(leftOrigin && lower == "baggage")
            else { continue }
            admitted.removeAll { $0.0.lowercased() == lower }
            admitted.append((name, value))
        }
        return admitted
    }
}
