// SPDX-License-Identifier: Apache-2.0

extension Dimension {
    private static func but(_ dimension: Dimension, _ names: String...) -> [String] { all(dimension, but: names) }
    private static func all(_ dimension: Dimension, but names: [String]) -> [String] {
        Impossibility.all(dimension, but: names)
    }

    private static let bodies = ["postSmall", "postLarge", "putSmall", "putLarge", "file", "streamAgain", "streamOnce"]
    private static let endings = ["cancel", "cancelForResuming", "invalidate", "killProgram"]

    package static let impossibilities: [Impossibility<Dimension>] = [
        // The connection.
        .init("HTTP/2 is negotiated in a TLS handshake", [.protocol: ["http2", "http1Required"], .security: ["clear"]]),
        .init("prior knowledge is for http", [.protocol: ["http2Clear"], .security: but(.security, "clear")]),
        .init(
            "a forwarding proxy is spoken to in HTTP/1.1",
            [.protocol: ["http2Clear"], .route: ["proxy", "proxyAsks", "proxyTold"]]),
        .init("the kit's HTTP/2 server listens at ports alone", [.protocol: but(.protocol, "http1"), .route: ["unixSocket"]]),
        .init(
            "the kit's server that asks for certificates speaks HTTP/1.1",
            [.protocol: but(.protocol, "http1"), .security: ["clientCertificate"]]),
        .init(
            "the kit's server that asks for certificates listens at a port alone",
            [.security: ["clientCertificate"], .route: ["unixSocket"]]),
        .init("chunks are of HTTP/1.1", [.protocol: but(.protocol, "http1"), .end: ["cutBeforeLastChunk"]]),
        .init(
            "an HTTP/2 connection that is idle is closed as one that ends",
            [.protocol: but(.protocol, "http1"), .end: ["closedWhileIdle"]]),
        .init(
            "GOAWAY and RST_STREAM are of HTTP/2",
            [.protocol: ["http1", "http1Required"], .end: ["goAwayCovering", "goAwayNotCovering", "refusedStream"]]),
        .init(
            "the first connection is given up for HTTP_1_1_REQUIRED; the ends are those of http1",
            [.protocol: ["http1Required"], .end: but(.end, "stays", "closes")]),
        .init(
            "left out: a stream that is gone with the first connection", [.protocol: ["http1Required"], .message: ["streamOnce"]]),
        .init(
            "the kit's HTTP/2 server reads small bodies of HTTP/1.1 alone",
            [.protocol: ["http1Required"], .message: ["postLarge", "putLarge", "file", "streamAgain"]]),
        .init(
            "left out: an answer before the body was read, which the end of the connection may overtake",
            [
                .protocol: ["http2Clear"], .message: ["streamOnce"], .answer: ["misdirected"], .end: ["closes"], .way: ["upload"],
            ]),
        .init(
            "a connection is idle after the last answer alone",
            [
                .end: ["closedWhileIdle"],
                .answer: ["redirectWithin", "redirectAcross", "redirectDown", "redirectKept", "circle", "unauthorized"],
            ]),
        .init(
            "left out: whether the load behind one that was given up still meets the connection that is about to go away",
            [.protocol: ["http2", "http2Clear"], .end: but(.end, "stays", "refusedStream", "reset"), .command: endings]),
        .init(
            "left out: the same of the attempt behind one that the daemon has stopped",
            [
                .protocol: ["http2", "http2Clear"], .session: ["background"], .command: ["suspend"],
                .end: but(.end, "stays", "refusedStream", "reset"),
            ]),
        .init(
            "a stream that can be read once is gone with the first request, which a forwarding proxy refuses",
            [.route: ["proxyAsks"], .security: ["clear"], .message: ["streamOnce"]]),
        .init(
            "left out: what is told to a proxy for https is not told to the one for http",
            [.route: ["proxyTold"], .answer: ["redirectDown"]]),
        .init("a redirect to http needs https", [.security: ["clear"], .answer: ["redirectDown"]]),
        .init("a Unix socket leads to one server, of one scheme", [.route: ["unixSocket"], .answer: ["redirectDown"]]),
        .init("without TLS there is no trust", [.security: ["clear"], .stored: ["unverified"]]),
        // Principals and stores.
        .init(
            "without a principal there is no other one",
            [.principal: ["anonymous"], .stored: ["otherPrincipal", "otherPrincipalPublic"]]),
        .init(
            "left out: the user of a URL is part of what a stored response is found by",
            [.principal: ["userInfo"], .stored: ["otherPrincipal", "otherPrincipalPublic"]]),
        .init(
            "left out: which stored responses a login by Digest finds",
            [.principal: ["digestOnce"], .stored: but(.stored, "none")]),
        .init(
            "left out: requests that are sent again with the nonce that they had",
            [.principal: ["digestOnce"], .end: but(.end, "stays", "closes")]),
        .init(
            "left out: the login of an upload is that of its requests",
            [.principal: ["digestOnce"], .uploads: but(.uploads, "none")]),
        .init(
            "left out: a challenge that comes before the body is read",
            [.principal: ["digestOnce"], .answer: ["earlyFinal", "earlySuccess"]]),
        .init("without a storage no cookie tells who it is", [.session: ["noCookies"], .principal: ["cookie"]]),
        .init(
            "a cookie of one process's session is not the other's to delete", [.session: ["twoProcesses"], .cookies: ["deleted"]]),
        .init("without a storage there is no cookie to send", [.session: ["noCookies"], .cookies: ["sent", "deleted"]]),
        .init(
            "the other process does not have a credential that is for a session; permanent ones are the user's keyring's",
            [.session: ["twoProcesses"], .principal: ["storage"]]),
        .init(
            "no redirect sets the cookie",
            [
                .cookies: ["overRedirect"],
                .answer: but(
                    .answer, "redirectWithin", "redirectAcross", "redirectDown", "redirectKept"),
            ]),
        // The daemon.
        .init(
            "background sessions have downloads and uploads of files",
            [.session: ["background"], .way: but(.way, "download", "upload")]),
        .init(
            "left out: what the daemon loads by other methods, or continues by itself",
            [.session: ["background"], .message: but(.message, "get", "file")]),
        .init("background sessions have no cache", [.session: ["background"], .stored: but(.stored, "none")]),
        .init(
            "what a program has for the session in memory is not the daemon's",
            [.session: ["background"], .principal: ["storage", "cookie"]]),
        .init(
            "left out: processes look at a file of cookies now and then, and nothing tells when",
            [.session: ["background"], .cookies: but(.cookies, "none")]),
        .init(
            "the daemon tries again, after pauses, for as long as a background session may take",
            [.session: ["background"], .end: but(.end, "stays", "closes", "goAwayCovering")]),
        .init(
            "the daemon asks again later, or begins anew",
            [.session: ["background"], .answer: ["partialWrong", "rangeNotSatisfiable", "tooMany", "unavailable"]]),
        .init("the daemon asks again after a 504", [.session: ["background"], .policy: ["onlyIfCached"]]),
        .init("left out: the daemon's line is of all programs", [.session: ["background"], .moment: ["inLine"]]),
        .init(
            "the daemon has background sessions alone",
            [.command: ["killDaemon"], .session: but(.session, "background", "backgroundData")]),
        .init(
            "the daemon is killed when the server knows that it is there",
            [.command: ["killDaemon"], .moment: but(.moment, "beforeHead")]),
        .init("left out: which uploads are sent again after a crash", [.command: ["killDaemon"], .way: ["upload"]]),
        .init(
            "a background session's data tasks need its delegate",
            [.session: ["backgroundData"], .way: but(.way, "delegate", "becomesStream")]),
        // Requests and responses.
        .init("upload tasks have a body", [.way: ["upload"], .message: all(.message, but: bodies)]),
        .init("files are uploaded", [.message: ["file"], .way: but(.way, "upload")]),
        .init(
            "a stream is asked for by a delegate of the task's",
            [.message: ["streamAgain", "streamOnce"], .way: but(.way, "upload", "delegate", "becomesStream")]),
        .init("left out: downloads with a body are exchanges as those of data", [.way: ["download"], .message: bodies]),
        .init(
            "nothing asks for a part",
            [.answer: ["partialRight"], .message: but(.message, "range"), .stored: but(.stored, "partial")]),
        .init("only our own request for a part has If-Range", [.answer: ["contradicting"], .stored: but(.stored, "partial")]),
        .init(
            "a part of a coded body is not decoded by itself",
            [.answer: ["partialWrong", "contradicting"], .coding: but(.coding, "none")]),
        .init(
            "nothing is asked on a condition",
            [.answer: ["notModified"], .message: but(.message, "condition"), .stored: but(.stored, "staleWithValidator")]),
        .init(
            "only a large body is not read before the answer",
            [.answer: ["earlyFinal", "earlySuccess"], .message: but(.message, "postLarge", "putLarge", "file")]),
        .init(
            "left out: a large body is not sent in a circle", [.answer: ["circle"], .message: ["postLarge", "putLarge", "file"]]),
        .init(
            "left out: the ends are those of other final answers",
            [.answer: ["earlyFinal", "earlySuccess"], .end: but(.end, "stays")]),
        .init(
            "left out: no outcome shows whether the body of a redirect is waited for",
            [.moment: ["withinBody"], .answer: ["redirectWithin", "redirectAcross", "redirectDown", "redirectKept", "circle"]]),
        // Resumable uploads.
        .init(
            "upload tasks have a body",
            [.uploads: but(.uploads, "none"), .message: all(.message, but: bodies)]),
        .init(
            "resume data that a command asks for is of downloads, and a daemon that is killed has those alone",
            [.uploads: but(.uploads, "none"), .command: ["cancelForResuming", "killDaemon"]]),
        .init("uploads are of upload tasks", [.uploads: but(.uploads, "none"), .way: but(.way, "upload")]),
        .init(
            "left out: uploads behind a connection that is given up at once",
            [.uploads: but(.uploads, "none"), .protocol: ["http1Required"]]),
        .init(
            "who answers early does not read on", [.uploads: but(.uploads, "none"), .answer: ["earlyFinal", "earlySuccess"]]),
        .init(
            "what has announced an upload was processed",
            [.uploads: but(.uploads, "none"), .end: ["closedWhileIdle", "goAwayNotCovering", "refusedStream"]]),
        .init("left out: how far an upload is that waits", [.uploads: but(.uploads, "none"), .moment: ["sending"]]),
        .init(
            "left out: where the daemon stops an upload",
            [.uploads: but(.uploads, "none"), .session: ["background"], .command: ["suspend"]]),
        // Other protocols.
        .init(
            "a server switches protocols when it has the whole request",
            [.way: ["becomesStream"], .answer: ["earlySuccess"]]),
        .init(
            "the kit's HTTP/2 server reads small bodies of HTTP/1.1 alone, by which the switch is asked for",
            [
                .way: ["becomesStream"], .protocol: ["http2", "http2Clear"],
                .message: ["postLarge", "putLarge", "streamAgain", "streamOnce"],
            ]),
        .init(
            "what asks for another protocol has a connection of its own, which counts for no limit",
            [.way: ["webSocket", "becomesStream"], .moment: ["inLine"]]),
        // Commands.
        .init("without a command there is no moment", [.command: ["none"], .moment: but(.moment, "made")]),
        .init(
            "async calls give no task",
            [.command: ["suspend", "prioritize", "cancelForResuming"], .way: ["data", "bytes", "executor", "ownDelegate"]]),
        .init(
            "left out: what a task's own delegate gives beyond trust",
            [.way: ["ownDelegate"], .principal: ["delegateAnswer", "digestOnce"]]),
        .init(
            "left out: a client certificate of a task's own delegate", [.way: ["ownDelegate"], .security: ["clientCertificate"]]),
        .init("resume data is of downloads", [.command: ["cancelForResuming"], .way: but(.way, "download")]),
        .init(
            "the program is killed when the server knows that it is there",
            [.command: ["killProgram"], .moment: but(.moment, "beforeHead", "withinBody")]),
        .init(
            "another program does not have these stores",
            [.command: ["killProgram"], .session: but(.session, "standard", "backgroundData")]),
        .init(
            "another program does not have what is kept for a session",
            [.command: ["killProgram"], .principal: ["storage", "cookie", "delegateAnswer", "digestOnce"]]),
        .init(
            "left out: a killed program's cookies are those that it had written",
            [.command: ["killProgram"], .cookies: but(.cookies, "none")]),
        .init("HTTP/2 has no line", [.moment: ["inLine"], .protocol: but(.protocol, "http1")]),
        .init("left out: the line is the same over other routes", [.moment: ["inLine"], .route: but(.route, "direct")]),
        .init("left out: the line is the same over TLS", [.moment: ["inLine"], .security: but(.security, "clear")]),
        .init(
            "left out: the line is for a request that nothing stored answers",
            [.moment: ["inLine"], .stored: but(.stored, "none")]),
        .init("left out: in line", [.moment: ["inLine"], .policy: ["returnDontLoad", "onlyIfCached"]]),
        .init(
            "a challenge about a server comes where the delegate vouches for it",
            [.moment: ["challenge"], .security: but(.security, "delegateAnswer")]),
        .init("a connection that is there asks nothing", [.moment: ["challenge"], .stored: but(.stored, "none", "unverified")]),
        .init(
            "a challenge comes where something is sent", [.moment: ["challenge"], .policy: ["returnDontLoad", "onlyIfCached"]]),
        .init(
            "only a large body is under way for long",
            [.moment: ["sending"], .message: but(.message, "postLarge", "putLarge", "file")]),
        .init("left out: HTTP/2's windows are another way to wait", [.moment: ["sending"], .protocol: but(.protocol, "http1")]),
        .init(
            "left out: silence beside a command proves nothing",
            [.end: ["silence"], .command: but(.command, "none")]),
    ]
}
