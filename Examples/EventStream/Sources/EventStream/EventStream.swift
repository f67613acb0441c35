// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

/// Asks a language model, and prints its answer while it is generated.
///
/// The server uses a common protocol: it responds to a POST of JSON with a stream of events. Each event has a piece of the text,
/// and the last event is `[DONE]`. The key is in the environment variable `API_KEY`.
@main
struct EventStream {
    /// The relevant parts of an event's data.
    private struct Chunk: Decodable {
        struct Choice: Decodable {
            struct Delta: Decodable { let content: String? }
            let delta: Delta
        }
        let choices: [Choice]
    }

    private struct Question: Encodable {
        struct Message: Encodable { let role = "user", content: String }
        let model: String
        let stream = true
        let messages: [Message]
    }

    static func main() async {
        let arguments = CommandLine.arguments.dropFirst()
        guard arguments.count == 3, let url = arguments.first.flatMap({ URL(string: $0) }) else {
            print("usage: EventStream URL MODEL QUESTION")
            exit(2)
        }
        do {
            for try await piece in try answer(to: arguments.dropFirst(2).joined(), by: arguments.dropFirst().first ?? "", at: url)
            {
                FileHandle.standardOutput.write(Data(piece.utf8))
            }
            print()
        } catch {
            print("failed: \(error.localizedDescription)")
            exit(1)
        }
    }

    /// Returns the pieces of the answer as they arrive.
    static func answer(to question: String, by model: String, at url: URL) throws -> AsyncThrowingStream<String, any Error> {
        var request = URLRequest(url: url)
        request.httpMethod = "POST"
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        if let key = ProcessInfo.processInfo.environment["API_KEY"] {
            request.setValue("Bearer \(key)", forHTTPHeaderField: "Authorization")
        }
        request.httpBody = try JSONEncoder().encode(Question(model: model, messages: [.init(content: question)]))
        // The maximum time until the response begins; the time between two events is not limited.
        request.timeoutInterval = 120
        let events = URLSession.shared.serverSentEvents(for: request)
        return AsyncThrowingStream { continuation in
            let reading = Task {
                do {
                    for try await event in events where !event.data.isEmpty {
                        if event.data == "[DONE]" { break }
                        let chunk = try JSONDecoder().decode(Chunk.self, from: Data(event.data.utf8))
                        for piece in chunk.choices.compactMap(\.delta.content) { continuation.yield(piece) }
                    }
                    continuation.finish()
                } catch {
                    continuation.finish(throwing: error)
                }
            }
            continuation.onTermination = { _ in reading.cancel() }
        }
    }
}
