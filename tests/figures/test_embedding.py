"""The numbers behind the pictures of lesson 01, against closed forms and the cases."""

import inspect
import math

import pytest
import torch
from torch.nn import functional as F

from apex_lessons.figures import embedding as draw
from apex_lessons.figures import png
from apex_lessons.models.trained_table import trained_table

TABLE = torch.tensor([[0.01, -0.03, 0.02, 0.01], [-0.02, 0.04, -0.01, 0.03],
                      [0.03, 0.01, -0.04, 0.02]])
EYE = torch.eye(2, dtype=torch.float64)
WORDS = ("king", "queen", "dog", "Paris")


def arguments(name):
    """Settings for each figure that needs some."""
    trained = trained_table()
    rows = [trained.row(word) for word in WORDS]
    return {
        "lookup": (TABLE, torch.tensor([1, 0, 2])),
        "gradient_paths": (EYE, 0, 1, math.sqrt(2)),
        "word_cosines": (trained.weight, rows, WORDS),
        "trained_sizes": (trained.weight, {"the": trained.row("the")}),
    }.get(name, ())


FIGURES = ("conventions", "gradient_paths", "lookup", "optimiser_step",
           "position_share", "residual_by_depth", "scale_by_width", "start_of_training",
           "token_vector",
           "trained_sizes", "tying_savings", "word_cosines")


def test_the_list_is_complete():
    described = {name.removeprefix("describe_") for name, _ in inspect.getmembers(
        draw, inspect.isfunction) if name.startswith("describe_")}
    assert described == set(FIGURES)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_draws_and_says_what_it_shows(name):
    figure = getattr(draw, name)(*arguments(name))
    assert len(png(figure)) > 10_000
    texts = [text.get_text() for axis in figure.axes for text in (
        axis.xaxis.label, axis.yaxis.label, axis.title)]
    assert any(texts)


@pytest.mark.parametrize("name", ["scale_by_width", "token_vector"])
def test_random_figures_have_the_same_bytes_whatever_was_drawn_before(name):
    first = png(getattr(draw, name)())
    torch.manual_seed(123)
    draw.measured_sizes.cache_clear()
    assert png(getattr(draw, name)()) == first


@pytest.mark.parametrize("name", FIGURES)
def test_every_description_is_short_and_repeatable(name):
    describe = getattr(draw, f"describe_{name}")
    words = describe(*arguments(name))
    assert words == describe(*arguments(name))
    assert 1 <= len(words.splitlines()) <= 5
    assert any(character.isdigit() for character in words)
    assert "nan" not in words
    assert "-0.0 " not in words + " "


# --- lookup -------------------------------------------------------------------------

def test_lookup_is_a_product_and_teaches_the_rows_used():
    ids = torch.tensor([2, 0, 2, 2])
    parts = draw.lookup_parts(TABLE, ids)
    assert torch.equal(parts["one_hot"] @ TABLE, TABLE[ids])
    assert torch.equal(parts["rows"], TABLE[ids])
    assert parts["gradient"][:, 0].tolist() == [1.0, 0.0, 3.0]
    assert not TABLE.requires_grad


def test_the_worked_example_of_the_reference():
    """EMB-02: exactly these numbers; a division would give others."""
    rows = TABLE[torch.tensor([1, 0, 2])] * 2
    assert draw.rounded_rows(rows, 2) == [[-0.04, 0.08, -0.02, 0.06],
                                          [0.02, -0.06, 0.04, 0.02],
                                          [0.06, 0.02, -0.08, 0.04]]
    assert math.isclose(TABLE.pow(2).mean().item(), 0.000625, rel_tol=1e-6)  # E03
    assert math.isclose((TABLE * 2).pow(2).mean().item(), 0.0025, rel_tol=1e-6)


# --- sizes --------------------------------------------------------------------------

@pytest.mark.parametrize(("init", "right"), [(0, 22.627416997969522),
                                             (1, 0.4525483399593904), (2, 1.0)])
def test_what_each_init_gives_at_512(init, right):
    """EMB-01: N(0,1), std 0.02 and 1/√512, then times √512, within 1 %."""
    _, after = draw.measured_sizes(512, draw.INITS[init].std(512))
    assert math.isclose(after, right, rel_tol=0.01)


def test_sizes_follow_the_formula_at_every_width():
    for init, points in zip(draw.INITS, draw.scales_by_width().values()):
        for width, before, after in points:
            assert math.isclose(before, init.std(width), rel_tol=0.01)
            assert math.isclose(after, init.std(width) * math.sqrt(width), rel_tol=0.01)


def test_the_crossing_is_at_2500():
    """E01, E02: 0.02 = 1/√d and 0.02·√d = 1 there, and nowhere else."""
    fixed, shrinking = draw.INITS[1], draw.INITS[2]
    assert math.isclose(fixed.std(2500), shrinking.std(2500))
    assert fixed.std(512) < shrinking.std(512)
    assert fixed.std(7168) > shrinking.std(7168)


# --- conventions --------------------------------------------------------------------

def test_which_conventions_have_equal_sizes():
    by_name = {rule.name: rule for rule in draw.CONVENTIONS}
    for width in (64, 512, 7168):
        for name in ("Vaswani et al. 2017", "T5, PaLM"):
            assert math.isclose(by_name[name].input_size(width), 1.0)
            assert math.isclose(by_name[name].logit_size(width), 1.0)
        apex = by_name["APEX-1"]
        assert math.isclose(apex.input_size(width), 0.02 * math.sqrt(width))
        assert math.isclose(apex.logit_size(width), 0.02 * math.sqrt(width))
        assert by_name["GPT-2 (no factor)"].input_size(width) == 0.02


@pytest.mark.parametrize("rule", draw.CONVENTIONS, ids=lambda rule: rule.name)
def test_convention_sizes_are_what_a_table_shows(rule):
    width = 256
    factor, power = rule.std
    table = draw.random_table(2000, width, factor * width ** power, seed=3)
    inputs = table * width ** rule.on_the_way_in
    hidden = draw.random_table(50, width, 1.0, seed=4)
    logits = hidden @ table.T * width ** rule.on_the_way_out
    assert math.isclose(draw.root_mean_square(inputs), rule.input_size(width),
                        rel_tol=0.02)
    assert math.isclose(logits.std().item(), rule.logit_size(width), rel_tol=0.02)


# --- the optimiser ------------------------------------------------------------------

def test_step_ratios_are_d_and_root_d():
    ratios = draw.step_ratios((16, 64, 256))
    assert ratios["SGD"] == pytest.approx([16, 64, 256], rel=1e-9)
    assert ratios["Adam"] == pytest.approx([4, 8, 16], rel=1e-6)


@pytest.mark.parametrize(("name", "optimiser"), [
    ("SGD", lambda table: torch.optim.SGD([table], lr=1e-3)),
    ("Adam", lambda table: torch.optim.Adam([table], lr=1e-3, eps=1e-30))])
def test_the_first_move_is_what_torchs_optimiser_does(name, optimiser):
    start = draw.random_table(12, 16, 0.25).double()
    table = start.clone().requires_grad_()
    draw.tied_loss(table, torch.tensor([3, 7, 1]), torch.tensor([7, 1, 4]), 4.0,
                   1.0).backward()
    optimiser(table).step()
    move = draw.first_move(start, 4.0, 1.0, name, 1e-3)
    assert torch.allclose(table.detach() - start, move, rtol=1e-6, atol=1e-12)


def test_both_conventions_start_as_the_same_function():
    table = draw.random_table(12, 64, 1 / 8).double()
    ids, targets = torch.tensor([3, 7, 1]), torch.tensor([7, 1, 4])
    one = draw.tied_loss(table, ids, targets, 8.0, 1.0)
    other = draw.tied_loss(table * 8.0, ids, targets, 1.0, 1 / 8)
    assert torch.allclose(one, other, rtol=1e-12)


# --- positions ----------------------------------------------------------------------

def test_sinusoids_have_size_one_over_root_two_and_the_papers_entries():
    table = draw.sinusoids(20, 64)
    assert math.isclose(draw.root_mean_square(table), 1 / math.sqrt(2))
    assert math.isclose(table[5, 0].item(), math.sin(5))
    assert math.isclose(table[5, 3].item(), math.cos(5 / 10_000 ** (2 / 64)))


def test_position_shares():
    shares = draw.position_shares()
    at = draw.WIDTHS.index(512)
    scaled, drawn = shares["std 1/√d, tensor2tensor, × √d"], shares[
        "std 1/√d, tensor2tensor, as drawn"]
    assert scaled == pytest.approx([1 / 3] * len(draw.WIDTHS))
    assert math.isclose(drawn[at], 0.5 / (0.5 + 1 / 512))


# --- the residual stream ------------------------------------------------------------

def test_the_stream_keeps_the_token_only_with_the_factor():
    small = {"width": 128, "layers": 3, "heads": 4, "hidden": 256, "tokens": 16}
    with_factor, without = draw.stream_by_depth((math.sqrt(128), 1.0), **small)
    assert len(with_factor.kept) == len(with_factor.stream) == 7
    assert math.isclose(with_factor.stream[0], without.stream[0] * math.sqrt(128),
                        rel_tol=1e-5)
    assert with_factor.output[1] == pytest.approx(without.output[1], rel=0.01), (
        "the first sub-layer reads a normalised copy: it cannot see the factor")
    assert with_factor.kept[-1] > 2 * without.kept[-1]


def test_attention_of_the_blocks_is_causal():
    weights = [draw.random_table(8, 8, 0.5, seed) for seed in range(4)]
    x = draw.random_table(6, 8, 1.0)
    changed = x.clone()
    changed[4:] += 1.0
    before, after = draw.attend(x, *weights, 2), draw.attend(changed, *weights, 2)
    assert torch.allclose(before[:4], after[:4], atol=1e-6)
    assert not torch.allclose(before[4:], after[4:], atol=1e-2)


# --- tying --------------------------------------------------------------------------

def test_the_two_paths_of_a_tied_gradient():
    """TIE-09: the sum is what the optimiser gets, to 1e-12."""
    paths = draw.tied_gradients(EYE, 0, 1, math.sqrt(2))
    total = torch.tensor([[2.2752707339536427, -1.1376353669768213],
                          [-1.1376353669768213, 0.0]], dtype=torch.float64)
    assert torch.allclose(paths["total"], total, atol=1e-12)
    assert torch.allclose(paths["lookup path"] + paths["head path"], total, atol=1e-12)
    assert paths["lookup path"][1].abs().max() == 0


def test_padding_rows_of_a_tied_table_still_learn():
    """EMB-10: row 0 gets a gradient through the logits."""
    weight = torch.tensor([[0.0, 0], [1, 0], [0, 1]], dtype=torch.float64,
                          requires_grad=True)
    hidden = F.embedding(torch.tensor([1]), weight, padding_idx=0)
    loss = F.cross_entropy(hidden @ weight.T, torch.tensor([2]))
    loss.backward()
    assert math.isclose(loss.item(), math.log(2 + math.e), rel_tol=1e-12)
    assert torch.allclose(weight.grad, torch.tensor(
        [[0.21194155761708544, 0], [1.1522337695316582, -0.7880584423829146],
         [-0.7880584423829146, 0]], dtype=torch.float64), atol=1e-12)


def test_an_optimiser_refuses_a_tied_tensor_in_two_groups():
    """TIE-05: groups built module by module hold it twice."""
    table, head = torch.nn.Embedding(7, 4), torch.nn.Linear(4, 7, bias=False)
    head.weight = table.weight
    groups = [{"params": list(module.parameters())} for module in (table, head)]
    with pytest.raises(ValueError, match="more than one parameter group"):
        torch.optim.AdamW(groups)


def test_what_tying_saves():
    """E09, A07, EMB-05: counts of the four sizes."""
    savings = draw.savings()
    assert savings["small"].table == 77_641_216
    assert savings["small"].other_heads == 310_564_864
    assert savings["small"].total == 523_150_860
    assert savings["large"].table == 1_086_977_024
    assert "12.92%" in draw.describe_tying_savings()


# --- the start ----------------------------------------------------------------------

def test_the_echo_of_a_tied_model():
    """TIE-12: d=512, std 0.02, V=50257."""
    theory = draw.expected_start(512, 0.02, 50_257)
    assert math.isclose(theory["own"], 10.24)
    assert math.isclose(theory["spread"], 0.4525483399593904)
    assert math.isclose(math.exp(theory["own"] - theory["echo"]), 0.3346, abs_tol=1e-4)
    assert math.isclose(draw.expected_start(7168, 0.02, 151_643)["own"], 143.36)


@pytest.mark.parametrize(("width", "std"), [(64, 0.02), (512, 0.02), (512, 0.05),
                                            (2048, 0.01)])
def test_theory_and_measurement_of_the_start_agree(width, std):
    theory = draw.expected_start(width, std, 4000)
    found = draw.measured_start(width, std, 4000)
    assert found["own"] == pytest.approx(theory["own"], rel=0.02)
    assert found["spread"] == pytest.approx(theory["spread"], rel=0.05)
    for key in ("echo", "blind"):
        assert found[key] == pytest.approx(theory[key], rel=0.03, abs=0.15)


def test_the_direction_of_a_tie_decides_the_first_loss():
    """TIE-01: the Linear's 1/√(3d) against the Embedding's 1, at d=768."""
    assert math.isclose(1 / math.sqrt(3 * 768), 1 / 48)
    quiet = draw.expected_start(768, 1 / 48, 50_257)["blind"]
    assert math.isclose(quiet, 10.991571786368747, rel_tol=1e-9)
    assert math.isclose(draw.expected_start(768, 1.0, 50_257)["spread"], 27.7128,
                        rel_tol=1e-5)


# --- the trained table --------------------------------------------------------------

def test_row_sizes_and_cosines_of_known_rows():
    table = torch.tensor([[3.0, 4.0], [4.0, -3.0], [6.0, 8.0]])
    assert draw.row_sizes(table).tolist() == pytest.approx([math.sqrt(12.5)] * 2
                                                           + [math.sqrt(50)])
    assert torch.allclose(draw.cosines(table, [0, 1, 2]), torch.tensor(
        [[1.0, 0, 1], [0, 1, 0], [1, 0, 1]]), atol=1e-6)


def test_nearest_names_another_word():
    trained = trained_table()
    rows = [trained.row(word) for word in WORDS]
    words = draw.describe_word_cosines(trained.weight, rows, WORDS)
    assert "king: queen 0.34" in words
    for word in WORDS:
        assert f"{word}: {word}" not in words


def test_random_tables_depend_on_their_seed_only():
    torch.manual_seed(1)
    one = draw.random_table(3, 4, 0.5, seed=7)
    torch.manual_seed(2)
    assert torch.equal(one, draw.random_table(3, 4, 0.5, seed=7))
    assert not torch.equal(one, draw.random_table(3, 4, 0.5, seed=8))
    assert torch.equal(one * 2, draw.random_table(3, 4, 1.0, seed=7))
