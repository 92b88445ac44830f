"""What making a matrix costs: that of a conversion, whose input takes no reading."""

from tilewise.operations.convert.cost import cost_of

__all__ = ["cost_of"]
