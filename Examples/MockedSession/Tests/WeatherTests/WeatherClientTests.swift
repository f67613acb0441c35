// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import URLLoading
import Weather

/// Tests the client against a function instead of a service: no network, no server, no delays.
struct WeatherClientTests {
    private func client(_ answer: @escaping Mock.Answer) throws -> WeatherClient {
        let service = try #require(URL(string: "https://weather.example.com/v1"))
        return WeatherClient(session: Mock.session(answer), service: service)
    }

    @Test func `the temperature of the city is requested and read`() async throws {
        let client = try client { request in
            #expect(request.url?.absoluteString == "https://weather.example.com/v1/now?city=Oslo")
            return (200, #"{"temperature": -4.5}"#)
        }
        #expect(try await client.temperature(in: "Oslo") == -4.5)
    }

    @Test func `a city that the service does not know has an error of its own`() async throws {
        let client = try client { _ in (404, "") }
        await #expect(throws: WeatherClient.UnknownCity.self) { try await client.temperature(in: "Atlantis") }
    }

    @Test func `if the service does not respond in time, the error of the session is thrown`() async throws {
        let client = try client { _ in throw URLError(.timedOut) }
        let error = await #expect(throws: URLError.self) { try await client.temperature(in: "Oslo") }
        #expect(error?.code == .timedOut)
    }
}
