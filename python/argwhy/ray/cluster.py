"""A cluster as the estimator's ``backend``."""

from __future__ import annotations

import math
import os
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _argwhy
from .._extras import extra
from ..datasets import _listed, _ranges
from ..errors import ClusterError, DataError
from .panels import Panels, Shares
from .pool import Pool, Slot
from .worker import SEARCH

Doubles = NDArray[np.float64]

SMALL = 256 << 20
"""Bytes of features that are sent to workers; more they have to read themselves."""
WORTH = 0.03
"""Seconds of work that are worth a message."""
CHUNKS = 4
"""Pieces a worker that a panel of rows is cut into."""
CORES_OF_A_GPU = 300
"""Cores that a GPU is worth, at least, where only an estimate of time depends on it."""
PATIENCE = 10.0
"""Seconds that the head of a cluster has to answer at all."""
FEW = 1 << 20
"""Kernel values that are one piece."""


class Cluster:
    """Workers on a Ray cluster, for ``KernelInverseOptimizer(backend=...)``.

    Nothing is started before the first fit. The kernel matrix is not stored anywhere; memory a
    worker: 12 bytes a feature and sample, and some vectors.

    Parameters
    ----------
    address:
        Of the cluster: "auto" for the one that this machine is part of, "HOST:PORT", or "local" for
        a new one of this machine alone. If not given, the one in ``RAY_ADDRESS``, else the one this
        machine is part of, else a new one. New ones ask for a token unless ``RAY_AUTH_MODE`` says
        otherwise, or Ray was imported before.
    workers:
        Actors, one a node as long as there are nodes; as many as there are nodes if not given. More
        than fit are used as soon as nodes join.
    cpus, gpus:
        What each of them asks for: cores, all of the smallest node if not given, and a GPU (0 or
        1). Products of 16,384 samples and more with kernels of the Euclidean distance are then
        computed there, others on the cores.
    data, reading:
        The file or folder that workers read the signals from, the one that the driver's came from,
        and how: keywords of :func:`argwhy.datasets.read`. Without, features are sent to them, up to
        256 MiB.
    timeout:
        Seconds after which a worker that says nothing is replaced.
    spread_from:
        Samples from which on workers keep the preconditioner, a share each, instead of the driver:
        a million if not given. It decides the last bits, as the number of workers does not.

    Examples
    --------
    >>> Cluster(workers=2, cpus=1)
    Cluster(workers=2, cpus=1)
    """

    def __init__(
        self,
        address: str | None = None,
        workers: int | None = None,
        cpus: int | None = None,
        gpus: int = 0,
        *,
        data: str | os.PathLike[str] | None = None,
        reading: dict[str, Any] | None = None,
        timeout: float = 300.0,
        spread_from: int | None = None,
    ) -> None:
        for name, value, least in (("workers", workers, 1), ("cpus", cpus, 1), ("gpus", gpus, 0)):
            if value is not None and value < least:
                raise ValueError(f"{name} is {value}; expected {least} or more")
        if gpus > 1:
            raise ValueError(f"gpus is {gpus}; a worker uses one, so ask for more workers instead")
        if not timeout > 0:
            raise ValueError(f"timeout is {timeout}; expected seconds above zero")
        if spread_from is not None and spread_from < 1:
            raise ValueError(f"spread_from is {spread_from}; expected a number of samples")
        if reading is not None and data is None:
            raise ValueError("reading says how to read data; give data too")
        self.address = address
        self.workers = workers
        self.cpus = cpus
        self.gpus = gpus
        self.data = data
        self.reading = reading
        self.timeout = timeout
        self.spread_from = _argwhy.spread_from() if spread_from is None else spread_from
        self.panels = Panels(self)
        self.gone: Callable[[], bool] | None = None
        """Asked while workers are waited for: whether nobody wants their answers any longer."""
        self._pool: Pool | None = None
        self._ray: Any = None
        self._began = False
        self._abandoned = False
        self._numbers = 0
        self._products = 0
        self._busy = 0.0
        self._rounds: list[float] = []
        self._part_seconds: dict[tuple[int, bool], float] = {}
        self._sizes: dict[int, int] = {}

    def __repr__(self) -> str:
        usual = {"address": None, "workers": None, "cpus": None, "gpus": 0, "data": None, "reading": None, "timeout": 300.0}
        usual["spread_from"] = _argwhy.spread_from()
        said = {name: getattr(self, name) for name, value in usual.items() if getattr(self, name) != value}
        return f"Cluster({', '.join(f'{name}={value!r}' for name, value in said.items())})"

    def _parameters(self) -> dict[str, Any]:
        names = ("address", "workers", "cpus", "gpus", "data", "reading", "timeout", "spread_from")
        return {name: getattr(self, name) for name in names}

    # Clones of an estimator share its workers; a pickle has none.
    def __deepcopy__(self, memo: Any) -> Cluster:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return self._parameters()

    def __setstate__(self, state: dict[str, Any]) -> None:
        Cluster.__init__(self, **state)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *exception: object) -> None:
        self.shutdown()

    # What the solver calls, once for each product, panel or block of columns

    @property
    def wants_features(self) -> bool:
        """Whether workers are sent features instead of reading data."""
        return self.data is None

    def connect(self) -> int:
        """Starts the workers unless they are there, and says how many cores they have."""
        self._abandoned = False
        if self._pool is None:
            self._prepare()
            ray = self._ray = extra("ray", "argwhy.ray", "ray")
            self._init(ray)
            nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
            cores = [int(node["Resources"]["CPU"]) for node in nodes] or [1]
            workers = len(cores) if self.workers is None else self.workers
            cpus = min(cores) if self.cpus is None else self.cpus
            self._pool = Pool(ray, workers, cpus, self.gpus, self.timeout, self._is_given_up)
            # For estimates of time.
            self._cores = workers * (cpus + self.gpus * CORES_OF_A_GPU)
        return self._cores

    def abandon(self) -> None:
        """Ends what workers are waited for, with an error: somebody asked for a stop twice."""
        self._abandoned = True

    def _is_given_up(self) -> bool:
        return self._abandoned or (self.gone is not None and self.gone())

    def _prepare(self) -> None:
        """A Ray that is started here asks for a token and does not put its workers last."""
        own = self.address == "local" or (self.address is None and not _is_part_of_a_cluster())
        # It listens on every interface, even for one machine. Ray reads this when it is imported.
        if own and "ray" not in sys.modules:
            os.environ.setdefault("RAY_AUTH_MODE", "token")
        if own:
            os.environ.setdefault("RAY_worker_niceness", "0")

    def _init(self, ray: Any) -> None:
        if ray.is_initialized():
            return
        given = None if self.address == "auto" else self.address
        at = (os.environ.get("RAY_ADDRESS") or _noted_address()) if given is None else given
        listens = _check_that_somebody_listens(ray, at)
        try:
            ray.init(address=self.address, namespace="argwhy", logging_level="warning", log_to_driver=False)
        except (ConnectionError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
            if at in (None, "local"):
                raise ClusterError(f"Ray cannot be started here: {_first_line(error)}") from error
            raise _no_cluster(at, _first_line(error), listens) from error
        self._began = True

    def open(self, job: str, rows: NDArray[np.uint64], features: Doubles | None) -> int:
        """Has workers hold the kernel matrix of some samples; its number."""
        pool = self._workers()
        source: dict[str, Any] = {}
        shared: Any = None
        if self.data is None:
            if features is None or features.nbytes > SMALL:
                size = 0 if features is None else features.nbytes >> 20
                raise ClusterError(
                    f"the features have {size} MiB, and up to {SMALL >> 20} are sent to workers; say where these can "
                    "read the data themselves: Cluster(data=path, reading={...})"
                )
            shared = self._ray.put(features)
        else:
            source = self._source()
        self._numbers += 1
        whole = len(rows) > 0 and bool(np.all(np.diff(rows) == 1))
        chosen: Any = (int(rows[0]), int(rows[-1]) + 1) if whole else self._ray.put(rows)
        pool.matrices[self._numbers] = (job, source, chosen, shared)
        self._sizes[self._numbers] = len(rows)
        return self._numbers

    def _source(self) -> dict[str, Any]:
        """What workers read, by the names of the reader."""
        reading = dict(self.reading or {})
        for name in ("rows", "episodes"):
            if name in reading:
                reading[name] = _ranges(reading[name])
        for name in ("one_hot", "cyclic"):
            if name in reading:
                reading[name] = _listed(reading[name])
        usual: dict[str, Any] = {
            name: None for name in ("signals", "decisions", "rows", "matrix", "matrix_eq", "weights")
        }
        path = os.path.abspath(os.fspath(self.data or ""))
        return {"path": path, "reading": {**usual, "constraints": False, **reading}}

    def product(self, matrix: int, exact: bool, v: Doubles) -> Doubles:
        """v·K: parts as they come, added in their order."""
        pool, began = self._workers(), time.monotonic()
        n_parts, _ = _argwhy.cluster_layout(v.shape[1])
        self.check_store(v.nbytes)
        vectors = self._ray.put(v)
        total = np.zeros_like(v)
        step = self._parts_a_call(matrix, exact, n_parts)
        arrived: dict[int, list[tuple[int, Doubles]]] = {}
        added = 0

        def take(call: int, answer: tuple[float, list[tuple[int, Doubles]]]) -> None:
            nonlocal added
            seconds, arrived[call] = answer
            self._part_seconds[matrix, exact] = seconds / len(arrived[call])
            while added in arrived:
                for part in arrived.pop(added):
                    _argwhy.add_part(total, *part)
                added += 1

        starts = range(0, n_parts, step)
        pool.run(matrix, [("parts", at, min(at + step, n_parts), exact, vectors) for at in starts], take)
        self._products += 1
        self._busy += time.monotonic() - began
        self._rounds.append(time.monotonic() - began)
        return total

    def _parts_a_call(self, matrix: int, exact: bool, n_parts: int) -> int:
        """As many as are worth a message, and no more than leave everyone several."""
        known = self._part_seconds.get((matrix, exact))
        worth = 1 if known is None else math.ceil(WORTH / max(known, 1e-9))
        return max(1, min(worth, n_parts // (2 * len(self._workers().slots))))

    def rows(self, matrix: int, samples: NDArray[np.uint64], start: int, stop: int) -> Any:
        """Rows of K over some columns."""
        found: dict[int, Any] = {}
        pieces = self._pieces(start, stop, len(samples))
        self._workers().run(matrix, [("rows", samples, *piece) for piece in pieces], found.__setitem__)
        return np.concatenate([found[piece] for piece in range(len(pieces))], axis=1)

    def columns(self, matrix: int, exact: bool, samples: NDArray[np.uint64], v: Doubles) -> Doubles:
        """v·K[samples, :]."""
        found: dict[int, Any] = {}
        pieces = self._pieces(0, self._sizes[matrix], len(samples))
        calls = [("columns", exact, samples, v, *piece) for piece in pieces]
        self._workers().run(matrix, calls, found.__setitem__)
        return np.concatenate([found[piece] for piece in range(len(pieces))], axis=1)

    def blocks(self, matrix: int, tasks: list[bytes], stopped: Callable[[], bool]) -> list[bytes] | None:
        """Blocks of samples, each solved by one worker; None where ``stopped`` ended it."""
        found: dict[int, bytes] = {}
        self._workers().run(matrix, [("block", task) for task in tasks], found.__setitem__, stopped)
        return [found[task] for task in range(len(tasks))] if len(found) == len(tasks) else None

    def close(self, matrix: int) -> None:
        """Nobody will ask for it again."""
        self.panels.forget(matrix)
        if self._pool is not None:
            self._pool.forget(matrix)

    # What a search calls, once for each round

    def attempts(
        self,
        data: dict[str, Any],
        texts: list[str],
        stopped: Callable[[], bool],
        done: Callable[[int, str], None] | None = None,
    ) -> list[tuple[int, str]]:
        """Has attempts of a search made, each by one worker; those that are done when it stops.

        ``done`` is told of each as it comes.
        """
        pool = self._workers()
        size = sum(array.nbytes for array in _arrays_of(data))
        if size > SMALL:
            raise ClusterError(
                f"the data of the search has {size >> 20} MiB, and up to {SMALL >> 20} are sent to workers; search on "
                "some of the rows, and fit all of them with what was found"
            )
        self._numbers += 1
        number = self._numbers
        pool.matrices[number] = (SEARCH, {}, None, self._ray.put(data))
        found: dict[int, str] = {}

        def take(attempt: int, answer: str) -> None:
            found[attempt] = answer
            if done is not None:
                done(attempt, answer)

        try:
            pool.run(number, [("attempt", text) for text in texts], take, stopped)
        finally:
            pool.forget(number)
        return sorted(found.items())

    def _pieces(self, start: int, stop: int, n_rows: int) -> list[tuple[int, int]]:
        """Columns in pieces that are computed together, one for each worker or, of many, some."""
        _, together = _argwhy.cluster_layout(1)
        if start % together:
            raise DataError(f"columns from {start} on")
        workers = len(self._workers().slots)
        each = CHUNKS if n_rows * (stop - start) > FEW * workers else 1
        wanted = -(-(stop - start) // (each * workers))
        step = max(1, -(-wanted // together)) * together
        return [(at, min(at + step, stop)) for at in range(start, stop, step)]

    def _workers(self) -> Pool:
        if self._pool is None:
            self.connect()
        assert self._pool is not None
        return self._pool

    # What its panels ask of it

    def slots(self) -> list[Slot]:
        """The places of its workers."""
        return self._workers().slots

    def put(self, round: tuple[Any, ...]) -> Any:
        """Something in Ray's store, for as long as somebody here knows of it."""
        return self._ray.put(round)

    def run_shares(self, matrix: int, shares: Shares, take: Callable[[int, Any], None]) -> None:
        """Has every panel answer."""
        self._workers().run(matrix, shares, take)

    def check_store(self, n_bytes: int) -> None:
        """Vectors pass through Ray's shared memory; what does not fit it would write to disk."""
        nodes = [node["Resources"].get("object_store_memory", 0) for node in self._ray.nodes() if node["Alive"]]
        # The vectors, and one part a worker that is on its way.
        needed = n_bytes * (1 + len(self._workers().slots))
        if nodes and needed > 0.8 * min(nodes):
            raise ClusterError(
                f"vectors and parts take {needed >> 20} MiB of Ray's shared memory at once, and a node has "
                f"{int(min(nodes)) >> 20} MiB of it; start Ray with more memory for its object store"
            )

    # What people ask

    def status(self) -> dict[str, Any]:
        """How it goes: workers asked for and alive, those lost so far, products and their rate."""
        pool = self._pool
        recent = self._rounds[-8:]
        return {
            "workers": self.workers if pool is None else len(pool.slots),
            "alive": 0 if pool is None else pool.alive,
            "lost": 0 if pool is None else pool.lost,
            "products": self._products,
            "products_per_second": len(recent) / sum(recent) if recent else 0.0,
            "shares": [] if pool is None else [slot.done for slot in pool.slots],
        }

    def progress(self) -> str:
        """The same in a few words, for a line of progress."""
        now = self.status()
        workers = f"workers {now['alive']}/{now['workers']}"
        return f"{workers}  {now['products_per_second']:.2g} products/s" if now["products"] else workers

    def pids(self) -> list[int]:
        """Process numbers of the workers that are alive."""
        return [] if self._pool is None else [slot.pid for slot in self._pool.slots if slot.pid is not None]

    def shutdown(self) -> None:
        """Ends the workers, and Ray where it was started for them."""
        if self._pool is not None:
            self._pool.end()
            self._pool = None
        if self._began:
            self._ray.shutdown()
            self._began = False


def _arrays_of(data: Any) -> list[NDArray[Any]]:
    """Every array in what is sent."""
    if isinstance(data, np.ndarray):
        return [data]
    return [array for part in data.values() for array in _arrays_of(part)] if isinstance(data, dict) else []


def _is_part_of_a_cluster() -> bool:
    """Whether Ray would find one: by its address, or by the note that `ray start` leaves."""
    return bool(os.environ.get("RAY_ADDRESS")) or os.path.exists(_note_of_ray())


def _note_of_ray() -> str:
    """Where `ray start` leaves the address of its cluster; Ray itself cannot be asked yet."""
    folders = ["RAY_TMPDIR", "TMPDIR"] if sys.platform.startswith("linux") else ["RAY_TMPDIR"]
    folder = next((os.environ[name] for name in folders if name in os.environ), "/tmp")
    return os.path.join(folder, "ray", "ray_current_cluster")


def _noted_address() -> str | None:
    try:
        with open(_note_of_ray(), encoding="utf-8") as file:
            return file.read().strip() or None
    except OSError:
        return None


def _check_that_somebody_listens(ray: Any, address: str | None) -> bool:
    """Ray itself would try for minutes, in silence. Whether it was an address to try at all."""
    host, colon, port = (address or "").rpartition(":")
    if not colon or "://" in host or not port.isdecimal():
        return False
    hosts, why = [host.strip("[]")], OSError("no host")
    if hosts[0] in ("localhost", "127.0.0.1", "::1"):
        # What Ray takes these for.
        hosts.append(ray.util.get_node_ip_address())
    for each in hosts:
        try:
            socket.create_connection((each, int(port)), timeout=PATIENCE).close()
            return True
        except (OSError, OverflowError) as error:
            why = OSError(_first_line(error))
    raise _no_cluster(address, f"nobody answers there ({why})")


def _no_cluster(address: str | None, why: str, listens: bool = False) -> ClusterError:
    noted = f", as {_note_of_ray()} says" if address is not None and address == _noted_address() else ""
    remedy = 'start one with `ray start`, its head first, or say "local" for one of this machine alone'
    if listens:
        remedy = "somebody answers there, so look at the token (RAY_AUTH_MODE and RAY_AUTH_TOKEN as the cluster has them)"
    return ClusterError(f"no Ray cluster at {address or 'an empty address'}{noted}: {why}; {remedy}")


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
