"""Commands for `same_bytes.py`: every scheduler, part, reader, command and entry of the Python API.

`tests/test_same_bytes.py` checks this list. A line is one or more commands without the word `batwatt`, joined by `&&`
(one after another) or `&` (together); `api NAME` calls a function of `api_calls.py`. A command runs in a folder that
has the inputs of the repository and, in `made/`, those of `small_inputs.py` and of SHARED; files below `out/` are
hashed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from api_calls import CALLS

Named = Iterator[tuple[str, str]]

CARBON = "power_profiles/carbon/carbon-hourly.csv"
PRICE = "power_profiles/carbon/price-hourly.csv"
GRID = "-p platforms/grid5000.xml -w workloads/google-288-03.json"
POWER = f"{GRID} --envelope power_profiles/profile2.csv"
SMALL = "-p platforms/small.xml -w workloads/small.json"
FALLS = f"{SMALL} --envelope power_profiles/small.csv"
SITE = "-w workloads/site/jobs.sacct --begin 2024-07-01 --machines 10 --cores 16"
SUN = '--envelope "power:power_profiles/site/solar.csv,from=2024-07-01,peak_w=2000,repeat=yes + constant:500"'
BOTH = f"--carbon {CARBON},repeat=yes --price {PRICE},repeat=yes"
RISK = "-w workloads/risk-small.txt --window 86400:259200 --machines 152 --cores 8"
WALK = f"{RISK} --capacity power_profiles/walk-small.csv"
TNG = "-w made/tng.csv --machines 10 --cores 32 --window 21600:86400 --capacity walk:range=0.6,seed=1,window=86400"
RICH = "-w made/rich.csv --machines 10 --cores 4"
PHASES = "-p made/carbon.xml -w made/carbon.json"
MOST = "--capacity constant:mean=0.8"
MARCONI = "-p platforms/marconi100-48.xml -w made/power-jobs.json"
FIGURE1 = (
    "-w periods/figure1-jobs.csv --machines 22 --cores 1 --window 0:5400 "
    "--capacity periods/figure1-capacity.csv -s checkpoint"
)
PATIENCE = " --timeout 60"
SOCKET = f"ipc://out/socket{PATIENCE}"

SHARED = " && ".join(
    [
        "convert workloads/carbon/jobs.csv --watts 60 --machines 20 -o made/carbon.json -p made/carbon.xml",
        f'run -p made/carbon.xml -w made/carbon.json -s carbon -e made/carbon -o \'{{"signal": "{CARBON}"}}\'',
        f"run {GRID} --envelope power_profiles/profile3.csv -e made/run",
        "convert workloads/small.json --to batsim5 -o made/small5.json",
        "convert made/falls.csv --to events -o made/envelope.txt",
        "convert made/envelope.txt --to batsim5 -o made/falls5.txt",
        "optimum -p platforms/small.xml -w workloads/small.json --envelope power_profiles/profile3.csv --effort 3 "
        "-e made/optimum",
    ]
)
"""Commands that generate inputs of other commands."""


def commands() -> dict[str, str]:
    """Return the lines of commands by name, the longest first."""
    table: dict[str, str] = {}
    for group in (
        _studies,
        _powercap,
        _jobpower,
        _machines,
        _checkpoint,
        _carbon,
        _engines,
        _series,
        _traces,
        _others,
    ):
        for name, line in group():
            if name in table:
                raise ValueError(f"two commands have the name {name!r}")
            table[name] = line
    return table


def _run(name: str, words: str, **options: object) -> tuple[str, str]:
    return name, f"run {words} -e out/x" + (f" -o '{json.dumps(options)}'" if options else "")


def _powercap() -> Named:
    for response in ("frugal", "hfld", "iafs", "iasb", "idfs", "idsb", "none"):
        yield _run(f"powercap {response}", POWER, response=response, backfilling="easy")
    for backfilling in ("first-fit", "none"):
        yield _run(f"powercap backfilling {backfilling}", POWER, response="hfld", backfilling=backfilling)
    orders = "asc asc_size asc_walltime desc desc_size desc_walltime fcfs lcfs slowdown smith wfp widest"
    for order in orders.split():
        yield _run(f"powercap {order}", POWER, order=order)
    for name in ("first", "fewest-watts", "fastest", "packed", "spread"):
        yield _run(f"powercap node selection {name}", POWER, node_selection=name)
    yield _run("powercap lose", POWER, victim="lose")
    yield _run("powercap resubmit", POWER, victim="resubmit")
    yield _run("powercap checkpoint", POWER, victim={"name": "checkpoint", "checkpoint_s": 60, "recovery_s": 30})
    yield _run("powercap migrate", POWER, victim={"name": "migrate", "cost_s": 20})
    forecast = {"forecast_steps": 4, "forecast_error": 0.2, "forecast_seed": 3}
    yield _run("powercap forecast", POWER, response="frugal", victim="resubmit", **forecast)
    for estimate in ("walltime", "learned", "exact"):
        yield _run(f"powercap {estimate}", POWER, work_estimate=estimate)
    for name in ("exact", "walltime", "doubling", "recent", "regression"):
        yield _run(f"run times {name}", POWER, run_times=name)
        yield _run(f"varcap run times {name}", f"{SITE} {SUN} -s varcap", order="asc_walltime", run_times=name)
    yield _run("powercap profile1", f"{GRID} --envelope power_profiles/profile1.csv")
    yield _run("powercap no envelope", SMALL)
    yield _run("powercap idle", "-p platforms/grid5000-idle.xml -w workloads/google-288-04.json", response="none")
    yield _run("powercap adaptive", f"{POWER} -s adaptive")
    yield _run("powercap adaptive goodput", f"{POWER} -s adaptive", objective="goodput")
    yield _run("pybatsim easyBackfill", f"{GRID} -s easyBackfill")
    yield _run("pybatsim fillerSched", f"{SMALL} --no-energy -s fillerSched")
    yield _run("powercap delays to flops", f"{FALLS} --delays-to-flops --json")
    yield _run("powercap capacity", f"{GRID} --capacity walk:range=0.4,mean=0.7,seed=3")
    yield _run("planned", f"{SMALL} --envelope power_profiles/profile3.csv -s planned", plan="made/optimum_plan.json")
    yield "optimum", f"optimum {SMALL} --envelope power_profiles/profile3.csv --effort 5 -e out/x --json"
    yield "optimum seed", f"optimum {FALLS} --effort 2 --seed 4 -e out/x"
    settings = '-c \'a={"response": "hfld"}\' -c \'b={"response": "none"}\''
    yield "compare settings", f"compare {POWER} {settings} --keep --jobs 1 -e out/c"
    yield "compare settings json", f"compare {FALLS} {settings} --goal energy --jobs 1 -e out/c --json"
    systems = "-c 'a=varcap {\"termination\": \"lww\"}' -c 'b=powercap' -c 'c=replay'"
    yield "compare samples", f"compare {SITE} {SUN} {settings} -c 'c=varcap' --samples 3 --seeds 2 --jobs 1 -e out/c"
    yield "compare systems", f"compare {SITE} {SUN} {systems} --by user --by size --jobs 1 -e out/c"
    preset = f"{SITE} {SUN} {BOTH} --by group --by queue --by length --seeds 2 --jobs 1"
    yield "compare preset", f"compare {preset} -e out/site"
    capacity = "--capacity walk:range=0.6,seed=1 --jobs 1 --json"
    entry = "benchmark -s varcap --cells google/sun-50 -e out/b"
    yield "benchmark", f"{entry} && benchmark --check out/b_varcap.json --jobs 2 --json"
    yield "compare preset capacity", f"compare {RICH} {capacity} -e out/c"


def _jobpower() -> Named:
    limit = f"{MARCONI} --envelope constant:30000 -s jobpower"
    for check in ("node", "mean", "max", "gaussian", "knapsack"):
        yield _run(f"jobpower {check}", limit, power_check=check)
    field = {"name": "field", "field": "mean_power_estimation", "max_field": "max_power_estimation"}
    estimated = limit.replace("power-jobs", "estimated")
    yield _run("jobpower field", estimated, predictor=field, power_check="mean")
    for predictor in ("exact", "history", "user", "user-queue-width"):
        yield _run(f"jobpower {predictor}", limit, predictor=predictor)
    falls = limit.replace("constant:30000", "walk:range=0.6,mean=0.5,seed=2")
    for excess in ("keep", "kill-latest"):
        yield _run(f"jobpower {excess}", falls, excess=excess, victim="resubmit")
    yield _run("jobpower first-fit", limit, backfilling="first-fit", order="slowdown", node_selection="packed")
    words = f"metrics out/x --job-power {MARCONI} --envelope constant:30000"
    yield "job-power", f"run {limit} -e out/x && {words} && {words} --json"


def _machines() -> Named:
    strategies = ("first-fit-aware", "first-fit-unaware", "target-stretch", "target-asap", "packed-target-asap")
    for strategy in strategies:
        yield _run(f"riskaware {strategy}", f"{WALK} -s riskaware", strategy=strategy, as_published=True)
    for strategy in strategies[1:3]:
        yield _run(f"riskaware {strategy} paper", f"{WALK} -s riskaware", strategy=strategy, as_published=False)
    reference = {"strategy": "target-asap", "reference": "workloads/risk-small.txt", "quantiles": 100}
    yield _run("riskaware reference", f"{WALK} -s riskaware", **reference, as_published=True)
    lose = {"victim": "lose", "seed": 5, "as_published": True}
    yield _run("riskaware lose", f"{RISK} --capacity uniform:range=0.6,seed=1 -s riskaware", **lose)
    for mapping in ("base", "longshort", "jobsize-order", "twomode", "migration"):
        yield _run(f"varcap {mapping}", f"{TNG} -s varcap", mapping=mapping)
    for termination in ("random", "lfd", "lww", "least-loss", "order"):
        yield _run(f"varcap {termination}", f"{TNG} -s varcap", termination=termination)
    checkpoint = {"name": "checkpoint", "checkpoint_s": 60, "recovery_s": 60}
    for name, more in {
        "wfp": {"order": "wfp", "seed": 2},
        "fcfs": {"order": "fcfs", "backfilling": "easy"},
        "none": {"backfilling": "none"},
        "first-fit": {"backfilling": "first-fit", "nodes": "shared"},
        "dedicated": {"nodes": "dedicated", "backfilling": "easy"},
        "foresight": {
            "mapping": "longshort",
            "foresight_h": 3,
            "foresight_noise": 0.1,
            "foresight_missed": 0.2,
            "bounds": "known",
            "stable": 3,
        },
        "false alarms": {
            "mapping": "twomode",
            "foresight_h": 6,
            "foresight_bias": 0.1,
            "foresight_false_alarms": 0.2,
            "bounds": "values",
        },
        "class": {"mapping": "base", "foresight_h": 6, "knowledge": "class"},
        "estimate": {
            "mapping": "base",
            "foresight_h": 6,
            "knowledge": "exact",
            "run_times": {"name": "walltime", "otherwise_s": 3600},
        },
        "exact": {"mapping": "jobsize-order", "foresight_h": 6, "knowledge": "exact"},
        "no knowledge": {"mapping": "base", "knowledge": "none"},
        "preemption": {"preemption": "slowdown", "order": "asc_walltime", "backfilling": "easy"},
        "preemption checkpoint": {
            "preemption": {"name": "slowdown", "factor": 1.5, "most": 2},
            "victim": checkpoint,
            "order": "smith",
            "termination": "least-loss",
            "backfilling": "easy",
        },
        "migrate": {"victim": {"name": "migrate", "cost_s": 60}, "termination": "lww"},
        "lose": {"victim": "lose"},
        "spread": {"node_selection": "spread", "order": "widest"},
        "packed": {"node_selection": "packed"},
    }.items():
        yield _run(f"varcap {name}", f"{TNG} -s varcap", **more)
    yield _run("varcap chain", "-w made/chain.csv --machines 10 --cores 4 --capacity made/machines.csv -s varcap")
    yield _run(
        "varcap memory",
        f"-w made/used.csv --machines 10 --cores 4 --long 900 {BOTH} {MOST} -s varcap",
        machine_memory=8,
    )
    yield _run("varcap price budget", f"{RICH} --capacity price:{PRICE},budget=0.6,days=1,repeat=yes -s varcap")
    yield _run("varcap shift", f"{SITE} {BOTH} {MOST} -s varcap", shift={"name": "waiting", "wait_h": [6, 24]})
    yield _run("pybatsim shift", f"{SITE} {BOTH} -s easyBackfill", shift={"name": "oracle", "wait_h": [6]})
    yield _run("oversubscribed", f"{TNG} -s oversubscribed", oversubscription=1.5, use=0.7)
    yield _run(
        "oversubscribed use", f"-w made/used.csv --machines 6 --cores 4 {MOST} -s oversubscribed", interval_s=120
    )
    yield _run("adaptive", f"{WALK} -s adaptive")
    yield _run("adaptive checkpoint", f"{WALK} -s adaptive", checkpoint_s=60, recovery_s=30, objective="slowdown")
    yield _run("adaptive carbon", f"{SITE} {BOTH} -s adaptive", objective="carbon", wait_h=[6, 24])
    yield _run("adaptive sun", f"{SITE} {SUN} -s adaptive", parts={"order": "fcfs"})
    yield _run("replay", "-w tests/data/oddities.sacct --machines 8 --cores 8 -s replay")
    yield _run("replay strict", f"{SITE} -s replay", strict=True)
    yield _run("replay nodes", "-w made/pm100.parquet,width=nodes --machines 40 -s replay")
    yield _run("slurm", f"{SITE} -s multifactor")
    yield _run("easy", f"{SITE} -s easy")
    yield _run("fcfs", f"{SITE} -s fcfs")
    parts = {"batch": {}, "long": {"hosts": "0-79", "max_nodes": 4}, "debug": {"max_time_s": 7200, "priority_tier": 2}}
    tree = {"fairshare": "fair-tree", "fairshare_by": "account", "qos": {"high": 10}, "shares": {"genomics": 2}}
    yield _run("slurm partitions", f"{SITE} -s multifactor", partitions=parts, **tree, priority_favor_small=True)
    classic = {"fairshare": "classic", "fairshare_by": "user", "bf_window_s": 7200, "bf_max_job_user": 2}
    yield _run("slurm classic", f"{SITE} -s multifactor", **classic, default_queue_depth=2)


def _checkpoint() -> Named:
    for name, more in {
        "yield": {"k": 6, "min_yield": 0.2, "method": "dp"},
        "k": {"k": 3, "cover": "k"},
        "subset-sum": {"k": 6, "method": "subset-sum"},
        "needed": {"cover": "needed"},
        "warning": {"warning_s": 600, "checkpoint_s": 30, "recovery_s": 40},
        **{prepare: {"prepare": prepare} for prepare in ("all", "worst", "expected", "cheapest")},
    }.items():
        yield _run(f"checkpoint {name}", FIGURE1, **more)
    rigid = "-w made/rigid.csv --machines 12 --cores 1 --capacity walk:range=0.6,seed=4,period=900 -s checkpoint"
    yield _run("checkpoint rigid", rigid)
    for name in ("period", "change", "figure1", "figure1-new", "starving"):
        yield f"plan checkpoint {name}", f"plan checkpoint periods/{name}.json"
    yield "plan checkpoint subset-sum", "plan checkpoint periods/period.json --method subset-sum"
    yield "plan checkpoint change worst", "plan checkpoint periods/change.json --prepare worst --cover needed"
    yield "plan checkpoint yield", "plan checkpoint periods/starving.json --min-yield 0.25"
    yield "plan checkpoint worst", "plan checkpoint periods/figure1.json --prepare worst -o out/x.json"


def _carbon() -> Named:
    shifted = f"{PHASES} -s carbon"
    policies = "immediate latest lowest oracle waiting cst-oracle cst-average suspend-resume suspend-resume-threshold"
    more = ["wait-awhile", "wait-awhile-interrupting", "phase-aware", "phase-aware-checkpoints"]
    for policy in [*policies.split(), *more]:
        yield _run(f"carbon engine {policy}", shifted, policy=policy, signal=CARBON)
    yield _run("carbon engine steps", shifted, policy="phase-aware", signal=CARBON, step_s=300)
    columns = f"--carbon {CARBON},column=carbon_intensity --price '{PRICE},column=price (EUR/kWh)'"
    yield _run("carbon engine columns", f"{shifted} {columns}", policy="phase-aware", price_weight=9)
    zone = "--carbon made/electricitymaps.csv,kind=direct,zone=Germany,tz=Europe/Berlin,from=2024-07-01T06:00Z"
    yield _run("carbon engine zone", f"{shifted} {zone}", policy="lowest", wait_h=[4])
    priced = {"price_weight": 100, "carbon_weight": 0.5, "deadline_h": 20}
    yield _run("carbon engine price", f"{shifted} --carbon {CARBON} --price {PRICE}", policy="phase-aware", **priced)
    constraint = {"constraint": "semi-weekly", "clock": "Europe/Berlin"}
    yield _run("carbon engine constraint", f"{shifted} --carbon {CARBON}", policy="suspend-resume", **constraint)
    several = " ".join(f"""-c '{name}=carbon {{"policy": "{name}"}}'""" for name in ("immediate", "phase-aware"))
    yield "carbon compare", f"compare {PHASES} --carbon {CARBON} --price {PRICE} {several} -e out/x"
    ends = "--start 2024-07-02T13:00 --deadline 2024-07-03T15:00"
    job = f"workloads/carbon/job.json --carbon {CARBON}"
    yield "plan carbon", f"plan carbon {job} {ends}"
    yield (
        "plan carbon price",
        f"plan carbon {job} {ends} --price {PRICE} --price-weight 9 --carbon-weight 2 --slot-s 300",
    )
    yield "plan carbon ml", f"plan carbon workloads/carbon/ml.json --carbon {CARBON} {ends} --checkpoints --cpus 4"
    workload = "workloads/carbon/jobs.csv --watts 60 --machines 20 -o out/w.json -p out/p.xml"
    yield "convert phases", f"convert {workload}"
    replanned = {"forecast_error": 0.1, "forecast_seed": 2, "replan_h": 6}
    yield _run("carbon engine cluster", f"{SITE} {BOTH} -s carbon", policy="oracle", wait_h=[6, 24], **replanned)
    yield _run("carbon engine sun", f"{SITE} {SUN} {BOTH} -s carbon", policy="waiting", constraint="next-workday")
    site = "account -w workloads/site/jobs.sacct"
    nodes = "--machines 10 --cores 16 --busy-w 350 --idle-w 120 --pue 1.3"
    period = "--since 2024-07-02 --until 2024-07-09 --zone Europe/Berlin"
    yield "account", f"{site} {nodes} {BOTH} {period} -o out/x.csv --page out/x.html"
    yield "account json", f"{site} --busy-w 150 --by account,month --carbon {CARBON} --json"
    yield "account swf", "account -w made/jobs.swf --busy-w 90 --by user"
    yield "account run", f"account made/carbon -w made/carbon.json --carbon {CARBON} --segments out/s.csv"


def _engines() -> Named:
    """Yield runs over a socket, in the protocol of Batsim 4."""
    yield _run("wire powercap", f"{POWER} --engine wire")
    yield _run("wire varcap", f"{TNG} -s varcap --engine wire")
    plain = '-o \'{"response": "none"}\''
    serve = f"serve -p platforms/small.xml --socket {SOCKET}"
    batsim = f"batsim -p platforms/small.xml -e out/x -s {SOCKET.removesuffix(PATIENCE)} -E -w workloads/small.json"
    yield "serve batsim 4", f"{batsim} & {serve} --envelope power_profiles/small.csv"
    yield "serve events", f"{batsim} --events made/events.txt & {serve} {plain} --protocol 4"
    taken = "--sg-log a --redis-hostname a --redis-port 1 --redis-prefix a --workflow-jobs-limit 1"
    states = "-r a:storage --disable-storage-sharing --disable-machine-state-tracing --ignore-beyond-last-workflow"
    refused = "-W a --WS a 1 --enable-redis --sg-cfg a --no-sched --sched-cfg-file a --verbosity debug -q"
    yield (
        "batsim context",
        f"batsim -p a {taken} {states} {refused} --disable-schedule-tracing --dump-execution-context",
    )
    switches = "--enable-compute-sharing --enable-dynamic-jobs --acknowledge-dynamic-jobs --enable-profile-reuse"
    hosts = "--forward-profiles-on-submission --master-host a --mmax 3 --mmax-workload --sched-cfg a"
    yield "batsim switches", f"batsim -p a {switches} {hosts} --ignore-communication --dump-execution-context"
    limit = '-o \'{"envelope": "events"}\''
    forwarded = "--events made/envelope.txt --forward-unknown-events"
    yield "serve envelope", f"{batsim} {forwarded} & {serve} {limit}"
    capacity = "--capacity constant:mean=0.5 -s varcap --attempts out/x_attempts.csv"
    again = "--enable-dynamic-jobs --enable-profile-reuse"
    yield (
        "serve varcap",
        f"{batsim} {again} --mmax 3 & {serve.replace('.xml', '.xml,mmax=3')} {capacity}",
    )
    yield _run("events of machines", f"{SMALL} --events made/events.txt", response="none")
    forward = f"{SMALL} --events made/envelope.txt --batsim-arg=--forward-unknown-events"
    yield _run("envelope by events", forward, envelope="events", response="hfld")
    two = "-p platforms/small.xml -w workloads/small.json -w made/two.json"
    yield _run(
        "two workloads",
        f"{two} --batsim-arg=--enable-dynamic-jobs --batsim-arg=--acknowledge-dynamic-jobs",
        response="none",
    )
    yield _run(
        "sharing",
        f"{two} --batsim-arg=--enable-compute-sharing --batsim-arg=--forward-profiles-on-submission",
        response="none",
    )
    configured = f"{SMALL} --energy --batsim-arg=--sched-cfg=a"
    yield _run("scheduler configuration", configured, response="none")
    first = "-p platforms/small.xml,mmax=4,mmax_workload=yes,master=master_host -w workloads/small.json"
    first += " --batsim-arg=--sched-cfg=text --batsim-arg=--enable-profile-reuse --ignore-communication"
    yield _run("first hosts", first, response="none")


def _series() -> Named:
    """Yield commands on signals, capacities and envelopes of every form and reader."""
    for name, words in {
        "entsoe-old.csv": "tz=Europe/Paris",
        "entsoe-new.csv": "zone=BZN|BE",
        "excel.csv": "tz=Europe/Berlin",
        "prices.csv": "period=7200",
    }.items():
        yield f"signal {name}", f"characterise 'price:made/{name},{words},budget=0.7'"
    for name, words in {
        "watttime.json": "",
        "watttime.csv": ",unit=lb/MWh",
        "british.json": ",column=intensity.forecast",
        "electricitymaps.json": "",
        "electricitymaps.csv": ",kind=direct",
    }.items():
        yield f"signal {name}", f"generate series carbon:made/{name}{words},budget=0.7 --machines 20"
    for name, words in {
        "pvgis.csv": "scale=20",
        "pvgis.json": "unit=W,base_w=100",
        "logger.csv": "dates=month-first",
        "gaps.csv": "peak_w=5000",
    }.items():
        yield f"signal {name}", f"generate series 'power:made/{name},{words}'"
    yield "signal json", f"characterise carbon:{CARBON},budget=0.7 --fixed 0.6 --json"
    for text in (
        *("walk:range=0.6,seed=1,window=86400", "walk:level=0,seed=2"),
        *("uniform:range=0.6,seed=1,window=86400", "constant:mean=0.7"),
        *(f"carbon:{CARBON},budget=0.7", f"price:{PRICE},budget=0.7,headroom=0.9,floor=0.2"),
        *(f"stranded:{CARBON},threshold=300", "trace:made/machines.csv,column=machines"),
    ):
        yield f"generate series {text}", f"generate series '{text}' --machines 20 --end 172800"
    sun = "power:power_profiles/site/solar.csv,from=2024-07-01,days=2,peak_w=5000"
    for name, battery in {
        "battery": "battery:capacity_kwh=4,power_kw=1,efficiency=0.9",
        "battery greedy": "battery:capacity_kwh=4,power_kw=2,demand_w=1500,initial_soc=0.5,min_soc=0.1",
        "battery smoothing": "battery:capacity_kwh=10,power_kw=2,window_h=12,step=900",
    }.items():
        words = f"'{sun} + constant:500 + {battery}' --state-of-charge out/soc.csv"
        yield f"generate series {name}", f"generate series {words}"
    for text in (f"stranded:{PRICE},threshold=0.1", f"carbon:{CARBON},budget=0.5", "uniform:seed=4", "walk:seed=4"):
        yield f"generate series {text}", f"generate series {text} --full-w 4000 --end 86400"
    yield _run("envelope battery", f'{SITE} --envelope "{sun},repeat=yes + battery:capacity_kwh=5" -s powercap')
    yield _run(
        "signals of a run",
        f"{SITE} --carbon made/electricitymaps.json,repeat=yes --price made/entsoe-new.csv,repeat=yes",
    )
    yield "convert envelope", "convert power_profiles/profile1.csv --to events"
    yield "convert events", "convert made/events.txt --to batsim5 && convert made/falls5.txt --to batsim4"
    yield "characterise walk", "characterise power_profiles/walk-small.csv"
    yield "characterise file", f"characterise {CARBON},column=carbon_intensity"
    yield "characterise column", f"characterise stranded:{CARBON},threshold=300 --end 604800"


def _traces() -> Named:
    yield _run("trace hours", "-w cloud/jobs.csv,unit=hours --machines 15 --cores 16", response="none")
    yield "convert txt", "convert workloads/risk-small.txt"
    yield "convert flops", "convert workloads/risk-small.txt --reference-flops 1e9 --nb-res 40"
    yield "convert csv", "convert cloud/jobs.csv,unit=h --cores-per-server 4 --walltime-factor 0"
    tables = ("pm100.parquet", "pm100.csv", "fdata.csv")
    for name in ("jobs.swf", "jobs.swf.gz", "rich.csv", "chain.csv", "jobs.pbs", *tables):
        yield f"convert {name}", f"convert made/{name}"
    yield "convert fdata nodes", "convert made/fdata.csv,width=nodes --to batsim5"
    yield "convert sacct", "convert tests/data/oddities.sacct,tz=Europe/Berlin --begin 2024-03-01"
    yield "convert sacct fields", "convert made/dump.sacct,fields=@made/fields.txt --format sacct"
    yield "convert azure", "convert made/azure.csv --format azure"
    yield "convert borg", "convert made/borg.csv --format borg --collections made/collections.csv"
    yield "convert batsim 5", "convert workloads/small.json --to batsim5 && convert made/small5.json --to batsim4"
    widths = {"fdata.csv": "", "pm100.parquet": ",width=nodes", "jobs.pbs": ",width=nodes"}
    for name, more in {"jobs.swf": " --begin 2024-07-01", **widths}.items():
        yield _run(f"trace {name}", f"-w made/{name}{more} --machines 8 --cores 96", response="none")
    power = "-p platforms/marconi100-48.xml -w made/rich.csv --envelope constant:20000 -s jobpower"
    yield _run("trace power", power, predictor="exact", power_check="max")
    yield "generate jobs", "generate jobs google seed=2 jobs_per_hour=9 hours=12 sigma=1 max_servers=4"
    yield "generate jobs other", "generate jobs google mean_runtime_s=900 nb_res=12"
    yield "generate platform", "generate platform platforms/grid5000.toml"
    yield "generate platform machines", "generate platform --machines 4 --cores 2 --core-watts 12"
    yield "generate platform speeds", "generate platform --machines 3 --cores 4 --core-speed 2Gf --speeds"


def _others() -> Named:
    yield "version", "--version"
    yield "help", "--help && run --help && study --help && compare --help-all"
    yield "init", "init out/start"
    yield "policies", "policies"
    yield "policies json", "policies --json"
    names = "adaptive carbon checkpoint jobpower oversubscribed planned powercap replay riskaware multifactor varcap"
    yield "policies options", " && ".join(f"policies {name}" for name in names.split())
    yield "policies file", "policies start/my_policy.py"
    yield _run("plugin", f"{FALLS} --plugin start/my_policy.py", order="my-order")
    yield _run("scheduler file", f"{SMALL} -s start/my_policy.py")
    grid = "-p platforms/grid5000.xml -w workloads/google-288-03.json --envelope power_profiles/profile3.csv"
    yield "metrics", f"metrics made/run {grid} && metrics made/run {grid} --json --long 900 && metrics --list"
    limits = f"{RICH} --capacity made/machines.csv --window 0:4000"
    yield "metrics machines", f"run {limits} -s varcap -e out/x && metrics out/x {limits} --slowed"
    for suffix in ("png", "svg"):
        words = "-p platforms/grid5000.xml --envelope power_profiles/profile3.csv"
        yield f"gantt {suffix}", f"gantt made/run {words} -o out/x.{suffix}"
    yield _run("quiet", f"{FALLS} --quiet")
    yield _run("verbose", f"{FALLS} --verbose")
    yield "bad input", "run -p platforms/none.xml -w workloads/small.json"
    yield "bad option", f'run {SMALL} -o \'{{"order": "slow-down"}}\''
    for name in CALLS:
        yield f"api {name}", f"api {name}"


def _studies() -> Named:
    yield (
        "study first",
        ("study start/first.yaml --results out -j 1 --figures svg,png && study out/first --status"),
    )
    parts = "--results out --name half -j 1"
    yield (
        "study resume",
        (
            f"study start/first.yaml --only small {parts} && study out/half --status --json && "
            "study out/half -j 2 && study out/half --page --figures png && study out/half --clean"
        ),
    )
    for name in ("igsc22", "pmbs23", "varcap", "checkpoint"):
        study = f"study papers/{name}/small.yaml --results out -j 1"
        yield f"study {name}", study
