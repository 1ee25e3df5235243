"""The project's own item pipelines: none, as feed exports (``-O pages.json``) will do."""
