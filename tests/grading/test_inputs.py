"""Hidden inputs: the same for a seed, of the wanted dtype and range."""

import torch
from torch import Generator

from apex_lessons.grading.inputs import normal, whole


def test_the_same_seed_gives_the_same_numbers_and_another_gives_others():
    first, again, other = (normal(Generator().manual_seed(seed), 20)
                           for seed in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_every_dtype_is_a_rounding_of_the_same_numbers():
    wide, half = (normal(Generator().manual_seed(3), 4, 5, dtype=dtype)
                  for dtype in (torch.float64, torch.float16))
    assert wide.shape == (4, 5) and torch.equal(wide.half(), half)


def test_whole_numbers_reach_both_ends_and_stop_before_the_upper_one():
    generator = Generator().manual_seed(0)
    assert set(whole(generator, 3, 6, 200).tolist()) == {3, 4, 5}
    assert {whole(generator, 3, 5) for _ in range(50)} == {3, 4}
    assert type(whole(generator, 0, 9)) is int
