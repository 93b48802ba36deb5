"""Contracts of the denoisers, and the quality of the one that ships."""

from __future__ import annotations

import pytest
import torch

from pnpilot.benchmark.denoising import complexity
from pnpilot.denoisers import DENOISERS, Denoiser, build_denoiser, compact
from pnpilot.denoisers.base import freeze
from pnpilot.denoisers.deepinv import DeepinvDenoiser
from pnpilot.denoisers.dncnn import DnCNN
from pnpilot.errors import BadInput, UnknownName
from pnpilot.io.scans import example_brain
from pnpilot.metrics import psnr
from pnpilot.phase import gauge, middle
from pnpilot.weights import has_weights, read_card
from tests.conftest import phantom
from tests.contracts import assert_close, random_like


@pytest.fixture(params=DENOISERS, scope="module")
def denoiser(request: pytest.FixtureRequest) -> Denoiser:
    torch.manual_seed(0)
    return freeze(DENOISERS[request.param].example())


@pytest.mark.parametrize("size", [(16, 16), (17, 31), (40, 23)])
def test_any_size(denoiser: Denoiser, size: tuple[int, int]) -> None:
    assert denoiser(torch.rand(2, 1, *size), 0.1).shape == (2, 1, *size)


def test_sigma_is_per_image(denoiser: Denoiser) -> None:
    x, sigma = torch.rand(3, 1, 32, 32), torch.tensor([0.01, 0.1, 0.25])
    together = denoiser(x, sigma)
    for index in range(3):
        assert_close(denoiser(x[index : index + 1], sigma[index].item()), together[index : index + 1], 1e-4)


def test_channels_are_denoised_one_by_one(denoiser: Denoiser) -> None:
    x, sigma = torch.rand(2, 3, 32, 32), torch.tensor([0.05, 0.2])
    assert_close(denoiser(x, sigma)[:, 1:2], denoiser(x[:, 1:2], sigma), 1e-4)


def with_a_phase(seed: int = 0) -> torch.Tensor:
    """Noisy pictures whose phase turns by several radians across them."""
    ramp = torch.linspace(-2, 3, 32) + torch.linspace(0, 2, 32)[:, None]
    noise = torch.randn(2, 1, 32, 32, dtype=torch.complex64, generator=torch.Generator().manual_seed(seed))
    return torch.polar(phantom(32, 32), ramp.expand(2, 1, -1, -1)) + 0.05 * noise


def test_complex_images_are_denoised_part_by_part_in_their_gauge(denoiser: Denoiser) -> None:
    """The real part as it is; the imaginary part, which has any sign, lifted to values that are not negative."""
    x, sigma = with_a_phase(), torch.tensor([0.05, 0.2])
    turn = gauge(x)
    level = x * turn.conj()
    lift = level.imag.abs().amax((1, 2, 3), keepdim=True)
    real, imaginary = denoiser(level.real, sigma), denoiser(level.imag + lift, sigma) - lift
    assert_close(denoiser(x, sigma), torch.complex(real, imaginary) * turn, 1e-4)


@pytest.mark.parametrize("angle", [0.7, 3.0, -1.6])
def test_a_complex_image_that_is_turned_is_denoised_alike(denoiser: Denoiser, angle: float) -> None:
    """H(e^{iθ}x) = e^{iθ}H(x)."""
    x, sigma, turn = with_a_phase(), torch.tensor([0.05, 0.2]), torch.polar(torch.ones(()), torch.tensor(angle))
    assert_close(denoiser(turn * x, sigma), turn * denoiser(x, sigma), 1e-4)


@pytest.mark.parametrize("size", [(32, 32), (47, 40), (64, 33)])
def test_the_gauge_takes_out_a_smooth_phase_and_turns_along(size: tuple[int, int]) -> None:
    picture = phantom(*size)
    ramp = torch.linspace(-2, 3, size[1]) + torch.linspace(0, 2, size[0])[:, None]
    x = torch.polar(picture, ramp.expand_as(picture))
    found = gauge(x)
    assert_close(found.abs(), torch.ones_like(picture))
    level, bright = x * found.conj(), picture > 0.3
    assert_close(level.real[bright], picture[bright], 0.1)
    assert (level.imag[bright].abs() < 0.3 * picture[bright]).all()
    assert level.imag.norm() < 0.13 * x.norm()
    turn = torch.polar(torch.ones(()), torch.tensor(2.0))
    assert_close(gauge(turn * x), turn * found, 1e-4)
    assert_close(gauge(picture + 0j), torch.ones_like(found))


def test_the_gauge_does_not_hang_on_the_last_digits_of_air() -> None:
    """A phase read from nearly nothing would turn by any angle when nothing changes by a little."""
    rows, columns = torch.linspace(-1, 1, 96)[:, None], torch.linspace(-1, 1, 96)
    body = torch.polar(torch.exp(-20 * (rows.square() + columns.square())), 2 * rows + columns)[None, None]
    other = body * (1 + 1e-5 * random_like(body, 0))
    assert_close(gauge(other), gauge(body), 1e-3)


@pytest.mark.parametrize("size", [(48, 48), (47, 40), (20, 65)])
def test_the_middle_of_kspace_is_where_the_zero_frequency_is(size: tuple[int, int]) -> None:
    window = middle(*size, side=32)
    assert window.shape == size
    rows, columns = size[0] // 2, size[1] // 2
    assert window[rows, columns] == window.max() == 1
    far = ((torch.arange(size[0]) - rows).abs()[:, None] >= 16) | ((torch.arange(size[1]) - columns).abs() >= 16)
    assert window[far].abs().max() < 1e-6
    assert (window[~far] > 1e-6).all()


def test_frozen_but_transparent(denoiser: Denoiser) -> None:
    x, sigma = torch.rand(1, 1, 32, 32, requires_grad=True), torch.tensor([0.1], requires_grad=True)
    denoiser(x, sigma).square().sum().backward()
    assert not any(parameter.requires_grad for parameter in denoiser.parameters())
    assert x.grad is not None
    assert x.grad.abs().sum() > 0
    if denoiser.differentiable:
        assert sigma.grad is not None
        assert sigma.grad.abs() > 0


def test_bad_input(denoiser: Denoiser) -> None:
    with pytest.raises(BadInput, match="batch, channel, height, width"):
        denoiser(torch.rand(8, 8), 0.1)
    with pytest.raises(BadInput, match="3 noise levels for a batch of 2"):
        denoiser(torch.rand(2, 1, 8, 8), torch.ones(3))


@pytest.mark.parametrize(
    ("name", "parameters", "gflop"),
    [
        ("compact", 7_764_032, 8.431),
        ("dncnn", 666_497, 21.800),
        ("memnet", 2_906_048, 94.680),
        ("unet", 11_773_857, 9.684),
    ],
)
def test_size_and_cost(name: str, parameters: int, gflop: float) -> None:
    denoiser = DENOISERS[name]()
    assert sum(parameter.numel() for parameter in denoiser.parameters()) == parameters
    # The cost grows with the area: a sixteenth of it is quicker to count.
    assert 16 * complexity(denoiser, 32, 32)["gflop"] == pytest.approx(gflop, abs=1e-2)


@pytest.mark.parametrize("name", ["compact", "dncnn", "memnet", "unet"])
def test_the_image_is_not_rounded_under_autocast(name: str) -> None:
    """Two images that are equal in bf16 lead to different residuals: the first layer sees them unrounded."""
    denoiser = freeze(DENOISERS[name].example())
    x, sigma = torch.full((1, 1, 32, 32), 0.75), torch.full((1, 1, 1, 1), 0.1)
    seen: list[torch.Tensor] = []
    first = next(layer for layer in denoiser.modules() if isinstance(layer, torch.nn.Conv2d))
    first.register_forward_hook(lambda _layer, _inputs, output: seen.append(output))
    with torch.autocast("cpu", torch.bfloat16):
        for image in (x, x + 2**-11):
            denoiser.residual(image, sigma)
    assert all(output.dtype == torch.float32 for output in seen)
    assert not torch.equal(*seen)


def test_the_image_is_not_rounded_by_convolutions_that_keep_ten_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of single precision do on a GPU; rounding of flat parts is the same every time, and adds up."""
    denoiser, x = build_denoiser("compact"), phantom(32, 32)

    def ten_bits(_layer: object, inputs: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
        return (((inputs[0].contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32),)

    exact = denoiser(x, 0.05)
    denoiser.get_submodule("head").register_forward_pre_hook(ten_bits)
    rounded = (denoiser(x, 0.05) - exact).abs().max()
    monkeypatch.setattr(compact, "ROUNDS", ("cpu",))
    assert (denoiser(x, 0.05) - exact).abs().max() < rounded / 30


def test_memnet_stays_in_half_precision_after_the_first_layer() -> None:
    """Otherwise the concatenations of a training batch would not fit on a GPU."""
    denoiser = freeze(DENOISERS["memnet"].example())
    kinds: set[torch.dtype] = set()
    for layer in denoiser.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            layer.register_forward_hook(lambda _layer, inputs, _output: kinds.add(inputs[0].dtype))
    with torch.autocast("cpu", torch.bfloat16):
        denoiser(torch.rand(1, 1, 16, 16), 0.1)
    assert kinds == {torch.bfloat16}


def test_dncnn_starts_with_a_signal_at_its_end() -> None:
    """With torch's own initial weights 20 layers leave none, and nothing is learnt for hundreds of steps."""
    denoiser = DnCNN()
    seen: list[torch.Tensor] = []
    denoiser.outlet.register_forward_hook(lambda _layer, inputs, _output: seen.append(inputs[0]))
    denoiser(phantom(32, 32), 0.1)
    assert 0.02 < seen[0].std((2, 3)).mean() < 2


def test_compact_scales_with_image_and_noise() -> None:
    """No biases anywhere: D(c·x, c·σ) = c·D(x, σ)."""
    denoiser = build_denoiser("compact")
    x = torch.rand(1, 1, 32, 32)
    assert_close(denoiser(8 * x, 0.8), 8 * denoiser(x, 0.1))


MEASURED = {"compact": (31.23, 28.96, 26.65), "dncnn": (30.85, 28.57, 26.27), "unet": (30.88, 28.57, 26.15)}


def test_every_shipped_denoiser_is_among_the_measured() -> None:
    assert {name for name in DENOISERS if has_weights(name)} == set(MEASURED)


@pytest.mark.parametrize("name", MEASURED)
@pytest.mark.parametrize(("level", "sigma"), list(enumerate((15, 25, 50))))
def test_the_shipped_denoisers_denoise(name: str, level: int, sigma: float) -> None:
    """On a photograph that scikit-image ships, at half size."""
    from skimage import data

    truth = torch.from_numpy(data.camera()[::2, ::2].copy()).float()[None, None] / 255
    noise = torch.randn(truth.shape, generator=torch.Generator().manual_seed(0))
    noisy = truth + sigma / 255 * noise
    with torch.inference_mode():
        clean = build_denoiser(name)(noisy, sigma / 255)
    assert psnr(clean, truth).item() == pytest.approx(MEASURED[name][level], abs=0.05)


@pytest.mark.parametrize("phase", [0.0, 0.8, 1.6, 3.1, -2.0])
def test_the_shipped_denoiser_does_not_mind_the_phase(phase: float) -> None:
    truth = example_brain() * torch.exp(torch.tensor(1j * phase))
    noise = torch.randn(truth.shape, dtype=truth.dtype, generator=torch.Generator().manual_seed(0)) * 2**0.5
    clean = build_denoiser("compact")(truth + 25 / 255 * noise, 25 / 255)
    assert (clean - truth).abs().square().mean() < 0.1 * (25 / 255) ** 2 * 2


@pytest.mark.parametrize("name", MEASURED)
def test_the_card_tells_how_it_was_made(name: str) -> None:
    card = read_card(name)
    assert card["command"].startswith(f"pnpilot train denoiser {name} ")
    assert card["parameters_millions"] * 2e6 == pytest.approx(card["bytes"], rel=0.01)  # fp16
    assert {"seed", "learning_rate", "minutes"} <= set(card["arguments"])


def test_others_were_trained_on_the_same_data_for_the_same_time() -> None:
    cards = [read_card(name) for name in ("dncnn", "unet")]
    for key in ("data", "device"):
        assert cards[0][key] == cards[1][key] == read_card("compact")[key]
    assert cards[0]["arguments"]["minutes"] == cards[1]["arguments"]["minutes"]


def test_adapter_is_the_model(denoiser: Denoiser) -> None:
    if not isinstance(denoiser, DeepinvDenoiser):
        pytest.skip("not the adapter")
    x, sigma = phantom(32, 32), torch.tensor([0.1, 0.2])
    assert_close(denoiser(x, sigma), denoiser.model(x, sigma), 1e-5)


def test_adapter_takes_colour_models_and_says_what_it_cannot_take() -> None:
    from deepinv.models import DRUNet

    colour = DeepinvDenoiser(DRUNet(in_channels=3, out_channels=3, nc=(8, 8, 8, 8), nb=1, pretrained=None))
    x = phantom(32, 32)
    assert_close(colour(x, 0.1), colour.model(x.expand(-1, 3, -1, -1), 0.1).mean(1, keepdim=True))
    with pytest.raises(BadInput, match="Linear denoises neither grey nor colour"):
        DeepinvDenoiser(torch.nn.Linear(2, 2))


def test_errors() -> None:
    with pytest.raises(BadInput, match="wraps a model"):
        build_denoiser("deepinv")
    with pytest.raises(UnknownName, match=r"unknown denoiser 'nothing'; known: .*compact"):
        build_denoiser("nothing")
