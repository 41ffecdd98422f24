"""A bandit's file: one npz file of plain arrays, without pickle or compression.

The array `header` is a text, a JSON object of these fields:

    format, version      "keyhole.bandit" and 1; a file of another version is refused
    written_by           keyhole: the version of the package; build: that of the kernels
    policy               name and settings of the policy
    arms                 the names of the arms, in order; k parameters follow from them
    dim                  the length of an observation
    features             the recipe of named fields, or null; "own" for one that no file can hold
    recipe               a digest that identifies the columns of these features
    levels               the levels of growing categories that have columns, [field, level] each
    arm_records          the records of arms that are always the same
    observer             the options of the learner, such as intercept and standardize
    zero                 the number that rewards are counted from, or null
    probabilities        whether decisions have a probability
    random               the states of the two random streams, four words each
    lineage              for each run: the number of its decisions, and of its additions
    learned_ids          the ids of the last decisions that were learned
    columns              the names of features, or null
    waiting, waiting_keys, provisional, provisional_keys
                         arms and keys of the rewards that wait for units, and arms of those that
                         were learned by early predictions

The other arrays are float64 unless noted, with d columns in a design row:

    prior, n, weight, squares, residual, penalty, trace, bound, staleness  (k,)
    moment, mean         (k, d)
    matrices             (k, d + 1, d)  two symmetric matrices: `keyhole.core.kernels.State`

and, if the learner has a constant, units or predictions, with the fields and types of the tuples
that the core keeps:

    seen_*, snapshot_*   `Moments` of the observations, and those that predictions follow from
    sample_*, units_*    `Sample` and `Units` of the features; units once they are fixed
    reward_sample_*, reward_unit_*
                         the same of the rewards
    waiting_*            observation (m, dim) and reward (m,) of the m rewards that wait
    provisional_*        observation, design (m, d) and reward of the provisional rewards

`snapshot` and `write` make a file; `read` and `parse` take it apart, with checks of every field.
Checks of the learned state are in `restoring`.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from keyhole import __version__, checks
from keyhole.core import (
    POLICIES,
    Arm,
    Encoder,
    Features,
    Learner,
    LearnerState,
    Policy,
    Provisional,
    Recipe,
    Waiting,
    arm_name,
    kernels,
)
from keyhole.core.kernels import Bits
from keyhole.errors import FileError, InvalidValue, shown
from keyhole.files import Source, Target, given_name, read_arrays, write_arrays
from keyhole.online import restoring
from keyhole.online.lineage import Past
from keyhole.online.once import Once

FORMAT = "keyhole.bandit"
SENSOR_FORMAT = "keyhole.sensor-bandit"  # `sensor_storage`
VERSION = 1
# In place of features that no file can hold.
OWN = "own"


Found = TypeVar("Found")


class Parts(NamedTuple):
    """The parts of a bandit that are saved."""

    learner: Learner
    learned: LearnerState
    random: Bits  # (2, 4)  the states of its streams
    probabilities: bool
    pasts: dict[str, Past]
    once: Once
    columns: tuple[str, ...] | None


class Record(NamedTuple):
    """The content of a file."""

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    def copy(self) -> Record:
        """Return a record that shares no array with this one."""
        return Record(self.header, {name: _copied(array) for name, array in self.arrays.items()})


# -- writing ---------------------------------------------------------------------------------------


def snapshot(parts: Parts) -> Record:
    """Return a bandit's parts as the content of a file, which shares no array with them."""
    learned, observer = parts.learned, parts.learned.observer
    header = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": writer(),
        "policy": policy_record(parts.learner.policy),
        "arms": list(learned.arms.names),
        "dim": observer.dim,
        "features": _recipe_record(parts.learner.features),
        "recipe": learned.recipe,
        "levels": [list(pair) for pair in learned.grown or ()],
        "arm_records": [[name, one] for name, one in learned.arm_records.items()],
        "observer": observer.options,
        "zero": observer.zero,
        "probabilities": parts.probabilities,
        "random": parts.random.tolist(),
        "lineage": parts.pasts,
        "learned_ids": parts.once.recent.listed(),
        "columns": None if parts.columns is None else list(parts.columns),
        "waiting": [one.arm for one in learned.waiting],
        "waiting_keys": [one.key for one in learned.waiting],
        "provisional": [one.arm for one in learned.provisional],
        "provisional_keys": [one.key for one in learned.provisional],
    }
    arrays: dict[str, NDArray[Any]] = learned.posterior.state._asdict()
    if not observer.is_plain:
        arrays |= _prefixed("seen", observer.moments)
        arrays |= _prefixed("snapshot", observer.snapshot)
        arrays |= _prefixed("sample", observer.sample)
        arrays |= _prefixed("reward_sample", observer.reward_sample)
        arrays |= _prefixed("reward_unit", observer.reward_unit)
        arrays |= {} if observer.units is None else _prefixed("units", observer.units)
        arrays |= _columns("waiting", learned.waiting, Waiting)
        arrays |= _columns("provisional", learned.provisional, Provisional)
    return Record(header, arrays).copy()


def write(target: Target, record: Record) -> None:
    """Write a record to a path, which gets all of it or stays as it was, or to an open file.

    Parameters
    ----------
    target : str, os.PathLike or binary file
        The path or the open file.
    record : Record
        The content.
    """
    write_arrays(target, {"header": np.array(json.dumps(record.header)), **record.arrays})


def writer() -> dict[str, str]:
    """Return the writer of files: the version of the package, and the build of the kernels."""
    return {"keyhole": __version__, "build": kernels.BUILD}


def policy_record(policy: Policy) -> dict[str, Any]:
    """Return name and settings of a policy, as JSON gives them back."""
    kind = type(policy)
    ours = kind in POLICIES.values()
    name = kind.__name__ if ours else f"{kind.__module__}.{kind.__qualname__}"
    try:
        text = json.dumps({"name": name, "settings": asdict(policy)}, default=_plain)
    except (TypeError, ValueError, RecursionError) as reason:
        raise InvalidValue(f"the settings of {policy!r} cannot be written down: {reason}") from None
    record: dict[str, Any] = json.loads(text)
    return record


def _plain(value: object) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{value!r} is neither a number, a string nor an array")


def _prefixed(prefix: str, arrays: Any) -> dict[str, NDArray[Any]]:
    return {f"{prefix}_{name}": array for name, array in arrays._asdict().items()}


def _columns(prefix: str, rows: list[Any], kind: Any) -> dict[str, NDArray[Any]]:
    """Return one array for each field of many rewards but arm and key, which are texts."""
    if not rows:
        return {}
    names = [name for name in kind._fields if name not in ("arm", "key")]
    return {f"{prefix}_{name}": np.array([getattr(row, name) for row in rows]) for name in names}


def _allocated(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return memory for an array; that of float64 can be used by kernels as it is."""
    return kernels.aligned_zeros(shape) if dtype == np.float64 else np.empty(shape, dtype)


def _copied(array: NDArray[Any]) -> NDArray[Any]:
    copy = _allocated(array.shape, array.dtype)
    copy[...] = array
    return copy


# -- reading ---------------------------------------------------------------------------------------


def load(source: Source, take_apart: Callable[[Record], Found]) -> tuple[Found, str]:
    """Return the parts of a saved bandit, and the build of the kernels that wrote it.

    Each array is read into the memory in which the bandit keeps it.

    Parameters
    ----------
    source : str, os.PathLike, binary file or bytes
        The path, the open file or the bytes.
    take_apart : callable
        Returns the parts of the content, or raises `FileError`.
    """
    record = read(source)
    try:
        return take_apart(record), record.header["written_by"]["build"]
    except FileError as reason:
        raise FileError(f"{given_name(source)} cannot be loaded: {reason}") from None


def as_bytes(save: Callable[[Target], None]) -> bytes:
    """Return the content that a bandit's `save` writes."""
    file = io.BytesIO()
    save(file)
    return file.getvalue()


def read(source: Source) -> Record:
    """Return the content of a file that `write` made, if it is of this format and version."""
    arrays = read_arrays(source, allocate=_allocated)
    name = given_name(source)
    header = _header(name, arrays.pop("header", None))
    if header.get("format") not in (FORMAT, SENSOR_FORMAT):
        raise FileError(f"{name} is an npz file, but not a saved bandit")
    if header.get("version") != VERSION:
        raise FileError(
            f"{name} has format version {header.get('version')!r}, and this Keyhole reads version "
            f"{VERSION} only: load a newer file with a newer Keyhole"
        )
    writer = header.get("written_by")
    if not isinstance(writer, dict) or not all(
        isinstance(writer.get(field), str) for field in ("keyhole", "build")
    ):
        raise FileError(f"{name} must say in written_by what wrote it, got {shown(writer)}")
    return Record(header, arrays)


def _header(name: str, text: NDArray[Any] | None) -> dict[str, Any]:
    if text is None or text.dtype.kind != "U" or text.shape != ():
        raise FileError(f"{name} is an npz file, but not a saved bandit")
    try:
        header = json.loads(str(text))
    except (ValueError, RecursionError) as reason:
        raise FileError(f"{name} has a damaged header: {reason}") from None
    if not isinstance(header, dict):
        raise FileError(f"{name} is an npz file, but not a saved bandit")
    return header


def parse(record: Record, policy: Policy | None, features: Recipe | None = None) -> Parts:
    """Return the parts of a bandit, which keep the arrays of the record.

    Parameters
    ----------
    record : Record
        The result of `snapshot` or `read`.
    policy : Policy or None
        One of the user's own class, which a file cannot bring back.
    features : Recipe, optional
        The same for features around a transformer.

    Raises
    ------
    FileError
        For the first field that is not as saved.
    """
    header, arrays = record
    try:
        policy = policy_of(header["policy"], policy)
        recipe = _recipe(header["features"], features)
        encoder = None if recipe is None else _encoder(recipe, header["levels"])
        if (None if encoder is None else encoder.digest) != header["recipe"]:
            raise FileError(
                "the columns of these features are not those of the saved bandit: give the same "
                "features, and a transformer of the same fit"
            )
        observer = restoring.observer(header, arrays, encoder)
        learner = Learner(policy, recipe, **observer.options)
        arms = learner.arms(listed("arms", header["arms"]))
        learned = restoring.learned(
            header, arrays, arms, observer, encoder, prior=policy.prior_precision
        )
        learned.arm_records = _arm_records(header["arm_records"], encoder)
        return Parts(
            learner=learner,
            learned=learned,
            random=random_of(header["random"]),
            probabilities=checks.flag("probabilities", header["probabilities"]),
            pasts=pasts_of(header["lineage"]),
            once=Once(restoring.texts("learned_ids", header["learned_ids"])),
            columns=_column_names(header["columns"], observer.dim),
        )
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as reason:
        if isinstance(reason, FileError):
            raise
        raise FileError(f"the saved bandit is damaged: {reason}") from None


def policy_of(record: Mapping[str, Any], given: Policy | None) -> Policy:
    """Return the policy of a record, or the given one if the record is its own.

    Parameters
    ----------
    record : mapping
        The result of `policy_record`.
    given : Policy or None
        One of the user's own class.
    """
    if given is not None:
        if policy_record(given) != record:
            raise FileError(f"the bandit was saved with {record}, not with {policy_record(given)}")
        return given
    ours = {kind.__name__: kind for kind in POLICIES.values()}
    if record["name"] not in ours:
        raise FileError(
            f"the bandit's policy {record['name']!r} is none of Keyhole's: "
            f"give it to load(path, policy=...), with the settings {record['settings']}"
        )
    return ours[record["name"]](**record["settings"])


def _recipe_record(recipe: Recipe | None) -> Any:
    if recipe is None:
        return None
    return recipe.to_dict() if isinstance(recipe, Features) else OWN


def _recipe(record: Any, given: Recipe | None) -> Recipe | None:
    if record == OWN:
        if given is None:
            raise FileError(
                "the bandit's features are around a transformer, which no file can hold: give "
                "them to load(path, features=...)"
            )
        return given
    recipe = None if record is None else Features.from_dict(record)
    if given is not None and given != recipe:
        raise FileError(f"the bandit was saved with the features {recipe!r}, not with {given!r}")
    return recipe


def _encoder(recipe: Recipe, levels: Any) -> Any:
    grown = tuple((str(field), str(level)) for field, level in listed("levels", levels))
    return Encoder(recipe, grown) if isinstance(recipe, Features) else recipe.start()


def _arm_records(given: Any, encoder: Any) -> dict[Arm, dict[str, Any]]:
    records = {arm_name(name): dict(one) for name, one in listed("arm_records", given)}
    if records and encoder.encode({}, list(records.values()))[1] is not encoder:
        raise FileError("the saved records of arms have levels that are not among the saved ones")
    return records


def random_of(words: Any) -> Bits:
    """Return the states of the two random streams."""
    are_states = isinstance(words, list) and [len(state) for state in words] == [4, 4]
    if not are_states or not all(
        type(word) is int and 0 <= word < 2**64 for state in words for word in state
    ):
        raise FileError(
            "the saved random streams must be two lists of four whole numbers below 2**64, "
            f"got {shown(words)}"
        )
    return np.array(words, dtype=np.uint64)


def pasts_of(record: Mapping[str, Any]) -> dict[str, Past]:
    """Return the progress of each run."""
    return {
        run: Past(*(checks.integer("lineage", number, min_value=0) for number in past))
        for run, past in record.items()
    }


def listed(name: str, given: Any) -> list[Any]:
    """Return a field of a header that is a list; raise if it is none.

    Parameters
    ----------
    name : str
        The name of the field.
    given : object
        Its value.
    """
    if not isinstance(given, list):
        raise FileError(f"the saved {name} must be a list, got {shown(given)}")
    return given


def _column_names(given: Any, dim: int) -> tuple[str, ...] | None:
    if given is None:
        return None
    names = tuple(restoring.texts("columns", given))
    if len(names) != dim:
        raise FileError(f"the saved columns are {len(names)}, and dim is {dim}")
    return names
