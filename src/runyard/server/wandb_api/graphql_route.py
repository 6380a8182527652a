"""The route of GraphQL: one document in, one answer out."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from runyard.server.http.answers import LARGE_BODY, HttpError, answer, read_texts
from runyard.server.http.proxies import CAME_BY
from runyard.server.wandb_api.fields import root_fields
from runyard.server.wandb_api.filestream import read_writer
from runyard.server.wandb_api.graphql.request import Refusal
from runyard.server.wandb_api.graphql.request import Request as GraphqlRequest


async def execute(request: Request) -> Response:
    body = await read_texts(request, LARGE_BODY)
    text, variables, name = (body.get(key) for key in ("query", "variables", "operationName"))
    if not isinstance(text, str) or not isinstance(variables, dict | None):
        raise HttpError(400, "query is not a text, or variables is not an object")
    context = GraphqlRequest(
        request.app.state.tracker,
        request.scope["caller"],
        _base_url(request),
        read_writer(request.headers),
        request.headers.get("user-agent", ""),
        request.client.host if request.client else "",
    )
    # Loaded with the first document: graphql-core takes a fifth of the server's whole start.
    from runyard.server.wandb_api.graphql import documents

    try:
        data = await documents.execute(
            text, variables, root_fields.roots(context), name if isinstance(name, str) else None
        )
    except Refusal as refusal:
        return answer({"data": None, "errors": [{"message": str(refusal)}]})
    return answer({"data": data})


def _base_url(request: Request) -> str:
    if CAME_BY in request.scope:
        return str(request.scope[CAME_BY])
    # The name the client used: nodes may reach us through tunnels and by other names.
    host = request.headers.get("host") or "127.0.0.1"
    return f"{request.url.scheme}://{host}"
