// SPDX-License-Identifier: Apache-2.0

/// The page's style sheet, the same for every archive.
enum ArchivePageStyle {
    static let text = """
        :root { color-scheme: light dark; --text: #1b1f24; --back: #ffffff; --rule: #d0d7de; --soft: #57606a; --bad: #b3261e;
          --blocked: #8c959f; --dns: #1a7f64; --connect: #bf6a02; --ssl: #8250df; --send: #0969da; --wait: #2da44e; --receive: #218bff; }
        @media (prefers-color-scheme: dark) {
          :root { --text: #e6edf3; --back: #0d1117; --rule: #30363d; --soft: #9aa4af; --bad: #ff8a80;
            --blocked: #6e7681; --dns: #56d4b0; --connect: #f0a848; --ssl: #b392f0; --send: #58a6ff; --wait: #56d364; --receive: #79c0ff; } }
        * { box-sizing: border-box; }
        body { margin: 1.5rem; font: 14px/1.45 system-ui, sans-serif; color: var(--text); background: var(--back); }
        h1 { font-size: 1.3rem; margin: 0 0 .3rem; overflow-wrap: anywhere; }
        p { margin: .3rem 0; color: var(--soft); overflow-wrap: anywhere; }
        .legend { display: flex; flex-wrap: wrap; gap: .2rem 1rem; padding: 0; margin: .8rem 0; list-style: none; }
        .key { display: inline-block; width: .8em; height: .8em; margin-right: .35em; border-radius: 2px; }
        table { width: 100%; border-collapse: collapse; table-layout: fixed; }
        caption { text-align: left; color: var(--soft); padding-bottom: .4rem; }
        th, td { text-align: left; vertical-align: top; font-weight: normal; padding: .3rem .5rem; border-bottom: 1px solid var(--rule); }
        thead th { font-weight: 600; width: 6.5em; }
        thead th:first-child { width: 36%; }
        thead th.line { width: auto; }
        .bad td:nth-of-type(1) { color: var(--bad); font-weight: 600; }
        summary { cursor: pointer; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
        details[open] summary { white-space: normal; overflow-wrap: anywhere; }
        .url, dt, dd { unicode-bidi: isolate; }
        dl { display: grid; grid-template-columns: minmax(7em, max-content) 1fr; gap: .1rem .8rem; margin: .3rem 0 .6rem; font-size: 12px; }
        dt { color: var(--soft); overflow-wrap: anywhere; max-width: 16em; }
        dd { margin: 0; overflow-wrap: anywhere; }
        .bar { position: relative; height: 1.1em; margin-top: .15em; }
        .bar span { position: absolute; top: 0; bottom: 0; min-width: 1px; }
        .blocked { background: var(--blocked); }
        .dns { background: var(--dns); }
        .connect { background: var(--connect); }
        .ssl { background: var(--ssl); }
        .send { background: var(--send); }
        .wait { background: var(--wait); }
        .receive { background: var(--receive); }
        @media (max-width: 50rem) { th.line, td.line { display: none; } thead th:first-child { width: 45%; } }

        """
}
