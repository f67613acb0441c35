// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPWire
import LoadingModel
import Testing

@testable import BackgroundProtocol

@Suite struct UnsendableTests {
    private final class Stream: BodyStream {
        func read(upTo count: Int, reply: @escaping @Sendable (Result<Data, any Error>) -> Void) { reply(.success(Data())) }
        func close() {}
    }

    private static func order(_ body: RequestBody) throws -> BackgroundOrder {
        BackgroundOrder(TaskOrder(id: 1, request: try Samples.request(body: body), delivery: .collect), created: 0)
    }

    @Test func `streams are refused, and the error names what can be sent`() throws {
        for body in [.stream(Stream()), .streamOnDemand] as [RequestBody] {
            let order = try Self.order(body)
            let failure = MessageFailure.malformed("a stream cannot be sent in the background, only a file or data")
            #expect(throws: failure) { try MessageCoding.encode(.submit(order)) }
            #expect(throws: failure) { try MessageCoding.encode(order) }
        }
    }

    @Test func `a long body is sent only from a file`() throws {
        #expect(throws: MessageFailure.malformed("a body of 1048577 bytes can be sent in the background only from a file")) {
            try MessageCoding.encode(try Self.order(.data(Data(count: 1 << 20 + 1))))
        }
        #expect(throws: Never.self) { try MessageCoding.encode(try Self.order(.data(Data(count: 1 << 20)))) }
    }

    @Test func `a message that the receiver would refuse is not sent`() throws {
        #expect(throws: MessageFailure.malformed("a body's file is not absolute")) {
            try MessageCoding.encode(try Self.order(.file(path: "a")))
        }
        #expect(throws: MessageFailure.malformed("a task's number is less than 1")) { try MessageCoding.encode(.told(0)) }
        var settings = BackgroundSettings()
        settings.knownCredentials = Array(
            repeating: .init(space: Samples.space, credential: Samples.password, isDefault: false), count: 1_001)
        #expect(throws: MessageFailure.malformed("the credentials has too many entries")) { try MessageCoding.encode(settings) }
        settings = BackgroundSettings()
        settings.policy.requestTimeout = .nan
        #expect(throws: MessageFailure.malformed("a timeout is not a number")) { try MessageCoding.encode(settings) }
    }

    @Test func `a response that the app created itself is not sent`() throws {
        let response = LoadResponse(url: try Samples.url(), kind: .application(Stream()), expectedLength: 1)
        let failure = MessageFailure.malformed("an app's own response cannot be sent to another process")
        #expect(throws: failure) { try MessageCoding.encode(response) }
        #expect(throws: failure) { try MessageCoding.encode(.event(.response(response), 1)) }
    }

    @Test func `commands, questions and answers for the engine of the program itself are not sent`() throws {
        let request = try Samples.request()
        for command in [.consumed(bytes: 1), .reportCounts] as [TaskCommand] {
            #expect(throws: MessageFailure.malformed("the command cannot be sent to the daemon")) {
                try MessageCoding.encode(.command(command, 1))
            }
        }
        let questions: [TaskQuestion] = [
            .redirect(response: try Samples.response(), proposed: request), .response(try Samples.response()),
            .newBodyStream(from: 0),
            .customLoader(request), .storedCredential(Samples.space), .cookies(request), .cachedResponse(request),
        ]
        for question in questions {
            #expect(throws: MessageFailure.malformed("the question cannot be sent to another process")) {
                try MessageCoding.encode(.question(question, 1, question: 1))
            }
        }
        for answer in [.request(nil), .disposition(.allow), .bodyStream(nil), .cookies(nil), .cached(nil), .done] as [TaskAnswer]
        {
            #expect(throws: MessageFailure.malformed("the answer cannot be sent to another process")) {
                try MessageCoding.encode(.answer(answer, 1, question: 1))
            }
        }
    }

    @Test func `a message that exceeds the daemon's limit is not sent`() throws {
        var attachment = try Samples.attachment()
        attachment.settings.policy.trustRoots = [Data(count: 9 << 20)]
        #expect {
            try MessageCoding.encode(.attach(attachment))
        } throws: { error in
            if case MessageFailure.malformed(let fault) = error { fault.hasSuffix("is too long") } else { false }
        }
    }
}
