"""From measured numbers to verdicts: checks that can fail, and one call that records what they say of a claim."""

import html
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import yaml
from IPython.display import display

from mhalib import validation
from mhalib.estimate import FALSE_ALARM, Estimate, z_test

HOLDS, UNDER, CORRECTED, FALSE, UNTESTABLE = VERDICTS = (
    "holds", "holds, under", "false as stated; corrected", "false", "not testable here")
BADGES = dict(zip(VERDICTS, ("holds", "under", "corrected", "false", "untestable"), strict=True))
ROUND_OFF = 1e-12
PAPERS = ("ens", "spec", "dyn", "real")


class VerdictError(AssertionError):
    """A check cannot be trusted, or the computed verdict is not the registered one."""


@dataclass(frozen=True)
class Check:
    """One measured number held against one prediction, beside the same check on a broken experiment.

    `control` describes the negative control. Its outcome must be the opposite of the check's: a check that passes
    must be able to fail, and a check that fails must be able to pass.
    """

    label: str
    measured: str
    predicted: str
    criterion: str
    passed: bool
    control: str
    control_passed: bool
    false_alarm: float | None = None
    detectable: str | None = None
    role: str = "published"


def exact(label: str, measured, predicted=0.0, *, tolerance: float, control) -> Check:
    """A deterministic check: passes when every |measured - predicted| is at most `tolerance`.

    `control` is what the broken experiment measures (or `measured` of a wrong constant); it is held against the
    same prediction. Values at round-off are shown as a bound, so that the record is the same on every machine.

    >>> exact("identity", 1e-16, tolerance=1e-12, control=0.3).passed
    True
    """
    validation.positive("tolerance", tolerance)
    error, shown, target = _worst("measured", measured, predicted, tolerance)
    broken, broken_shown, _ = _worst("control", control, predicted, tolerance)
    return Check(label, shown, target, f"error ≤ {tolerance:.0e}", error <= tolerance,
                 broken_shown, broken <= tolerance)


def ztest(label: str, estimate: Estimate, predicted, *, control, false_alarm: float = FALSE_ALARM) -> Check:
    """A stochastic check: passes when the estimate agrees with its prediction at a stated false-alarm rate.

    `control` is an `Estimate` from a broken experiment (held against the same prediction) or a wrong prediction
    (held against the same estimate).

    >>> ztest("mean", Estimate(1.01, 0.01, 5000), 1.0, control=1.2).passed
    True
    """
    outcome = z_test(estimate, predicted, false_alarm=false_alarm)
    is_estimate = isinstance(control, Estimate)
    broken = z_test(control, predicted, false_alarm=false_alarm) if is_estimate else \
        z_test(estimate, control, false_alarm=false_alarm)
    mean, stderr, target = (np.broadcast_to(x, np.shape(estimate.mean)).flat[outcome.worst]
                            for x in (estimate.mean, estimate.stderr, predicted))
    return Check(label, f"{_number(mean)} ± {stderr:.1g}", _number(target), f"|z| ≤ {outcome.threshold:.2f}",
                 outcome.passed, f"z = {broken.z:.1f}", broken.passed, false_alarm,
                 f"{outcome.detectable:.1g}")


def bound(label: str, measured, *, at_least: float | None = None, at_most: float | None = None, control) -> Check:
    """A one-sided check: passes when every measured value lies on the stated side of a threshold.

    An `Estimate` must clear the threshold by the one-sided Student quantile of `FALSE_ALARM` standard errors, so
    that passing by luck has at most that probability. `control` is what the broken experiment measures.

    >>> bound("floor", [0.3, 0.4], at_least=0.25, control=0.1).passed
    True
    """
    if (at_least is None) == (at_most is None):
        raise ValueError(f"give exactly one of at_least and at_most, got {at_least!r} and {at_most!r}")
    threshold, sign = (at_least, 1) if at_most is None else (at_most, -1)
    margin, shown, rate, detectable = _margin("measured", measured, threshold, sign)
    broken_margin, broken_shown, _, _ = _margin("control", control, threshold, sign)
    return Check(label, shown, f"{'≥' if sign > 0 else '≤'} {_number(threshold)}",
                 "in every case" if rate is None else f"one-sided, at {rate:.0e}",
                 margin >= 0, broken_shown, broken_margin >= 0, rate, detectable)


def verdict(published: Sequence[Check], under: Sequence[Check] = (), corrected: Sequence[Check] = ()) -> str:
    """The verdict that the outcomes force.

    All published checks pass: ``holds``. Else all checks under the named assumption pass: ``holds, under``.
    Else all checks of the corrected statement pass: ``false as stated; corrected``. With no correction: ``false``.
    With no check at all: ``not testable here``. Raises `VerdictError` when a correction fails too.

    >>> verdict([bound("x", 1, at_least=0, control=-1)])
    'holds'
    """
    if not (published or under or corrected):
        return UNTESTABLE
    if not published:
        raise VerdictError("a verdict needs at least one check of the published statement")
    for repair in (under, corrected):
        if failed := [check.label for check in repair if not check.passed]:
            raise VerdictError(f"checks that should repair the claim fail: {', '.join(failed)}")
    if all(check.passed for check in published):
        return HOLDS
    return UNDER if under else CORRECTED if corrected else FALSE


@dataclass(frozen=True)
class Record:
    """What one call recorded: shown in the notebook as lines of text and as a box on the page."""

    id: str
    verdict: str
    under: str | None
    checks: tuple[Check, ...]

    def __repr__(self) -> str:
        return "\n".join([f"{self.id}: {self._verdict_text()}", *(
            f"  {c.role} | {c.label} | measured {c.measured} | predicted {c.predicted} | {_criterion(c)}"
            f" | {_outcome(c.passed)} | control {c.control}: {_outcome(c.control_passed)}" for c in self.checks)])

    def _repr_html_(self) -> str:
        columns = ("role", "check", "measured", "predicted", "criterion", "outcome", "control")
        head = "".join(f'<th scope="col">{column}</th>' for column in columns)
        rows = "".join("<tr>" + "".join(f'<td data-label="{column}">{html.escape(cell)}</td>' for column, cell in zip(
            columns, (c.role, c.label, c.measured, c.predicted, _criterion(c), _outcome(c.passed),
                      f"{c.control}: {_outcome(c.control_passed)}"), strict=True)) + "</tr>" for c in self.checks)
        return (f'<div class="verdict-box"><p class="verdict-head"><span class="verdict verdict-'
                f'{BADGES[self.verdict]}">{html.escape(self._verdict_text())}</span> <strong>{self.id}</strong></p>'
                f'<table class="verdict-checks"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>')

    def _verdict_text(self) -> str:
        return f"{self.verdict}: {self.under}" if self.verdict == UNDER else self.verdict


def record(claim_id: str, *, published: Sequence[Check] = (), under: Sequence[Check] = (),
           corrected: Sequence[Check] = ()) -> None:
    """Compute the verdict of a registered claim from its checks, display it, and store it for the verdict page.

    Call once per claim. `published` tests the statement as published, `under` the same statement with its named
    assumption, `corrected` the statement that replaces it. Raises `VerdictError` when a negative control has the
    same outcome as its check, or when the verdict is not the registered one; ``ValueError`` for an unknown or
    pending claim.
    """
    entry = registry().get(claim_id)
    if entry is None or entry.get("pending"):
        raise ValueError(f"claim_id must be a registered claim with a chapter, got {claim_id!r}")
    checks = tuple(replace(check, role=role) for role, group in
                   (("published", published), ("under", under), ("corrected", corrected)) for check in group)
    for check in checks:
        if check.control_passed == check.passed:
            raise VerdictError(f"{claim_id}: the control of {check.label!r} {_outcome(check.passed)} like the check")
    found = verdict(published, under, corrected)
    result = Record(claim_id, found, entry.get("under"), checks)
    if found != entry["expected"]:
        raise VerdictError(f"{claim_id}: computed {found!r}, registered {entry['expected']!r}\n{result!r}")
    stored = {"id": claim_id, "verdict": result._verdict_text(), "badge": BADGES[found],
              "checks": [asdict(check) for check in checks]}
    display(result, metadata={"mhalib_claim": stored})


def quote(name: str, text: str) -> None:
    """Glue a number, formatted as text, under a name that prose can quote with ``{glue:text}``.

    Raises ``ValueError`` for an empty name or a text that is not a non-empty string.

    >>> quote("empty", "")
    Traceback (most recent call last):
    ...
    ValueError: text must be a non-empty string, got ''
    """
    for argument, value in (("name", name), ("text", text)):
        if not isinstance(value, str) or not value:
            raise ValueError(f"{argument} must be a non-empty string, got {value!r}")
    prefix = "application/papermill.record/"
    display({f"{prefix}text/plain": repr(text)}, raw=True,
            metadata={"scrapbook": {"name": name, "mime_prefix": prefix}})


@cache
def registry() -> dict[str, dict]:
    """Every claim of the three papers by its id: paper, statement, expected verdict, chapter, anchors.

    Read from ``chapters/claims.yml``, which the package carries.

    >>> registry()["ens-1"]["chapter"]
    'nw_ensembles'
    """
    path = Path(__file__).with_name("claims.yml")
    return {entry["id"]: entry for entry in yaml.safe_load(path.read_text(encoding="utf-8"))}


def _worst(name: str, value, predicted, tolerance: float) -> tuple[float, str, str]:
    """The largest error, and the entry where it occurs beside its prediction, as text."""
    values, targets = np.broadcast_arrays(validation.array(name, value, "..."), predicted)
    errors = np.abs(values - targets)
    error, worst, target = float(errors.max()), values.flat[errors.argmax()], targets.flat[errors.argmax()]
    round_off = not np.any(targets) and error <= tolerance
    return error, f"≤ {tolerance:.0e}" if round_off else _number(worst), _number(target)


def _margin(name: str, value, threshold: float, sign: int) -> tuple[float, str, float | None, str | None]:
    if isinstance(value, Estimate):
        lead = sign * (float(value.mean) - threshold)
        needed = z_test(value, threshold, false_alarm=2 * FALSE_ALARM).threshold * float(value.stderr)
        return lead - needed, f"{_number(value.mean)} ± {value.stderr:.1g}", FALSE_ALARM, f"{2 * needed:.1g}"
    values = sign * np.ravel(validation.array(name, value, "..."))
    return float(values.min()) - sign * threshold, _number(sign * values.min()), None, None


def _number(value) -> str:
    """Four digits; what is smaller than any tolerance of the book is round-off, and differs between machines."""
    return "round-off" if 0 < abs(float(value)) < ROUND_OFF else f"{float(value):.4g}"


def _criterion(check: Check) -> str:
    if check.false_alarm is None:
        return check.criterion
    return f"{check.criterion}; false alarm {check.false_alarm:.0e}; detects {check.detectable}"


def _outcome(passed: bool) -> str:
    return "passes" if passed else "fails"
