//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation
public import URLLoading

/// Asks a weather service.
///
/// The session comes from outside: a program gives its own, a test one that answers by itself.
public struct WeatherClient: Sendable {
    /// The service does not know the place.
    public struct UnknownCity: Error {}

    private let session: URLSession
    private let service: URL

    /// Makes a client of a service.
    public init(session: URLSession, service: URL) {
        self.session = session
        self.service = service
    }

    /// Asks for a temperature.
    ///
    /// - Parameter city: Its name.
    /// - Returns: Degrees Celsius.
    /// - Throws: `UnknownCity`, or what kept the service from being asked.
    public func temperature(in city: String) async throws -> Double {
        let url = service.appending(path: "now").appending(queryItems: [URLQueryItem(name: "city", value: city)])
        let (data, response) = try await session.data(from: url)
        switch (response as? HTTPURLResponse)?.statusCode {
        case 200: return try JSONDecoder().decode(Report.self, from: data).temperature
        case 404: throw UnknownCity()
        default: throw URLError(.badServerResponse)
        }
    }

    private struct Report: Decodable {
        let temperature: Double
    }
}
