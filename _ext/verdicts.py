"""The directives ``{verdict-table}`` and ``{verdict-counts}``: what the notebooks computed, claim by claim.

Both read ``_build/verdicts.json``, which ``tools/execute.py`` gathers from the executed notebooks. A claim without a
record is pending, and a pending claim shows its statement only.
"""

import html
import json
import sys
from pathlib import Path

from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

sys.path.insert(0, str(Path(__file__).parents[1]))  # a direct `jupyter-book build` has not the book's root on it
from tools import cache

BADGES = ("holds", "under", "corrected", "false", "untestable", "pending")
COUNTED = ("holds", "holds, under a named assumption", "false as stated; corrected", "false",
           "not testable here", "pending")
COLUMNS = ("check", "measured", "predicted", "criterion", "outcome")


def source(root: Path) -> Path:
    return root / "_build" / "verdicts.json"


def require_results(app) -> None:
    """Stop before anything is built when there are no results, or when they belong to another state of the library."""
    root = Path(app.srcdir)
    if not source(root).exists():
        raise ExtensionError("_build/verdicts.json is missing: the notebooks have not been executed; run make book")
    if not cache.is_valid(root):
        raise ExtensionError("the executed notebooks belong to another library, lock file, registry or setting; "
                             "run make book")


def read_verdicts(env) -> list[dict]:
    """The registered claims with their records, in registry order; the page that asks depends on them."""
    path = source(Path(env.srcdir))
    env.note_dependency(str(path))
    return json.loads(path.read_text(encoding="utf-8"))


def badge(claim: dict) -> str:
    return claim["record"]["badge"] if claim["record"] else "pending"


def checks_table(checks: list[dict]) -> str:
    """Measured against predicted, one row a check; on a phone the style turns each row into a card."""
    head = "".join(f'<th scope="col">{column}</th>' for column in COLUMNS)
    rows = "".join(f"<tr>{''.join(map(_cell, COLUMNS, _row(check)))}</tr>" for check in checks)
    return f'<table class="verdict-checks"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _row(check: dict) -> tuple[str, ...]:
    return (f"{check['role']}: {check['label']}", check["measured"], check["predicted"], check["criterion"],
            "passes" if check["passed"] else "fails")


def _cell(column: str, text: str) -> str:
    return f'<td data-label="{column}">{html.escape(text)}</td>'


def _badge_node(kind: str, text: str) -> nodes.inline:
    return nodes.inline("", text, classes=["verdict", f"verdict-{kind}"])


class VerdictTable(SphinxDirective):
    """One entry a claim; the argument names the paper whose claims are meant."""

    required_arguments = 1

    def run(self):
        claims = [claim for claim in read_verdicts(self.env) if claim["paper"] == self.arguments[0]]
        if not claims:
            raise self.error(f"no claim of the paper {self.arguments[0]!r} is registered in chapters/claims.yml")
        return [nodes.bullet_list("", *map(self._entry, claims), classes=["claims"])]

    def _entry(self, claim):
        record = claim["record"]
        head = nodes.paragraph("", "", nodes.strong("", claim["id"]), nodes.Text(" "),
                               _badge_node(badge(claim), record["verdict"] if record else "pending"),
                               classes=["claim-head"])
        body = nodes.container(classes=["claim-body"])
        body += self._prose("statement", self._statement(claim))
        if record:
            body += self._prose("finding", f"**Finding.** {claim['finding']}")
            body += nodes.raw("", checks_table(record["checks"]), format="html")
            body += self._prose("links", f"Proof: {{prf:ref}}`{claim['proof']}` · "
                                         f"Check: [measurement and control](#{claim['check']})")
        item = nodes.list_item("", head, body, classes=["claim"], names=[f"claim-{claim['id']}"])
        self.state.document.note_explicit_target(item)
        return item

    def _statement(self, claim):
        rebuilt = "; condition reconstructed" if claim.get("reconstructed") else ""
        return f"{claim['statement']} *({claim['where']}{rebuilt})*"

    def _prose(self, kind, markdown):
        return nodes.container("", *self.parse_text_to_nodes(markdown), classes=[f"claim-{kind}"])


class VerdictCounts(SphinxDirective):
    """How many claims have each verdict; verdicts that no claim has are left out."""

    def run(self):
        found = [badge(claim) for claim in read_verdicts(self.env)]
        items = [nodes.list_item("", nodes.paragraph("", "", nodes.strong("", str(found.count(kind))), nodes.Text(" "),
                                                     _badge_node(kind, text)))
                 for kind, text in zip(BADGES, COUNTED, strict=True) if kind in found]
        return [nodes.bullet_list("", *items, classes=["verdict-counts"])]


def setup(app):
    app.connect("builder-inited", require_results)
    app.add_directive("verdict-table", VerdictTable)
    app.add_directive("verdict-counts", VerdictCounts)
    return {"parallel_read_safe": True}
