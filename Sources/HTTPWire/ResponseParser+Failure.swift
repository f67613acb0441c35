// SPDX-License-Identifier: Apache-2.0

extension ResponseParser {
    /// Why a response could not be read.
    package enum Failure: Error, Sendable, Hashable, CaseIterable {
        // The peer closed the connection.
        case closedBeforeResponse
        case closedInHead
        case closedInBody
        case closedInChunkedBody
        case brokenInBody
        // The status line.
        case notHTTP
        case unsupportedVersion
        case malformedStatusLine
        case tooManyEmptyLines
        // The header or trailer section.
        case nulByte
        case bareCarriageReturn
        case malformedFieldName
        case whitespaceBeforeColon
        case missingColon
        case orphanedFold
        case headTooLarge
        case tooManyFieldLines
        // The framing.
        case malformedContentLength
        case contentLengthTooLarge
        case differingContentLengths
        case unknownTransferEncoding
        case chunkedIsNotLast
        case transferEncodingInHTTP10
        // The chunked coding.
        case malformedChunkSize
        case chunkSizeTooLarge
        case malformedChunkExtension
        case chunkExtensionsTooLarge
        case malformedChunkEnd

        /// Failures grouped by how a caller would treat them.
        package enum Category: Sendable, Hashable {
            /// The server broke the protocol.
            case badServerResponse
            /// The content's framing could not be understood.
            case cannotParseResponse
            case tooLarge
            case connectionLost
        }

        package var category: Category {
            switch self {
            case .closedBeforeResponse, .closedInHead, .closedInBody, .closedInChunkedBody, .brokenInBody: .connectionLost
            case .notHTTP, .unsupportedVersion, .malformedStatusLine, .tooManyEmptyLines: .badServerResponse
            case .nulByte, .bareCarriageReturn, .malformedFieldName, .whitespaceBeforeColon, .missingColon, .orphanedFold:
                .badServerResponse
            case .malformedContentLength, .contentLengthTooLarge, .differingContentLengths, .unknownTransferEncoding,
                .chunkedIsNotLast, .transferEncodingInHTTP10:
                .badServerResponse
            case .headTooLarge, .tooManyFieldLines, .chunkExtensionsTooLarge: .tooLarge
            case .malformedChunkSize, .chunkSizeTooLarge, .malformedChunkExtension, .malformedChunkEnd: .cannotParseResponse
            }
        }

        package var message: String {
            switch self {
            case .closedBeforeResponse: "the connection was closed before a response"
            case .closedInHead: "the connection was closed inside the header section"
            case .closedInBody: "the connection was closed before the content announced by Content-Length was complete"
            case .closedInChunkedBody: "the connection was closed before the last chunk"
            case .brokenInBody: "the connection failed, so it is unknown whether the content was complete"
            case .notHTTP: "the response does not begin with an HTTP/1 status line"
            case .unsupportedVersion: "the status line names an HTTP version other than 1.x"
            case .malformedStatusLine: "the status line is malformed"
            case .tooManyEmptyLines: "there are too many empty lines before the status line"
            case .nulByte: "the header section contains a NUL byte"
            case .bareCarriageReturn: "the header section contains a CR without an LF"
            case .malformedFieldName: "a field name is empty or contains a character that is not allowed"
            case .whitespaceBeforeColon: "there is whitespace between a field name and its colon"
            case .missingColon: "a field line has no colon"
            case .orphanedFold: "the header section begins with whitespace"
            case .headTooLarge: "the header or trailer section is too large"
            case .tooManyFieldLines: "the header or trailer section has too many lines"
            case .malformedContentLength: "Content-Length is not a number"
            case .contentLengthTooLarge: "Content-Length is too large"
            case .differingContentLengths: "the response has more than one Content-Length, and they differ"
            case .unknownTransferEncoding: "Transfer-Encoding is empty or names an unknown coding"
            case .chunkedIsNotLast: "Transfer-Encoding names another coding after chunked"
            case .transferEncodingInHTTP10: "an HTTP/1.0 response has a Transfer-Encoding"
            case .malformedChunkSize: "a chunk size is malformed"
            case .chunkSizeTooLarge: "a chunk size is too large"
            case .malformedChunkExtension: "a chunk extension is malformed"
            case .chunkExtensionsTooLarge: "the chunk extensions are too large"
            case .malformedChunkEnd: "a chunk is longer than its declared size"
            }
        }
    }
}
