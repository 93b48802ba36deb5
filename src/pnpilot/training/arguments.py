"""The options of a training run, each once, with its default, its limits and a line of help.

The command line and the command on a card are both made from these fields (see `options.py`). This file imports
nothing heavy, so that `--help` stays quick.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, replace
from typing import Any

LARGEST_SEED = 2**31


def option(
    help: str,
    default: Any = MISSING,
    *,
    low: float | None = None,
    high: float | None = None,
    group: str | None = None,
    argument: bool = False,
) -> Any:
    """A field of a dataclass of arguments; `group` is its heading in the help."""
    details = {"help": help, "low": low, "high": high, "group": group, "argument": argument}
    return field(default=default, metadata=details)


DATA = "Folder of training images; its subfolders count too."
MINUTES = "Wall-clock budget; the learning rate follows it."
FEWEST = "A run of fewer steps than this writes no weights."
AVERAGE = "Weight of the past in the moving average of the weights."
CLIP = "Largest norm of a gradient."
HELD_OUT = "Images kept out of training, to score it on."
RECIPE = "Recipe"
NETWORK = "Where a network is trained"
SEARCH = "Where constants are searched"


@dataclass
class DenoiserArgs:
    """Everything that decides the result of training a denoiser."""

    name: str = option("A denoiser with weights; see `pnpilot list denoisers`.", argument=True)
    data: str = option(DATA)
    minutes: float = option(MINUTES, 20.0, low=0.001)
    seed: int = option("Seed of weights, patches and noise.", 0, low=0, high=LARGEST_SEED)
    batch: int = option("Patches per step.", 128, low=1)
    patch: int = option("Height and width of a patch.", 128, low=16, group=RECIPE)
    learning_rate: float = option("Learning rate to begin with.", 5e-4, low=1e-8, high=1.0, group=RECIPE)
    weight_decay: float = option("Weight decay.", 1e-4, low=0, group=RECIPE)
    warmup: int = option("Steps until the learning rate is reached.", 500, low=1, group=RECIPE)
    largest_sigma: float = option("Strongest noise, on the 0-255 scale.", 70.0, low=0, group=RECIPE)
    ema: float = option(AVERAGE, 0.999, low=0, high=1, group=RECIPE)
    clip: float = option(CLIP, 0.2, low=0, group=RECIPE)
    held_out: int = option(HELD_OUT, 8, low=0, group=RECIPE)
    fewest: int = option(FEWEST, 10, low=1, group=RECIPE)

    def smoke(self) -> DenoiserArgs:
        """A run of a few seconds that does everything once."""
        return replace(self, minutes=min(self.minutes, 0.2), batch=4, patch=64, warmup=5, fewest=1)


@dataclass
class BaselineArgs:
    """What training a network and searching constants have in common."""

    name: str = option("A method with weights or constants; see `pnpilot list baselines`.", argument=True)
    data: str = option(DATA)
    seed: int = option("Seed of weights, images, masks and noise.", 0, low=0, high=LARGEST_SEED)
    size: int = option("Height and width of the images.", 128, low=16)


@dataclass
class UnrolledArgs(BaselineArgs):
    """Everything that decides the result of training an unrolled network."""

    minutes: float = option(MINUTES, 20.0, low=0.001, group=NETWORK)
    batch: int | None = option("Images per step; default the method's own.", None, low=1, group=NETWORK)
    learning_rate: float | None = option(
        "Learning rate to begin with; default the method's own.", None, low=1e-8, high=1.0, group=NETWORK
    )
    weight_decay: float = option("Weight decay.", 0.0, low=0, group=NETWORK)
    warmup: int = option("Steps until the learning rate is reached.", 200, low=1, group=NETWORK)
    ema: float = option(AVERAGE, 0.999, low=0, high=1, group=NETWORK)
    clip: float = option(CLIP, 1.0, low=0, group=NETWORK)
    held_out: int = option(HELD_OUT, 16, low=1, group=NETWORK)
    fewest: int = option(FEWEST, 10, low=1, group=NETWORK)

    def smoke(self) -> UnrolledArgs:
        """A run of a few seconds that does everything once."""
        return replace(self, minutes=min(self.minutes, 0.2), batch=2, size=32, held_out=2, fewest=1)


@dataclass
class SearchArgs(BaselineArgs):
    """Everything that decides the result of a search for constants."""

    images: int = option("Images that constants are searched on.", 16, low=1, group=SEARCH)
    refinements: int = option("How often the grid is made finer around its best point.", 2, low=0, group=SEARCH)

    def smoke(self) -> SearchArgs:
        """One small image and no refinement."""
        return replace(self, images=1, size=32, refinements=0)


@dataclass
class LearnerArgs:
    """How a policy learns."""

    width: int = option("Width of the encoder, a multiple of 8; the paper's is 64.", 32, low=8)
    lookahead: int = option("Decisions played ahead before the critic takes over.", 2, low=1)
    rate: float = option("Learning rate of policy and critic.", 2e-3, low=1e-6, high=1.0)
    value_slope: float = option("Share of the critic's gradient that the parameters follow.", 0.0, low=0, high=1)
    discount: float = option("What a later reward is worth, per decision.", 0.99, low=0, high=1, group=RECIPE)
    penalty: float = option("Price of a decision, in dB.", 0.05, low=0, group=RECIPE)
    temperature: float = option("Weight of the entropy of the stop decision, in dB.", 0.05, low=1e-6, group=RECIPE)
    advantage_bound: float = option("Largest advantage that the stop learns from, in dB.", 0.25, low=0, group=RECIPE)
    target_rate: float = option("Speed at which targets follow their networks.", 0.02, low=0, high=1, group=RECIPE)
    clip: float = option(CLIP, 5.0, low=0, group=RECIPE)
    knob_bound: float = option(
        "Largest gradient of one image in the parameters, in dB per unit.", 10.0, low=0, group=RECIPE
    )
    noise: float = option("Noise on the parameters, for learners that explore.", 0.1, low=0, group=RECIPE)


@dataclass
class PolicyArgs:
    """Everything that decides the result of training a policy."""

    task: str = option("A registered task; see `pnpilot list tasks`.")
    data: str = option(DATA)
    solver: str = option("Whose parameters it sets; auto is ADMM if it fits.", "auto")
    denoiser: str = option("A registered denoiser that has a gradient.", "compact")
    method: str = option("Kind of policy to train: learned, model-free, or your own.", "learned")
    observation: str = option("watched, probed, universal, or paper.", "watched")
    minutes: float = option(MINUTES, 10.0, low=0.001)
    seed: int = option("Seed of weights, images, masks and noise.", 0, low=0, high=LARGEST_SEED)
    batch: int = option("Images per episode.", 24, low=1, group=RECIPE)
    size: int = option("Height and width of the images.", 128, low=16, group=RECIPE)
    per_decision: int = option("Iterations of the solver per decision.", 5, low=1, group=RECIPE)
    decisions: int = option("Decisions until the end of an episode.", 6, low=1, group=RECIPE)
    replay: int = option("How many of the latest episodes are learnt from.", 20, low=1, group=RECIPE)
    updates: int = option("Gradient steps per episode.", 6, low=1, group=RECIPE)
    warmup: int = option("Episodes until the learning rate is reached.", 20, low=1, group=RECIPE)
    held_out: int = option(HELD_OUT, 16, low=1, group=RECIPE)
    fewest: int = option("A run of fewer episodes than this writes no weights.", 2, low=1, group=RECIPE)
    learner: LearnerArgs = field(default_factory=LearnerArgs)

    def smoke(self) -> PolicyArgs:
        """A run of a few seconds that does everything once."""
        return replace(self, minutes=min(self.minutes, 0.5), batch=4, size=64, held_out=2, updates=2, fewest=1)
