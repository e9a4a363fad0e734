"""Drop the anchors that sphinx-proof repeats: an id may stand once on a page."""

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

REPEATED = {"proof", "proof-content"}


class UniqueAnchors(SphinxPostTransform):
    """Every proof comes with the id ``proof``; it becomes the class ``proof-body``, which the style can still find."""

    default_priority = 900

    def run(self):
        for node in self.document.findall(nodes.Element):
            if "proof" in node["ids"] and isinstance(node, nodes.admonition):
                node["classes"].append("proof-body")
            node["ids"] = [anchor for anchor in node["ids"] if anchor not in REPEATED]


def setup(app):
    app.add_post_transform(UniqueAnchors)
    return {"parallel_read_safe": True}
