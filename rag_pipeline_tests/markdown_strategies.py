"""Hypothesis strategies that build Markdown from unusual parts, for property and fuzz tests."""

from __future__ import annotations

from hypothesis import strategies as st

WORDS = st.sampled_from(
    [
        "robot",
        "the",
        "ROS 2",
        "a",
        "torque",
        "e.g.",
        "Fig. 3",
        "sensor_msgs",
        "größer",
        "関節",
        "🚀",
        "**bold**",
        "`x <y>`",
        "$\\dot{q}_1$",
        "[link](./a.md#b)",
        "![alt](i.png)",
        "<b>tag</b>",
        "{/* gone */}",
        "<!-- gone -->",
        "&amp;",
        "\\{",
        "<|endoftext|>",
        "a:b",
        "[^1]",
        "``a ` b``",
        "https://x.y/z?q=1",
        "[ref][r]",
        "~~no~~",
        "1.",
        "(see 4.2)",
        "x_1 * y_2",
        "{1 + 1}",
    ]
)
SENTENCES = st.lists(WORDS, min_size=1, max_size=14).map(lambda words: " ".join(words) + ".")
PROSE = st.lists(SENTENCES, min_size=1, max_size=12).map(" ".join)
WRAPPED = st.lists(SENTENCES, min_size=1, max_size=8).map("\n".join)
HEADINGS = st.one_of(
    st.tuples(st.integers(1, 6), WORDS).map(lambda pair: f"{'#' * pair[0]} {pair[1]}"),
    st.sampled_from(
        [
            "## Same",
            "## Same",
            "## Custom {#my-ID}",
            "## Other {/* #o */}",
            "##",
            "Setext\n======",
            "Set ext\n---",
            "### With `code` and <b>b</b>",
            "<h2 id='raw'>Raw</h2>",
            "#### Deep",
        ]
    ),
)
CODE_LINES = st.lists(
    st.sampled_from(
        [
            "x = 1",
            "# no heading",
            "## none",
            "",
            "| a | b |",
            "    indented",
            "// highlight-next-line",
            "<Tabs>",
            ":::",
            "~~~",
            "``",
            "return {x}",
            "import os",
            "---",
            "$$",
            "<!-- open",
        ]
    ),
    max_size=14,
).map("\n".join)
FENCES = st.one_of(
    CODE_LINES.map(lambda code: f'```python title="a.py"\n{code}\n```'),
    CODE_LINES.map(lambda code: f"````md\n```\n{code}\n```\n````"),
    CODE_LINES.filter(lambda code: "~~~" not in code).map(lambda code: f"~~~\n{code}\n~~~"),
)
TABLES = st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=12).map(
    lambda rows: "a | b\n--- | ---\n" + "\n".join(f"{left} | {right}" for left, right in rows)
)
MATH = st.sampled_from(["$$\nx = {a \\over b}\n# no heading\n$$", "$$\\sum_i x_i$$", "$$\nopen"])
SYNTAX = st.sampled_from(
    [
        "import X from './_x.md';",
        "export const a = {\n  b: 1,\n\n  c: [2],\n};",
        "<X />",
        "<br/>",
        "{/*\n## hidden\n*/}",
        "<!--\n\n## hidden\n\n-->",
        "[r]: https://x.y 'title'",
        "---",
        "***",
        "```mdx-code-block\n<X>\n\n## Live\n\n</X>\n```",
        "[^1]: A note.",
        "::leaf[text]{a=b}",
        "-",
        "export a word is prose",
        "import is a word too",
        "<5 ms",
        "{open",
        "`open",
        "<Open",
        "$5",
    ]
)


def _indent(text: str, prefix: str, first: str) -> str:
    lines = text.split("\n")
    return "\n".join([first + lines[0], *(prefix + line if line else line for line in lines[1:])])


def _wrap(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    many = st.lists(children, min_size=1, max_size=3).map("\n\n".join)
    return st.one_of(
        many.map(lambda text: f":::note Title\n\n{text}\n\n:::"),
        many.map(lambda text: f"::::tip[**T**]\n{text}\n::::"),
        many.map(lambda text: f":::danger\n{text}"),
        many.map(lambda text: f"<details>\n<summary>Sum</summary>\n\n{text}\n\n</details>"),
        many.map(
            lambda text: (
                f'<Tabs>\n<TabItem value="a" label="Tab A">\n\n{text}\n\n</TabItem>\n</Tabs>'
            )
        ),
        many.map(lambda text: _indent(text, "   ", "1. ")),
        many.map(lambda text: _indent(text, "  ", "- ")),
        many.map(lambda text: "\n".join(f"> {line}".rstrip() for line in text.split("\n"))),
    )


BLOCKS = st.recursive(
    st.one_of(HEADINGS, HEADINGS, PROSE, WRAPPED, FENCES, TABLES, MATH, SYNTAX),
    _wrap,
    max_leaves=6,
)
FRONT_MATTER = st.sampled_from(
    ["", "", "---\ntitle: Robots\ntags: [a, b]\n---\n", "---\ntags: null\n---\n", "\ufeff"]
)
SEPARATORS = st.sampled_from(["\n\n", "\n\n", "\n", "\n\n\n"])
DOCUMENTS = st.builds(
    lambda head, parts: head + "".join(block + gap for block, gap in parts),
    FRONT_MATTER,
    st.lists(st.tuples(BLOCKS, SEPARATORS), max_size=14),
)
