"""What schemathesis sends as a snapshot bundle: the one in IGNITION_BUNDLE, damaged ones, and noise."""

import os
from pathlib import Path

import schemathesis
from hypothesis import strategies as st

BUNDLE = Path(os.environ["IGNITION_BUNDLE"]).read_bytes()


def torn(at: int) -> bytes:
    return BUNDLE[:at]


def changed(at: int, byte: int) -> bytes:
    return BUNDLE[:at] + bytes([byte]) + BUNDLE[at + 1 :]


places = st.integers(0, len(BUNDLE) - 1)
bundles = st.one_of(
    st.just(BUNDLE),
    st.builds(torn, places),
    st.builds(changed, places, st.integers(0, 255)),
    st.binary(),
)
schemathesis.openapi.media_type("application/vnd.anvil.snapshot-bundle", bundles)
