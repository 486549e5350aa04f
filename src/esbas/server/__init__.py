"""The HTTP service of studies: `esbas serve URL`, or `create_app` in `esbas.server.app` for an ASGI server. See docs/service.md."""
