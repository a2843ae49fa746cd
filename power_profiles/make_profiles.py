"""Generate the two-day power profiles of sun and wind for a data centre of 20 servers at Toulouse.

    python power_profiles/make_profiles.py            writes profile1.csv to profile3.csv and, of the same climates but
                                                      other weather, other1.csv to other3.csv in this folder
    python power_profiles/make_profiles.py --check    generates them again and exits 1 if a file differs by a byte

Clear sky, panels and inverter are pvlib's models, the turbine is windpowerlib's; clouds and wind speeds are seeded
random walks that return to a mean (Ornstein-Uhlenbeck). The script reads no file and uses no network.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pvlib
from windpowerlib import power_output, wind_speed

STEP_S = 300
ROWS = 576
LATITUDE_DEG, LONGITUDE_DEG, ALTITUDE_M = 43.6, 1.44, 150.0
ZONE = "Etc/GMT-1"  # Toulouse's winter time, UTC+1, all year: no clock change inside a profile
TILT_DEG, AZIMUTH_DEG, ALBEDO = 30.0, 180.0, 0.2
GAMMA_PER_K = -0.004
MAST_M, HUB_M, ROUGHNESS_M = 10.0, 18.0, 0.1
CURVE_MS = np.array([0.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 24.0, 25.0])
CURVE_SHARE = np.array([0.0, 0.0, 0.01, 0.05, 0.11, 0.2, 0.32, 0.46, 0.61, 0.76, 0.88, 0.96, 1.0, 1.0, 0.0])


@dataclass(frozen=True)
class Front:
    """A passing front: within a step or two sun and wind fall to a share of their values, then recover.

    `begin_h` hours after midnight of day 1; `hold_h` at the bottom, `recover_h` e-folding time of the recovery;
    `sun` in [0, 1[ is the remaining share of the clear-sky index, `wind` that of the wind speed.
    """

    begin_h: float
    hold_h: float
    recover_h: float
    sun: float
    wind: float


@dataclass(frozen=True)
class Spec:
    """One profile: powers in W, speeds in m/s at 10 m, times in hours, the rest without unit.

    `clear_*` are the mean, spread and memory of the clear-sky index, `flicker` the spread of its fast part (broken
    clouds); `wind_*` are those of the wind speed, `diurnal` its relative excess over the mean at `windiest_h`.
    `base_w` is the constant power of the storage, `limit_w` the largest power of the data centre's converter.
    """

    name: str
    title: str
    first_day: str
    seed: int
    turbidity: float
    air_c: float
    panels_w: float
    inverter_w: float
    turbines_w: float
    clear_mean: float
    clear_spread: float
    clear_memory_h: float
    flicker: float
    wind_mean: tuple[float, float]
    wind_spread: float
    wind_memory_h: float
    gusts: float
    diurnal: float
    windiest_h: float
    base_w: float
    limit_w: float
    fronts: tuple[Front, ...]


SPECS = (
    Spec(
        name="profile1",
        title="sunny days, light wind",
        first_day="2023-06-20",
        seed=1,
        turbidity=3.2,
        air_c=24.0,
        panels_w=4000.0,
        inverter_w=4600.0,
        turbines_w=3000.0,
        clear_mean=0.95,
        clear_spread=0.035,
        clear_memory_h=3.0,
        flicker=0.010,
        wind_mean=(6.6, 6.3),
        wind_spread=0.9,
        wind_memory_h=3.0,
        gusts=0.22,
        diurnal=0.15,
        windiest_h=18.0,
        base_w=400.0,
        limit_w=4700.0,
        fronts=(Front(15.6, 0.6, 0.5, 0.12, 0.9), Front(34.4, 0.3, 0.3, 0.1, 0.9)),
    ),
    Spec(
        name="profile2",
        title="windy and cloudy",
        first_day="2023-03-12",
        seed=2,
        turbidity=2.8,
        air_c=11.0,
        panels_w=3400.0,
        inverter_w=2450.0,
        turbines_w=3400.0,
        clear_mean=0.55,
        clear_spread=0.22,
        clear_memory_h=2.0,
        flicker=0.05,
        wind_mean=(9.2, 9.4),
        wind_spread=1.3,
        wind_memory_h=5.0,
        gusts=0.25,
        diurnal=0.08,
        windiest_h=14.0,
        base_w=260.0,
        limit_w=4700.0,
        fronts=(Front(9.3, 0.5, 1.2, 0.5, 0.6), Front(21.0, 0.8, 1.5, 1.0, 0.62), Front(38.5, 0.4, 1.0, 0.4, 0.62)),
    ),
    Spec(
        name="profile3",
        title="mixed, nights carried by wind",
        first_day="2023-06-10",
        seed=3,
        turbidity=3.0,
        air_c=18.0,
        panels_w=7400.0,
        inverter_w=3050.0,
        turbines_w=3000.0,
        clear_mean=0.94,
        clear_spread=0.09,
        clear_memory_h=2.5,
        flicker=0.025,
        wind_mean=(7.0, 6.6),
        wind_spread=0.6,
        wind_memory_h=4.0,
        gusts=0.22,
        diurnal=0.05,
        windiest_h=2.0,
        base_w=260.0,
        limit_w=4700.0,
        fronts=(
            Front(3.5, 0.2, 0.3, 1.0, 0.55),
            Front(9.9, 0.3, 0.2, 0.06, 0.45),
            Front(13.2, 0.4, 0.2, 0.06, 0.45),
            Front(16.4, 0.3, 0.2, 0.06, 0.5),
            Front(22.3, 0.4, 0.5, 1.0, 0.6),
            Front(35.0, 0.5, 0.5, 0.06, 0.5),
        ),
    ),
)


def other_weather(spec: Spec) -> Spec:
    """Return a profile of the same climate with another seed, its fronts up to 3 hours earlier or later."""
    seed = spec.seed + 200
    rng = np.random.Generator(np.random.PCG64([seed, 1]))
    fronts = tuple(replace(front, begin_h=front.begin_h + rng.uniform(-3.0, 3.0)) for front in spec.fronts)
    name, title = spec.name.replace("profile", "other"), f"{spec.title}; other weather"
    return replace(spec, name=name, title=title, seed=seed, fronts=fronts)


def returning_walk(rng: np.random.Generator, memory_h: float) -> np.ndarray:
    """Return an Ornstein-Uhlenbeck process of mean 0 and variance 1, one value a step, exact for its `memory_h`."""
    keep = np.exp(-STEP_S / 3600.0 / memory_h)
    noise = rng.standard_normal(ROWS)
    walk = np.empty(ROWS)
    walk[0] = noise[0]
    for i in range(1, ROWS):
        walk[i] = keep * walk[i - 1] + np.sqrt(1.0 - keep * keep) * noise[i]
    return walk


def hours() -> np.ndarray:
    """Return the hours since midnight of day 1 at the start of each step."""
    return np.arange(ROWS) * (STEP_S / 3600.0)


def weakened(front: Front, share: float) -> np.ndarray:
    """Return the factor of a front on each step: 1 before it, `share` in it, back to 1 after it."""
    after = hours() - front.begin_h
    back = np.exp(-np.clip(after - front.hold_h, 0.0, None) / front.recover_h)
    return np.where(after < 0.0, 1.0, 1.0 - (1.0 - share) * back)


def clear_sky_index(spec: Spec, rng: np.random.Generator) -> np.ndarray:
    """Return the share of the clear-sky irradiance below the clouds, in [0.06, 1.04]."""
    slow = spec.clear_spread * returning_walk(rng, spec.clear_memory_h)
    fast = spec.flicker * returning_walk(rng, 0.2)
    index = np.clip(spec.clear_mean + slow + fast, 0.12, 1.04)
    for front in spec.fronts:
        index = index * weakened(front, front.sun)
    return np.clip(index, 0.06, 1.04)


def wind_ms(spec: Spec, rng: np.random.Generator) -> np.ndarray:
    """Return the wind speed in m/s at 10 m above ground, with a smooth transition between the days around midnight."""
    day_two = 1.0 / (1.0 + np.exp(-(hours() - 24.0) / 1.5))
    mean = spec.wind_mean[0] + (spec.wind_mean[1] - spec.wind_mean[0]) * day_two
    mean = mean * (1.0 + spec.diurnal * np.cos(2.0 * np.pi * (hours() - spec.windiest_h) / 24.0))
    speed = mean + spec.wind_spread * returning_walk(rng, spec.wind_memory_h) + spec.gusts * returning_walk(rng, 0.25)
    for front in spec.fronts:
        speed = speed * weakened(front, front.wind)
    return np.clip(speed, 0.3, None)


def solar_w(spec: Spec, index: np.ndarray, speed_ms: np.ndarray) -> np.ndarray:
    """Return the AC power in W of the panels: Ineichen clear sky x index, Erbs, isotropic sky, Faiman, PVWatts."""
    begin = pd.Timestamp(spec.first_day, tz=ZONE)
    times = pd.date_range(begin, periods=ROWS, freq=f"{STEP_S}s") + pd.Timedelta(seconds=STEP_S / 2)
    sun = pvlib.solarposition.get_solarposition(times, LATITUDE_DEG, LONGITUDE_DEG, altitude=ALTITUDE_M)
    pressure = pvlib.atmosphere.alt2pres(ALTITUDE_M)
    airmass = pvlib.atmosphere.get_absolute_airmass(
        pvlib.atmosphere.get_relative_airmass(sun["apparent_zenith"]), pressure
    )
    extra = pvlib.irradiance.get_extra_radiation(times)
    clear = pvlib.clearsky.ineichen(sun["apparent_zenith"], airmass, spec.turbidity, ALTITUDE_M, extra)
    ghi = clear["ghi"] * index
    split = pvlib.irradiance.erbs(ghi, sun["zenith"], times)
    # Erbs rates a clear morning as hazier than Ineichen: mix the two by the clearness of the sky.
    clearness = np.clip((index - 0.75) / 0.25, 0.0, 1.0)
    plane = pvlib.irradiance.get_total_irradiance(
        TILT_DEG,
        AZIMUTH_DEG,
        sun["apparent_zenith"],
        sun["azimuth"],
        dni=clearness * clear["dni"] * index + (1.0 - clearness) * split["dni"],
        ghi=ghi,
        dhi=clearness * clear["dhi"] * index + (1.0 - clearness) * split["dhi"],
        albedo=ALBEDO,
    )["poa_global"].fillna(0.0)
    cell_c = pvlib.temperature.faiman(plane, spec.air_c, speed_ms)
    direct = pvlib.pvsystem.pvwatts_dc(plane, cell_c, spec.panels_w, GAMMA_PER_K)
    alternating = pvlib.inverter.pvwatts(direct, spec.inverter_w / 0.96)
    return np.nan_to_num(np.asarray(alternating, dtype=float))


def turbine_w(spec: Spec, speed_ms: np.ndarray) -> np.ndarray:
    """Return the power in W of the small turbines: logarithmic wind profile up to the hub, then the power curve."""
    at_hub = wind_speed.logarithmic_profile(pd.Series(speed_ms), MAST_M, HUB_M, ROUGHNESS_M)
    return np.asarray(power_output.power_curve(at_hub, CURVE_MS, CURVE_SHARE * spec.turbines_w), dtype=float)


def envelope_w(spec: Spec) -> np.ndarray:
    """Return the power in W that the data centre may draw, one value a step, rounded to 0.1 W."""
    rng = np.random.Generator(np.random.PCG64(spec.seed))
    index = clear_sky_index(spec, rng)
    speed = wind_ms(spec, rng)
    total = spec.base_w + solar_w(spec, index, speed) + turbine_w(spec, speed)
    return np.round(np.clip(total, None, spec.limit_w), 1)


def csv_text(spec: Spec) -> str:
    """Return the profile as `time_s,power_w` lines."""
    rows = (f"{i * STEP_S},{power:.1f}" for i, power in enumerate(envelope_w(spec)))
    return "time_s,power_w\n" + "\n".join(rows) + "\n"


def main() -> int:
    """Write or check the six files; return 1 if a check fails."""
    parser = argparse.ArgumentParser(
        description="Make power_profiles/profile1.csv to profile3.csv and other1.csv to 3."
    )
    parser.add_argument("--check", action="store_true", help="compare with the files instead of writing them")
    parser.add_argument("--output", type=Path, default=Path(__file__).resolve().parent, help="folder of the files")
    arguments = parser.parse_args()
    different = False
    for spec in (*SPECS, *map(other_weather, SPECS)):
        path = arguments.output / f"{spec.name}.csv"
        made = csv_text(spec).encode()
        if arguments.check:
            same = path.is_file() and path.read_bytes() == made
            different |= not same
            print(f"{path.name}: {'same' if same else 'DIFFERENT'} ({spec.title})")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(made)
            print(f"{path.name}: written ({spec.title})")
    return int(different)


if __name__ == "__main__":
    sys.exit(main())
