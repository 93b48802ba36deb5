"""How the demo's settings were chosen: its slice in all nine settings of the CS-MRI benchmark, three seeds each.

python examples/choose_demo.py
"""

from __future__ import annotations

from statistics import mean

from pnpilot import PnPilot
from pnpilot.baselines import build_baseline
from pnpilot.io.scans import example_brain
from pnpilot.metrics import psnr
from pnpilot.tasks.csmri import CSMRI

SEEDS = 3
METHODS = ("zero-filled", "tv", "fixed", "schedule", "learned")

task, truth = CSMRI(), example_brain()
baselines = {name: build_baseline(name) for name in METHODS[:2]}
models = {name: PnPilot(solver="admm", policy=name) for name in METHODS[2:4]}
models["learned"] = PnPilot.from_pretrained("csmri")

print("| | " + " | ".join(METHODS) + " | iterations of learned |\n" + "|---" * (len(METHODS) + 2) + "|")
for setting in task.settings:
    scores: dict[str, list[float]] = {name: [] for name in METHODS}
    iterations = []
    for seed in range(SEEDS):
        y, physics = task.simulate(truth, setting, seed)
        for name, baseline in baselines.items():
            scores[name].append(psnr(task.extract(baseline(y, physics)), truth).item())
        for name, model in models.items():
            result = model.reconstruct(y, physics)
            scores[name].append(psnr(task.extract(result.image), truth).item())
            iterations.append(result.trace[0]["iterations"])
    cells = " | ".join(f"{mean(own):.2f}" for own in scores.values())
    print(f"| {setting.label} | {cells} | {mean(iterations[2::3]):.1f} |", flush=True)
