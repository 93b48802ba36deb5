"""Which setting the demo shows: its slice in all nine settings of the CS-MRI benchmark, three seeds each.

python examples/choose_demo.py demo-settings.json
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch
from rich.console import Console

from pnpilot import PnPilot
from pnpilot.baselines import build_baseline
from pnpilot.benchmark.results import Results
from pnpilot.benchmark.scores import scored
from pnpilot.io.scans import example_brain
from pnpilot.tasks.csmri import CSMRI

SEEDS = 3
BASELINES, POLICIES = ("zero-filled", "tv"), ("fixed", "schedule")

task, truth = CSMRI(), example_brain()
baselines = {name: build_baseline(name) for name in BASELINES}
models = {name: PnPilot(solver="admm", policy=name) for name in POLICIES}
models["learned"] = PnPilot.from_pretrained("csmri")
results = Results(Path(sys.argv[1]), 0, SEEDS)
results.content["command"] = "python examples/choose_demo.py"

for setting in task.settings:
    data = [task.simulate(truth, setting, seed) for seed in range(SEEDS)]
    for name in (*baselines, *models):
        scores = []
        for seed, (y, physics) in enumerate(data):
            start = time.perf_counter()
            if name in baselines:
                image, iterations = baselines[name](y, physics), baselines[name].iterations
            else:
                found = models[name].reconstruct(y, physics)
                image, iterations = found.image, found.trace[0]["iterations"]
            seconds = time.perf_counter() - start
            (own,) = scored(task.extract(image), truth, torch.tensor([iterations]), seconds, truth.device)
            scores.append({"image": "brain", "seed": seed, **own})
        results.add("brain", setting.label, name, scores)
results.show(Console())
