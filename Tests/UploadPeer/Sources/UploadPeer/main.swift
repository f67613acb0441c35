// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1
import NIOPosix
import NIOResumableUpload

guard CommandLine.arguments.count == 3 else {
    FileHandle.standardError.write(Data("usage: UploadPeer FOLDER ORIGIN\n".utf8))
    exit(2)
}
let folder = CommandLine.arguments[1]
// The origin at which clients resume uploads.
let uploads = HTTPResumableUploadContext(origin: CommandLine.arguments[2])

// An upload may resume on another thread.
let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
let server = try await ServerBootstrap(group: group)
    .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
    .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
            let pipeline = channel.pipeline.syncOperations
            try pipeline.configureHTTPServerPipeline()
            try pipeline.addHandler(HTTP1ToHTTPServerCodec(secure: false))
            try pipeline.addHandler(HTTPResumableUploadHandler(context: uploads, handlers: [FileWriter(folder: folder)]))
        }
    }
    .bind(host: "127.0.0.1", port: 0).get()

print(server.localAddress?.port ?? 0)
fflush(nil)
try await server.closeFuture.get()
