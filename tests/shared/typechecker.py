"""The run-time checker of annotations: beartype, with integers accepted where a float is meant."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
