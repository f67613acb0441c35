// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// Loads with combined values, compared with the model by a separate program, whose environment has other trust roots.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct CombinationTests {
    private func run(_ arguments: [String]) async throws -> (code: Int32, text: String) {
        let own = try SeparateProcess.executable().deletingLastPathComponent()
        let program = own.appendingPathComponent("CombinationProgram")
        let folder = try TemporaryDirectory()
        let output = folder.file("output")
        let process = try ServerProcess.start(
            ServerProcess.Command(
                [program.path] + arguments, environment: ["TMPDIR": folder.path].merging(SanitizerEnvironment.variables) { $1 },
                output: .file(output)))
        let code = try await process.end()
        return (code, String(decoding: try Data(contentsOf: output), as: UTF8.self))
    }

    /// Rows that combine one value with another one or with plain values; each row is run separately.
    private static let rows = [
        "security=pinnedWrong,stored=unverified", "security=pinnedRight,stored=unverified", "security=delegateAnswer",
        "security=delegateAnswer,stored=unverified", "security=sessionRoots", "security=clientCertificate",
        "route=unixSocket", "route=otherAddress", "route=proxyAsks", "route=proxyTold,answer=redirectAcross", "route=socks",
        "principal=requestField",
        "principal=requestField,stored=otherPrincipal", "principal=delegateAnswer", "principal=storage",
        "security=delegateAnswer,way=ownDelegate", "protocol=http2,security=delegateAnswer,way=ownDelegate",
        "principal=configurationField", "principal=digestOnce", "principal=digestOnce,message=postLarge,answer=redirectWithin",
        "cookies=set,stored=varyCookie", "principal=cookie,cookies=deleted",
        "principal=cookie,cookies=httpOnly", "principal=cookie,stored=partial", "stored=partial,answer=contradicting",
        "way=delegate,command=suspend,moment=inLine",
        "protocol=http2,security=system", "protocol=http2Clear,message=streamAgain,end=refusedStream,way=delegate",
        "session=twoProcesses,security=system,stored=stale",
        "session=twoSharing,principal=requestField,stored=otherPrincipalPublic",
        "security=sessionRoots,principal=userInfo,stored=redirect", "route=unixSocket,principal=requestField,stored=fresh",
        "route=deadThenAlive,message=streamOnce,way=upload", "session=background,way=download,policy=returnDontLoad",
        "security=delegateAnswer,session=background,way=download,command=killDaemon,moment=beforeHead",
        "security=delegateAnswer,session=backgroundData,way=delegate,stored=fresh,principal=storage",
        "session=backgroundData,way=delegate,message=postSmall,command=killDaemon,moment=beforeHead",
        "session=backgroundData,way=delegate,answer=redirectAcross,cookies=set", "session=backgroundData,way=becomesStream",
        "session=backgroundData,way=delegate,command=killProgram,moment=withinBody",
        "protocol=http2,security=system,way=webSocket,stored=fresh", "way=becomesStream,stored=fresh",
        "route=proxyAsks,way=webSocket,answer=redirectAcross",
        "protocol=http2,security=system,route=proxy,way=webSocket,stored=fresh",
        "message=head,way=becomesStream",
        "stored=redirect,policy=reloadIgnoringLocal,answer=redirectDown,way=becomesStream", "route=unixSocket,way=becomesStream",
        "way=webSocket,policy=onlyIfCached",
    ]

    @Test(arguments: rows) func `a load with these values behaves as the model says`(row: String) async throws {
        let (code, text) = try await run(["--row", row, "--brief"])
        #expect(code == 0, "\(text)")
    }

    /// Rows of streams and FTP that combine one value with another one or with plain values.
    private static let wireRows = [
        "kind=stream", "tls=later,trust=pinnedWrong", "tls=atOnce,end=ragged", "kind=ftpList,end=cutData",
        "kind=ftpGet,end=noReply",
        "kind=ftpUpload,tls=later,route=proxy", "kind=ftpDownload,tls=atOnce,login=storage,command=suspend,moment=within",
        "kind=ftpGet,login=delegateAnswer,command=cancel,moment=challenge", "kind=ftpGet,route=substituted",
        "kind=ftpUpload,tls=later,route=substituted",
    ]

    @Test(arguments: wireRows) func `a stream or FTP load with these values behaves as the model says`(row: String) async throws {
        let (code, text) = try await run(["--wire", "--row", row, "--brief"])
        #expect(code == 0, "\(text)")
    }

    @Test func `all pairs and a tenth of the triples behave as the model says`() async throws {
        let (code, text) = try await run(["--loads", "--pairs", "--tenth", "--seed", "1"])
        #expect(code == 0, "\(text)")
    }

    @Test func `all pairs and a tenth of the triples of streams and FTP behave as the model says`() async throws {
        let (code, text) = try await run(["--wire", "--pairs", "--tenth", "--seed", "1"])
        #expect(code == 0, "\(text)")
    }

    @Test func `impossible combinations are listed with their reasons`() async throws {
        let (code, text) = try await run(["--list-impossible"])
        #expect(code == 0)
        #expect(text.contains("protocol=http2|http1Required with security=clear: HTTP/2 is negotiated in a TLS handshake"))
    }

    @Test func `an invalid row is refused`() async throws {
        #expect(try await run(["--row", "colour=red"]).code != 0)
        #expect(try await run(["--wire", "--row", "stored=fresh"]).code != 0)
    }
}
