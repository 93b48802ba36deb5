"""`pnpilot bench scan`: a real scan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ._shared import Device, Methods, Seed, Seeds, chosen_device, listed, stoppable, table_progress


def bench_scan(
    file: Annotated[Path, typer.Argument(help="Fully sampled multi-coil k-space: BART's .cfl or NumPy's .npy.")],
    out: Annotated[Path, typer.Option(help="Folder for all output.")] = Path("runs/scan"),
    maps: Annotated[
        Path | None, typer.Option(help="Coil maps, in the same format. Default: ESPIRiT maps of the whole scan.")
    ] = None,
    from_samples: Annotated[
        bool,
        typer.Option(
            "--from-samples", help="Maps for all from each mask's samples, and ours by `pnpilot reconstruct`."
        ),
    ] = False,
    coil: Annotated[
        str | None, typer.Option(help="A single coil by its number, or 'combined': the image of all coils as one.")
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(help="Only this: 'calibrated', 'cartesian', 'radial' or 'random', and x4; repeat for several."),
    ] = None,
    method: Methods = None,
    seed: Seed = 0,
    seeds: Seeds = 1,
    device: Device = "auto",
) -> None:
    """A real scan, undersampled afterwards: ours against BART and sigpy, with the same coil maps.

    Ours is told maps and mask alone, or nothing at all; the others have the weight that is best with the truth at hand.
    The truth is what the maps combine the whole data to; PSNR and SSIM are of its magnitude inside the head.
    """
    from ..baselines import BASELINES
    from ..benchmark.report import markdown
    from ..benchmark.results import Results
    from ..benchmark.scan import SETTINGS, Scan, estimated_maps
    from ..benchmark.scan_comparison import ScanComparison, known_methods
    from ..io.files import writable_folder, writable_json, writable_picture, write_atomically
    from ..io.kspace import read_coils
    from ..plots import compare_crops

    kspace, where = read_coils(file), chosen_device(device)
    given = None if maps is None else read_coils(maps)
    writable_folder(out)
    files = out / "scan.md", writable_json(out / "scan.json"), writable_picture(out / "scan.png")
    chosen, methods = listed(method), known_methods(from_samples)
    left_out = {name: why for name in methods if name in BASELINES and (why := BASELINES[name].obstacle())}
    for name, why in ({} if chosen else left_out).items():
        typer.echo(f"left out: {name} {why}", err=True)
    scan = Scan(kspace, estimated_maps(kspace) if given is None else given)
    scan = scan if coil is None else scan.one_coil(coil)
    name = file.stem if coil is None else f"{file.stem} coil {coil}" if coil.isdecimal() else f"{file.stem} {coil}"
    runnable = [own for own in methods if own not in left_out]
    plan = ScanComparison(scan, name, listed(setting) or SETTINGS, chosen or runnable, where, seed, seeds, from_samples)
    plan.check()
    results = Results(files[1], seed, seeds)
    with stoppable(), table_progress(results, len(plan)) as tick:
        plan.run(results, tick)
    for row in results.content["images"]:
        for line in row.get("warnings", ()):
            typer.echo(f"{row['setting']}: {line}", err=True)
    title = f"{name}, {len(scan.kspace)} coils" if coil is None else name
    write_atomically(files[0], markdown(title, results.rows, results.content["command"], {}).encode())
    compare_crops(files[2], plan.examples())
    typer.echo("written: " + ", ".join(map(str, files)))
