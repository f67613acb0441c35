// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import URLLoading

/// A client of a weather service.
///
/// The session is injected: a program passes its own session, and a test passes a session with mocked responses.
public struct WeatherClient: Sendable {
    /// An error that means that the service does not know the city.
    public struct UnknownCity: Error {}

    private let session: URLSession
    private let service: URL

    /// Creates a client of a service.
    public init(session: URLSession, service: URL) {
        self.session = session
        self.service = service
    }

    /// Returns the temperature in a city.
    ///
    /// - Parameter city: The city's name.
    /// - Returns: The temperature in degrees Celsius.
    /// - Throws: `UnknownCity`, or the error of the request.
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
