"""Mend the markup of sphinx-proof: an id may stand once on a page, and the word that opens a proof is a label."""

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform


class ProofMarkup(SphinxPostTransform):
    """Every proof comes with the id ``proof``, every statement with ``proof-content``: both become classes."""

    default_priority = 900

    def run(self):
        for node in list(self.document.findall(nodes.Element)):
            repeated = {"proof", "proof-content"}.intersection(node["ids"])
            node["ids"] = [anchor for anchor in node["ids"] if anchor not in repeated]
            node["classes"] += [f"{anchor}-block" for anchor in repeated]
            if "proof" in repeated:
                _label(next(node.findall(nodes.Text)))


def _label(opening: nodes.Text) -> None:
    """Set the word ``Proof.``, which sphinx-proof writes before the text, apart from it."""
    word, text = opening[:6], opening[6:]
    opening.parent.replace(opening, [nodes.inline("", word, classes=["proof-label"]), nodes.Text(text)])


def setup(app):
    app.add_post_transform(ProofMarkup)
    return {"parallel_read_safe": True}
