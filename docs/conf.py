"""The documentation site: ``make docs`` builds it with Sphinx, and Read the Docs publishes it.

The pages are Markdown that is also read on GitHub, so they link to files outside of this folder, as in
``[changelog](../CHANGELOG.md)``. On the site, such a link leads to the page that includes the file, or else
to the file in the repository. A link that leads nowhere stops the build.
"""

from __future__ import annotations

import re
from importlib.metadata import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes
from pygments.lexers import TextLexer
from sphinx import addnodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).parent
ROOT = DOCS.parent
PACKAGE = metadata("scrapy-norobots")
REPOSITORY = dict(url.split(", ") for url in PACKAGE.get_all("Project-URL", []))["Source"]
INCLUDED = {"README.md": "index", "CONTRIBUTING.md": "contributing", "CHANGELOG.md": "changelog"}
SEARCHED = {
    "crawl-delay": ("crawl delay",),
    "download-failures": ("wait", "timeout", "Retry-After"),
    "settings": ("disable",),
    "usage": ("noindex", "nofollow", "Content-Signal"),
}

project = PACKAGE["Name"]
version = release = PACKAGE["Version"]
author = "The scrapy-norobots developers"
copyright = author

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["README.md"]  # index.md includes it

myst_heading_anchors = 4
autodoc_member_order = "bysource"

nitpicky = True
# Docstrings name parameters, settings, and classes of Scrapy: what has no page here is shown as code.
nitpick_ignore_regex = [("py:.*", ".*")]
default_role = "py:obj"
# A block without a language is a log or another output.
highlight_language = "none"

html_theme = "furo"
# The theme's own style underlines the names of modules, as if they were links.
pygments_dark_style = "a11y-high-contrast-dark"
html_title = project
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
# The theme makes links to the source of each page, once the repository has its place.
html_theme_options = (
    {}
    if "/OWNER/" in REPOSITORY
    else {"source_repository": REPOSITORY, "source_branch": "main", "source_directory": "docs/"}
)


def link_repository_files(_: Sphinx, doctree: nodes.document) -> None:
    """Make the links of a page to files outside of this folder work on the site."""
    for node in list(doctree.findall()):
        if not isinstance(node, (addnodes.pending_xref, addnodes.download_reference)):
            continue
        path, _, anchor = node["reftarget"].partition("#")
        if node["refdomain"] == "doc":  # MyST has taken the suffix and the anchor off
            path, anchor = f"{path}.md", node["reftargetid"]
        # An included file links relative to its own folder.
        found = next((file for file in (DOCS / path, ROOT / path) if path and file.exists()), None)
        if found is None or found.resolve().is_relative_to(DOCS):
            continue
        name = found.resolve().relative_to(ROOT).as_posix()
        if name in INCLUDED:
            node["refdomain"], node["reftarget"], node["reftargetid"] = "doc", INCLUDED[name], anchor
        else:
            uri = f"{REPOSITORY}/blob/main/{name}" + (f"#{anchor}" if anchor else "")
            node.replace_self(nodes.reference("", "", *node.children, refuri=uri))


def list_subpages(_: Sphinx, page: str, source: list[str]) -> None:
    """List the pages that the overview has below another one below it in the sidebar, too."""
    overview = (DOCS / "README.md").read_text(encoding="utf-8")
    below = re.search(rf"^- \[[^]]+\]\({page}\.md\).*\n((?:  - .+\n)+)", overview, re.MULTILINE)
    if below:
        subpages = "\n".join(re.findall(r"\]\(([\w-]+)\.md\)", below[1]))
        source[0] += f"\n```{{toctree}}\n:hidden:\n\n{subpages}\n```\n"


def index_words(app: Sphinx, doctree: nodes.document) -> None:
    """Let a search for these words find their page first; Sphinx skips statuses, such as 403, altogether."""
    page = app.env.docname
    words = list(SEARCHED.get(page, ()))
    if page == "download-failures":
        words += sorted(set(re.findall(r"\b[345]\d\d\b", doctree.astext())))
    if words:
        section = next(node for node in doctree.findall(nodes.section) if node.parent is not doctree)
        entries = [("single", word, section["ids"][0], "main", None) for word in words]
        doctree.insert(0, addnodes.index(entries=entries))


def name_findings(app: Sphinx, doctree: nodes.document) -> None:
    """Give each kind of finding an address, to which the report of a crawl links."""
    if app.env.docname == "standard":
        (section,) = (one for one in doctree.findall(nodes.section) if one["ids"] == ["findings"])
        for row in section.findall(nodes.row):
            row["ids"] = [f"finding-{kind.astext()}" for kind in row[0].findall(nodes.literal)]


def link_images(_: Sphinx, doctree: nodes.document) -> None:
    """Make each image a link to its file, as Sphinx does if an image has a scale. Phones show it small."""
    for image in doctree.findall(nodes.image):
        image["scale"] = 100


def setup(app: Sphinx) -> None:
    """Register what this file adds to Sphinx."""
    app.connect("source-read", list_subpages)
    app.connect("doctree-read", link_repository_files)
    app.connect("doctree-read", index_words)
    app.connect("doctree-read", name_findings)
    app.connect("doctree-read", link_images)
    app.add_lexer("robots.txt", TextLexer)
