"""The HTTP service of studies: `esbas serve URL`, or `esbas.server.app.create_app` for an ASGI server. See docs/service.md."""
