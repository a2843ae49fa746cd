"""Calls of the Python API for `same_bytes.py`; each prints its results, and writes below `out/`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

import batwatt as bw
from batwatt import gym, testing
from batwatt.results.figures import rounded

PLATFORM, WORKLOAD = "platforms/small.xml", "workloads/small.json"
ENVELOPE = "power_profiles/small.csv"
CARBON, PRICE = (f"power_profiles/carbon/{name}-hourly.csv" for name in ("carbon", "price"))
JOBS = pd.DataFrame(
    {
        "id": ["a", "b", "c", "d"],
        "submission_time_s": [0.0, 10.0, 600.0, 700.0],
        "length_s": [1800.0, 60.0, 900.0, 300.0],
        "hosts": [2, 1, 4, 2],
        "estimate_s": [3600.0, 100.0, None, 600.0],
        "user": ["ann", "bob", "ann", "bob"],
    }
)
CALLS: dict[str, Callable[[], int]] = {}


def _call(function: Callable[[], None]) -> Callable[[], None]:
    def call() -> int:
        function()
        return 0

    CALLS[function.__name__] = call
    return function


def _show(*values: Any) -> None:
    for value in values:
        print(value.to_csv(lineterminator="\n") if isinstance(value, pd.DataFrame) else value)


@_call
def simulate() -> None:
    times_s: list[float] = []
    arguments = {"options": {"response": "hfld"}, "envelope": ENVELOPE}
    result = bw.simulate(PLATFORM, WORKLOAD, **arguments, progress=lambda time_s, ended: times_s.append(time_s))
    _show(result, result._repr_html_(), result.metrics, result.jobs, result.machines, result.power, bool(times_s))
    _show(isinstance(result, bw.Result), rounded(result.values) == result.metrics, result.platform)
    result.warn()
    assert result.scheduler == "powercap" and result.trace is not None
    assert len(result.outcomes.state) == result.metrics["jobs_total"]
    assert result.record is result.data.record and not (result.unchanged or result.currency or result.bounds)
    assert "kind" in result.attempts.columns
    _show(result.save("out/x"))
    result.write(Path("out/y"))
    again = bw.Result.of_files(Path("out/y"), result.run)
    assert again.values == result.values
    result.plot().figure.savefig("out/power.png")
    result.gantt().savefig("out/gantt.png")


@_call
def simulate_objects() -> None:
    platform = bw.Platform.machines(4, 2, watts=40)
    envelope = bw.Series((0, 600, 1200), (160, 80, 160))
    options = {"termination": "lww", "seed": 3}
    result = bw.simulate(platform, JOBS, "varcap", options=options, envelope=envelope, long_s=1000)
    _show(result, result.jobs, result.rejections, result.metrics)
    jobs = bw.Workload.read("made/rich.csv")
    result = bw.simulate("platforms/marconi100-48.xml", jobs, "jobpower", envelope="constant:20000")
    _show(result.job_power, result.power)


@_call
def simulate_signals() -> None:
    price = bw.read_signal(f"{PRICE},repeat=yes")
    inputs = {"carbon": f"{CARBON},repeat=yes", "price": price, "begin": "2024-07-01T06:00Z"}
    options = {"shift": {"name": "waiting", "wait_h": [6, 24]}}
    inputs["capacity"] = "constant:mean=0.8"
    result = bw.simulate(bw.Platform.machines(10, 16), "workloads/site/jobs.sacct", "varcap", options=options, **inputs)
    _show(result.metrics)
    times = pd.date_range("2024-07-01", periods=48, freq="h", tz="UTC")
    series = pd.Series(range(48), index=times, name="power (kW)").astype(float) + 1.0
    _show(
        bw.simulate(
            bw.Platform.machines(8, 1, watts=100), JOBS, "varcap", envelope=series, capacity="constant:mean=0.5"
        ).metrics
    )


@_call
def study() -> None:
    results = bw.study("start/first.yaml", results="out", only=["small"], workers=1)
    table = results.table
    _show(table.drop(columns=[name for name in table if name in ("key", "elapsed_s", "wall_s")]))
    compared: bw.Comparison = bw.Study.read("out/first")["small"]
    _show(results.names, len(results.errors), compared, compared.table, compared.verdict())


@_call
def compare() -> None:
    cases = {
        "free": bw.Case("powercap", {"response": "none"}, "none"),
        "mean": bw.Case("varcap", follow="mean"),
        "lww": bw.Case("varcap", {"termination": "lww"}),
    }
    jobs = bw.Workload.read("made/rich.csv", hosts=40)
    signals = {"carbon": f"{CARBON},repeat=yes", "price": f"{PRICE},repeat=yes", "begin": "2024-07-01"}
    table = bw.compare(bw.Platform.machines(10, 4), jobs, "constant:300", cases, seeds=(0, 1), **signals)
    _show(table, table._repr_html_(), table.table, table.jobs, table.summary, table.groups("user", "length"))
    assert table.verdict("energy").goal == "energy" and str(table.verdict())
    _show(table.errors, table.rejections, table.currency, table.remarks, table.save("out/c", by=["queue"]))
    _show(table.envelope and table.envelope.values, table.front(), table.assumed_w)
    table.plot().figure.savefig("out/front.png")
    table.plot("power", case="lww").figure.savefig("out/case.png")


@_call
def optimum() -> None:
    result = bw.optimum(PLATFORM, WORKLOAD, "power_profiles/profile3.csv", effort=2, seed=1)
    _show(result.metrics, result.jobs, result.bounds)


@_call
def plan_checkpoints() -> None:
    _show(bw.plan_checkpoints("periods/period.json"))
    _show(bw.plan_checkpoints("periods/change.json", method="subset-sum"))


@_call
def plan_carbon() -> None:
    job, day = "workloads/carbon/job.json", 86400.0
    _show(bw.plan_carbon(job, CARBON, deadline_s=day, slot_s=600, cpus=2))
    _show(bw.plan_carbon(job, CARBON, deadline_s=day, price=PRICE, price_weight=100, checkpoints=True))


@_call
def account() -> None:
    account = bw.account("made/jobs.swf", by=["partition", "month"], busy_w=90, carbon=CARBON)
    _show(account, account.table, account.facts, account.remarks)
    account.save("out/x.csv", "out/x.html", command="command")


@_call
def platforms() -> None:
    for platform in (
        bw.Platform.read("platforms/grid5000.xml", mmax=5),
        bw.Platform.machines(3, 4, speed="2Gf"),
        bw.Platform.machines(3, 1, watts=80),
    ):
        _show(platform, platform._repr_html_(), platform.facts(), platform.hosts)


@_call
def workloads() -> None:
    logs = {"tz": "Europe/Berlin", "begin": "2024-03-01"}
    for workload in (
        bw.Workload.read(WORKLOAD),
        bw.Workload.read("tests/data/oddities.sacct", **logs),
        bw.Workload.read("made/jobs.swf", window=(600, 3000), hosts=8),
        bw.Workload.read("cloud/jobs.csv", unit="h"),
        bw.Workload.synthetic(seed=4, hours=6, max_servers=4),
    ):
        _show(workload, workload.facts(), workload.remarks, workload.frame())


@_call
def frames() -> None:
    workload = bw.Workload.from_frame(JOBS, window=(0, 650), source="table")
    _show(workload, workload.frame(), workload.jobs, workload.profiles)
    _show(bw.simulate(PLATFORM, workload.frame(), options={"response": "none"}).jobs)


@_call
def series() -> None:
    for one in (bw.read_series("power_profiles/small.csv"), bw.read_series("power_profiles/profile1.csv")):
        _show(one, one.facts(), one.at(1800.0), one.step_after(100.0))
    _show(bw.Series((0, 3600), (500, 200)))


@_call
def signals() -> None:
    for text, wanted in {
        "made/excel.csv,tz=Europe/Berlin": "price",
        "made/watttime.json": "carbon",
        "made/pvgis.csv,period=7200": None,
        "made/gaps.csv,unit=%": None,
        "made/entsoe-new.csv,days=1,repeat=yes": None,
        "power:made/pvgis.csv,scale=20 + constant:300 + battery:capacity_kwh=2": None,
    }.items():
        signal = bw.read_signal(text, wanted)
        _show(signal, signal.unit, signal.begin, signal.end_s, signal.integral(50_000.0))


def _episode(env: gym.BatwattEnv, choose: Callable[[Any], int]) -> None:
    observation, info = env.reset(seed=1)
    over = False
    while not over:
        action = choose(env.action_masks())
        observation, reward, over, _, info = env.step(action)
        _show((info["time_s"], info["action"], float(reward), observation.tolist()))
    _show(info["metrics"], env.result().jobs)


@_call
def own_scheduler() -> None:
    @bw.register("order", "narrow-first")
    class NarrowFirst(bw.Order):
        """Least hosts first."""

        def key(self, jobs: Any, now_s: float) -> Any:
            return jobs.hosts

    class Mine(bw.Powercap):
        """EASY backfilling in that order."""

        order = NarrowFirst()

    assert issubclass(Mine, bw.Scheduler)
    _show(bw.simulate(PLATFORM, JOBS, Mine, envelope="constant:450").jobs)
    try:
        bw.simulate(PLATFORM, JOBS, "none")
    except bw.InputError as error:
        _show(error, isinstance(error, bw.BatwattError), isinstance(error, bw.DeadlockError))


@_call
def env() -> None:
    import gymnasium

    made = gymnasium.make(gym.ENVIRONMENT, platform=PLATFORM, workload=WORKLOAD, queue=3)
    _episode(made.unwrapped, lambda mask: int(mask.argmax()))
    made.unwrapped.save("out/x")


@_call
def env_limits() -> None:
    columns = [name for name, column in gym.OBSERVATIONS.items() if column.limit in ("", "envelope")]
    limited = gym.BatwattEnv(PLATFORM, WORKLOAD, observation=columns, envelope="constant:450", queue=2)
    _episode(limited, lambda mask: int(len(mask) - 1 - mask[::-1].argmax()))
    columns = [name for name, column in gym.OBSERVATIONS.items() if column.limit in ("", "capacity")]
    falling = bw.Series((0, 50, 90), (4, 2, 4), "machines")
    limited = gym.BatwattEnv(PLATFORM, JOBS, observation=columns, capacity=falling)
    _episode(limited, lambda mask: int(mask.argmax()))


@_call
def env_rewards() -> None:
    for reward in gym.REWARDS:
        _episode(gym.BatwattEnv(PLATFORM, WORKLOAD, reward=reward, queue=2), lambda mask: int(mask.argmax()))
    drawn = gym.BatwattEnv(PLATFORM, lambda rng: JOBS, reward={"makespan_s": 1, "energy_j": 0.001})
    _episode(drawn, lambda mask: int(mask.argmax()))


@_call
def check_part() -> None:
    choices = {"order": "smith", "response": "frugal", "mapping": "twomode", "policy": "waiting", "predictor": "user"}
    for kind, choice in choices.items():
        testing.check_part(kind, choice, cases=2, seed=1)
        _show((kind, choice, "keeps the laws"))
