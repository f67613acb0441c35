// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// A script that selects proxies for URLs (PAC).
package enum ProxyScript: Sendable, Hashable {
    case text(String)
    /// The URL of the script.
    case at(URL)

    /// Creates a script from its URL.
    ///
    /// Returns nil if the URL is invalid or has an unsupported scheme.
    package init?(address: String) {
        guard let url = URL(string: address), let scheme = url.scheme?.lowercased(),
            ["http", "https", "file", "data"].contains(scheme)
        else { return nil }
        self = .at(url)
    }

    /// The name of the script in messages to the app.
    package var name: String {
        switch self {
        case .text: "the proxy script"
        case .at(let url): "the proxy script at \(PrintableURL.text(url))"
        }
    }

    /// The maximum length of a script in bytes.
    package static let maximumLength = 1_048_576

    /// The maximum number of options in a result.
    static let maximumWays = 32

    /// Returns the URL that is passed to the script.
    ///
    /// The path of an https URL is omitted, because only the server may see the path.
    package static func question(_ target: RequestTarget) -> String {
        "\(target.origin.scheme)://\(target.hostHeader)\(target.origin.isSecure ? "/" : target.path)"
    }

    /// Parses the result of a script, such as `PROXY a:1; SOCKS b:2; DIRECT`.
    ///
    /// Unknown options are skipped.
    ///
    /// `SOCKS` means SOCKS 5, as in `connectionProxyDictionary`. An empty result means a direct connection.
    ///
    /// - Returns: The options, or nil if none of them is known.
    package static func ways(_ answer: String) -> [ProxyWay]? {
        let parts = answer.split(whereSeparator: { $0 == ";" || $0.isNewline })
            .map { $0.split(whereSeparator: \.isWhitespace) }.filter { !$0.isEmpty }
        if parts.isEmpty { return [.direct] }
        let ways = parts.prefix(maximumWays).compactMap(way)
        return ways.isEmpty ? nil : ways
    }

    private static func way(_ words: [Substring]) -> ProxyWay? {
        let kind = words[0].uppercased()
        if kind == "DIRECT" { return words.count == 1 ? .direct : nil }
        let schemes = [
            "PROXY": "http", "HTTP": "http", "HTTPS": "https", "SOCKS": "socks5h", "SOCKS5": "socks5h", "SOCKS4": "socks4a",
        ]
        guard words.count == 2, let scheme = schemes[kind], !words[1].contains("@"), !words[1].contains("/"),
            case .proxy(var server) = ProxyParser.read("\(scheme)://\(words[1])", called: "it")
        else { return nil }
        if scheme == "http", !hasPort(words[1]) { server.port = 80 }
        return .proxy(server)
    }

    private static func hasPort(_ text: Substring) -> Bool {
        guard let colon = text.lastIndex(of: ":") else { return false }
        return text.firstIndex(of: ":") == colon || text[..<colon].last == "]"
    }

    /// The predefined functions for scripts.
    ///
    /// These functions call `__ask` to look up one address or all addresses of a name, to get the address of this machine, and to
    /// test whether an address belongs to a network.
    package static let helpers = #"""
        function isPlainHostName(h) { return h.indexOf('.') < 0 && h.indexOf(':') < 0; }
        function dnsDomainIs(h, d) { h = h.toLowerCase(); d = d.toLowerCase(); return h.length >= d.length && h.slice(h.length - d.length) === d; }
        function localHostOrDomainIs(h, f) { h = h.toLowerCase(); f = f.toLowerCase(); return h === f || f.indexOf(h + '.') === 0; }
        function dnsResolve(h) { return __ask('address', String(h)); }
        function dnsResolveEx(h) { return __ask('addresses', String(h)) || ''; }
        function isResolvable(h) { return dnsResolve(h) !== null; }
        function isResolvableEx(h) { return dnsResolveEx(h) !== ''; }
        function myIpAddress() { return __ask('me', '') || '127.0.0.1'; }
        function myIpAddressEx() { return myIpAddress(); }
        function sortIpAddressList(l) { return l; }
        function getClientVersion() { return '1.0'; }
        function alert() {}
        function convert_addr(a) { var b = String(a).split('.'); return ((b[0] & 255) << 24) | ((b[1] & 255) << 16) | ((b[2] & 255) << 8) | (b[3] & 255); }
        function __is4(h) { return /^\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(h); }
        function isInNet(h, p, m) {
          var a = __is4(h) ? h : dnsResolve(h);
          return a !== null && __is4(a) && (convert_addr(a) & convert_addr(m)) === (convert_addr(p) & convert_addr(m));
        }
        function isInNetEx(h, n) { return __ask('network', h + ' ' + n) !== null; }
        function dnsDomainLevels(h) { return h.split('.').length - 1; }
        function shExpMatch(s, p) {
          s = String(s); p = String(p);
          var i = 0, j = 0, star = -1, mark = 0;
          while (i < s.length) {
            if (j < p.length && p[j] === '*') { star = j++; mark = i; }
            else if (j < p.length && (p[j] === '?' || p[j] === s[i])) { i++; j++; }
            else if (star >= 0) { j = star + 1; i = ++mark; }
            else return false;
          }
          while (j < p.length && p[j] === '*') j++;
          return j === p.length;
        }
        var __days = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];
        var __months = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];
        function __when(args) {
          var l = Array.prototype.slice.call(args), t = new Date(), u = l[l.length - 1] === 'GMT';
          if (u) l.pop();
          return u ? { l: l, w: t.getUTCDay(), y: t.getUTCFullYear(), m: t.getUTCMonth(), d: t.getUTCDate(),
                       s: t.getUTCHours() * 3600 + t.getUTCMinutes() * 60 + t.getUTCSeconds() }
                   : { l: l, w: t.getDay(), y: t.getFullYear(), m: t.getMonth(), d: t.getDate(),
                       s: t.getHours() * 3600 + t.getMinutes() * 60 + t.getSeconds() };
        }
        function __within(n, a, b) { return a <= b ? a <= n && n <= b : n >= a || n <= b; }
        function weekdayRange() {
          var t = __when(arguments), a = __days.indexOf(t.l[0]), b = t.l.length > 1 ? __days.indexOf(t.l[1]) : a;
          return a >= 0 && b >= 0 && __within(t.w, a, b);
        }
        function timeRange() {
          var t = __when(arguments), l = t.l, h = Math.floor(t.s / 3600);
          if (l.length === 1) return h === +l[0];
          if (l.length === 2) return __within(h, +l[0], +l[1]);
          if (l.length === 4) return __within(Math.floor(t.s / 60), l[0] * 60 + +l[1], l[2] * 60 + +l[3]);
          return l.length === 6 && __within(t.s, l[0] * 3600 + l[1] * 60 + +l[2], l[3] * 3600 + l[4] * 60 + +l[5]);
        }
        function dateRange() {
          var t = __when(arguments), l = t.l, n = l.length > 1 ? l.length / 2 : 1;
          function key(parts) {
            var k = 0, now = 0;
            parts.forEach(function (p) {
              var m = __months.indexOf(p);
              if (m >= 0) { k += m * 100; now += t.m * 100; }
              else if (+p > 31) { k += p * 10000; now += t.y * 10000; }
              else { k += +p; now += t.d; }
            });
            return [k, now];
          }
          if (l.length === 0 || n !== Math.floor(n)) return false;
          var a = key(l.slice(0, n)), b = l.length > 1 ? key(l.slice(n)) : a;
          return __within(a[1], a[0], b[0]);
        }
        """#
}
