"""What is said of a submission before it is sent: advice, and a line that describes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runyard.schedulers.choice import cluster

if TYPE_CHECKING:
    from runyard.config.request import Request
    from runyard.launch.plan import Plan
    from runyard.launch.snapshot import Snapshot

_LONG_SECONDS = 6 * 3600.0


def advise(plan: Plan, request: Request, trials: int | None, copy: Snapshot | None) -> list[str]:
    """What an old hand would say, looking over the shoulder."""
    advice = []
    is_long = plan.asked.get("time", 0) > _LONG_SECONDS
    if is_long and plan.form == "array" and plan.agents > 1:
        advice.append(
            "short jobs start sooner and can cost less: trials go on from their checkpoints in the "
            "next job, so --time can be less than the whole sweep needs"
        )
    elif is_long and plan.chain is None and plan.agents < (trials or 1):
        advice.append(
            f"short jobs start sooner and can cost less than a long one: without --agents each of "
            f"the {trials} trials has a job of its own in one array, and --time can be "
            "what one trial takes"
        )
    if copy is not None and copy.large:
        large = copy.large
        more = f" and {len(large) - 3} more" if len(large) > 3 else ""
        advice.append(
            f"not copied with the code, read from the project itself: {', '.join(large[:3])}{more}"
        )
    if request.staging.data:
        advice.append(
            "scratch may be slow for many small reads and writes: read the data in "
            f"{cluster().local_folder}; checkpoints and large files stay in ${{scratch_dir}}"
        )
    return advice


def describe(plan: Plan) -> str:
    """The submission in a line."""
    what = {
        "array": f"an array of {plan.agents} tasks",
        "nodes": f"one job over {plan.agents} nodes",
        "jobs": "one job" if plan.agents == 1 else f"{plan.agents} jobs",
    }[plan.form]
    at_once = f", {plan.at_once} at once" if plan.at_once else ""
    if plan.chain is not None:
        side = f", {plan.chain.lanes} side by side" if plan.chain.lanes > 1 else ""
        what, at_once = f"a chain of {plan.chain.links} links{side} ({plan.chain.form})", ""
    options = plan.scheduler.describe(plan.header)
    return f"to {plan.profile.name}: {what}{at_once}; {options}"
