"""Every annotation of a shape or a type in `saplan` is checked whenever a test calls it; users pay nothing for that."""

from jaxtyping import install_import_hook

# The numeric tower: whoever asks for a float also takes an int, as type checkers do.
install_import_hook("saplan", "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))")
