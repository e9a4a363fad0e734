"""Side-by-side timings against what one would use instead."""
