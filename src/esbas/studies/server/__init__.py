"""The HTTP service of studies, see docs/service.md.

`esbas serve URL` runs it; `create_app` in `app.py` is for other ASGI servers.
"""
