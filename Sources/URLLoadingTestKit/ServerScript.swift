// SPDX-License-Identifier: Apache-2.0

public import Foundation

/// The steps with which a ``ScriptedLoopbackServer`` responds to a request.
public struct ServerScript: Sendable, ExpressibleByArrayLiteral {
    /// A step, which begins when the previous one is done.
    public enum Step: Sendable {
        /// Sends bytes exactly as given.
        case send(Data)
        /// Waits for a time.
        case pause(Duration)
        /// Waits until the test opens the gate.
        case gate(String)
        /// Sends nothing more and waits until the client disconnects.
        case silence
        /// Closes the connection.
        case close
        /// Closes the connection with a TCP reset.
        case reset
    }

    /// The steps, in order.
    ///
    /// After the last step, the connection stays open for the next request.
    public var steps: [Step]

    /// Creates a script from steps.
    ///
    /// - Parameter steps: The steps.
    public init(_ steps: [Step]) { self.steps = steps }

    /// Creates a script from steps.
    ///
    /// - Parameter steps: The steps.
    public init(arrayLiteral steps: Step...) { self.steps = steps }

    /// Returns a script that sends a complete response.
    ///
    /// - Parameters:
    ///   - status: The status.
    ///   - fields: The header fields, without `Content-Length`.
    ///   - body: The body.
    ///   - contentLength: The value of `Content-Length`; by default the body's length.
    /// - Returns: A script of two steps, which send the head and the body.
    public static func response(
        _ status: Int = 200, _ fields: [(name: String, value: String)] = [], body: Data = Data(), contentLength: Int? = nil
    ) -> ServerScript {
        var head = "HTTP/1.1 \(status) Scripted\r\n"
        for field in fields { head += "\(field.name): \(field.value)\r\n" }
        head += "Content-Length: \(contentLength ?? body.count)\r\n\r\n"
        return [.send(Data(head.utf8)), .send(body)]
    }

    /// Returns the script, delayed by the given time.
    ///
    /// - Parameter time: The delay.
    /// - Returns: The script.
    public func late(by time: Duration) -> ServerScript { ServerScript([.pause(time)] + steps) }

    /// Returns the script, delayed until the test opens a gate, so that the test does not depend on a clock.
    ///
    /// - Parameter gate: The gate's name.
    /// - Returns: The script.
    public func late(until gate: String) -> ServerScript { ServerScript([.gate(gate)] + steps) }

    /// Returns the script, cut off after `count` bytes of the head and the body.
    ///
    /// - Parameters:
    ///   - count: The number of bytes to send.
    ///   - end: The step after these bytes.
    /// - Returns: The script.
    public func cut(after count: Int, _ end: Step = .close) -> ServerScript {
        var left = count
        var result: [Step] = []
        for step in steps {
            guard case .send(let data) = step else {
                result.append(step)
                continue
            }
            result.append(.send(data.prefix(left)))
            if data.count > left { return ServerScript(result + [end]) }
            left -= data.count
        }
        return ServerScript(result + [end])
    }

    /// Returns the script, cut off in the middle of the body.
    ///
    /// - Parameter end: The step after the first half.
    /// - Returns: The script.
    public func cutInTheMiddle(_ end: Step = .close) -> ServerScript {
        let sizes = steps.map { if case .send(let data) = $0 { data.count } else { 0 } }
        let (all, body) = (sizes.reduce(0, +), sizes.last ?? 0)
        return cut(after: all - body + body / 2, end)
    }

    /// Returns the script, sent in pieces with a pause before each piece except the first.
    ///
    /// - Parameters:
    ///   - size: The size of a piece, in bytes.
    ///   - pause: The length of a pause.
    /// - Returns: The script.
    public func slow(pieces size: Int, pause: Duration) -> ServerScript {
        var result: [Step] = []
        for step in steps {
            guard case .send(let data) = step, !data.isEmpty else {
                result.append(step)
                continue
            }
            var rest = data[...]
            while !rest.isEmpty {
                if !result.isEmpty { result.append(.pause(pause)) }
                result.append(.send(Data(rest.prefix(max(1, size)))))
                rest = rest.dropFirst(max(1, size))
            }
        }
        return ServerScript(result)
    }
}
