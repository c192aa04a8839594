"""Which devices are taken, and what is said of the others."""

import pytest

from apex_lessons.extrapolation.device import usable_device
from tests.pretend_device import PretendDevice


def test_the_processor_always_can():
    assert usable_device("cpu") == "cpu"


def test_a_device_that_is_there_is_taken():
    with PretendDevice("mps"):
        assert usable_device("mps") == "mps"


@pytest.mark.parametrize("name", ["meta", "foo", "", "vulkan", "cuda:99", "cpu:x"])
def test_others_are_refused_in_one_sentence(name):
    with pytest.raises(ValueError, match=f"--device {name} cannot be used here") as e:
        usable_device(name)
    said = str(e.value)
    assert said.endswith("; cpu always can") and len(said) < 300 and "\n" not in said
