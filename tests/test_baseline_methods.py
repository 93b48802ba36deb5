"""Other people's methods, each against code that is not ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest
import torch
from deepinv.models import TVDenoiser
from deepinv.physics import GaussianNoise, Inpainting
from torch import Tensor

from pnpilot.baselines import BASELINES, build_baseline
from pnpilot.baselines._bm3d import denoised
from pnpilot.baselines._mri import fit, for_real_images
from pnpilot.baselines._unrolled import Unrolled, UnrolledNetwork
from pnpilot.baselines._wavelets import Wavelet
from pnpilot.baselines.admm_net import ADMMNet, ADMMNetwork, PiecewiseLinear
from pnpilot.baselines.dpir import DPIR
from pnpilot.baselines.fcsa import FCSA
from pnpilot.baselines.ircnn import IRCNN, RealFourier
from pnpilot.baselines.ista_net import ISTANetwork
from pnpilot.baselines.recpf import RecPF
from pnpilot.errors import BadInput
from pnpilot.metrics import psnr
from pnpilot.problems._kspace import mirrored
from pnpilot.problems.masked_fourier import MaskedFourier
from pnpilot.tasks._masks import build_mask
from pnpilot.tasks.csmri import CSMRI
from pnpilot.weights import save_weights
from tests.conftest import phantom
from tests.contracts import assert_close, problem_of, random_like

NAMES = [name for name in BASELINES if "csmri" in BASELINES[name].serves]
UNROLLED = [name for name in NAMES if issubclass(BASELINES[name], Unrolled)]


# Total variation and wavelets, against minimisers and transforms of others.


@dataclass
class Objective:
    """½‖MFx − y‖² + tv·TV(x) + wavelet·‖details of Ψx‖₁ of one image in double precision, without our code."""

    y: np.ndarray
    mask: np.ndarray
    tv: float
    wavelet: float
    basis: str
    levels: int
    periodic: bool
    bounded: bool

    def differences(self, x: np.ndarray) -> np.ndarray:
        found = np.stack([np.roll(x, -1, 0) - x, np.roll(x, -1, 1) - x])
        return found if self.periodic else self._inside(found)

    def divergence(self, p: np.ndarray) -> np.ndarray:
        p = p if self.periodic else self._inside(p)
        return np.roll(p[0], 1, 0) - p[0] + np.roll(p[1], 1, 1) - p[1]

    def _inside(self, p: np.ndarray) -> np.ndarray:
        p = p.copy()
        p[0, -1], p[1, :, -1] = 0, 0
        return p

    def forth(self, x: np.ndarray) -> np.ndarray:
        import pywt

        coefficients = pywt.wavedec2(x, self.basis, mode="periodization", level=self.levels)
        return pywt.coeffs_to_array(coefficients)[0]

    def back(self, coefficients: np.ndarray) -> np.ndarray:
        import pywt

        blank = pywt.wavedec2(np.zeros_like(self.mask), self.basis, mode="periodization", level=self.levels)
        slices = pywt.coeffs_to_array(blank)[1]
        return pywt.waverec2(pywt.array_to_coeffs(coefficients, slices, "wavedec2"), self.basis, mode="periodization")

    @cached_property
    def threshold(self) -> np.ndarray:
        threshold = np.full_like(self.mask, self.wavelet)
        height, width = self.mask.shape
        threshold[: height >> self.levels, : width >> self.levels] = 0
        return threshold

    def __call__(self, x: np.ndarray) -> float:
        misfit = self.mask * np.fft.fft2(x, norm="ortho") - self.y
        lengths = np.sqrt((self.differences(x) ** 2).sum(0))
        return (
            (np.abs(misfit) ** 2).sum() / 2 + self.tv * lengths.sum() + (self.threshold * np.abs(self.forth(x))).sum()
        )

    def minimum(self, iterations: int = 500) -> np.ndarray:
        """By sigpy's primal-dual algorithm."""
        sigpy = pytest.importorskip("sigpy")

        def forward(x: np.ndarray) -> np.ndarray:
            return np.stack([*self.differences(x.real), self.forth(x.real), self.mask * np.fft.fft2(x, norm="ortho")])

        def adjoint(u: np.ndarray) -> np.ndarray:
            image = np.fft.ifft2(self.mask * u[3], norm="ortho").real
            return image + self.divergence(u[:2].real) + self.back(u[2].real)

        def dual(step: float, u: np.ndarray) -> np.ndarray:
            slopes = u[:2].real / np.maximum(1, np.sqrt((u[:2].real ** 2).sum(0)) / self.tv)
            details = np.clip(u[2].real, -self.threshold, self.threshold)
            return np.stack([*slopes, details, (u[3] - step * self.y) / (1 + step)])

        def primal(_: float, x: np.ndarray) -> np.ndarray:
            return np.clip(x, 0, 1) if self.bounded else x

        x, u = np.zeros_like(self.mask), np.zeros((4, *self.mask.shape), complex)
        step = 10**-0.5  # ‖A‖² ≤ 8 + 1 + 1
        solver = sigpy.alg.PrimalDualHybridGradient(
            dual, primal, forward, adjoint, x, u, tau=3 * step, sigma=step / 3, max_iter=iterations
        )
        while not solver.done():
            solver.update()
        return solver.x


def as_numpy(problem: MaskedFourier) -> dict[str, np.ndarray]:
    return {"y": problem.y[0, 0].numpy().astype(complex), "mask": problem.mask[0, 0].double().numpy()}


@pytest.mark.parametrize("wavelet", [0.0, 0.004])
def test_recpf_minimises_its_objective(wavelet: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over real images, with a mask that has no symmetry."""
    problem = problem_of(phantom(32, 32, 1), "cartesian x3 sigma=10")
    objective = Objective(
        **as_numpy(problem), tv=0.02, wavelet=wavelet, basis="haar", levels=3, periodic=True, bounded=False
    )
    constants = {"tv": 0.02, "wavelet": wavelet}
    usual = RecPF().solve(problem, **constants)[0, 0].double().numpy()
    monkeypatch.setattr(RecPF, "iterations", 500)
    longer = RecPF().solve(problem, **constants)[0, 0].double().numpy()
    theirs = objective.minimum()
    way = objective(problem.x0()[0, 0].real.double().numpy()) - objective(theirs)
    assert objective(usual) - objective(theirs) < 5e-3 * way
    assert abs(objective(longer) - objective(theirs)) < 5e-4 * way
    assert np.abs(longer - theirs).max() < 5e-3


def test_fcsa_comes_close_to_the_minimum_of_its_objective() -> None:
    """Not to it: averaging proximal steps is exact only for one penalty. Its limit is a fixed point of such a step."""
    problem = problem_of(phantom(32, 32, 1), "cartesian x3 sigma=10")
    tv, wavelet = 0.008, 0.004
    objective = Objective(
        **as_numpy(problem), tv=tv, wavelet=wavelet, basis="db4", levels=2, periodic=False, bounded=True
    )
    image = FCSA().solve(problem, tv=tv, wavelet=wavelet)
    best = objective(objective.minimum())
    way = objective(problem.x0()[0, 0].real.double().numpy()) - best
    assert -1e-3 * way < objective(image[0, 0].double().numpy()) - best < 0.15 * way

    g = image - problem.grad(image).real
    smooth = TVDenoiser(n_it_max=2000, crit=1e-7)(g, 2 * tv)
    coefficients, bound = objective.forth(g[0, 0].double().numpy()), 2 * objective.threshold
    sparse = objective.back(np.sign(coefficients) * np.maximum(np.abs(coefficients) - bound, 0))
    again = (smooth + torch.from_numpy(sparse)[None, None]) / 2
    assert (again.clamp(0, 1) - image).abs().max() < 2e-3


@pytest.mark.parametrize("name", ["haar", "db4"])
@pytest.mark.parametrize(("height", "width"), [(32, 32), (64, 48)])
def test_wavelets_are_orthonormal_and_shrink_details_alone(name: str, height: int, width: int) -> None:
    import pywt

    wavelet, image = Wavelet(name, 3, height, width), random_like(torch.zeros(2, 1, height, width), 1)
    assert wavelet.levels == min(3, pywt.dwt_max_level(min(height, width), name))
    assert_close(wavelet.shrunk(image, 0.0), image)
    assert_close(wavelet.shrunk(image, 1e-12), image)
    coefficients = pywt.wavedec2(image[0, 0].numpy(), level=wavelet.levels, **{**wavelet.options, "axes": (0, 1)})
    flat, slices = pywt.coeffs_to_array(coefficients)
    assert np.linalg.norm(flat) == pytest.approx(image[0].norm().item(), rel=1e-5)
    soft = np.sign(flat) * np.maximum(np.abs(flat) - 0.3, 0)
    soft[slices[0]] = flat[slices[0]]
    shrunk = pywt.coeffs_to_array(
        pywt.wavedec2(
            wavelet.shrunk(image, 0.3)[0, 0].numpy(), level=wavelet.levels, **{**wavelet.options, "axes": (0, 1)}
        )
    )[0]
    assert np.abs(shrunk - soft).max() < 1e-5
    flat_image = torch.ones(1, 1, height, width)
    assert_close(wavelet.shrunk(flat_image, 5.0), flat_image)


def test_sizes_that_cannot_be_halved_have_no_wavelets() -> None:
    assert (Wavelet("haar", 3, 33, 32).levels, Wavelet("haar", 3, 36, 32).levels) == (0, 2)
    image = torch.rand(1, 1, 33, 32)
    assert torch.equal(Wavelet("haar", 3, 33, 32).shrunk(image, 0.5), image)


def test_total_variation_does_not_depend_on_the_scale_of_the_operator() -> None:
    """Nor on where it starts to fill a gap: half of the pixels are missing."""
    truth, mask = phantom(32, 32, 2), (torch.rand(1, 1, 32, 32) < 0.5).float()
    images = []
    for scale in (1.0, 3.0):
        physics = Inpainting((1, 32, 32), mask=scale * mask, noise_model=GaussianNoise(scale * 0.02))
        images.append(build_baseline("tv")(scale * mask * truth, physics))
    assert_close(images[1], images[0], 1e-3)
    assert psnr(images[0], truth).min() > psnr(mask * truth, truth).max() + 10


# Steps in k-space for real images.


@pytest.mark.parametrize("label", ["cartesian x3 sigma=10", "random x4 sigma=5"])
def test_real_images_are_fitted_optimally(label: str) -> None:
    """The gradient of the objective vanishes, for masks without symmetry and with weights."""
    problem = problem_of(phantom(31, 24), label)
    weights = 0.5 + torch.rand(problem.mask.shape, generator=torch.Generator().manual_seed(1))
    problem.mask, problem.y = (problem.mask * weights).double(), problem.y.to(torch.complex128)
    assert not torch.equal(problem.mask, problem.mask.flip((-2, -1)).roll((1, 1), (-2, -1)))
    v, rho = random_like(problem.mask, 2), torch.tensor(0.3, dtype=torch.float64)
    x = fit(for_real_images(problem), v, rho).requires_grad_()
    residual = problem.mask * torch.fft.fft2(x, norm="ortho") - problem.y
    loss = residual.abs().square().sum() / 2 + rho / 2 * (x - v).square().sum()
    (gradient,) = torch.autograd.grad(loss, x)
    assert gradient.abs().max() < 1e-10
    own = RealFourier(problem.y, problem.units, problem.mask)
    assert_close(own.prox(v, rho.expand(len(v))), x.detach(), 1e-10)


def test_our_splitting_and_deepinvs_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """With DPIR's constants and number of iterations, and a mask with mirror images, IRCNN is DPIR."""
    monkeypatch.setattr(IRCNN, "iterations", DPIR.iterations)
    mask = torch.fft.ifftshift(build_mask("radial", 48, 40, 4, torch.Generator()))
    mask = torch.fft.fftshift(torch.maximum(mask, mirrored(mask)))
    y, physics = CSMRI().simulate(phantom(48, 40), CSMRI.setting(4, 10, mask))
    ours, theirs = IRCNN({"last": 10.0, "weight": 0.23})(y, physics), DPIR()(y, physics)
    assert (psnr(ours[:, :1], theirs[:, :1]) > 50).all()


def test_the_quick_bm3d_is_no_worse_than_the_usual_one() -> None:
    import bm3d

    truth = phantom(64, 64, 1)
    noisy = truth + 0.1 * random_like(truth, 1)
    usual = bm3d.bm3d(noisy[0, 0].double().numpy(), 0.1, stage_arg=bm3d.BM3DStages.HARD_THRESHOLDING)
    score = psnr(denoised(noisy, 0.1), truth)
    assert score > psnr(noisy, truth) + 8
    assert score > psnr(torch.from_numpy(usual)[None, None].float(), truth) - 0.5


# Networks.


def test_learned_functions_are_linear_between_knots_and_beyond() -> None:
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(3, 11, generator=generator, dtype=torch.float64)
    x = 4 * torch.rand(2, 3, 5, 4, generator=generator, dtype=torch.float64) - 2
    found = PiecewiseLinear.apply(x, values)
    knots = np.linspace(-1, 1, 11)
    for channel in range(3):
        own, at = values[channel].numpy(), x[:, channel].numpy()
        expected = np.interp(at, knots, own)
        expected += np.minimum(at + 1, 0) * (own[1] - own[0]) * 5 + np.maximum(at - 1, 0) * (own[-1] - own[-2]) * 5
        assert np.abs(found[:, channel].numpy() - expected).max() < 1e-12


def test_gradients_of_learned_functions_are_right() -> None:
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(2, 7, generator=generator, dtype=torch.float64, requires_grad=True)
    x = (3 * torch.rand(2, 2, 4, 3, generator=generator, dtype=torch.float64) - 1.5).requires_grad_()
    assert torch.autograd.gradcheck(PiecewiseLinear.apply, (x, values))


NETWORKS: dict[str, tuple[Callable[[], UnrolledNetwork], int]] = {
    "admm-net": (ADMMNetwork, 194_591),
    "ista-net+": (ISTANetwork, 336_978),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_have_the_size_of_the_papers_and_gradients_reach_all_of_it(name: str) -> None:
    build, size = NETWORKS[name]
    network, truth = build(), phantom(32, 32)
    assert sum(parameter.numel() for parameter in network.parameters()) == size
    loss = network.loss(problem_of(truth, "x4 sigma=10"), truth)
    assert loss.ndim == 0
    loss.backward()
    for label, parameter in network.named_parameters():
        assert parameter.grad is not None, label
        assert torch.isfinite(parameter.grad).all(), label
        assert parameter.grad.any(), label


@pytest.mark.parametrize("name", UNROLLED)
def test_losses_vanish_for_the_truth_alone(name: str) -> None:
    """A network that has learnt nothing loses more on noisy data than one that is shown the answer."""
    kind = BASELINES[name]
    assert issubclass(kind, Unrolled)
    truth = phantom(32, 32)
    problem = problem_of(truth, "x4 sigma=10")

    class Knowing(kind.network_class):  # type: ignore[name-defined]
        def forward(self, problem: MaskedFourier) -> Tensor:
            return truth

        def _run(self, problem: MaskedFourier) -> tuple[Tensor, Tensor]:
            return truth, torch.zeros(())

    assert Knowing().loss(problem, truth) == 0
    assert kind.network_class().loss(problem, truth) > 0


def test_without_its_filters_admm_net_fits_the_data_alone() -> None:
    """Each stage is then a proximal step on the data from the last image."""
    network = ADMMNetwork(stages=3, width=4)
    for label, parameter in network.named_parameters():
        if label.split(".")[-2:-1] == ["gather"]:
            torch.nn.init.zeros_(parameter)
    problem = problem_of(phantom(32, 32), "cartesian x3 sigma=0")
    measured = for_real_images(problem)
    x = torch.zeros_like(problem.mask)
    for _ in range(4):
        x = fit(measured, x, torch.tensor(0.1))
    with torch.no_grad():
        assert_close(network(problem), x)


def test_without_its_filters_ista_net_descends_on_the_data() -> None:
    network = ISTANetwork(stages=2, width=4)
    for label, parameter in network.named_parameters():
        if label.endswith("gather.weight"):
            torch.nn.init.zeros_(parameter)
    problem = problem_of(phantom(32, 32), "cartesian x3 sigma=10")
    x = problem.x0().real
    for _ in range(2):
        x = x - 0.5 * problem.A_adjoint(problem.A(x) - problem.y).real
    with torch.no_grad():
        assert_close(network(problem), x)


def test_own_weights_and_networks_are_taken_and_missing_ones_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    y, physics = CSMRI().simulate(phantom(32, 32, 1), CSMRI.setting())
    network = ADMMNetwork()
    save_weights(network, "admm-net", tmp_path, {"name": "admm-net"})
    loaded, given = ADMMNet(weights=tmp_path), ADMMNet(network=network)
    assert_close(loaded(y, physics), given(y, physics), 5e-2)  # fp16 on disk
    assert loaded.made_with() == json.loads((tmp_path / "admm-net.json").read_text())["sha256"]
    assert given.made_with() is None
    monkeypatch.setattr("pnpilot.baselines._unrolled.has_weights", lambda *_: False)
    with pytest.raises(BadInput, match="admm-net has no weights yet: pnpilot train baseline admm-net --data DIR"):
        build_baseline("admm-net")
