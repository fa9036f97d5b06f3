"""Archives of published likelihoods."""

__all__ = ["download"]


def download(archive_url, output_directory, force=False, compress=False):
    """Raises `NotImplementedError`: this package opens no network connections."""
    raise NotImplementedError("this package opens no network connections; `pyhf contrib download`, or any other program, fetches an archive")
