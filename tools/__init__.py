"""The commands behind the Makefile: run the notebooks, keep results, store references."""
