// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPTypes
import NIOCore
import NIOHTTPTypes

/// Writes the content of a PUT or POST to a file named by the last component of its path, and responds with 201 at the end.
///
/// The writer does not know about resumption: the handler before it joins the parts of an upload into one request.
final class FileWriter: ChannelInboundHandler {
    typealias InboundIn = HTTPRequestPart
    typealias OutboundOut = HTTPResponsePart

    private let folder: String
    private var file: FileHandle?

    init(folder: String) { self.folder = folder }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        do {
            switch unwrapInboundIn(data) {
            case .head(let request):
                file = try Self.file(for: request, in: folder)
            case .body(let bytes):
                try file?.write(contentsOf: Data(bytes.readableBytesView))
            case .end:
                try file?.close()
                answer(file == nil ? .methodNotAllowed : .created, context)
                file = nil
            }
        } catch {
            file = nil
            answer(.internalServerError, context)
        }
    }

    private static func file(for request: HTTPRequest, in folder: String) throws -> FileHandle? {
        let name = (request.path ?? "").split(separator: "/").last ?? ""
        guard request.method == .put || request.method == .post, !name.isEmpty, name != ".." else { return nil }
        let url = URL(fileURLWithPath: folder).appendingPathComponent(String(name))
        try Data().write(to: url)
        return try FileHandle(forWritingTo: url)
    }

    private func answer(_ status: HTTPResponse.Status, _ context: ChannelHandlerContext) {
        let fields: HTTPFields = [.contentLength: "0"]
        context.write(wrapOutboundOut(.head(HTTPResponse(status: status, headerFields: fields))), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
}
