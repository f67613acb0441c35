// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

/// `--form`, whose bodies must equal those of curl except for the boundaries.
@Suite(.timeLimit(.minutes(3)))
struct FormOptionTests {
    private let folder: TemporaryDirectory

    init() throws {
        folder = try TemporaryDirectory()
        try folder.write(Array("first\r\n".utf8), to: "a.txt")
        try folder.write(Array("second".utf8), to: "b.bin")
        try folder.write(Array("quoted".utf8), to: "c,d;e.txt")
        let headers = "# a comment\nX-One: this is one  \r\n\nX-Two: this is\n folded\n"
        try folder.write(Array(headers.utf8), to: "headers")
    }

    /// Returns the body posted by curl or the tool, with its boundaries replaced by `<0>`, `<1>` … in the order of their first
    /// use.
    private func posted(_ form: [String], byCurl: Bool) async throws -> String {
        var body = ""
        try await withScriptedServer(reply: { _ in .ok() }) { (server) async throws in
            let arguments = form.flatMap { ["-F", $0] } + [server.url("/a").absoluteString]
            let result = try await Tool.run(
                byCurl ? ["-sS"] + arguments : ["get"] + arguments, in: folder,
                preparation: byCurl ? #"exec curl -q "$@""# : nil)
            #expect(result.code == 0, "\(result.errors)")
            let request = try #require(server.requests.first)
            body = request.bodyText
            var boundaries = [try #require(request.header("Content-Type")?.components(separatedBy: "boundary=").last)]
            boundaries += body.matches(of: /boundary=(\S+)/).map { String($0.1) }
            for (number, boundary) in boundaries.enumerated() {
                body = body.replacingOccurrences(of: boundary, with: "<\(number)>")
            }
        }
        return body
    }

    @Test(
        arguments: [
            ["f=@a.txt,b.bin"], ["f=@a.txt,b.bin;type=text/q,a.txt;filename=n", "g=@b.bin, a.txt ;headers=  X-U: u  "],
            [#"f=@"c,d;e.txt",b.bin;filename="n,m""#],
            [#"f=value;headers="X-A: b; c";headers=@headers;type=text/y"#], ["f=@a.txt;headers=@headers,b.bin;headers=X-B: 1"],
            [#"f=@a.txt;headers="X-C: \"quoted\"";type=text/x; charset=utf-8"#], ["f=<a.txt;headers=X-D: 1;type=a/b"],
            [#"f=@a.txt;headers="Content-Type: own/type""#], [#"f=@a.txt;headers="content-type: own/type";type=my/type"#],
            [#"f=value;headers="Content-Disposition: own""#],
            ["f=  spaced  ;type=text/z", #"g="not ended"#, #"h="q\n\"x\\" trailing;filename=zz.html"#, "i=", "j= ;type=a/b"],
        ])
    func `a form is the same as curl's`(_ form: [String]) async throws {
        #expect(try await posted(form, byCurl: false) == posted(form, byCurl: true))
    }

    @Test func `several files of one field are one multipart part`() async throws {
        let body = try await posted(["f=@a.txt,b.bin"], byCurl: false)
        let parts = [
            "--<0>\r\nContent-Disposition: form-data; name=\"f\"\r\nContent-Type: multipart/mixed; boundary=<1>\r\n\r\n",
            "--<1>\r\nContent-Disposition: attachment; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\nfirst\r\n\r\n",
            "--<1>\r\nContent-Disposition: attachment; filename=\"b.bin\"\r\n",
            "Content-Type: application/octet-stream\r\n\r\nsecond\r\n", "--<1>--\r\n\r\n--<0>--\r\n",
        ]
        #expect(body == parts.joined())
    }

    @Test(
        arguments: [
            ("a=b;encoder=base64", 2, "'encoder=base64' in --form is not supported"),
            ("a=@f;type=a/b;encoder=8bit", 2, "'encoder=8bit' in --form is not supported"),
            ("a=b;headers=nothing", 2, "'nothing' in --form is not a header"),
            ("a=b;headers=\"X: 1\r\nY: 2\"", 2, "is not a header"), ("a=b;what=ever", 2, "'what=ever' in --form is unknown"),
            ("a=b;headers=@/no/such", 26, "cannot read /no/such"),
            ("a=b;headers=@b.bin", 26, "'second' in b.bin is not a header"),
            ("a=@a.txt,/no/such", 26, "cannot read /no/such"),
        ] as [(String, Int32, String)])
    func `a form that cannot be sent is reported`(_ field: String, _ code: Int32, _ words: String) async throws {
        let result = try await Tool.run(["get", "-F", field, "http://127.0.0.1/"], in: folder)
        #expect(result.code == code, "\(result.errors)")
        #expect(result.errors.contains(words), "\(result.errors)")
    }
}
