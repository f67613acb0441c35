# Shared by Scripts/public-suffix-list and Scripts/hsts-preload: packs rules for domain names into the text that
# Sources/HTTPRules/Cookies/LabelTable.swift searches, and writes a Swift file with it.
#
# A block lists the labels below one name, sorted by their bytes, each followed by a comma. A label alone is a rule without labels below it.
# Otherwise, the label is followed by one letter: "A" plus the sum of those of RULE, EXCEPTION, WILDCARD and CHILDREN that apply. With
# CHILDREN, the start and the length of the block below the label follow, each as four letters in base 26. The root's block is the last one.

import unicodedata

RULE, EXCEPTION, WILDCARD, CHILDREN = 1, 2, 4, 8

HEADER = """\
// SPDX-License-Identifier: Apache-2.0
"""


def a_label(label):
    """Returns the A-label of a label (UTS 46, nontransitional); the lists are already lowercase and in NFC."""
    if label.isascii():
        assert label == label.lower() and label, label
        return label
    assert label == unicodedata.normalize("NFC", label.lower()), label
    return "xn--" + label.encode("punycode").decode("ascii")


class Node:
    def __init__(self):
        self.flags = 0
        self.children = {}


def tree(rules):
    """The tree of labels for rules such as "com", "*.mm" and "!www.ck"."""
    root = Node()
    for rule in rules:
        exception = rule.startswith("!")
        labels = [label if label == "*" else a_label(label) for label in rule.removeprefix("!").split(".")]
        assert "*" not in labels[1:], f"{rule}: a wildcard must be the first label"
        node = root
        for label in reversed(labels[1:] if labels[0] == "*" else labels):
            node = node.children.setdefault(label, Node())
        node.flags |= WILDCARD if labels[0] == "*" else EXCEPTION if exception else RULE
    return root


def number(value):
    letters = ""
    for _ in range(4):
        value, digit = divmod(value, 26)
        letters = chr(ord("A") + digit) + letters
    assert value == 0
    return letters


def pack(root):
    """The entries of all blocks, and the root block's start and length."""
    out, size, known = [], 0, {}

    def block(node):
        nonlocal size
        entries = []
        for label in sorted(node.children):
            child = node.children[label]
            flags, below = child.flags, ""
            if child.children:
                start, length = block(child)
                flags, below = flags | CHILDREN, number(start) + number(length)
            entries.append(label + ("" if flags == RULE else chr(ord("A") + flags) + below) + ",")
        length = sum(map(len, entries))
        # Equal blocks are stored once.
        text = "".join(entries)
        if text not in known:
            known[text] = size
            out.extend(entries)
            size += length
        return known[text], length

    start, length = block(root)
    return out, start, length


def write(path, name, documentation, rules, version, width):
    entries, start, length = pack(tree(rules))
    lines = [""]
    for entry in entries:
        if len(lines[-1]) + len(entry) > width:
            lines.append("")
        lines[-1] += entry
    text = "".join(f"        {line}\\\n" for line in lines)[:-2] + "\n"
    assert text.isascii() and '"' not in text
    with open(path, "w", encoding="ascii") as file:
        file.write(
            f"{HEADER}// swift-format-ignore-file\n\n{documentation}"
            f"enum {name} {{\n"
            f'    static let version: StaticString = "{version}"\n\n'
            "    static var table: LabelTable {\n"
            f"        LabelTable(text: text, root: {start}..<{start + length})\n"
            "    }\n\n"
            "    private static var text: StaticString {\n"
            f'        """\n{text}        """\n'
            "    }\n}\n"
        )
    print(f"{path}: {len(rules)} rules, {sum(map(len, entries))} bytes, {len(lines)} lines")
