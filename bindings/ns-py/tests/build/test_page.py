"""The page on building workspaces shows the example as it is."""

import re


def test_the_configuration_on_the_page_is_the_example(root):
    page = (root / "docs/how-to/build.md").read_text("utf-8")
    shown = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[0]
    assert shown == (root / "examples/build.yml").read_text("utf-8")
