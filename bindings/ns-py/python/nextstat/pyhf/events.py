"""Callbacks by the name of an event; methods are referenced weakly, so that a subscription keeps no
object alive.
"""

import functools
import weakref

__all__ = ["Callables", "disable", "enable", "noop", "register", "subscribe", "trigger"]

_events = {}
_disabled = set()


def __dir__():
    return __all__


def noop(*args, **kwargs):
    """Does nothing."""


class Callables:
    """The living callbacks of one event, as pairs of weak references (function, object or None)."""

    def __init__(self):
        self._callbacks = []

    @property
    def callbacks(self):
        """The callbacks whose objects still exist."""
        self._callbacks = [(function, owner) for function, owner in self._callbacks if owner is None or owner() is not None]
        return self._callbacks

    def append(self, callback):
        """Adds a function or a bound method."""
        owner = getattr(callback, "__self__", None)
        if owner is None:
            self._callbacks.append((weakref.ref(callback), None))
        else:
            self._callbacks.append((weakref.ref(callback.__func__), weakref.ref(owner)))

    def __call__(self, *args, **kwargs):
        for function, owner in list(self.callbacks):
            called = function()
            if called is None:
                continue
            bound = [] if owner is None else [owner()]
            if None not in bound:
                called(*bound, *args, **kwargs)
        self.callbacks  # noqa: B018 - drops those that died on the way

    def __iter__(self):
        return iter(self.callbacks)

    def __getitem__(self, index):
        return self.callbacks[index]

    def __len__(self):
        return len(self.callbacks)

    def __repr__(self):
        return f"Callables({self.callbacks})"


def subscribe(event):
    """Returns a decorator that calls the function whenever `event` is triggered."""

    def decorate(function):
        _events.setdefault(event, Callables()).append(function)
        return function

    return decorate


def register(event):
    """Returns a decorator after which every call triggers ``event::before`` and
    ``event::after``."""

    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            trigger(f"{event}::before")()
            result = function(*args, **kwargs)
            trigger(f"{event}::after")()
            return result

        return wrapper

    return decorate


def trigger(event):
    """Returns the callbacks of `event`, to be called; `noop` if there are none or it is
    disabled."""
    return noop if event in _disabled else _events.get(event, noop)


def disable(event):
    """Silences `event`."""
    _disabled.add(event)


def enable(event):
    """Undoes `disable`."""
    _disabled.remove(event)
