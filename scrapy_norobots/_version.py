"""The version of the package. It stands nowhere else in the code."""

__version__ = "0.2.0"
