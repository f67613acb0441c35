// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOPosix

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A scripted name server in this process, on its own loopback port, over UDP and TCP.
package final class ScriptedNameServer: Sendable {
    package struct Question: Sendable, Hashable {
        /// The name in lower case.
        package var name: String
        package var isV6: Bool
        /// Whether the question is for HTTPS records (RFC 9460), instead of addresses.
        package var isForServices = false
    }

    package struct Reply: Sendable {
        /// The list of addresses in each datagram to send.
        var datagrams: [[String]]
        /// What answers a question for HTTPS records.
        var services = Services.records([])
        var seconds: UInt32
        var code: UInt8 = 0
        var gate: String?

        package static func addresses(_ addresses: String..., seconds: UInt32 = 60, gate: String? = nil) -> Reply {
            Reply(datagrams: [addresses], seconds: seconds, gate: gate)
        }

        package static func many(_ addresses: [String]) -> Reply { Reply(datagrams: [addresses], seconds: 60) }

        /// Two answers to one question.
        package static func twice(_ first: String, _ second: String) -> Reply {
            Reply(datagrams: [[first], [second]], seconds: 60)
        }

        package static func code(_ code: UInt8) -> Reply { Reply(datagrams: [[]], seconds: 60, code: code) }

        /// Records that are sent whatever the question is, each as its owner, type, class, TTL and data (RFC 1035, section 4.1.3).
        package static func records(_ records: [[UInt8]]) -> Reply {
            Reply(datagrams: [[]], services: .records(records), seconds: 0)
        }

        /// A message without its ID.
        package static func message(_ bytes: [UInt8]) -> Reply { Reply(datagrams: [[]], services: .message(bytes), seconds: 0) }

        package static let nothing = Reply(datagrams: [], seconds: 0)
    }

    enum Services: Sendable {
        case records([[UInt8]])
        case message([UInt8])
    }

    private struct Journal: Sendable {
        var questions: [Question] = []
        var openGates: Set<String> = []
        var blocked: [String: [@Sendable () -> Void]] = [:]
    }

    package typealias Script = @Sendable (Question, _ order: Int) -> Reply

    private let channels: [any Channel]
    private let journal: Watched<Journal>
    package let port: Int
    package var address: String { "127.0.0.1:\(port)" }

    private init(_ channels: [any Channel], _ journal: Watched<Journal>) {
        self.channels = channels
        self.journal = journal
        port = channels[0].localAddress?.port ?? 0
    }

    /// Starts a server; `order` counts the questions for a name and family from 0.
    ///
    /// A response contains only addresses of the requested family.
    package static func start(port: Int = 0, _ script: @escaping Script) async throws -> ScriptedNameServer {
        let journal = Watched(Journal())
        let reply: @Sendable (Question) -> Reply = { question in
            let order = journal.change { journal in
                journal.questions.append(question)
                return journal.questions.filter { $0 == question }.count - 1
            }
            return script(question, order)
        }
        let group = MultiThreadedEventLoopGroup.singleton
        while true {
            let datagrams = try await DatagramBootstrap(group: group)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(DatagramHandler(reply, journal))
                    }
                }
                .bind(host: "127.0.0.1", port: port).get()
            let streams = try? await ServerBootstrap(group: group)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(StreamHandler(reply)) }
                }
                .bind(host: "127.0.0.1", port: datagrams.localAddress?.port ?? 0).get()
            if let streams { return ScriptedNameServer([datagrams, streams], journal) }
            // Another process uses the port over TCP.
            try await datagrams.close()
            if port != 0 { throw ServerProcess.Failure(description: "another process uses port \(port) over TCP") }
        }
    }

    package func close() async { for channel in channels { try? await channel.close() } }

    /// The number of questions for a name and family.
    package func count(_ name: String, isV6: Bool = false) -> Int {
        journal.read { $0.questions.filter { $0 == Question(name: name, isV6: isV6) }.count }
    }

    /// The names in the questions for HTTPS records, in order.
    package var servicesAsked: [String] { journal.read { $0.questions.filter(\.isForServices).map(\.name) } }

    /// Waits for a question for a name and family.
    package func waitForQuestion(_ name: String, isV6: Bool = false) async throws {
        try await journal.value { $0.questions.contains(Question(name: name, isV6: isV6)) ? () : nil }
    }

    /// Sends the responses that wait for a gate, and opens the gate for later responses.
    package func open(_ gate: String) {
        let blocked = journal.change { journal in
            journal.openGates.insert(gate)
            return journal.blocked.removeValue(forKey: gate) ?? []
        }
        for send in blocked { send() }
    }

    /// Responds over UDP; responses longer than 512 bytes are truncated (TC).
    private final class DatagramHandler: ChannelInboundHandler {
        typealias InboundIn = AddressedEnvelope<ByteBuffer>
        typealias OutboundOut = AddressedEnvelope<ByteBuffer>

        private let reply: @Sendable (Question) -> Reply
        private let journal: Watched<Journal>

        init(_ reply: @escaping @Sendable (Question) -> Reply, _ journal: Watched<Journal>) {
            self.reply = reply
            self.journal = journal
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let envelope = unwrapInboundIn(data)
            guard let query = Query(envelope.data) else { return }
            let reply = reply(query.question)
            let messages = reply.datagrams.map { addresses in
                let message = query.message(addresses, reply)
                return message.readableBytes > 512 ? query.message([], reply, isCut: true) : message
            }
            let (channel, peer) = (context.channel, envelope.remoteAddress)
            let send: @Sendable () -> Void = {
                for message in messages {
                    channel.writeAndFlush(AddressedEnvelope(remoteAddress: peer, data: message), promise: nil)
                }
            }
            let isBlocked = journal.change { journal in
                guard let gate = reply.gate, !journal.openGates.contains(gate) else { return false }
                journal.blocked[gate, default: []].append(send)
                return true
            }
            if !isBlocked { send() }
        }
    }

    private final class StreamHandler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let reply: @Sendable (Question) -> Reply
        private var received = ByteBuffer()

        init(_ reply: @escaping @Sendable (Question) -> Reply) { self.reply = reply }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            received.writeImmutableBuffer(unwrapInboundIn(data))
            guard let length = received.getInteger(at: received.readerIndex, as: UInt16.self),
                let bytes = received.getSlice(at: received.readerIndex + 2, length: Int(length)), let query = Query(bytes)
            else { return }
            received.clear()
            let reply = reply(query.question)
            let message = query.message(reply.datagrams.first ?? [], reply)
            var out = ByteBuffer(integer: UInt16(message.readableBytes))
            out.writeImmutableBuffer(message)
            context.writeAndFlush(wrapOutboundOut(out), promise: nil)
        }
    }

    /// A query (RFC 1035, section 4).
    private struct Query {
        let question: Question
        private let id: UInt16
        private let section: ByteBuffer

        init?(_ datagram: ByteBuffer) {
            var bytes = datagram
            guard let id = bytes.readInteger(as: UInt16.self), bytes.readSlice(length: 10) != nil else { return nil }
            let start = bytes.readerIndex
            var labels: [String] = []
            while let length = bytes.readInteger(as: UInt8.self), length > 0 {
                guard let label = bytes.readString(length: Int(length)) else { return nil }
                labels.append(label)
            }
            guard let type = bytes.readInteger(as: UInt16.self), bytes.readInteger(as: UInt16.self) != nil,
                let section = datagram.getSlice(at: start, length: bytes.readerIndex - start)
            else { return nil }
            self.id = id
            self.section = section
            question = Question(name: labels.joined(separator: ".").lowercased(), isV6: type == 28, isForServices: type == 65)
        }

        func message(_ addresses: [String], _ reply: Reply, isCut: Bool = false) -> ByteBuffer {
            var records = question.isForServices ? [] : addresses.compactMap { Self.bytes(of: $0, isV6: question.isV6) }
            var message = ByteBuffer()
            message.writeInteger(id)
            var others: [[UInt8]] = []
            switch reply.services {
            case .message(let bytes):
                message.writeBytes(bytes)
                return message
            case .records(let found): others = found
            }
            if isCut { (records, others) = ([], []) }
            message.writeInteger(0x8180 | UInt16(reply.code) | (isCut ? 0x0200 : 0))
            for count in [1, records.count + others.count, 0, 0] { message.writeInteger(UInt16(count)) }
            message.writeImmutableBuffer(section)
            for record in records {
                message.writeInteger(0xC00C as UInt16)
                message.writeInteger(question.isV6 ? 28 : 1 as UInt16)
                message.writeInteger(1 as UInt16)
                message.writeInteger(reply.seconds)
                message.writeInteger(UInt16(record.count))
                message.writeBytes(record)
            }
            for record in others { message.writeBytes(record) }
            return message
        }

        private static func bytes(of text: String, isV6: Bool) -> [UInt8]? {
            var bytes = [UInt8](repeating: 0, count: isV6 ? 16 : 4)
            return inet_pton(isV6 ? AF_INET6 : AF_INET, text, &bytes) == 1 ? bytes : nil
        }
    }
}
