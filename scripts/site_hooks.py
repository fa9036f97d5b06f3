"""Hooks of the documentation site: formulas as MathML, notebooks as pages, links out of docs/.

MkDocs calls these functions while it builds (`hooks` in mkdocs.yml). Formulas need no script in the
browser. Notebooks are executed if the package can be imported, and shown without outputs if not,
which is an error under `CI`.
External links are listed in `site/external-links.txt`; nothing is fetched.
"""

import logging
import os
import posixpath
import re
from pathlib import Path

import nbformat
from latex2mathml.converter import convert
from mkdocs.structure.files import File
from nbclient import NotebookClient
from nbconvert import MarkdownExporter

ROOT = Path(__file__).resolve().parents[1]
LOG = logging.getLogger("mkdocs.hooks.site")

FENCE = re.compile(r"^( *)(```+|~~~+).*?^\1\2`*\s*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
BLOCK = re.compile(r"^\$\$\n(.+?)\n\$\$$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(?<![\\$\w])\$(?=\S)([^$\n]+?(?:\n[^$\n]+?)?)(?<=\S)\$(?![\w$])")
LINK = re.compile(r"(!?\[(?:[^\]\[]|\[[^\]]*\])*\])\(((?:\.\./)[^)\s]*)\)")
# A warning in the output of a cell: its place and its line of code.
WARNING = re.compile(r"^\S*ipykernel\S*: (\w+: .*)\n  .*\n", re.MULTILINE)
# A link to a notebook, which is a page of the site.
NOTEBOOK = re.compile(r"(\]\([^)\s]*notebooks/[\w-]+)\.ipynb(\))")
# The formulas of each page, by its path.
FORMULAS: dict[str, list[str]] = {}
EXTERNAL = re.compile(r"""(?:href|src)="(https?://[^"]+)""")


def on_config(config):
    """Empty addresses from the environment are none."""
    for name in ("repo_url", "site_url"):
        config[name] = config[name] or None
    return config


# Notebooks


def on_files(files, config):
    """Replaces each notebook by the page that it makes, and its pictures."""
    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            files.remove(file)
            for made in notebook(Path(file.abs_src_path), file.src_uri, config):
                files.append(made)
    return files


def notebook(path, uri, config):
    document = nbformat.read(path, as_version=4)
    try:
        execute(document)
    except ImportError as error:
        if os.environ.get("CI"):
            raise
        LOG.info("%s is shown without outputs: %s", uri, error)
    body, resources = MarkdownExporter().from_notebook_node(document)
    folder, stem = posixpath.split(uri)[0], path.stem
    for name, data in resources.get("outputs", {}).items():
        picture = f"{stem}-{name}"
        body = body.replace(f"]({name})", f"]({picture})")
        yield File.generated(config, posixpath.join(folder, picture), content=data)
    body = re.sub(r"\n\n((?:    [^\n]*\n|\n)+)", outputs, body)
    note = f"\n!!! note\n\n    This page is the notebook `docs/{uri}`: download it and run it beside `examples/`.\n"
    head, _, rest = body.lstrip().partition("\n")
    yield File.generated(config, f"{folder}/{stem}.md", content=f"{head}\n{note}\n{rest}")


def outputs(found):
    """Indented output of a cell as a block of text; a warning without the place in the cell."""
    if not found[1].strip():
        return "\n\n"
    lines = [line[4:] for line in found[1].rstrip("\n").split("\n")]
    text = WARNING.sub(r"\1\n", "\n".join(lines).strip("\n") + "\n")
    return f"\n\n```text\n{text}```\n\n"


def execute(document):
    """Runs a notebook in the root of the repository, if `nextstat` and what it asks for are
    there."""
    needed = document.metadata.get("nextstat", {}).get("needs", [])
    for module in ["nextstat", *needed]:
        __import__(module)
    NotebookClient(document, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}).execute()


# Formulas and links


def on_page_markdown(markdown, page, config, files):
    """Formulas become MathML, and links that leave docs/ lead to the repository, or to nothing."""
    kept = []

    def keep(found):
        kept.append(found[0])
        return f"\x02{len(kept) - 1}\x03"

    markdown = NOTEBOOK.sub(r"\1.md\2", markdown)
    text = CODE.sub(keep, FENCE.sub(keep, markdown))
    formulas = FORMULAS.setdefault(page.file.src_uri, [])
    formulas.clear()
    text = BLOCK.sub(lambda found: math(found[1], "block", formulas), text)
    text = INLINE.sub(lambda found: math(found[1], "inline", formulas), text)
    text = LINK.sub(lambda found: link(found, page.file.src_uri, config), text)
    for _ in range(2):
        text = re.sub("\x02(\\d+)\x03", lambda found: kept[int(found[1])], text)
    return text


def math(source, display, formulas):
    """A word instead of a formula, which `on_page_content` replaces: Markdown must not see
    it."""
    formulas.append(convert(source.replace("\n", " "), display=display))
    return f"formula{len(formulas) - 1}end"


def on_page_content(html, page, config, files):
    """Puts the formulas of a page in their places."""
    formulas = FORMULAS.get(page.file.src_uri, [])
    html = re.sub(r"<p>formula(\d+)end</p>", lambda found: f'<div class="formula">{formulas[int(found[1])]}</div>', html)
    return re.sub(r"formula(\d+)end", lambda found: formulas[int(found[1])], html)


def link(found, uri, config):
    target, _, anchor = found[2].partition("#")
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(uri), target))
    if path.startswith("docs/"):
        return found[0]
    if not (ROOT / path).exists():
        LOG.warning("%s links to `%s`, which does not exist", uri, path)
    if not config["repo_url"]:
        return found[1].removeprefix("!")[1:-1]
    base = config["repo_url"].rstrip("/")
    return f"{found[1]}({base}/blob/main/{path}{'#' + anchor if anchor else ''})"


def on_post_build(config):
    """Lists the links to other hosts, and fails if the site loads anything from one."""
    links, loaded = set(), set()
    for path in sorted(Path(config["site_dir"]).rglob("*.html")):
        text = path.read_text("utf-8")
        links.update(EXTERNAL.findall(text))
        loaded.update(re.findall(r'<(?:script|img|link rel="stylesheet")[^>]+(?:src|href)="(https?://[^"]+)', text))
    target = Path(config["site_dir"]) / "external-links.txt"
    target.write_text("\n".join(sorted(links)) + "\n", "utf-8")
    if loaded:
        LOG.warning("the site loads from other hosts: %s", ", ".join(sorted(loaded)))


