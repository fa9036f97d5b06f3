"""Arrays that lie anywhere in memory."""

import nextstat
import numpy
import pytest


def unaligned(values, offset):
    buffer = bytes(offset) + numpy.asarray(values, float).tobytes()
    return numpy.frombuffer(buffer, offset=offset, count=len(values))


@pytest.mark.parametrize("offset", range(1, 9))
def test_arrays_that_are_not_aligned_are_read(offset):
    model = nextstat.model_of(SIMPLE)
    assert nextstat.asimov_data(model, unaligned([1.5], offset)).tolist() == [18.0, 16.5]


def test_fields_of_records_are_read():
    records = numpy.array([(1, 2.5)], dtype=numpy.dtype([("n", "i1"), ("mu", "f8")]))
    assert nextstat.asimov_data(nextstat.model_of(SIMPLE), records["mu"]).tolist() == [30.0, 27.5]


SIMPLE = {
    "channels": [{"name": "c", "samples": [{"name": "s", "data": [12.0, 11.0], "modifiers": [{"name": "mu", "type": "normfactor", "data": None}]}]}],
    "observations": [{"name": "c", "data": [12.0, 11.0]}],
    "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
    "version": "1.0.0",
}
