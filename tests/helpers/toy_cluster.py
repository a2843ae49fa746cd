"""A real Slurm on this machine, for tests: munged, slurmctld and N slurmd; with `accounting` also a database.

Nodes are switched off by ending their slurmd, and boot by starting it again after `boot_s`; a node that is named in
the file `broken` does not boot.

`BATWATT_SLURM_ROOT` names the root of another Debian, whose Slurm runs instead of this machine's:
`debootstrap --variant=minbase --include=slurmctld,slurmd,slurm-client,munge,python3-minimal trixie ROOT`, for
`accounting` also slurmdbd and mariadb-server-core.
"""

from __future__ import annotations

import os
import random
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from waiting import wait_for

ROOT = os.environ.get("BATWATT_SLURM_ROOT", "")
PROGRAMS = ("munged", "slurmctld", "slurmd", "squeue", "scontrol", "sbatch")
ACCOUNTING_PROGRAMS = ("slurmdbd", "sacctmgr", "mariadbd", "mariadb-install-db")
CLIENTS = ("squeue", "sinfo", "scontrol", "scancel", "sbatch", "sacctmgr")
FOLDERS = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"

CONFIG = """\
ClusterName={name}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
SwitchType=switch/none
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
{accounting}
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,bf_continue
SlurmctldParameters=power_save_interval=1
SlurmdParameters=config_overrides
# with 2 the late answer to a launch brings a node back that was set down
ReturnToService=1
SlurmctldTimeout=6
SlurmdTimeout=20
MinJobAge={min_job_age_s}
KillWait=1
MessageTimeout=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SuspendProgram={folder}/suspend
ResumeProgram={folder}/resume
SuspendTime=31536000
SuspendTimeout=1
ResumeTimeout={boot_limit_s}
ResumeRate=1000
SuspendRate=1000
TreeWidth=65533
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=16 Sockets=2 CoresPerSocket=8 \
ThreadsPerCore=1 RealMemory=32000 State=UNKNOWN
PartitionName=green Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
PartitionName=other Nodes=ALL MaxTime=INFINITE State=UP OverSubscribe=NO
"""

ACCOUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={dbd_port}
AccountingStoragePass={folder}/munge.sock
AccountingStorageEnforce=associations,limits,qos
PriorityType=priority/multifactor
PriorityCalcPeriod=1
PriorityWeightAge=1000
PriorityWeightFairshare=10000
PriorityWeightQOS=1000"""
"""For slurm.conf: associations and limits hold, and jobs have a priority by age, fairshare and QOS."""

DATABASE = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
DbdHost=localhost
DbdPort={dbd_port}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
"""
"""Text of slurmdbd.conf."""

ENTITIES = (
    ("add", "qos", "green", "priority=10"),
    ("modify", "account", "root", "set", "qos=normal,green"),
    ("add", "user", "nobody", "account=root"),
)
"""Words of sacctmgr: the QOS `green` beside `normal`, for the users root and nobody of the account `root`."""

SERVERS = """\
[[server]]
name = "node"
nodes = "n[1-{nodes}]"
states = [["1Gf", 200, 95]]
sleep_w = 9
off_s = 60
off_j = 6000
on_s = 60
on_j = 9000
"""
"""For `batwatt generate platform`, in s at 60 times the speed."""

RESUME = """\
#!{python}
import os, signal, subprocess, sys, time
os.environ.update(PATH="{path}", SLURM_CONF="{folder}/slurm.conf")
# the three standard streams may be closed: what is opened next would have their numbers
null = os.open(os.devnull, os.O_RDWR)
for number in (0, 1, 2):
    os.dup2(null, number) if null != number else os.set_inheritable(number, True)
# slurmctld kills the group of this process when it ends: the parent waits until the child has left it
ready, leave = os.pipe()
if os.fork():
    os.close(leave)
    os.read(ready, 1)
    os._exit(0)
os.setsid()
os.close(ready)
os.close(leave)
signal.pthread_sigmask(signal.SIG_SETMASK, [])
for number in range(1, 32):
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
names = subprocess.run(["scontrol", "show", "hostnames", sys.argv[1]], capture_output=True, text=True).stdout.split()
time.sleep({boot_s})
try:
    broken = open("{folder}/broken").read().split()
except OSError:
    broken = []
for name in names:
    if name not in broken:
        subprocess.run(["env", "TOY_NODE=" + name, "slurmd", "-b", "-N", name, "-d", "{stepd}"])
"""

SUSPEND = """\
#!{python}
import os, signal, subprocess, sys
os.environ.update(PATH="{path}", SLURM_CONF="{folder}/slurm.conf")
names = subprocess.run(["scontrol", "show", "hostnames", sys.argv[1]], capture_output=True, text=True).stdout.split()
for name in names:
    try:
        os.kill(int(open("{folder}/slurmd-" + name + ".pid").read()), signal.SIGTERM)
    except (OSError, ValueError):
        pass
"""


def missing_program(*, accounting: bool = False) -> str | None:
    """Return the first program of Slurm that this machine lacks, or why it cannot run; None if it can."""
    if os.geteuid() != 0:
        return "slurmd needs root"
    folders = [Path(ROOT + folder) for folder in FOLDERS.split(":")]
    programs = PROGRAMS + (ACCOUNTING_PROGRAMS if accounting else ())
    # links of another root lead nowhere from here
    return next((name for name in programs if not any(os.path.lexists(folder / name) for folder in folders)), None)


def free_ports(count: int) -> int:
    """Return the first of `count` free ports in a row, below those of outgoing connections."""
    draw = random.SystemRandom()
    for _ in range(200):
        first = draw.randrange(20_000, 32_000 - count)
        sockets = []
        try:
            for port in range(first, first + count):
                sockets.append(socket.socket())
                sockets[-1].bind(("", port))
            return first
        except OSError:
            continue
        finally:
            for one in sockets:
                one.close()
    raise AssertionError("no free ports")


class ToyCluster:
    """A running Slurm; `environment` is that of its commands. A context manager."""

    def __init__(
        self,
        folder: Path,
        nodes: int = 8,
        *,
        boot_s: float = 1.0,
        boot_limit_s: int = 20,
        min_job_age_s: int = 3600,
        accounting: bool = False,
    ) -> None:
        self.folder = folder
        self.accounting = accounting
        self.nodes = nodes
        self.servers = SERVERS.format(nodes=nodes)
        folder.mkdir(parents=True)
        folder.chmod(0o755)
        self.ports = port = free_ports(nodes + 3)
        stepds = ("/usr/sbin/slurmstepd-wlm", "/usr/sbin/slurmstepd")
        stepd = next(path for path in stepds if Path(ROOT + path).exists())
        host = socket.gethostname().partition(".")[0]
        dbd_port = port + nodes + 1
        values = {
            "name": f"toy{os.getpid()}",
            "folder": folder,
            "nodes": nodes,
            "host": host,
            "port": port,
            "first": port + 1,
            "last": port + nodes,
            "python": "/usr/bin/python3" if ROOT else sys.executable,
            "path": FOLDERS,
            "boot_s": boot_s,
            "boot_limit_s": boot_limit_s,
            "min_job_age_s": min_job_age_s,
            "stepd": stepd,
            "dbd_port": dbd_port,
            "accounting": "AccountingStorageType=accounting_storage/none",
        }
        if accounting:
            values["accounting"] = ACCOUNTING.format(**values)
            (folder / "slurmdbd.conf").write_text(DATABASE.format(**values))
            (folder / "slurmdbd.conf").chmod(0o600)
        (folder / "slurm.conf").write_text(CONFIG.format(**values))
        for name, text in (("resume", RESUME), ("suspend", SUSPEND)):
            (folder / name).write_text(text.format(**values))
            (folder / name).chmod(0o755)
        (folder / "state").mkdir()
        for number in range(1, nodes + 1):
            (folder / f"spool-n{number}").mkdir()
        self._name = str(values["name"])
        self._stepd = stepd
        self._holder: subprocess.Popen[bytes] | None = None
        self._inside: tuple[str, ...] = ()
        """Words before those of a command that runs in the other root."""
        variables = {"SLURM_CONF": str(folder / "slurm.conf"), "MYSQL_UNIX_PORT": str(folder / "db.sock")}
        self._environment = os.environ | variables | {"PATH": FOLDERS}
        self.environment = self._environment | {"PATH": f"{folder}/bin:{FOLDERS}" if ROOT else FOLDERS}

    def __enter__(self) -> Self:
        return self

    def start(self) -> Self:
        """Start all daemons; end them again if one does not start. Raises AssertionError."""
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self) -> None:
        folder = self.folder
        if ROOT:
            self._enter_root()
        key = folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self._background("munged", "--force", f"--key-file={key}", f"--socket={folder}/munge.sock",
                         f"--pid-file={folder}/munge.pid", f"--log-file={folder}/munge.log",
                         f"--seed-file={folder}/munge.seed")  # fmt: skip
        if self.accounting:
            self._start_database()
        self.start_controller("-c")
        for number in range(1, self.nodes + 1):
            self._background("env", f"TOY_NODE=n{number}", "slurmd", "-N", f"n{number}", "-d", self._stepd)
        wait_for(lambda: self.states().count("idle") == self.nodes, 30, "all nodes are idle")

    def _enter_root(self) -> None:
        """Let commands run in the other root; its mounts are those of a process that waits there, and end with it."""
        mounts = (
            f"mount -t tmpfs -o mode=1777 tmpfs {ROOT}/tmp && mkdir -p {ROOT}{self.folder} && "
            f"mount --bind {self.folder} {ROOT}{self.folder} && mount -t proc proc {ROOT}/proc && "
            f"mount --rbind /sys {ROOT}/sys && mount --rbind /dev {ROOT}/dev && "
            # without the name of this machine slurmctld would ask DNS at every message
            f"touch {ROOT}/etc/hosts && mount --bind /etc/hosts {ROOT}/etc/hosts && exec chroot {ROOT} sleep infinity"
        )
        self._holder = subprocess.Popen(["unshare", "--mount", "sh", "-c", mounts], env=self._environment)
        root = Path(f"/proc/{self._holder.pid}/root")
        wait_for(lambda: str(root.readlink()) == os.path.realpath(ROOT), 10, f"a process in {ROOT}")
        self._inside = ("nsenter", f"--target={self._holder.pid}", "--mount", "--root", "--wd")
        (self.folder / "bin").mkdir()
        for name in CLIENTS:
            path = self.folder / "bin" / name
            path.write_text(f'#!/bin/sh\nPATH={FOLDERS} exec {shlex.join(self._inside)} {name} "$@"\n')
            path.chmod(0o755)

    def _start_database(self) -> None:
        """Start MariaDB and slurmdbd, and register the cluster, its users and their QOS."""
        folder = self.folder
        self._background("mariadb-install-db", "--no-defaults", "--user=root", f"--datadir={folder}/db",
                         "--auth-root-authentication-method=normal", "--skip-test-db")  # fmt: skip
        subprocess.Popen(
            (*self._inside, "mariadbd", "--no-defaults", "--user=root", f"--datadir={folder}/db", "--skip-networking",
             f"--socket={folder}/db.sock", f"--log-error={folder}/db.log"),
            env=self._environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        wait_for((folder / "db.sock").exists, 30, "MariaDB listens")
        self._background("slurmdbd")
        wait_for(lambda: self.command("sacctmgr", "show", "qos", check=False).returncode == 0, 30, "slurmdbd answers")
        for words in (("add", "cluster", self._name), *ENTITIES):
            self.command("sacctmgr", "-i", *words)

    def limit_qos(self, *limits: str) -> None:
        """Set limits of the QOS `green`, such as `MaxJobsPerUser=1`."""
        self.command("sacctmgr", "-i", "modify", "qos", "green", "set", *limits)

    def __exit__(self, *_: object) -> None:
        self._kill()
        if self._holder is not None:
            self._holder.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _kill(self, node: str = "") -> None:
        # daemons, what they started, and the jobs have the folder and the node in their environment
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                environment = (place / "environ").read_text(errors="replace")
                if str(self.folder) in environment and node in environment:
                    os.kill(int(place.name), signal.SIGKILL)

    def start_controller(self, *options: str) -> None:
        """Start slurmctld and wait until it answers."""
        self._background("slurmctld", *options)
        wait_for(lambda: self.command("scontrol", "ping", check=False).returncode == 0, 20, "slurmctld answers")

    def stop_controller(self) -> None:
        """End slurmctld."""
        with suppress(OSError, ValueError):
            process = int((self.folder / "slurmctld.pid").read_text())
            os.kill(process, signal.SIGTERM)
            for _ in range(200):
                os.kill(process, 0)
                time.sleep(0.02)

    def fail_node(self, number: int) -> None:
        """Kill a slurmd and its part of jobs, and tell slurmctld, which would notice after `SlurmdTimeout`."""
        # a slurmstepd outlives its slurmd, and would report the end of an attempt during the next one
        self._kill(f"TOY_NODE=n{number}\0")
        self.command("scontrol", "update", f"nodename=n{number}", "state=down", "reason=test")

    def command(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command of Slurm."""
        done = subprocess.run(
            (*self._inside, *words), env=self._environment, capture_output=True, text=True, timeout=60
        )
        assert not check or done.returncode == 0, f"{words}: {done.stderr}"
        return done

    def states(self) -> list[str]:
        """Return the state of each node, in the order of their numbers."""
        lines = self.command("sinfo", "-h", "-N", "-p", "green", "-o", "%N|%T", check=False).stdout.split()
        pairs = dict(line.split("|") for line in lines)
        return [pairs.get(f"n{number}", "?") for number in range(1, self.nodes + 1)]

    def submit(self, run_s: float | str, nodes: int = 1, *options: str, limit_min: int = 10) -> str:
        """Submit a job on hold that sleeps; returns its number."""
        script = f"--wrap=trap 'exit 7' USR1; sleep {run_s} & wait $!"
        words = ("sbatch", "--parsable", "-H", "-N", str(nodes), "-t", str(limit_min), "-o", "/dev/null", *options)
        return self.command(*words, script).stdout.strip()

    def break_nodes(self, *numbers: int) -> None:
        """Let nodes not boot from now on."""
        (self.folder / "broken").write_text(" ".join(f"n{number}" for number in numbers))

    def as_user(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of Slurm as the user nobody."""
        line = f"cd /tmp; {shlex.join(words)}"
        return self.command("su", "nobody", "-s", "/bin/sh", "-c", line, check=False)

    def job(self, number: str) -> dict[str, str]:
        """Return what Slurm knows of a job."""
        text = self.command("scontrol", "show", "job", number, "-o", check=False).stdout
        return dict(word.split("=", 1) for word in text.split() if "=" in word)

    def _background(self, *words: str) -> None:
        done = subprocess.run(
            (*self._inside, *words), env=self._environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, f"{words}: {done.stderr.decode()}"
