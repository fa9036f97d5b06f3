"""What workspaces and models say of their channels."""


class _ChannelSummaryMixin:
    """Names and sizes, each sorted, of the channels given as `channels`."""

    def __init__(self, *args, **kwargs):
        channels = kwargs.pop("channels")
        super().__init__(*args, **kwargs)
        n_bins = {channel["name"]: len(channel["samples"][0]["data"]) for channel in channels}
        samples = [sample for channel in channels for sample in channel["samples"]]
        self._channels = sorted(n_bins)
        self._samples = sorted({sample["name"] for sample in samples})
        self._modifiers = sorted({(modifier["name"], modifier["type"]) for sample in samples for modifier in sample["modifiers"]})
        self._channel_nbins = {name: n_bins[name] for name in self._channels}
        self._channel_slices = {}
        begin = 0
        for name, n in self._channel_nbins.items():
            self._channel_slices[name] = slice(begin, begin + n)
            begin += n

    @property
    def channels(self):
        """Channel names."""
        return self._channels

    @property
    def samples(self):
        """Sample names."""
        return self._samples

    @property
    def modifiers(self):
        """Pairs (name, type) of modifiers."""
        return self._modifiers

    @property
    def channel_nbins(self):
        """Number of bins by channel."""
        return self._channel_nbins

    @property
    def channel_slices(self):
        """The bins of each channel in the main data, as slices."""
        return self._channel_slices
