"""`createCustomChart`: a chart that the page draws from a table; see `runs/custom_charts.py`."""

from __future__ import annotations

import time

from runyard.server.runs import custom_charts
from runyard.server.store.names import BadName
from runyard.server.wandb_api.graphql.inputs import Arguments
from runyard.server.wandb_api.graphql.request import Refusal, Request, Source, must_write


def mutations(request: Request) -> Source:
    async def create_custom_chart(arguments: Arguments) -> Source:
        entity, name = request.entity(arguments), arguments.text("name") or ""
        must_write(request, entity)
        try:
            await request.tracker.write(
                custom_charts.put,
                entity,
                name,
                title=arguments.text("displayName") or name,
                access=arguments.text("access") or custom_charts.PRIVATE,
                spec=arguments.text("spec") or "",
                now=time.time(),
            )
        except (BadName, custom_charts.BadChart) as error:
            raise Refusal(str(error)) from error
        return {"chart": {"id": f"{entity}/{name}"}}

    return {"createCustomChart": create_custom_chart}
