"""The project's own middlewares: none, as the add-on brings the one that is needed."""
