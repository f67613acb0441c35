// SPDX-License-Identifier: Apache-2.0

package import HTTPWire

/// Selects the fields from a tracer that are added to a request.
package enum PropagatedFields {
    /// Returns the fields to send.
    ///
    /// A field that the request already has is kept. If the request has its own `traceparent`, the `tracestate` of the request is
    /// kept as well: "The tracestate header is a companion header for the traceparent header" (W3C Trace Context, section 3.3).
    ///
    /// - Parameters:
    ///   - fields: Names and values; the values may come from an untrusted source.
    ///   - own: The fields of the request, including the session's fields.
    ///   - leftOrigin: Whether a redirect left the origin that the load started with. `baggage` is then omitted, because it
    ///     describes the internal work of the program.
    /// - Returns: The fields that can be sent and are not reserved, each name once.
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
