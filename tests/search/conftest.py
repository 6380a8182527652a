"""A busy machine makes nothing wrong: examples have no deadline here."""

from hypothesis import settings

settings.register_profile("without deadline", deadline=None)
settings.load_profile("without deadline")
