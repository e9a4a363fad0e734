"""Real trained heads: their weights, their forward pass, and what the theory of ensembles says of them."""
