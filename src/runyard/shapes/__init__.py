"""Owns the shapes of the API: what it takes and answers, for the server, its client and the page.

The server makes its OpenAPI description of these, `scripts/page_types.py` the page's types.
"""
